"""Objectives of results by other formulas: products of features one by one, losses from their definitions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import mopn
from tests.fuzz.inputs.dense import dense

__all__ = ["objective"]


def objective(problem: type, given: dict[str, Any], result: Any) -> float:
    """Return the objective of a result of a problem, from the arguments of the problem."""
    outputs, penalty = _PARTS[problem](given, result)
    y, offset = given["y"], given.get("offset")
    loss = given.get("loss", "logistic")
    if loss in _OF_LABELS:
        y = np.unique(y[_present(given)], return_inverse=True)[1]
    else:
        y = y[_present(given)].reshape(len(outputs), -1)
    if offset is not None:
        offset = np.asarray(offset)
        single = offset.shape == (len(given["y"]),) and outputs.shape[1] == 1
        outputs = outputs + (offset[_present(given), None] if single else offset)
    weights = np.ones(len(outputs)) if given["sample_weight"] is None else given["sample_weight"][_present(given)]
    values = [_LOSSES[loss](label, row) for label, row in zip(y, outputs, strict=True)]
    return math.fsum(weights * values) + penalty


def _present(given: dict[str, Any]) -> np.ndarray:
    """Return the rows of positive weight."""
    weights = given["sample_weight"]
    return np.arange(len(given["y"])) if weights is None else np.flatnonzero(weights)


# -- losses of a sample ------------------------------------------------------------------------------------------------


def _margins(y: int, o: np.ndarray) -> np.ndarray:
    return np.delete(o - o[y], y)


def _log_sum(z: np.ndarray) -> float:
    """log(1 + sum exp(z))."""
    return float(np.logaddexp.reduce(np.append(z, 0.0)))


def _clipped(r: float, width: float, slope: float) -> float:
    """slope abs(r), within ``width * slope`` of 0 a parabola that touches it."""
    return r * r / (2.0 * width) if abs(r) <= width * slope else slope * abs(r) - width * slope * slope / 2.0


_OF_LABELS = ("logistic", "smoothed-hinge", "squared-hinge")
_LOSSES = {
    "logistic": lambda y, o: _log_sum(_margins(y, o)),
    "smoothed-hinge": lambda y, o: _log_sum(1.0 + _margins(y, o)),
    "squared-hinge": lambda y, o: float(np.sum(np.maximum(1.0 + _margins(y, o), 0.0) ** 2)),
    "squared": lambda y, o: 0.5 * float(np.sum((o - y) ** 2)),
    "huber": lambda y, o: sum(_clipped(r, 1.0, 1.0) for r in o - y),
    "quantile": lambda y, o: sum(_clipped(r, 0.1, 0.5) for r in o - y),
    "poisson": lambda y, o: math.fsum(
        math.exp(a) - b - b * (a - math.log(b or 1.0)) for a, b in zip(o, y, strict=True)
    ),
    "binary-logistic": lambda y, o: float(np.sum(np.logaddexp(0.0, -y * o))),
    "binary-squared-hinge": lambda y, o: float(np.sum(np.maximum(1.0 - y * o, 0.0) ** 2)),
}

# -- outputs and penalties ---------------------------------------------------------------------------------------------


def _anova(X: np.ndarray, H: np.ndarray, degree: int) -> np.ndarray:
    """Sum over all sets of distinct features of the products of entries of x and h."""
    K = np.zeros((len(X), len(H)))
    for group in itertools.combinations(range(X.shape[1]), degree):
        K += X[:, group].prod(axis=1)[:, None] * H[:, group].prod(axis=1)
    return K


def _with_ones(X: np.ndarray, count: int) -> np.ndarray:
    return np.hstack([np.ones((len(X), count)), X])


def _samples(given: dict[str, Any], name: str = "X") -> np.ndarray:
    return dense(given[name]).astype(float)[_present(given)]


def _treated(given: dict[str, Any]) -> np.ndarray:
    """X, centered and scaled as the options say."""
    X = _samples(given)
    weights = None if given["sample_weight"] is None else given["sample_weight"][_present(given)]
    if given.get("center"):
        X = X - np.average(X, axis=0, weights=weights)
    squares = np.average(X**2, axis=0, weights=weights)
    if given.get("scale") == "features":
        X = X / np.sqrt(np.where(squares > 0, squares, np.inf))
    if given.get("scale"):
        X = 2 * X / np.sqrt(np.average(np.sum(X**2, axis=1), weights=weights) or np.inf)
    return X


def _norm(V: np.ndarray, name: str) -> float:
    sizes = {"l1": np.abs(V), "l1/l2": np.linalg.norm(V, axis=1), "l1/linf": np.abs(V).max(axis=1, initial=0.0)}
    return 0.5 * float(np.sum(V * V)) if name == "squared-l2" else float(sizes[name].sum())


def _network(given: dict[str, Any], result: Any) -> tuple[np.ndarray, float]:
    X, H, V = _treated(given), result.basis, result.weights
    anova = given.get("kernel") == "anova"
    ones = (2 if anova else 1) if given.get("augment") else 0
    Z = _with_ones(X, ones)
    outputs = (_anova(Z, H, 2) if anova else (Z @ H.T) ** 2) @ V
    penalty = _penalty(given, V)
    if given.get("alpha") is not None:
        b, W = result.linear[:, 0], result.linear[:, 1:]
        outputs = outputs + b + X @ W.T
        penalty += given["alpha"] / 2 * float(np.sum(W**2) + np.sum(b**2) / 100)
    return outputs, penalty


def _penalty(given: dict[str, Any], V: np.ndarray) -> float:
    return 0.0 if given.get("strength") is None else given["strength"] * _norm(V, given.get("norm", "l1/l2"))


def _output_layer(given: dict[str, Any], result: Any) -> tuple[np.ndarray, float]:
    return _samples(given, "features") @ result.weights, _penalty(given, result.weights)


def _linear(given: dict[str, Any], result: Any, X: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the linear term with the constant, and its penalty."""
    outputs, penalty = np.zeros(len(X)), 0.0
    if given.get("fit_linear"):
        outputs += X @ result.w
        penalty += given.get("alpha", 1.0) / 2 * float(result.w @ result.w)
    if given.get("fit_intercept"):
        outputs += result.intercept
    return outputs, penalty


def _direct(given: dict[str, Any], result: Any) -> tuple[np.ndarray, float]:
    X = _samples(given)
    outputs, penalty = _linear(given, result, X)
    kernel, degree, lower = given.get("kernel", "anova"), given.get("degree", 2), given.get("fit_lower")
    ones = 0
    if lower == "augment":
        ones = 1 if kernel == "homogeneous" else degree - (2 if given.get("fit_linear") else 1)
    Z, beta, lams = _with_ones(X, ones), given.get("beta", 1.0), result.lams
    for order, P in enumerate(result.P):
        if kernel == "all-subsets":
            K = np.prod(1.0 + Z[:, None, :] * P[None, :, :], axis=2)
        elif kernel == "homogeneous":
            K = (Z @ P.T) ** (degree - order)
        elif lower == "shared":
            K = sum(theta * _anova(Z, P, t) for t, theta in enumerate(result.theta, 1))
        else:
            K = _anova(Z, P, degree - order)
        outputs = outputs + K @ lams
        sizes = np.abs(lams) if given.get("penalty", "weighted") == "weighted" else np.full(len(lams), 0.5)
        penalty += beta * float(sizes @ np.sum(P**2, axis=1))
    return outputs[:, None], penalty


def _lifted(given: dict[str, Any], result: Any) -> tuple[np.ndarray, float]:
    X = _samples(given)
    outputs, penalty = _linear(given, result, X)
    Z = _with_ones(X, int(given.get("augment", False)))
    if given.get("kernel", "homogeneous") == "homogeneous":
        outputs = outputs + np.prod([Z @ U.T for U in result.U], axis=0).sum(axis=1)
    else:
        U, V = result.U
        both = (Z @ U.T) * (Z @ V.T) - (Z * Z) @ (U * V).T
        outputs = outputs + 0.5 * both.sum(axis=1)
    return outputs[:, None], penalty + given.get("beta", 1.0) / 2 * float(sum(np.sum(U**2) for U in result.U))


_PARTS = {
    mopn.NetworkProblem: _network,
    mopn.OutputLayerProblem: _output_layer,
    mopn.FactorizationProblem: _direct,
    mopn.LiftedProblem: _lifted,
}
