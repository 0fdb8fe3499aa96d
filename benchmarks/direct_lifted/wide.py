"""Figure 2: direct and lifted problems from the same model, on wide sparse data, by objective against time.

The paper's set, E2006-tfidf, is replaced by a synthetic one of its shape: 16,087 rows and 150,360 columns, but 200
entries a row. The lifted problem (equation 12) starts at factors of N(0, 0.01), the direct one (equation 13) at the
eigenvalues lambda and eigenvectors P of the same matrix, lambda fixed. A dummy is put in front of every row.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import mopn
from benchmarks.common.figures import legend_below, plt, save, tidy
from mopn.factorization.single_output import lifted_to_direct

_BETA, _RANK, _SEED = 100.0, 10, 0
_KERNELS = {"anova": "$A^2$", "homogeneous": "$H^2$"}
# Form ("signs" is the direct one with lambda of modulus 1), solver, and style.
METHODS = {
    "lifted CD": ("lifted", "CD", "#0072B2", "solid"),
    "direct CD": ("direct", "CD", "#D55E00", "solid"),
    "direct L-BFGS": ("direct", "L-BFGS", "#D55E00", (0, (4, 1.5))),
    "direct L-BFGS, signs": ("signs", "L-BFGS", "#CC79A7", (0, (4, 1.5))),
    "direct SGD": ("signs", "SGD", "#009E73", (0, (1, 1.2))),
    "lifted L-BFGS": ("lifted", "L-BFGS", "#0072B2", (0, (4, 1.5))),
}
# The grid over which SGD is tuned, and the passes after which the objective decides.
_STEPS, _DECAYS, _TUNING_PASSES = (3e-2, 1e-2, 3e-3, 1e-3), (0.0, 1.0), 5
_POINTS = 200
_NEAR = (0.1, 0.01)


@dataclass(frozen=True)
class Task:
    """One run: kernel, method, the size of the data and the seconds it may take."""

    kernel: str
    method: str
    n: int
    d: int
    nnz: int
    seconds: float


KEY = [field.name for field in fields(Task)]
COLUMNS = [*KEY, "start", "objective", "iterations", "step", "decay", "tuning", "curve_time", "curve"]
NUMBERS = ["start", "objective", "iterations", "tuning"]


def tasks(quick: bool) -> list[Task]:
    """Return the runs; coordinate descent needs a problem that is convex in each coordinate, as H^2 direct is not."""
    size = (2000, 20_000, 60, 2.0) if quick else (16_087, 150_360, 200, 40.0)
    pairs = product(_KERNELS, METHODS)
    return [Task(kernel, name, *size) for kernel, name in pairs if (kernel, name) != ("homogeneous", "direct CD")]


@lru_cache(maxsize=2)
def make_sparse(n: int, d: int, nnz: int, seed: int = _SEED) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return rows like tf-idf features and a target.

    Every row has ``nnz`` distinct columns, drawn by Zipf's law but for d / n of them, which see to it that every column
    occurs; weights are (1 + log tf) idf, and rows have norm 1. The target has a linear part, one of products of
    distinct features with rank 5, and noise; its mean is -3.7 and its standard deviation 0.6.
    """
    rng = np.random.default_rng(seed)
    columns = _zipf_columns(n, d, nnz, rng)
    counts = rng.geometric(0.4, size=(n, nnz))
    rarity = 1.0 + np.log((1.0 + n) / (1.0 + np.bincount(columns.ravel(), minlength=d)))
    values = (1.0 + np.log(counts)) * rarity[columns]
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    X = sparse.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, n * nnz + 1, nnz)), shape=(n, d))
    P = rng.standard_normal((5, d))
    linear = X @ rng.standard_normal(d)
    pairs = 0.5 * ((X @ P.T) ** 2 - X.power(2) @ np.square(P).T).sum(axis=1)
    y = linear / linear.std() + pairs / pairs.std() + 0.3 * rng.standard_normal(n)
    return X, -3.7 + 0.6 * (y - y.mean()) / y.std()


def _zipf_columns(n: int, d: int, nnz: int, rng: np.random.Generator) -> np.ndarray:
    """Return sorted distinct columns (n, nnz): of each row its share of all columns, and others by Zipf's law."""
    shares = np.cumsum(1.0 / (10.0 + np.arange(d)))
    shares /= shares[-1]
    columns = np.empty((n, nnz), dtype=np.int32)
    for row, own in zip(columns, np.array_split(rng.permutation(d), n), strict=True):
        others: np.ndarray = np.empty(0, dtype=np.int64)
        while len(others) < nnz - len(own):
            drawn = np.searchsorted(shares, rng.random(2 * nnz))
            others = np.setdiff1d(np.concatenate([others, drawn]), own)
        row[:] = np.sort(np.concatenate([own, rng.choice(others, nnz - len(own), replace=False)]))
    return columns


def problem_and_start(task: Task) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the problem of a method, and the start that all methods share.

    Factors U of N(0, 0.01) for the lifted problem. For the direct one their eigenvalues and eigenvectors, as the paper
    has it, or ("signs") lambda of modulus 1 and eigenvectors of the length that leaves the model and equation 13 as
    they are.
    """
    X, y = make_sparse(task.n, task.d, task.nnz)
    U = 0.1 * np.random.default_rng(_SEED).standard_normal((2, _RANK, task.d + 1))
    form, options = METHODS[task.method][0], {"kernel": task.kernel, "beta": _BETA}
    if form == "lifted":
        return mopn.LiftedProblem(X, y, rank=_RANK, augment=True, **options), {"U": U}
    lams, P = lifted_to_direct(U)
    if form == "signs":
        lams, P = np.sign(lams), np.sqrt(np.abs(lams))[:, None] * P
    options |= {"n_components": len(lams), "lams": lams, "fit_lower": "augment"}
    return mopn.FactorizationProblem(X, y, **options), {"P": P[None]}


def run(task: Task, folder: str) -> dict[str, Any]:
    """Solve for the given time and return a row."""
    warm_up(task)
    problem, start = problem_and_start(task)
    solver, tuning = _solver(task, problem, start)
    result = mopn.minimize(problem, solver, start=start, tol=0, max_iter=100_000, max_time=task.seconds)
    times, curve = result.trace["time"], result.trace["fun"]
    some = np.unique(np.linspace(0, len(curve) - 1, _POINTS).round().astype(int))
    return asdict(task) | {
        "start": f"{curve[0]:.8g}",
        "objective": f"{result.fun:.8g}",
        "iterations": result.nit,
        "step": getattr(solver, "step", ""),
        "decay": getattr(solver, "decay", ""),
        "tuning": f"{tuning:.1f}",
        "curve_time": " ".join(f"{value:.3f}" for value in times[some]),
        "curve": " ".join(f"{value:.8g}" for value in curve[some]),
    }


def warm_up(task: Task) -> None:
    """Compile the functions of the run, on a small set."""
    small = Task(task.kernel, task.method, 50, 200, 10, 1.0)
    problem, start = problem_and_start(small)
    solver = {"CD": mopn.solvers.CoordinateDescent(), "L-BFGS": mopn.solvers.LBFGS(), "SGD": mopn.solvers.SGD(1e-6)}
    mopn.minimize(problem, solver[METHODS[task.method][1]], start=start, tol=0, max_iter=2)


def _solver(task: Task, problem: Any, start: dict[str, np.ndarray]) -> tuple[Any, float]:
    """Return the solver, and the seconds spent on tuning it: SGD alone has something to tune."""
    name = METHODS[task.method][1]
    if name == "CD":
        return mopn.solvers.CoordinateDescent(), 0.0
    if name == "L-BFGS":
        return mopn.solvers.LBFGS(), 0.0
    best, least, seconds = None, np.inf, 0.0
    for step, decay in product(_STEPS, _DECAYS):
        solver = mopn.solvers.SGD(step=step, decay=decay)
        result = mopn.minimize(problem, solver, start=start, tol=0, max_iter=_TUNING_PASSES)
        seconds += result.time
        last = result.trace["fun"][-1]
        # A run that is no longer finite ends early.
        if result.nit == _TUNING_PASSES and last < least:
            best, least = solver, last
    return best, seconds


def _curve(row: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return times and objectives, each the least so far: SGD does not descend all the way."""
    times, curve = (np.array(row[name].split(), dtype=float) for name in ("curve_time", "curve"))
    return times, np.minimum.accumulate(curve)


def table(frame: pd.DataFrame) -> str:
    """Return the objectives over the start's, and how long it took to come near the least of all methods."""
    lines = []
    for kernel, runs in frame.groupby("kernel", sort=False):
        least = runs["objective"].min()
        first = runs.iloc[0]
        lines.append(
            f"\n{kernel}: n = {first['n']}, d = {first['d']}, {first['nnz']} entries a row; beta = {_BETA:g}, "
            f"r = {_RANK}, k = {2 * _RANK}; {float(first['seconds']):g} s a run\n"
            "method                       start   objective     / start   iterations   within 10 %    within 1 %"
        )
        for _, row in runs.iterrows():
            times, curve = _curve(row)
            near = " ".join(f"{_seconds(times, curve, (1.0 + share) * least):>13s}" for share in _NEAR)
            settings = f"   step {row['step']}, decay {row['decay']}" if row["step"] else ""
            tuned = f", tuned in {row['tuning']:.0f} s" if settings else ""
            lines.append(
                f"{row['method']:22s}{row['start']:12.1f}{row['objective']:12.2f}"
                f"{row['objective'] / row['start']:12.3e}{row['iterations']:13d} {near}{settings}{tuned}"
            )
    return "\n".join(lines)


def _seconds(times: np.ndarray, curve: np.ndarray, level: float) -> str:
    reached = curve <= level
    return f"{times[np.argmax(reached)]:.1f} s" if reached.any() else "-"


def draw(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Draw for each kernel the objective over the start's, and its excess over the least of all methods."""
    figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.0), layout="constrained", sharex=True)
    for column, (kernel, title) in zip(axes.T, _KERNELS.items(), strict=True):
        _panels(column, frame[frame["kernel"] == kernel])
        column[0].set_title(title)
        column[1].set_xlabel("seconds")
    axes[0, 0].set_ylabel("objective / start's")
    axes[1, 0].set_ylabel("excess over the least of all, relative")
    seconds = float(frame["seconds"].iloc[0])
    axes[0, 0].set_xlim(seconds / 200, seconds)
    legend_below(figure, *axes[0, 0].get_legend_handles_labels(), 3)
    save(figure, path)


def _panels(axes: Sequence[Any], runs: pd.DataFrame) -> None:
    least = runs["objective"].min()
    for _, row in runs.iterrows():
        times, curve = _curve(row)
        _, _, color, line = METHODS[row["method"]]
        label = row["method"].replace("signs", r"$\lambda = \pm 1$")
        style = {"color": color, "linestyle": line, "linewidth": 1.7, "label": label}
        axes[0].plot(times, curve / row["start"], **style)
        axes[1].plot(times, np.maximum(curve / least - 1.0, 1e-12), **style)
    for ax in axes:
        ax.set_xscale("log")
        ax.set_yscale("log")
        tidy(ax)
    axes[1].set_ylim(1e-5, None)
