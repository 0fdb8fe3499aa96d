"""Models and other starts as networks in a problem's coordinates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mopn.core.kernels import get_kernel
from mopn.solvers.tools.checks import shown

_TAKEN = (
    "an earlier Result of a network problem, a Model, a fitted estimator, (basis, weights) or (basis, weights, linear)"
)


class NetworkParts(NamedTuple):
    """Units of any length (k, d), weights (k, m), and the linear term (m, 1 + d), or None for its zeros."""

    basis: Any
    weights: Any
    linear: Any = None


def parts_of_start(problem: Any, start: Any) -> NetworkParts:
    """Return the network of any start in the problem's coordinates; only models are for the user's X."""
    if fitted_model(start) is not None:
        return parts_of_model(problem, start)
    if hasattr(start, "basis") and hasattr(start, "weights"):
        return NetworkParts(start.basis, start.weights, getattr(start, "linear", None))
    if not (isinstance(start, tuple | list) and 2 <= len(start) <= 3):
        raise TypeError(f"start must be {_TAKEN}, got {shown(start)}")
    return NetworkParts(*start)


def fitted_model(start: Any) -> Any:
    """Return the model of a fitted estimator, the network of a table's model, or a model itself; None for the rest."""
    if hasattr(start, "fit") and not hasattr(start, "model_"):
        advice = "give its last step, pipeline[-1]" if hasattr(start, "steps") else "call fit first"
        raise TypeError(f"start: {type(start).__name__} has no model; {advice}")
    model = getattr(start, "model_", start)
    model = getattr(model, "model", model)
    return model if hasattr(model, "n_features") else None


def parts_of_model(problem: Any, start: Any) -> NetworkParts:
    """Return the network of a model for the user's X in the problem's coordinates, with the same outputs."""
    model = fitted_model(start)
    if model is None or not hasattr(model, "basis"):
        raise TypeError(f"start must be a Model or the fitted estimator of a network, got {shown(start)}")
    _check_fit(problem, model)
    linear = problem.given_linear_term.start(_linear_of(problem, model), problem.losses.n_outputs)
    weights, offset = model.weights, model.offset
    if problem.user_y is not None:
        weights, linear = problem.user_y.of_problem(weights, linear)
        offset = problem.user_y.offset_of_problem(offset)
    basis, linear = problem.user_X.of_problem(_basis_of(problem, model), linear)
    constant = offset - _common_offset(problem.losses.offset)
    parts = with_constant(NetworkParts(basis, weights, linear), constant, problem.user_X.dummies)
    if parts is None:
        raise ValueError(
            f"start: the outputs of the model have the constant {shown(model.offset)}, for which the problem has no "
            "unit; make it with this offset=, with augment=True or with alpha"
        )
    problem.norm.check_feasible(parts.weights)
    return parts


def with_constant(parts: NetworkParts, constant: Any, dummies: int) -> NetworkParts | None:
    """Return the network with constants (m,) added to its outputs; None if it has neither linear term nor dummies."""
    basis, weights, linear = parts
    if not np.any(constant):
        return parts
    if linear.size:
        return parts._replace(linear=linear + np.outer(constant, np.arange(linear.shape[1]) == 0))
    if not dummies:
        return None
    alone = unit_of_constants(basis, dummies)
    if alone is None:
        alone = len(basis)
        basis = np.vstack([basis, np.arange(basis.shape[1]) < dummies])
        weights = np.vstack([weights, np.zeros((1, weights.shape[1]))])
    # Both kernels are of degree 2, and 1 where all dummies are.
    added = np.arange(len(basis))[:, None] == alone
    return NetworkParts(basis, weights + added * (constant / basis[alone, 0] ** 2), linear)


def unit_of_constants(basis: np.ndarray, dummies: int) -> int | None:
    """Return the last unit whose entries are equal for the dummies and 0 for the features, or None."""
    equal = (basis[:, :dummies] == basis[:, :1]).all(axis=1) & (basis[:, 0] != 0.0)
    found = np.flatnonzero(equal & ~basis[:, dummies:].any(axis=1))
    return int(found[-1]) if len(found) else None


def _check_fit(problem: Any, model: Any) -> None:
    """Raise ``ValueError`` for a model of another kernel, of other features or of other outputs."""
    if model.kernel != problem.kernel.name:
        raise ValueError(f"start: the model has kernel={model.kernel!r}, and the problem {problem.kernel.name!r}")
    d, m = problem.given_rows.n_features, problem.losses.n_outputs
    found = model.n_features, model.weights.shape[1]
    if found != (d, m):
        raise ValueError(
            f"start: the model has {found[0]} features and {found[1]} outputs, and the problem {d} and {m}; give a "
            "model of the same X and y"
        )
    classes = problem.classes
    # The problems of estimators have codes in place of labels.
    if classes is None or model.classes is None or np.array_equal(classes, np.arange(m)):
        return
    if not np.array_equal(classes, model.classes):
        raise ValueError(
            f"start: the model has the classes {shown(list(model.classes))}, and the problem {shown(list(classes))}"
        )


def _basis_of(problem: Any, model: Any) -> np.ndarray:
    """Return the model's units with as many dummies as the problem has."""
    dummies = problem.user_X.dummies
    if model.augment == bool(dummies):
        return model.basis
    if dummies:
        return np.hstack([np.zeros((len(model.basis), dummies)), model.basis])
    own = get_kernel(model.kernel).dummies
    if model.basis[:, :own].any():
        raise ValueError("start: the units of the model have constants; make the problem with augment=True")
    return model.basis[:, own:]


def _linear_of(problem: Any, model: Any) -> Any:
    """Return the model's linear term, or None if it is zero and the problem has none."""
    if model.linear is None or problem.linear_term.active:
        return model.linear
    if np.any(model.linear):
        raise ValueError("start: the model has a linear term; make the problem with alpha, the strength of its penalty")
    return None


def _common_offset(offset: Any) -> Any:
    """Return the offset (m,) of all samples, or 0; one that differs between samples is no part of a model."""
    if offset is None or not np.all(offset == offset[0]):
        return 0.0
    return offset[0]
