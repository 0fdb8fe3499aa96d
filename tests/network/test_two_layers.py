"""Values and gradients of both layers, block by block, against the definition; and the shared pieces of the refits."""

import numpy as np
import pytest
from reference import derivatives
from scipy import sparse

import mopn
from mopn.core.kernels import KERNELS
from mopn.data.designs import make_design
from mopn.data.losses_of_rows import Losses
from mopn.data.rows import ArrayRows
from mopn.network import two_layers as two_layers_module
from mopn.network.two_layers import two_layers
from mopn.solvers import ConditionalGradient, FullRefit

RNG = np.random.default_rng(0)
# Five outputs: compiled loops take four of them, and one.
N, D, K, M = 40, 5, 6, 5
X = RNG.uniform(-1, 1, (N, D))
LABELS = RNG.integers(0, M, N)
LABELS[:M] = range(M)
WEIGHTS = RNG.uniform(0.5, 2.0, N)
OFFSET = RNG.standard_normal((N, M))
H, V = RNG.standard_normal((K, D)), RNG.standard_normal((K, M))
# A linear term, and none.
LINEAR = {"linear": RNG.standard_normal((M, 1 + D)), "none": np.zeros((M, 0))}
W = LINEAR["linear"]


def layers(kernel, storage=np.array, single=False, size=None):
    fit, design = Losses.of_data("logistic", LABELS, N, WEIGHTS, OFFSET), make_design(storage(X))
    return two_layers(ArrayRows(design, fit, size), KERNELS[kernel], single=single)


def features(kernel, H):
    squares = (X @ H.T) ** 2
    return squares if kernel == "homogeneous" else 0.5 * (squares - (X**2) @ (H**2).T)


def value(kernel, H, V, W):
    outputs = features(kernel, H) @ V + OFFSET + (np.hstack([np.ones((N, 1)), X]) @ W.T if W.size else 0.0)
    exponentials = np.exp(outputs - outputs[np.arange(N), LABELS][:, None])
    return float(WEIGHTS @ np.log(exponentials.sum(axis=1)))


@pytest.mark.parametrize("W", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize("storage", [np.array, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
@pytest.mark.parametrize("k", [0, K])
def test_value_and_gradients(k, rows, kernel, storage, W):
    both = layers(kernel, storage, size=rows)
    assert len(both.rows.blocks) == -(-N // rows)
    point = H[:k], V[:k], W
    found, *gradients = both.value_gradient(*point)
    assert found == pytest.approx(value(kernel, *point), rel=1e-12)
    assert both.value(*point) == pytest.approx(found, rel=1e-13)
    for place, gradient in enumerate(gradients):
        moved = derivatives(lambda A, place=place: value(kernel, *point[:place], A, *point[place + 1 :]), point[place])
        np.testing.assert_allclose(gradient, moved, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("W", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_losses_of_a_part_of_a_sparse_block_at_a_time(monkeypatch, kernel, W):
    monkeypatch.setattr(two_layers_module, "rows_at_once", lambda entries: 7)
    parts, expected = layers(kernel, sparse.csr_array, size=20), layers(kernel, np.array)
    assert parts.value(H, V, W) == pytest.approx(expected.value(H, V, W), rel=1e-13)
    for found, right in zip(parts.value_gradient(H, V, W), expected.value_gradient(H, V, W), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12 * np.abs(right).max(initial=0.0))


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("dummies", [0, 1, 2])
@pytest.mark.parametrize("binary", [False, True])
def test_sparse_and_dense_rows(kernel, dummies, binary):
    """With zeros, empty rows, features that never occur, and dummies, against the dense layers."""
    rng = np.random.default_rng(dummies)
    A = rng.uniform(-1, 1, (N, D)) * (rng.uniform(size=(N, D)) < 0.4)
    A = np.sign(np.abs(A)) if binary else A
    A[3], A[:, 2] = 0.0, 0.0
    H = rng.standard_normal((K, dummies + D))
    fit = Losses.of_data("logistic", LABELS, N, WEIGHTS, OFFSET)
    sides = []
    for storage in (np.array, sparse.csr_array):
        design = make_design(storage(A), dummies)
        sides.append(two_layers(ArrayRows(design, fit), KERNELS[kernel]).value_gradient(H, V, W))
    for dense, of_sparse in zip(*sides, strict=True):
        np.testing.assert_allclose(of_sparse, dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_single_precision_errs_by_its_rounding_alone(kernel, storage):
    exact = layers(kernel, storage).value_gradient(H, V, W)
    rounded = layers(kernel, storage, single=True).value_gradient(H, V, W)
    assert rounded[0] != exact[0]
    assert rounded[0] == pytest.approx(exact[0], rel=1e-6)
    for single, double in zip(rounded[1:], exact[1:], strict=True):
        assert single.dtype == np.float64
        np.testing.assert_allclose(single, double, rtol=0, atol=1e-5 * np.abs(double).max())


def test_nothing_of_the_caller_is_overwritten():
    for single in (False, True):
        before = H.copy(), V.copy(), W.copy(), X.copy()
        layers("homogeneous", single=single).value_gradient(H, V, W)
        for array, copy in zip((H, V, W, X), before, strict=True):
            np.testing.assert_array_equal(array, copy)


@np.errstate(all="ignore")  # as within public calls
def test_a_point_beyond_single_precision_has_no_value():
    """A line search tries such steps."""
    problem, far = layers("homogeneous", single=True), (1e15 * H, 1e15 * V, W)
    assert not np.isfinite(problem.value(*far))
    assert not np.isfinite(problem.value_gradient(*far)[0])


def test_a_fit_in_single_precision_is_as_good():
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0)
    problem = mopn.NetworkProblem(X, y, strength=0.5, augment=True)
    refits = FullRefit(), FullRefit(precision="single")
    solvers = (ConditionalGradient(refit, max_units=5, schedule="fill") for refit in refits)
    double, single = (mopn.minimize(problem, solver, tol=1e-2) for solver in solvers)
    assert single.fun == pytest.approx(double.fun, rel=1e-3)
    # The gap is measured in double precision, whatever found the network.
    again = mopn.certify(problem, single.basis, single.weights)
    assert again.fun == pytest.approx(single.fun, rel=1e-12)
