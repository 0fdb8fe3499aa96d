"""Numbers that are hard to compute with."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.inputs.dense import dense


def _with(value: float) -> Callable[[np.random.Generator, Any], np.ndarray]:
    def change(rng: np.random.Generator, X: Any) -> np.ndarray:
        X = dense(X).copy()
        X[int(rng.integers(len(X))), int(rng.integers(X.shape[1]))] = value
        return X

    return change


def _times(factor: float) -> Callable[[np.random.Generator, Any], np.ndarray]:
    return lambda rng, X: dense(X) * factor


def _column(rng: np.random.Generator, X: Any, values: Any) -> np.ndarray:
    X = dense(X).copy()
    X[:, int(rng.integers(X.shape[1]))] = values
    return X


_EXTREMES = (1e10, 2.0**53, 1e40, 1e75, 1e80, 1e120, 1e150, 1e155, 1e200, 1e300, 1.7e308)

VALUES: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "a NaN": _with(np.nan),
    "an infinity": _with(np.inf),
    "a negative infinity": _with(-np.inf),
    **{f"an entry {value:g}": _with(value) for value in (*_EXTREMES, -1e300, 5e-324, 1e-300)},
    **{
        f"all times {factor:g}": _times(factor)
        for factor in (*_EXTREMES[2:], 1e-5, 1e-10, 1e-50, 1e-160, 1e-300, 5e-324)
    },
    "zeros": lambda rng, X: np.zeros(X.shape),
    "negative zeros": lambda rng, X: np.full(X.shape, -0.0),
    "ones": lambda rng, X: np.ones(X.shape),
    "equal rows": lambda rng, X: np.repeat(dense(X)[:1], X.shape[0], axis=0),
    "two distinct rows": lambda rng, X: dense(X)[np.arange(X.shape[0]) % 2],
    "equal columns": lambda rng, X: np.repeat(dense(X)[:, :1], X.shape[1], axis=1),
    "a constant column": lambda rng, X: _column(rng, X, 3.0),
    "a column of zeros": lambda rng, X: _column(rng, X, 0.0),
    "a column near 2^53": lambda rng, X: _column(rng, X, 2.0**53 + 2 * np.arange(X.shape[0])),
    "a column of dates": lambda rng, X: _column(rng, X, 1.7e9 + np.arange(X.shape[0])),
    "columns of all sizes": lambda rng, X: dense(X) * 10.0 ** np.linspace(-10, 10, X.shape[1]),
    "rows of all sizes": lambda rng, X: dense(X) * 10.0 ** np.linspace(-10, 10, X.shape[0])[:, None],
    "signs": lambda rng, X: np.sign(dense(X)),
    "one-hot": lambda rng, X: np.eye(X.shape[1])[rng.integers(X.shape[1], size=X.shape[0])],
    "rank one": lambda rng, X: np.outer(dense(X)[:, 0], dense(X)[0]),
    "float32 limits": lambda rng, X: (dense(X) * 3e38).astype(np.float32),
    "float32 denormals": lambda rng, X: (dense(X) * 1e-44).astype(np.float32),
}
