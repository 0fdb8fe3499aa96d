"""mopn beside what a user would pick instead: accuracy, training and prediction time, and size, on the same splits.

One thread each; every hyper-parameter is chosen on the validation part::

    python -m benchmarks.alternatives --data FOLDER
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import mopn
from benchmarks.common.datasets import Split, load, split

_PREDICTIONS = 10


@dataclass
class Candidate:
    """A fitted model: how it predicts, the seconds it took to fit, and how many numbers it holds."""

    predict: Callable[[np.ndarray], np.ndarray]
    seconds: float
    size: int


def networks(data: Split) -> list[Candidate]:
    """Networks of at most 50 units under l1/l2, over three strengths."""
    found = []
    for strength in (0.1, 0.5, 2.0):
        problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=strength, augment=True)
        result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full", max_units=50), tol=1e-3)
        model = mopn.Model.from_result(problem, result)
        found.append(Candidate(model.predict, result.time, model.basis.size + model.weights.size))
    return found


def estimators(grid: list[Any], size: Callable[[Any], int]) -> Callable[[Split], list[Candidate]]:
    """Return what fits each of some scikit-learn estimators."""

    def fit(data: Split) -> list[Candidate]:
        found = []
        for estimator in grid:
            began = time.perf_counter()
            estimator.fit(data.X_train, data.y_train)
            found.append(Candidate(estimator.predict, time.perf_counter() - began, size(estimator)))
        return found

    return fit


def _vectors(svm: SVC) -> int:
    return svm.support_vectors_.size + svm.dual_coef_.size


def _nodes(boosting: HistGradientBoostingClassifier) -> int:
    return sum(len(tree.nodes) for trees in boosting._predictors for tree in trees)


METHODS: dict[str, Callable[[Split], list[Candidate]]] = {
    "mopn, l1/l2, 50 units": networks,
    "linear": estimators([LogisticRegression(C=C, max_iter=3000) for C in (1, 10, 100)], lambda m: m.coef_.size),
    "SVM, quadratic kernel": estimators(
        [SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=C) for C in (0.1, 1, 10)], _vectors
    ),
    "SVM, RBF kernel": estimators([SVC(gamma=g, C=C) for g in (0.1, 0.5, 2.0) for C in (1, 10, 100)], _vectors),
    "gradient boosting": estimators(
        [HistGradientBoostingClassifier(learning_rate=r, random_state=0) for r in (0.05, 0.2)], _nodes
    ),
}


def main() -> None:
    """Print a table a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data", help="folder with the data sets (default ../shared/data)")
    parser.add_argument("--sets", nargs="+", default=["vowel", "segment", "satimage"])
    parser.add_argument("--splits", type=int, default=3)
    args = parser.parse_args()
    with threadpool_limits(1):
        for name in args.sets:
            X, y = load(name, args.data)
            splits = [split(X, y, index) for index in range(args.splits)]
            print(f"\n{name}: mean of {args.splits} splits; the fit is that of the chosen hyper-parameter alone")
            print(f"{'':24s}{'test accuracy':>18s}{'fit':>10s}{'a prediction':>15s}{'numbers held':>14s}")
            for label, fit in METHODS.items():
                print(_row(label, [_chosen(fit(data), data) for data in splits]), flush=True)


def _chosen(candidates: list[Candidate], data: Split) -> tuple[float, float, float, int]:
    best = max(candidates, key=lambda c: float(np.mean(c.predict(data.X_validation) == data.y_validation)))
    began = time.perf_counter()
    for _ in range(_PREDICTIONS):
        labels = best.predict(data.X_test)
    seconds = (time.perf_counter() - began) / _PREDICTIONS / len(data.X_test)
    return float(np.mean(labels == data.y_test)), best.seconds, seconds, best.size


def _row(label: str, rows: list[tuple[float, float, float, int]]) -> str:
    accuracies, fits, predictions, sizes = (np.array(column) for column in zip(*rows, strict=True))
    error = accuracies.std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan
    return (
        f"{label:24s}{100 * accuracies.mean():11.2f} ± {100 * error:4.2f}{fits.mean():8.2f} s"
        f"{1e6 * predictions.mean():12.2f} µs{sizes.mean():14.0f}"
    )


if __name__ == "__main__":
    main()
