"""Problems for centered and scaled data, against the same problems for data that were centered and scaled before."""

import itertools

import numpy as np
import pytest
from networks import LOSSES, data, every_norm, random_network
from scipy import sparse

import mopn
from mopn.data.feature_scaling import SCALES
from mopn.solvers import ConditionalGradient

STORAGES = {"dense": np.asarray, "single": np.float32, "csr": sparse.csr_array, "csc": sparse.csc_array}
CENTERED = {"augment": True, "center": True, "scale": "features"}
SCALED_ALONE = [
    {"kernel": kernel, "augment": augment, "scale": scale}
    for kernel, augment, scale in itertools.product(("homogeneous", "anova"), (False, True), SCALES)
]
every_storage = pytest.mark.parametrize("storage", STORAGES)


def shifted(loss="logistic", n=60, d=4, seed=0):
    """Samples that single precision holds, half of them zero, and targets; the means and units of the features differ.

    One feature is constant.
    """
    rng = np.random.default_rng(seed)
    X, y = data(loss, n, d, seed=seed)
    X = (X + rng.uniform(-2, 2, d)) * 10.0 ** np.arange(-2, d - 2)
    X[rng.random(X.shape) < 0.3] = 0.0
    return np.hstack([X, np.full((n, 1), 3.0)]).astype(np.float32).astype(float), y


def sizes_of_large(squares):
    """What brings large features down to the largest of the smallest that make up a mean squared length of 2."""
    kept, length = 0.0, 0.0
    for square in sorted(squares):
        if length < 2.0 - 1e-6:
            kept, length = square, length + square
    return np.sqrt(np.maximum(squares / kept, 1.0))


def by_hand(X, weights, scale):
    """X, centered and scaled."""
    Z = X - np.average(X, axis=0, weights=weights)
    squares = np.average(Z**2, axis=0, weights=weights)
    squares[-1] = 0.0
    if scale == "features":
        Z = Z / np.sqrt(np.where(squares, squares, np.inf))
    Z[:, -1] = 0.0
    if scale == "large":
        return Z / sizes_of_large(squares)
    return Z if scale is None else Z * 2 / np.sqrt(np.average(np.sum(Z**2, axis=1), weights=weights))


@every_storage
@every_norm
@pytest.mark.parametrize("alpha", [None, 2.0])
@pytest.mark.parametrize("scale", [None, *SCALES])
def test_the_problem_is_that_of_data_treated_by_hand(storage, norm, alpha, scale):
    X, y = shifted()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    given = {"norm": norm, "strength": 0.7, "augment": True, "alpha": alpha, "sample_weight": weights}
    ours = mopn.NetworkProblem(STORAGES[storage](X), y, center=True, scale=scale, **given)
    theirs = mopn.NetworkProblem(by_hand(X, weights, scale), y, **given)
    start = random_network(theirs)
    linear = np.random.default_rng(2).standard_normal(start.linear.shape)
    start = start.basis, start.weights, linear if alpha else None
    mine, other = ours.start(start), theirs.start(start)
    np.testing.assert_allclose(mine.outputs, other.outputs, rtol=1e-10, atol=1e-10)
    # What rounding may do depends on the storage.
    np.testing.assert_allclose(ours.measure(mine)[:2], theirs.measure(other)[:2], rtol=1e-8)
    assert np.isclose(ours.strength_max(), theirs.strength_max(), rtol=1e-5)
    refits = ours.joint(mine), theirs.joint(other)
    refit, same = (joint.value_gradient(joint.start()) for joint in refits)
    assert np.isclose(refit.value, same.value, rtol=1e-10)
    np.testing.assert_allclose(refit.gradient, same.gradient, rtol=1e-8, atol=1e-9 * np.abs(same.gradient).max())


@every_storage
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [None, 2.0])
@pytest.mark.parametrize("options", [CENTERED, *SCALED_ALONE])
def test_the_model_takes_the_users_data(storage, loss, alpha, options):
    """A scale needs neither a center nor dummies."""
    X, y = shifted(loss)
    problem = mopn.NetworkProblem(STORAGES[storage](X), y, loss, strength=0.1, alpha=alpha, **options)
    result = mopn.minimize(problem, ConditionalGradient(refit="full", max_units=2), max_iter=2)
    model = mopn.Model.from_result(problem, result)
    assert len(model.basis) > 0
    np.testing.assert_allclose(np.linalg.norm(model.basis, axis=1), 1.0)
    expected = problem.start(result).outputs
    np.testing.assert_allclose(model.outputs(STORAGES[storage](X)), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_minimum_depends_on_neither_origin_nor_unit_nor_order(factor):
    X, y = shifted()
    order = np.random.default_rng(0).permutation(len(X))
    minima = []
    for data_set, targets in ((X, y), (factor * X + 17.0 * factor, y), (X[order], y[order])):
        problem = mopn.NetworkProblem(data_set, targets, norm="l1", strength=1.0, **CENTERED)
        minima.append(mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-7, max_iter=100))
    assert all(result.success for result in minima)
    np.testing.assert_allclose([result.fun for result in minima], minima[0].fun, rtol=2e-7)


@pytest.mark.parametrize(("storage", "least"), [("dense", 1e-12), ("csr", 1e-6), ("csc", 1e-6)])
@pytest.mark.parametrize("center", [0.1, 1e9 / 3])
@pytest.mark.parametrize("weight", [1.0, 0.7, None])
def test_features_that_vary_too_little_for_their_size_are_named(storage, least, center, weight):
    """Constant features, up to rounding, are not divided."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 5000)
    columns = [rng.choice([1.0, factor], 5000) for factor in (1.0, 1.0 + 2e-16, 1.0 + 0.3 * least, 1.0 + 10.0 * least)]
    X = STORAGES[storage](center * np.column_stack(columns))
    weights = np.full(5000, weight) if weight else rng.uniform(0.5, 2.0, 5000)
    given = {"strength": 1.0, "sample_weight": weights, **CENTERED}
    with pytest.warns(UserWarning, match=rf"features \[2\] of X count as constant.* are below {least:g} of their size"):
        problem = mopn.NetworkProblem(X, labels, **given)
    sizes = problem.user_X.coordinates.scale
    assert np.isfinite(sizes).tolist() == [False, False, False, True]
    about = columns[3] - columns[3][0]
    deviation = np.sqrt(np.average(about**2, weights=weights) - np.average(about, weights=weights) ** 2)
    assert sizes[3] == pytest.approx(deviation * center / 2, rel=1e-3)
