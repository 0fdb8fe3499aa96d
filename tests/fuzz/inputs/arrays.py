"""Odd arrays, from valid ones of one or two axes: samples, targets, weights, parts of results, and options."""

import decimal
import fractions
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

Change = Callable[[np.random.Generator, Any], Any]


def dense(a: Any) -> np.ndarray:
    """Return an array, of sparse samples too."""
    return a.toarray() if sparse.issparse(a) else np.asarray(a)


def _of(function: Callable[[np.ndarray], Any]) -> Change:
    """Return the change of an array by a function, beyond the largest number if need be."""
    return lambda rng, a: np.errstate(over="ignore")(function)(dense(a))


# -- storage -----------------------------------------------------------------------------------------------------------


class _Duck:
    """Something that turns into an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.array, dtype=dtype)


class _Subclass(np.ndarray):
    """An array of another class."""


def _strided(a: np.ndarray) -> np.ndarray:
    every = (slice(None, None, 2),) * a.ndim
    large = np.zeros([2 * size for size in a.shape], a.dtype)
    large[every] = a
    return large[every]


def _read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def _memory_map(a: np.ndarray, mode: str) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        file.write(a.tobytes())
        file.flush()
        return np.memmap(file, dtype=a.dtype, mode=mode, shape=a.shape)


def _misaligned(a: np.ndarray) -> np.ndarray:
    view = np.zeros(a.nbytes + 1, dtype=np.uint8)[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def pandas_of(a: Any, **labels: Any) -> Any:
    """Return a series or a frame."""
    return (pd.DataFrame if np.ndim(a) == 2 else pd.Series)(a, **labels)


# Storage of the same numbers: results are equal to the last bit.
STORAGE: dict[str, Change] = {
    "Fortran order": _of(np.asfortranarray),
    "strided": _of(_strided),
    "negative strides": _of(lambda a: np.flip(np.flip(a).copy())),
    "read-only": _of(_read_only),
    "memory map, read-only": _of(lambda a: _memory_map(a, "r")),
    "memory map, copy on write": _of(lambda a: _memory_map(a, "c")),
    "big-endian": _of(lambda a: a.astype(a.dtype.newbyteorder(">"))),
    "misaligned": _of(_misaligned),
    "array subclass": _of(lambda a: a.view(_Subclass)),
    "list": _of(np.ndarray.tolist),
    "list of arrays": _of(list),
    "tuple": _of(lambda a: tuple(a.tolist())),
    "object": _of(lambda a: a.astype(object)),
    "longdouble": _of(lambda a: a.astype(np.longdouble)),
    "something with __array__": _of(_Duck),
    "pandas": _of(pandas_of),
    "pandas with an index": _of(lambda a: pandas_of(a, index=[f"row {i}" for i in range(len(a))][::-1])),
}

# -- types -------------------------------------------------------------------------------------------------------------

_NAMES = "f2", "f4", "f8", "i1", "i2", "i8", "u1", "u8", "?", "c8", "c16", "M8[s]", "m8[s]", "S8", "U8", ">i4"


def _set(a: np.ndarray, value: Any, dtype: Any = object) -> np.ndarray:
    a = np.atleast_1d(a.astype(dtype))
    a[(0,) * a.ndim] = value
    return a


def _each(kind: type) -> Change:
    return _of(np.vectorize(kind, otypes=[object]))


TYPES: dict[str, Change] = {
    **{f"dtype {name}": _of(lambda a, name=name: np.round(3 * a).astype(name)) for name in _NAMES},
    "digits": _of(lambda a: a.astype(str)),
    "words": _of(lambda a: np.full(a.shape, "word")),
    "an object among numbers": _of(lambda a: _set(a, object())),
    "None among numbers": _of(lambda a: _set(a, None)),
    "NA among numbers": _of(lambda a: _set(a, pd.NA)),
    "a string among numbers": _of(lambda a: _set(a, "word")),
    "a huge integer": _of(lambda a: _set(a, 10**400)),
    "a list among numbers": _of(lambda a: _set(a, [1, 2])),
    "NaT": _of(lambda a: np.full(a.shape, np.datetime64("NaT", "s"))),
    "fractions": _each(fractions.Fraction),
    "decimals": _each(decimal.Decimal),
    "complex numbers of real value": _of(lambda a: a + 0j),
    "masked": _of(lambda a: np.ma.masked_array(a, mask=a >= a.max())),
    "masked nowhere": _of(np.ma.masked_array),
    "ragged": _of(lambda a: [*a.tolist()[1:], [1.0] * (a[0].size + 1)]),
    "generator": _of(lambda a: (row for row in a)),
    "dictionary": _of(lambda a: dict(enumerate(a))),
    "set": _of(lambda a: set(a.ravel().tolist())),
    "None": _of(lambda a: None),
    "a string": _of(lambda a: "X"),
    "bytes": _of(lambda a: b"X"),
    "a class": _of(lambda a: np.ndarray),
    "a function": _of(lambda a: len),
    "pandas of dates": _of(lambda a: pandas_of(np.round(3 * a).astype("M8[s]"))),
}

# -- shapes ------------------------------------------------------------------------------------------------------------

SHAPES: dict[str, Change] = {
    "a number": lambda rng, a: 1.5,
    "empty": lambda rng, a: np.zeros(0),
    "no rows": lambda rng, a: a[:0],
    "no columns": lambda rng, a: np.zeros((a.shape[0], 0)),
    "one row": lambda rng, a: a[:1],
    "two rows": lambda rng, a: a[:2],
    "fewer rows": lambda rng, a: a[:-1],
    "more rows": _of(lambda a: np.concatenate([a, a[:1]])),
    "a column less": _of(lambda a: a[..., :-1]),
    "twice": _of(lambda a: np.column_stack([a, a])),
    "flat": _of(np.ravel),
    "transposed": lambda rng, a: a.T,
    "an axis less": _of(lambda a: a[0]),
    "an axis more": _of(lambda a: a[..., None]),
    "two axes more": _of(lambda a: a[..., None, None]),
}

# -- values ------------------------------------------------------------------------------------------------------------


def _with(value: float) -> Change:
    def change(rng: np.random.Generator, a: Any) -> np.ndarray:
        a = dense(a).astype(float)
        a[tuple(rng.integers(size) for size in a.shape)] = value
        return a

    return change


_LARGE = (1e10, 2.0**53, 1e20, 1e40, 1e75, 1e80, 1e120, 1e150, 1e155, 1e200, 1e300, 1.7e308)
_SMALL = (1e-5, 1e-10, 1e-20, 1e-50, 1e-160, 1e-300, 5e-324)

VALUES: dict[str, Change] = {
    "a NaN": _with(np.nan),
    "an infinity": _with(np.inf),
    "a negative infinity": _with(-np.inf),
    "NaN alone": _of(lambda a: np.full(a.shape, np.nan)),
    "infinity alone": _of(lambda a: np.full(a.shape, np.inf)),
    **{f"an entry {value:g}": _with(value) for value in (*_LARGE, -1e300, -1.0, 1e-20, 1e-300, 5e-324)},
    **{f"all times {factor:g}": _of(lambda a, factor=factor: a * factor) for factor in (*_LARGE[3:], *_SMALL)},
    "zeros": _of(lambda a: np.zeros(a.shape)),
    "negative zeros": _of(lambda a: np.full(a.shape, -0.0)),
    "ones": _of(lambda a: np.ones(a.shape)),
    "equal rows": _of(lambda a: np.repeat(a[:1], len(a), axis=0)),
    "two distinct rows": _of(lambda a: a[np.arange(len(a)) % 2]),
    "rows of all sizes": _of(lambda a: (a.T * 10.0 ** np.linspace(-10, 10, len(a))).T),
    "signs": _of(np.sign),
    "real numbers": lambda rng, a: rng.standard_normal(a.shape),
    "a large mean": lambda rng, a: 1e9 + rng.standard_normal(a.shape),
}

ARRAYS = STORAGE | TYPES | SHAPES | VALUES
# Those that arrays of any number of axes have, empty ones too: parts of results, and options.
PARTS = {
    name: ARRAYS[name]
    for name in (
        "NaN alone", "infinity alone", "zeros", "ones", "all times 1e+200", "all times 1e-160", "fewer rows",
        "a column less", "flat", "transposed", "list", "dtype f4", "dtype i8", "dtype c16", "digits", "object",
        "Fortran order", "None", "a string", "empty", "a number",
    )
}  # fmt: skip
