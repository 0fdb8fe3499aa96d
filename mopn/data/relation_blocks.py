"""Relation blocks: the columns of users, items and others as tables that are stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.designs import Design, SparseDesign, stored_design
from mopn.data.relation_design import RelationDesign
from mopn.data.validation import as_numbers
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import doors


@doors
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
        parts = [_table(table, f"tables[{k}]") for k, table in enumerate(tables)]
        sizes = np.array([part.shape for part in parts])
        ends = np.cumsum(sizes, axis=0)
        places = _checked(rows, sizes[:, 0]) + ends[:, 0] - sizes[:, 0]
        stored = SparseDesign(sparse.block_diag(parts, format="csr"))
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
            return self._of(self.design.rows(rows))
        if not (isinstance(rows, list) or hasattr(rows, "__array__")) or np.ndim(rows) != 1:
            raise TypeError(f"samples are taken by a slice, an array of indices or a mask (n,), got {shown(rows)}")
        return self._of(self.design.rows(np.asarray(rows)))

    def __repr__(self) -> str:
        return f"<RelationBlocks of shape {self.shape}, rows of {self.design.places.shape[1]} tables>"

    @classmethod
    def _of(cls, design: RelationDesign) -> RelationBlocks:
        blocks = object.__new__(cls)
        blocks.design = design
        return blocks

    def tocsr(self) -> Any:
        """Return the plain matrix (n, d), in CSR."""
        return self.design.matrix()


def design_of(X: Any) -> Design:
    """Validate the user's X and wrap it."""
    return X.design if isinstance(X, RelationBlocks) else stored_design(X)


def _table(table: Any, name: str) -> Any:
    try:
        return stored_design(table).matrix().astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _checked(rows: Any, sizes: np.ndarray) -> np.ndarray:
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
