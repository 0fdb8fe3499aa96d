"""The ridge of the network estimators."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mopn
from mopn.estimators import (
    MultiOutputFMClassifier,
    MultiOutputFMRegressor,
    MultiOutputPNClassifier,
    MultiOutputPNRegressor,
    OrdinalFMRegressor,
)

X, y = load_iris(return_X_y=True)
FACTORIZATION_MACHINES = MultiOutputFMClassifier, MultiOutputFMRegressor, OrdinalFMRegressor


def test_the_objective_has_the_ridge():
    fitted = MultiOutputPNClassifier(ridge=0.3, strength=1.0, scale="data").fit(X, y)
    problem = mopn.NetworkProblem(X, y, norm="l1", strength=1.0, augment=True, center=True, scale="data", ridge=0.3)
    exact = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full"), tol=1e-5)
    assert exact.fun <= fitted.objective_ * (1 + 1e-9)
    assert fitted.objective_ - fitted.gap_ <= exact.fun


@pytest.mark.parametrize("cls", [*FACTORIZATION_MACHINES, MultiOutputPNClassifier, MultiOutputPNRegressor])
@pytest.mark.parametrize("alpha", [None, 0.5])
def test_the_problem_of_an_estimator_is_that_of_its_fit(cls, alpha):
    estimator, weights = cls(max_units=3, alpha=alpha), 1.0 + y
    before = vars(estimator).copy()
    problem = estimator.problem(X, y, weights)
    assert vars(estimator) == before
    estimator.fit(X, y, weights)
    linear = np.zeros((0, 0)) if alpha is None else estimator.linear_
    basis, linear = problem.user_X.of_problem(estimator.basis_, linear)
    found = mopn.certify(problem, basis, estimator.weights_, linear=None if alpha is None else linear)
    assert found.fun == pytest.approx(estimator.objective_, rel=1e-9)


@pytest.mark.parametrize("scale", ["features", "data", "large", None])
def test_it_does_not_depend_on_the_units_of_x(scale):
    options = {"scale": scale, "fit_intercept": False, "strength": mopn.Ratio(0.05), "ridge": 0.3}
    funs = [MultiOutputPNClassifier(**options).fit(unit * X, y).objective_ for unit in (1.0, 1e-3, 1e4)]
    assert funs == pytest.approx([funs[0]] * 3, rel=0.05)


def test_fold_in_refuses_it():
    fitted = MultiOutputFMRegressor(ridge=0.1).fit(X, y)
    with pytest.raises(ValueError, match="fold_in knows no ridge"):
        fitted.fold_in(X[:3], y[:3])
