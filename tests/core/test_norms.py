"""Norms and regularisers against extreme points, Moreau's identity, bisection and convex duality."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import TWO_SIDED
from properties import examples, generators, tried

import mopn
from mopn.core.norms import L1L2, NORMS
from mopn.core.regularizers import Ball, Penalty, SquaredL2, make_regularizer

NAMES = TWO_SIDED
SHAPES = [(1, 1), (4, 1), (1, 3), (3, 2), (5, 4)]

every_norm = pytest.mark.parametrize("name", NAMES)
every_shape = pytest.mark.parametrize("shape", SHAPES)
varied = partial(tried, 20, rng=generators)


def every_case(**drawn):
    """All norms and shapes, tried on random numbers and on what else is drawn."""
    return lambda test: every_norm(every_shape(varied(**drawn)(test)))


def draw(rng, shape):
    """A matrix with one of: ties, zero rows, only zeros, huge or tiny entries, entries of very different sizes."""
    V = rng.standard_normal(shape)
    kind = rng.integers(7)
    if kind == 1:
        V = np.round(2 * V) / 2
    elif kind == 2:
        V[rng.integers(shape[0])] = 0.0
    elif kind == 3:
        V[:] = 0.0
    elif kind == 4:
        V *= rng.choice([1e-9, 1e9])
    elif kind == 5:
        V *= 10.0 ** rng.integers(-4, 5, size=shape)
    elif kind == 6:
        V = rng.choice([-1.0, 1.0], size=shape) * abs(V[0, 0])
    return V


def reference_norm(name, V):
    """Sum over the rows of the largest entry, the length, or the sum of the entries, in plain Python."""
    rows = [[abs(float(v)) for v in row] for row in V]
    per_row = {"l1": sum, "l1/l2": lambda row: math.hypot(*row), "l1/linf": max}[name]
    return sum(per_row(row) for row in rows)


def reference_dual(name, G):
    """Largest row, in the dual of the norm of a row."""
    rows = [[abs(float(g)) for g in row] for row in G]
    per_row = {"l1": max, "l1/l2": lambda row: math.hypot(*row), "l1/linf": sum}[name]
    return max((per_row(row) for row in rows), default=0.0)


def project_on_dual_ball(name, V, radius):
    """Nearest point with every row's dual norm at most the radius; the l1 ball of a row by bisection."""
    if name == "l1":
        return np.clip(V, -radius, radius)
    P = np.array(V)
    for row in P:
        if reference_dual(name, row[None]) <= radius:
            continue
        if name == "l1/l2":
            row *= radius / math.hypot(*row)
        else:
            a = np.abs(row).tolist()
            level = bisect(lambda u, a=a: sum(v - u for v in a if v > u) - radius, max(a))
            row[:] = np.sign(row) * np.maximum(np.abs(row) - level, 0.0)
    return P


def bisect(decreasing, upper):
    """Root of a decreasing function on [0, upper], to the last bit."""
    low, high = 0.0, float(upper)
    for _ in range(1100):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if decreasing(middle) > 0 else (low, middle)
    return high


def reference_prox(name, V, step):
    """Moreau: the prox of step * norm is the remainder of the projection onto the dual ball."""
    return V - project_on_dual_ball(name, V, step)


@every_case()
def test_value_and_dual_equal_plain_loops(name, shape, rng):
    V = draw(rng, shape)
    np.testing.assert_allclose(NORMS[name].value(V), reference_norm(name, V), rtol=1e-14)
    np.testing.assert_allclose(NORMS[name].dual(V), reference_dual(name, V), rtol=1e-14)


@every_norm
def test_no_rows(name):
    norm, none = NORMS[name], np.zeros((0, 3))
    assert norm.value(none) == 0.0
    assert norm.dual(none) == 0.0
    assert norm.prox(none, 1.0).shape == (0, 3)
    assert norm.project(none, 0.5).shape == (0, 3)
    assert norm.project(none, 0.0).shape == (0, 3)
    assert norm.shrinkage(none, 0.5) == (0.0, 0.0)


@every_case(step=st.sampled_from([0.0, 1e-3, 0.5, 1.0, 2.0, 100.0]))
def test_prox_equals_moreau(name, shape, rng, step):
    V = draw(rng, shape)
    step *= 1.0 + np.abs(V).max() if step != 1.0 else np.abs(V).max()
    P = NORMS[name].prox(V, step)
    np.testing.assert_allclose(P, reference_prox(name, V, step), rtol=0, atol=4e-15 * (np.abs(V).max() + step))


@every_case(step=st.floats(0.0, 4.0))
def test_shrinkage_is_the_norm_of_the_prox_and_a_subgradient(name, shape, rng, step):
    """Convex in the step, so the slope must support the curve at every step, at the kinks too."""
    V = draw(rng, shape)
    value, slope = NORMS[name].shrinkage(V, step)
    size = 1e-13 * (reference_norm("l1", V) + step)
    np.testing.assert_allclose(value, reference_norm(name, reference_prox(name, V, step)), rtol=0, atol=size)
    if value > 0:
        assert slope > 0
    for other in (0.0, 0.5 * step, 0.9 * step, 1.1 * step + 1e-3, 2 * step + 1):
        there = reference_norm(name, reference_prox(name, V, other))
        assert there >= value - slope * (other - step) - size * (1 + slope * (other + step))


def reference_projection(name, V, radius):
    """Bisection on the step at which the norm of the reference prox equals the radius."""
    if NORMS[name].value(V) <= radius:
        return V
    step = bisect(lambda t: reference_norm(name, reference_prox(name, V, t)) - radius, reference_dual(name, V))
    return reference_prox(name, V, step)


@every_case(share=st.sampled_from([0.0, 1e-9, 0.1, 0.5, 0.99, 1.0, 1.5]))
def test_projection_equals_bisection_and_lies_in_the_ball(name, shape, rng, share):
    V = draw(rng, shape)
    radius = share * NORMS[name].value(V)
    P = NORMS[name].project(V, radius)
    expected = reference_projection(name, V, radius)
    # Points of the ball stay as they are to the last bit, on the boundary too.
    np.testing.assert_allclose(P, expected, rtol=0, atol=2e-14 * np.abs(V).max() if share < 1 else 0)
    assert reference_norm(name, P) <= radius * (1 + 1e-15 * V.size)
    np.testing.assert_allclose(NORMS[name].project(P, radius), P, rtol=1e-14, atol=0)


@every_norm
@pytest.mark.parametrize("share", [1e-3, 0.3, 0.9, 0.999])
def test_projection_of_many_rows_equals_bisection(name, share):
    """With many kinks close together the last steps of the search are short; stopping early would show."""
    V = np.random.default_rng(0).standard_normal((200, 3))
    radius = share * reference_norm(name, V)
    P = NORMS[name].project(V, radius)
    np.testing.assert_allclose(P, reference_projection(name, V, radius), rtol=0, atol=2e-14)


@every_norm
def test_norms_do_not_overwrite_or_alias(name):
    """A result that shared memory with its input would let a solver change the caller's point."""
    V = np.random.default_rng(0).standard_normal((4, 3))
    V.setflags(write=False)
    norm = NORMS[name]
    norm.value(V), norm.dual(V), norm.shrinkage(V, 0.5)
    for P in (norm.prox(V, 0.0), norm.prox(V, 0.5), norm.project(V, 1.0), norm.project(V, 1e3)):
        assert not np.shares_memory(P, V)
        assert P.flags.writeable


# Regularisers

SIZES = [0.0, 0.3, 2.0]
REGULARIZERS = (
    [(name, {"strength": size}) for name in NAMES for size in SIZES]
    + [(name, {"radius": size}) for name in NAMES for size in SIZES]
    + [("squared-l2", {"strength": size}) for size in SIZES]
)
every_regularizer = pytest.mark.parametrize(
    ("name", "size"),
    REGULARIZERS,
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, *value.items())),
)


def make(name, size):
    return make_regularizer(name, size.get("strength"), size.get("radius"))


@every_regularizer
def test_make_regularizer(name, size):
    regularizer, (number,) = make(name, size), size.values()
    assert type(regularizer) is (SquaredL2 if name == "squared-l2" else Penalty if "strength" in size else Ball)
    # A ball always restrains the weights, a penalty of strength 0 never does.
    assert regularizer.active == ("radius" in size or number > 0)
    assert name == "squared-l2" or make(NORMS[name], size) == regularizer


@every_regularizer
@varied()
def test_regularizer_prox_minimises(name, size, rng):
    """The prox is feasible, and no other feasible point has a lower objective, by the growth of a prox."""
    V, step = rng.standard_normal((4, 3)), 0.7
    regularizer, norm = make(name, size), 0.5 * np.sum(V**2) if name == "squared-l2" else reference_norm(name, V)
    assert regularizer.value(V) == pytest.approx(size.get("strength", 0.0) * norm, rel=1e-14)
    P = regularizer.prox(V, step)

    def objective(U):
        return 0.5 * np.sum((U - V) ** 2) + step * regularizer.value(U)

    radius = size.get("radius", np.inf)
    reference = "l1" if name == "squared-l2" else name
    assert reference_norm(reference, P) <= radius * (1 + 1e-14)
    for scale in (1e-3, 0.1, 1.0):
        U = P + scale * rng.standard_normal(V.shape)
        if radius < np.inf:
            U *= min(1.0, radius / reference_norm(reference, U))
        assert objective(U) >= objective(P) + 0.5 * np.sum((U - P) ** 2) - 1e-13


@pytest.mark.parametrize(("name", "size"), [case for case in REGULARIZERS if max(case[1].values()) > 0])
@varied()
def test_conjugates_are_suprema(name, size, rng):
    """Of <V, G> - R(V): attained by one V and exceeded by none; beyond ``max_scale`` the same V grows without limit."""
    regularizer, G, (number,) = make(name, size), draw(rng, (3, 2)), size.values()
    largest = regularizer.max_scale(regularizer.dual(G))
    bounded = name == "squared-l2" or "radius" in size
    assert largest == (np.inf if bounded or not G.any() else pytest.approx(number / reference_dual(name, G), rel=1e-14))
    G *= 1.0 if bounded or not G.any() else largest * (1 - 1e-12)
    best = G / number
    if name != "squared-l2":
        row = np.argmax([reference_dual(name, g[None]) for g in G])
        best = -number * NORMS[name].steepest(G) * (np.arange(3) == row)[:, None]
        assert reference_norm(name, best) <= number * (1 + 1e-14)
    conjugate = regularizer.conjugate(regularizer.dual(G))
    for V in (best, regularizer.prox(draw(rng, (3, 2)), 0.7), 0 * G):
        assert np.vdot(V, G) - regularizer.value(V) <= conjugate * (1 + 1e-14)
    if bounded:
        assert np.vdot(best, G) - regularizer.value(best) == pytest.approx(conjugate, rel=1e-14)
    elif G.any():
        assert conjugate == 0.0
        assert regularizer.conjugate(1.0001 * regularizer.dual(G)) == np.inf
        assert np.vdot(best, 1.0001 * G) > regularizer.value(best)


@pytest.mark.parametrize("name", NAMES)
@examples(20)
@given(strength=st.floats(1e-12, 1e12), dual=st.floats(1e-12, 1e12))
def test_rounding_of_max_scale_does_not_make_a_proof_infinite(name, strength, dual):
    penalty = make(name, {"strength": strength})
    s = penalty.max_scale(dual)
    assert penalty.conjugate(s * dual) == 0.0
    assert penalty.conjugate(s * (1 + 1e-12) * dual) == np.inf
    assert penalty.max_scale(0.0) == np.inf


@every_regularizer
def test_the_gradient_of_a_smooth_regulariser(name, size):
    regularizer, V = make(name, size), np.random.default_rng(0).standard_normal((3, 2))
    assert regularizer.smooth == (name == "squared-l2" or size.get("strength") == 0)
    assert regularizer.has_barrier == (name != "squared-l2" and max(size.values()) > 0)
    if regularizer.smooth:
        U, h = np.random.default_rng(1).standard_normal(V.shape), 1e-6
        slope = (regularizer.value(V + h * U) - regularizer.value(V - h * U)) / (2 * h)
        np.testing.assert_allclose(np.vdot(regularizer.gradient(V), U), slope, rtol=1e-8, atol=1e-12)


@every_regularizer
@varied()
def test_the_dual_norm_of_rows_is_bounded_by_their_moduli(name, size, rng):
    G = draw(rng, (4, 3))
    regularizer = make(name, size)
    assert regularizer.dual(G) <= regularizer.dual_of_rows(np.abs(G).sum(axis=1).max(), len(G)) * (1 + 1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_the_cost_of_weight(name):
    penalty, ball = make(name, {"strength": 2.0}), make(name, {"radius": 4.0})
    assert penalty.weight_cost(earned=lambda: 12.0) == 2.0
    # Weights of norm 4 that earn 12 earn 3 each.
    assert ball.weight_cost(earned=lambda: 12.0) == 3.0
    assert make(name, {"radius": 0.0}).weight_cost(earned=lambda: 0.0) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_extreme_points_minimise_the_linearised_objective(name):
    """Of -value * norm + penalty over the norms up to the radius, or up to least / strength."""
    penalty, ball = make(name, {"strength": 2.0}), make(name, {"radius": 4.0})
    for value in (0.5, 1.999, 2.001, 7.0):
        for regularizer, largest, price in ((penalty, 6.0 / 2.0, 2.0), (ball, 4.0, 0.0)):
            size, paid = regularizer.vertex(least=6.0, value=value)
            assert paid == price
            norms = np.linspace(0.0, largest, 5)
            assert (price - value) * size == min((price - value) * norms)
    with pytest.raises(ValueError, match="strength=0 nothing bounds a step"):
        make(name, {"strength": 0.0}).vertex(least=6.0, value=1.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [{"strength": 0.7}, {"radius": 2.0}])
@pytest.mark.parametrize("length", [0.5, 3.0])
def test_the_gradient_by_free_units(name, size, length):
    """Of <C, A>^2 / 2 + R in the place of F + R, inside and outside of the ball, by central differences."""
    rng, regularizer = np.random.default_rng(0), make(name, size)
    B, C, D = rng.standard_normal((3, 2, 4))
    B *= length / np.linalg.norm(B)

    def objective(B):
        A = regularizer.scaled_units(B)
        gradient = np.vdot(C, A) * C
        penalty, gradient = regularizer.units_value_gradient(B, A, gradient)
        return 0.5 * np.vdot(C, A) ** 2 + penalty, gradient, A

    _, gradient, A = objective(B)
    if "radius" in size:
        assert np.vdot(A, A) <= size["radius"] * (1 + 1e-14)
    h = 1e-5
    slope = (objective(B + h * D)[0] - objective(B - h * D)[0]) / (2 * h)
    np.testing.assert_allclose(np.vdot(gradient, D), slope, rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_feasible_weights(name):
    V = np.array([[1.0, -2.0], [0.5, 0.0]])
    make(name, {"strength": 1.0}).check_feasible(1e9 * V)
    radius = NORMS[name].value(V)
    make(name, {"radius": radius}).check_feasible(V)
    with pytest.raises(ValueError, match="outside the ball of radius"):
        make(name, {"radius": radius * (1 - 1e-6)}).check_feasible(V)


def test_norms_are_a_closed_set():
    """Proofs for these norms are not claimed for others, whatever they override or inherit."""

    class Half(L1L2):
        def value(self, V):
            return 0.5 * super().value(V)

    X, y = np.eye(3), np.arange(3)
    for norm in (Half(), L1L2()):
        with pytest.raises(TypeError, match=r"norm must be one of .*'nonnegative-l1', by name: .*got the object"):
            mopn.NetworkProblem(X, y, norm=norm, strength=1.0)
        with pytest.raises(TypeError, match="norm must be one of"):
            mopn.OutputLayerProblem(X, y, norm=norm, strength=1.0)
        with pytest.raises(TypeError, match="norm must be one of"):
            mopn.oracles.basis_oracle(norm)
