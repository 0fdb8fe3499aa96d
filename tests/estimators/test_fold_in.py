"""A new feature of an ordinal factorization machine, against the objective of the training."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.estimators import OrdinalFMRegressor
from mopn.models.ordinal import cumulative_targets


def ratings(seed=0):
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, 8, 120), rng.integers(0, 6, 120)
    X = np.column_stack([np.eye(8)[users], np.eye(6)[items], np.eye(2)[users % 2]])
    return X, np.clip(np.round(3 + rng.standard_normal(8)[users] + 2 * (users % 2 == items % 2)), 1, 5)


def objective(regressor, model, X, y):
    """The value of the training's problem, of all rows with the new feature, at a model.

    The side information in columns 14 and 15 is divided down to the largest mean square of users and items.
    """
    squares = np.mean(ratings()[0] ** 2, axis=0)
    sizes = np.append(np.sqrt(np.maximum(squares / squares[:14].max(), 1.0)), 1.0)
    basis = model.basis * np.append(np.ones(model.basis.shape[1] - 17), sizes)
    linear = None if model.linear is None else model.linear * np.append(1.0, sizes)
    Y = cumulative_targets(np.searchsorted(regressor.levels_, y), len(regressor.levels_))
    parts = {"norm": regressor.norm, "strength": regressor.strength_, "alpha": regressor.alpha}
    problem = mopn.NetworkProblem(
        X / sizes, Y, "binary-logistic", "anova", offset=model.offset, augment=regressor.fit_intercept, **parts
    )
    lengths = np.linalg.norm(basis, axis=1)
    units = basis / lengths[:, None], model.weights * lengths[:, None] ** 2
    return problem.output_gradient(problem.start((*units, linear))).value


@pytest.mark.covering(1)
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("options", [{}, {"alpha": None}, {"fit_intercept": True}])
def test_the_new_coefficients_minimise_the_objective_of_the_training(norm, options):
    X, y = ratings()
    regressor = OrdinalFMRegressor(norm=norm, strength=0.5, max_units=4, **options).fit(X, y)
    films = np.column_stack([np.zeros((4, 8)), np.eye(6)[:4], np.eye(2)[[0, 0, 0, 0]]])
    levels = np.array([5, 2, 5, 3])
    model = regressor.fold_in(sparse.csr_array(films), levels)
    assert len(model.basis)
    old = np.column_stack([X, np.zeros(len(X))])
    rows, targets = np.vstack([old, np.column_stack([films, np.ones(4)])]), np.r_[y, levels]
    least = objective(regressor, model, rows, targets)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-1):
        for _ in range(5):
            basis = model.basis.copy()
            basis[:, -1] += size * rng.standard_normal(len(basis))
            linear = None if model.linear is None else model.linear.copy()
            if linear is not None:
                linear[:, -1] += size * rng.standard_normal(len(linear))
            moved = replace(model, basis=basis, linear=linear)
            assert objective(regressor, moved, rows, targets) > least
    # Rows without the new feature are as before.
    np.testing.assert_allclose(model.predict(old), regressor.predict(X))


def test_bad_input_is_named():
    X, y = ratings()
    regressor = OrdinalFMRegressor(strength=0.5, max_units=3).fit(X, y)
    with pytest.raises(ValueError, match="levels"):
        regressor.fold_in(X[:2], [1, 9])
    with pytest.raises(ValueError, match="one level per row"):
        regressor.fold_in(X[:2], [1])
    with pytest.raises(ValueError, match="scale=None"):
        OrdinalFMRegressor(strength=0.5, max_units=3, scale="features").fit(X, y).fold_in(X[:2], [1, 2])
