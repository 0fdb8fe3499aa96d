"""The defaults of the classifiers: accuracy and proven gap over norms, sizes, ratios of the strength and more.

Polynomial networks, otherwise at their defaults, on random splits of the sets (three quarters to
fit, at most ``--rows`` of them); the mean test accuracy in per cent, CPU seconds of a fit and its gap. The last column
is a quadratic-kernel SVM, one against the rest, whose C and scaler are chosen on a held-out quarter of the training
part::

    OMP_NUM_THREADS=1 python -m benchmarks.alternatives.defaults --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import product

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.alternatives.fits import choose
from benchmarks.alternatives.methods import METHODS
from benchmarks.common.collection import COLLECTION, hold_out, load_raw
from benchmarks.common.study import make_parser, run
from mopn import Ratio
from mopn.core.norms import NORMS
from mopn.estimators import MultiOutputPNClassifier

__all__ = ["main"]

_REFERENCE = "svc-quadratic-ovr"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("alternatives.defaults", __doc__, sets=COLLECTION)
    parser.add_argument("--ratios", type=float, nargs="+", default=[0.01, 0.005, 0.002, 0.001, 0.0005])
    parser.add_argument("--scales", nargs="+", choices=["features", "data"], default=["features"])
    parser.add_argument("--tols", type=float, nargs="+", default=[5e-3])
    parser.add_argument("--norms", nargs="+", choices=NORMS, default=["l1"])
    parser.add_argument("--max-units", type=int, nargs="+", default=[200])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=4000, help="most rows to fit (default 4000)")
    return parser


def _program(args: argparse.Namespace) -> None:
    columns = list(product(args.norms, args.max_units, args.scales, args.ratios, args.tols))
    header = "".join(f"{f'{norm}, {k}, {scale}, {ratio:g}, {tol:g}':>34s}" for norm, k, scale, ratio, tol in columns)
    print(f"{'':16s}{header}{'SVM':>8s}")
    means = []
    with threadpool_limits(1):
        for name in args.sets:
            X, y, _ = load_raw(name, args.data)
            rows = [_accuracies(X, y, split, columns, args.rows) for split in range(args.splits)]
            means.append(_line(name, rows))
    print(_cells("mean", np.mean(means, axis=0)))
    print(_cells("median", np.median(means, axis=0)))


def _line(name: str, rows: list[np.ndarray]) -> np.ndarray:
    """Print the means over the splits, and return them."""
    mean = np.mean(rows, axis=0)
    print(_cells(name, mean), flush=True)
    return mean


def _cells(name: str, mean: np.ndarray) -> str:
    cells = "".join(
        f"{100 * accuracy:16.2f} ({seconds:5.2f} s) {100 * gap:6.1f} %" for accuracy, seconds, gap in mean[:-1]
    )
    return f"{name:16s}{cells}{100 * mean[-1, 0]:8.2f}"


def _accuracies(
    X: np.ndarray, y: np.ndarray, split: int, columns: list[tuple[str, int, str, float, float]], most: int
) -> np.ndarray:
    """Return the test accuracy, the seconds and the relative gap of each fit, and of the SVM's in the last row."""
    X, X_test, y, y_test = hold_out(X, y, split)
    X, y = X[:most], y[:most]
    grid = METHODS[_REFERENCE].grid(*X.shape)
    estimators = [
        MultiOutputPNClassifier(norm=norm, max_units=k, scale=scale, strength=Ratio(ratio), tol=tol)
        for norm, k, scale, ratio, tol in columns
    ]
    found = []
    for estimator in [*estimators, clone(grid[choose(grid, X, y, split, np.inf)[0]])]:
        began = time.process_time()
        estimator.fit(X, y)
        seconds = time.process_time() - began
        found.append((estimator.score(X_test, y_test), seconds, getattr(estimator, "relative_gap_", np.nan)))
    return np.array(found)


if __name__ == "__main__":
    sys.exit(main())
