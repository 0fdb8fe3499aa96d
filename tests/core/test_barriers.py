"""Interior-point states against numerical minimisation over the bounds, finite differences and convex duality."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st
from networks import TWO_SIDED
from properties import generators, tried
from reference import derivatives

from mopn.core.norms import NORMS
from mopn.core.regularizers import make_regularizer

NAMES = TWO_SIDED
FORMS = ["strength", "radius"]
SHAPES = [(1, 1), (4, 1), (1, 3), (3, 2)]

every_norm = pytest.mark.parametrize("name", NAMES)
every_form = pytest.mark.parametrize("form", FORMS)
every_shape = pytest.mark.parametrize("shape", SHAPES)
varied = partial(tried, 6, rng=generators)
levels = st.sampled_from([1e-3, 0.1, 3.0])

SIZE = 2.0


def every_case(**drawn):
    """All norms, forms and shapes, tried on random numbers and on what else is drawn."""
    return lambda test: every_norm(every_form(every_shape(varied(**drawn)(test))))


def draw(name, form, rng, shape):
    """Weights, in a ball well inside of it; zero rows, ties and entries of different sizes among them."""
    V = rng.standard_normal(shape) * rng.choice([0.01, 1.0], size=shape)
    kind = rng.integers(4)
    if kind == 1:
        V[rng.integers(shape[0])] = 0.0
    elif kind == 2:
        V = rng.choice([-1.0, 1.0], size=shape)
    elif kind == 3:
        V[:] = 0.0
    return V if form == "strength" else V * 0.6 * SIZE / max(NORMS[name].value(V), 0.6 * SIZE)


def state(name, form, V, mu):
    """A state at V, and its quadratic and gradient; no guess of a loss gradient, so a ball moves nothing."""
    barrier = make_regularizer(name, **sizes(form)).barrier(V, mu, np.zeros(V.shape))
    np.testing.assert_allclose(barrier.V, V, rtol=1e-15, atol=0)
    return barrier, *barrier.linearize(mu)


def sizes(form):
    return {"strength": None, "radius": None, form: SIZE}


def centred(name, form, V, mu):
    """The same with multipliers on the central path: a step of no length moves nothing but them."""
    barrier, *_ = state(name, form, V, mu)
    for _ in range(12):
        barrier.advance(np.zeros(V.shape), 0.0)
    return barrier, *barrier.linearize(mu)


def dense(quadratic, shape):
    """Entry by entry, from the definition."""
    diagonal = np.broadcast_to(quadratic.diagonal, shape)
    A = np.diag(diagonal.ravel())
    for r in range(0 if quadratic.rows is None else shape[0]):
        e = np.zeros(shape)
        e[r] = quadratic.rows[r]
        A -= np.outer(e, e)
    return A if quadratic.common is None else A + np.outer(quadratic.common, quadratic.common)


@every_case(mu=levels)
def test_gradient_equals_finite_differences_of_the_value(name, form, shape, rng, mu):
    V = draw(name, form, rng, shape)
    barrier, _, gradient = state(name, form, V, mu)
    # Distances from the boundary are at least mu / multiplier; in a ball, 0.4 SIZE or more is left for the slacks.
    h = 5e-3 * mu / (SIZE + barrier.degree * mu)
    numeric = derivatives(barrier.value, V, h)
    # In a ball the value finds the multiplier to 1e-10, relative: 1e-10 mu of noise a bound, over h.
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-6 * (SIZE + barrier.degree * mu))


@every_case(mu=st.sampled_from([1e-8, 1e-3, 3.0]))
def test_degree_times_mu_bounds_the_gap_where_the_gradient_is_a_losss(name, form, shape, rng, mu):
    """At a minimum the loss gradient is -g: the gap is R(V) + R*(g) - <g, V>, with g as dual point."""
    V = draw(name, form, rng, shape)
    barrier, _, g = state(name, form, V, mu)
    dual = np.linalg.norm(g, {"l1": np.inf, "l1/l2": 2, "l1/linf": 1}[name], axis=1).max()
    if form == "strength":
        assert dual <= SIZE * (1 + 1e-12)
        gap = SIZE * NORMS[name].value(V) - np.vdot(g, V)
    else:
        gap = SIZE * dual - np.vdot(g, V)
    assert -1e-14 <= gap <= barrier.degree * mu * (1 + 1e-8) + 1e-14


def curvatures(name, form, V, mu, quadratic):
    """The quadratic relative to the second derivative of the value: eigenvalues, 1 where they are equal."""

    def gradient(U):
        return state(name, form, U, mu)[2].ravel()

    # Distances from the boundary are about mu / multiplier.
    h = 1e-3 * mu / (SIZE + make_regularizer(name, **sizes(form)).barrier(V, mu, 0 * V).degree * mu)
    exact = derivatives(gradient, V, h).reshape(V.size, V.size)
    np.testing.assert_allclose(exact, exact.T, rtol=0, atol=1e-7 * np.abs(exact).max())
    A = dense(quadratic, V.shape)
    values, vectors = np.linalg.eigh(0.5 * (exact + exact.T))
    assert values.min() > 0
    root = vectors / np.sqrt(values)
    # What finite differences lose is relative to the largest eigenvalue.
    return np.linalg.eigvalsh(root.T @ A @ root), 1e-8 * values.max() / values.min()


@every_case(mu=st.sampled_from([0.03, 0.3, 3.0]))
def test_on_the_central_path_the_second_derivative_is_exact_or_at_most_twice_so(name, form, shape, rng, mu):
    """Lengths: exact across v; along it p p' is v v' / t^2, where v v' / (t (t - mu / (2 multiplier))) would be."""
    V = draw(name, form, rng, shape)
    barrier, quadratic, _ = centred(name, form, V, mu)
    np.testing.assert_allclose(barrier.complementarity, mu, rtol=1e-8)
    ratios, error = curvatures(name, form, V, mu, quadratic)
    assert error < 1e-2
    assert ratios.min() >= 1 - error - 1e-7
    assert ratios.max() <= (2 if name == "l1/l2" else 1) + error + 1e-7


@every_norm
@every_shape
@varied(mu=st.sampled_from([0.03, 0.3, 3.0]))
def test_a_fresh_penalty_is_on_the_central_path(name, shape, rng, mu):
    V = draw(name, "strength", rng, shape)
    fresh, quadratic, _ = state(name, "strength", V, mu)
    np.testing.assert_allclose(fresh.complementarity, mu, rtol=1e-9)
    _, again, _ = centred(name, "strength", V, mu)
    A, B = dense(quadratic, shape), dense(again, shape)
    np.testing.assert_allclose(A, B, rtol=0, atol=1e-9 * np.abs(B).max())


def walk(name, form, rng, mu, steps=8):
    """Random steps, halved until they are feasible, like the solver's, while the level falls; yields each state."""
    V = draw(name, form, rng, (4, 3))
    barrier, quadratic, _ = state(name, form, V, mu)
    for _ in range(steps):
        D, step = rng.standard_normal(V.shape) * rng.choice([1e-3, 1.0]), 1.0
        while not math.isfinite(barrier.value(barrier.V + step * D)):
            step *= 0.5
        before = barrier.V
        both = barrier.advance(D, step)
        np.testing.assert_array_equal(barrier.V, before + step * D)
        quadratic, _ = barrier.linearize(barrier.mu)
        yield barrier, quadratic, both, step
        quadratic, _ = barrier.linearize(0.2 * barrier.mu)


@every_norm
@every_form
@varied(mu=levels)
def test_steps_stay_strictly_inside_with_a_positive_definite_quadratic(name, form, rng, mu):
    """With any multipliers; up to the rounding errors of diag(D) - sum e_r e_r', which are relative to D."""
    for barrier, quadratic, both, step in walk(name, form, rng, mu):
        assert 0 < both <= step
        assert barrier.complementarity > 0
        assert math.isfinite(barrier.value(barrier.V))
        if form == "radius":
            assert NORMS[name].value(barrier.V) < SIZE
        A = dense(quadratic, barrier.V.shape)
        assert (quadratic.diagonal > 0).all()
        scales = 1 / np.sqrt(quadratic.diagonal.ravel())
        assert np.linalg.eigvalsh(scales[:, None] * A * scales).min() >= -1e-15 * A.shape[0]


@every_norm
@every_form
def test_sparsified_keeps_weights_with_active_bounds(name, form):
    mu = 1e-8
    V = np.array([[0.4, -0.3], [0.0, 0.0], [1e-9, -1e-9], [0.2, 1e-9]])
    if form == "radius":
        # So close to the boundary that the multiplier is about 1.
        V *= (SIZE - 20 * mu) / NORMS[name].value(V)
    barrier = make_regularizer(name, **sizes(form)).barrier(V, mu, np.ones(V.shape))
    barrier.linearize(mu)
    expected = np.array(barrier.V)
    expected[1:3] = 0.0
    if name == "l1":
        expected[3, 1] = 0.0
    np.testing.assert_array_equal(barrier.sparsified(), expected)


def test_multipliers_that_vanish_beside_large_weights_divide_nothing():
    """A new unit's multiplier is 0 until its first step; its weights may be of any size after it."""
    V = np.zeros((2, 3))
    barrier = make_regularizer("l1/l2", 0.5, None).barrier(V, 1.0, V)
    for size in (1e-30, 1.0, 1e16, 1e60):
        barrier.cones.V = np.full((2, 3), size)
        quadratic, gradient = barrier.linearize(size)
        assert np.isfinite(quadratic.diagonal).all()
        assert np.isfinite(gradient).all()
        np.testing.assert_array_equal(quadratic.rows, 0.0)
