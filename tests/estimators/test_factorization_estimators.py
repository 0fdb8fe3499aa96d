"""The estimators of one output, with polylearn's names."""

from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mopn
from mopn.estimators import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    MultiOutputPNClassifier,
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)

REGRESSORS = [FactorizationMachineRegressor, PolynomialNetworkRegressor]
CLASSIFIERS = [FactorizationMachineClassifier, PolynomialNetworkClassifier]


def regression(n=100, d=5):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return X, X[:, 0] * X[:, 1] * X[:, 2] - X[:, 3] + 2.0


def classification(n=100):
    X, y = regression(n)
    return X, np.where(y > 2.0, "high", "low")


SETTINGS = [
    {"degree": 3},
    {"degree": 3, "fit_lower": "augment", "fit_linear": False},
    {"degree": 3, "fit_lower": "shared"},
    {"degree": 3, "fit_lower": None},
    {"degree": None},
    {"degree": 2, "init_lambdas": "fit"},
    {"degree": 3, "init_lambdas": "random_signs"},
    {"degree": 3, "solver": "lbfgs"},
    {"degree": 3, "solver": "adagrad", "max_iter": 300},
    {"degree": 3, "solver": "sgd", "max_iter": 300},
    {"degree": 3, "solver": mopn.solvers.CoordinateDescent(n_threads=2)},
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_factorization_machines_fit_products(options):
    X, y = regression()
    regressor = FactorizationMachineRegressor(**({"alpha": 1e-2, "beta": 1e-2, "random_state": 0} | options))
    regressor.fit(X, y)
    assert regressor.score(X, y) > (0.9 if regressor.degree == 2 or regressor.solver == "sgd" else 0.97)
    np.testing.assert_allclose(regressor.predict(sparse.csr_matrix(X)), regressor.predict(X), rtol=1e-10)
    orders = 2 if regressor.fit_lower == "explicit" and regressor.degree == 3 else 1
    dummies = 2 if regressor.fit_lower == "augment" else 0
    assert regressor.P_.shape == (orders, 10, 5 + dummies)
    assert regressor.lams_.shape == (10,)
    assert hasattr(regressor, "w_") == regressor.fit_linear
    assert hasattr(regressor, "theta_") == (regressor.fit_lower == "shared")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [{}, {"solver": "lbfgs"}, {"fit_lower": None}], ids=str)
def test_polynomial_networks_fit_products(options):
    X, y = regression()
    y = X[:, 4] ** 3 + (0.0 if "fit_lower" in options else y)
    regressor = PolynomialNetworkRegressor(degree=3, beta=1e-2, random_state=0, **options).fit(X, y)
    assert regressor.score(X, y) > 0.97
    assert regressor.U_.shape == (3, 10, 5 + (regressor.fit_lower == "augment"))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared", None])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classifiers(kind, loss):
    X, y = classification()
    classifier = kind(degree=3, loss=loss, beta=0.01, random_state=0).fit(X, y)
    assert classifier.score(X, y) > 0.95
    decision = classifier.decision_function(X)
    np.testing.assert_array_equal(classifier.classes_, ["high", "low"])
    np.testing.assert_array_equal(classifier.predict(X) == "low", decision > 0)
    if loss == "logistic":
        probabilities = classifier.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-decision)))
    else:
        assert not hasattr(classifier, "predict_proba")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "names", [("squared-hinge", "squared_hinge", "binary-squared-hinge"), ("logistic", "binary_logistic")]
)
def test_a_loss_has_several_names_or_is_an_object(names):
    """Those of polylearn, and of problems."""
    X, y = classification()
    several = (*names, mopn.losses.losses.LOSSES[names[-1].replace("_", "-")])
    fits = [FactorizationMachineClassifier(loss=loss, random_state=0, max_iter=3).fit(X, y) for loss in several]
    assert len({fit.objective_ for fit in fits}) == 1
    assert {hasattr(fit, "predict_proba") for fit in fits} == {"logistic" in names}


def test_the_objective_is_polylearns():
    """alpha/2 ||w||^2 + beta ||P||^2, half squared errors, sums: at the same parameters the same number."""
    X, y = regression()
    options = {"degree": 3, "beta": 0.3, "fit_intercept": False, "random_state": 0, "max_iter": 5, "tol": 0}
    fm = FactorizationMachineRegressor(alpha=0.7, **options)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fm.fit(X, y)
    expected = 0.5 * np.sum((fm.predict(X) - y) ** 2) + 0.35 * fm.w_ @ fm.w_ + 0.3 * np.sum(fm.P_**2)
    assert fm.objective_ == pytest.approx(expected, rel=1e-10)
    pn = PolynomialNetworkRegressor(**options)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        pn.fit(X, y)
    assert pn.objective_ == pytest.approx(0.5 * np.sum((pn.predict(X) - y) ** 2) + 0.15 * np.sum(pn.U_**2), rel=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fitted_attributes_are_a_start():
    X, y = regression()
    rng = np.random.default_rng(0)
    P, w, lams = 0.1 * rng.standard_normal((1, 4, 5)), rng.standard_normal(5), np.array([1.0, -1.0, 1.0, 1.0])
    options = {"alpha": 1.0, "beta": 1.0, "fit_intercept": False, "tol": 0, "max_iter": 3}
    estimator = FactorizationMachineRegressor(n_components=4, warm_start=True, **options)
    estimator.P_, estimator.w_, estimator.lams_ = P.copy(), w.copy(), lams
    estimator.fit(X, y)
    problem = mopn.FactorizationProblem(X, y, n_components=4, lams=lams, fit_linear=True)
    result = mopn.minimize(problem, mopn.solvers.CoordinateDescent(), start={"P": P, "w": w}, tol=0, max_iter=3)
    np.testing.assert_array_equal(estimator.P_, result.P)
    np.testing.assert_array_equal(estimator.w_, result.w)
    np.testing.assert_array_equal(estimator.lams_, lams)

    options = {"n_components": 4, "beta": 1.0, "random_state": 0, "tol": 0}
    whole = PolynomialNetworkRegressor(max_iter=6, **options).fit(X, y)
    half = PolynomialNetworkRegressor(max_iter=3, warm_start=True, **options).fit(X, y)
    half.fit(X, y)
    np.testing.assert_allclose(half.U_, whole.U_, rtol=1e-8, atol=1e-10)


def test_partial_fit_of_a_classifier():
    X, y = classification(400)
    classifier = FactorizationMachineClassifier(solver="adagrad", alpha=1e-4, beta=1e-4, random_state=0)
    classifier.partial_fit(X[:3], np.array(["low"] * 3), classes=["high", "low"])
    for _ in range(30):
        classifier.partial_fit(X, y)
    assert classifier.score(X, y) > 0.85
    with pytest.raises(ValueError, match="not among the classes"):
        classifier.partial_fit(X[:2], ["low", "middle"])
    first = FactorizationMachineClassifier(solver="sgd")
    with pytest.raises(ValueError, match=r"y has one class only \(low\); give both as classes in the first call"):
        first.partial_fit(X[:3], ["low"] * 3)
    for wrong in (["low"], ["low", "middle", "high"], [1, None], "low"):
        with pytest.raises(ValueError, match="classes "):
            first.partial_fit(X, y, classes=wrong)
    assert classifier.partial_fit(X, y, classes=["low", "high"]).classes_.tolist() == ["high", "low"]
    for others in (["low", "middle"], ["low"], ["high", "low", "middle"], [0, 1]):
        with pytest.raises(ValueError, match=r"classes are .*'high' 'low'.* in the first call; leave them out"):
            classifier.partial_fit(X, y, classes=others)
    assert not any(hasattr(kind(), "partial_fit") for kind in (FactorizationMachineClassifier, MultiOutputPNClassifier))
    with pytest.raises(AttributeError) as refused:
        _ = FactorizationMachineClassifier().partial_fit
    assert "partial_fit needs solver='adagrad' or 'sgd', got 'cd'" in str(refused.value.__cause__)


def test_learning_sample_by_sample():
    """A sample alone is a part, also the first one, and so is a part of which one sample has a weight."""
    X, y = regression(10)
    one, weighted = (
        FactorizationMachineRegressor(solver="sgd", random_state=0, n_components=2, alpha=0.0, beta=0.0)
        for _ in range(2)
    )
    for i in range(10):
        one.partial_fit(X[i : i + 1], y[i : i + 1])
        weighted.partial_fit(X, y, sample_weight=np.eye(10)[i])
    assert one.n_iter_ == 10
    np.testing.assert_array_equal(one.w_, weighted.w_)
    np.testing.assert_array_equal(one.P_, weighted.P_)
    assert np.mean((one.predict(X) - y) ** 2) < np.mean(y**2)
    classifier = FactorizationMachineClassifier(solver="adagrad", random_state=0)
    classifier.partial_fit(X[:1], ["low"], classes=["high", "low"])
    assert classifier.partial_fit(X[1:2], ["high"]).n_iter_ == 2


@pytest.mark.parametrize("options", [{"fit_lower": "shared", "degree": 3}, {"init_lambdas": "fit"}])
def test_partial_fit_asks_for_the_same_oracle_as_fit(options):
    X, y = regression(20)
    regressor = FactorizationMachineRegressor(solver="adagrad", **options)
    for fit in (regressor.fit, regressor.partial_fit):
        with pytest.raises(TypeError, match="AdaGrad asks for the oracle 'passes'"):
            fit(X, y)


@pytest.mark.parametrize("step", [1e90, 1e300])
def test_a_step_of_partial_fit_that_ends_too_far_is_not_taken(step):
    X, y = (part[:1] for part in regression())
    regressor = FactorizationMachineRegressor(solver=mopn.solvers.SGD(step=step), random_state=0)
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match="was rejected"):
            regressor.partial_fit(X, y)
    assert np.isfinite(regressor.predict(X)).all()


def test_too_large_steps_leave_no_nan_in_the_model():
    X, y = regression()
    regressor = FactorizationMachineRegressor(solver=mopn.solvers.SGD(step=100.0), random_state=0)
    with pytest.warns(ConvergenceWarning, match="infinite or NaN"):
        regressor.fit(X, y)
    assert regressor.status_ == mopn.Status.NONFINITE
    assert np.isfinite(regressor.P_).all()
    assert np.isfinite(regressor.predict(X)).all()


LOWER = "init_lambdas='fit' needs a single degree: .* not '{}'"


@pytest.mark.parametrize(
    ("cls", "options", "message"),
    [
        (FactorizationMachineRegressor, {"degree": 6}, "lower the degree"),
        (FactorizationMachineRegressor, {"fit_lower": "some", "degree": 3}, "fit_lower must be"),
        (PolynomialNetworkRegressor, {"fit_lower": "explicit"}, "fit_lower must be"),
        *(
            (FactorizationMachineRegressor, {"degree": 3, "fit_lower": name, "init_lambdas": "fit"}, LOWER.format(name))
            for name in ("explicit", "shared")
        ),
    ],
)
def test_bad_parameters(cls, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cls(**options).fit(*regression())


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classes_that_are_not_two(kind):
    X, _ = regression(30)
    with pytest.raises(ValueError, match="MultiOutput"):
        kind().fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="one class only"):
        kind().fit(X, np.zeros(30))


def test_same_seed_same_model():
    X, y = regression()
    fits = [FactorizationMachineRegressor(random_state=seed).fit(X, y).P_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    clone(FactorizationMachineRegressor()).fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("cls", [FactorizationMachineRegressor, PolynomialNetworkRegressor])
@pytest.mark.parametrize("other", [{"n_components": 3}, {"degree": 3}])
def test_a_warm_start_names_the_parameters_that_differ(cls, other):
    """And the one that is no number."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (20, 4)), np.zeros(20)
    estimator = cls(n_components=2, warm_start=True).fit(X, y)
    ((name, value),) = other.items()
    message = rf"cannot be continued: its (lams|P|U)_ has shape .* {name}={value}\b.*warm_start"
    with pytest.raises(ValueError, match=message):
        deepcopy(estimator).set_params(**other).fit(X, y)
    factors = "P_" if cls is FactorizationMachineRegressor else "U_"
    setattr(estimator, factors, np.full(getattr(estimator, factors).shape, "a"))
    with pytest.raises(TypeError, match=f"warm_start: {factors} must be numeric"):
        estimator.fit(X, y)


def ratings(n=600):
    """Ids of 30 users and 20 items, and ratings of main effects and noise."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(30, size=n), rng.integers(20, size=n)
    effects = rng.standard_normal(30)[users] + rng.standard_normal(20)[items]
    X = sparse.csr_array(np.hstack([np.eye(30)[users], np.eye(20)[items]]))
    return X, 3.0 + effects + 2.0 * rng.standard_normal(n)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_default_strengths_beat_fixed_ones_on_ids(cls):
    X, y = ratings()
    fixed = {name: 1.0 for name in ("alpha", "beta") if name in cls().get_params()}
    default, ones = (cls(random_state=0, **options).fit(X[:200], y[:200]) for options in ({}, fixed))
    assert default.score(X[200:], y[200:]) > ones.score(X[200:], y[200:]) + 0.05
    assert ones.beta_ == 1.0


def test_default_strengths_have_the_units_of_x_and_y():
    X, y = ratings(200)
    machine, other = (FactorizationMachineRegressor(random_state=0).fit(a * X, b * y) for a, b in ((1, 1), (4.0, 8.0)))
    assert np.isclose(machine.alpha_, 2.0)
    assert np.isclose(other.alpha_, 16.0 * machine.alpha_)
    # The fits are the same but for their starts, so their strengths are near each other.
    assert 1.0 / 4.0 <= other.beta_ / (16.0 * 8.0 * machine.beta_) <= 4.0


def test_given_strengths_stay_as_they_are_and_passes_choose_none():
    X, y = ratings(100)
    machine = FactorizationMachineRegressor(alpha=3.0, beta=2.0, random_state=0).fit(X, y)
    assert (machine.alpha_, machine.beta_) == (3.0, 2.0)
    partial = FactorizationMachineRegressor(solver="adagrad", random_state=0).partial_fit(X, y)
    assert (partial.alpha_, partial.beta_) == (1.0, 1.0)
    warm = FactorizationMachineRegressor(warm_start=True, random_state=0).fit(X, y)
    before = warm.beta_
    assert warm.fit(X, 10.0 * y).beta_ == before
    assert warm.set_params(beta=2.0).fit(X, y).beta_ == 2.0
    with pytest.raises(ValueError, match="beta must be a finite number >= 0 or 'auto'"):
        FactorizationMachineRegressor(beta="best").fit(X, y)
