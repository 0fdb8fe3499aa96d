"""Figure 1: is it useful to fit lambda? The direct problem of degree 2 on diabetes, with its proven minimum.

Equation 13 is minimised with lambda fitted, fixed to 1, and fixed to random signs: coordinate descent for A^2, L-BFGS
for H^2. With fitted lambda and enough units its minimum is the minimum of a convex problem (Theorem 2), which
``mopn.NetworkProblem`` solves and proves; every run is measured against that.
"""

import os
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import mopn
from benchmarks.common.figures import legend_below, plt, save, tidy

_BETA, _TRAIN, _ITERATIONS = 10.0, 331, 1000
# The paper's number of units, and twice the largest rank of a symmetric 10 x 10 matrix: enough units of either sign.
_FEW, _ENOUGH = 4, 20
# Coordinate descent's epochs, or L-BFGS's iterations; L-BFGS finishes runs that are to be proven.
_LIMITS = {_FEW: _ITERATIONS, _ENOUGH: 200}
DATA = {"standardised": "features standardised, y centred", "as is": "features of norm 1 and y as they are"}
_KERNELS = {"anova": ("$A^2$", "coordinate descent"), "homogeneous": ("$H^2$", "L-BFGS")}
_LAMS = {
    "fit": (r"a) $\lambda$ fitted", "#0072B2", "solid"),
    "ones": (r"b) $\lambda = 1$", "#D55E00", (0, (5, 1.5))),
    "signs": (r"c) $\lambda = \pm 1$ at random", "#009E73", (0, (1, 1.2))),
}
_GRID = np.unique(np.concatenate([[0], np.geomspace(1, _ITERATIONS, 60).round()])).astype(int)


@dataclass(frozen=True)
class Task:
    """One run: which data, kernel and lambda, how many units, and the seed of the start."""

    data: str
    kernel: str
    lams: str
    k: int
    seed: int


KEY = [field.name for field in fields(Task)]
COLUMNS = [*KEY, "start", "objective", "excess", "gap", "units", "iterations", "seconds", "curve"]
NUMBERS = [name for name in COLUMNS if name not in ("data", "kernel", "lams", "curve")]


def tasks(quick: bool) -> list[Task]:
    """Return the runs: ten starts with four units, five with twenty."""
    starts = {_FEW: 3, _ENOUGH: 1} if quick else {_FEW: 10, _ENOUGH: 5}
    return [
        Task(data, kernel, lams, k, seed)
        for data in DATA
        for kernel in _KERNELS
        for k, count in starts.items()
        for lams in _LAMS
        for seed in range(count)
    ]


@lru_cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the 331 training rows of diabetes."""
    X, y = load_diabetes(return_X_y=True)
    train = np.random.default_rng(0).permutation(len(y))[:_TRAIN]
    X, y = X[train], y[train]
    return (X, y) if name == "as is" else ((X - X.mean(axis=0)) / X.std(axis=0), y - y.mean())


def _network_problem(name: str, kernel: str) -> mopn.NetworkProblem:
    return mopn.NetworkProblem(*data(name), loss="squared", kernel=kernel, norm="l1", strength=_BETA)


@lru_cache
def proven_minimum(name: str, kernel: str) -> tuple[float, float, int]:
    """Return the minimum of equation 13 over any number of units: value, proven lower bound, number of units."""
    solver = mopn.solvers.ConditionalGradient(refit="full")
    result = mopn.minimize(_network_problem(name, kernel), solver, tol=1e-6)
    return result.fun, result.lower, len(result.basis)


def run(task: Task, folder: str) -> dict[str, Any]:
    """Solve and return a row; ``excess`` is over the proven minimum, ``gap`` the point's own bound, relative."""
    problem = _problem(task, task.lams)
    solver = mopn.solvers.LBFGS() if task.kernel == "homogeneous" else mopn.solvers.CoordinateDescent()
    first = mopn.minimize(problem, solver, tol=1e-6, max_iter=_LIMITS[task.k])
    last = first if task.k == _FEW else _polished(task, first)
    least, _, _ = proven_minimum(task.data, task.kernel)
    certificate = mopn.certify(_network_problem(task.data, task.kernel), *problem.network(last))
    curve = first.trace["fun"]
    return asdict(task) | {
        "start": f"{curve[0]:.8g}",
        "objective": f"{last.fun:.8g}",
        "excess": f"{last.fun / least - 1.0:.3e}",
        "gap": f"{certificate.gap / certificate.fun:.3e}",
        "units": int(np.count_nonzero(last.lams * np.square(last.P[0]).sum(axis=1))),
        "iterations": first.nit,
        "seconds": f"{first.time:.4f}",
        # Runs that end early keep their last value.
        "curve": " ".join(f"{value:.8g}" for value in curve[np.minimum(_GRID, len(curve) - 1)]),
    }


def _problem(task: Task, lams: Any) -> mopn.FactorizationProblem:
    # The default start draws P from N(0, 0.01); a fitted lambda is fitted before P.
    X, y = data(task.data)
    k, seed = task.k, task.seed
    return mopn.FactorizationProblem(X, y, n_components=k, kernel=task.kernel, beta=_BETA, lams=lams, rng=seed)


def _polished(task: Task, result: mopn.Result) -> mopn.Result:
    """Go on by L-BFGS with lambda as it is: the last digits cost coordinate descent thousands of epochs."""
    problem = _problem(task, result.lams)
    return mopn.minimize(problem, mopn.solvers.LBFGS(), start={"P": result.P}, tol=1e-12, max_iter=3000)


def table(frame: pd.DataFrame) -> str:
    """Return the objectives over the worst start's, the excess over the proven minimum, and the units in use."""
    lines = []
    for (name, kernel, k), group in frame.groupby(["data", "kernel", "k"], sort=False):
        least, lower, units = proven_minimum(name, kernel)
        lines.append(
            f"\n{name}, {kernel}, k = {k}; proven minimum {least:.6g} ({units} units, gap {1 - lower / least:.0e})\n"
            "lambda   objective / worst start    excess over the minimum     gap proven   units in use    seconds\n"
            "           mean     min     max      mean      min      max        median    least to most     median"
        )
        worst = group["start"].max()
        for lams, runs in group.groupby("lams", sort=False):
            lines.append(f"{lams:8s}{_summary(runs, worst)}")
    return "\n".join(lines)


def _summary(runs: pd.DataFrame, worst: float) -> str:
    relative, excess, units = runs["objective"] / worst, runs["excess"], runs["units"]
    return (
        f"{relative.mean():7.4f} {relative.min():7.4f} {relative.max():7.4f}  {excess.mean():8.1e} {excess.min():8.1e} "
        f"{excess.max():8.1e}     {runs['gap'].median():9.1e} {units.min():9d} to {units.max():2d} "
        f"{runs['seconds'].median():10.3f}"
    )


def draw(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Draw a panel a kernel and data: mean and range of the objective over the starts, by iterations."""
    frame = frame[frame["k"] == _FEW]
    shape = len(DATA), len(_KERNELS)
    figure, axes = plt.subplots(*shape, figsize=(9.0, 3.4 * shape[0]), layout="constrained", sharex=True, squeeze=False)
    for row, name in zip(axes, DATA, strict=True):
        for ax, kernel in zip(row, _KERNELS, strict=True):
            _panel(ax, frame[(frame["data"] == name) & (frame["kernel"] == kernel)], name, kernel)
        row[0].set_ylabel("objective / worst start's; band: all starts")
    for ax, (_, solver) in zip(axes[-1], _KERNELS.values(), strict=True):
        ax.set_xlabel(f"{'epochs' if 'descent' in solver else 'iterations'} of {solver}")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    legend_below(figure, handles, labels, len(labels))
    save(figure, path)


def _panel(ax: Any, frame: pd.DataFrame, name: str, kernel: str) -> None:
    worst = frame["start"].max()
    for lams, (label, color, line) in _LAMS.items():
        curves = np.array([text.split() for text in frame[frame["lams"] == lams]["curve"]], dtype=float)[:, 1:] / worst
        ax.plot(_GRID[1:], curves.mean(axis=0), color=color, linestyle=line, linewidth=1.9, label=label)
        ax.fill_between(_GRID[1:], curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.13, linewidth=0)
    least = proven_minimum(name, kernel)[0] / worst
    ax.axhline(least, color="0.35", linewidth=1.1, linestyle=(0, (6, 2, 1, 2)), label="proven minimum, any k")
    ax.set_xscale("log")
    ax.set_xlim(1, _ITERATIONS)
    ax.set_title(f"{_KERNELS[kernel][0]}: {DATA[name]}", fontsize=10.5)
    tidy(ax)
