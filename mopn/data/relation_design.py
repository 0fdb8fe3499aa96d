"""Rows that tables of users, items and others have in common: the design S B, with each row of a table stored once.

A sample is a row of every table side by side, x_i = [b_{1, s_i1}, ..., b_{K, s_iK}]: so X = S B, where B is block
diagonal and holds the tables, and S (n, rows of all tables) has K ones a row. Products with X are products with B and
with S: sums by blocks of Rendle, Scaling Factorization Machines to Relational Data (VLDB 2013).

Sums over the samples are sums over the samples of a row of B, and then over the rows of B. No number passes through
more additions than in one sum after the other, so bounds of rounding errors hold as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mopn.data.designs import Design, Entries, SparseDesign
from mopn.solvers.tools.decorators import cached_property

# A row's id is at least this fraction of its length: a smaller one hardly tells rows apart.
_LEAST = 0.1
# Eigenvectors of N'N that are told apart, with so many more vectors and so many steps of subspace iteration.
_RANK, _MORE, _STEPS = 20, 10, 2


if TYPE_CHECKING:
    from mopn.compiled.storage import Lines


class RelationDesign(Design):
    """X = S B for block diagonal ``tables`` B of columns ``cuts``; ``places`` (n, K) are the ones of S."""

    def __init__(
        self, tables: SparseDesign, places: np.ndarray, cuts: np.ndarray, choice: SparseDesign | None = None
    ) -> None:
        self.tables, self.places, self.cuts = tables, places, cuts
        self.shape = len(places), tables.shape[1]
        if choice is not None:
            vars(self)["choice"] = choice

    @cached_property
    def choice(self) -> SparseDesign:
        """S."""
        n, k = self.places.shape
        parts = np.ones(n * k), self.places.reshape(-1), np.arange(0, n * k + 1, k)
        return SparseDesign(sparse.csr_array(parts, shape=(n, self.tables.shape[0])))

    @cached_property
    def ids(self) -> RowIds:
        """The ids of the rows of B."""
        return RowIds(self.tables.X)

    def by_table_row(self, R: np.ndarray) -> np.ndarray:
        """Return S' R, the sums of R (n, ...) over the samples of every row of B."""
        return self.choice.X.T @ R

    def project(self, H: np.ndarray) -> np.ndarray:
        return self.choice.X @ self.tables.project(H)

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        return self.tables.adjoint(self.by_table_row(R))

    @cached_property
    def squares(self) -> RelationDesign:
        return RelationDesign(self.tables.squares, self.places, self.cuts, self.choice)

    def gram(self, g: np.ndarray) -> np.ndarray:
        B, S = self.tables.X, self.choice.X
        return (B.T @ (S.T @ (sparse.diags_array(g) @ S)) @ B).toarray()

    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        return self.tables.occurrences(self.by_table_row(weights))

    def inner_products(self, unit: float) -> np.ndarray:
        return SparseDesign(self.matrix()).inner_products(unit)

    @property
    def largest(self) -> float:
        return self.tables.largest

    @cached_property
    def absolute(self) -> RelationDesign:
        return RelationDesign(self.tables.absolute, self.places, self.cuts)

    def matrix(self) -> Any:
        """Return X in CSR, formed anew."""
        return self.choice.X @ self.tables.X

    @property
    def entries(self) -> Entries:
        return Entries()

    @property
    def stored_lines(self) -> Lines:
        """The rows of S."""
        return self.choice.row_lines

    @property
    def work(self) -> tuple[float, float]:
        """The work of S and of B: S' diag(g) S has at most n K^2 entries, and each meets rows of B."""
        (n, k), stored = self.places.shape, float(self.tables.X.nnz)
        return n * k + stored, n * k * k + stored * self.shape[1]

    @property
    def least_rows(self) -> int:
        """Every block reads all tables, which have at most twice as many entries as its rows of S."""
        return -(-self.tables.X.nnz // (2 * self.places.shape[1]))

    def rows(self, rows: slice | np.ndarray) -> RelationDesign:
        return RelationDesign(self.tables, self.places[rows], self.cuts)

    def scaled(self, scale: np.ndarray) -> RelationDesign:
        """Return the design with the features divided by a scale (d,)."""
        return RelationDesign(self.tables.scaled(scale), self.places, self.cuts)

    def _of_columns(self, features: np.ndarray) -> RelationDesign:
        return RelationDesign(self.tables._of_columns(features), self.places, np.searchsorted(features, self.cuts))

    def single(self) -> RelationDesign:
        return RelationDesign(self.tables.single(), self.places, self.cuts)


class RowIds:
    """Coefficients h of the columns of B, as outputs a = B h of rows with an id, and coefficients of other columns.

    For entries e of the ids, a = e h_ids + e N h_others, so other columns are collinear with ids. In a and h_others the
    losses depend on a, and h_others cost ||h_ids||^2 + ||h_others||^2, with the curvature I + N'N. Its inverse takes
    the largest eigenvectors, few if some columns are frequent, and the mean of the other eigenvalues.
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
    """Return the largest eigenvectors of N'N, 1 / (1 + eigenvalues), and 1 / (1 + the mean of the others).

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
