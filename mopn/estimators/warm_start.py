"""The network of the previous fit, from which a fit with ``warm_start`` goes on."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.data.validation import as_numbers
from mopn.estimators.network_fit import NetworkFit
from mopn.estimators.targets import Targets
from mopn.network.model_starts import NetworkParts
from mopn.network.problem import NetworkProblem


def previous_network(estimator: Any, fit: NetworkFit, problem: NetworkProblem, targets: Targets) -> NetworkParts:
    """Return the network of the previous fit of an estimator, if this one can start from it."""
    basis = as_numbers(estimator.basis_, "warm_start=True: basis_")
    weights = as_numbers(estimator.weights_, "warm_start=True: weights_")
    if basis.ndim != 2 or weights.ndim != 2:
        raise ValueError(
            f"warm_start=True starts from basis_ (k, d) and weights_ (k, m), which have the shapes {basis.shape} "
            f"and {weights.shape}; set warm_start=False"
        )
    if not (np.isfinite(basis).all() and np.isfinite(weights).all()):
        raise ValueError("warm_start=True: basis_ or weights_ contains NaN or infinity; set warm_start=False")
    old_inputs = basis.shape[1]
    old_outputs = weights.shape[1]
    inputs = problem.n_inputs
    outputs = problem.losses.n_outputs
    if (old_inputs, old_outputs) != (inputs, outputs):
        raise ValueError(
            f"warm_start=True starts from a network of {old_inputs} inputs (dummies included) and {old_outputs} "
            f"outputs, but this fit has {inputs} and {outputs}; set warm_start=False"
        )
    name = fit.encoding.classes_name
    known: Any = getattr(estimator, name, None)
    if targets.classes is not None and not np.array_equal(known, targets.classes):
        raise ValueError(
            f"warm_start=True starts from a network for the {name.strip('_')} {known}, but this fit "
            f"has {targets.classes}; set warm_start=False"
        )
    return fit.start_from(problem, basis, weights, estimator.linear_, estimator.model_.offset)
