"""Penalties of the network estimators: units that only add, which functions they can be; and the ridge."""

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


# -- the ridge ---------------------------------------------------------------------------------------------------------

CODES = np.digitize(Y, [-0.4, 0.4])
WITH_RIDGES = [
    *(estimators.MultiOutputFMClassifier, estimators.MultiOutputFMRegressor, estimators.OrdinalFMRegressor),
    *(estimators.MultiOutputPNClassifier, estimators.MultiOutputPNRegressor),
]


def test_the_objective_has_the_ridge():
    fitted = estimators.MultiOutputPNClassifier(ridge=0.3, strength=1.0, scale="data").fit(X, CODES)
    logarithms = np.log(np.bincount(CODES))
    options = {"strength": 1.0, "augment": True, "center": True, "scale": "data", "ridge": 0.3}
    problem = mopn.NetworkProblem(X, CODES, norm="l1", offset=logarithms - logarithms.mean(), **options)
    exact = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full"), tol=1e-5)
    assert exact.fun <= fitted.objective_ * (1 + 1e-9)
    assert fitted.objective_ - fitted.gap_ <= exact.fun


@pytest.mark.parametrize("cls", WITH_RIDGES)
@pytest.mark.parametrize("alpha", [None, 0.5])
def test_the_problem_of_an_estimator_is_that_of_its_fit(cls, alpha):
    estimator, weights = cls(max_units=3, alpha=alpha), 1.0 + CODES
    before = vars(estimator).copy()
    problem = estimator.problem(X, CODES, weights)
    assert vars(estimator) == before
    estimator.fit(X, CODES, weights)
    linear = np.zeros((0, 0)) if alpha is None else estimator.linear_
    basis, linear = problem.user_X.of_problem(estimator.basis_, linear)
    found = mopn.certify(problem, basis, estimator.weights_, linear=None if alpha is None else linear)
    assert found.fun == pytest.approx(estimator.objective_, rel=1e-9)


@pytest.mark.parametrize("scale", ["features", "data", "large", None])
def test_it_does_not_depend_on_the_units_of_x(scale):
    options = {"scale": scale, "fit_intercept": False, "strength": mopn.Ratio(0.05), "ridge": 0.3}
    funs = [estimators.MultiOutputPNClassifier(**options).fit(unit * X, CODES).objective_ for unit in (1.0, 1e-3, 1e4)]
    assert funs == pytest.approx([funs[0]] * 3, rel=0.05)


def test_fold_in_refuses_it():
    fitted = estimators.MultiOutputFMRegressor(ridge=0.1).fit(X, CODES)
    with pytest.raises(ValueError, match="fold_in knows no ridge"):
        fitted.fold_in(X[:3], CODES[:3])
