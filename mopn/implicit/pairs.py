"""Observed pairs of users and items with confidences, stored by users and by items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mopn.solvers.tools.blas_threads import in_threads, n_workers
from mopn.solvers.tools.decorators import cached_property

# Pairs, at least, in a block of lines: with fewer, threads cost more than they save.
_LEAST_PAIRS_IN_BLOCK = 20_000
# Blocks of lines for each thread, so that all end at about the same time.
_BLOCKS_PER_THREAD = 4
# Conjugate gradients in a half-step, from the sweep before: a third lowers objectives after 12 sweeps by 2e-5 at most.
STEPS = 2


@dataclass(frozen=True)
class Lines:
    """Pairs by users, or by items, with confidences: line i has the entries ``starts[i]`` to ``starts[i + 1]``."""

    starts: np.ndarray
    partners: np.ndarray
    confidences: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def blocks(self) -> list[tuple[int, int]]:
        """Return ranges of lines with about as many pairs each, for threads."""
        pairs = int(self.starts[-1])
        number = n_workers() * _BLOCKS_PER_THREAD if n_workers() > 1 else 1
        number = max(1, min(number, pairs // _LEAST_PAIRS_IN_BLOCK))
        cuts = np.searchsorted(self.starts, np.linspace(0, pairs, number + 1)[1:-1])
        ends = [0, *cuts.tolist(), len(self)]
        return list(pairwise(ends))

    def in_blocks(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a compiled function for each block of lines, the range last."""
        for _ in in_threads(lambda block: function(*arguments, block[0], block[1]), self.blocks()):
            pass

    def products(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return <a, b> of all pairs, for rows a of the lines and b of their partners."""
        from mopn.compiled.alternating import pair_products

        found = np.empty(len(self.partners))
        self.in_blocks(pair_products, A, B, self.starts, self.partners, found)
        return found

    def residuals(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return c (1 - <a, b>) of all pairs."""
        return self.confidences * (1.0 - self.products(A, B))

    def times(self, values: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the product (lines, q) of the matrix with these values and X (partners, q)."""
        from mopn.compiled.alternating import line_sums

        found = np.zeros((len(self), X.shape[1]))
        self.in_blocks(line_sums, self.starts, self.partners, values, np.ascontiguousarray(X), found)
        return found

    def gram(self, values: np.ndarray, n: int) -> np.ndarray:
        """Return the lower triangle of G'G (n, n), in Fortran's order, for the matrix G with these values."""
        from mopn.compiled.alternating import add_outer_products

        K = np.zeros((n, n), order="F")
        add_outer_products(self.starts, self.partners, values, K)
        return K

    def improved(self, start: np.ndarray, other: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
        """Return rows a on the way from a start to the least sum c/2 (<a + z, b> - 1)^2 + <a, a>/2, given offsets z.

        The sum is over the partners b of a line; the steps are conjugate gradients, in the precision of the start.
        """
        from mopn.compiled.alternating import conjugate_steps

        dtype = start.dtype
        confidences = self.single_confidences if dtype == np.float32 else self.confidences
        found = np.array(start, order="C")
        B = np.ascontiguousarray(other, dtype)
        Z = np.empty((0, B.shape[1]), dtype) if offsets is None else np.ascontiguousarray(offsets, dtype)
        self.in_blocks(conjugate_steps, found, B, Z, self.starts, self.partners, confidences, STEPS)
        return found

    @cached_property
    def single_confidences(self) -> np.ndarray:
        """The confidences in single precision."""
        return self.confidences.astype(np.float32)

    def moments(self, r: np.ndarray) -> np.ndarray:
        """Return the sums of r, of r^2 / (2 c), of the moduli of r, and of r^2."""
        half_squares = r * (r / (2.0 * self.confidences))
        return np.array([r.sum(), half_squares.sum(), np.abs(r).sum(), r @ r])

    def rounding(self, r: np.ndarray, users: np.ndarray, items: np.ndarray, relative: float) -> float:
        """Bound the rounding errors of the losses, given the lengths of the factors' rows."""
        sizes = np.repeat(users, np.diff(self.starts)) * items[self.partners]
        errors = relative * (1.0 + sizes)
        return float(np.abs(r) @ errors) + 0.5 * float(self.confidences @ errors**2)

    def totals(self) -> tuple[float, float, float]:
        """Return the least, the largest and the sum of the confidences."""
        c = self.confidences
        return float(c.min(initial=np.inf)), float(c.max(initial=0.0)), float(c.sum())


class Pairs:
    """Observed pairs (n_users, n_items) with confidences above 0, in the order of users and in the order of items.

    Arrays with a number for each pair, such as residuals, are in the order of users. Only these methods look into them,
    so that pairs may also be stored elsewhere (:mod:`mopn.dask`).
    """

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.n_ids = matrix.shape
        # Rows of the factors of users and of items.
        self.shape = matrix.shape
        self.number = matrix.nnz
        self.users = Lines(matrix.indptr, matrix.indices, matrix.data)
        # The places of the pairs in the order of items; matrices forget explicit zeros.
        integer = np.int32 if matrix.nnz < np.iinfo(np.int32).max else np.int64
        numbers = np.arange(1, matrix.nnz + 1, dtype=integer)
        by_items = sparse.csc_array(sparse.csr_array((numbers, matrix.indices, matrix.indptr), shape=matrix.shape))
        self.order = by_items.data
        self.order -= 1
        self.items = Lines(by_items.indptr, by_items.indices, matrix.data[self.order])
        self._last: tuple[Any, Any] = None, None

    @property
    def confidences(self) -> np.ndarray:
        """The confidences, in the order of users."""
        return self.users.confidences

    @cached_property
    def totals(self) -> tuple[float, float, float]:
        """The least, the largest and the sum of the confidences."""
        return self.users.totals()

    def curvatures(self, P: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """Return the sums of c <p, q>^2 over the pairs, for each column of P and Q alone."""
        # Without units the residuals are the confidences.
        confidences = self.residuals(P[:, :0], Q[:, :0])
        return np.einsum("ij,ij->j", P * P, self.times(confidences, Q * Q, by_items=False))

    def matrix(self, values: Any) -> sparse.csr_array:
        """Return the sparse matrix (n_users, n_items) with a value for each pair."""
        return sparse.csr_array((values, self.users.partners, self.users.starts), shape=self.n_ids)

    def seen(self, r: Any) -> sparse.csr_array:
        """Return the matrix G of r as products and proofs take it: without features as it is."""
        return self.matrix(r)

    def vectors(self, P: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors p of users and q of items, given factors."""
        return P, Q

    def error(self, r: Any) -> float:
        """Bound the rounding errors of the matrix G of r in the Frobenius norm."""
        return 0.0

    def residuals(self, P: np.ndarray, Q: np.ndarray) -> Any:
        """Return c (1 - <p, q>) of all pairs."""
        return self.users.residuals(P, Q)

    def scaled(self, r: Any, scale: float) -> Any:
        """Return multiples of numbers of the pairs."""
        return scale * r

    def moments(self, r: Any) -> np.ndarray:
        """Return the sums of r, of r^2 / (2 c) and of the moduli of r over the pairs, and the squared length of G."""
        return self.users.moments(r)

    def rounding(self, r: Any, users: np.ndarray, items: np.ndarray, relative: float) -> float:
        """Bound the rounding errors of the losses, given the lengths of the factors' rows."""
        return self.users.rounding(r, users, items, relative)

    def times(self, r: Any, X: np.ndarray, *, by_items: bool) -> np.ndarray:
        """Return the product of the matrix G of r and X, or of its transpose and X (with ``by_items``)."""
        return self.items.times(self._by_items(r), X) if by_items else self.users.times(r, X)

    def gram(self, r: Any, *, by_items: bool) -> np.ndarray:
        """Return the lower triangle of G'G for the matrix G of r by users, or by items."""
        if by_items:
            return self.items.gram(self._by_items(r), self.shape[0])
        return self.users.gram(r, self.shape[1])

    def improved(
        self,
        start: np.ndarray,
        other: np.ndarray,
        offsets: np.ndarray | None = None,
        *,
        by_items: bool,
    ) -> np.ndarray:
        """Return better rows of users, or of items; see :meth:`Lines.improved`."""
        lines = self.items if by_items else self.users
        return lines.improved(start, other, offsets)

    def _by_items(self, r: np.ndarray) -> np.ndarray:
        """Return the numbers in the order of items; the last array is kept, as many products follow."""
        if self._last[0] is not r:
            self._last = r, r[self.order]
        return self._last[1]
