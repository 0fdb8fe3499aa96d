"""X of other shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.inputs.dense import dense

__all__ = ["SHAPES"]

SHAPES: dict[str, Callable[[np.random.Generator, Any], Any]] = {
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
