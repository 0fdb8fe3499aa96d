"""Whole fits of both layers against quadratic-kernel SVMs, and paths of strengths against single fits."""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.svm import SVC

import mopn
from benchmarks.alternatives.sizes import numbers_held
from benchmarks.common.datasets import Split, load, split
from benchmarks.common.measures import mean_and_error, seconds_of
from benchmarks.common.printing import Table
from mopn.regularization_path import path_solver
from mopn.solvers import ConditionalGradient

_UNITS, _DEFAULT_UNITS = {"letter": 140}, 50
_STRENGTHS = {"vowel": 0.3, "segment": 0.3, "satimage": 1.0, "letter": 0.3}
_C = (0.1, 1.0, 10.0)
_PREDICTIONS = 5


class Fitted(NamedTuple):
    """Test accuracy, seconds of the fit, seconds of a prediction, and how many numbers the model holds."""

    accuracy: float
    seconds: float
    prediction: float
    size: int


def fits(args: argparse.Namespace) -> None:
    """Print fits of both layers against quadratic-kernel SVMs, whose C is chosen on the validation part."""
    print(f"\nFits with default settings, l1/l2, both layers: {args.splits} splits")
    print("set       model     test accuracy    fit: mean       max   a prediction   numbers held")
    for name in args.sets:
        splits = [split(*load(name, args.data), index) for index in range(args.splits)]
        ours = [network(data, _UNITS.get(name, _DEFAULT_UNITS), _STRENGTHS[name]) for data in splits]
        theirs = [svm(data) for data in splits]
        for label, rows in (("mopn", ours), ("SVM", theirs)):
            accuracy, seconds, prediction, size = (np.array(column) for column in zip(*rows, strict=True))
            mean, error = mean_and_error(100 * accuracy)
            print(
                f"{name:9s} {label:5s} {mean:12.2f} ± {error:4.2f} {seconds.mean():10.3f} s "
                f"{seconds.max():7.3f} s {1e6 * prediction.mean():11.3f} µs {size.mean():14.0f}",
                flush=True,
            )
        means = [np.mean(rows, axis=0) for rows in (theirs, ours)]
        _, seconds, prediction, size = means[0] / means[1]
        print(f"{name:9s} {'ratio':5s} {'':19s} {seconds:10.3g} {'':11s} {prediction:11.3g} {size:17.3g}")


def network(data: Split, max_units: int, strength: float) -> Fitted:
    """Fit both layers."""
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=strength, augment=True)
    began = time.perf_counter()
    result = mopn.minimize(problem, ConditionalGradient(refit="full", max_units=max_units, schedule="fill"))
    seconds = time.perf_counter() - began
    model = mopn.Model.from_result(problem, result)
    return _fitted(model.predict, seconds, model.basis.size + model.weights.size, data)


def svm(data: Split) -> Fitted:
    """Fit SVMs and return that which is best on the validation part."""
    models = [SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=C) for C in _C]
    seconds = [seconds_of(partial(model.fit, data.X_train, data.y_train))[0] for model in models]
    best = int(np.argmax([model.score(data.X_validation, data.y_validation) for model in models]))
    return _fitted(models[best].predict, seconds[best], numbers_held(models[best]), data)


def _fitted(predict: Callable[[np.ndarray], np.ndarray], seconds: float, size: int, data: Split) -> Fitted:
    accuracy = float(np.mean(predict(data.X_test) == data.y_test))
    prediction = min(seconds_of(partial(predict, data.X_test), _PREDICTIONS)) / len(data.X_test)
    return Fitted(accuracy, seconds, prediction, size)


def paths(args: argparse.Namespace) -> None:
    """Print the time of a path of 20 strengths against one cold fit at its smallest strength."""
    print("\nPaths of 20 strengths and a cold fit at the last one, l1/l2, both layers, split 0")
    table = Table("set:9s, path:8.2f s, cold fit:11.2f s, path / cold:.2f, objective of path:.2f, of cold fit:13.2f")
    for name in args.sets:
        data, units = split(*load(name, args.data), 0), _UNITS.get(name, _DEFAULT_UNITS)
        problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=1.0, augment=True)
        began = time.perf_counter()
        found = mopn.path(problem, 20, path_solver(20, units))
        seconds = time.perf_counter() - began
        last = problem.with_strength(float(found.strengths[-1]))
        began = time.perf_counter()
        cold = mopn.minimize(last, ConditionalGradient(refit="full", max_units=units, schedule="fill"))
        alone = time.perf_counter() - began
        table.row(name, seconds, alone, seconds / alone, found.results[-1].fun, cold.fun)
