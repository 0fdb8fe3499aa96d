"""Importances without rows, against second differences of the outputs."""

import numpy as np
import pytest
from fitted_models import KINDS, SECOND, TABLES

from mopn.data.designs import make_design
from mopn.data.feature_scaling import Coordinates
from mopn.estimators import FactorizationMachineRegressor
from mopn.explain.margins import importances_without_rows


@pytest.mark.parametrize("model", [KINDS[name] for name in SECOND] + [*TABLES.values()], ids=[*SECOND, *TABLES])
def test_importances_are_deviations_times_mean_slopes(model):
    """With differences by one deviation slopes and second derivatives of polynomials of degree 2 are exact."""
    d, rng = model._formula().linear.shape[1], np.random.default_rng(0)
    center, deviations = rng.uniform(-1, 1, d), rng.uniform(0.5, 2, d)

    def outputs(X):
        values = model._formula().outputs(make_design(X.reshape(-1, d))).reshape(*X.shape[:-1], -1)
        return values - values.mean(axis=-1, keepdims=True) if model.link == "softmax" else values

    steps = np.diag(deviations)
    slopes = (outputs(center + steps) - outputs(center - steps)) / 2
    sums, differences = steps[:, None] + steps, steps[:, None] - steps
    corners = [outputs(center + step) for step in (sums, -sums, differences, -differences)]
    second = (corners[0] + corners[1] - corners[2] - corners[3]) / 4
    squares = (slopes**2 + (second**2).sum(axis=1)).sum(axis=1)
    if model.encoding is not None:
        squares = [squares[model.encoding.owners == j].sum() for j in range(model.n_features)]
    found = importances_without_rows(model, Coordinates(center, np.ones(d), deviations=deviations))
    np.testing.assert_allclose(found, np.sqrt(squares), rtol=1e-9, atol=1e-9)


def test_higher_degrees_have_none():
    fitted = FactorizationMachineRegressor(degree=3, n_components=1, tol=0.5).fit(np.eye(4), np.arange(4.0))
    assert not hasattr(fitted, "feature_importances_")
    with pytest.raises(AttributeError, match=r"mopn.explain.shap_values\(model, X\)"):
        fitted.feature_importances_  # noqa: B018
