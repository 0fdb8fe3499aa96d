"""Objectives of results by other formulas: products of features one by one, losses from their definitions."""

import itertools
import math
from typing import Any

import numpy as np

import mopn
from tests.fuzz.inputs.arrays import dense
from tests.reference import loss_of_sample, norm_of_rows


def objective(problem: type, given: dict[str, Any], result: Any) -> float:
    """Return the objective of a result of a problem, from the arguments of the problem."""
    outputs, penalty = _PARTS[problem](given, result)
    y, offset = given["y"], given.get("offset")
    loss = given.get("loss", "logistic")
    if loss in ("logistic", "smoothed-hinge", "squared-hinge"):
        y = np.unique(y[_present(given)], return_inverse=True)[1]
    else:
        y = y[_present(given)].reshape(len(outputs), -1)
    if offset is not None:
        offset = np.asarray(offset)
        single = offset.shape == (len(given["y"]),) and outputs.shape[1] == 1
        outputs = outputs + (offset[_present(given), None] if single else offset)
    weights = np.ones(len(outputs)) if given["sample_weight"] is None else given["sample_weight"][_present(given)]
    values = [loss_of_sample(loss, label, row) for label, row in zip(y, outputs, strict=True)]
    return math.fsum(weights * values) + penalty


def _present(given: dict[str, Any]) -> np.ndarray:
    """Return the rows of positive weight."""
    weights = given["sample_weight"]
    return np.arange(len(given["y"])) if weights is None else np.flatnonzero(weights)


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
    if given.get("scale") == "large":
        return X / np.sqrt(np.maximum(squares / _largest_of_pair(squares), 1.0))
    if given.get("scale") == "features":
        X = X / np.sqrt(np.where(squares > 0, squares, np.inf))
    if given.get("scale"):
        X = 2 * X / np.sqrt(np.average(np.sum(X**2, axis=1), weights=weights) or np.inf)
    return X


def _largest_of_pair(squares: np.ndarray) -> float:
    """Return the largest of the smallest mean squares that make up 2."""
    ordered = np.sort(squares)
    return ordered[np.append(np.cumsum(ordered)[:-1], np.inf) >= 2.0 - 1e-6][0] or 1.0


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
    return 0.0 if given.get("strength") is None else given["strength"] * norm_of_rows(V, given.get("norm", "l1/l2"))


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
        penalty += beta * _of_units(P, lams, given.get("penalty", "weighted"))
    return outputs[:, None], penalty


def _of_units(P: np.ndarray, lams: np.ndarray, name: str) -> float:
    """Return the penalty of the units of one degree: squared norms, with l1 norms of each, or across features."""
    absolute = np.sqrt(np.abs(lams))[:, None] * np.abs(P)
    values = {
        "weighted": np.sum(absolute**2),
        "frobenius": 0.5 * np.sum(P**2),
    }
    return float(values[name])


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
