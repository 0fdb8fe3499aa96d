"""The fits of the study: five sets, and what three kinds of users ask for."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import mopn
from benchmarks.ablation.constants import CONSTANTS, Constant, changed, found
from benchmarks.common.datasets import load, split
from mopn.solvers import ConditionalGradient, Solver

SETS = ("vowel", "segment", "satimage", "letter", "digits")
# Seconds after which a fit is given up.
_MAX_TIME = 30.0
# No stack has its matrices formed.
_NO_MATRICES = Constant("mopn.solvers.sphere.search", "DENSE_LIMIT", 0)


_SMALL = ("vowel", "segment", "digits")


class Goal(NamedTuple):
    """A solver, the strength over ``strength_max``, the tolerance, and the norms."""

    solver: Solver[Any]
    fraction: float
    tol: float
    norms: tuple[str, ...]
    two_classes: bool = False
    matrix_free: bool = False
    sets: tuple[str, ...] = SETS


_MODEL = ConditionalGradient(refit="full", max_units=20, schedule="fill")
GOALS = {
    "proof": Goal(ConditionalGradient(refit="full"), 0.2, 1e-3, ("l1/l2", "l1/linf")),
    "model": Goal(_MODEL, 0.02, 1e-3, ("l1/l2", "l1/linf")),
    "two classes": Goal(_MODEL, 0.02, 1e-3, ("l1/l2",), two_classes=True),
    "output": Goal(ConditionalGradient(refit="output"), 0.3, 1e-2, ("l1/l2",)),
    "matrix-free": Goal(_MODEL, 0.05, 1e-2, ("l1/l2",), matrix_free=True),
    "tight": Goal(ConditionalGradient(refit="full"), 0.2, 1e-5, ("l1", "l1/l2", "l1/linf"), sets=("vowel", "segment")),
    "tight output": Goal(ConditionalGradient(refit="output"), 0.3, 1e-4, ("l1", "l1/l2"), sets=("vowel", "segment")),
    # Fits for the constants of proofs on signs, in seconds.
    "rough proof": Goal(ConditionalGradient(refit="full"), 0.2, 3e-2, ("l1/linf",), sets=("digits",)),
    "model of l1": Goal(_MODEL, 0.05, 1e-3, ("l1",), sets=_SMALL),
    "60 fixed units": Goal(
        ConditionalGradient(refit="output", max_units=60, schedule="fill"), 0.02, 1e-3, ("l1/l2",), sets=_SMALL
    ),
}
# The set for the constants that are not listed one by one, and the fits of it that take long, which are not for them.
_QUICK, _LONG = "digits", {("proof", "l1/linf"), ("60 fixed units", "l1/l2")}
# The largest set, with only the fits that take some seconds.
_LARGE, _OF_LARGE = "letter", {("proof", "l1/l2"), ("model", "l1/l2")}
KEY = ("constant", "variant", "set", "norm", "goal")
COLUMNS = (*KEY, "seconds", "rounds", "units", "fun", "gap", "accuracy", "status")


class Fit(NamedTuple):
    """A row: the changed constant, and the fit."""

    constant: str
    variant: str
    set: str
    norm: str
    goal: str
    data: str

    @property
    def key(self) -> Mapping[str, str]:
        """The columns of its key."""
        return {name: getattr(self, name) for name in KEY}


def wanted(sets: list[str], data: str) -> list[Fit]:
    """Return all rows: the fits as they are, and with every constant changed; fits of ``found`` on one set alone."""
    listed, others = ([(c.key, kind) for c in constants for kind in c.variants] for constants in (CONSTANTS, found()))
    fits = [
        (name, norm, goal)
        for name in sets
        for goal, of in GOALS.items()
        for norm in of.norms
        if name in of.sets and (name != _LARGE or (goal, norm) in _OF_LARGE)
    ]
    return [
        Fit(*variant, *fit, data)
        for fit in fits
        for variant in [
            ("none", "as it is"),
            *listed,
            *(others if fit[0] == _QUICK and (fit[2], fit[1]) not in _LONG else []),
        ]
    ]


def make_row(fit: Fit) -> dict[str, Any]:
    """Fit, and return the row: CPU seconds of one thread, so that other programs on the machine count little."""
    constant = next((c for c in (*CONSTANTS, *found()) if c.key == fit.constant), None)
    goal = GOALS[fit.goal]
    X, y, X_test, y_test = _samples(fit)
    problem = mopn.NetworkProblem(X, y, norm=fit.norm, strength=1.0, augment=True)
    problem = problem.with_strength(goal.fraction * problem.strength_max("refine"))
    with changed(constant, fit.variant), changed(_NO_MATRICES if goal.matrix_free else None, "off"):
        began = time.process_time()
        result = mopn.minimize(problem, goal.solver, tol=goal.tol, max_time=_MAX_TIME)
        seconds = time.process_time() - began
    predicted = mopn.Model.from_result(problem, result).predict(X_test)
    return {
        **fit.key,
        "seconds": seconds,
        "rounds": result.nit,
        "units": len(result.basis),
        "fun": result.fun,
        "gap": result.gap / result.fun,
        "accuracy": float(np.mean(predicted == y_test)),
        "status": result.status.name,
    }


def _samples(fit: Fit) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training and test samples: split 0 of the paper; for digits a half each, in [-1, 1]."""
    if fit.set == "digits":
        X, y = load_digits(return_X_y=True)
        order, half = np.random.default_rng(0).permutation(len(y)), len(y) // 2
        X, y = X[order] / 8.0 - 1.0, y[order]
        X, y, X_test, y_test = X[:half], y[:half], X[half:], y[half:]
    else:
        part = split(*load(fit.set, fit.data), 0)
        X, y, X_test, y_test = part.X_train, part.y_train, part.X_test, part.y_test
    if GOALS[fit.goal].two_classes:
        # Below and above the median: then the weights of a unit have no room to rotate.
        middle = np.median(np.unique(y))
        y, y_test = y > middle, y_test > middle
    return X, y, X_test, y_test
