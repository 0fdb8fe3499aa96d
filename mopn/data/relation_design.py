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
from mopn.data.row_ids import RowIds
from mopn.solvers.tools.decorators import cached_property

if TYPE_CHECKING:
    from mopn.compiled.storage import Lines


class RelationDesign(Design):
    """X = S B for block diagonal ``tables`` B, whose first columns, and their number, are ``cuts`` (K + 1,).

    ``places`` (n, K) are the columns of the ones in S, ascending: the rows of B that make up a sample.
    """

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
