"""Full columns among sparse ones: products against the explicit array, and where they are taken apart."""

from functools import partial

import numpy as np
import pytest
from networks import rows_of
from properties import seeds, tried
from reference import check_products
from scipy import sparse

from mopn import NetworkProblem
from mopn.data.designs import COST_OF_ENTRY, AugmentedDesign, DenseDesign, SparseDesign, stored_design
from mopn.data.feature_scaling import CenteredDesign, make_coordinates
from mopn.data.losses_of_rows import Losses
from mopn.data.mixed_design import MixedDesign
from mopn.network.two_layers import two_layers

varied = partial(tried, 10, seed=seeds)
# Full columns before, among and after sparse ones.
every_place = pytest.mark.parametrize("places", [[0, 1], [1, 4], [5, 6], [3]])
every_format = pytest.mark.parametrize("storage", [sparse.csr_array, sparse.csc_array])


def draw(seed, places, n=40, d=7):
    """A random generator, and X with two entries a row in the columns that are not full."""
    rng = np.random.default_rng(seed)
    others = np.setdiff1d(np.arange(d), places)
    X = np.zeros((n, d))
    X[:, places] = rng.standard_normal((n, len(places)))
    for column in np.array_split(others, 2):
        X[np.arange(n), column[rng.integers(len(column), size=n)]] = rng.uniform(0.5, 2.0, n)
    return rng, X


@every_place
@pytest.mark.parametrize("dummies", [0, 1])
@pytest.mark.parametrize("centered", [False, True])
@varied()
def test_products_equal_those_of_the_explicit_array(places, dummies, centered, seed):
    rng, X = draw(seed, places)
    others = np.setdiff1d(np.arange(7), places)
    rest = SparseDesign(sparse.csr_array(X[:, others]))
    Z, sizes = X.copy(), np.abs(X)
    if centered:
        c = rng.standard_normal(len(others))
        rest = CenteredDesign(rest, c)
        Z[:, others] -= c
        sizes[:, others] += np.abs(c)
    ones = np.ones((len(X), dummies))
    design = AugmentedDesign(MixedDesign(DenseDesign(X[:, places]), rest, np.array(places)), dummies)
    check_products(design, np.hstack([ones, Z]), np.hstack([ones, sizes]), rng, 1e-13 * (1 + sizes.max()) ** 4)
    assert design.single().project(np.ones((1, Z.shape[1] + dummies), np.float32)).dtype == np.float32


@every_format
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [False, True])
def test_coordinates_take_full_columns_out_of_sparse_data(storage, dtype, center):
    _, X = draw(0, [1, 2, 3, 4, 5, 6], d=12)
    X = X.astype(dtype)
    weights = np.linspace(1.0, 2.0, len(X))
    designs = []
    for given in (X, storage(X)):
        base = stored_design(given)
        rows = rows_of(base, Losses.of_data("squared", np.zeros(len(X)), len(X), weights))
        designs.append(make_coordinates(rows, center=center, scale="features").design(base))
    dense, mixed = designs
    assert isinstance(mixed, MixedDesign)
    assert mixed.places.tolist() == [1, 2, 3, 4, 5, 6]
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(mixed.matrix() + np.zeros(X.shape), dense.matrix(), rtol=0, atol=tolerance)


@pytest.mark.parametrize("places", [[], [3]])
def test_data_with_few_full_columns_stay_sparse(places):
    rng = np.random.default_rng(1)
    X = (rng.random((60, 40)) < 0.2).astype(float)
    X[:, places] = 1.0 + rng.random((60, len(places)))
    base = stored_design(sparse.csr_array(X))
    rows = rows_of(base, Losses.of_data("squared", np.zeros(60), 60))
    assert isinstance(make_coordinates(rows, center=False, scale="features").design(base), SparseDesign)


def test_work_counts_products_of_full_columns_as_cheaper():
    _, X = draw(2, [0, 1])
    n = len(X)
    design = MixedDesign(DenseDesign(X[:, :2]), SparseDesign(sparse.csr_array(X[:, 2:])), np.arange(2))
    assert design.work == (2 * n + COST_OF_ENTRY * 2 * n, 4 * n + 2 * COST_OF_ENTRY * 2 * n + COST_OF_ENTRY * 4 * n)


@every_format
@pytest.mark.parametrize(("kernel", "center"), [("homogeneous", True), ("homogeneous", False), ("anova", False)])
@pytest.mark.parametrize(("single", "tolerance"), [(False, 1e-12), (True, 1e-5)])
def test_sums_over_rows_equal_those_of_dense_data(storage, kernel, center, single, tolerance):
    rng, X = draw(3, [0, 1, 2, 5, 6, 7], n=90, d=11)
    y = rng.integers(0, 3, len(X))
    H, V = rng.standard_normal((4, 11 + center)), rng.standard_normal((4, 3))
    W, G = np.zeros((3, 0)), rng.standard_normal((len(X), 3))
    results = []
    for given in (X, storage(X)):
        options = {"strength": 0.1, "scale": "features", "center": center, "augment": center}
        problem = NetworkProblem(given, y, "logistic", kernel, **options)
        layers = two_layers(problem.rows, problem.kernel, single=single)
        results.append([*layers.value_gradient(H, V, W), layers.forms(G, H), layers.products(G, V, H)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=tolerance * np.max(np.abs(one), initial=1.0))
