"""The ids of the rows of tables: columns that a single row has, such as the number of a user."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

# A row's id is at least this fraction of its length: a smaller one hardly tells rows apart.
_LEAST = 0.1
# Eigenvectors of N'N that are told apart, with so many more vectors and so many steps of subspace iteration.
_RANK, _MORE, _STEPS = 20, 10, 2


class RowIds:
    """Coefficients h of the columns of B, as outputs a = B h of rows with an id, and coefficients of other columns.

    For entries e of the ids, a = e h_ids + e N h_others, so other columns are collinear with ids: the films that a user
    rated are a function of the user. In a and h_others the losses depend on a, and h_others cost ||h_ids||^2 +
    ||h_others||^2, with the curvature I + N'N. Its inverse takes the largest eigenvectors, few if some columns are
    frequent, and the mean of the other eigenvalues.

    ``rows`` (p,) have the columns ``ids`` with e^2 as ``squares``; ``others`` (q,) are all other columns, and N (p, q)
    the other entries of the rows, divided by e.
    """

    def __init__(self, B: Any) -> None:
        B = sparse.csr_array(B)
        lengths = np.sqrt(B.multiply(B).sum(axis=1))
        columns = B.tocsc()
        alone = np.flatnonzero(np.diff(columns.indptr) == 1)
        rows, sizes = columns.indices[columns.indptr[alone]], abs(columns.data[columns.indptr[alone]])
        clear = (sizes > 0.0) & (sizes >= _LEAST * lengths[rows])
        alone, rows, sizes = alone[clear], rows[clear], sizes[clear]
        # The largest id of each row.
        descending = np.argsort(-sizes, kind="stable")
        self.rows, first = np.unique(rows[descending], return_index=True)
        self.ids = alone[descending[first]]
        entries = columns.data[columns.indptr[self.ids]]
        self.squares = entries**2
        self.others = np.delete(np.arange(B.shape[1]), self.ids)
        among_others = columns[:, self.others].tocsr()
        self.N = sparse.diags_array(1.0 / entries) @ among_others[self.rows]
        # Rows without an id.
        self._without = np.delete(np.arange(B.shape[0]), self.rows)
        self._their_squares = among_others[self._without].power(2).T
        self._vectors, self._inverse, self._rest = _spectrum(self.N)

    def inverse_scales(self, curvature: np.ndarray, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the arguments of ``solve`` for losses of a curvature (rows, k) in every row, and ridges (k,) > 0."""
        of_ids = 1.0 / (self.squares[:, None] * curvature[self.rows] + ridge)
        return of_ids, 1.0 / np.sqrt(ridge + self._their_squares @ curvature[self._without])

    def solve(self, G: np.ndarray, of_ids: np.ndarray, of_others: np.ndarray) -> np.ndarray:
        """Return the approximate inverse of the curvature of losses and ridge times G (d, k), which is symmetric."""
        R = of_others * (G[self.others] - self.N.T @ G[self.ids])
        R = self._rest * R + self._vectors @ ((self._inverse - self._rest)[:, None] * (self._vectors.T @ R))
        found = np.empty_like(G)
        found[self.others] = R * of_others
        found[self.ids] = of_ids * G[self.ids] - self.N @ found[self.others]
        return found


def _spectrum(N: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the largest eigenvectors of N'N, 1 / (1 + their eigenvalues), and 1 / (1 + the mean of the others).

    By subspace iteration from random vectors (Halko, Martinsson and Tropp, SIAM Review 2011, algorithm 4.4).
    """
    least = min(N.shape)
    rank = min(_RANK, least)
    vectors = np.random.default_rng(0).standard_normal((N.shape[1], min(_RANK + _MORE, least)))
    for _ in range(_STEPS):
        vectors = np.linalg.qr(N.T @ (N @ vectors))[0]
    image = N @ vectors
    values, turned = np.linalg.eigh(image.T @ image)
    values, turned = np.maximum(values[len(values) - rank :], 0.0), turned[:, len(values) - rank :]
    mean = max(N.power(2).sum() - values.sum(), 0.0) / max(least - rank, 1)
    return vectors @ turned, 1.0 / (1.0 + values), 1.0 / (1.0 + mean)
