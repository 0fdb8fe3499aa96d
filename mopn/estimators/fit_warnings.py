"""Warnings at the end of a fit: of failure, of constant predictions, of lost digits, and of outputs without a unit."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mopn.estimators.network_fit import NetworkOptions
from mopn.network.problem import NetworkProblem
from mopn.solvers import Result, Status
from mopn.solvers.result import gap_in_words
from mopn.solvers.tools.decorators import warn_caller

# Deviations between the mean of a feature and 0 beyond which a model keeps fewer than half of its digits.
_MAX_DEVIATIONS_FROM_ZERO = 1e8


class FittedNetwork(NamedTuple):
    """The end of a fit of a network: its options, its problem, the result, and the fitted attributes."""

    options: NetworkOptions
    problem: NetworkProblem
    result: Result
    attributes: dict[str, Any]


def warn_of_failure(result: Result) -> None:
    """Warn of a fit that did not succeed."""
    if result.status.warns:
        reason = "" if result.error is None else f" ({result.error!r})"
        gap = f", the gap {gap_in_words(result)}" if math.isfinite(result.gap) else ""
        warn_caller(f"{result.message}{reason} The objective is {result.fun:.6g}{gap}.", ConvergenceWarning)


def warn_of_network(fitted: FittedNetwork) -> None:
    """Warn of all that a user would not expect of a fitted network."""
    warn_of_failure(fitted.result)
    if not fitted.result.status.warns and _is_constant(fitted):
        _warn_of_constant(fitted)
    _warn_of_lost_digits(fitted)
    _warn_of_outputs_without_units(fitted)


def _is_constant(fitted: FittedNetwork) -> bool:
    """Whether predictions do not depend on X: no unit has a feature, and there is no linear term."""
    model = fitted.attributes["model_"]
    linear = None if model.linear is None else model.linear[:, 1:]
    dummies = model.basis.shape[1] - model.n_features
    return not model.basis[:, dummies:].any() and (linear is None or not linear.any())


def _warn_of_constant(fitted: FittedNetwork) -> None:
    status = fitted.result.status
    options = fitted.options
    if status == Status.MAX_TIME:
        warn_caller(
            "max_time ended the fit before a unit had an effect of X, so that all predictions "
            "are the same; raise max_time",
            ConvergenceWarning,
        )
    elif status == Status.MAX_UNITS:
        warn_caller(f"max_units={options.max_units} leaves no unit for X: all predictions are the same; raise it")
    else:
        strength = fitted.attributes["strength_"]
        warn_caller(
            f"no unit has an effect of X at strength={strength:.3g} and tol={options.tol:g}, so that all "
            "predictions are the same; lower the strength if y depends on X"
        )


def _warn_of_lost_digits(fitted: FittedNetwork) -> None:
    coordinates = fitted.problem.user_X.coordinates
    farthest = 0.0 if coordinates is None else coordinates.relative_center.max(initial=0.0)
    gap = fitted.attributes["gap_"]
    certain = max(fitted.result.gap, fitted.options.tol * abs(fitted.attributes["objective_"]))
    if farthest > _MAX_DEVIATIONS_FROM_ZERO and gap > certain:
        warn_caller(
            f"X: features are up to {farthest:.1g} deviations from 0, so that rounding may change the objective of "
            f"the model by {gap - fitted.result.gap:.2g}; subtract numbers near their means"
        )


def _warn_of_outputs_without_units(fitted: FittedNetwork) -> None:
    options = fitted.options
    used = np.array(fitted.result.weights.any(axis=0))
    most = options.max_units or math.inf
    # Outputs that are compared with each other need no unit in one of them.
    needed = len(used) - (fitted.attributes["loss_"].targets == "labels")
    if fitted.result.status == Status.MAX_UNITS and used.sum() < needed > most and options.alpha is None:
        warn_caller(
            f"max_units={most} is less than the {len(used)} outputs, and {len(used) - used.sum()} of them, such as "
            f"number {used.argmin()}, have no unit and so a constant value: with norm={options.norm!r} most units "
            "serve a single output. Raise max_units, take norm='l1/l2', or give alpha, for a linear term"
        )
