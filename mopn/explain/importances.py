"""Importances of features without rows, from a model and the sizes of the features in its fit."""

from __future__ import annotations

import numpy as np

from mopn.data.feature_scaling import Coordinates
from mopn.models.base import Predictor
from mopn.models.quadratic import Quadratic, is_quadratic
from mopn.models.table import TableModel


def importances_without_rows(model: Predictor, coordinates: Coordinates | None) -> np.ndarray:
    """Return for each feature, or column of a table, its deviation times the root mean square slope of the outputs.

    The mean is over independent normal features with the means and deviations of the fit (without coordinates 0 and 1),
    and squares are added up over the outputs; of a softmax, over outputs less their mean. Derivative-based measures of
    sensitivity: Sobol and Kucherenko (Mathematics and Computers in Simulation, 2009).

    Raises
    ------
    AttributeError
        For degrees above 2.
    """
    formula = model._formula()
    if not is_quadratic(formula):
        raise AttributeError(
            "feature_importances_ is for outputs of degree 2 at most; for others take means of absolute values of "
            "mopn.explain.shap_values(model, X)"
        )
    outputs = Quadratic.of(formula).squared()
    d = outputs.linear.shape[1]
    center, deviations = np.zeros(d), np.ones(d)
    if coordinates is not None:
        center = center if coordinates.center is None else coordinates.center
        deviations = deviations if coordinates.deviations is None else coordinates.deviations
    # Of z = (x - center) / deviations: slopes at z = 0, weights of squares of units, and of features.
    H, V = deviations * outputs.factors[0], outputs.weights
    at_center = outputs.biases[0] + outputs.factors[0] @ center
    slopes = deviations * (outputs.linear + 2.0 * outputs.squares * center) + 2.0 * (V.T * at_center) @ H
    squares = deviations**2 * outputs.squares
    if model.link == "softmax":
        V, slopes, squares = V - V.mean(axis=1, keepdims=True), slopes - slopes.mean(axis=0), squares - squares.mean(0)
    # The slope at z is s + 2 A z, with the mean square s_j^2 + 4 sum_k A_jk^2.
    gram = H @ H.T
    rows_of_units = np.array([((gram * np.outer(v, v)) @ H * H).sum(axis=0) for v in V.T])
    rows = rows_of_units + squares * (2.0 * V.T @ H**2 + squares)
    total = (slopes**2 + 4.0 * np.maximum(rows, 0.0)).sum(axis=0)
    if isinstance(model, TableModel):
        total = np.bincount(model.encoding.owners, total, minlength=model.n_features)
    return np.sqrt(total)
