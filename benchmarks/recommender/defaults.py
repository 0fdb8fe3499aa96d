"""The default strengths of machines of one output, fixed ones, and the best of a grid.

``FactorizationMachineRegressor`` and ``FactorizationMachineClassifier``, on u1 of MovieLens 100K ("ratings", and
"likes": whether a rating exceeds 3) and on tables, with three quarters of the rows for training, and numbers scaled to
variance 1 and categories one-hot::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.defaults --data FOLDER

Errors on the test rows: root mean squared errors, of tables over the deviation of y, or rates. "ones": alpha = beta =
1. "best": the least error of alpha at its default and beta in 0.3, 1, 3, ..., 300, chosen on the test rows. Seconds of
the processor, for a fit at the defaults with the choice of beta, and for one with the strengths that it chose.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.common.collection import hold_out
from benchmarks.common.printing import Table
from benchmarks.common.study import make_parser, run
from benchmarks.common.tables import load_table
from benchmarks.recommender.data import load
from benchmarks.recommender.splits import make_parts
from mopn.estimators import FactorizationMachineClassifier, FactorizationMachineRegressor

RATINGS, NUMBERS = ("ratings", "likes"), ("diabetes", "abalone", "cpusmall", "cadata")
CLASSES = ("breast_cancer", "sonar", "ionosphere", "spambase", "tic-tac-toe")
_BETAS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_LIKED = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    return run(make_parser("recommender.defaults", __doc__, sets=RATINGS + NUMBERS + CLASSES), _program, arguments)


def _program(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    table = Table(
        "set:13s, rows:6d, columns:7d, ones:6.4f, default:6.4f, best:6.4f, beta:6.3g, seconds:5.2f, given:5.2f"
    )
    for name in options.sets:
        data = _data(name, options.data)
        default, chosen, seconds = _fit(data)
        _, _, given = _fit(data, alpha=chosen.alpha_, beta=chosen.beta_)
        best = min(_fit(data, beta=beta)[0] for beta in _BETAS)
        ones = _fit(data, alpha=1.0, beta=1.0)[0]
        table.row(name, *data[0].shape, ones, default, best, chosen.beta_, seconds, given)


def _data(name: str, folder: str) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Return X and X_test, y and y_test."""
    if name in RATINGS:
        ratings = load("ml-100k", folder)
        train, test = make_parts("ml-100k", len(ratings.y), 0)
        X, y = ratings.rows(), ratings.y if name == "ratings" else ratings.y > _LIKED
        return X[train], X[test], y[train], y[test]
    X, y, m = load_table(name, folder)
    y = y if m else (y - y.mean()) / y.std()
    X, X_test, y, y_test = hold_out(X, y, 0, stratify=m > 0)
    numbers, categories = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    one_hot = OneHotEncoder(handle_unknown="ignore")
    encoder = make_column_transformer((StandardScaler(), numbers), (one_hot, categories))
    return encoder.fit_transform(X), encoder.transform(X_test), y, y_test


def _fit(data: tuple[Any, Any, np.ndarray, np.ndarray], **strengths: float) -> tuple[float, Any, float]:
    """Return the error on the test rows, the estimator and the seconds of a fit."""
    X, X_test, y, y_test = data
    kind = FactorizationMachineRegressor if y.dtype == float else FactorizationMachineClassifier
    began = time.process_time()
    estimator = kind(random_state=0, **strengths).fit(X, y)
    seconds, predictions = time.process_time() - began, estimator.predict(X_test)
    error = np.sqrt(np.mean((predictions - y_test) ** 2)) if y.dtype == float else np.mean(predictions != y_test)
    return float(error), estimator, seconds


if __name__ == "__main__":
    sys.exit(main())
