"""Cells of Table 3: a model on a split of a graph, its strength, its fit and the area under the ROC curve."""

import time
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import mopn
from benchmarks.links.data import Graph, LinkSplit, hold_out, split
from benchmarks.links.models import BY_NAME, Model, make_problem, pair_scores, tables
from mopn.solvers import LBFGS, CoordinateDescent

# -- the measure -------------------------------------------------------------------------------------------------------

# Pairs whose scores are held at a time.
_BLOCK = 1 << 22


def area_under_curve(
    left: np.ndarray, right: np.ndarray, graph: Graph, known: np.ndarray, links: np.ndarray, block: int = _BLOCK
) -> float:
    """Return the share of (link, other pair) that the scores put in the right order; ties count half."""
    positive = graph.mask(links)
    negative = ~(positive | graph.mask(known))
    if graph.symmetric:
        negative &= np.triu(np.ones(graph.shape, dtype=bool), 1)
    rows = max(1, block // graph.shape[1])
    blocks = [slice(first, first + rows) for first in range(0, graph.shape[0], rows)]
    found = np.sort(np.concatenate([(left[some] @ right.T)[positive[some]] for some in blocks]))
    twice = 0
    for some in blocks:
        others = np.sort((left[some] @ right.T)[negative[some]])
        twice += sum(int(np.searchsorted(others, found, side).sum()) for side in ("left", "right"))
    return twice / (2 * len(found) * int(negative.sum()))


# -- cells -------------------------------------------------------------------------------------------------------------

_TOL = 1e-4
# An iteration of L-BFGS for the polynomial network takes a part of the time of an epoch of coordinate descent.
_ITERATIONS_AN_EPOCH = 5


@dataclass(frozen=True)
class Plan:
    """Common settings of the cells of a graph: units, a scale of ``SCALES``, and the share of the links to learn from.

    ``betas`` is the grid; ``search_epochs`` and ``epochs`` limit the fits of the search and the last one.
    """

    k: int
    scale: str
    share: float
    betas: tuple[float, ...]
    search_epochs: int
    epochs: int


@dataclass(frozen=True)
class Cell:
    """A model on a split of a graph."""

    set: str
    split: int
    model: str
    plan: Plan

    @property
    def key(self) -> dict[str, Any]:
        """The entries that tell its row from others."""
        plan = asdict(self.plan) | {"betas": " ".join(f"{beta:g}" for beta in self.plan.betas)}
        return {"set": self.set, "split": self.split, "model": self.model} | plan


KEY = ["set", "split", "model", *(field.name for field in fields(Plan))]
COLUMNS = [*KEY, "pairs", "beta", "validation", "test", "epochs_done", "seconds", "curve"]
# On both large graphs an epoch takes seconds. The scales have the best validation AUC of HOFM of degree 2 and bilinear
# regression; on unscaled words most models are no better than chance.
PLANS = {
    "nips": Plan(30, "unit", 0.5, (1e-5, 1e-4, 1e-3), 8, 8),
    "movielens": Plan(30, "raw", 0.5, (1e-5, 1e-4, 1e-3, 1e-2), 50, 50),
    "gene-disease": Plan(30, "unit", 0.5, (1e-5, 1e-4, 1e-3), 8, 8),
    "ion-channels": Plan(30, "raw", 0.5, (1e-5, 1e-4, 1e-3, 1e-2), 30, 30),
}
QUICK = {"k": 5, "share": 0.1, "betas": (1e-4, 1e-3), "search_epochs": 5, "epochs": 8}
QUICK_MODELS = ("hofm-2", "hofm-3", "augmented-3", "all-subsets", "polynomial-2", "lifted-2", "bilinear")


def run_cell(cell: Cell, graph: Graph) -> dict[str, Any]:
    """Choose the strength, fit and test; return a row. ``curve`` has the validation AUC of every strength."""
    model, plan, began = BY_NAME[cell.model], cell.plan, time.perf_counter()
    data = split(graph, cell.split, plan.share)
    searched = [_search(model, graph, data, cell, beta) for beta in plan.betas]
    curve = [auc for auc, _ in searched]
    best = int(np.argmax(curve))
    # A cold start may fall to P = 0, a stationary point, where the one that was validated did not.
    problem = make_problem(model, graph, data.pairs, data.y, plan.betas[best], plan.k, cell.split)
    result = _minimize(problem, model, plan.epochs, searched[best][1])
    seconds = time.perf_counter() - began
    test = area_under_curve(*tables(model, result, graph), graph, data.pairs, data.test_links)
    return cell.key | {
        "pairs": len(data.y),
        "beta": f"{plan.betas[best]:g}",
        "validation": f"{max(curve):.4f}",
        "test": f"{test:.4f}",
        "epochs_done": result.nit,
        "seconds": f"{seconds:.1f}",
        "curve": " ".join(f"{auc:.4f}" for auc in curve),
    }


def _search(model: Model, graph: Graph, data: LinkSplit, cell: Cell, beta: float) -> tuple[float, np.ndarray]:
    """Return the AUC on the pairs held out, and the flat point of the model of the others."""
    kept, held = hold_out(data.y, cell.split)
    problem = make_problem(model, graph, data.pairs[kept], data.y[kept], beta, cell.plan.k, cell.split)
    result = _minimize(problem, model, cell.plan.search_epochs)
    scores = pair_scores(*tables(model, result, graph), data.pairs[held])
    return float(roc_auc_score(data.y[held], scores)), result.x


def _minimize(problem: Any, model: Model, epochs: int, start: Any = None) -> mopn.Result:
    if model.kind == "polynomial":
        return mopn.minimize(problem, LBFGS(), start=start, tol=_TOL, max_iter=_ITERATIONS_AN_EPOCH * epochs)
    return mopn.minimize(problem, CoordinateDescent(), start=start, tol=_TOL, max_iter=epochs)
