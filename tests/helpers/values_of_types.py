"""Values of every type that docs/tables.md has a row for, in every storage: two different values by turns."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pyarrow

_UTC = datetime.UTC
_DATES = [datetime.datetime(2020, 1, 1, 6), datetime.datetime(2020, 3, 1, 18)]
_ZONED = [date.replace(tzinfo=_UTC) for date in _DATES]
_ORDER = pd.CategoricalDtype(["low", "high"], ordered=True)


def _turns(values, n):
    """Return n values, by turns."""
    return [values[i % 2] for i in range(n)]


def _objects(cells):
    array = np.empty(len(cells), object)
    array[:] = cells
    return array


def _lists(first, second):
    return {"list": lambda n: _turns([first, second], n), "objects": lambda n: _objects(_turns([first, second], n))}


TYPES = {
    "integer, also nullable (`Int64`, Arrow, polars)": {
        "list": lambda n: _turns([3, 7], n),
        "array": lambda n: np.array(_turns([3, 7], n)),
        "Int64": lambda n: pd.Series(_turns([3, 7], n), dtype="Int64"),
        "pandas, of Arrow": lambda n: pd.Series(_turns([3, 7], n), dtype="int64[pyarrow]"),
        "Arrow": lambda n: pyarrow.array(_turns([3, 7], n)),
        "polars": lambda n: polars.Series(_turns([3, 7], n)),
    },
    "number with a fraction, also nullable": {
        "array": lambda n: np.array(_turns([0.5, 2.25], n)),
        "float32": lambda n: np.array(_turns([0.5, 2.25], n), np.float32),
        "Float64": lambda n: pd.Series(_turns([0.5, 2.25], n), dtype="Float64"),
    },
    "boolean, also nullable": {
        "list": lambda n: _turns([True, False], n),
        "array": lambda n: np.array(_turns([True, False], n)),
        "boolean": lambda n: pd.Series(_turns([True, False], n), dtype="boolean"),
        "pandas, of Arrow": lambda n: pd.Series(_turns([True, False], n), dtype="bool[pyarrow]"),
        "polars": lambda n: polars.Series(_turns([True, False], n)),
    },
    "`Decimal`": _lists(Decimal("0.5"), Decimal(3)),
    "text": {
        **_lists("é", "日本"),
        "array": lambda n: np.array(_turns(["é", "日本"], n)),
        "string": lambda n: pd.Series(_turns(["é", "日本"], n), dtype="string"),
        "Arrow": lambda n: pyarrow.array(_turns(["é", "日本"], n)),
    },
    "text that ends with a NUL character": _lists("a", "a\0"),
    "bytes": _lists("Zürich".encode(), b"Bern"),
    "category": {
        "pandas": lambda n: pd.Series(_turns(["low", "high"], n), dtype="category"),
        "polars": lambda n: polars.Series(_turns(["low", "high"], n), dtype=polars.Categorical),
        "Arrow": lambda n: pyarrow.array(_turns(["low", "high"], n)).dictionary_encode(),
    },
    "ordered category": {
        "pandas": lambda n: pd.Series(_turns(["low", "high"], n)).astype(_ORDER),
        "polars": lambda n: polars.Series(_turns(["low", "high"], n), dtype=polars.Enum(["low", "high"])),
    },
    "date, with or without a time": {
        **_lists(*_DATES),
        "days": lambda n: _turns([datetime.date(2020, 1, 1), datetime.date(2020, 3, 1)], n),
        "datetime64": lambda n: np.array(_turns(_DATES, n), "M8[s]"),
        "pandas": lambda n: pd.Series(_turns(_DATES, n)),
        "polars": lambda n: polars.Series(_turns(_DATES, n)),
    },
    "date with a time zone": {
        **_lists(*_ZONED),
        "pandas": lambda n: pd.Series(pd.to_datetime(_turns(_ZONED, n)).tz_convert("Europe/Zurich")),
    },
    "`Period` of pandas": {
        "pandas": lambda n: pd.Series(_turns(list(pd.period_range("2020-01", periods=2, freq="M")), n)),
        **_lists(*pd.period_range("2020-01", periods=2, freq="M")),
    },
    "duration": {
        **_lists(datetime.timedelta(hours=6), datetime.timedelta(2)),
        "timedelta64": lambda n: np.array(_turns([3, 5], n), "m8[h]"),
        "pandas": lambda n: pd.Series(pd.to_timedelta(_turns([3, 5], n), unit="h")),
    },
    "time of day": _lists(datetime.time(1, 30), datetime.time(12)),
    "missing (`None`, NaN, NA, NaT)": {
        "None": lambda n: _turns([1.0, None], n),
        "NaN": lambda n: np.array(_turns([1.0, np.nan], n)),
        "NA": lambda n: pd.Series(_turns([1.0, None], n), dtype="Float64"),
        "NA among objects": lambda n: _objects(_turns([1.0, pd.NA], n)),
        "None among texts": lambda n: _turns(["a", None], n),
    },
    "nothing but missing values": {
        "None": lambda n: [None] * n,
        "NaN": lambda n: np.full(n, np.nan),
        "NaT": lambda n: np.full(n, "NaT", "M8[s]"),
        "category": lambda n: pd.Series([None] * n, dtype=_ORDER),
    },
    "infinity": {"array": lambda n: np.array(_turns([1.0, np.inf], n)), "list": lambda n: _turns([1.0, -np.inf], n)},
    "complex number": {"array": lambda n: np.array(_turns([1.0, 1j], n)), "list": lambda n: _turns([1.0, 1j], n)},
    "list, dictionary or set": {
        "lists": lambda n: _objects(_turns([[1, 2], [1]], n)),
        "dictionaries": lambda n: _objects(_turns([{"a": 1}, {}], n)),
        "sets": lambda n: _objects(_turns([{1}, {2}], n)),
    },
}
