"""Figure 4: test R^2 against the number of bases on abalone, cadata and cpusmall.

Networks of degree 3 (lifted H^3 with a dummy and rank k / 3; direct A^3 with two dummies and k units) against
kernels (1 + <x, x'>)^3 at k random training rows: the Nyström method, and random selection, whose weights have a ridge
of their own. Kernel ridge regression on all rows is computed by the kernel's own 165 features
(cpusmall: 455), so without the n x n matrix. The paper lifts A^3 too; its appendix lifts A^2 only, so A^3 is direct
here.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import combinations_with_replacement
from math import factorial, prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mopn
from benchmarks.common.collection import number_sets
from benchmarks.common.datasets import scale
from benchmarks.common.figures import legend_below, plt, save, tidy
from benchmarks.common.sources import arff_rows, check, read

_DEGREE = 3
_BASES, _SPLITS, _DRAWS, _EPOCHS = (6, 15, 30, 60, 90), 3, 5, 100
_NETWORK_STRENGTHS, _KERNEL_STRENGTHS = np.logspace(-4, 4, 5), np.logspace(-4, 4, 10)
# Directions of the landmarks' kernel matrix below this, relative to the largest eigenvalue, are rounding.
_ZERO = 1e-12

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Task:
    """Select a strength and fit: set, method, number of bases, split, draw of the landmarks, epochs."""

    set: str
    method: str
    k: int
    split: int
    draw: int
    epochs: int


KEY = [field.name for field in fields(Task)]
COLUMNS = [*KEY, "strength", "validation", "test", "train", "seconds"]
NUMBERS = [name for name in COLUMNS if name not in ("set", "method")]


def tasks(quick: bool) -> list[Task]:
    """Return the runs: three splits, and five draws of the landmarks in each."""
    sets, bases, splits, epochs = (["abalone"], (6, 30), 1, 30) if quick else (list(SETS), _BASES, _SPLITS, _EPOCHS)
    found = []
    for name in sets:
        for index in range(splits):
            found.append(Task(name, "kernel-ridge", 0, index, 0, 0))
            for k in bases:
                found += [Task(name, method, k, index, 0, epochs) for method in ("lifted", "direct")]
                found += [
                    Task(name, method, k, index, i, 0) for method in ("nystrom", "selection") for i in range(_DRAWS)
                ]
    return found


# -- data --------------------------------------------------------------------------------------------------------------


# Sex in abalone, as LIBSVM codes it.
_CODES = {"M": "1", "F": "2", "I": "3"}


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read an ARFF file whose categories are numbers, where ``collection`` has a column for each."""
    table = np.array([[_CODES.get(cell, cell) for cell in row] for row in arff_rows(path)], dtype=float)
    return table[:, :-1], table[:, -1]


SETS = number_sets(_read)


def check_data(folder: str | os.PathLike[str]) -> None:
    """Raise ``MissingDataError`` unless the files of the three sets are there."""
    check(SETS, SETS, folder, "--figures 1 2")


@lru_cache
def load(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a set: features (n, d), unscaled, and targets (n,)."""
    return read(SETS, name, folder)


@dataclass(frozen=True)
class Split:
    """Training and test rows, and which of the former are held out to select a strength."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    held_out: np.ndarray


def split(X: np.ndarray, y: np.ndarray, index: int) -> Split:
    """Return split number ``index``: 75 % training, a quarter of it held out, and 25 % test.

    Features are mapped to [-1, 1] and targets to mean 0 and variance 1 by the training rows.
    """
    order = np.random.default_rng(index).permutation(len(y))
    train, test = np.split(order, [round(0.75 * len(y))])
    X, y = scale(X, X[train]), (y - y[train].mean()) / y[train].std()
    return Split(X[train], y[train], X[test], y[test], np.arange(len(train)) >= round(0.75 * len(train)))


# -- methods: each returns a prediction for every strength -------------------------------------------------------------


def networks(task: Task, X: np.ndarray, y: np.ndarray, strengths: Sequence[float]) -> list[Predict]:
    """Fit the lifted problem with kernel H^3 or the direct one with A^3 by coordinate descent, from the same seed."""
    return [_network(task, X, y, float(beta)) for beta in strengths]


def _network(task: Task, X: np.ndarray, y: np.ndarray, beta: float) -> Predict:
    shared = {"degree": _DEGREE, "beta": beta, "rng": task.split}
    if task.method == "lifted":
        problem = mopn.LiftedProblem(X, y, rank=task.k // _DEGREE, augment=True, **shared)
    else:
        problem = mopn.FactorizationProblem(
            X, y, n_components=task.k, penalty="frobenius", fit_lower="augment", **shared
        )
    result = mopn.minimize(problem, mopn.solvers.CoordinateDescent(), tol=1e-4, max_iter=task.epochs)
    return mopn.FactorizationModel.from_result(problem, result).predict


def nystrom(task: Task, X: np.ndarray, y: np.ndarray, strengths: Sequence[float]) -> list[Predict]:
    """Ridge regression on Nyström features of random rows."""
    return _on_features(nystrom_features(_landmarks(task, X)), X, y, strengths)


def selection(task: Task, X: np.ndarray, y: np.ndarray, strengths: Sequence[float]) -> list[Predict]:
    """Ridge regression on the kernel at random rows: equation 1 with these as bases and lambda fitted."""
    landmarks = _landmarks(task, X)
    return _on_features(lambda rows: _kernel(rows, landmarks), X, y, strengths)


def kernel_ridge(task: Task, X: np.ndarray, y: np.ndarray, strengths: Sequence[float]) -> list[Predict]:
    """Kernel ridge regression on all rows."""
    return _on_features(cubic_features, X, y, strengths)


METHODS: dict[str, tuple[Callable[..., list[Predict]], np.ndarray]] = {
    "lifted": (networks, _NETWORK_STRENGTHS),
    "direct": (networks, _NETWORK_STRENGTHS),
    "nystrom": (nystrom, _KERNEL_STRENGTHS),
    "selection": (selection, _KERNEL_STRENGTHS),
    "kernel-ridge": (kernel_ridge, _KERNEL_STRENGTHS),
}


def _landmarks(task: Task, X: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng([task.split, task.draw])
    return X[rng.choice(len(X), min(task.k, len(X)), replace=False)]


def _kernel(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return (1.0 + X @ Z.T) ** _DEGREE


def nystrom_features(landmarks: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the map to features whose inner products are the Nyström approximation of the kernel."""
    values, vectors = np.linalg.eigh(_kernel(landmarks, landmarks))
    kept = values > _ZERO * values[-1]
    weights = vectors[:, kept] / np.sqrt(values[kept])
    return lambda X: _kernel(X, landmarks) @ weights


def cubic_features(X: np.ndarray) -> np.ndarray:
    """Return the features whose inner products are (1 + <x, x'>)^3: the monomials of [1, x] of degree 3, weighted."""
    Z = np.column_stack([np.ones(len(X)), X])
    columns = []
    for indices in combinations_with_replacement(range(Z.shape[1]), _DEGREE):
        count = factorial(_DEGREE) // prod(factorial(times) for times in Counter(indices).values())
        columns.append(np.sqrt(count) * np.prod(Z[:, indices], axis=1))
    return np.column_stack(columns)


def ridge_path(features: np.ndarray, y: np.ndarray, strengths: Sequence[float]) -> list[np.ndarray]:
    """Minimise 1/2 ||features w - y||^2 + strength / 2 ||w||^2 for each strength."""
    left, values, right = np.linalg.svd(features, full_matrices=False)
    return [right.T @ (values / (values**2 + strength) * (left.T @ y)) for strength in strengths]


def _on_features(
    features: Callable[[np.ndarray], np.ndarray], X: np.ndarray, y: np.ndarray, strengths: Sequence[float]
) -> list[Predict]:
    return [lambda rows, w=w: features(rows) @ w for w in ridge_path(features(X), y, strengths)]


# -- one run -----------------------------------------------------------------------------------------------------------


def run(task: Task, folder: str) -> dict[str, Any]:
    """Select the strength on the rows held out, fit on all training rows, and return a row."""
    data = split(*load(task.set, folder), task.split)
    fit, strengths = METHODS[task.method]
    out = data.held_out
    began = time.perf_counter()
    candidates = fit(task, data.X[~out], data.y[~out], strengths)
    scores = [r_squared(data.y[out], predict(data.X[out])) for predict in candidates]
    best = int(np.argmax(scores))
    (predict,) = fit(task, data.X, data.y, strengths[best : best + 1])
    seconds = time.perf_counter() - began
    return asdict(task) | {
        "strength": f"{strengths[best]:.3g}",
        "validation": f"{scores[best]:.4f}",
        "test": f"{r_squared(data.y_test, predict(data.X_test)):.4f}",
        "train": f"{r_squared(data.y, predict(data.X)):.4f}",
        "seconds": f"{seconds:.2f}",
    }


def r_squared(y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the coefficient of determination."""
    return 1.0 - float(np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))


# -- report ------------------------------------------------------------------------------------------------------------


def table(frame: pd.DataFrame) -> str:
    """Return test R^2 by number of bases: median, least and largest over splits and draws."""
    lines = []
    for name, runs in frame.groupby("set", sort=False):
        bases = sorted(runs["k"].unique())[1:]
        lines.append(f"\n{name}: test R^2, median (least to largest) over splits and draws")
        lines.append(f"{'k':13s}" + "".join(f"{k:>26d}" for k in bases))
        for method, of_method in runs.groupby("method", sort=False):
            groups = [of_method[of_method["k"] == k] for k in ([0] if method == "kernel-ridge" else bases)]
            lines.append(f"{method:13s}" + "".join(f"{_spread(group['test']):>26s}" for group in groups))
        seconds = ", ".join(
            f"{method} {total:.0f} s" for method, total in runs.groupby("method")["seconds"].sum().items()
        )
        lines.append(f"time of all runs: {seconds}")
    return "\n".join(lines)


def _spread(values: pd.Series) -> str:
    return f"{values.median():.3f} ({values.min():.3f} to {values.max():.3f})"


_STYLES = {
    "lifted": (r"$H^3$, lifted, r = k/3", "#0072B2", "o", "solid"),
    "direct": (r"$A^3$, direct", "#D55E00", "s", "solid"),
    "nystrom": ("Nyström", "#CC79A7", "^", "solid"),
    "selection": ("random selection", "#009E73", "v", (0, (3, 2))),
}


def draw(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Draw a panel a set: median and range of test R^2 by number of bases."""
    names = list(frame["set"].unique())
    figure, axes = plt.subplots(
        1, len(names), figsize=(max(4.3 * len(names), 6.5), 4.4), squeeze=False, layout="constrained"
    )
    for ax, name in zip(axes[0], names, strict=True):
        _panel(ax, frame[frame["set"] == name])
        ax.set_title(name)
        ax.set_xlabel("number of bases k")
    axes[0, 0].set_ylabel("test $R^2$, median and range")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    legend_below(figure, handles, labels, min(len(labels), 2 * len(names) + 1))
    save(figure, path)


def _panel(ax: Any, runs: pd.DataFrame) -> None:
    level = runs[runs["method"] == "kernel-ridge"]["test"].median()
    ax.axhline(level, color="0.35", linestyle=(0, (5, 2)), linewidth=1.3, label="kernel ridge, all rows")
    medians = [level]
    for method, (label, color, marker, line) in _STYLES.items():
        by_bases = runs[runs["method"] == method].groupby("k")["test"]
        k, middle = np.array(sorted(by_bases.groups)), by_bases.median().to_numpy()
        ax.plot(k, middle, color=color, linestyle=line, marker=marker, markersize=4.5, linewidth=1.7, label=label)
        ax.fill_between(k, by_bases.min(), by_bases.max(), color=color, alpha=0.12, linewidth=0)
        medians += list(middle)
    low, high = np.sort(medians)[[1, -1]]
    ax.set_ylim(max(low - 0.08 * (high - low), -0.1), high + 0.12 * (high - low))
    tidy(ax)
