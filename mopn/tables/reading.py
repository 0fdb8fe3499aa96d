"""Tables of every kind as columns of numbers and of levels: frames, arrays, dictionaries, single rows.

A number that is missing becomes NaN, a level that is missing None; levels are texts. Frames are read by narwhals, which
knows those of pandas, polars and Arrow; arrays and dictionaries need NumPy alone. Columns that come sparse, in a matrix
of SciPy or a frame of pandas, stay so.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.sparse_structure import compressed
from mopn.solvers.tools.checks import shown
from mopn.tables.sparse_column import SparseColumn

__all__ = ["Table", "read_table"]

# Types of a cell that holds several values.
_NESTED = (list, tuple, dict, set, np.ndarray)
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True)
class Table:
    """Columns of one length n.

    Attributes
    ----------
    names : tuple of str
        Those of a frame or a dictionary; of an array "x0", "x1", ....
    columns : tuple of ndarray of shape (n,) or SparseColumn
        Numbers, float64 with NaN where they are missing; or levels, texts with None where they are missing.
    n : int
        Number of rows.
    named : bool
        Whether the names are the caller's.
    categories : frozenset of int, default empty
        The columns whose type says that they are levels; other texts may be numbers.
    """

    names: tuple[str, ...]
    columns: tuple[Any, ...]
    n: int
    named: bool
    categories: frozenset[int] = frozenset()

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return self.n, len(self.columns)

    @property
    def stored_arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays whose entries tell one table from another."""
        parts = ((x.rows, x.values) if isinstance(x, SparseColumn) else (x,) for x in self.columns)
        return tuple(array for part in parts for array in part)

    def rows(self, rows: np.ndarray) -> Table:
        """Return some rows."""
        return replace(self, columns=tuple(column[rows] for column in self.columns), n=len(rows))

    def dense(self) -> Table:
        """Return the same table, whose columns are arrays."""
        return replace(self, columns=tuple(map(np.asarray, self.columns)))


def read_table(X: Any, name: str = "X") -> Table:
    """Read a table.

    Parameters
    ----------
    X : DataFrame, array-like or sparse matrix of shape (n, c), or dict
        A dictionary has a sequence or a single value for every column; a sequence of dictionaries has a row in each.
    name : str, default "X"
        For messages.

    Raises
    ------
    TypeError, ValueError
        If it is no table: of another number of axes, with two columns of one name, cells that hold several values, or
        columns of several lengths.
    ImportError
        For a frame, if narwhals is not installed.
    """
    if isinstance(X, Table):
        return X
    if sparse.issparse(X):
        return _of_sparse(X, name)
    if isinstance(X, Mapping):
        return _of_dict(X, name)
    if isinstance(X, Sequence) and len(X) and all(isinstance(row, Mapping) for row in X):
        keys = {key: None for row in X for key in row}
        return _of_dict({key: [row.get(key) for row in X] for key in keys}, name)
    if hasattr(type(X), "collect") or hasattr(type(X), "compute"):
        raise TypeError(
            f"{name} is a lazy frame; collect it, or give a frame of Dask to mopn.dask.fit or mopn.dask.predict"
        )
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        return _of_frame(X, name)
    return _of_array(X, name)


def _of_dict(X: Mapping[Any, Any], name: str) -> Table:
    values = [np.atleast_1d(_objects(column)) for column in X.values()]
    return _table(list(X), [_column(v, f"column {key!r} of {name}") for key, v in zip(X, values, strict=True)], name)


def _of_frame(X: Any, name: str) -> Table:
    try:
        import narwhals.stable.v2 as nw
    except ImportError:
        raise ImportError(
            f"{name} is a frame, which needs narwhals: pip install narwhals; a dict of its columns needs nothing"
        ) from None
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    if any(isinstance(key, tuple) for key in names):
        raise ValueError(f"{name} has names of several levels, such as {shown(names[0])}; give each column one name")
    _check_names(names, name)
    texts = all(isinstance(key, str) for key in names)
    frame = nw.from_native(X if texts else X.rename(columns=str), eager_only=True)
    columns: list[np.ndarray | SparseColumn] = []
    categories = frozenset(j for j, dtype in enumerate(frame.schema.dtypes()) if dtype in (nw.Categorical, nw.Enum))
    for j, key in enumerate(frame.columns):
        series, of = frame[key], f"column {key!r} of {name}"
        stored = _of_pandas(series.to_native(), of)
        if stored is not None:
            columns.append(stored)
        elif j in categories:
            columns.append(_levels(series.to_list(), of))
        elif series.dtype.is_numeric():
            columns.append(_finite(series.cast(nw.Float64).fill_null(np.nan).to_numpy(), of))
        elif series.dtype.is_temporal() and series.dtype != nw.Time:
            columns.append(_days(series.to_numpy(), of))
        else:
            columns.append(_column(_objects(series.to_list()), of))
    return replace(_table(names, columns, name, len(frame)), categories=categories)


def _of_pandas(series: Any, of: str) -> SparseColumn | None:
    """Return a column of pandas whose zeros are not stored; None for any other."""
    stored: Any = getattr(series, "array", None)
    if not hasattr(stored, "sp_values") or stored.sp_values.dtype.kind not in "fiu" or stored.fill_value != 0:
        return None
    rows, values = stored.sp_index.to_int_index().indices, stored.sp_values.astype(np.float64)
    return SparseColumn(rows, _finite(values, of), len(stored))


def _of_sparse(X: Any, name: str) -> Table:
    _check_array(X, name)
    X = compressed(X, name).tocsc()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = _finite(X.data.astype(np.float64, copy=False), name)
    parts = [slice(*ends) for ends in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    columns = [SparseColumn(X.indices[part], values[part], X.shape[0]) for part in parts]
    return Table(_numbered(len(columns)), tuple(columns), X.shape[0], named=False)


def _of_array(X: Any, name: str) -> Table:
    array = _objects(X) if isinstance(X, Iterable) else np.asarray(X)
    _check_array(array, name)
    if array.dtype.kind in "fiu":
        columns = [*_finite(array.astype(np.float64, copy=False), name).T]
    else:
        columns = [_column(column, f"column {j} of {name}") for j, column in enumerate(array.T)]
    return Table(_numbered(len(columns)), tuple(columns), len(array), named=False)


def _check_array(X: Any, name: str) -> None:
    if X.ndim != 2:
        raise ValueError(
            f"{name} must be a table of shape (n, columns), got shape {X.shape}. Reshape your data: "
            "X.reshape(-1, 1) has one column, X.reshape(1, -1) one row"
        )
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {X.dtype}")


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(count))


def _table(names: list[Any], columns: Sequence[np.ndarray | SparseColumn], name: str, n: int = 0) -> Table:
    _check_names(names, name)
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"the columns of {name} have different lengths: {sorted(lengths)}")
    return Table(tuple(map(str, names)), tuple(columns), max(lengths, default=n), named=True)


def _check_names(names: list[Any], name: str) -> None:
    texts = [str(key) for key in names]
    twice = sorted({text for text in texts if texts.count(text) > 1}) if len(set(texts)) < len(texts) else []
    if twice:
        raise ValueError(f"{name} has several columns of the name {twice[0]!r}; rename them, or drop all but one")


def _objects(values: Any) -> np.ndarray:
    """Return values as an array, of Python's objects unless they are numbers, and without reading texts as numbers."""
    if isinstance(values, np.ma.MaskedArray):
        is_time = values.dtype.kind in "mM"
        cells: np.ndarray = values.data.copy() if is_time else values.data.astype(object)
        cells[np.ma.getmaskarray(values)] = "NaT" if is_time else None
        return cells
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, str) or not isinstance(values, Iterable):
        values = [values]
    values = list(values)
    rows = bool(values) and all(isinstance(value, (list, tuple, np.ndarray)) for value in values)
    if rows and len({len(value) for value in values}) == 1:
        array = np.empty((len(values), len(values[0])), object)
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                array[i, j] = value
        return array
    flat = np.empty(len(values), object)
    flat[:] = values
    return flat


# -- one column --------------------------------------------------------------------------------------------------------


def _column(values: np.ndarray, of: str) -> np.ndarray:
    """Return numbers, or levels as texts."""
    kind = values.dtype.kind
    if values.ndim != 1:
        raise ValueError(f"{of} must have one value a row, got shape {values.shape}; make several columns of it")
    if kind in "fiu":
        return _finite(values.astype(np.float64), of)
    if kind in "mM":
        return _days(values, of)
    cells = values.tolist()
    missing = np.array([cell is None or _is_nan(cell) for cell in cells], bool)
    present = [cell for cell, gone in zip(cells, missing, strict=True) if not gone]
    numbers = [isinstance(cell, (Real, Decimal)) and not isinstance(cell, (bool, np.bool_)) for cell in present]
    if all(numbers):
        return _finite(_floats([np.nan if gone else cell for cell, gone in zip(cells, missing, strict=True)], of), of)
    if all(isinstance(cell, (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)) for cell in present):
        return _days(np.array([None if gone else cell for cell, gone in zip(cells, missing, strict=True)]), of)
    return _levels(cells, of)


def _levels(cells: list[Any], of: str) -> np.ndarray:
    return np.array([None if cell is None or _is_nan(cell) else _text(cell, of) for cell in cells], object)


def _floats(cells: list[Any], of: str) -> np.ndarray:
    try:
        return np.array(cells, float)
    except OverflowError as error:
        raise ValueError(f"{of} has a number that is too large for floating point: {error}") from None


def _finite(values: np.ndarray, of: str) -> np.ndarray:
    if np.isinf(values).any():
        raise ValueError(f"{of} contains infinity; a number that is unknown is NaN")
    return values


def _is_nan(cell: Any) -> bool:
    """Whether a cell is NaN, NaT or NA, which are not equal to themselves."""
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):  # pandas' NA refuses to be a truth
        return type(cell).__name__ == "NAType"


def _days(values: np.ndarray, of: str) -> np.ndarray:
    """Return dates as days since 1970, and differences of dates as days."""
    try:
        kind = "m" if values.dtype.kind == "m" or any(isinstance(v, datetime.timedelta) for v in values.flat) else "M"
        exact = values.astype(f"{kind}8[us]")
    except (TypeError, ValueError) as error:
        raise TypeError(f"{of} has dates that NumPy does not read: {error}; give numbers") from None
    days = (exact - (np.datetime64(0, "us") if kind == "M" else np.timedelta64(0, "us"))) / _DAY
    return np.where(np.isnat(exact), np.nan, days)


def _text(cell: Any, of: str) -> str:
    """Return the text of a level; 3.0 is 3, as columns of integers become floats where one is missing."""
    if isinstance(cell, bytes):
        return cell.decode("latin-1")
    if isinstance(cell, complex):
        raise TypeError(f"Complex data not supported: {of} holds {cell!r}")
    if isinstance(cell, _NESTED) or type(cell) is object:
        raise TypeError(
            f"argument must be a string or a number: {of} holds {shown(cell)}, an object of type "
            f"{type(cell).__name__}; make numbers, texts or several columns of it"
        )
    cell = cell.item() if isinstance(cell, np.generic) else cell
    whole = isinstance(cell, Real) and not isinstance(cell, bool) and cell == cell // 1
    return str(int(cell)) if whole else str(cell)
