"""Labels and targets of all kinds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tests.values_of_types import TYPES


def _put(y: Any, value: Any, dtype: Any = object) -> np.ndarray:
    y = np.atleast_1d(np.array(y, dtype=dtype))
    y[0] = value
    return y


def _objects(items: list[Any]) -> np.ndarray:
    y = np.empty(len(items), dtype=object)
    y[:] = items
    return y


def _codes(y: Any) -> np.ndarray:
    return np.unique(np.asarray(y), return_inverse=True)[1].reshape(np.shape(y))


def _flat(y: Any) -> np.ndarray:
    """Return codes (n,) of three or two classes."""
    codes = _codes(y)
    return (codes if codes.ndim == 1 else codes[:, 0]) % 3


def _indicator(y: Any) -> np.ndarray:
    return np.eye(3, dtype=int)[_flat(y)]


TARGETS: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    # Labels.
    "strings": lambda rng, y: np.array(["red", "green", "blue"])[_flat(y)],
    "strings as objects": lambda rng, y: np.array(["red", "green", "blue"], dtype=object)[_flat(y)],
    "unicode": lambda rng, y: np.array(["é", "日本", ""])[_flat(y)],
    "strings with a zero byte": lambda rng, y: np.array(["a\0", "b", "c"], dtype=object)[_flat(y)],
    "bytes": lambda rng, y: np.array([b"red", b"green", b"blue"])[_flat(y)],
    "bool": lambda rng, y: _flat(y) > 0,
    "uint8": lambda rng, y: _flat(y).astype(np.uint8),
    "integers": lambda rng, y: _flat(y),
    "negative integers": lambda rng, y: -5 * _flat(y),
    "-1 and 1": lambda rng, y: np.where(_flat(y) > 0, 1, -1),
    "0 and 1": lambda rng, y: np.where(_flat(y) > 0, 1, 0),
    "large integers": lambda rng, y: _flat(y) + 2**62,
    "huge integers": lambda rng, y: _put(_flat(y), 10**400),
    "halves": lambda rng, y: 0.5 * _flat(y),
    "float16": lambda rng, y: _flat(y).astype(np.float16),
    "longdouble": lambda rng, y: _flat(y).astype(np.longdouble),
    "big-endian": lambda rng, y: _flat(y).astype(">i8"),
    "a label per sample": lambda rng, y: np.arange(len(y)),
    "a string per sample": lambda rng, y: np.arange(len(y)).astype(str),
    "one label": lambda rng, y: np.zeros(len(y), dtype=int),
    "one string": lambda rng, y: np.full(len(y), "red"),
    "two labels": lambda rng, y: _flat(y) % 2,
    "four labels": lambda rng, y: np.arange(len(y)) % 4,
    "one sample of a label": lambda rng, y: (np.arange(len(y)) == 0).astype(int),
    "dates": lambda rng, y: np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[D]")[_flat(y)],
    "time differences": lambda rng, y: _flat(y).astype("m8[D]"),
    "NaT": lambda rng, y: _put(np.datetime64("2020-01-01") + _flat(y), np.datetime64("NaT"), "M8[D]"),
    "tuples": lambda rng, y: _objects([(int(label), "a") for label in _flat(y)]),
    "lists": lambda rng, y: _objects([[int(label)] for label in _flat(y)]),
    "sets": lambda rng, y: _objects([{int(label)} for label in _flat(y)]),
    "mixed types": lambda rng, y: np.array([1, "a", 2.5], dtype=object)[_flat(y)],
    "bool and strings": lambda rng, y: np.array([True, "a", False], dtype=object)[_flat(y)],
    "unhashable": lambda rng, y: _objects([{"a": int(label)} for label in _flat(y)]),
    "fractions of objects": lambda rng, y: np.array([object(), object(), object()], dtype=object)[_flat(y)],
    "complex": lambda rng, y: _flat(y) + 1j,
    # Missing and hard numbers.
    "None": lambda rng, y: _put(y, None) if np.ndim(y) == 1 else None,
    "None among strings": lambda rng, y: _put(np.array(["red", "green", "blue"])[_flat(y)], None),
    "pandas' missing value": lambda rng, y: _put(y, pd.NA) if np.ndim(y) == 1 else pd.NA,
    "a NaN": lambda rng, y: _put(y, np.nan, float),
    "an infinity": lambda rng, y: _put(y, np.inf, float),
    "NaN alone": lambda rng, y: np.full(np.shape(y), np.nan),
    **{
        f"a target {value:g}": lambda rng, y, value=value: _put(y, value, float)
        for value in (1e10, 1e100, 1e155, 1e300)
    },
    **{
        f"all times {factor:g}": lambda rng, y, factor=factor: np.asarray(y, dtype=float) * factor
        for factor in (1e-300, 1e-12, 1e12, 1e80, 1e150, 1e300)
    },
    "zeros": lambda rng, y: np.zeros(np.shape(y)),
    "constant": lambda rng, y: np.full(np.shape(y), 7.25),
    "real numbers": lambda rng, y: rng.standard_normal(len(y)),
    "large mean": lambda rng, y: 1e9 + rng.standard_normal(len(y)),
    # Shapes.
    "a column": lambda rng, y: np.reshape(_flat(y), (-1, 1)),
    "a row": lambda rng, y: np.reshape(_flat(y), (1, -1)),
    "two columns": lambda rng, y: np.column_stack([_flat(y), _flat(y)[::-1]]),
    "indicator": lambda rng, y: _indicator(y),
    "several labels": lambda rng, y: (rng.uniform(size=(len(y), 3)) > 0.5).astype(int),
    "no labels": lambda rng, y: np.zeros((len(y), 3), dtype=int),
    "columns of real numbers": lambda rng, y: rng.standard_normal((len(y), 3)),
    "columns of signs": lambda rng, y: np.sign(rng.standard_normal((len(y), 2))),
    "no columns": lambda rng, y: np.zeros((len(y), 0)),
    "three axes": lambda rng, y: np.zeros((len(y), 2, 2)),
    "empty": lambda rng, y: np.zeros(0),
    "shorter": lambda rng, y: y[:-1],
    "longer": lambda rng, y: np.concatenate([y, y[:1]]),
    "one target": lambda rng, y: y[:1],
    "a number": lambda rng, y: 1.0,
    "a string": lambda rng, y: "y",
    "no y": lambda rng, y: None,
    # Containers.
    "list": lambda rng, y: np.asarray(y).tolist(),
    "tuple": lambda rng, y: tuple(np.asarray(y).tolist()),
    "ragged": lambda rng, y: [[1] * (1 + i % 3) for i in range(len(y))],
    "ragged labels": lambda rng, y: [["a", "b"][: 1 + i % 2] for i in range(len(y))],
    "digits": lambda rng, y: np.asarray(y).astype(str),
    "digits as objects": lambda rng, y: np.asarray(y).astype(str).astype(object),
    "objects": lambda rng, y: np.asarray(y).astype(object),
    "read-only": lambda rng, y: _read_only(y),
    "strided": lambda rng, y: np.repeat(y, 2, axis=0)[::2],
    "Series": lambda rng, y: pd.Series(np.asarray(y).tolist(), index=np.arange(len(y))[::-1]),
    "Series of categories": lambda rng, y: pd.Series(pd.Categorical.from_codes(_flat(y), ["red", "green", "blue"])),
    "Series of nullable integers": lambda rng, y: pd.Series(_flat(y), dtype="Int64"),
    "Series of strings": lambda rng, y: pd.Series(np.array(["red", "green", "blue"])[_flat(y)], dtype="string"),
    "DataFrame": lambda rng, y: pd.DataFrame({"a": _flat(y)}),
    "sparse": lambda rng, y: sparse.csr_array(_indicator(y)),
    "sparse column": lambda rng, y: sparse.csr_array(_flat(y)[:, None]),
    "masked": lambda rng, y: np.ma.masked_array(
        y, mask=np.zeros(np.shape(y), bool) | (np.arange(len(y)) == 0).reshape((-1,) + (1,) * (np.ndim(y) - 1))
    ),
    "a generator": lambda rng, y: (label for label in y),
    "a set": lambda rng, y: set(_flat(y).tolist()),
    "a dictionary": lambda rng, y: dict(enumerate(_flat(y))),
}


# Of the table of types.
TARGETS |= {
    f"{kind}: {storage}": lambda rng, y, make=make: make(len(y))
    for kind, made in TYPES.items()
    for storage, make in made.items()
}


def _read_only(y: Any) -> np.ndarray:
    y = np.array(y)
    y.flags.writeable = False
    return y
