"""How fast fits are proven optimal: certified relative gap against time, for every norm and data set.

Logistic loss, [1, x], refits of both layers, exact oracles, at fractions of the smallest strength whose solution is
zero. The paper's sets: the training half of split 0, features in [-1, 1]. Digits, usps and mnist (64, 256 and 784
features): all samples, divided by their largest entry. ``--tol 1e-6`` asks for more::

    OMP_NUM_THREADS=1 python -m benchmarks.certificates --data FOLDER
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

import mopn
from benchmarks.common.collection import SOURCES, load_raw
from benchmarks.common.datasets import DATA_SETS, load, split
from benchmarks.common.figures import legend_below, plt, save
from benchmarks.common.printing import Table
from benchmarks.common.sources import check
from benchmarks.common.study import make_parser, out_folder, run
from mopn.plotting import plot_convergence
from mopn.plotting.convergence import NORM_COLORS

_PIXELS = ("digits", "usps", "mnist")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("certificates", __doc__, sets=[*DATA_SETS, *_PIXELS], results="certificates")
    parser.add_argument(
        "--fractions",
        nargs="+",
        type=float,
        default=[0.2, 0.02],
        help="strengths, as mopn.Ratio",
    )
    parser.add_argument("--tol", type=float, default=1e-4, help="relative gap to reach (default 1e-4)")
    parser.add_argument("--max-time", type=float, default=120.0, help="seconds a fit (default 120)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print a row a fit, and write the plot."""
    check(SOURCES, args.sets, args.data)
    out = out_folder(args)
    out.mkdir(parents=True, exist_ok=True)
    table = Table("set:9s, norm:8s, fraction:8g, certified gap:.2e, time:7.2f s, rounds:7d, units:6d, status:s")
    fig, axes = plt.subplots(
        len(args.fractions), len(args.sets), figsize=(3.6 * len(args.sets), 3.2 * len(args.fractions)),
        layout="constrained", squeeze=False, sharey=True,
    )  # fmt: skip
    for column, name in enumerate(args.sets):
        X, y = samples(name, args.data)
        for row, fraction in enumerate(args.fractions):
            runs = {}
            for norm in NORM_COLORS:
                result = prove(X, y, norm, fraction, args.tol, args.max_time)
                proven = result.gap / result.fun, result.time, result.nit, len(result.basis), result.status.name
                table.row(name, norm, fraction, *proven)
                runs[norm] = result
            draw(runs, axes[row, column])
            axes[row, column].set_title(f"{name}, {fraction:g} of the largest")
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    legend_below(fig, handles, labels, len(labels))
    save(fig, out / "certificates.png", dpi=120)
    print(f"\nwritten: {out / 'certificates.png'}")


def draw(runs: dict[str, mopn.Result], ax: Axes) -> None:
    """Draw the gaps of all norms against time, and mark the rounds that only proved: the objective was final before."""
    plot_convergence(runs, x="time", y="relative_gap", ax=ax)
    for norm, result in runs.items():
        trace = result.trace
        final = np.flatnonzero(trace["fun"] <= result.fun + 1e-5 * abs(result.fun))
        gaps = trace["gap"][final] / np.abs(trace["fun"][final])
        ax.plot(trace["time"][final], gaps, "o", color=NORM_COLORS[norm], markersize=5, markerfacecolor="white")
    ax.plot([], [], "o", color="0.3", markerfacecolor="white", label="the objective is final to 1e-5")
    ax.get_legend().remove()
    ax.set_xscale("log")


def samples(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples to fit."""
    if name in _PIXELS:
        X, y, _ = load_raw(name, folder)
        return X / np.abs(X).max(), y
    data = split(*load(name, folder), 0)
    return data.X_train, data.y_train


def prove(X: np.ndarray, y: np.ndarray, norm: str, fraction: float, tol: float, max_time: float) -> mopn.Result:
    """Fit at a ``mopn.Ratio`` until the gap is proven to be at most ``tol``."""
    problem = mopn.NetworkProblem(X, y, norm=norm, strength=mopn.Ratio(fraction), augment=True)
    solver = mopn.solvers.ConditionalGradient(refit="full", oracle="exact")
    return mopn.minimize(problem, solver, tol=tol, max_time=max_time)


if __name__ == "__main__":
    sys.exit(main())
