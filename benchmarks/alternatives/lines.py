"""A single row by the estimator, and by a line of NumPy that returns the same class: what checks of the input cost.

Estimators are the plainest of the grids. Logistic regressions get 1,000 rows and stop early, which changes no time of a
prediction. The line of each must agree with ``predict`` on the test part. Prints the microseconds of each set and their
geometric means; sets that are too wide for quadratic features are left out::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.alternatives.lines --data FOLDER
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from itertools import cycle
from timeit import repeat
from typing import Any

import numpy as np
from scipy.stats import gmean
from threadpoolctl import threadpool_limits

from benchmarks.alternatives.methods import METHODS, TooLargeError
from benchmarks.common.collection import COLLECTION, hold_out, load_raw
from benchmarks.common.printing import Table
from benchmarks.common.sources import check
from benchmarks.common.study import make_parser, run

_ROWS = 1_000
Line = Callable[[np.ndarray], np.ndarray]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("alternatives.lines", __doc__, sets=COLLECTION)
    return run(parser, _program, arguments)


def _program(options: argparse.Namespace) -> int:
    check(COLLECTION, options.sets, options.data, "--sets")
    times = []
    with threadpool_limits(1):
        for name in options.sets:
            X, y, _ = load_raw(name, options.data)
            X, X_test, y, _ = hold_out(X, y, 0)
            try:
                times.append([_times(method, X, y, X_test) for method in LINES])
            except TooLargeError:
                print(f"{name}: too wide", flush=True)
                continue
            print(name, *(f"{1e6 * one:.1f}" for pair in times[-1] for one in pair), flush=True)
    print()
    table = Table(f"{len(times)} sets:36s, estimator:.1f µs, NumPy:9.1f µs")
    for method, (estimator, line) in zip(LINES, gmean(times, axis=0), strict=True):
        table.row(METHODS[method].label, 1e6 * estimator, 1e6 * line)
    return 0


def _times(method: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> tuple[float, float]:
    """Return the seconds of a row by the estimator and by its line."""
    model = next(iter(METHODS[method].grid(*X.shape).values()))
    if "logisticregression" in getattr(model, "named_steps", ()):
        model.set_params(logisticregression__max_iter=5)
        kept = np.random.default_rng(0).permutation(len(X))[:_ROWS]
        X, y = X[kept], y[kept]
    model.fit(X, y)
    line = LINES[method](model)
    found = [model.classes_[_first(line(row))] for row in X_test]
    if not np.array_equal(found, model.predict(X_test)):
        raise AssertionError(f"{method}: the line has other classes than the estimator")
    rows = cycle(X_test[:50])
    return _least(lambda: model.predict(next(rows)[None]), 50), _least(lambda: _first(line(next(rows))), 500)


def _least(call: Callable[[], Any], number: int) -> float:
    return min(repeat(call, repeat=5, number=number)) / number


def _first(outputs: np.ndarray) -> Any:
    """Return the number of the class: of two, by the sign of the only output."""
    return outputs.argmax() if len(outputs) > 1 else int(outputs[0] > 0)


# -- lines of fitted estimators: the scaling of pipelines is a factor s and a shift t ----------------------------------


def _scaling(model: Any) -> tuple[np.ndarray, np.ndarray]:
    scaler = model[0]
    return 1 / scaler.scale_, -scaler.mean_ / scaler.scale_


def _network(model: Any) -> Line:
    network = model.model_
    H, V = network.basis[:, 1:], network.weights
    h0, b = network.basis[:, 0], network.offset
    return lambda x: (H @ x + h0) ** 2 @ V + b


def _linear(model: Any) -> Line:
    (s, t), last = _scaling(model), model[-1]
    W, b = last.coef_ * s, last.coef_ @ t + last.intercept_
    return lambda x: W @ x + b


def _quadratic_features(model: Any) -> Line:
    (s, t), last = _scaling(model), model[-1]
    W, b = last.coef_, last.intercept_
    i, j = np.triu_indices(len(s))

    def line(x: np.ndarray) -> np.ndarray:
        z = s * x + t
        return W @ np.concatenate([z, z[i] * z[j]]) + b

    return line


def _one_against_rest(model: Any) -> Line:
    (s, t), machines = _scaling(model), model[-1].estimators_
    S = np.concatenate([one._gamma * one.support_vectors_ for one in machines])
    a = np.concatenate([one.dual_coef_[0] for one in machines])
    b = np.array([one.intercept_[0] for one in machines])
    starts = np.cumsum([0, *(len(one.support_) for one in machines[:-1])])
    S, c = S * s, S @ t + 1
    return lambda x: np.add.reduceat(a * (S @ x + c) ** 2, starts) + b


LINES: dict[str, Callable[[Any], Line]] = {
    "mopn": _network,
    "linear": _linear,
    "quadratic-features": _quadratic_features,
    "svc-quadratic-ovr": _one_against_rest,
}


if __name__ == "__main__":
    sys.exit(main())
