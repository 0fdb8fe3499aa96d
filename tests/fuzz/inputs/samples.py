"""Odd samples X beyond odd arrays: shapes, values of columns, and columns of the types that the tables' page has."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from tests.fuzz.inputs.arrays import SHAPES, STORAGE, TYPES, VALUES, Change, dense
from tests.values_of_types import TYPES as TYPES_OF_COLUMNS


def _with_column(make: Callable[[int], Any]) -> Change:
    """Return a change of X to a frame whose first column is of a type."""

    def change(rng: np.random.Generator, X: Any) -> pd.DataFrame:
        frame, values = pd.DataFrame(dense(X)).rename(columns=str), make(X.shape[0])
        plain = values.to_pylist() if hasattr(values, "to_pylist") else values
        return frame.assign(**{"0": plain if isinstance(plain, pd.Series | np.ndarray) else list(plain)})

    return change


def _column(rng: np.random.Generator, X: Any, values: Any) -> np.ndarray:
    X = dense(X).copy()
    X[:, int(rng.integers(X.shape[1]))] = values
    return X


def _frame(X: Any, columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(dense(X), columns=columns)


SHAPES_OF_X: dict[str, Change] = SHAPES | {
    "a column": lambda rng, X: dense(X)[:, 0],
    "one column": lambda rng, X: X[:, :1],
    "two columns": lambda rng, X: X[:, :2],
    "more columns": lambda rng, X: np.hstack([dense(X)] * 8),
    "no rows or columns": lambda rng, X: np.zeros((0, 0)),
}
STORAGE_OF_X: dict[str, Change] = STORAGE | {
    "pandas with names": lambda rng, X: _frame(X, [f"x{j}" for j in range(X.shape[1])]),
}
TYPES_OF_X: dict[str, Change] = (
    TYPES
    | {
        "mixed names": lambda rng, X: _frame(X, ["a", *range(1, X.shape[1])]),
        "structured": lambda rng, X: np.zeros(X.shape[0], dtype=[("a", "f8"), ("b", "f8")]),
        "records": lambda rng, X: np.rec.fromarrays(dense(X).T),
        "a series": lambda rng, X: pd.Series(dense(X)[:, 0]),
    }
    | {f"{kind}: {at}": _with_column(make) for kind, made in TYPES_OF_COLUMNS.items() for at, make in made.items()}
)
VALUES_OF_X: dict[str, Change] = VALUES | {
    "equal columns": lambda rng, X: np.repeat(dense(X)[:, :1], X.shape[1], axis=1),
    "a constant column": lambda rng, X: _column(rng, X, 3.0),
    "a column of zeros": lambda rng, X: _column(rng, X, 0.0),
    "a column near 2^53": lambda rng, X: _column(rng, X, 2.0**53 + 2 * np.arange(X.shape[0])),
    "a column of dates": lambda rng, X: _column(rng, X, 1.7e9 + np.arange(X.shape[0])),
    "columns of all sizes": lambda rng, X: dense(X) * 10.0 ** np.linspace(-10, 10, X.shape[1]),
    "one-hot": lambda rng, X: np.eye(X.shape[1])[rng.integers(X.shape[1], size=X.shape[0])],
    "rank one": lambda rng, X: np.outer(dense(X)[:, 0], dense(X)[0]),
    "float32 limits": lambda rng, X: (dense(X) * 3e38).astype(np.float32),
    "float32 denormals": lambda rng, X: (dense(X) * 1e-44).astype(np.float32),
}
