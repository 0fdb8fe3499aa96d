"""Centered and scaled data against explicit arrays; coordinates against weighted means and deviations."""

from functools import partial

import numpy as np
import pytest
from networks import rows_of
from properties import seeds, tried
from reference import check_products
from scipy import sparse

from mopn.data.designs import AugmentedDesign, SparseDesign, make_design, stored_design
from mopn.data.feature_scaling import SCALES, CenteredDesign, make_coordinates
from mopn.data.losses_of_rows import Losses

varied = partial(tried, 10, seed=seeds)
every_format = pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array, sparse.csc_array])
every_sparse = pytest.mark.parametrize("storage", [sparse.csr_array, sparse.csc_array])


def coordinates_of(design, weights, **options):
    n = design.shape[0]
    return make_coordinates(rows_of(design, Losses.of_data("squared", np.zeros(n), n, weights), size=7), **options)


def draw(seed, n=9, d=5):
    """A random generator, X with about half zeros and an empty column, and a center."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    X[:, rng.integers(d)] = 0.0
    return rng, X, rng.standard_normal(d)


@every_sparse
@pytest.mark.parametrize("dummies", [0, 1])
@varied()
def test_products_equal_those_of_the_explicit_array(storage, dummies, seed):
    rng, X, c = draw(seed)
    design = AugmentedDesign(CenteredDesign(SparseDesign(storage(X)), c), dummies)
    ones = np.ones((len(X), dummies))
    Z, sizes = np.hstack([ones, X - c]), np.hstack([ones, np.abs(X) + np.abs(c)])
    check_products(design, Z, sizes, rng, 1e-13 * (1 + sizes.max()) ** 4)


@every_format
@varied()
def test_features_have_mean_zero_and_equal_deviations(storage, seed):
    rng, X, _ = draw(seed)
    weights = rng.integers(1, 4, len(X)).astype(float)
    base = stored_design(storage(X))
    coordinates = coordinates_of(base, weights, center=True, scale="features")
    Z = coordinates.design(base).matrix()
    repeated = np.repeat(Z, weights.astype(int), axis=0)
    np.testing.assert_allclose(repeated.mean(axis=0), 0.0, atol=1e-13)
    np.testing.assert_allclose(np.sum(repeated**2) / len(repeated), 4.0)
    deviations = repeated.std(axis=0)
    varies = X.std(axis=0) > 0
    assert np.array_equal(np.isinf(coordinates.scale), ~varies)
    np.testing.assert_allclose(deviations[varies], deviations[varies][0])
    assert not deviations[~varies].any()


@every_format
@pytest.mark.parametrize("center", [False, True])
@varied()
def test_one_scale_of_the_data_keeps_proportions(storage, center, seed):
    _, X, _ = draw(seed)
    base = stored_design(storage(X))
    coordinates = coordinates_of(base, np.ones(len(X)), center=center, scale="data")
    Z = coordinates.design(base).matrix()
    Z = Z.toarray() if sparse.issparse(Z) else Z
    moved = X - X.mean(axis=0) if center else X
    np.testing.assert_allclose(Z * (np.linalg.norm(moved) / np.linalg.norm(Z)), moved, atol=1e-13)
    np.testing.assert_allclose(np.sum(Z**2) / len(Z), 4.0)


@every_format
@pytest.mark.parametrize("scale", [None, *SCALES])
def test_units_of_the_original_data_have_the_same_projections(storage, scale):
    rng, X, _ = draw(3)
    X[:, 1] = 7.0
    base = stored_design(storage(X))
    coordinates = coordinates_of(base, np.ones(len(X)), center=True, scale=scale)
    H = rng.standard_normal((4, 6))
    Z = AugmentedDesign(coordinates.design(base), 1)
    np.testing.assert_allclose(
        make_design(storage(X), 1).project(coordinates.original(H, 1)), Z.project(H), atol=1e-12 * np.abs(X).max()
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e9, 1e-9])
@every_format
def test_constant_features_become_zero_in_spite_of_rounding(value, dtype, storage, scale):
    X = np.column_stack([np.full(1000, value), np.arange(1000.0), np.arange(1000.0) % 7]).astype(dtype)
    base = stored_design(storage(X))
    coordinates = coordinates_of(base, np.random.default_rng(0).random(1000), center=True, scale=scale)
    Z = np.asarray(coordinates.design(base).matrix())
    assert np.isinf(coordinates.scale).tolist() == [True, False, False]
    assert not Z[:, 0].any()
    assert np.isfinite(Z).all()


def test_small_deviations_beside_a_large_mean_count_in_dense_data():
    """Time stamps of a few minutes of one day, in seconds."""
    X = np.column_stack([1.6e9 + np.arange(100.0), np.arange(100.0)])
    Z = coordinates_of(make_design(X), np.ones(100), center=True, scale="features").design(make_design(X)).matrix()
    np.testing.assert_allclose(Z[:, 0], Z[:, 1], atol=1e-6)


def test_without_centring_and_scaling_there_are_no_coordinates():
    assert coordinates_of(make_design([[1.0]]), np.ones(1), center=False, scale=None) is None


@every_format
def test_large_features_come_down_to_the_size_of_users_and_items(storage):
    rng = np.random.default_rng(0)
    users, items, weights = rng.integers(0, 9, 200), rng.integers(0, 7, 200), rng.integers(1, 4, 200).astype(float)
    pairs = np.hstack([np.eye(9)[users], np.eye(7)[items]])
    side = np.hstack([np.eye(2)[users % 2], np.full((200, 1), 1995.0)])
    most = np.average(pairs, axis=0, weights=weights).max()
    base = stored_design(storage(np.hstack([side, pairs])))
    Z = coordinates_of(base, weights, center=False, scale="large").design(base).matrix()
    Z = Z.toarray() if sparse.issparse(Z) else Z
    np.testing.assert_array_equal(Z[:, 3:], pairs)
    np.testing.assert_allclose(np.average(Z[:, :3] ** 2, axis=0, weights=weights), most)


@every_format
@varied()
def test_users_and_items_alone_are_not_scaled(storage, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 2.0, 50)
    pairs = np.hstack([np.eye(8)[np.r_[:8, rng.integers(0, 8, 42)]], np.eye(5)[np.r_[:5, rng.integers(0, 5, 45)]]])
    assert coordinates_of(stored_design(storage(pairs)), weights, center=False, scale="large") is None
