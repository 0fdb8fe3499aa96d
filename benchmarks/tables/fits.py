"""A row of the study: fit to three quarters of a table, and measure on the others and on the model."""

import pickle
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error
from threadpoolctl import threadpool_limits

from benchmarks.common.collection import hold_out
from benchmarks.common.measures import calibration_error
from benchmarks.common.processes import CPUTimeError, limit_cpu_time
from benchmarks.common.study import KEY, Task
from benchmarks.common.tables import load_table
from benchmarks.tables.methods import METHODS
from benchmarks.tables.tuning import tune
from mopn.estimators import TableClassifier, TableRegressor

# Splits of a set, and the rows from which on there is one alone.
SPLITS, SMALL = 2, 2_000
# Single rows that are predicted one after another.
_ROWS = 20


_SET = ["rows", "columns", "classes"]
_MEASURED = ["score", "loss", "calibration", "fit", "one_row", "batch_row", "bytes", "gap", "tried"]
COLUMNS = [*KEY, *_SET, *_MEASURED, "note"]

table_of = lru_cache(maxsize=1)(load_table)


def tasks_of(rows: Mapping[str, int], methods: Iterable[str], splits: int | None) -> list[Task]:
    """Return the fits to make: the first split of all sets, from the smallest on, before the second one."""
    methods = list(methods)
    counts = {name: splits or (SPLITS if rows[name] < SMALL else 1) for name in rows}
    return [
        Task(name, split, method)
        for split in range(max(counts.values(), default=0))
        for name in sorted(rows, key=rows.__getitem__)
        if split < counts[name]
        for method in methods
    ]


def run_task(task: Task, folder: str, fit_seconds: float, budget: float) -> dict[str, Any]:
    """Return a row; of a fit that takes too long, a note that says so stands in place of the measurements.

    ``score``: accuracy, or R2; ``loss``: mean log loss, or the root of the mean squared error; ``fit``, ``one_row`` and
    ``batch_row``: CPU seconds, the first with the search's; ``bytes``: of mopn's own file, all others pickled.
    """
    X, y, m = table_of(task.set, folder)
    row = asdict(task) | dict(zip(_SET, (*X.shape, m), strict=True))
    X, X_test, y, y_test = hold_out(X, y, task.split, stratify=m > 0)
    method = METHODS[task.method]
    model = method.classifier() if m else method.regressor()
    with threadpool_limits(1), warnings.catch_warnings():
        # Boosted trees warn of features without names, networks of a budget that is spent: what counts is measured.
        warnings.simplefilter("ignore")
        # Not the time of the process, which is coarse while a timer runs.
        began, tried = thread_time(), np.nan
        if method.spaces:
            tried = tune(model, method.spaces[0 if m else 1], X, y, seconds=budget, seed=task.split)
        try:
            with limit_cpu_time(fit_seconds):
                model.fit(X, y)
                seconds = thread_time() - began
        except CPUTimeError:
            return row | dict.fromkeys(_MEASURED, "") | {"note": f"more than {fit_seconds:g} s"}
        measured = quality(model, X_test, y_test, m) | {"fit": seconds} | _costs(model, X_test) | {"tried": tried}
    texts = {name: "" if np.isnan(value) else f"{value:.6g}" for name, value in measured.items()}
    return row | texts | {"note": ""}


def quality(model: Any, X: pd.DataFrame, y: np.ndarray, m: int) -> dict[str, float]:
    """Return the measures of predictions; NaN where a model gives none."""
    predicted = model.predict(X)
    if not m:
        loss = root_mean_squared_error(y, predicted)
        return {"score": r2_score(y, predicted), "loss": loss, "calibration": np.nan}
    loss = error = np.nan
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X), dtype=float)
        loss, error = log_loss(y, probabilities, labels=range(m)), calibration_error(y, probabilities)
    return {"score": accuracy_score(y, predicted), "loss": loss, "calibration": error}


def _costs(model: Any, X: pd.DataFrame) -> dict[str, float]:
    singles = [_prediction_seconds(model, X.iloc[[i]]) for i in range(min(_ROWS, len(X)))]
    last = getattr(model, "steps", [("", model)])[-1][1]
    return {
        "one_row": float(np.median(singles)),
        "batch_row": _prediction_seconds(model, X) / len(X),
        "bytes": _size(model),
        "gap": getattr(last, "relative_gap_", np.nan),
    }


def _prediction_seconds(model: Any, X: pd.DataFrame) -> float:
    began = thread_time()
    model.predict(X)
    return thread_time() - began


def _size(model: Any) -> int:
    """Return the bytes of a model's file."""
    if not isinstance(model, TableClassifier | TableRegressor):
        return len(pickle.dumps(model))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        return path.stat().st_size
