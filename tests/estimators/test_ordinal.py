"""Estimators of ordered levels."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import mopn
from mopn.estimators import OrdinalFMRegressor, OrdinalPNRegressor

ESTIMATORS = [OrdinalFMRegressor, OrdinalPNRegressor]
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 3))
LEVELS = np.array([-1.5, 0.0, 2.0, 7.0])
CODES = np.digitize(X[:, 0] * X[:, 1] + 0.3 * X[:, 2], [-0.2, 0.0, 0.25])
Y = LEVELS[CODES]


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_levels_are_learnt(cls, storage, tmp_path):
    regressor = cls(strength=0.05, tol=1e-2).fit(storage(X), Y)
    np.testing.assert_array_equal(regressor.levels_, LEVELS)
    assert regressor.weights_.shape[1] == 3
    P = regressor.predict_proba(storage(X))
    assert P.shape == (120, 4)
    np.testing.assert_allclose(P @ LEVELS, regressor.predict(storage(X)), rtol=1e-12)
    assert np.mean(P.argmax(axis=1) == CODES) > 0.85
    assert regressor.score(storage(X), Y) > 0.7
    regressor.save(tmp_path / "model.npz")
    loaded = mopn.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(X), regressor.model_.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), regressor.model_.predict_proba(X))


def test_outputs_are_the_binary_problems():
    """The objective equals the objective of a problem with targets y <= r_c, in order of the levels."""
    regressor = OrdinalFMRegressor(strength=0.5).fit(X, Y)
    targets = np.where(Y[:, None] <= LEVELS[:-1], 1.0, -1.0)
    problem = mopn.NetworkProblem(
        X, targets, "binary-logistic", "anova", strength=0.5, alpha=0.7, offset=regressor.model_.offset
    )
    assert mopn.certify(problem, regressor.basis_, regressor.weights_, linear=regressor.linear_).fun == pytest.approx(
        regressor.objective_, rel=1e-10
    )


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_two_levels(cls):
    y = np.where(X[:, 0] * X[:, 1] > 0, 3.5, -2.0)
    regressor = cls(strength=0.05).fit(X, y)
    assert regressor.weights_.shape[1] == 1
    assert np.mean(np.where(regressor.predict(X) > 0.75, 3.5, -2.0) == y) > 0.95


def test_unseen_categories_and_empty_rows():
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.integers(0, 10, 200), rng.integers(0, 12, 200)])
    y = np.clip(table[:, 0] // 3 + table[:, 1] // 4, 1, 5)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), OrdinalFMRegressor(strength=0.2)).fit(table, y)
    assert model.score(table, y) > 0.8
    known, unseen_item, unseen = model.predict([[9, 11], [9, 99], [99, 99]])
    # A user alone gives the user's typical rating; nothing at all gives about the mean.
    assert known > unseen_item > unseen
    assert abs(unseen - y.mean()) < 1.0


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (X, np.ones(120), {}, "y has a single level"),
        (X, np.arange(120.0)[:, None] @ np.ones((1, 2)), {}, "y should be a 1d array"),
        (X, Y, {"loss": "squared"}, "loss='squared' gives no probability of each level; use 'binary-logistic'"),
        (X, Y, {"loss": "logistic"}, "loss='logistic' gives no probability"),
        (X, np.where(np.arange(120) == 3, np.nan, Y), {}, "NaN"),
        (np.ones((300, 1)), np.arange(300), {}, "y has 300 levels, and each needs an output; at most 256"),
        (np.zeros((5, 0)), np.arange(5), {}, "0 feature"),
    ],
)
def test_bad_input(X, y, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        OrdinalFMRegressor(**options).fit(X, y)


@pytest.mark.parametrize("cls", [OrdinalFMRegressor, pytest.param(OrdinalPNRegressor, marks=pytest.mark.slow)])
def test_symmetric_tables_do_not_end_at_saddles(cls):
    """No step along a direction of negative curvature is left; ratings of few users and items have symmetries."""
    for seed in (19, 31, 42):
        rng = np.random.default_rng(seed)
        n, users, items = rng.integers(8, 40), rng.integers(3, 8), rng.integers(3, 8)
        table = np.hstack([np.eye(users)[rng.integers(0, users, n)], np.eye(items)[rng.integers(0, items, n)]])
        y = rng.integers(1, 6, n)
        regressor = cls(max_units=3, strength=0.1, tol=1e-4).fit(table, y)
        targets = (y[:, None] <= regressor.levels_[:-1]) * 2.0 - 1.0
        options = {"strength": 0.1, "alpha": regressor.alpha, "offset": regressor.model_.offset}
        problem = mopn.NetworkProblem(table, targets, "binary-logistic", regressor._kernel, "l1/l2", **options)
        network = problem.start((regressor.basis_, regressor.weights_, regressor.linear_))
        joint = problem.joint(network)
        x, steps = joint.start(), 1e-4 * np.eye(joint.start().size)
        assert joint.measure(x).fun == pytest.approx(regressor.objective_, rel=1e-9)
        slopes = [joint.value_gradient(x + s).gradient - joint.value_gradient(x - s).gradient for s in steps]
        curvatures = np.linalg.eigvalsh(np.array(slopes) + np.transpose(slopes))
        assert curvatures[0] > -1e-3 * curvatures[-1]


def test_other_levels_do_not_continue():
    regressor = OrdinalFMRegressor(warm_start=True, strength=0.3).fit(X, Y)
    before = regressor.objective_
    regressor.fit(X, Y)
    assert regressor.objective_ <= before * (1.0 + 1e-9)
    with pytest.raises(ValueError, match="a network for the levels"):
        regressor.fit(X, 2.0 * Y)


def pairs_and_side_information(seed, n=3000):
    """Users and items, with groups of both on which ratings depend, with groups that tell nothing, and ratings."""
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, 200, n), rng.integers(0, 100, n)
    told, idle = (np.column_stack([rng.integers(0, 4, 200)[users], rng.integers(0, 5, 100)[items]]) for _ in range(2))
    taste, style, liking = rng.normal(size=(200, 2)), rng.normal(size=(100, 2)), rng.normal(size=(4, 5))
    score = 3 + liking[told[:, 0], told[:, 1]] + 0.5 * np.sum(taste[users] * style[items], axis=1)
    pairs = np.column_stack([users, items])
    return pairs, told, idle, np.clip(np.round(score + 0.5 * rng.normal(size=n)), 1, 5)


def held_out_error(table, y, **options):
    n = len(y) * 3 // 4
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), OrdinalFMRegressor(max_units=10, **options))
    model.fit(table[:n], y[:n])
    return np.sqrt(np.mean((model.predict(table[n:]) - y[n:]) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_side_information_helps_and_never_hurts(seed):
    pairs, told, idle, y = pairs_and_side_information(seed)
    alone = held_out_error(pairs, y)
    assert held_out_error(np.hstack([pairs, told]), y) < 0.9 * alone
    assert held_out_error(np.hstack([pairs, idle]), y) < 1.01 * alone


def test_users_and_items_alone_are_fitted_as_they_are():
    pairs, _, _, y = pairs_and_side_information(0, n=500)
    assert held_out_error(pairs, y) == held_out_error(pairs, y, scale=None)


# -- levels that are the same number ----------------------------------------------------------------------------------

QUICK = {"max_units": 1, "tol": 1.0}
STARS = CODES + 1
RATINGS = {
    "two sources": np.where(np.arange(120) % 2, STARS * 0.2, STARS / 5),
    "sums": np.array([sum([0.1] * int(k)) if i % 2 else k / 10 for i, k in enumerate(STARS)]) * 2,
    "near zero": np.where(np.arange(120) % 2, STARS * 0.2 - 0.6, STARS / 5 - 0.6),
}


@pytest.mark.parametrize("storage", ["memory", "blocks", "blocks that bring y", "validation", "objects"])
@pytest.mark.parametrize("kind", RATINGS)
def test_levels_that_differ_by_rounding_are_one(kind, storage):
    y = RATINGS[kind]
    exact = np.round(y, 10) + 0.0
    assert len(np.unique(y)) > len(np.unique(exact)) == 4
    made = {
        "memory": lambda y: OrdinalFMRegressor(**QUICK).fit(X, y),
        "blocks": lambda y: OrdinalFMRegressor(**QUICK).fit(mopn.RowBlocks([X[:50], X[50:]]), y),
        "blocks that bring y": lambda y: OrdinalFMRegressor(**QUICK).fit(mopn.RowBlocks([X[:50], X[50:]], y)),
        "validation": lambda y: OrdinalFMRegressor(**QUICK).fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:]),
        "objects": lambda y: OrdinalFMRegressor(**QUICK).fit(X, y.astype(object)),
    }[storage]
    found, expected = made(y), made(exact)
    np.testing.assert_allclose(found.levels_, expected.levels_, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9, atol=1e-12)
    assert set(found.levels_.tolist()) <= set(y.tolist())
    rows, targets = found.fold_in(X[:9], y[:9]), expected.fold_in(X[:9], exact[:9])
    ones = np.column_stack([X, np.ones(120)])
    np.testing.assert_allclose(rows.predict(ones), targets.predict(ones), rtol=1e-6)
    with pytest.raises(ValueError, match=r"y has the level .*, which is not among the levels"):
        found.fold_in(X[:9], exact[:9] + 1e-9)


def test_chains_of_near_levels_are_no_single_one():
    """A level is at most 2^-48 of its size wide: here 4.8 steps."""
    y = 0.3 + np.arange(120) % 40 * 2.0**-52
    levels = OrdinalPNRegressor(**QUICK).fit(X, y).levels_
    assert len(levels) == 40 / 5
    assert np.all(np.diff(levels) > 0)


BIG = 123456789012345678


@pytest.mark.parametrize("storage", ["int64", "uint64", "object", "Int64", "decimals"])
def test_levels_that_are_the_same_number_are_named(storage):
    y = {
        "decimals": lambda: np.array([Decimal(BIG + int(code)) for code in CODES]),
        "Int64": lambda: pd.Series(BIG + CODES, dtype="Int64"),
    }.get(storage, lambda: (BIG + CODES).astype(storage))()
    y[:60] = 5
    with pytest.warns(
        UserWarning, match=rf"^y has different values that are the same number, {BIG} and {BIG + 1}"
    ) as said:
        found = OrdinalPNRegressor(**QUICK).fit(X, y)
    assert [warning.filename for warning in said] == [__file__]
    assert found.levels_.tolist() == [5.0, float(BIG)]
