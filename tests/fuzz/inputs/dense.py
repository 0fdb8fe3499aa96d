"""Dense X of other shapes and types, and in other storage."""

import decimal
import fractions
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tests.values_of_types import TYPES

Change = Callable[[np.random.Generator, Any], Any]


def dense(X: Any) -> np.ndarray:
    """Return X as an array."""
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


SHAPES: dict[str, Change] = {
    "a column": lambda rng, X: dense(X)[:, 0],
    "a row": lambda rng, X: dense(X)[0],
    "a number": lambda rng, X: 1.5,
    "three axes": lambda rng, X: dense(X)[:, :, None],
    "no rows": lambda rng, X: X[:0],
    "no columns": lambda rng, X: X[:, :0],
    "no rows or columns": lambda rng, X: np.zeros((0, 0)),
    "one row": lambda rng, X: X[:1],
    "two rows": lambda rng, X: X[:2],
    "one column": lambda rng, X: X[:, :1],
    "two columns": lambda rng, X: X[:, :2],
    "fewer rows": lambda rng, X: X[:-1],
    "more rows": lambda rng, X: np.vstack([dense(X), dense(X)[:1]]),
    "more columns": lambda rng, X: np.hstack([dense(X)] * 8),
    "transposed": lambda rng, X: X.T,
}


class _Duck:
    """Something that turns into an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.array, dtype=dtype)


class _Subclass(np.ndarray):
    """An array of another class."""


def _strided(X: np.ndarray) -> np.ndarray:
    large = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    large[::2, 1::3] = X
    return large[::2, 1::3]


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _memory_map(X: np.ndarray, mode: str) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        file.write(X.tobytes())
        file.flush()
        return np.memmap(file, dtype=X.dtype, mode=mode, shape=X.shape)


def _misaligned(X: np.ndarray) -> np.ndarray:
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(X.shape)
    view[...] = X
    return view


# Storage of the same numbers: results are equal to the last bit.
STORAGE: dict[str, Change] = {
    "Fortran order": lambda rng, X: np.asfortranarray(dense(X)),
    "strided": lambda rng, X: _strided(dense(X)),
    "negative strides": lambda rng, X: dense(X)[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda rng, X: _read_only(dense(X)),
    "memory map, read-only": lambda rng, X: _memory_map(dense(X), "r"),
    "memory map, copy on write": lambda rng, X: _memory_map(dense(X), "c"),
    "big-endian": lambda rng, X: dense(X).astype(">f8"),
    "misaligned": lambda rng, X: _misaligned(dense(X)),
    "array subclass": lambda rng, X: dense(X).view(_Subclass),
    "list": lambda rng, X: dense(X).tolist(),
    "list of arrays": lambda rng, X: list(dense(X)),
    "tuple of tuples": lambda rng, X: tuple(map(tuple, dense(X).tolist())),
    "object": lambda rng, X: dense(X).astype(object),
    "longdouble": lambda rng, X: dense(X).astype(np.longdouble),
    "DataFrame": lambda rng, X: pd.DataFrame(dense(X)),
    "DataFrame with an index": lambda rng, X: pd.DataFrame(dense(X), index=[f"row {i}" for i in range(X.shape[0])]),
    "DataFrame with names": lambda rng, X: pd.DataFrame(dense(X), columns=[f"x{j}" for j in range(X.shape[1])]),
    "something with __array__": lambda rng, X: _Duck(dense(X)),
}


_NAMES = "f2", "f4", "f8", "i1", "i2", "i8", "u1", "u8", "?", "c8", "c16", "M8[s]", "m8[s]", "S8", "U8", ">i4"


def _set(X: np.ndarray, dtype: Any, value: Any) -> np.ndarray:
    X = X.astype(dtype)
    X[0, 0] = value
    return X


def _of(kind: type) -> Change:
    return lambda rng, X: np.vectorize(kind, otypes=[object])(dense(X))


DTYPES: dict[str, Change] = {
    **{f"dtype {name}": lambda rng, X, name=name: np.round(3 * dense(X)).astype(name) for name in _NAMES},
    "digits": lambda rng, X: dense(X).astype(str),
    "words": lambda rng, X: np.full(X.shape, "word"),
    "an object among numbers": lambda rng, X: _set(dense(X), object, object()),
    "None among numbers": lambda rng, X: _set(dense(X), object, None),
    "a string among numbers": lambda rng, X: _set(dense(X), object, "word"),
    "a huge integer": lambda rng, X: _set(dense(X), object, 10**400),
    "a list among numbers": lambda rng, X: _set(dense(X), object, [1, 2]),
    "NaT": lambda rng, X: np.full(X.shape, np.datetime64("NaT")),
    "fractions": _of(fractions.Fraction),
    "decimals": _of(decimal.Decimal),
    "complex numbers of real value": lambda rng, X: dense(X) + 0j,
    "structured": lambda rng, X: np.zeros(X.shape[0], dtype=[("a", "f8"), ("b", "f8")]),
    "masked": lambda rng, X: np.ma.masked_array(dense(X), mask=dense(X) >= dense(X).max()),
    "masked nowhere": lambda rng, X: np.ma.masked_array(dense(X)),
    "ragged": lambda rng, X: [*dense(X).tolist(), [1.0] * (X.shape[1] + 1)],
    "generator": lambda rng, X: (row for row in dense(X)),
    "dictionary": lambda rng, X: dict(enumerate(dense(X))),
    "set": lambda rng, X: set(dense(X)[:, 0].tolist()),
    "None": lambda rng, X: None,
    "a string": lambda rng, X: "X",
    "bytes": lambda rng, X: b"X",
    "a class": lambda rng, X: np.ndarray,
    "a function": lambda rng, X: len,
    "DataFrame of categories": lambda rng, X: pd.DataFrame(np.round(dense(X))).astype("category"),
    "DataFrame of strings": lambda rng, X: pd.DataFrame(dense(X)).astype(str),
    "DataFrame with pandas' missing values": lambda rng, X: pd.DataFrame(_set(dense(X), object, pd.NA)),
    "DataFrame of nullable floats": lambda rng, X: pd.DataFrame(dense(X)).astype("Float64"),
    "DataFrame of dates": lambda rng, X: pd.DataFrame(dense(X)).apply(pd.to_datetime),
    "DataFrame with mixed names": lambda rng, X: pd.DataFrame(dense(X), columns=["a", *range(1, X.shape[1])]),
    "Series": lambda rng, X: pd.Series(dense(X)[:, 0]),
    "records": lambda rng, X: np.rec.fromarrays(dense(X).T),
}


def _with_column(make: Callable[[int], Any]) -> Change:
    """Return a change of X to a frame whose first column is of a type."""

    def change(rng: np.random.Generator, X: Any) -> pd.DataFrame:
        frame, values = pd.DataFrame(dense(X)).rename(columns=str), make(X.shape[0])
        plain = values.to_pylist() if hasattr(values, "to_pylist") else values
        return frame.assign(**{"0": plain if isinstance(plain, pd.Series | np.ndarray) else list(plain)})

    return change


# Columns of the types that the table of types has.
COLUMNS: dict[str, Change] = {
    f"{kind}: {storage}": _with_column(make) for kind, made in TYPES.items() for storage, make in made.items()
}
