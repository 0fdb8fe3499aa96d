"""The promise of the defaults: a fit does not depend on how the data are given."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mopn import Ratio, estimators

CLASSIFIERS = (estimators.MultiOutputPNClassifier, estimators.MultiOutputFMClassifier)
REGRESSORS = (estimators.MultiOutputPNRegressor, estimators.MultiOutputFMRegressor)
every_estimator = pytest.mark.parametrize("cls", CLASSIFIERS + REGRESSORS)
NETWORKS = (estimators.MultiOutputPNClassifier, estimators.MultiOutputPNRegressor)


def data(cls, n=120):
    """Features of several sizes, some of them zero, and three classes or two targets."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 5))
    scores = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] * X[:, 3] - 0.2, X[:, 4] / 2])
    X[rng.random(X.shape) < 0.2] = 0.0
    return X * [1.0, 10.0, 0.1, 1.0, 1e3], scores.argmax(axis=1) if cls in CLASSIFIERS else scores[:, :2]


def few(cls):
    """An estimator of few units that goes on to a minimum, where fits can be compared."""
    return cls(max_units=4, tol=1e-6, strength=Ratio(0.02))


@cache
def fitted(cls):
    """The fit of the data as they are, with which others are compared."""
    return few(cls).fit(*data(cls))


def outputs(estimator, X):
    """The numbers behind the predictions."""
    return estimator.decision_function(X) if hasattr(estimator, "decision_function") else estimator.predict(X)


def same(cls, ours, theirs, X, Z):
    """Two fits predict the same, up to where refits of both layers stop."""
    size = np.abs(outputs(ours, X)).max()
    assert size > 0.1
    assert_allclose(outputs(theirs, Z), outputs(ours, X), atol=1e-2 * size)
    assert np.isclose(theirs.objective_, ours.objective_, rtol=1e-3)


@every_estimator
def test_units_and_origins_of_single_features_do_not_matter(cls):
    """For factorization machines the units only: products of features depend on their origins."""
    X, y = data(cls)
    origins = np.array([0.0, 50.0, 1e6, -7.0, 0.0]) * (cls in NETWORKS)
    Z = X * [1e-6, 1.0, 1e6, 3.0, 1.0] + origins
    same(cls, fitted(cls), few(cls).fit(Z, y), X, Z)


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@every_estimator
def test_a_ratio_is_to_the_smallest_strength_whose_solution_is_zero(cls):
    X, y = data(cls)
    assert len(cls(strength=Ratio(0.7), max_units=6).fit(X, y).basis_) > 0
    assert len(cls(strength=1.02 * cls(strength=Ratio(0.7)).fit(X, y).strength_ / 0.7).fit(X, y).basis_) == 0
    half, tenth = (cls(strength=Ratio(value), max_units=2).fit(X, y).strength_ for value in (0.5, 0.1))
    assert np.isclose(half, 5 * tenth)
    assert cls(strength=30.0, max_units=2).fit(X, y).strength_ == 30.0


@every_estimator
@pytest.mark.parametrize("odd", [np.full, lambda n, value: value + 1e-15 * np.random.default_rng(0).random(n)])
@pytest.mark.parametrize("value", [0.0, 1.0, 1e-30, 1e30])
def test_constant_features_do_no_harm(cls, odd, value):
    X, y = data(cls)
    plain, other = (
        cls(max_units=3, strength=Ratio(0.1)).fit(Z, y) for Z in (X, np.column_stack([X, odd(len(X), value)]))
    )
    assert np.isfinite(other.objective_)
    assert other.objective_ <= 1.1 * plain.objective_


@pytest.mark.parametrize("cls", NETWORKS)
@pytest.mark.parametrize("deviation", [1e-15, 1e15])
def test_features_of_extreme_deviation_count_like_others(cls, deviation):
    X, y = data(cls)
    Z = X.copy()
    Z[:, 1] *= deviation
    same(cls, fitted(cls), few(cls).fit(Z, y), X, Z)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_fewer_samples_than_features_and_a_class_of_one_sample(cls):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 30)), np.r_[np.arange(11) % 2, 2]
    model = cls().fit(X, y)
    assert np.isfinite(model.gap_)
    assert model.score(X, y) == 1.0


@every_estimator
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_plain_arrays_are_checked_like_others(cls, bad):
    """They do not pass through scikit-learn's checks, which take ten times as long as the prediction of a row."""
    X, _ = data(cls)
    estimator = fitted(cls)
    assert_allclose(estimator.predict(X[:1]), estimator.predict(X[:1].tolist()))
    row = X[:1].copy()
    row[0, 1] = bad
    for values in (row, row.astype(np.float32), row.tolist()):
        with pytest.raises(ValueError, match=r"NaN|inf"):
            estimator.predict(values)
    for values in (X[:, :4], X[:0], X[0]):
        with pytest.raises(ValueError, match=r"features|0 sample|1D array"):
            estimator.predict(values)


@pytest.mark.parametrize("cls", [estimators.MultiOutputPNClassifier, estimators.MultiOutputPNRegressor])
@pytest.mark.parametrize(("norm", "outputs", "most"), [("l1", 3, 200), ("l1", 26, 260), ("l1/l2", 26, 200)])
def test_the_limit_grows_with_the_outputs_that_have_units_of_their_own(cls, norm, outputs, most):
    Z = np.random.default_rng(0).standard_normal((60, 3))
    classes = np.arange(60) % outputs
    targets = classes if cls is estimators.MultiOutputPNClassifier else np.eye(outputs)[classes]
    estimator = cls(norm=norm)
    assert estimator.max_units == "auto"
    fit = estimator._network_fit()
    sized = fit.sized(estimator.problem(Z, targets))
    assert sized.options.max_units == most
    assert fit.with_options(max_units=7).sized(estimator.problem(Z, targets)).options.max_units == 7


def test_a_search_resolves_the_limit():
    Z = np.random.default_rng(0).standard_normal((60, 3))
    search = estimators.PathCV(estimators.MultiOutputPNClassifier(), strengths=[1.0, 0.5], cv=2)
    search.fit(Z, Z[:, 0] * Z[:, 1] > 0)
    assert search.best_params_["max_units"] == 200
