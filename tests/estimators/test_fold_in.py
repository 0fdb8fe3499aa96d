"""A new feature of a factorization machine, against the objective of the training."""

from dataclasses import replace

import numpy as np
import pytest
from reference import norm_of_rows
from scipy import sparse
from sklearn.base import clone

import mopn
from mopn.data.losses_of_rows import Losses
from mopn.estimators import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    MultiOutputFMClassifier,
    MultiOutputFMRegressor,
    OrdinalFMRegressor,
)
from mopn.estimators.fold_in import NewFeature, NewFeatureProblem
from mopn.models.base import cumulative_targets
from mopn.solvers.driver import RunMonitor

LABELS = np.array(["a", "b", "c"])


def ratings(seed=0):
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, 8, 120), rng.integers(0, 6, 120)
    X = np.column_stack([np.eye(8)[users], np.eye(6)[items], np.eye(2)[users % 2]])
    return X, np.clip(np.round(3 + rng.standard_normal(8)[users] + 2 * (users % 2 == items % 2)), 1, 5)


def films(n=4):
    """Rows of the first films, without a user, but with a user's known features."""
    return np.column_stack([np.zeros((n, 8)), np.eye(6)[:n], np.tile([1.0, 0.0], (n, 1))])


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def moves(model, size, rng):
    """The model with other coefficients of the last feature."""
    if isinstance(model, mopn.FactorizationModel):
        factors, w = model.factors.copy(), None if model.w is None else model.w.copy()
        factors[:, :, -1] += size * rng.standard_normal(factors.shape[:2])
        if w is not None:
            w[-1] += size * rng.standard_normal()
        return replace(model, factors=factors, w=w)
    basis, linear = model.basis.copy(), None if model.linear is None else model.linear.copy()
    basis[:, -1] += size * rng.standard_normal(len(basis))
    if linear is not None:
        linear[:, -1] += size * rng.standard_normal(len(linear))
    return replace(model, basis=basis, linear=linear)


def assert_least(value, model):
    """No other coefficients of the new feature have a smaller value."""
    rng, least = np.random.default_rng(1), value(model)
    for size in (1e-3, 1e-1):
        for _ in range(5):
            assert value(moves(model, size, rng)) > least


def assert_others_as_they_were(model, estimator, X):
    old = np.column_stack([X, np.zeros(len(X))])
    np.testing.assert_allclose(model.outputs(old), estimator.model_.outputs(X), atol=1e-12)


def one_against_others(labels):
    return np.where(labels[:, None] == LABELS, 1.0, -1.0)


def cumulative(levels):
    every = np.unique(ratings()[1])
    return cumulative_targets(np.searchsorted(every, levels), len(every))


# Estimator, targets of the fit from the ratings, targets of the new rows, and the loss's encoding of them.
NETWORKS = {
    "levels": (OrdinalFMRegressor(), lambda y: y, [5, 2, 5, 3], cumulative),
    "levels, with an intercept": (OrdinalFMRegressor(fit_intercept=True), lambda y: y, [5, 2, 5, 3], cumulative),
    "one target": (MultiOutputFMRegressor(), lambda y: y, [5.0, 2.0, 5.0, 3.0], lambda y: y[:, None]),
    "two targets": (
        MultiOutputFMRegressor(loss="huber"),
        lambda y: np.column_stack([y, -y]),
        [[5.0, 0.0], [2.0, 1.0], [5.0, -4.0], [3.0, 2.0]],
        lambda y: y,
    ),
    "counts": (MultiOutputFMRegressor(loss="poisson"), lambda y: y, [5.0, 2.0, 5.0, 3.0], lambda y: y[:, None]),
    "labels": (
        MultiOutputFMClassifier(loss="logistic"),
        lambda y: LABELS[(y > 3).astype(int) + (y > 4)],
        ["c", "a", "c", "b"],
        lambda y: np.searchsorted(LABELS, y),
    ),
    "each label": (
        MultiOutputFMClassifier(loss="binary-logistic"),
        lambda y: LABELS[(y > 3).astype(int) + (y > 4)],
        ["c", "a", "c", "c"],
        one_against_others,
    ),
    "two labels": (
        MultiOutputFMClassifier(loss="binary-squared-hinge"),
        lambda y: LABELS[(y > 3).astype(int)],
        ["b", "a", "b", "b"],
        lambda y: np.where(y == "b", 1.0, -1.0)[:, None],
    ),
    "indicators": (
        MultiOutputFMClassifier(loss="binary-logistic"),
        lambda y: np.column_stack([y > 3, y < 2, y > 4]).astype(int),
        [[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0]],
        lambda y: 2.0 * y - 1.0,
    ),
}


@pytest.mark.parametrize(
    ("norm", "scale", "alpha"),
    [
        ("l1", "features", None),
        ("l1/l2", "data", 0.5),
        ("l1/linf", "large", 0.5),
        ("l1/l2", None, None),
    ],
)
@pytest.mark.parametrize("kind", NETWORKS)
def test_networks_of_all_targets(kind, norm, scale, alpha):
    estimator, of_ratings, new, encoded = NETWORKS[kind]
    X, y = ratings()
    options = {"norm": norm, "scale": scale, "alpha": alpha}
    fitted = clone(estimator).set_params(**options, max_units=3, strength=1.0).fit(X, of_ratings(y))
    new, rows = np.array(new), with_ones(films())
    # A new feature among the others: their mean square, times their number, is four.
    squares = np.mean(np.vstack([np.column_stack([X, np.zeros(len(X))]), rows]) ** 2, axis=0)[-1]
    of_fit = np.mean(X**2, axis=0)
    squared = {"data": of_fit.sum() / 4.0, "features": squares * X.shape[1] / 4.0}.get(scale, 1.0)

    def value(model):
        losses = fitted.loss_.value_gradient(encoded(new), model.outputs(rows))[0]
        penalty = fitted.strength_ * norm_of_rows(model.weights * model.basis[:, -1:] ** 2, norm)
        ridge = 0.0 if alpha is None else 0.5 * alpha * np.sum(model.linear[:, -1] ** 2)
        return losses.sum() + squared * (penalty + ridge)

    model = fitted.fold_in(sparse.csr_array(films()), new)
    assert len(model.basis)
    assert_least(value, model)
    assert_others_as_they_were(model, fitted, X)


SINGLE = [
    {},
    {"penalty": "frobenius"},
    {"fit_linear": False},
    {"init_lambdas": "fit"},
    {"init_lambdas": "random_signs", "fit_linear": False, "fit_lower": "augment"},
    {"degree": 3},
    {"degree": 3, "fit_lower": None},
    {"degree": 3, "fit_lower": "augment"},
    {"degree": 3, "fit_lower": "shared", "fit_linear": False},
    {"degree": None},
]


@pytest.mark.parametrize("options", SINGLE, ids=str)
@pytest.mark.parametrize("kind", [FactorizationMachineRegressor, FactorizationMachineClassifier])
def test_machines_of_one_output_of_any_degree(kind, options):
    X, y = ratings()
    # A feature in all rows, so that new rows have more than two.
    X, known = np.column_stack([X, np.arange(len(X)) % 3]), np.column_stack([films(), [1.0, 2.0, 0.0, -1.0]])
    parts = {"alpha": 0.5, "beta": 0.1, "n_components": 3, "random_state": 0, "max_iter": 50, "tol": 0.0}
    if kind is FactorizationMachineClassifier:
        y, new, codes = LABELS[(y > 3).astype(int)], np.array(["b", "a", "b", "b"]), np.array([1.0, -1.0, 1.0, 1.0])
    else:
        y, codes = y - y.mean(), np.array([2.0, -1.0, 2.0, 0.5])
        new = codes
    with pytest.warns(match="iterations"):
        fitted = kind(**parts, **options).fit(X, y)
    rows = with_ones(known)

    def value(model):
        losses = fitted.loss_.value_gradient(codes[:, None], model.outputs(rows))[0]
        of_units = 0.5 * np.ones(3) if options.get("penalty") else np.abs(model.lams)
        penalty = 0.1 * np.sum(of_units * model.factors[:, :, -1] ** 2)
        return losses.sum() + penalty + (0.25 * model.w[-1] ** 2 if model.w is not None else 0.0)

    model = fitted.fold_in(known, new)
    assert_least(value, model)
    assert_others_as_they_were(model, fitted, X)


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_the_unit_of_a_feature_does_not_matter(unit):
    """Without a penalty, rows in another unit give the same model."""
    X, y = ratings()
    parts = {"alpha": 0.0, "beta": 0.0, "n_components": 2, "random_state": 0, "max_iter": 5, "fit_linear": False}
    with pytest.warns(match="iterations"):
        fitted = FactorizationMachineRegressor(**parts).fit(X, y)
    expected = fitted.fold_in(films(), [5, 2, 5, 3]).predict(with_ones(films()))
    P = fitted.model_.factors / unit
    fitted.model_ = replace(fitted.model_, factors=P, lams=fitted.model_.lams * unit**2)
    found = fitted.fold_in(films(), [5, 2, 5, 3]).predict(with_ones(films()))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_bad_input_is_named():
    X, y = ratings()
    regressor = OrdinalFMRegressor(strength=0.5, max_units=1).fit(X, y)
    with pytest.raises(ValueError, match=r"level 9.*, which is not among"):
        regressor.fold_in(X[:2], [2, 9])
    with pytest.raises(ValueError, match="each of the 2 rows of X"):
        regressor.fold_in(X[:2], [2])
    with pytest.raises(ValueError, match="16 features"):
        regressor.fold_in(X[:2, :5], [2, 3])
    with pytest.raises(ValueError, match="0 and 1 only"):
        MultiOutputFMClassifier(max_units=1, loss="binary-logistic").fit(X, X[:, :2].astype(int)).fold_in(
            X[:2], [[1, 2], [0, 1]]
        )
    with pytest.raises(ValueError, match="outputs"):
        MultiOutputFMRegressor(max_units=1).fit(X, X[:, :2]).fold_in(X[:2], X[:2, :3])


def test_an_interrupted_fit_of_a_new_feature_gives_no_model(monkeypatch):
    report = RunMonitor.__call__

    def interrupted(monitor, *arguments, **options):
        report(monitor, *arguments, **options)
        raise KeyboardInterrupt

    X, y = ratings()
    fitted = MultiOutputFMRegressor(max_units=1).fit(X, y)
    monkeypatch.setattr(RunMonitor, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.fold_in(X[:2], y[:2])


def test_the_fit_of_a_new_feature_reaches_the_minimum_where_curvatures_differ_by_far():
    """The reference is linear least squares."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(9, 4)) * 10.0 ** np.array([-6, -2, 2, 6])
    V = rng.normal(size=(4, 2))
    targets = rng.normal(size=(9, 2))
    problem = NewFeatureProblem(Losses.of_data("squared", targets, 9), Z, V, NewFeature(np.full(4, 1e-3), 0.1))
    design = np.hstack([(Z[:, :, None] * V).transpose(0, 2, 1).reshape(18, 4), np.tile(np.eye(2), (9, 1))])
    penalties = np.diag(np.sqrt(np.r_[np.full(4, 2e-3), 0.1, 0.1]))
    x = np.linalg.lstsq(np.vstack([design, penalties]), np.r_[targets.ravel(), np.zeros(6)], rcond=None)[0]
    found = mopn.minimize(problem, mopn.solvers.LBFGS(), tol=0.0)
    assert found.fun == pytest.approx(problem.value_gradient(x).value, rel=1e-9)
