"""Output layers: ``InteriorPoint`` against ``FISTA`` on the features of real fits, and working sets of many units."""

import argparse
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np

import mopn
from benchmarks.common import NORMS
from benchmarks.common.datasets import load, split
from benchmarks.common.printing import Table
from mopn.network.output_layer import OutputLayerProblem
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint

STRENGTHS = (0.1, 1.0, 10.0)
_REFIT_TOL = 1e-6
# Units of the features that are refitted.
_UNITS, _DEFAULT_UNITS, _MANY_UNITS = {"letter": 100}, 50, 400
# Runs are repeated, up to a number of times, while they took less than some seconds in all.
_REPEATS, _SHORT = 3, 1.0


def refits(args: argparse.Namespace) -> None:
    """Print InteriorPoint against FISTA."""
    print(f"\nRefits of the output layer, logistic loss, to a proven gap of {_REFIT_TOL:g}, relative")
    table = Table(
        "set:9s, norm:8s, strength:8g, InteriorPoint:.4f s, its gap:.0e, FISTA:9.3f s, its gap:.0e, ratio:10s"
    )
    ratios: dict[str, list[float]] = defaultdict(list)
    for name in args.sets:
        Phi, y = _features(name, args.data)
        for norm in NORMS:
            for strength in STRENGTHS:
                problem = OutputLayerProblem(Phi, y, norm=norm, strength=strength)
                ours, theirs = (_solved(problem, solver, args.cap) for solver in (InteriorPoint(), FISTA()))
                # A lower bound of the ratio, where FISTA had not arrived.
                ratios[name].append(theirs.time / ours.time if ours.success else 0.0)
                ratio = f"{'' if theirs.success else '> '}{ratios[name][-1]:.3g}"
                columns = [cell for run in (ours, theirs) for cell in (run.time, run.gap / run.fun)]
                table.row(name, norm, strength, *columns, ratio)
    entries = [f"{name} {np.median(found):.3g}" for name, found in ratios.items()]
    print(f"median ratio, at least: {', '.join(entries)}; all {np.median([*ratios.values()]):.3g}")


class _Whole(OutputLayerProblem):
    """The same, whose iterations move all units."""

    def working_set(self, x: np.ndarray, least: int) -> None:
        return None


def working_sets(args: argparse.Namespace) -> None:
    """Print FISTA on working sets against FISTA on all units, which are random."""
    print(f"\nFISTA on {_MANY_UNITS} random units, l1/l2, to a proven gap of 1e-3, relative")
    table = Table("set:9s, loss:9s, ratio of strength:17g, units:5d, sets:.3f s, all:.3f s, ratio:.3g")
    for name, loss, fraction in product(args.sets, ("squared", "logistic"), (0.3, 0.1, 0.01)):
        data = split(*load(name, args.data), 0)
        units = np.random.default_rng(0).standard_normal((data.X_train.shape[1], _MANY_UNITS))
        Phi, y = (data.X_train @ units) ** 2, data.y_train
        targets = np.equal.outer(y, np.unique(y)) - np.bincount(y) / len(y) if loss == "squared" else y
        ended = OutputLayerProblem(Phi, targets, loss, strength=1.0)
        slopes = ended.split(ended.smooth(ended.image(ended.start())).gradient)[0]
        parts = Phi, targets, loss, "l1/l2", fraction * ended.regularizer.dual(slopes)
        ours, theirs = (_solved(kind(*parts), FISTA(), args.cap, 1e-3) for kind in (OutputLayerProblem, _Whole))
        left = int(np.count_nonzero(ours.weights.any(axis=1)))
        table.row(name, loss, fraction, left, ours.time, theirs.time, theirs.time / ours.time)


def _features(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (n, k) that a fit of a set found on its training part, and the labels."""
    data = split(*load(name, folder), 0)
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=0.3, augment=True)
    solver = ConditionalGradient(max_units=_UNITS.get(name, _DEFAULT_UNITS), schedule="fill", oracle="refine")
    result = mopn.minimize(problem, solver)
    return problem.network(result.basis, result.weights).features, data.y_train


def _solved(problem: OutputLayerProblem, solver: Any, cap: float, tol: float = _REFIT_TOL) -> mopn.Result:
    """Return the fastest of a few runs that are short."""
    runs: list[mopn.Result] = []
    while len(runs) < _REPEATS and sum(run.time for run in runs) < _SHORT:
        runs.append(mopn.minimize(problem, solver, tol=tol, max_time=cap, max_iter=10**9))
    return min(runs, key=lambda run: run.time)
