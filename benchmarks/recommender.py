"""Recommender systems: ordinal regression on multi-output models, kernels of one output, and a Bayesian peer.

``python -m benchmarks.recommender --data FOLDER`` runs three studies, prints their tables and draws ``ranking.png``
and ``kernels.png``. ``cells.csv`` in ``--out`` has a row a study, set, split, model and k. A run may be stopped at any
time; the next one skips the cells that are in the file.

A row of X has a one for its user and a one for its item (for Last.fm: artist and tag). Only those that occur in the set
have columns. Split number s draws with seed s, and s seeds the fits. Strengths are mopn's: losses are added up over the
samples. The strength of a cell is that of a grid (see ``GRIDS``) with the least RMSE on rows held out.
Ordinal models have a linear term, with the ridge alpha = 0.15 strength.

``ranking``: section 6.5 and Figure 4 of Blondel et al., Multi-output Polynomial Networks and Factorization Machines
(NIPS 2017). Ordinal McRank on multi-output FMs of at most k units, with the norms l1, l1/l2 and l1/linf, against FMs
and PNs of one output, the models of ``kernels`` with a linear term. Ratings are split at random: 50 % to fit, 25 % to
choose the strength by, 25 % to test. What was fitted on the first part is tested, every measure at the strength that is
best by it on the held part (section 6.2 chooses by the measure that it reports, 6.5 does not say). The paper bounds the
norm; here it is a penalty, strength times the norm, which has the same solutions.

``kernels``: section 9.3 and Figure 3 of Blondel et al., Polynomial Networks and Factorization Machines (ICML 2016), and
Figure 5 of Blondel et al., Higher-Order Factorization Machines (NIPS 2016). Kernels A^2 and H^2, each with a 1-feature
("augment") or a linear term ("linear combination"), and all-subsets. 25 % of the rows, drawn at random, are the test. A
quarter of the others is held out to choose the strength by (the papers: five folds); then all of the others are fitted
again. The papers' y on Last.fm is how often a tag was given to an artist: the set "lastfm", with 109,750 pairs of
artist and tag in hetrec2011-lastfm-2k (the papers: 108,437). In "lastfm-users" y is how many tags a user gave to an
artist.

``peers``: MovieLens 100K, u1.base against u1.test, beside myFM (Gibbs sampling, its defaults, 200 iterations), if that
package is installed. A tenth of u1.base, drawn at random, is held out to choose the strength by; then all of it is
fitted again. "+ features" adds the age group, gender, occupation and first digit of the zip code of the user, and the
group of release years and the genres of the film; in ordinal models they are 0.15, not 1, which a few runs chose.

FMs and PNs of one output have k units, H^2 k products of two factors. They have the squared loss, an intercept, and
half the strength times the squares of all factors and weights of the linear term as penalty; they are fitted by
coordinate descent, at most 50 epochs, from factors N(0, 0.01). Ordinal models are fitted by the conditional gradient
method with refits of all units, at the estimator's defaults.

nDCG@1 and nDCG@5 are means over the users with at least two ratings in the test; gains are 2^y - 1, and y in the
columns "linear". Discounts are 1 / log2(1 + rank); films of equal scores share their gains. Users with fewer films
than 5 are ranked whole. The seconds of a row are those of the whole cell, search included.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from io import StringIO
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mopn
from benchmarks.exits import exit_status
from benchmarks.link_data import check_graphs
from benchmarks.link_data import load as load_graph
from benchmarks.rating_data import SETS, Parts, Ratings, check_sets, load, peer_parts, random_parts
from benchmarks.recommender_report import draw, report
from benchmarks.store import Store
from mopn.estimators import OrdinalFMRegressor
from mopn.ranking import grouped_ndcg
from mopn.solvers import CoordinateDescent

__all__ = ["GRIDS", "MODELS", "PLANS", "Cell", "Plan", "Task", "main", "make_task", "measures", "run_cell"]


# -- models ------------------------------------------------------------------------------------------------------------

_TOL = 1e-4
_EPOCHS = 50
_SAMPLES = 200
# The ones of side features are this much in ordinal models: each row has many of them, and a penalty in common with
# users and items. myFM has priors for each group.
_OF_FEATURES = 0.15
# The ridge of the ordinal models' linear term, relative to the strength.
_ALPHA = 0.15


@dataclass(frozen=True)
class Options:
    """What a fit is told.

    Attributes
    ----------
    k : int
        Number of units, or the largest number.
    strength : float
    seed : int
    groups : tuple of int
        Numbers of the columns of X that belong to users, items and other fields.
    """

    k: int
    strength: float
    seed: int
    groups: tuple[int, ...]


# From X, y and the options to the predictions as a function of X, and the number of units that are there.
_Fitted = tuple[Callable[[Any], np.ndarray], int]
_Fit = Callable[[Any, np.ndarray, Options], _Fitted]


def _ordinal(X: Any, y: np.ndarray, options: Options, norm: str) -> _Fitted:
    def scaled(rows: Any) -> Any:
        if len(options.groups) == 2:
            return rows
        scales = np.repeat(np.r_[1.0, 1.0, np.full(len(options.groups) - 2, _OF_FEATURES)], options.groups)
        return sparse.csr_array(rows @ sparse.diags_array(scales))

    strengths = {"strength": options.strength, "alpha": _ALPHA * options.strength}
    regressor = OrdinalFMRegressor(norm=norm, max_units=options.k, random_state=options.seed, **strengths)
    with warnings.catch_warnings():
        # With few units the largest number of them ends the fit.
        warnings.simplefilter("ignore", ConvergenceWarning)
        regressor.fit(scaled(X), y)
    return lambda rows: regressor.predict(scaled(rows)), len(regressor.model_.weights)


def _factorized(X: Any, y: np.ndarray, options: Options, **kernel: Any) -> _Fitted:
    def make(X: Any, y: np.ndarray) -> mopn.FactorizationProblem:
        strengths = {"alpha": options.strength, "beta": options.strength, "penalty": "frobenius"}
        return mopn.FactorizationProblem(
            X, y, n_components=options.k, fit_intercept=True, rng=options.seed, **strengths, **kernel
        )

    return _minimized(make, X, y), options.k


def _lifted(X: Any, y: np.ndarray, options: Options, **kernel: Any) -> _Fitted:
    def make(X: Any, y: np.ndarray) -> mopn.LiftedProblem:
        strengths = {"alpha": options.strength, "beta": options.strength}
        return mopn.LiftedProblem(X, y, rank=options.k, fit_intercept=True, rng=options.seed, **strengths, **kernel)

    return _minimized(make, X, y), options.k


def _minimized(make: Callable[[Any, np.ndarray], Any], X: Any, y: np.ndarray) -> Callable[[Any], np.ndarray]:
    result = mopn.minimize(make(X, y), CoordinateDescent(), tol=_TOL, max_iter=_EPOCHS)
    return lambda rows: make(rows, np.zeros(rows.shape[0])).outputs(result.x)


def _gibbs(X: Any, y: np.ndarray, options: Options) -> _Fitted:
    regressor = _sampled("MyFMRegressor", X, y, options)
    return lambda rows: regressor.predict(sparse.csr_matrix(rows)), options.k


def _probit(X: Any, y: np.ndarray, options: Options) -> _Fitted:
    levels, codes = np.unique(y, return_inverse=True)
    regressor = _sampled("MyFMOrderedProbit", X, codes, options)
    return lambda rows: regressor.predict_proba(sparse.csr_matrix(rows)) @ levels, options.k


def _sampled(name: str, X: Any, y: np.ndarray, options: Options) -> Any:
    """Return a model of myFM, whose progress bars are not shown."""
    model = getattr(importlib.import_module("myfm"), name)(rank=options.k, random_seed=options.seed)
    with redirect_stderr(StringIO()):
        return model.fit(sparse.csr_matrix(X), y, n_iter=_SAMPLES, group_shapes=list(options.groups))


_FITS: dict[str, _Fit] = {
    "ordinal-l1": partial(_ordinal, norm="l1"),
    "ordinal-l1/l2": partial(_ordinal, norm="l1/l2"),
    "ordinal-l1/linf": partial(_ordinal, norm="l1/linf"),
    "A2-linear": partial(_factorized, fit_linear=True),
    "A2-augment": partial(_factorized, fit_lower="augment"),
    "H2-linear": partial(_lifted, fit_linear=True),
    "H2-augment": partial(_lifted, augment=True),
    "all-subsets": partial(_factorized, kernel="all-subsets"),
    "myfm-regression": _gibbs,
    "myfm-probit": _probit,
}
MODELS = tuple(_FITS)
_SAMPLED = ("myfm-regression", "myfm-probit")


# -- plans -------------------------------------------------------------------------------------------------------------

_ORDINAL, _ONE_OUTPUT = MODELS[:3], ("A2-linear", "H2-linear")
_KERNELS = ("A2-augment", "A2-linear", "H2-augment", "H2-linear", "all-subsets")
_WITH_FEATURES = " + features"
# Strengths by set and by what a model's name begins with. Samplers have none.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "ml-100k": {
        "ordinal-l1/linf": (5.0, 6.0, 7.0, 8.5),
        "ordinal-l1/l2": (3.0, 3.5, 4.2),
        "ordinal-l1": (2.0, 2.5, 3.0),
        "": (6.0, 9.0, 12.0, 16.0, 22.0),
    },
    "ml-1m": {
        "ordinal-l1/linf": (8.5, 10.0, 12.0),
        "ordinal-l1/l2": (4.5, 5.5),
        "ordinal-l1": (3.0, 4.0),
        "": (8.0, 11.0, 15.0, 20.0, 27.0),
    },
    "lastfm": {"": (10.0, 30.0, 60.0, 100.0, 200.0)},
    "lastfm-users": {"": (10.0, 20.0, 40.0, 80.0)},
}


@dataclass(frozen=True)
class Plan:
    """Cells of a study on a set: all of these models, numbers of units and splits.

    Attributes
    ----------
    models : tuple of str
    ks : tuple of int
    splits : int
    rows : int, optional
        So many rows, drawn at random, stand for all.
    """

    models: tuple[str, ...]
    ks: tuple[int, ...]
    splits: int = 1
    rows: int | None = None


STUDIES = ("ranking", "kernels", "peers")
# In the order in which they run: what takes long comes last. A cell of ordinal models takes a minute on MovieLens 100K
# and minutes on 1M.
PLANS: dict[tuple[str, str], Plan] = {
    ("ranking", "ml-100k"): Plan(_ONE_OUTPUT + _ORDINAL, (5, 10, 20, 30, 50), splits=2),
    ("kernels", "lastfm"): Plan(_KERNELS, (5, 10, 20, 30, 50)),
    ("kernels", "lastfm-users"): Plan(_KERNELS, (5, 10, 20, 30, 50)),
    ("peers", "ml-100k"): Plan(
        (*_SAMPLED, "A2-linear", "ordinal-l1/linf", "myfm-probit + features", "ordinal-l1/linf + features"), (10, 30)
    ),
    ("kernels", "ml-1m"): Plan(_KERNELS, (5, 10, 30)),
    ("ranking", "ml-1m"): Plan(_ONE_OUTPUT + _ORDINAL[::-1], (10, 30)),
}
_QUICK_ROWS = 10_000
# One row in five of MovieLens 100K is in u1.test.
_PEER_TEST = 5


@dataclass(frozen=True)
class Cell:
    """A model with k units on a split of a set."""

    study: str
    set: str
    split: int
    model: str
    k: int
    rows: int | None = None

    @property
    def grid(self) -> tuple[float, ...]:
        """The strengths to choose from; a sampler has the single one 0."""
        if self.model.startswith(_SAMPLED):
            return (0.0,)
        grids = GRIDS[self.set]
        return next(grid for start, grid in grids.items() if self.model.startswith(start))

    @property
    def key(self) -> dict[str, Any]:
        """What tells its row from others."""
        names = {name: getattr(self, name) for name in ("study", "set", "split", "model", "k")}
        return names | {"rows": self.rows or "", "grid": _joined(self.grid)}


def _joined(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)


KEY = ["study", "set", "split", "model", "k", "rows", "grid"]
_MEASURES = ["rmse", "ndcg1", "ndcg5", "linear1", "linear5"]
COLUMNS = [*KEY, "fitted", "strength", "validation", *_MEASURES, "units", "seconds", "curve"]


# -- cells -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Rows, targets, users and parts that a cell works on; ``groups`` as in Options."""

    X: sparse.csr_array
    y: np.ndarray
    users: np.ndarray
    parts: Parts
    groups: tuple[int, ...]


def make_task(cell: Cell, ratings: Ratings, folder: str) -> Task:
    """Return what a cell works on."""
    X, groups = ratings.rows(), ratings.shape
    if cell.model.endswith(_WITH_FEATURES):
        graph = load_graph("movielens", folder)
        X = sparse.hstack([X, graph.A[ratings.users], graph.B[ratings.items]], format="csr")
        groups += (graph.A.shape[1], graph.B.shape[1])
    n = len(ratings.y)
    if cell.study == "peers":
        parts = peer_parts(n, n // _PEER_TEST, cell.split, rows=cell.rows)
    else:
        shares = (0.5, 0.25) if cell.study == "ranking" else (0.5625, 0.1875)
        parts = random_parts(n, cell.split, shares, cell.rows)
    return Task(X, ratings.y, ratings.users, parts, groups)


def run_cell(cell: Cell, task: Task) -> dict[str, Any]:
    """Choose the strength, fit and test; return a row.

    Of the ranking study every measure is that of the strength which is best by it on the held part; else all are of
    the strength with the best RMSE there, fitted again to all that is not for the test. ``curve`` has the RMSE of
    every strength on the held part, ``strength`` and ``units`` are of the best.
    """
    parts, began, ranked = task.parts, time.perf_counter(), cell.study != "kernels"
    fits = [_fit(cell, task, strength, parts.fit) for strength in cell.grid] if len(cell.grid) > 1 else []
    curves = [_measured(task, predict, parts.held, ranked) for predict, _ in fits]
    best = int(np.argmin([found["rmse"] for found in curves])) if curves else 0
    if cell.study == "ranking":
        tested = [_measured(task, predict, parts.test, ranked) for predict, _ in fits]
        found = {name: tested[_best(name, curves)][name] for name in _MEASURES}
        fitted, units = parts.fit, fits[best][1]
    else:
        fitted = parts.train
        predict, units = _fit(cell, task, cell.grid[best], fitted)
        found = _measured(task, predict, parts.test, ranked)
    return cell.key | {
        "fitted": len(fitted),
        "strength": f"{cell.grid[best]:g}",
        "validation": f"{curves[best]['rmse']:.4f}" if curves else "",
        **{name: f"{found[name]:.4f}" if name in found else "" for name in _MEASURES},
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


def _fit(cell: Cell, task: Task, strength: float, places: np.ndarray) -> _Fitted:
    options = Options(cell.k, strength, cell.split, task.groups)
    return _FITS[cell.model.removesuffix(_WITH_FEATURES)](task.X[places], task.y[places], options)


def _rmse(y: np.ndarray, outputs: np.ndarray) -> float:
    return float(np.sqrt(np.mean((outputs - y) ** 2)))


def measures(y: np.ndarray, outputs: np.ndarray, users: np.ndarray, ranked: bool = True) -> dict[str, float]:
    """Return the RMSE and, if asked for, nDCG@1 and nDCG@5 by both gains."""
    found = {"rmse": _rmse(y, outputs)}
    if ranked:
        for name, gain in (("ndcg", "exponential"), ("linear", "linear")):
            found |= {f"{name}{k}": grouped_ndcg(y, outputs, users, k, gain) for k in (1, 5)}
    return found


# -- the program -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the studies; return the exit status."""
    options = _parser().parse_args(arguments)
    return exit_status("recommender", partial(_run, options))


def _run(options: argparse.Namespace) -> int:
    out = Path(options.out or ("results/recommender-quick" if options.quick else "results/recommender"))
    store = Store(out / "cells.csv", COLUMNS, KEY)
    if not options.report:
        _fill(store, _wanted(options), options.data)
    rows = store.rows()
    print("\n" + report(rows))
    for path in draw(rows, out):
        print(f"written: {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recommender",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Set OMP_NUM_THREADS=1: the studies take one core.",
    )
    parser.add_argument(
        "--data", default="../shared/data", help="data folder, a subfolder a source (default %(default)s)"
    )
    parser.add_argument("--out", help="folder of the results (default results/recommender, or -quick)")
    parser.add_argument("--quick", action="store_true", help="few rows and units, one or two minutes")
    parser.add_argument("--report", action="store_true", help="fit nothing, report what is there")
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    return parser


def _wanted(options: argparse.Namespace) -> list[Cell]:
    cells = []
    for (study, name), plan in PLANS.items():
        if study in options.studies and name in options.sets:
            plan = replace(plan, ks=(5, 10), splits=1, rows=_QUICK_ROWS) if options.quick else plan
            cells += _cells(study, name, plan)
    return cells


def _cells(study: str, name: str, plan: Plan) -> Iterator[Cell]:
    """Yield the cells by number of units, so that a run that is stopped has whole comparisons."""
    for index in range(plan.splits):
        for k in plan.ks:
            yield from (Cell(study, name, index, model, k, plan.rows) for model in plan.models)


def _fill(store: Store, wanted: Sequence[Cell], folder: str) -> None:
    """Run the cells that the store lacks and append their rows."""
    check_sets(folder, list(dict.fromkeys(cell.set for cell in wanted)))
    if any(cell.model.endswith(_WITH_FEATURES) for cell in wanted):
        check_graphs(folder, ["movielens"])
    wanted = _installed(wanted)
    missing = store.missing(wanted, attrgetter("key"))
    print(f"{len(wanted)} cells, {len(wanted) - len(missing)} of them done already", flush=True)
    ratings, began = None, time.perf_counter()
    for number, cell in enumerate(missing, 1):
        if ratings is None or ratings.name != cell.set:
            ratings = load(cell.set, folder)
        row = run_cell(cell, make_task(cell, ratings, folder))
        store.append(row)
        print(
            f"{number}/{len(missing)} in {time.perf_counter() - began:.0f} s: {cell.study}, {cell.set}, split "
            f"{cell.split}, {cell.model}, k = {cell.k}: strength {row['strength']}, test RMSE {row['rmse']}",
            flush=True,
        )


def _installed(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells without those of myFM, if it is not there."""
    others = [cell for cell in cells if not cell.model.startswith(_SAMPLED)]
    if len(others) < len(cells) and find_spec("myfm") is None:
        print("myFM is not installed (pip install myfm): its rows are left out", flush=True)
        return others
    return list(cells)


if __name__ == "__main__":
    sys.exit(main())
