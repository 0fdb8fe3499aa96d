"""Estimators on arrays of other namespaces: networks compute where X is, all others in NumPy."""

import numpy as np
import pytest
from devices import LIBRARIES, on_device

from mopn import estimators
from mopn.data import device_rows
from mopn.losses.namespaces import is_on_accelerator

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 4))
LEVELS = 1 + (X[:, 0] * X[:, 1] > 0.1).astype(int) + (X[:, 2] > 0)
FEW = {"max_units": 3, "tol": 1e-2}
NETWORKS = [
    (estimators.MultiOutputPNClassifier(**FEW), LEVELS.astype(str)),
    (estimators.MultiOutputFMClassifier(**FEW, norm="l1"), LEVELS),
    (estimators.MultiOutputPNRegressor(**FEW), X[:, :2] ** 2),
    (estimators.MultiOutputFMRegressor(**FEW, scale=None), X[:, 0] * X[:, 1]),
    (estimators.OrdinalFMRegressor(**FEW), LEVELS),
]
IN_NUMPY = [
    (estimators.PathCV(estimators.MultiOutputPNClassifier(), max_units=2, cv=2, strengths=[3.0, 0.5]), LEVELS),
    (estimators.FactorizationMachineRegressor(random_state=0), X[:, 0]),
    (estimators.TableRegressor(strength=0.1, curves=1, max_units=2, tol=0.1), X[:, 0]),
]


def name(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize(("estimator", "y"), NETWORKS, ids=lambda value: name(value) if hasattr(value, "fit") else "")
def test_networks_are_fitted_where_the_data_are(estimator, y, monkeypatch):
    """Sums over rows are those of the device; the model is the one of the same data in NumPy."""
    there, here = on_device("array_api_strict")(X), estimator.fit(X, y).predict(X)
    made = []
    init = device_rows.DeviceRows.__init__
    monkeypatch.setattr(device_rows.DeviceRows, "__init__", lambda self, *a, **k: made.append(0) or init(self, *a, **k))
    estimator.fit(there, y)
    assert made
    assert estimator.n_features_in_ == 4
    np.testing.assert_array_equal(estimator.predict(there), estimator.predict(X))
    predicted = estimator.predict(there)
    if predicted.dtype.kind == "f":
        np.testing.assert_allclose(predicted, here, rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(predicted, here)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("estimator", "y"), IN_NUMPY, ids=lambda value: name(value) if hasattr(value, "fit") else "")
def test_other_estimators_convert(estimator, y, library):
    there = on_device(library)(X)
    expected = estimator.fit(X, y).predict(X)
    np.testing.assert_array_equal(estimator.fit(there, y).predict(there), expected)


def test_weights_and_targets_on_the_device():
    move, weights = on_device("array_api_strict"), 1.0 + (LEVELS == 1)
    here, there = (estimators.MultiOutputPNClassifier(**FEW) for _ in range(2))
    here.fit(move(X), LEVELS, weights)
    there.fit(move(X), move(LEVELS), move(weights))
    np.testing.assert_array_equal(here.weights_, there.weights_)


def test_arrays_of_the_host_are_no_accelerator():
    pytest.importorskip("array_api_strict")
    import array_api_strict as xp

    assert is_on_accelerator(on_device("array_api_strict")(X))
    assert not is_on_accelerator(xp.asarray(X))
    assert not is_on_accelerator(X)


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (np.where(np.arange(4) == 2, np.nan, X), LEVELS, "NaN or infinity"),
        (X[:, 0], LEVELS, "two-dimensional"),
        (X, LEVELS[1:], "one row per sample"),
    ],
    ids=["NaN", "one axis", "rows"],
)
def test_messages(rows, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        estimators.MultiOutputPNClassifier(**FEW).fit(on_device("array_api_strict")(rows), y)


def test_rows_held_out_at_random_are_of_numpy():
    with pytest.raises(ValueError, match="give X_val"):
        estimators.MultiOutputPNClassifier(validation_fraction=0.2).fit(on_device("array_api_strict")(X), LEVELS)
