"""Tables of every kind as columns of numbers and of categories: frames, arrays, records, dictionaries, single rows.

A number that is missing becomes NaN, a category that is missing None; categories are texts (:mod:`mopn.data.cells`).
Frames are read by narwhals, which knows pandas, polars and Arrow; arrays and dictionaries need NumPy alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.cells import (
    CATEGORIES,
    DATES,
    NUMBERS,
    ZONED_DATES,
    ReadColumn,
    as_cells,
    as_column,
    as_texts,
    read_column,
)
from mopn.data.rounding import INEXACT
from mopn.data.targets import category_order
from mopn.data.values import is_series
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.signals import signals_later

_SPARSE = "MultiOutputPNClassifier, MultiOutputFMClassifier and their regressors take sparse matrices"


@dataclass(frozen=True)
class Table:
    """Columns of one length n: numbers, float64 with NaN for missing ones, or categories, texts and None (n,)."""

    names: tuple[str, ...]  # "x0", "x1", ... for an array
    columns: tuple[np.ndarray, ...]
    kinds: tuple[str, ...]  # words of mopn.data.cells, such as "dates without a time zone"
    n: int
    named: bool  # whether the names are the caller's
    exact: tuple[np.ndarray | None, ...] = ()  # columns as they came, (n,), where numbers may have lost digits

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return self.n, len(self.columns)

    @property
    def stored_arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays whose entries tell one table from another."""
        return self.columns

    def exact_of(self, j: int) -> np.ndarray | None:
        """Return a column as it came, if its numbers may have lost digits."""
        return self.exact[j] if self.exact else None

    def rows(self, rows: np.ndarray) -> Table:
        """Return some rows."""
        exact = tuple(None if values is None else values[rows] for values in self.exact)
        return replace(self, columns=tuple(column[rows] for column in self.columns), exact=exact, n=len(rows))

    def present_rows(self, weights: np.ndarray | None) -> tuple[Table, np.ndarray, slice | np.ndarray]:
        """Return the rows of positive weight, their weights, which are 1 for None, and where these rows are."""
        if weights is None:
            return self, np.ones(self.n), slice(None)
        if weights.all():
            return self, weights, slice(None)
        present = np.flatnonzero(weights)
        return self.rows(present), weights[present], present


def read_table(X: Any, name: str = "X") -> Table:
    """Read a table: a frame, an array (n, c), a record array, or dictionaries.

    A dictionary has a sequence or a single value for every column; a sequence of dictionaries has a row in each. Raises
    ``TypeError`` or ``ValueError`` for all else, for two columns of one name, cells that hold several values, and
    columns of several lengths; ``ImportError`` for a frame, if narwhals is needed and not installed.
    """
    if isinstance(X, Table):
        return X
    if sparse.issparse(X):
        raise TypeError(f"{name} is a sparse matrix, and tables are dense: give {name}.toarray(); {_SPARSE}")
    if isinstance(X, Mapping):
        return _table_of_dict(X, name)
    fields = getattr(getattr(X, "dtype", None), "names", None)
    if fields:  # a record array
        return _table_of_dict({field: X[field] for field in fields}, name)
    if is_series(X):
        raise ValueError(
            f"{name} must be a table of shape (n, columns), got a Series: for a column give frame[['name']], for a row "
            "frame.iloc[[0]] or a dictionary"
        )
    if isinstance(X, Sequence) and len(X) and all(isinstance(row, Mapping) for row in X):
        keys = {key: None for row in X for key in row}
        return _table_of_dict({key: [row.get(key) for row in X] for key in keys}, name)
    if hasattr(type(X), "collect") or hasattr(type(X), "compute"):
        raise TypeError(
            f"{name} is a lazy frame; collect it, or give a frame of Dask to mopn.dask.fit or mopn.dask.predict"
        )
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        return _table_of_frame(X, name)
    return _table_of_array(X, name)


def row_of(X: Any, columns: Sequence[str], *, named: bool) -> Any:
    """Return a row in a list, a Series or a frame of pandas as a dictionary, which is quick to read.

    Anything else is returned as it is.
    """
    if named and hasattr(X, "iloc") and hasattr(X, "columns") and len(X) == 1:
        return _row_of_frame(X, columns)
    if is_series(X) and hasattr(X, "to_dict"):
        row = X.to_dict()
        if {str(key) for key in row} == set(columns):
            return row
        return X if named or len(row) != len(columns) else dict(zip(columns, row.values(), strict=True))
    if isinstance(X, list | tuple):
        cells = X[0] if len(X) == 1 and isinstance(X[0], list | tuple) else X
        if len(cells) == len(columns) and not any(map(_is_row, cells)):
            return dict(zip(columns, cells, strict=True))
    return X


def _row_of_frame(X: Any, columns: Sequence[str]) -> Any:
    """Return a frame of one row as a dictionary, if it has these columns, and no cells but numbers and texts."""
    names = X.columns.tolist()
    if len(names) != len(columns) or set(names) != set(columns):
        return X
    if any(hasattr(dtype, "fill_value") for dtype in X.dtypes.tolist()):  # a sparse column
        return X
    cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in X.iloc[0].tolist()]
    if any(isinstance(cell, float) and abs(cell) >= INEXACT for cell in cells):
        return X  # integers may have lost digits among floats
    are_plain = all(isinstance(cell, float | str) or type(cell) is int or cell is None for cell in cells)
    return dict(zip(names, cells, strict=True)) if are_plain else X


def _is_row(value: Any) -> bool:
    return not isinstance(value, (float, int, str, bytes)) and isinstance(value, Iterable)  # quickest first


def _table_of_dict(X: Mapping[Any, Any], name: str) -> Table:
    columns = [_column_of_values(column, f"column {key!r} of {name}") for key, column in X.items()]
    return _table(list(X), columns, name)


def _column_of_values(values: Any, of: str) -> ReadColumn:
    """Return a column that is a sequence of any type, or a single value."""
    if hasattr(values, "dtype") or hasattr(values, "type"):
        if hasattr(getattr(values, "dtype", None), "fill_value"):
            raise TypeError(f"{of} is sparse, and tables are dense: take its sparse.to_dense(); {_SPARSE}")
        if category_order(values) is not None:
            return as_column(as_texts(as_cells(values), of), CATEGORIES, of)
    return read_column(np.atleast_1d(as_cells(values)), of)


def _table_of_frame(X: Any, name: str) -> Table:
    if type(X).__name__ == "RecordBatch":
        with signals_later():
            import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]

        X = pa.Table.from_batches([X])
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    if any(isinstance(key, tuple) for key in names):
        raise ValueError(f"{name} has names of several levels, such as {shown(names[0])}; give each column one name")
    _check_names(names, name)
    if hasattr(X, "iloc"):
        columns = [_column_of_pandas(series, f"column {key!r} of {name}") for key, series in X.items()]
    else:
        wrapped = _narwhals().from_native(X, eager_only=True).iter_columns()
        columns = [
            _column_of_series(series, f"column {key!r} of {name}") for key, series in zip(names, wrapped, strict=True)
        ]
    return _table(names, columns, name, len(X))


def _narwhals() -> Any:
    try:
        with signals_later():
            import narwhals.stable.v2 as nw
    except ImportError:
        raise ImportError(
            "X is a frame, which needs narwhals: pip install narwhals; a dict of its columns needs nothing"
        ) from None
    return nw


def _column_of_pandas(series: Any, of: str) -> ReadColumn:
    """Return a column of a frame of pandas; types that NumPy has too are read without narwhals, which takes longer."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return read_column(series.to_numpy(), of)
    if dtype.name in ("str", "category") or hasattr(dtype, "fill_value"):
        return _column_of_values(series, of)
    return _column_of_series(_narwhals().from_native(series, series_only=True), of)


def _column_of_series(series: Any, of: str) -> ReadColumn:
    """Return a column of a frame of any library, as narwhals wraps it."""
    nw = _narwhals()
    dtype = series.dtype
    if dtype in (nw.Categorical, nw.Enum):
        return as_column(as_texts(series.to_list(), of), CATEGORIES, of)
    if dtype.is_numeric():
        numbers = series.cast(nw.Float64).fill_null(np.nan).to_numpy()
        return as_column(numbers, NUMBERS, of, _exact(series, numbers))
    if dtype == nw.Datetime and dtype.time_zone is not None:
        read = read_column(series.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy(), of)
        return read._replace(kind=ZONED_DATES) if read.kind == DATES else read
    if dtype.is_temporal() and dtype != nw.Time:
        return read_column(series.to_numpy(), of)
    return read_column(as_cells(series.to_list()), of)


def _exact(series: Any, numbers: np.ndarray) -> np.ndarray | None:
    """Return integers and decimals as Python's, if some of them may be other numbers in double precision."""
    largest = np.nanmax(np.abs(numbers), initial=0.0)
    is_lossy = series.dtype.is_integer() and largest >= INEXACT
    if series.dtype.is_decimal():
        scale = getattr(series.dtype, "scale", np.inf)  # old versions of narwhals do not know it
        is_lossy = largest * 10.0**scale >= 1e15  # up to 15 digits are exact
    return np.array(series.to_list(), object) if is_lossy else None


def _table_of_array(X: Any, name: str) -> Table:
    array = as_cells(X) if isinstance(X, Iterable) else np.asarray(X)
    if isinstance(X, str | bytes) or not array.ndim:
        raise ValueError(f"{name} must be a table, got {shown(X)}; a single row is a dictionary, a Series or a list")
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be a table of shape (n, columns), got shape {array.shape}. Reshape your data: "
            "X.reshape(-1, 1) has one column, X.reshape(1, -1) one row"
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}")
    if array.dtype.kind == "f":
        as_column(array.astype(np.float64, copy=False), NUMBERS, name)  # infinity is refused
    columns = [read_column(column, f"column {j} of {name}") for j, column in enumerate(array.T)]
    names = [f"x{j}" for j in range(len(columns))]
    return _joined(names, columns, len(array), named=False)


def _table(names: list[Any], columns: Sequence[ReadColumn], name: str, n: int = 0) -> Table:
    """Return the table of some columns with names; n rows if there are no columns."""
    _check_names(names, name)
    lengths = {len(column.values) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"the columns of {name} have different lengths: {sorted(lengths)}")
    return _joined(list(map(str, names)), columns, max(lengths, default=n), named=True)


def _joined(names: Sequence[str], columns: Sequence[ReadColumn], n: int, *, named: bool) -> Table:
    return Table(
        names=tuple(names),
        columns=tuple(column.values for column in columns),
        kinds=tuple(column.kind for column in columns),
        n=n,
        named=named,
        exact=tuple(column.exact for column in columns),
    )


def _check_names(names: list[Any], name: str) -> None:
    texts = [str(key) for key in names]
    if len(set(texts)) < len(texts):
        first = min(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"{name} has several columns of the name {first!r}; rename them, or drop all but one")
