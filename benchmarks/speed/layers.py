"""Refits of the output layer, on the features of real fits: ``InteriorPoint`` against ``FISTA``."""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import lru_cache
from typing import Any

import numpy as np

import mopn
from benchmarks.common.datasets import load, split
from benchmarks.common.norms import NORMS
from benchmarks.speed.ratios import Ratio, make_ratio, print_medians
from mopn.network.output_layer import OutputLayerProblem
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint

__all__ = ["REFIT_TOL", "REPEATS", "SHORT", "STRENGTHS", "features", "refits", "solved"]

STRENGTHS = (0.1, 1.0, 10.0)
REFIT_TOL = 1e-6
# Units of the features that are refitted.
_UNITS, _DEFAULT_UNITS = {"letter": 100}, 50
# Runs are repeated while they took less than so many seconds in all.
REPEATS, SHORT = 3, 1.0


def refits(args: argparse.Namespace) -> None:
    """Print InteriorPoint beside FISTA."""
    print(f"\nRefits of the output layer, logistic loss, to a proven gap of {REFIT_TOL:g}, relative")
    print("set       norm     strength   InteriorPoint     gap       FISTA     gap      ratio")
    ratios: dict[str, list[Ratio]] = defaultdict(list)
    for name in args.sets:
        Phi, y = features(name, args.data)
        for norm in NORMS:
            for strength in STRENGTHS:
                problem = OutputLayerProblem(Phi, y, norm=norm, strength=strength)
                ours, theirs = (solved(problem, s, REFIT_TOL, args.cap) for s in (InteriorPoint(), FISTA()))
                ratio = make_ratio(theirs.time, ours, theirs.success)
                ratios[name].append(ratio)
                print(
                    f"{name:9s} {norm:8s} {strength:8g} {ours.time:13.4f} s {ours.gap / ours.fun:7.0e} "
                    f"{theirs.time:9.3f} s {theirs.gap / theirs.fun:7.0e} {ratio!s:>10s}",
                    flush=True,
                )
    print_medians(ratios)


@lru_cache(maxsize=4)
def features(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (n, k) that a fit of a set found on its training part, and the labels."""
    data = split(*load(name, folder), 0)
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=0.3, augment=True)
    solver = ConditionalGradient(max_units=_UNITS.get(name, _DEFAULT_UNITS), schedule="fill", oracle="refine")
    return problem.maps.features(mopn.minimize(problem, solver).basis), data.y_train


def solved(problem: OutputLayerProblem, solver: Any, tol: float, cap: float) -> mopn.Result:
    """Return the fastest of a few runs that are short."""
    runs: list[mopn.Result] = []
    while len(runs) < REPEATS and sum(run.time for run in runs) < SHORT:
        runs.append(mopn.minimize(problem, solver, tol=tol, max_time=cap, max_iter=10**9))
    return min(runs, key=lambda run: run.time)
