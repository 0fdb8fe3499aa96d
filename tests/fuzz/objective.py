"""Objectives of results: outputs of their models, losses and penalties by their definitions."""

import math
from typing import Any

import numpy as np

import mopn
from tests.definitions import outputs_by_definition
from tests.fuzz.inputs.arrays import dense
from tests.reference import loss_of_sample, norm_of_rows


def objective(problem: type, given: dict[str, Any], result: Any) -> float:
    """Return the objective of a result of a problem, from the arguments of the problem."""
    every, weights = np.arange(len(given["y"])), given["sample_weight"]
    present = every if weights is None else np.flatnonzero(weights)
    outputs, penalty = _PARTS[problem](given, result)
    y, outputs = given["y"][present], outputs[present]
    loss = given.get("loss", "logistic")
    if loss in ("logistic", "smoothed-hinge", "squared-hinge"):
        y = np.unique(y, return_inverse=True)[1]
    else:
        y = y.reshape(outputs.shape)
    if given.get("offset") is not None:
        offset = np.asarray(given["offset"])
        outputs = outputs + (offset[present, None] if len(offset) == len(every) else offset)
    values = [loss_of_sample(loss, label, row) for label, row in zip(y, outputs, strict=True)]
    return math.fsum(np.ones(len(y)) * values if weights is None else weights[present] * values) + penalty


def _outputs(problem: type, model: Any, given: dict[str, Any], result: Any) -> np.ndarray:
    """Return the outputs of the model of a result, without the offset."""
    made = model.from_result(problem(**given | {"offset": None}), result)
    return np.array([outputs_by_definition(made, x) for x in dense(given["X"]).astype(float)])


def _network(given: dict[str, Any], result: Any) -> tuple[np.ndarray, float]:
    penalty = _norm(given, result.weights)
    if given.get("alpha") is not None:
        b, W = result.linear[:, 0], result.linear[:, 1:]
        penalty += given["alpha"] / 2 * float(np.sum(W**2) + np.sum(b**2) / 100)
    return _outputs(mopn.NetworkProblem, mopn.Model, given, result), penalty


def _norm(given: dict[str, Any], V: np.ndarray) -> float:
    return 0.0 if given.get("strength") is None else given["strength"] * norm_of_rows(V, given.get("norm", "l1/l2"))


def _output_layer(given: dict[str, Any], result: Any) -> tuple[np.ndarray, float]:
    return dense(given["features"]) @ result.weights, _norm(given, result.weights)


def _linear(given: dict[str, Any], result: Any) -> float:
    """Return the penalty of the linear term."""
    return given.get("alpha", 1.0) / 2 * float(result.w @ result.w) if given.get("fit_linear") else 0.0


def _direct(given: dict[str, Any], result: Any) -> tuple[np.ndarray, float]:
    squares = np.sum(result.P**2, axis=2)
    weighted = given.get("penalty", "weighted") == "weighted"
    of_units = float(np.sum(squares * np.abs(result.lams))) if weighted else 0.5 * float(np.sum(squares))
    outputs = _outputs(mopn.FactorizationProblem, mopn.FactorizationModel, given, result)
    return outputs, _linear(given, result) + given.get("beta", 1.0) * of_units


def _lifted(given: dict[str, Any], result: Any) -> tuple[np.ndarray, float]:
    squares = float(sum(np.sum(U**2) for U in result.U))
    outputs = _outputs(mopn.LiftedProblem, mopn.FactorizationModel, given, result)
    return outputs, _linear(given, result) + given.get("beta", 1.0) / 2 * squares


_PARTS = {
    mopn.NetworkProblem: _network,
    mopn.OutputLayerProblem: _output_layer,
    mopn.FactorizationProblem: _direct,
    mopn.LiftedProblem: _lifted,
}
