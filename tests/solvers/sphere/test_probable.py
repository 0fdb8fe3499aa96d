"""Bounds by Lanczos from random starts: above the maximum, as tight as asked for, and as seldom false as stated."""

import math

import numpy as np
import pytest
from stacks import gaussian

from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.probable import _bound_on_cone, error_after, expected_products, probable_bound, steps_for

SURE = 1e-9


def chance(seed=0, failure=SURE):
    """The last arguments of ``probable_bound``: the probability of failure, and the source of the starts."""
    return failure, np.random.default_rng(seed)


def skewed(rng, m, d):
    """One direction of the outputs dominates, as in loss gradients."""
    return gaussian(rng, m, d) * np.geomspace(1.0, 0.1, m)[:, None, None]


def tied(rng, m, d):
    return np.tile(gaussian(rng, 1, d), (m, 1, 1))


def zero(rng, m, d):
    return np.zeros((m, d, d))


def of_rank_one(rng, m, d):
    h = rng.standard_normal((m, d))
    return h[:, :, None] * h[:, None, :]


def slowly_decaying(rng, m, d):
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = 1.0 / np.log(np.arange(2, d + 2)) * rng.choice([-1.0, 1.0], (m, d))
    return np.einsum("ij,cj,kj->cik", Q, values, Q)


KINDS = {
    "gaussian": gaussian,
    "skewed": skewed,
    "tied": tied,
    "zero": zero,
    "rank one": of_rank_one,
    "slow": slowly_decaying,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_the_bound_is_above_and_near_the_maximum(kind, m, p):
    rng = np.random.default_rng(m)
    stack = DenseStack(KINDS[kind](rng, m, 60))
    H, bound = probable_bound(stack, p, 0.1, *chance())
    starts = rng.standard_normal((200, 60))
    _, values = refine(stack, starts / np.linalg.norm(starts, axis=1, keepdims=True), p)
    found = np.linalg.norm(stack.forms(H), p, axis=1).max(initial=0.0)
    best = max(values.max(), found)
    assert best <= bound * (1 + 1e-12)
    assert bound <= 1.13 * best + 1e-12
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_with_many_outputs_the_bound_is_loose_and_valid(p):
    rng = np.random.default_rng(0)
    stack = DenseStack(gaussian(rng, 12, 30))
    H, bound = probable_bound(stack, p, 0.1, *chance())
    values = refine(stack, H, p)[1]
    assert values.max() <= bound <= 12 * values.max()


def test_rows_of_several_signs_are_all_tried_for_p_1():
    """The maximum is that of one sign vector, found by enumeration."""
    rng = np.random.default_rng(3)
    A = gaussian(rng, 5, 40)
    signs = np.array(np.meshgrid(*[[1.0, -1.0]] * 5)).reshape(5, -1).T
    exact = max(np.linalg.eigvalsh(np.einsum("c,cij->ij", s, A))[-1] for s in signs)
    _, bound = probable_bound(DenseStack(A), 1.0, 0.01, *chance())
    assert exact <= bound <= 1.011 * exact


@pytest.mark.parametrize(("d", "eps", "failure"), [(10**4, 1e-3, 1e-9), (10**6, 1e-3, 1e-9), (100, 0.1, 0.5)])
def test_steps_and_error_are_those_of_the_theorem(d, eps, failure):
    k = steps_for(d, eps, failure)
    stated = [1.648 * math.sqrt(d) * math.exp(-math.sqrt(eps) * (2 * j - 1)) for j in (k, k - 1)]
    assert stated[0] <= failure < stated[1]
    assert error_after(k, d, failure) <= eps < error_after(k - 1, d, failure)


@pytest.mark.parametrize(("d", "failure", "tol"), [(60, 0.9, 0.1), (200, 0.9, 0.05), (60, 0.5, 0.1)])
def test_bounds_are_false_as_seldom_as_stated_and_not_never(d, failure, tol):
    """The hardest spectrum: Chebyshev points, as far below the largest eigenvalue as the bound adds."""
    steps = steps_for(d, 0.5 * tol, failure / 2)
    eps = error_after(steps, d, failure / 2)
    gap = 1.02 * eps / (1.0 - 2.0 * eps)
    rest = (1.0 - gap) * 0.5 * (1.0 + np.cos(np.pi * np.arange(d - 1) / (d - 2)))
    stack = DenseStack(np.diag(np.r_[1.0, rest])[None])
    draws = 400
    false = sum(probable_bound(stack, math.inf, tol, *chance(seed, failure))[1] < 1.0 for seed in range(draws))
    # Half of the probability is for the other end of the spectrum, which is no concern here.
    stated = failure / 2
    assert 0 < false / draws <= stated + 3.0 * math.sqrt(stated / draws)


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("seed", range(10))
def test_the_bound_on_a_cone_is_the_largest_value_of_its_linear_function(m, seed):
    """Values that differ put the maximum of the linear function on all of the sphere outside the cone."""
    rng = np.random.default_rng(seed)
    cone = np.abs(rng.standard_normal((m, m))) + np.eye(m)
    cone /= np.linalg.norm(cone, axis=1, keepdims=True)
    values = rng.uniform(0.1, 1.0, m)
    # A grid of the cone: with exponents, it is fine near the faces too.
    a = rng.dirichlet(np.full(m, 0.3), 20_000)
    a = np.vstack([a, np.eye(m)])
    least = float(((a @ values) / np.linalg.norm(a @ cone, axis=1)).max())
    assert least <= _bound_on_cone(cone, values) <= least * (1 + 2e-2)


@pytest.mark.parametrize("width", [0.0, 1e-16, 1e-9, 1e-3])
def test_corners_that_nearly_coincide_bound_their_cone(width):
    cone = np.array([1.0, 0.0, 0.0]) + width * np.random.default_rng(0).standard_normal((3, 3))
    cone /= np.linalg.norm(cone, axis=1, keepdims=True)
    bound = _bound_on_cone(cone, np.array([1e-16, 3e-16, 2e-16]))
    assert 3e-16 <= bound <= 3e-16 * (1 + 10 * width + 1e-3)


def test_the_time_limit_leaves_no_false_bound():
    stack = DenseStack(gaussian(np.random.default_rng(0), 4, 30))
    for p in (1.0, 2.0, math.inf):
        assert probable_bound(stack, p, 0.1, *chance(), allowance=Allowance(seconds=0.0))[1] == math.inf


def test_the_whole_space_leaves_no_error():
    A = gaussian(np.random.default_rng(0), 1, 12)
    _, bound = probable_bound(DenseStack(A), math.inf, 1e-3, *chance())
    assert bound == pytest.approx(np.abs(np.linalg.eigvalsh(A)).max(), rel=1e-9)


def test_the_expected_products_grow_with_outputs_and_precision():
    stack = DenseStack(np.zeros((4, 5000, 1)).transpose(0, 2, 1)[:, :, :1])
    stack.shape = (4, 5000)
    few, finer, signed = (
        expected_products(stack, *of) for of in ((math.inf, 1e-2, SURE), (math.inf, 1e-3, SURE), (1.0, 1e-2, SURE))
    )
    assert few < finer
    assert signed == pytest.approx(2 * few, rel=0.1)
