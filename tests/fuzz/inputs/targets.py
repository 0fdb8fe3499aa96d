"""Odd labels and targets beyond odd arrays, and weights."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tests.fuzz.inputs.arrays import ARRAYS, Change
from tests.values_of_types import TYPES


def _flat(y: Any) -> np.ndarray:
    """Return codes (n,) of three or two classes."""
    codes = np.unique(np.asarray(y), return_inverse=True)[1].reshape(np.shape(y))
    return (codes if codes.ndim == 1 else codes[:, 0]) % 3


def _labels(*names: Any) -> Change:
    """Return targets of three classes of these names."""

    def change(rng: np.random.Generator, y: Any) -> np.ndarray:
        y = np.empty(len(y), dtype=object)
        y[:] = [names[i % 3] for i in range(len(y))]
        return y

    return change


def _indicator(y: Any) -> np.ndarray:
    return np.eye(3, dtype=int)[_flat(y)]


TARGETS: dict[str, Change] = ARRAYS | {
    # Labels.
    "labels": lambda rng, y: _flat(y),
    "strings": lambda rng, y: np.array(["red", "é", ""])[_flat(y)],
    "negative integers": lambda rng, y: -5 * _flat(y),
    "-1 and 1": lambda rng, y: np.where(_flat(y) > 0, 1, -1),
    "0 and 1": lambda rng, y: np.where(_flat(y) > 0, 1, 0),
    "large integers": lambda rng, y: _flat(y) + 2**62,
    "halves": lambda rng, y: 0.5 * _flat(y),
    "a label per sample": lambda rng, y: np.arange(len(y)),
    "a string per sample": lambda rng, y: np.arange(len(y)).astype(str),
    "four labels": lambda rng, y: np.arange(len(y)) % 4,
    "one sample of a label": lambda rng, y: (np.arange(len(y)) == 0).astype(int),
    "no date": lambda rng, y: np.append(np.datetime64("2020-01-01") + _flat(y)[1:], np.datetime64("NaT", "D")),
    "None among strings": _labels("red", None, "blue"),
    "tuples": _labels((0, "a"), (1, "a"), (2, "a")),
    "mixed types": _labels(1, "a", 2.5),
    "bool and strings": _labels(True, "a", False),
    "objects": _labels(object(), object(), object()),
    # Several outputs.
    "indicator": lambda rng, y: _indicator(y),
    "two columns of labels": lambda rng, y: np.column_stack([_flat(y), _flat(y)[::-1]]),
    "several labels": lambda rng, y: (rng.uniform(size=(len(y), 3)) > 0.5).astype(int),
    "no labels": lambda rng, y: np.zeros((len(y), 3), dtype=int),
    "columns of real numbers": lambda rng, y: rng.standard_normal((len(y), 3)),
    "columns of signs": lambda rng, y: np.sign(rng.standard_normal((len(y), 2))),
    # Containers.
    "ragged labels": lambda rng, y: [["a", "b"][: 1 + i % 2] for i in range(len(y))],
    "a frame": lambda rng, y: pd.DataFrame({"a": _flat(y)}),
    "sparse": lambda rng, y: sparse.csr_array(_indicator(y)),
    "sparse column": lambda rng, y: sparse.csr_array(_flat(y)[:, None]),
    **{
        f"{kind}: {storage}": lambda rng, y, make=make: make(len(y))
        for kind, made in TYPES.items()
        for storage, make in made.items()
    },
}

# From valid weights.
WEIGHTS: dict[str, Change] = ARRAYS | {
    "integers": lambda rng, w: 1 + np.arange(len(w)) % 3,
    "some zero": lambda rng, w: w * (np.arange(len(w)) % 3 > 0),
    "one not zero": lambda rng, w: w * (np.arange(len(w)) == 3),
    "two not zero": lambda rng, w: w * (np.arange(len(w)) < 2),
    "a sum that overflows": lambda rng, w: np.full(len(w), 1e308),
    "balanced": lambda rng, w: "balanced",
    "a list of lists": lambda rng, w: [[1.0]] * len(w),
}
