"""Table 3 of Blondel et al., Higher-Order Factorization Machines (NIPS 2016): prediction of links in four graphs.

``python -m benchmarks.link_prediction --data FOLDER`` fits, prints the area under the ROC curve (AUC) of every model
beside the paper's, and writes ``cells.csv`` to ``--out``, a row a model, graph and split. A run may be stopped at any
time; the next one skips the cells that are in the file.

A pair of nodes is a sample: the features of both, one after the other, with target 1 if they are linked. Half of the
links and as many other pairs are learnt from by the squared loss with k = 30 units; all other pairs are the test. The
strength is the best of a grid on a quarter of the pairs to learn from, held out; from there a last fit goes on with all
of them. Fits are by coordinate descent, from units N(0, 0.01), all with an intercept. Graphs with one set of nodes
count each pair once, i < j.

The paper's polynomial network, sum_s (gamma_s + <p_s, x>)^m, is not convex in a coordinate: it is fitted by L-BFGS,
with five iterations for an epoch, and lifted, sum_s prod_t (gamma_st + <u_st, x>), by coordinate descent.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score

import mopn
from benchmarks.exits import exit_status
from benchmarks.link_data import GRAPHS, SCALES, Graph, LinkSplit, check_graphs, hold_out, load, scaled, split
from benchmarks.store import Store
from mopn.core.designs import make_design
from mopn.core.factor_kernels import make_factor_kernel
from mopn.solvers import LBFGS, CoordinateDescent

__all__ = ["MODELS", "PLANS", "Cell", "Plan", "area_under_curve", "make_problem", "pair_scores", "run_cell", "tables"]


@dataclass(frozen=True)
class Model:
    """A row of the table: a kind of model and its degree, with the paper's figures by graph."""

    kind: str
    degree: int
    paper: dict[str, float]

    @property
    def name(self) -> str:
        """Short name, for the command line and the file."""
        return f"{self.kind}-{self.degree}" if self.kind in _SEVERAL else self.kind


_LABELS = {
    "hofm": "HOFM",
    "augmented": "HOFM-shared-augmented",
    "simplex": "HOFM-shared-simplex",
    "all-subsets": "all-subsets",
    "polynomial": "polynomial network",
    "lifted": "polynomial network, lifted",
    "bilinear": "low-rank bilinear regression",
}
_SEVERAL = ("hofm", "augmented", "simplex", "polynomial", "lifted")
# The paper's columns: NIPS, Enzyme, GD, MovieLens 100K. Enzyme and GD are other graphs than ours in their places.
_COLUMNS = ("nips", "ion-channels", "gene-disease", "movielens")
_STAND_INS = ("ion-channels", "gene-disease")
_PAPER = {
    ("hofm", 2): (0.856, 0.880, 0.717, 0.778),
    ("hofm", 3): (0.875, 0.888, 0.717, 0.786),
    ("hofm", 4): (0.874, 0.887, 0.717, 0.786),
    ("hofm", 5): (0.874, 0.887, 0.717, 0.786),
    ("augmented", 2): (0.858, 0.876, 0.704, 0.778),
    ("augmented", 3): (0.874, 0.887, 0.704, 0.787),
    ("augmented", 4): (0.836, 0.824, 0.663, 0.779),
    ("augmented", 5): (0.824, 0.795, 0.600, 0.621),
    ("simplex", 2): (0.716, 0.865, 0.721, 0.701),
    ("simplex", 3): (0.777, 0.870, 0.721, 0.709),
    ("simplex", 4): (0.758, 0.870, 0.721, 0.709),
    ("simplex", 5): (0.722, 0.869, 0.721, 0.709),
    ("all-subsets", 2): (0.730, 0.840, 0.721, 0.714),
    ("polynomial", 2): (0.725, 0.879, 0.721, 0.761),
    ("polynomial", 3): (0.789, 0.853, 0.719, 0.696),
    ("polynomial", 4): (0.782, 0.873, 0.717, 0.708),
    ("polynomial", 5): (0.543, 0.524, 0.648, 0.501),
    ("bilinear", 2): (0.855, 0.694, 0.611, 0.718),
}
_PAPER |= {("lifted", m): _PAPER["polynomial", m] for m in range(2, 6)}
MODELS = [Model(kind, degree, dict(zip(_COLUMNS, row, strict=True))) for (kind, degree), row in _PAPER.items()]
_BY_NAME = {model.name: model for model in MODELS}


# -- models ------------------------------------------------------------------------------------------------------------


def make_problem(model: Model, graph: Graph, pairs: np.ndarray, y: np.ndarray, beta: float, k: int, seed: int) -> Any:
    """Return the problem of a model; ``beta`` is the paper's, who averages the losses, so beta times n is mopn's."""
    strength = beta * len(y)
    common = {"beta": strength, "fit_intercept": True, "rng": seed}
    A, B = graph.rows(pairs)
    if model.kind == "bilinear":
        return mopn.LiftedProblem((A, B), y, rank=k, **common)
    X = sparse.hstack([A, B], format="csr")
    if model.kind == "lifted":
        return mopn.LiftedProblem(X, y, degree=model.degree, rank=k, augment=True, **common)
    options: dict[str, dict[str, Any]] = {
        "hofm": {"fit_lower": "explicit", "fit_linear": True, "alpha": strength},
        "augmented": {"fit_lower": "augment"},
        "simplex": {"fit_lower": "shared"},
        "all-subsets": {"kernel": "all-subsets"},
        "polynomial": {"kernel": "homogeneous", "fit_lower": "augment"},
    }
    return mopn.FactorizationProblem(
        X, y, degree=model.degree, n_components=k, penalty="frobenius", **common, **options[model.kind]
    )


def tables(model: Model, result: mopn.Result, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of the nodes A (n_A, q) and one of the nodes B (n_B, q), whose product is all pairs' outputs.

    No pair's row is ever formed: A^t(a, b) = sum_u A^u(a) A^{t-u}(b) for a and b one after the other, and all-subsets
    S(a, b) = S(a) S(b). A product of m sums <u, a> + <v, b> multiplies out to 2^m products, a power to m + 1.
    """
    parts = [(np.full((graph.shape[0], 1), float(result.intercept[0])), np.ones((graph.shape[1], 1)))]
    parts += _PARTS.get(model.kind, _anova)(model, result, graph)
    left, right = zip(*parts, strict=True)
    return np.hstack(left), np.hstack(right)


_Parts = list[tuple[np.ndarray, np.ndarray]]


def _bilinear(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    U, V = result.U
    return [(graph.A @ U.T, graph.B @ V.T)]


def _polynomial(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    d, P, m = graph.A.shape[1], result.P[0], model.degree
    of_A, of_B = P[:, 0] + graph.A @ P[:, 1 : 1 + d].T, graph.B @ P[:, 1 + d :].T
    return [(math.comb(m, u) * of_A**u, of_B ** (m - u)) for u in range(m + 1)]


def _lifted(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    d = graph.A.shape[1]
    of_A = [U[:, 0] + graph.A @ U[:, 1 : 1 + d].T for U in result.U]
    of_B = [graph.B @ U[:, 1 + d :].T for U in result.U]
    parts = []
    for taken in product((True, False), repeat=model.degree):
        left = [of_A[t] for t in range(model.degree) if taken[t]]
        right = [of_B[t] for t in range(model.degree) if not taken[t]]
        parts.append((_product(left, of_A[0].shape), _product(right, of_B[0].shape)))
    return parts


def _product(factors: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return np.prod(factors, axis=0) if factors else np.ones(shape)


def _all_subsets(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    d, kernel, P = graph.A.shape[1], make_factor_kernel("all-subsets", 1), result.P[0]
    return [(kernel.features(make_design(graph.A), P[:, :d]), kernel.features(make_design(graph.B), P[:, d:]))]


_PARTS = {"bilinear": _bilinear, "polynomial": _polynomial, "lifted": _lifted, "all-subsets": _all_subsets}


def _anova(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    """HOFM and its shared variants: the dummies count as features of A."""
    dummies = model.degree - 1 if model.kind == "augmented" else 0
    A, B, m = make_design(graph.A, dummies), make_design(graph.B), model.degree
    parts: _Parts = []
    for order, P in enumerate(result.P):
        of_A, of_B = _degrees(A, P[:, : A.shape[1]], m - order), _degrees(B, P[:, A.shape[1] :], m - order)
        theta = result.theta if model.kind == "simplex" else np.eye(m - order)[-1]
        parts += [(weight * of_A[u], of_B[t - u]) for t, weight in enumerate(theta, 1) if weight for u in range(t + 1)]
    if model.kind == "hofm":
        of_A, of_B = graph.A @ result.w[: A.shape[1]], graph.B @ result.w[A.shape[1] :]
        parts += [(of_A[:, None], np.ones((len(of_B), 1))), (np.ones((len(of_A), 1)), of_B[:, None])]
    return parts


def _degrees(design: Any, P: np.ndarray, m: int) -> list[np.ndarray]:
    """Return A^0, ..., A^m of all rows (n, k)."""
    P, kernels = np.ascontiguousarray(P), [make_factor_kernel("anova", t) for t in range(1, m + 1)]
    return [np.ones((design.shape[0], len(P))), *(kernel.features(design, P) for kernel in kernels)]


def pair_scores(left: np.ndarray, right: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the outputs of some pairs."""
    return np.einsum("pq,pq->p", left[pairs[:, 0]], right[pairs[:, 1]])


# -- the measure -------------------------------------------------------------------------------------------------------

# Pairs whose scores are held at a time.
_BLOCK = 1 << 22


def area_under_curve(
    left: np.ndarray, right: np.ndarray, graph: Graph, known: np.ndarray, links: np.ndarray, block: int = _BLOCK
) -> float:
    """Return the share of (link, other pair) that the scores put in the right order; ties count half.

    Parameters
    ----------
    left, right : ndarray of shapes (n_A, q) and (n_B, q)
    graph : Graph
    known, links : ndarray of shape (n, 2)
        Pairs that were learnt from, which are left out, and links to find. All others are negative.
    block : int
        Number of pairs whose scores are held at a time.
    """
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
    """What the cells of a graph share.

    Attributes
    ----------
    k : int
        Number of units.
    scale : str
        Of the features: see ``SCALES``.
    share : float
        Of the links, to learn from.
    betas : tuple of float
        The grid.
    search_epochs, epochs : int
        Limits for the fits of the search and for the last one.
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
        """What tells its row from others."""
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
_QUICK = {"k": 5, "share": 0.1, "betas": (1e-4, 1e-3), "search_epochs": 5, "epochs": 8}
_QUICK_MODELS = ("hofm-2", "hofm-3", "augmented-3", "all-subsets", "polynomial-2", "lifted-2", "bilinear")


def run_cell(cell: Cell, graph: Graph) -> dict[str, Any]:
    """Choose the strength, fit and test; return a row. ``curve`` has the validation AUC of every strength."""
    model, plan, began = _BY_NAME[cell.model], cell.plan, time.perf_counter()
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


# -- the program -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    options = _parser().parse_args(arguments)
    return exit_status("link_prediction", partial(_run, options))


def _run(options: argparse.Namespace) -> int:
    out = Path(options.out or ("results/link_prediction-quick" if options.quick else "results/link_prediction"))
    store = Store(out / "cells.csv", COLUMNS, KEY)
    if not options.report:
        check_graphs(options.data, options.sets)
        _fill(store, list(_cells(options)), options.data)
    print("\n" + report(store.rows()))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.link_prediction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Set OMP_NUM_THREADS=1: the study takes one core.",
    )
    parser.add_argument(
        "--data", default="../shared/data", help="data folder, a subfolder a graph (default %(default)s)"
    )
    parser.add_argument("--out", help="folder of the results (default results/link_prediction, or -quick)")
    parser.add_argument("--quick", action="store_true", help="a few models, few units and links, two minutes at most")
    parser.add_argument("--report", action="store_true", help="fit nothing, report what is there")
    parser.add_argument("--sets", nargs="+", choices=GRAPHS, default=list(_COLUMNS))
    parser.add_argument("--models", nargs="+", choices=[model.name for model in MODELS])
    parser.add_argument("--splits", type=int, help="number of random splits (default 1; movielens 2)")
    parser.add_argument("--scale", choices=SCALES, help="of the features (default: the best one, see PLANS)")
    parser.add_argument("--betas", nargs="+", type=float, help="the grid, in the paper's measure")
    parser.add_argument("--epochs", type=int, help="limit for all fits")
    return parser


def _cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cells, split by split, so that a run that is stopped has whole tables."""
    models = options.models or (_QUICK_MODELS if options.quick else list(_BY_NAME))
    changes = dict(_QUICK) if options.quick else {}
    changes |= {"scale": options.scale} if options.scale else {}
    changes |= {"betas": tuple(options.betas)} if options.betas else {}
    changes |= {"epochs": options.epochs, "search_epochs": options.epochs} if options.epochs else {}
    for name in options.sets:
        splits = options.splits or (2 if name == "movielens" and not options.quick else 1)
        plan = replace(PLANS[name], **changes)
        yield from (Cell(name, index, model, plan) for index in range(splits) for model in models)


def _fill(store: Store, wanted: Sequence[Cell], folder: str) -> None:
    """Run the cells that the store lacks and append their rows."""
    missing = store.missing(wanted, attrgetter("key"))
    print(f"{len(wanted)} cells, {len(wanted) - len(missing)} of them done already", flush=True)
    graph, began = None, time.perf_counter()
    for number, cell in enumerate(missing, 1):
        if graph is None or graph.name != cell.set:
            graph = scaled(load(cell.set, folder), cell.plan.scale)
        row = run_cell(cell, graph)
        store.append(row)
        print(
            f"{number}/{len(missing)} in {time.perf_counter() - began:.0f} s: {cell.set}, split {cell.split}, "
            f"{cell.model}: beta {row['beta']}, test AUC {row['test']}",
            flush=True,
        )


def report(rows: Sequence[dict[str, str]]) -> str:
    """Return Table 3 as text, the paper's figure beside the mean over our splits; a block for each plan."""
    blocks: dict[tuple[str, ...], dict[tuple[str, str], list[float]]] = {}
    for row in rows:
        # All graphs of a run that have the default plans belong into one table.
        default = Cell(row["set"], 0, row["model"], PLANS[row["set"]]).key
        same = all(str(default[name]) == row[name] for name in KEY[3:])
        plan = () if same else tuple(f"{name} {row[name]}" for name in KEY[3:] if str(default[name]) != row[name])
        block = blocks.setdefault(plan, {})
        block.setdefault((row["set"], row["model"]), []).append(float(row["test"]))
    return "\n\n".join(_table(", ".join(plan), block) for plan, block in blocks.items()) or "no results yet"


_HEADINGS = {
    "nips": "nips",
    "ion-channels": "ion-channels*",
    "gene-disease": "gene-disease*",
    "movielens": "movielens",
}


def _table(changed: str, found: dict[tuple[str, str], list[float]]) -> str:
    names = [name for name in _COLUMNS if any(name == key[0] for key in found)]
    lines = ["Table 3: AUC on the test pairs" + (f" ({changed})" if changed else "")]
    lines.append(" " * 34 + "".join(f"{_HEADINGS[name]:>19}" for name in names))
    lines.append(" " * 34 + f"{'paper':>11}{'here':>8}" * len(names))
    for model in MODELS:
        cells = [(model.paper[name], found.get((name, model.name))) for name in names]
        if any(values for _, values in cells):
            figures = (f"{paper:>11.3f}{np.mean(values) if values else math.nan:>8.3f}" for paper, values in cells)
            degree = f" (m = {model.degree})" if model.kind in _SEVERAL else ""
            lines.append(f"{_LABELS[model.kind] + degree:<34}" + "".join(figures))
    if set(names) & set(_STAND_INS):
        lines.append("* the paper's figure is that of another graph: Enzyme, and GD with other links")
    spread = [max(values) - min(values) for values in found.values() if len(values) > 1]
    if spread:
        lines.append(f"largest difference between splits of a cell: {max(spread):.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
