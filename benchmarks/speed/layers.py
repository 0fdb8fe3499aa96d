"""Refits of the output layer, on the features of real fits: ``InteriorPoint`` against ``FISTA``."""

import argparse
from collections import defaultdict
from typing import Any, NamedTuple

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
_UNITS, _DEFAULT_UNITS = {"letter": 100}, 50
# Runs are repeated while they took less than so many seconds in all.
_REPEATS, _SHORT = 3, 1.0


class Ratio(NamedTuple):
    """A ratio of times, or a lower bound of one."""

    value: float
    is_bound: bool = False

    def __str__(self) -> str:
        return f"{'> ' if self.is_bound else ''}{self.value:.3g}"


def median(ratios: list[Ratio]) -> Ratio:
    """Return the median; a bound if a bound below it might lie above."""
    middle = float(np.median([ratio.value for ratio in ratios]))
    return Ratio(middle, any(ratio.is_bound and ratio.value <= middle for ratio in ratios))


def refits(args: argparse.Namespace) -> None:
    """Print InteriorPoint against FISTA."""
    print(f"\nRefits of the output layer, logistic loss, to a proven gap of {_REFIT_TOL:g}, relative")
    table = Table(
        "set:9s, norm:8s, strength:8g, InteriorPoint:.4f s, its gap:.0e, FISTA:9.3f s, its gap:.0e, ratio:10s"
    )
    ratios: dict[str, list[Ratio]] = defaultdict(list)
    for name in args.sets:
        Phi, y = _features(name, args.data)
        for norm in NORMS:
            for strength in STRENGTHS:
                problem = OutputLayerProblem(Phi, y, norm=norm, strength=strength)
                ours, theirs = (_solved(problem, solver, args.cap) for solver in (InteriorPoint(), FISTA()))
                ratio = Ratio(theirs.time / ours.time, not theirs.success) if ours.success else Ratio(0.0)
                ratios[name].append(ratio)
                columns = [cell for run in (ours, theirs) for cell in (run.time, run.gap / run.fun)]
                table.row(name, norm, strength, *columns, str(ratio))
    entries = [f"{name} {median(found)}" for name, found in ratios.items()]
    print(f"median ratio: {', '.join(entries)}; all {median([ratio for found in ratios.values() for ratio in found])}")


def _features(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (n, k) that a fit of a set found on its training part, and the labels."""
    data = split(*load(name, folder), 0)
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=0.3, augment=True)
    solver = ConditionalGradient(max_units=_UNITS.get(name, _DEFAULT_UNITS), schedule="fill", oracle="refine")
    return problem.maps.features(mopn.minimize(problem, solver).basis), data.y_train


def _solved(problem: OutputLayerProblem, solver: Any, cap: float) -> mopn.Result:
    """Return the fastest of a few runs that are short."""
    runs: list[mopn.Result] = []
    while len(runs) < _REPEATS and sum(run.time for run in runs) < _SHORT:
        runs.append(mopn.minimize(problem, solver, tol=_REFIT_TOL, max_time=cap, max_iter=10**9))
    return min(runs, key=lambda run: run.time)
