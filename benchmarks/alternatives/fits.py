"""A row of the study: choose a hyper-parameter on held-out rows, fit again to the whole training part, and measure."""

import time
import warnings
from dataclasses import asdict
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.alternatives.methods import METHODS, Grid, TooLargeError
from benchmarks.alternatives.sizes import numbers_held
from benchmarks.common.collection import hold_out, load_raw
from benchmarks.common.measures import seconds_of
from benchmarks.common.study import KEY, Task

# Single rows that are predicted one after another, and predictions of the whole test part.
_ROWS, _BATCHES = 50, 5


_SET = ["rows", "features", "classes", "dropped"]
_MEASURED = ["chosen", "tried", "accuracy", "fit", "one_row", "batch_row", "size"]
COLUMNS = [*KEY, *_SET, *_MEASURED, "note"]

_load = lru_cache(maxsize=1)(load_raw)


def run_task(task: Task, folder: str, grid_seconds: float) -> dict[str, Any]:
    """Return a row; if the set is too large, a note that says so stands in place of the measurements.

    ``fit``: seconds of the chosen estimator's fit to the whole training part; ``one_row``: median seconds of a
    prediction of one row; ``batch_row``: least seconds of a prediction of the test part, by row; ``size``: numbers.
    """
    X, y, dropped = _load(task.set, folder)
    row = asdict(task) | dict(zip(_SET, (*X.shape, len(np.unique(y)), dropped), strict=True))
    X, X_test, y, y_test = hold_out(X, y, task.split)
    try:
        grid = METHODS[task.method].grid(*X.shape)
    except TooLargeError as error:
        return row | dict.fromkeys(_MEASURED, "") | {"note": str(error)}
    with threadpool_limits(1):
        chosen, tried = choose(grid, X, y, task.split, grid_seconds)
        measured = _measure(clone(grid[chosen]), X, y, X_test, y_test)
    return row | {"chosen": chosen, "tried": f"{tried} of {len(grid)}"} | measured


def choose(grid: Grid, X: np.ndarray, y: np.ndarray, seed: int, seconds: float) -> tuple[str, int]:
    """Return the name of the estimator that is best on a held-out quarter, of equals the first."""
    if len(grid) == 1:
        return next(iter(grid)), 0
    X_fit, X_held, y_fit, y_held = hold_out(X, y, seed)
    scores: dict[str, float] = {}
    end = time.perf_counter() + seconds
    for name, estimator in grid.items():
        if scores and time.perf_counter() > end:
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores[name] = clone(estimator).fit(X_fit, y_fit).score(X_held, y_held)
    return max(scores, key=scores.__getitem__), len(scores)


def _measure(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> dict[str, str | int]:
    """Fit, and return the measurements, with a note if the fit did not converge."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        (fit,) = seconds_of(partial(model.fit, X, y))
    accuracy = np.mean(model.predict(X_test) == y_test)
    singles = [seconds_of(partial(model.predict, row[None]))[0] for row in X_test[:_ROWS]]
    batches = seconds_of(partial(model.predict, X_test), _BATCHES)
    return {
        "accuracy": f"{accuracy:.5f}",
        "fit": f"{fit:.4g}",
        "one_row": f"{np.median(singles):.4g}",
        "batch_row": f"{min(batches) / len(X_test):.4g}",
        "size": numbers_held(model),
        "note": "not converged" if any(issubclass(one.category, ConvergenceWarning) for one in caught) else "",
    }
