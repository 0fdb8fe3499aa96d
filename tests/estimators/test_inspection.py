"""What scikit-learn and the models say of fitted estimators, of every class."""

import matplotlib as mpl
import numpy as np
import pytest
from estimator_names import OF_SAMPLES
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import PartialDependenceDisplay, partial_dependence

from mopn import Ratio, estimators
from mopn.explain import certified_radius

mpl.use("Agg")
import matplotlib.pyplot as plt

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 4))
NUMBERS = X[:, 0] * X[:, 1] + X[:, 2]
CODES = np.digitize(NUMBERS, [-0.4, 0.4])
TARGETS = {
    estimators.FactorizationMachineClassifier: NUMBERS > 0,
    estimators.PolynomialNetworkClassifier: NUMBERS > 0,
    estimators.FactorizationMachineRegressor: NUMBERS,
    estimators.PolynomialNetworkRegressor: NUMBERS,
    estimators.MultiOutputFMRegressor: NUMBERS,
    estimators.MultiOutputPNRegressor: NUMBERS,
}


@pytest.fixture(scope="module", params=[name for name in OF_SAMPLES if name not in ("PathCV", "TableEncoder")])
def fitted(request):
    cls = getattr(estimators, request.param)
    y = TARGETS.get(cls, CODES)
    options = (
        {"max_units": 3, "strength": Ratio(0.1)}
        if "max_units" in cls().get_params()
        else {"n_components": 3, "random_state": 0}
    )
    return cls(**options).fit(X, y)


def test_partial_dependence(fitted):
    """For a pair, and averaged as defined: over the rows, with the features set to the values of the grid."""
    several = len(getattr(fitted, "classes_", ())) > 2
    display = PartialDependenceDisplay.from_estimator(
        fitted, X, [0, (0, 1)], grid_resolution=4, target=fitted.classes_[1] if several else None
    )
    assert len(display.axes_.ravel()) == 2
    plt.close("all")
    found = partial_dependence(fitted, X, [1], grid_resolution=3)
    moved = X.copy()
    moved[:, 1] = found["grid_values"][0][0]
    if hasattr(fitted, "classes_"):
        response = fitted.predict_proba(moved) if hasattr(fitted, "predict_proba") else fitted.decision_function(moved)
        response = response if several or response.ndim == 1 else response[:, 1]
    else:
        response = fitted.predict(moved)
    np.testing.assert_allclose(found["average"][:, 0], np.atleast_1d(response.mean(axis=0)), rtol=1e-10)


def test_features_are_selected(fitted):
    """The least important feature goes first."""
    kept = np.arange(4) != np.argmin(fitted.feature_importances_)
    np.testing.assert_array_equal(
        SelectFromModel(fitted, prefit=True, max_features=3, threshold=-np.inf).fit(X).get_support(), kept
    )
    assert RFE(fitted, n_features_to_select=3).fit(X, TARGETS.get(type(fitted), CODES)).get_support().sum() == 3


def test_radii_are_those_of_the_model(fitted):
    """Only classifiers of numbers have them; all others say so."""
    if fitted.model_.target == "labels" and fitted.model_.encoding is None:
        np.testing.assert_array_equal(certified_radius(fitted, X), certified_radius(fitted.model_, X))
    else:
        with pytest.raises(TypeError, match="certified_radius"):
            certified_radius(fitted, X)
