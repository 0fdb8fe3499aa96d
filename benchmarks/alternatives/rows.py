"""From how many rows on a network is fitted faster than an SVM: times and test accuracies against the rows n.

Letter and usps, and the synthetic classes of ``speed.scaling`` in 20 features, with a tenth of the labels at random.
Each method is the first of its grid, at its defaults or nearly so; the test part is the same for all n. A method that
took longer than ``--cap`` seconds is not fitted to more rows. One thread; mopn's code is loaded before::

    OMP_NUM_THREADS=1 python -m benchmarks.alternatives.rows --data FOLDER --out FOLDER
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.alternatives.figure import STYLES
from benchmarks.alternatives.methods import METHODS
from benchmarks.common.collection import hold_out, load_raw
from benchmarks.common.study import make_parser, run
from benchmarks.speed.scaling import data

__all__ = ["main"]

_METHODS = ("mopn", "svc-quadratic-ovo", "svc-quadratic-ovr", "boosting")
_SETS = {"letter": 15_000, "usps": 6_973, "synthetic": 1_000_000}
_LEAST, _FACTOR, _TEST = 500, 2, 10_000

# Rows, seconds, and test accuracy.
Curve = list[tuple[int, float, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("alternatives.rows", __doc__, sets=list(_SETS))
    parser.add_argument("--most", type=int, default=1_000_000, help="most rows (default 1,000,000)")
    parser.add_argument("--cap", type=float, default=60.0, help="seconds of a method's last fit (default 60)")
    parser.add_argument("--out", type=Path, help="folder for the plot, rows.png (default: no plot)")
    return parser


def _program(args: argparse.Namespace) -> None:
    with threadpool_limits(1):
        found = {name: _curves(name, args) for name in args.sets}
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        _draw(found, args.out / "rows.png")
        print(f"written: {args.out / 'rows.png'}")


def _load(name: str, folder: str, most: int) -> tuple[np.ndarray, ...]:
    """Return X and y to fit, in a random order, and those of the test."""
    if name != "synthetic":
        X, y, _ = load_raw(name, folder)
        X, X_test, y, y_test = hold_out(X, y, 0)
        return X, y, X_test, y_test
    n = min(most, _SETS[name])
    X, y = data(n + _TEST, 20, 10)
    return X[:n], y[:n], X[n:], y[n:]


def _curves(name: str, args: argparse.Namespace) -> dict[str, Curve]:
    """Fit all methods to more and more rows, and print a line for each number."""
    X, y, X_test, y_test = _load(name, args.data, args.most)
    print(f"\n{name}: {X.shape[1]} features, {len(np.unique(y))} classes; seconds of a fit and test accuracy")
    print(f"{'n':>8}" + "".join(f"{METHODS[method].label:>28}" for method in _METHODS))
    most = min(args.most, len(X))
    sizes = [size for size in _LEAST * _FACTOR ** np.arange(12) if size < most] + [most]
    curves: dict[str, Curve] = {method: [] for method in _METHODS}
    METHODS["mopn"].grid(*X.shape)["defaults"].fit(X[:_LEAST], y[:_LEAST])
    for n in sizes:
        cells = []
        for method, curve in curves.items():
            over = bool(curve) and curve[-1][1] > args.cap
            if not over:
                curve.append((n, *_fit(method, X[:n], y[:n], X_test, y_test)))
            cells.append("" if over else f"{curve[-1][1]:.3f} s {100 * curve[-1][2]:.2f} %")
        print(f"{n:8d}" + "".join(f"{cell:>28}" for cell in cells), flush=True)
    return curves


def _fit(method: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> tuple[float, float]:
    """Return the seconds and the test accuracy of the plainest estimator of a method."""
    model = clone(next(iter(METHODS[method].grid(*X.shape).values())))
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    return seconds, float(np.mean(model.predict(X_test) == y_test))


def _draw(found: dict[str, dict[str, Curve]], path: Path) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    from benchmarks.common.figures import legend_below, plt, save, tidy

    figure, axes = plt.subplots(
        2, len(found), figsize=(3.6 * len(found), 5.6), layout="constrained", squeeze=False, sharex="col"
    )
    for (name, curves), (top, bottom) in zip(found.items(), axes.T, strict=True):
        for method, curve in curves.items():
            n, seconds, accuracies = np.array(curve).T
            color, marker = STYLES[method]
            style = {"color": color, "marker": marker, "label": METHODS[method].label}
            top.loglog(n, seconds, **style)
            bottom.semilogx(n, 100 * accuracies, **style)
        top.set_title(name)
        bottom.set_xlabel("rows to fit, n")
        bottom.xaxis.set_major_locator(LogLocator(subs=(1, 3) if curve[-1][0] < 100_000 else (1,)))
        bottom.xaxis.set_major_formatter("{x:,.0f}")
        bottom.xaxis.set_minor_formatter(NullFormatter())
        for ax in (top, bottom):
            tidy(ax)
    axes[0, 0].set_ylabel("seconds of a fit")
    axes[1, 0].set_ylabel("test accuracy (%)")
    legend_below(figure, *axes[0, 0].get_legend_handles_labels(), 4)
    save(figure, path)


if __name__ == "__main__":
    sys.exit(main())
