"""Second derivatives of losses against finite differences of gradients, and what must hold of any of them."""

from functools import partial

import numpy as np
import pytest
from own_losses import Huber
from properties import generators, tried
from reference import by_differences, targets_of

from mopn.data.losses_of_rows import Losses
from mopn.losses.hessians import Hessian, Weighted
from mopn.losses.losses import LOSSES

NAMES = sorted(LOSSES)
N = 8

every_loss = pytest.mark.parametrize("name", NAMES)
every_size = pytest.mark.parametrize("m", [1, 2, 5])
varied = partial(tried, 15, rng=generators)


def every_case(test):
    """All losses and numbers of outputs, tried on random numbers."""
    return every_loss(every_size(varied()(test)))


def draw(name, rng, m, n=N):
    """Targets, and outputs whose fractions keep them and their differences at least 0.1 off the hinges' kinks."""
    out = rng.integers(-3, 4, size=(n, m)) + 0.1 * np.arange(1, m + 1)
    return targets_of(LOSSES[name], rng, n, m), np.asarray(out, order=rng.choice(["C", "F"]))


def dense(hessian, n, m):
    """The matrices (n, m, m), row by row, from products with unit directions."""
    return np.stack([hessian.product(np.tile(e, (n, 1))) for e in np.eye(m)], axis=2)


@every_case
def test_products_equal_finite_differences_and_have_the_diagonal(name, m, rng):
    loss = LOSSES[name]
    y, out = draw(name, rng, m)
    Z = np.asarray(rng.uniform(-1, 1, out.shape), order=rng.choice(["C", "F"]))
    numeric = by_differences(lambda o: loss.value_gradient(y, o)[1], out, Z)
    product = loss.hessian(y, out).product(Z)
    assert product.shape == out.shape
    # Rounding of gradients divided by h; the next derivative of a logistic loss times h^4 is smaller.
    np.testing.assert_allclose(product, numeric, rtol=0, atol=2e-11 * (1 + np.abs(numeric).max()))
    diagonal = np.einsum("icc->ic", dense(loss.hessian(y, out), N, m))
    np.testing.assert_allclose(loss.hessian(y, out).diagonal, diagonal, rtol=1e-14, atol=1e-15)


@every_case
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_forms_along_vectors_and_weighted_sums(name, m, weighted, own, rng):
    """Those of the class, and those that any Hessian has by its products."""
    y, out = draw(name, rng, m)
    hessian = LOSSES[name].hessian(y, out)
    hessian = Weighted(hessian, rng.uniform(size=N)) if weighted else hessian
    matrices = dense(hessian, N, m)
    E, w, kind = rng.standard_normal((4, m)), rng.uniform(-1, 1, N), Hessian if own else type(hessian)
    size = 1e-13 * max(np.abs(matrices).max(), 1.0) * m * m
    along = np.einsum("kc,ice,ke->ik", E, matrices, E)
    np.testing.assert_allclose(kind.along(hessian, E), along, rtol=0, atol=size * np.abs(E).max() ** 2)
    np.testing.assert_allclose(kind.total(hessian, w), np.einsum("i,ice->ce", w, matrices), rtol=0, atol=size * N)


@every_case
def test_symmetric_positive_semidefinite_and_within_the_smoothness(name, m, rng):
    loss = LOSSES[name]
    out = rng.choice([0.1, 1.0, 10.0]) * rng.standard_normal((N, m))
    matrices = dense(loss.hessian(targets_of(loss, rng, N, m), out), N, m)
    largest = loss.smoothness(m) if name != "poisson" else np.exp(out.max())
    size = 1e-15 * m * largest
    np.testing.assert_allclose(matrices, matrices.transpose(0, 2, 1), rtol=0, atol=size)
    eigenvalues = np.linalg.eigvalsh(matrices)
    assert eigenvalues.min() >= -size
    assert eigenvalues.max() <= largest + size


@pytest.mark.parametrize("name", [name for name in NAMES if LOSSES[name].targets == "labels"])
@every_size
@varied()
def test_a_common_shift_of_the_outputs_costs_no_curvature(name, m, rng):
    """Multi-class losses depend on differences of outputs alone; with a single class there are none."""
    y, out = draw(name, rng, m)
    hessian = LOSSES[name].hessian(y, out)
    np.testing.assert_allclose(hessian.product(np.ones((N, m))), 0.0, rtol=0, atol=1e-15 * m)
    np.testing.assert_allclose(hessian.product(rng.standard_normal((N, m))).sum(axis=1), 0.0, rtol=0, atol=1e-14 * m)


@every_loss
@every_size
@pytest.mark.parametrize("size", [40.0, 700.0, 1e4])
def test_extreme_margins(name, m, size):
    """No overflow, and no curvature but that of margins near zero: those of the squared hinge and the squared loss."""
    loss = LOSSES[name]
    out = size * np.repeat(np.vstack([np.eye(m), -np.eye(m)]), m, axis=0)
    y = np.tile(np.arange(m), 2 * m)
    if loss.targets != "labels":
        y = np.where(np.eye(m)[y] > 0, 1.0, -1.0)
    matrices = dense(loss.hessian(y, out), len(out), m)
    assert np.isfinite(matrices).all()
    if name in ("logistic", "smoothed-hinge"):
        # Of the odds exp(z) that are not tied: exp(-40) at most (times e for the cost).
        tied = [np.sum(np.isclose(row, row.max())) > 1 for row in out]
        np.testing.assert_allclose(matrices[np.logical_not(tied)], 0.0, rtol=0, atol=np.exp(1.0 - 40.0) * m)
    if name == "binary-logistic":
        expected = np.where(out == 0, 0.25, 0.0)
        np.testing.assert_allclose(np.einsum("icc->ic", matrices), expected, rtol=0, atol=np.exp(-40.0))


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_inputs_are_not_overwritten(name, weighted):
    rng = np.random.default_rng(0)
    y, out = draw(name, rng, 3)
    y = np.arange(N) % 3 if LOSSES[name].targets == "labels" else y
    Z, weights = rng.standard_normal(out.shape), rng.uniform(size=N)
    for array in (y, out, Z, weights):
        array.setflags(write=False)
    hessian = Losses.of_data(name, y, N, weights if weighted else None).hessian(out)
    diagonal, product = np.array(hessian.diagonal), hessian.product(Z)
    assert not any(np.shares_memory(product, array) for array in (out, Z))
    np.testing.assert_array_equal(hessian.product(Z), product)
    np.testing.assert_array_equal(hessian.diagonal, diagonal)


@every_loss
@varied()
def test_a_weight_is_a_repetition(name, rng):
    y, out = draw(name, rng, 3)
    counts = np.r_[1, 1, 1, rng.integers(0, 4, N - 3)]
    if LOSSES[name].targets == "labels":
        y[:3] = 0, 1, 2
    Z = rng.standard_normal(out.shape)
    weighted = Losses.of_data(name, y, N, counts).hessian(out)
    again = np.repeat(np.arange(N), counts)
    repeated = Losses.of_data(name, y[again], len(again)).hessian(out[again])
    for ours, theirs in ((weighted.product(Z), repeated.product(Z[again])), (weighted.diagonal, repeated.diagonal)):
        summed = np.zeros(out.shape)
        np.add.at(summed, again, theirs)
        np.testing.assert_allclose(ours, summed, rtol=1e-14, atol=1e-14)


@every_loss
@varied()
def test_data_fit_with_weights_and_offset_equals_finite_differences(name, rng):
    y, out = draw(name, rng, 3)
    if LOSSES[name].targets == "labels":
        y[:3] = 0, 1, 2
    offset = rng.integers(-2, 3, size=out.shape)
    fit = Losses.of_data(name, y, N, rng.uniform(0, 3, N), offset)
    Z = rng.uniform(-1, 1, out.shape)
    numeric = by_differences(lambda o: fit.value_gradient(o)[1], out, Z)
    np.testing.assert_allclose(fit.hessian(out).product(Z), numeric, rtol=0, atol=2e-11 * (1 + np.abs(numeric).max()))


def test_a_loss_without_hessian_names_itself():
    loss = Huber()
    assert not loss.has_hessian
    with pytest.raises(NotImplementedError, match="the loss 'Huber' has no hessian; use a first-order solver"):
        Losses.of_data(loss, np.zeros(4), 4).hessian(np.zeros((4, 1)))
