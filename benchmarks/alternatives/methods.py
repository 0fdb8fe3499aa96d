"""What a user would fit to classes: networks, and what scikit-learn has, each over a few hyper-parameters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import mopn
from benchmarks.common.datasets import Split

__all__ = ["METHODS", "Candidate", "best", "seconds_a_prediction"]


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
        result = mopn.minimize(
            problem, mopn.solvers.ConditionalGradient(refit="full", max_units=50, schedule="fill"), tol=1e-3
        )
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


def best(candidates: list[Candidate], data: Split) -> Candidate:
    """Return the candidate of the best validation accuracy, the first of equals."""
    return max(candidates, key=lambda c: float(np.mean(c.predict(data.X_validation) == data.y_validation)))


def seconds_a_prediction(predict: Callable[[np.ndarray], np.ndarray], data: Split, repeats: int) -> list[float]:
    """Return the seconds that each of some predictions of all test rows took, by row."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        predict(data.X_test)
        seconds.append((time.perf_counter() - began) / len(data.X_test))
    return seconds
