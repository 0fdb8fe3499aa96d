"""A cell of the recommender studies: its rows and parts, the choice of the strength, the fit and the test."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.recommender.data import Parts, Ratings, random_parts
from benchmarks.recommender.models import FITS, Fitted, Options
from benchmarks.recommender.plan import MEASURES, Cell
from mopn.ranking import grouped_ndcg


@dataclass(frozen=True)
class Task:
    """Rows, targets, users and parts that a cell works on."""

    X: sparse.csr_array
    y: np.ndarray
    users: np.ndarray
    parts: Parts


def make_task(cell: Cell, ratings: Ratings) -> Task:
    """Return the data of a cell."""
    shares = (0.5, 0.25) if cell.study == "ranking" else (0.5625, 0.1875)
    parts = random_parts(len(ratings.y), cell.split, shares, cell.rows)
    return Task(ratings.rows(), ratings.y, ratings.users, parts)


def run_cell(cell: Cell, task: Task) -> dict[str, Any]:
    """Choose the strength, fit and test; return a row.

    In the ranking study every measure has the strength which is best by it on the held part; else all are of
    the strength with the best RMSE there, fitted again to all that is not for the test. ``curve`` has the RMSE of
    every strength on the held part, ``strength`` and ``units`` are of the best.
    """
    parts, began, ranked = task.parts, time.perf_counter(), cell.study != "kernels"
    fits = [_fit(cell, task, strength, parts.fit) for strength in cell.grid] if len(cell.grid) > 1 else []
    curves = [_measured(task, predict, parts.held, ranked) for predict, _ in fits]
    best = int(np.argmin([found["rmse"] for found in curves])) if curves else 0
    if cell.study == "ranking":
        tested = [_measured(task, predict, parts.test, ranked) for predict, _ in fits]
        found = {name: tested[_best(name, curves)][name] for name in MEASURES}
        fitted, units = parts.fit, fits[best][1]
    else:
        fitted = parts.train
        predict, units = _fit(cell, task, cell.grid[best], fitted)
        found = _measured(task, predict, parts.test, ranked)
    return cell.key | {
        "fitted": len(fitted),
        "strength": f"{cell.grid[best]:g}",
        "validation": f"{curves[best]['rmse']:.4f}" if curves else "",
        **{name: f"{found[name]:.4f}" if name in found else "" for name in MEASURES},
        "units": units,
        "seconds": f"{time.perf_counter() - began:.1f}",
        "curve": " ".join(f"{found['rmse']:.4f}" for found in curves),
    }


def _best(name: str, curve: Sequence[dict[str, float]]) -> int:
    """Return the place of the best value of a measure."""
    values = [found[name] for found in curve]
    return int(np.argmin(values) if name == "rmse" else np.argmax(values))


def _measured(task: Task, predict: Callable[[Any], np.ndarray], places: np.ndarray, ranked: bool) -> dict[str, float]:
    return measures(task.y[places], predict(task.X[places]), task.users[places], ranked)


def _fit(cell: Cell, task: Task, strength: float, places: np.ndarray) -> Fitted:
    options = Options(cell.k, strength, cell.split)
    return FITS[cell.model](task.X[places], task.y[places], options)


def _rmse(y: np.ndarray, outputs: np.ndarray) -> float:
    return float(np.sqrt(np.mean((outputs - y) ** 2)))


def measures(y: np.ndarray, outputs: np.ndarray, users: np.ndarray, ranked: bool = True) -> dict[str, float]:
    """Return the RMSE and, if asked for, nDCG@1 and nDCG@5 by both gains."""
    found = {"rmse": _rmse(y, outputs)}
    if ranked:
        for name, gain in (("ndcg", "exponential"), ("linear", "linear")):
            found |= {f"{name}{k}": grouped_ndcg(y, outputs, users, k, gain) for k in (1, 5)}
    return found
