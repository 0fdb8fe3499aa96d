"""Samples of one's own to validate on: ``fit(X, y, X_val=..., y_val=...)``."""

import numpy as np
import pytest
from scipy import sparse

from mopn.estimators import MultiOutputPNClassifier, MultiOutputPNRegressor, OrdinalFMRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (90, 4))
SIGNAL = X[:, 0] * X[:, 1] + X[:, 2]
TARGETS = {
    MultiOutputPNClassifier: np.array(["low", "mid", "high"])[np.digitize(SIGNAL, [-0.4, 0.4])],
    MultiOutputPNRegressor: SIGNAL + 0.3 * RNG.standard_normal(90),
    OrdinalFMRegressor: np.digitize(SIGNAL, [-0.4, 0.4]),
}


@pytest.mark.parametrize("cls", TARGETS)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_the_best_network_by_these_samples_is_kept(cls, container):
    y = TARGETS[cls]
    options = {"refit": "output", "max_units": 6, "strength": 0.05}
    estimator = cls(**options).fit(container(X[:60]), y[:60], X_val=container(X[60:]), y_val=y[60:])
    assert len(estimator.validation_scores_) == len(estimator.trace_["time"])
    np.testing.assert_allclose(max(estimator.validation_scores_), estimator.score(X[60:], y[60:]), rtol=1e-9)


@pytest.mark.parametrize("cls", TARGETS)
def test_the_training_does_not_see_these_samples(cls):
    y = TARGETS[cls]
    options = {"refit": "output", "max_units": 3, "strength": 0.05}
    found = []
    for rows in (slice(60, 75), slice(75, 90)):
        estimator = cls(**options).fit(X[:60], y[:60], X_val=X[rows], y_val=y[rows])
        found.append(estimator.trace_["fun"])
    np.testing.assert_array_equal(*found)


def test_weights_of_the_samples_count():
    y = TARGETS[MultiOutputPNClassifier]
    weight = RNG.integers(0, 3, 30)
    options = {"refit": "output", "max_units": 4, "strength": 0.05}
    weighted = MultiOutputPNClassifier(**options).fit(
        X[:60], y[:60], X_val=X[60:], y_val=y[60:], sample_weight_val=weight
    )
    repeated = MultiOutputPNClassifier(**options).fit(
        X[:60], y[:60], X_val=np.repeat(X[60:], weight, axis=0), y_val=np.repeat(y[60:], weight)
    )
    np.testing.assert_allclose(weighted.validation_scores_, repeated.validation_scores_)


@pytest.mark.parametrize(
    ("options", "own", "message"),
    [
        ({}, {"X_val": X}, "y_val is missing: X_val and y_val go together"),
        ({}, {"y_val": np.repeat("low", 90)}, "X_val is missing: X_val and y_val go together"),
        ({}, {"X_val": X[:, :2], "y_val": np.repeat("low", 90)}, "features"),
        (
            {},
            {"X_val": X, "y_val": np.repeat("other", 90)},
            "y_val has the label 'other', which is not among the classes",
        ),
        ({}, {"X_val": X, "y_val": np.ones((90, 2), dtype=int)}, "y_val must be like y"),
    ],
)
def test_wrong_samples(options, own, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MultiOutputPNClassifier(**options).fit(X, TARGETS[MultiOutputPNClassifier], **own)
