"""Weights of samples, and other vectors of numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd


def _ones(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(0.5, 2.0, n)


def _put(w: np.ndarray, value: Any, dtype: Any = float) -> np.ndarray:
    w = w.astype(dtype)
    w[0] = value
    return w


def _read_only(w: np.ndarray) -> np.ndarray:
    w.flags.writeable = False
    return w


# From valid weights.
_WEIGHTS: dict[str, Callable[[np.ndarray], Any]] = {
    "ones": lambda w: np.ones(len(w)),
    "integers": lambda w: 1 + np.arange(len(w)) % 3,
    "bool": lambda w: np.arange(len(w)) % 4 > 0,
    "float32": lambda w: w.astype(np.float32),
    "float16": lambda w: w.astype(np.float16),
    "longdouble": lambda w: w.astype(np.longdouble),
    "big-endian": lambda w: w.astype(">f8"),
    "read-only": _read_only,
    "strided": lambda w: np.repeat(w, 2)[::2],
    "list": lambda w: w.tolist(),
    "Series": lambda w: pd.Series(w, index=np.arange(len(w))[::-1]),
    "objects": lambda w: w.astype(object),
    "some zero": lambda w: w * (np.arange(len(w)) % 3 > 0),
    "one not zero": lambda w: w * (np.arange(len(w)) == 3),
    "two not zero": lambda w: w * (np.arange(len(w)) < 2),
    "zeros": lambda w: 0 * w,
    "negative zeros": lambda w: -0.0 * w,
    "a negative one": lambda w: _put(w, -1.0),
    "a NaN": lambda w: _put(w, np.nan),
    "an infinity": lambda w: _put(w, np.inf),
    **{f"a weight {value:g}": lambda w, value=value: _put(w, value) for value in (5e-324, 1e-300, 1e-20, 1e20, 1e300)},
    **{f"all times {factor:g}": lambda w, factor=factor: w * factor for factor in (5e-324, 1e-300, 1e-20, 1e20, 1e300)},
    "sum that overflows": lambda w: np.full(len(w), 1e308),
    "None among them": lambda w: _put(w, None, object),
    "None alone": lambda w: [None] * len(w),
    "pandas' missing value": lambda w: _put(w, pd.NA, object),
    "strings": lambda w: w.astype(str),
    "words": lambda w: ["heavy"] * len(w),
    "complex": lambda w: w + 1j,
    "complex of real value": lambda w: w + 0j,
    "dates": lambda w: np.arange(len(w)).astype("M8[D]"),
    "time differences": lambda w: np.arange(1, len(w) + 1).astype("m8[D]"),
    "huge integers": lambda w: [10**400] * len(w),
    "masked": lambda w: np.ma.masked_array(w, mask=np.arange(len(w)) % 2 == 0),
    "shorter": lambda w: w[:-1],
    "longer": lambda w: np.append(w, 1.0),
    "empty": lambda w: w[:0],
    "a column": lambda w: w[:, None],
    "two columns": lambda w: np.column_stack([w, w]),
    "a number": lambda w: 2.0,
    "a string": lambda w: "balanced",
    "a dictionary": lambda w: {0: 1.0, 1: 2.0},
    "a generator": lambda w: (float(weight) for weight in w),
    "a set": lambda w: {1.0, 2.0},
    "an object": lambda w: object(),
    "a list of lists": lambda w: [[1.0]] * len(w),
    "a ragged list": lambda w: [[1.0] * (1 + i % 2) for i in range(len(w))],
}


def odd_weights(rng: np.random.Generator, n: int) -> tuple[str, Any]:
    """Return weights of n samples, and what is odd about them."""
    names = list(_WEIGHTS)
    name = names[int(rng.integers(len(names)))]
    return name, _WEIGHTS[name](_ones(rng, n))
