"""Tables of every kind as columns of numbers and of levels: frames, arrays, records, dictionaries, single rows.

A number that is missing becomes NaN, a level that is missing None; levels are texts (:mod:`mopn.data.values`). Frames
are read by narwhals, which knows those of pandas, polars and Arrow; arrays and dictionaries need NumPy alone. Columns
that come sparse, in a matrix of SciPy or a frame of pandas, stay so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.sparse_structure import compressed
from mopn.data.values import (
    CATEGORIES,
    DATES,
    NUMBERS,
    ZONED_DATES,
    as_cells,
    as_column,
    as_texts,
    is_series,
    read_column,
)
from mopn.solvers.tools.checks import shown
from mopn.tables.sparse_column import SparseColumn

__all__ = ["Table", "read_table", "row_of"]

# A column, and what it holds.
_Read = tuple[Any, str]


@dataclass(frozen=True)
class Table:
    """Columns of one length n.

    Attributes
    ----------
    names : tuple of str
        Those of a frame or a dictionary; of an array "x0", "x1", ....
    columns : tuple of ndarray of shape (n,) or SparseColumn
        Numbers, float64 with NaN where they are missing; or levels, texts with None where they are missing.
    kinds : tuple of str
        What each column holds: one of the words of :mod:`mopn.data.values`, such as "dates without a time zone".
    n : int
        Number of rows.
    named : bool
        Whether the names are the caller's.
    """

    names: tuple[str, ...]
    columns: tuple[Any, ...]
    kinds: tuple[str, ...]
    n: int
    named: bool

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
    X : DataFrame, array-like or sparse matrix of shape (n, c), record array, or dict
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
    fields = getattr(getattr(X, "dtype", None), "names", None)
    if fields:  # of a record array
        return _of_dict({field: X[field] for field in fields}, name)
    if is_series(X):
        raise ValueError(
            f"{name} must be a table of shape (n, columns), got a Series: for a column give frame[['name']], for a row "
            "frame.iloc[[0]] or a dictionary"
        )
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


def row_of(X: Any, columns: Sequence[str], *, named: bool) -> Any:
    """Return a table of the row that a list or a Series of a value for each column is, and anything else as it is."""
    if is_series(X) and hasattr(X, "to_dict"):
        row = X.to_dict()
        if {str(key) for key in row} == set(columns):
            return row
        return X if named or len(row) != len(columns) else [list(row.values())]
    if isinstance(X, list | tuple) and len(X) == len(columns) and not any(map(_is_row, X)):
        return [list(X)]
    return X


def _is_row(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _of_dict(X: Mapping[Any, Any], name: str) -> Table:
    values = [np.atleast_1d(as_cells(column)) for column in X.values()]
    return _table(
        list(X), [read_column(v, f"column {key!r} of {name}") for key, v in zip(X, values, strict=True)], name
    )


def _of_frame(X: Any, name: str) -> Table:
    try:
        import narwhals.stable.v2 as nw
    except ImportError:
        raise ImportError(
            f"{name} is a frame, which needs narwhals: pip install narwhals; a dict of its columns needs nothing"
        ) from None
    if type(X).__name__ == "RecordBatch":
        import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]

        X = pa.Table.from_batches([X])
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    if any(isinstance(key, tuple) for key in names):
        raise ValueError(f"{name} has names of several levels, such as {shown(names[0])}; give each column one name")
    _check_names(names, name)
    texts = all(isinstance(key, str) for key in names)
    frame = nw.from_native(X if texts else X.rename(columns=str), eager_only=True)
    columns = [_of_series(frame[key], f"column {key!r} of {name}") for key in frame.columns]
    return _table(names, columns, name, len(frame))


def _of_series(series: Any, of: str) -> _Read:
    """Return a column of a frame."""
    import narwhals.stable.v2 as nw

    dtype, stored = series.dtype, _of_pandas(series.to_native(), of)
    if stored is not None:
        return stored, NUMBERS
    if dtype in (nw.Categorical, nw.Enum):
        return as_column(as_texts(series.to_list(), of), CATEGORIES, of)
    if dtype.is_numeric():
        return as_column(series.cast(nw.Float64).fill_null(np.nan).to_numpy(), NUMBERS, of)
    if dtype == nw.Datetime and dtype.time_zone is not None:
        days, kind = read_column(series.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy(), of)
        return days, ZONED_DATES if kind == DATES else kind
    if dtype.is_temporal() and dtype != nw.Time:
        return read_column(series.to_numpy(), of)
    return read_column(as_cells(series.to_list()), of)


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
    return Table(_numbered(len(columns)), tuple(columns), (NUMBERS,) * len(columns), X.shape[0], named=False)


def _of_array(X: Any, name: str) -> Table:
    array = as_cells(X) if isinstance(X, Iterable) else np.asarray(X)
    _check_array(array, name)
    if array.dtype.kind in "fiu":
        array = _finite(array.astype(np.float64, copy=False), name)
    columns, kinds = _unzipped([read_column(column, f"column {j} of {name}") for j, column in enumerate(array.T)])
    return Table(_numbered(len(columns)), columns, kinds, len(array), named=False)


def _finite(values: np.ndarray, of: str) -> np.ndarray:
    return as_column(values, NUMBERS, of)[0]


def _unzipped(columns: Sequence[_Read]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    return tuple(column for column, _ in columns), tuple(kind for _, kind in columns)


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


def _table(names: list[Any], read: Sequence[_Read], name: str, n: int = 0) -> Table:
    _check_names(names, name)
    columns, kinds = _unzipped(read)
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"the columns of {name} have different lengths: {sorted(lengths)}")
    return Table(tuple(map(str, names)), columns, kinds, max(lengths, default=n), named=True)


def _check_names(names: list[Any], name: str) -> None:
    texts = [str(key) for key in names]
    twice = sorted({text for text in texts if texts.count(text) > 1}) if len(set(texts)) < len(texts) else []
    if twice:
        raise ValueError(f"{name} has several columns of the name {twice[0]!r}; rename them, or drop all but one")
