"""Estimators whose units only add: which functions they can be, and that classes and levels are still told apart."""

import numpy as np
import pytest

import mopn
from mopn import estimators

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
OPTIONS = {"norm": "nonnegative-l1", "strength": mopn.Ratio(0.01)}


def fitted(kind, y, **options):
    model = kind(**OPTIONS, **options).fit(X, y)
    assert (model.weights_ >= 0).all()
    assert model.weights_.any()
    assert np.isfinite(model.gap_)
    return model


@pytest.mark.parametrize("kind", [estimators.MultiOutputPNClassifier, estimators.MultiOutputFMClassifier])
@pytest.mark.parametrize("levels", [[0.0], [-0.4, 0.4]])
def test_classes_are_told_apart(kind, levels):
    """Two of them too: each has units of its own."""
    y = np.digitize(Y, levels)
    assert fitted(kind, y).score(X, y) > 0.9


@pytest.mark.parametrize("kind", [estimators.MultiOutputPNRegressor, estimators.MultiOutputFMRegressor])
def test_regressions(kind):
    """Sums of squares lie above the mean; pairs of features have both signs, and so has a linear term."""
    above = fitted(kind, Y, alpha=None).predict(X) >= Y.mean() - 1e-12
    assert above.all() == (kind is estimators.MultiOutputPNRegressor)
    assert fitted(kind, Y, alpha=0.1).score(X, Y) > 0.7


def test_a_single_output_of_two_classes_needs_a_linear_term():
    y = np.digitize(Y, [0.0])
    alone = fitted(estimators.MultiOutputPNClassifier, y, loss="binary-logistic", alpha=None)
    assert (alone.predict_proba(X)[:, 1] >= 0.5).all()
    assert fitted(estimators.MultiOutputPNClassifier, y, loss="binary-logistic", alpha=0.1).score(X, y) > 0.8
