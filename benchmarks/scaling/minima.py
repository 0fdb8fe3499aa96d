"""The local minima in which fits of few units end: of how many, and with samples of how many rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import mopn
from benchmarks.scaling.stages import make_rows
from mopn.estimators import MultiOutputPNClassifier
from mopn.network import refit_hints

__all__ = ["drawn", "of_sizes"]

_FEATURES, _TEST = 20, 20_000
# Rows of the fits to samples of several sizes.
_ROWS = 250_000


def drawn(kind: str, n: int, units: int, first: str, draws: int) -> dict[str, Any]:
    """Fit classes of so many functions, each with rows and a random_state of its own, found on a sample or all rows.

    Return the seconds of the processor, objectives a row, and accuracies on other rows.
    """
    if first == "all rows":
        mopn.NetworkProblem.sample_for = lambda problem, n_units, seed: None  # type: ignore[method-assign]
    _fit(kind, 1000, units, 0)  # loads what fits need
    fits = [_fit(kind, n, units, draw) for draw in range(draws)]
    return {name: [fit[name] for fit in fits] for name in fits[0]}


def of_sizes(kind: str, units: int, per_parameter: str) -> dict[str, float]:
    """Fit a sample of so many rows for every parameter, of up to half of the rows, and then all; or "all" at once."""
    if per_parameter == "all":
        mopn.NetworkProblem.sample_for = lambda problem, n_units, seed: None  # type: ignore[method-assign]
    else:
        refit_hints._ROWS_OF_MODEL, refit_hints._LEAST_ROWS, refit_hints._LARGEST_SAMPLE = int(per_parameter), 0, 0.5
    _fit(kind, 1000, units, 0)
    return _fit(kind, _ROWS, units, 0)


def _fit(kind: str, n: int, units: int, draw: int) -> dict[str, float]:
    X, y = make_rows(kind, n, _FEATURES, 3 + draw, function=draw)
    X_test, y_test = make_rows(kind, _TEST, _FEATURES, 2, function=draw)
    began = time.process_time()
    classifier = MultiOutputPNClassifier(max_units=units, random_state=draw).fit(X, y)
    return {
        "seconds": time.process_time() - began, "fun": classifier.objective_ / n,
        "accuracy": float(np.mean(classifier.predict(X_test) == y_test)),
    }  # fmt: skip
