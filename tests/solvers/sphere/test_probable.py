"""Bounds from random starts: above the maximum, as tight as asked for, and as seldom false as stated."""

import math
from itertools import chain, repeat
from unittest.mock import PropertyMock

import numpy as np
import pytest
from stacks import SHAPES, attained, draw, every_kind, gaussian, good_vectors

from mopn.solvers.sphere import DenseStack, probable, refine
from mopn.solvers.sphere.probable import chebyshev_bound, least_component, probable_bound, steps_for
from mopn.solvers.tools.budgets import Budget

SURE = 1e-9


def chance(seed=0, failure=SURE):
    """The last arguments of ``probable_bound``: the probability of failure, and the source of the starts."""
    return failure, np.random.default_rng(seed)


def skewed(rng, m, d):
    """One direction of the outputs dominates, as in loss gradients."""
    return gaussian(rng, m, d) * np.geomspace(1.0, 0.1, m)[:, None, None]


def slowly_decaying(rng, m, d):
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = 1.0 / np.log(np.arange(2, d + 2)) * rng.choice([-1.0, 1.0], (m, d))
    return np.einsum("ij,cj,kj->cik", Q, values, Q)


KINDS = {"gaussian": gaussian, "skewed": skewed, "slow": slowly_decaying}


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


def applied(eigenvalues):
    """Products with a diagonal matrix."""
    return lambda H: H * eigenvalues


@pytest.mark.parametrize(("d", "tol", "failure"), [(10**4, 1e-2, 1e-9), (10**6, 1e-3, 1e-9), (100, 0.1, 0.5)])
def test_steps_are_the_fewest_that_bound_a_unit_norm_to_the_tolerance(d, tol, failure):
    steps = steps_for(d, tol, failure)
    grown = [np.polynomial.Chebyshev.basis(k)(1.0 + tol) for k in (steps - 1, steps)]
    assert grown[0] < math.sqrt(d) / least_component(failure) <= grown[1]


@pytest.mark.parametrize("largest", [0.3, 0.99, 1.01, 1.3, -1.2])
@pytest.mark.parametrize("steps", [2, 7, 60])
def test_a_bound_is_that_of_the_chebyshev_polynomial(largest, steps):
    """A vector along the eigenvector itself grows like the polynomial."""
    d, scale = 5, 0.5
    start = np.zeros((1, d))
    start[0, 2] = 3.0
    eigenvalues = 0.5 * np.array([0.1, -0.2, largest, 0.0, 0.25])
    grown = abs(np.polynomial.Chebyshev.basis(steps)(largest))
    expected = scale * math.cosh(math.acosh(max(grown * 3.0 / 2.0, 1.0)) / steps)
    bound = chebyshev_bound(applied(eigenvalues), start, np.array([scale]), steps, 2.0)[0]
    assert bound == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 0.5, 0.95, 1.0, 2.0, 1e3])
@np.errstate(all="ignore")  # as within public calls
def test_no_scale_makes_a_bound_false(scale):
    rng = np.random.default_rng(0)
    eigenvalues = np.r_[-1.0, rng.uniform(-0.9, 0.9, 39)]
    start = rng.standard_normal((300, 40))
    start = start[np.abs(start[:, 0]) > 1e-3]
    bounds = chebyshev_bound(applied(eigenvalues), start, np.full(len(start), scale), 50, 1e-3)
    assert (bounds >= 1.0).all()


@pytest.mark.parametrize("failure", [0.05, 0.3])
def test_bounds_are_false_as_seldom_as_stated_and_not_never(failure):
    """The hardest spectrum: but for the largest eigenvalue, the zeros of the polynomial, which leave nothing else."""
    steps, draws, scale = 9, 4000, 0.95
    eigenvalues = np.r_[1.0, scale * np.cos(np.pi * (np.arange(steps) + 0.5) / steps)]
    start = np.random.default_rng(0).standard_normal((2 * draws, len(eigenvalues)))
    bounds = chebyshev_bound(applied(eigenvalues), start, np.full(len(start), scale), steps, least_component(failure))
    false = np.mean(bounds.reshape(2, draws).max(axis=0) < 1.0)
    spread = 4.0 * math.sqrt(failure / draws)
    assert 0.5 * failure - spread < false <= failure + spread


def test_every_matrix_of_a_call_has_its_share_of_the_failure(monkeypatch):
    """Shares add up to the failure of the call at most, and no start serves two matrices."""
    spent, starts = [], []

    def recorded(products, start, scale, steps, least):
        spent.extend([2.0 / math.pi * least**2] * (len(start) // 2))
        starts.extend(map(bytes, start))
        return chebyshev_bound(products, start, scale, steps, least)

    monkeypatch.setattr(probable, "chebyshev_bound", recorded)
    for p in (1.0, 2.0, math.inf):
        spent.clear()
        starts.clear()
        probable_bound(DenseStack(gaussian(np.random.default_rng(0), 4, 30)), p, 0.1, *chance())
        assert 0 < sum(spent) <= SURE * (1 + 1e-12)
        assert len(set(starts)) == len(starts)


@every_kind
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize(("seed", "shape"), [*enumerate(SHAPES[:-1])])
def test_no_stack_of_any_kind_has_a_value_above_the_bound(kind, p, seed, shape):
    rng, stack = draw(kind, seed, shape)
    bound = probable_bound(DenseStack(stack), p, 0.1, *chance(seed))[1]
    assert attained(stack, good_vectors(rng, stack, p), p).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("looks", range(5))
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_the_time_limit_leaves_no_false_bound(monkeypatch, p, looks):
    """A number of looks at the clock find time left; cones that wait for a corner keep the bound that they have."""
    stack = gaussian(np.random.default_rng(0), 4, 30)
    clock = chain([False] * looks, repeat(True))
    monkeypatch.setattr(Budget, "out_of_time", PropertyMock(side_effect=clock))
    bound = probable_bound(DenseStack(stack), p, 0.1, *chance())[1]
    assert math.isinf(bound) == (looks == 0)
    assert attained(stack, good_vectors(np.random.default_rng(0), stack, p), p).max() <= bound
