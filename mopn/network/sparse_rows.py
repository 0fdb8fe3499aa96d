"""The rows of a sparse design for compiled loops over units of degree 2, and sums over them in threads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mopn.core import blocks
from mopn.core.centered import uncentered
from mopn.core.designs import Design
from mopn.core.threads import map_in_threads

__all__ = ["SparseRows", "Units", "padded"]


class Units(NamedTuple):
    """Units by features, padded with zeros: entries of the dummies (q, k') and of the other features (d, k')."""

    dummies: np.ndarray
    units: np.ndarray

    def constants(self) -> np.ndarray:
        """A^1 and A^2 of the dummies, (2, k')."""
        first = self.dummies.sum(axis=0)
        return np.stack([first, 0.5 * (first**2 - (self.dummies**2).sum(axis=0))])


class SparseRows:
    """The stored entries of the rows, in slices; dummies in front of them are not stored.

    Results do not depend on the number of threads: neither do the slices, and their sums are added up in order.

    Parameters
    ----------
    design : Design
        A sparse design.
    distinct : bool
        Whether K(h, x) is A^2, of distinct features, or <h, x>^2.
    """

    def __init__(self, design: Design, *, distinct: bool) -> None:
        assert design.stored_rows is not None
        self.rows, self.n_dummies, self.center = design.stored_rows
        assert self.center is None or not distinct
        self.distinct = distinct
        n, d = design.shape
        count = min(max(1, n // max(blocks.SLICE_ROWS, blocks.ROWS_PER_INPUT * d)), blocks.MAX_SLICES)
        self.slices = list(pairwise(n * part // count for part in range(count + 1)))

    def units(self, H: np.ndarray, dtype: type = np.float64) -> Units:
        """Lay out units H (k, q + d) for compiled loops, which read x: h_0 + <h, x - c> = (h_0 - <h, c>) + <h, x>."""
        table = padded(uncentered(H, self.center, self.n_dummies).T, dtype)
        return Units(table[: self.n_dummies], table[self.n_dummies :])

    def linear(self, W: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        """Return the coefficients W' (1 + d, m) of a linear term for compiled loops; (0, m) for an inactive one."""
        return np.ascontiguousarray((uncentered(W, self.center, 1) if W.shape[1] else W).T, dtype)

    def linear_gradient(self, of_linear: np.ndarray) -> np.ndarray:
        """Return the gradient (m, 1 + d) with respect to W from the sums (1 + d, m) of the compiled loops."""
        return self._pulled_back(of_linear.T, 1) if len(of_linear) else of_linear.T

    def _pulled_back(self, gradient: np.ndarray, dummies: int) -> np.ndarray:
        """Return the gradient with respect to coefficients of [1, x - c] from that of those of [1, x]."""
        if self.center is None:
            return gradient
        gradient = gradient.copy()
        gradient[:, dummies:] -= np.outer(gradient[:, 0], self.center)
        return gradient

    def gradient(self, at: Units, of_constants: np.ndarray, of_units: np.ndarray, k: int) -> np.ndarray:
        """Return the gradient (k, q + d) from the sums of the compiled loops."""
        # The derivative of A^2 with respect to a dummy's entry is <h, x> without its own term; that of <h, x>^2 is
        # twice <h, x>.
        projections, slopes = of_constants
        if self.distinct:
            of_dummies = projections - at.dummies * slopes
        else:
            of_dummies = np.broadcast_to(2.0 * projections, at.dummies.shape)
        return self._pulled_back(np.vstack([of_dummies, of_units]).T[:k], self.n_dummies)

    def forms(self, G: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the sums over the rows of G_ci K(h_r, x_i), shape (k, m), for G (m, n) and H (k, q + d)."""
        from mopn.compiled.degree_two import add_forms

        at = self.units(H)

        def of_slice(begin: int, stop: int) -> tuple[np.ndarray]:
            total, slopes = np.zeros((len(G), at.units.shape[1])), np.ascontiguousarray(G[:, begin:stop])
            add_forms(self.distinct, self.rows, begin, stop, at.constants(), at.units, slopes, total)
            return (total,)

        (total,) = self.sum(of_slice)
        return total.T[: len(H)]

    def products(self, G: np.ndarray, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return half of the gradient of sum_ric W_rc G_ci K(h_r, x_i) with respect to H (k, q + d); W is (k, m)."""
        from mopn.compiled.degree_two import add_products

        at, weights = self.units(H), padded(W.T)
        layers = at.constants(), at.units, weights

        def of_slice(begin: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            sums, slopes = (np.zeros_like(layers[0]), np.zeros_like(at.units)), np.ascontiguousarray(G[:, begin:stop])
            add_products(self.distinct, self.rows, begin, stop, *layers, slopes, *sums)
            return sums

        of_constants, of_units = self.sum(of_slice)
        return 0.5 * self.gradient(at, of_constants, of_units, len(H))

    def sum(self, of_slice: Callable[[int, int], tuple[Any, ...]]) -> list[Any]:
        """Return the sums over all slices of the terms that a function returns for the rows from ``begin`` to ``stop``.

        Threads process the slices; their terms are added up in the order of the slices.
        """
        terms = map_in_threads(of_slice, self.slices)
        return [sum(parts) for parts in zip(*terms, strict=True)]


def padded(table: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """Return a contiguous table with rows padded by zeros to a multiple of the width of compiled loops."""
    from mopn.compiled.vectorization import WIDTH

    rows, k = table.shape
    filled = np.zeros((rows, -(-k // WIDTH) * WIDTH), dtype)
    filled[:, :k] = table
    return filled
