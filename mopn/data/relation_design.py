"""Rows that tables of users, items and others have in common: the design S B, with each row of a table stored once.

A sample is a row of every table side by side, x_i = [b_{1, s_i1}, ..., b_{K, s_iK}]: so X = S B, where B is block
diagonal and holds the tables, and S (n, rows of all tables) has K ones a row. Products with X are products with B and
with S: sums by blocks of Rendle, Scaling Factorization Machines to Relational Data (VLDB 2013).

Sums over the samples are sums over the samples of a row of B, and then over the rows of B. No number passes through
more additions than in one sum after the other, so bounds of rounding errors hold as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mopn.data.designs import COST_OF_ENTRY, Design, Entries, SparseDesign, stored_design
from mopn.data.validation import as_numbers
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import cached_property

# Least entry of an id, relative to the length of its row: a smaller one hardly tells rows apart.
_LEAST_ENTRY_OF_ID = 0.1
# Rank of the subspace iteration for N'N: the eigenvectors that are found.
_RANK = 20
# Oversampling: further vectors, which make these eigenvectors more accurate.
_OVERSAMPLING = 10
# Steps of the subspace iteration.
_STEPS = 2


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
        """S (n, rows of all tables), with K ones a row."""
        n, k = self.places.shape
        arrays = (np.ones(n * k), self.places.reshape(-1), np.arange(0, n * k + 1, k))
        return SparseDesign(sparse.csr_array(arrays, shape=(n, self.tables.shape[0])))

    @cached_property
    def ids(self) -> RowIds:
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
        B = self.tables.X
        S = self.choice.X
        between_rows = S.T @ (sparse.diags_array(g) @ S)
        return (B.T @ between_rows @ B).toarray()

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
        """Return X in CSR; it is formed again in every call."""
        return self.choice.X @ self.tables.X

    @property
    def entries(self) -> Entries:
        return Entries()

    @property
    def stored_lines(self) -> Lines:
        return self.choice.row_lines

    @property
    def work(self) -> tuple[float, float]:
        """The work of S and of B: S' diag(g) S has at most n K^2 entries, and each meets rows of B."""
        n, k = self.places.shape
        stored = float(self.tables.X.nnz)
        return COST_OF_ENTRY * (n * k + stored), COST_OF_ENTRY * (n * k * k + stored * self.shape[1])

    @property
    def least_rows(self) -> int:
        """The least rows of a block: it reads all tables, which then have at most twice its entries of S."""
        return -(-self.tables.X.nnz // (2 * self.places.shape[1]))

    def rows(self, rows: slice | np.ndarray) -> RelationDesign:
        return RelationDesign(self.tables, self.places[rows], self.cuts)

    def scaled(self, scale: np.ndarray) -> RelationDesign:
        return RelationDesign(self.tables.scaled(scale), self.places, self.cuts)

    def single(self) -> RelationDesign:
        return RelationDesign(self.tables.single(), self.places, self.cuts)


class RowIds:
    """Coefficients h of the columns of B, as outputs a = B h of rows with an id, and coefficients of other columns.

    For entries e of the ids, a = e h_ids + e N h_others, so other columns are collinear with ids. In the variables a
    and h_others, the losses depend on a alone. The ridge ||h_ids||^2 + ||h_others||^2 has the curvature I + N'N in
    h_others. Its inverse takes the largest eigenvectors and the mean of the other eigenvalues. A few eigenvectors
    suffice if some columns are frequent.
    """

    def __init__(self, B: Any) -> None:
        B = sparse.csr_array(B)
        lengths = np.sqrt(B.multiply(B).sum(axis=1))
        columns = B.tocsc()
        # Candidates are the columns with a single entry.
        candidates = np.flatnonzero(np.diff(columns.indptr) == 1)
        rows = columns.indices[columns.indptr[candidates]]
        sizes = abs(columns.data[columns.indptr[candidates]])
        clear = (sizes > 0.0) & (sizes >= _LEAST_ENTRY_OF_ID * lengths[rows])
        candidates = candidates[clear]
        rows = rows[clear]
        sizes = sizes[clear]
        # The id of a row is the largest candidate.
        descending = np.argsort(-sizes, kind="stable")
        self.rows, first = np.unique(rows[descending], return_index=True)
        self.ids = candidates[descending[first]]

        entries = columns.data[columns.indptr[self.ids]]
        self.squares = entries**2
        self.others = np.delete(np.arange(B.shape[1]), self.ids)
        among_others = columns[:, self.others].tocsr()
        self.N = sparse.diags_array(1.0 / entries) @ among_others[self.rows]
        self._rows_without_id = np.delete(np.arange(B.shape[0]), self.rows)
        self._squares_without_id = among_others[self._rows_without_id].power(2).T
        # The inverse of I + N'N: 1 / (1 + eigenvalue) along the largest eigenvectors, and elsewhere.
        self._vectors, self._inverse, self._rest = _largest_eigenvectors(self.N)

    def inverse_scales(self, curvature: np.ndarray, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the arguments of ``solve`` for losses of a curvature (rows, k) in every row, and ridges (k,) > 0."""
        of_ids = 1.0 / (self.squares[:, None] * curvature[self.rows] + ridge)
        of_others = 1.0 / np.sqrt(ridge + self._squares_without_id @ curvature[self._rows_without_id])
        return of_ids, of_others

    def solve(self, G: np.ndarray, of_ids: np.ndarray, of_others: np.ndarray) -> np.ndarray:
        """Return the approximate inverse of the curvature of losses and ridge times G (d, k), which is symmetric."""
        R = of_others * (G[self.others] - self.N.T @ G[self.ids])
        along_vectors = (self._inverse - self._rest)[:, None] * (self._vectors.T @ R)
        R = self._rest * R + self._vectors @ along_vectors
        found = np.empty_like(G)
        found[self.others] = R * of_others
        found[self.ids] = of_ids * G[self.ids] - self.N @ found[self.others]
        return found


def _largest_eigenvectors(N: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the largest eigenvectors of N'N, 1 / (1 + eigenvalues), and 1 / (1 + the mean of the others).

    By subspace iteration from random vectors (Halko, Martinsson and Tropp, SIAM Review 2011, algorithm 4.4).
    """
    least = min(N.shape)
    rank = min(_RANK, least)
    vectors = np.random.default_rng(0).standard_normal((N.shape[1], min(_RANK + _OVERSAMPLING, least)))
    for _ in range(_STEPS):
        vectors = np.linalg.qr(N.T @ (N @ vectors))[0]
    image = N @ vectors
    values, rotation = np.linalg.eigh(image.T @ image)
    left_out = len(values) - rank
    values = np.maximum(values[left_out:], 0.0)
    rotation = rotation[:, left_out:]
    mean_of_others = max(N.power(2).sum() - values.sum(), 0.0) / max(least - rank, 1)
    return vectors @ rotation, 1.0 / (1.0 + values), 1.0 / (1.0 + mean_of_others)


class RelationBlocks:
    """X = [T_1[r_1], ..., T_K[r_K]]: a sample is a row of every table, side by side, and tables are stored once.

    All ratings of a user have the same columns of the user: the number, the age group, the films that the user rated.
    Pass this as X to :class:`mopn.NetworkProblem`, to :class:`mopn.FactorizationProblem`, or to estimators of networks
    and of factorization machines. Models are the same as for the plain matrix, up to rounding; memory and time grow
    with the tables and K numbers a sample. Source: Rendle, Scaling Factorization Machines to Relational Data (VLDB
    2013).

    Parameters
    ----------
    tables : sequence of K array-likes or sparse matrices of shape (N_k, d_k)
        Finite numbers. X has their columns one after the other.
    rows : array-like of int of shape (n, K)
        The sample's row of each table, from 0. Columns without a table, such as a date, are a table of their distinct
        values.

    Attributes
    ----------
    shape : tuple of int
        (n, d), with d the number of the columns of all tables.

    Raises
    ------
    TypeError, ValueError
        If a table is invalid, or ``rows`` are not integers that fit the tables.

    Examples
    --------
    Two users and three films; a user's columns are the user and, with ones of total length 1, the films seen:

    >>> import numpy as np, mopn
    >>> from sklearn.preprocessing import normalize
    >>> users, films = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])
    >>> seen = np.zeros((2, 3))
    >>> seen[users, films] = 1
    >>> X = mopn.RelationBlocks([np.hstack([np.eye(2), normalize(seen)]), np.eye(3)], np.column_stack([users, films]))
    >>> X.shape, X[:1].tocsr().toarray().round(1).tolist()
    ((4, 8), [[1.0, 0.0, 0.7, 0.7, 0.0, 1.0, 0.0, 0.0]])
    """

    ndim = 2

    def __init__(self, tables: Sequence[Any], rows: Any) -> None:
        if not isinstance(tables, Sequence) or not len(tables):
            raise TypeError(f"tables must be a sequence of at least one array or sparse matrix, got {shown(tables)}")
        designs = [stored_design(table, f"tables[{k}]") for k, table in enumerate(tables)]
        parts = [design.matrix().astype(np.float64, copy=False) for design in designs]
        sizes = np.array([part.shape for part in parts])
        ends = np.cumsum(sizes, axis=0)
        places = _checked_rows(rows, sizes[:, 0]) + ends[:, 0] - sizes[:, 0]
        empty = sparse.coo_matrix((0, 0), dtype=parts[0].dtype)  # for a matrix: SciPy returns an array of arrays alone
        stored = SparseDesign(sparse.block_diag([*parts, empty], format="csr"))
        self.design = RelationDesign(stored, places, np.append(0, ends[:, 1]))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return self.design.shape

    def __getitem__(self, rows: Any) -> RelationBlocks:
        """Return some samples, by a slice, an array of indices or a mask; the tables are shared.

        Raises
        ------
        IndexError, TypeError
            For an index of columns, and for anything else.
        """
        if isinstance(rows, tuple):  # scikit-learn's cross-validation asks for X[rows, ...]
            if len(rows) != 2 or not (rows[1] is Ellipsis or rows[1] == slice(None)):
                raise IndexError("RelationBlocks have samples by index, but no columns; take columns of their tables")
            rows = rows[0]
        if isinstance(rows, slice):
            return self._with_design(self.design.rows(rows))
        if not (isinstance(rows, list) or hasattr(rows, "__array__")) or np.ndim(rows) != 1:
            raise TypeError(f"samples are taken by a slice, an array of indices or a mask (n,), got {shown(rows)}")
        return self._with_design(self.design.rows(np.asarray(rows)))

    def __repr__(self) -> str:
        return f"<RelationBlocks of shape {self.shape}, rows of {self.design.places.shape[1]} tables>"

    @classmethod
    def _with_design(cls, design: RelationDesign) -> RelationBlocks:
        blocks = object.__new__(cls)
        blocks.design = design
        return blocks

    def tocsr(self) -> Any:
        """Return the plain matrix (n, d), in CSR."""
        return self.design.matrix()


def _checked_rows(rows: Any, sizes: np.ndarray) -> np.ndarray:
    """Return the rows (n, K) of tables of these sizes as integers."""
    rows = as_numbers(rows, "rows")
    if rows.ndim != 2 or rows.shape[1] != len(sizes) or not len(rows):
        raise ValueError(f"rows must have shape (n, {len(sizes)}), a column for each table, got {rows.shape}")
    if rows.dtype.kind not in "iu":
        raise TypeError(f"rows must be integers, got dtype {rows.dtype}")
    outside = (rows < 0) | (rows >= sizes)
    if outside.any():
        i, k = np.argwhere(outside)[0]
        raise ValueError(f"rows[{i}, {k}] is {rows[i, k]}, but tables[{k}] has {sizes[k]} rows, numbered from 0")
    return rows.astype(np.int64, copy=False)
