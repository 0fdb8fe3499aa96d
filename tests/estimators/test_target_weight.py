"""Weights by target in the estimators of networks: of the columns of numbers and of indicator matrices."""

import numpy as np
import pytest
from networks import every_norm

import mopn
from mopn.estimators import (
    MultiOutputFMRegressor,
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    OrdinalPNRegressor,
    TableRegressor,
)
from mopn.losses.loss import WeightedByTarget

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3))
Y = np.column_stack([X[:, 0] * X[:, 1], X[:, 1] ** 2, X[:, 2]]) + 0.1 * RNG.standard_normal((60, 3))
LABELS = (np.median(Y, axis=0) < Y).astype(int)
ESTIMATORS = [
    (MultiOutputPNRegressor, Y),
    (MultiOutputFMRegressor, Y),
    (TableRegressor, Y),
    (MultiOutputPNClassifier, LABELS),
]
every_estimator = pytest.mark.parametrize(("estimator", "y"), ESTIMATORS)


@every_norm
def test_the_objective_is_that_of_the_weighted_columns(norm):
    weights = np.array([4.0, 1.0, 0.25])
    model = MultiOutputPNRegressor(norm=norm, strength=5.0, scale=None, fit_intercept=False).fit(
        X, Y, target_weight=weights
    )
    problem = mopn.NetworkProblem(
        X, Y, "squared", norm=norm, strength=5.0, offset=Y.mean(axis=0), target_weight=weights
    )
    expected = mopn.certify(problem, model.basis_, model.weights_)
    assert model.objective_ == pytest.approx(expected.fun, rel=1e-9)
    residuals = 0.5 * np.sum((model.predict(X) - Y) ** 2, axis=0)
    assert expected.fun - 5.0 * problem.norm.value(model.weights_) == pytest.approx(residuals @ weights, rel=1e-9)


@every_estimator
def test_a_target_of_more_weight_is_fitted_better(estimator, y):
    def loss_of_last(weights):
        model = estimator(strength=10.0).fit(X, y, target_weight=weights)
        outputs = model.predict(X) if y is Y else model.decision_function(X)
        return np.sum((outputs - Y)[:, 2] ** 2) if y is Y else np.sum(np.logaddexp(0, (1 - 2 * y) * outputs)[:, 2])

    assert loss_of_last([1.0, 1.0, 30.0]) < 0.8 * loss_of_last([30.0, 30.0, 1.0])


def test_single_targets_and_validation():
    model = MultiOutputPNRegressor().fit(X, Y[:, 0], target_weight=[2.0], X_val=X[:9], y_val=Y[:9, 0])
    assert model.predict(X).shape == (60,)
    blocks = mopn.RowBlocks([X[:30], X[30:]], Y)
    found = MultiOutputPNRegressor(strength=1.0).fit(blocks, target_weight=[1.0, 2.0, 3.0])
    expected = MultiOutputPNRegressor(strength=1.0).fit(X, Y, target_weight=[1.0, 2.0, 3.0])
    assert found.objective_ == pytest.approx(expected.objective_, rel=5e-3)


def test_the_strength_of_tables_is_chosen_by_the_weighted_loss(monkeypatch):
    rows, value = set(), WeightedByTarget.value
    monkeypatch.setattr(WeightedByTarget, "value", lambda self, y, outputs: rows.add(len(y)) or value(self, y, outputs))
    TableRegressor().fit(X, Y, target_weight=[1.0, 2.0, 3.0])
    # A third of the samples is held out in turn, and fits have the others.
    assert rows == {20, 40, 60}


@pytest.mark.parametrize(
    ("estimator", "y", "weights", "message"),
    [
        (MultiOutputPNClassifier(), LABELS[:, 0], 2, "target_weight is for the columns of y; weigh labels by"),
        (OrdinalPNRegressor(), LABELS[:, 0], 2, "target_weight is for the columns of y; weigh labels by"),
        (MultiOutputPNRegressor(), Y, 2, r"target_weight must have shape \(3,\), one weight per target"),
    ],
)
def test_weights_without_columns_are_refused(estimator, y, weights, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y, target_weight=np.ones(weights))
