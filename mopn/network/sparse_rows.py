"""The rows of a sparse design as compiled loops over units of degree 2 take them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mopn.core.designs import Design
from mopn.core.threads import map_in_threads

__all__ = ["SparseRows", "Units", "padded"]

# Rows of a slice at least, and as many per input; slices share the threads, and there are at most so many.
_SLICE, _ROWS_PER_INPUT, _SLICES = 8192, 4, 8


class Units(NamedTuple):
    """Units (q + d, k') laid out by features and filled up with zeros: those of the 1-features, and the others."""

    ones: np.ndarray
    units: np.ndarray

    def constants(self) -> np.ndarray:
        """A^1 and A^2 of the 1-features, (2, k')."""
        first = self.ones.sum(axis=0)
        return np.stack([first, 0.5 * (first**2 - (self.ones**2).sum(axis=0))])


class SparseRows:
    """Rows of stored entries after 1-features that are not stored, in slices.

    The slices do not depend on the number of threads, and their sums are added up in order: nor do results.

    Parameters
    ----------
    design : Design
        A sparse one.
    distinct : bool
        Whether K(h, x) is A^2, of distinct features, or <h, x>^2.
    """

    def __init__(self, design: Design, *, distinct: bool) -> None:
        assert design.sparse_rows is not None
        self.rows, self.n_ones = design.sparse_rows
        self.distinct = distinct
        n, d = design.shape
        count = min(max(1, n // max(_SLICE, _ROWS_PER_INPUT * d)), _SLICES)
        self.slices = list(pairwise(n * part // count for part in range(count + 1)))

    def units(self, H: np.ndarray, dtype: type = np.float64) -> Units:
        """Lay out units H (k, q + d)."""
        table = padded(H.T, dtype)
        return Units(table[: self.n_ones], table[self.n_ones :])

    def gradient(self, at: Units, of_constants: np.ndarray, of_units: np.ndarray, k: int) -> np.ndarray:
        """Return the gradient (k, q + d) from what compiled loops added up."""
        # The derivative of K by a 1-feature's entry is <h, x>, less its own part if products are of distinct features.
        pulled, pulls = of_constants
        of_ones = pulled - at.ones * pulls if self.distinct else np.broadcast_to(2.0 * pulled, at.ones.shape)
        return np.vstack([of_ones, of_units]).T[:k]

    def forms(self, G: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the sums over the rows of G_ci K(h_r, x_i), shape (k, m), for G (m, n) and H (k, q + d)."""
        from mopn.compiled.degree_two import add_forms

        at = self.units(H)

        def of_slice(begin: int, stop: int) -> np.ndarray:
            total, slopes = np.zeros((len(G), at.units.shape[1])), np.ascontiguousarray(G[:, begin:stop])
            add_forms(self.distinct, self.rows, begin, stop, at.constants(), at.units, slopes, total)
            return total

        return sum(self.map(of_slice)).T[: len(H)]

    def products(self, G: np.ndarray, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return half of the gradient of sum_ric W_rc G_ci K(h_r, x_i) with respect to H (k, q + d); W is (k, m)."""
        from mopn.compiled.degree_two import add_products

        at, weights = self.units(H), padded(W.T)
        layers = at.constants(), at.units, weights

        def of_slice(begin: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            sums, slopes = (np.zeros_like(layers[0]), np.zeros_like(at.units)), np.ascontiguousarray(G[:, begin:stop])
            add_products(self.distinct, self.rows, begin, stop, *layers, slopes, *sums)
            return sums

        of_constants, of_units = (sum(part) for part in zip(*self.map(of_slice), strict=True))
        return 0.5 * self.gradient(at, of_constants, of_units, len(H))

    def map(self, of_slice: Callable[[int, int], Any]) -> list[Any]:
        """Return the function of every slice's first row and end, in order."""
        return map_in_threads(lambda limits: of_slice(*limits), self.slices)


def padded(table: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """Return a contiguous table whose rows are filled up with zeros to a multiple of what compiled loops take."""
    from mopn.compiled.vectorization import WIDTH

    rows, k = table.shape
    filled = np.zeros((rows, -(-k // WIDTH) * WIDTH), dtype)
    filled[:, :k] = table
    return filled
