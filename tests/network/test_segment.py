"""Segments of a network problem: towards a vertex, away from one, and from one to another."""

import itertools
import math

import numpy as np
import pytest
from networks import problem_of

import mopn
from mopn.solvers.conditional_gradient import line_search

NORMS = ("l1", "l1/l2", "l1/linf")
RADIUS, ALPHA = 2.0, 0.5
WAYS = ("towards", "away", "pairwise")
FORMS = [{"radius": RADIUS}, {"strength": 0.1}]
every_way = pytest.mark.parametrize("way", WAYS)
every_norm = pytest.mark.parametrize("norm", NORMS)


def make(norm, alpha=None, size=0.8, **form):
    """A problem and a point of three units, whose weights fill part of the ball."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 4))
    problem = mopn.NetworkProblem(X, np.arange(30) % 3, norm=norm, alpha=alpha, **(form or {"radius": RADIUS}))
    basis, weights = rng.standard_normal((3, 4)), rng.standard_normal((3, 3))
    if norm == "l1":
        weights *= np.eye(3)
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    weights *= size * RADIUS / problem.norm.value(weights)
    linear = None if alpha is None else rng.standard_normal((3, 5))
    return problem, problem.start((basis, weights, linear))


def segment(problem, point, way, r=1, whole=True):
    at = problem.output_gradient(point)
    units = None if way == "away" else problem.lmo(at).basis[:1]
    return at, problem.segment(point, at, units, least=at.value, whole=whole, away=None if way == "towards" else r)


def steps(segment):
    return segment.limit * np.array([0.0, 1e-6, 0.3, 0.9, 1.0])


def objective(problem, point):
    return problem.output_gradient(point.compact()).value


@every_way
@every_norm
@pytest.mark.parametrize("alpha", [None, ALPHA])
def test_the_value_is_the_objective_of_the_point(norm, way, alpha):
    problem, point = make(norm, alpha)
    for whole in (True, False):
        at, way_ = segment(problem, point, way, whole=whole)
        assert way_.value(0.0) == pytest.approx(at.value, rel=1e-12)
        for gamma in steps(way_):
            assert objective(problem, way_.point(gamma)) == pytest.approx(way_.value(gamma), rel=1e-12)


@every_norm
@pytest.mark.parametrize("alpha", [None, ALPHA])
def test_under_a_penalty_the_value_is_a_bound_that_begins_at_the_objective(norm, alpha):
    problem, point = make(norm, alpha, strength=0.1)
    for way, r in itertools.product(WAYS, range(4)):
        at, way_ = segment(problem, point, way, r)
        assert way_.value(0.0) == pytest.approx(at.value, rel=1e-12)
        for gamma in steps(way_):
            assert objective(problem, way_.point(gamma)) <= way_.value(gamma) * (1 + 1e-12)
    towards = segment(problem, point, "towards")[1]
    # The vertex lies where no minimiser is beyond: its penalty alone is the objective of the point.
    assert problem.regularizer.value(towards.point(1.0).weights) == pytest.approx(at.value, rel=1e-12)


@every_norm
@every_way
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpha", [None, ALPHA])
def test_the_gap_is_the_slope_and_the_curvature_bounds_the_rest(norm, way, alpha, form):
    problem, point = make(norm, alpha, **form)
    # With the linear term held, the losses alone are curved.
    _, way_ = segment(problem, point, way, whole=False)
    h = 1e-6
    assert -(way_.value(h) - way_.value(-h)) / (2 * h) == pytest.approx(way_.gap, rel=1e-6, abs=1e-8)
    for gamma in steps(way_):
        model = way_.value(0.0) - gamma * way_.gap + 0.5 * gamma**2 * way_.curvature * way_.squared_length
        assert way_.value(gamma) <= model + 1e-12 * abs(model)


@every_norm
def test_the_gap_counts_the_linear_term_that_moves(norm):
    """It is the derivative but for the ridge, whose linearisation is not taken: its fall is that of the whole step."""
    problem, point = make(norm, ALPHA)
    at, towards = segment(problem, point, "towards")
    W, step = point.linear, towards.point(1.0).linear - point.linear
    h = 1e-6
    slope = -(towards.value(h) - towards.value(-h)) / (2 * h)
    linearised = slope + float(np.sum(problem.linear_term.gradient(W) * step))
    fall = problem.linear_term.value(W) - problem.linear_term.value(W + step)
    assert towards.gap == pytest.approx(linearised + fall, rel=1e-6)
    # And so it is the gap itself, of the best vertex and the best linear term.
    assert at.value - problem.lower(at, problem.lmo(at).values[0]) <= towards.gap * (1 + 1e-6)


@pytest.mark.parametrize("way", ["away", "pairwise"])
@every_norm
def test_the_unit_is_gone_at_the_limit_exactly(norm, way):
    problem, point = make(norm)
    for r in range(3):
        _, way_ = segment(problem, point, way, r)
        weights = way_.point(way_.limit).weights
        assert not weights[r].any()
        assert weights[[i for i in range(3) if i != r]].any(axis=1).all()
        assert way_.point(way_.limit).drop_zero_units().n_units == len(weights) - 1
        # Just before it is there, on its side.
        before = way_.point(0.999 * way_.limit).weights[r]
        assert np.all(before * point.weights[r] >= 0)
        assert before.any()


@every_norm
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_active_units_make_up_the_point(norm, form, factor):
    """sum_r c_r Delta_r, with what is left for 0; and the slopes are derivatives of the objective."""
    problem, point = make(norm, **form)
    at = problem.output_gradient(point)
    least = factor * at.value
    active = problem.active_units(point, at, least=least)
    assert active.coefficients.sum() == pytest.approx(1.0)
    assert np.all(active.coefficients >= 0)
    size = RADIUS if "radius" in form else min(least, at.value) / form["strength"]
    sizes = np.array([problem.norm.value(row[None]) for row in point.weights])
    assert active.coefficients[:3] == pytest.approx(sizes / size, rel=1e-12)
    # The objective is linear in a unit's weights but for the losses: its slope is a difference quotient of both.
    h = 1e-6
    for r, row in enumerate(size * point.weights / sizes[:, None]):
        weights = {sign: point.weights + sign * h * np.outer(np.eye(3)[r], row) for sign in (1, -1)}
        values = {sign: objective(problem, point.with_weights(V)) for sign, V in weights.items()}
        assert active.slopes[r] == pytest.approx((values[1] - values[-1]) / (2 * h), rel=1e-6, abs=1e-7)
    assert active.slopes[3] == 0.0


@every_norm
@pytest.mark.parametrize("form", FORMS)
def test_gaps_and_limits_are_those_of_the_active_units(norm, form):
    problem, point = make(norm, **form)
    at = problem.output_gradient(point)
    active = problem.active_units(point, at)
    mean = active.coefficients @ active.slopes
    _, towards = segment(problem, point, "towards")
    for r, (share, slope) in enumerate(zip(*active, strict=True)):
        _, away = segment(problem, point, "away", r)
        assert away.gap == pytest.approx(slope - mean, rel=1e-9, abs=1e-9)
        assert away.limit == pytest.approx(share / (1 - share), rel=1e-12)
        _, pairwise = segment(problem, point, "pairwise", r)
        assert pairwise.gap == pytest.approx(towards.gap + slope - mean, rel=1e-9)
        assert pairwise.limit == pytest.approx(share, rel=1e-12)


@every_norm
@pytest.mark.parametrize("form", FORMS)
def test_away_from_zero_the_units_grow_until_no_share_of_it_is_left(norm, form):
    problem, point = make(norm, **form)
    at, away = segment(problem, point, "away", 3)
    end = away.point(away.limit)
    assert end.weights == pytest.approx((1.0 + away.limit) * point.weights, rel=1e-12)
    assert problem.regularizer.shares(end.weights, at.value).sum() == pytest.approx(1.0)
    # There 0 is not among the vertices of the ball any more.
    if "radius" in form:
        active = problem.active_units(end, problem.output_gradient(end))
        assert len(active.coefficients) == 3
    _, pairwise = segment(problem, point, "pairwise", 3)
    moved = pairwise.point(pairwise.limit).weights
    assert np.array_equal(moved[:3], point.weights)
    assert problem.regularizer.shares(moved, at.value).sum() == pytest.approx(1.0)


@every_norm
@pytest.mark.parametrize("form", FORMS)
def test_an_empty_network_is_the_vertex_zero(norm, form):
    problem, _ = make(norm, **form)
    point = problem.start()
    at = problem.output_gradient(point)
    active = problem.active_units(point, at)
    assert active.coefficients.tolist() == [1.0]
    assert active.slopes.tolist() == [0.0]
    (_, away), (_, pairwise) = (segment(problem, point, way, 0) for way in ("away", "pairwise"))
    assert (away.limit, away.gap) == (0.0, 0.0)
    assert pairwise.limit == 1.0
    towards = segment(problem, point, "towards")[1]
    assert pairwise.gap == pytest.approx(towards.gap, rel=1e-12)


@every_norm
def test_the_linear_term_moves_with_the_whole_towards_units(norm):
    """By the same step with and without a vertex to leave; away from one it stays."""
    problem, point = make(norm, ALPHA)
    ways = {(way, whole): segment(problem, point, way, whole=whole)[1] for way in WAYS for whole in (True, False)}
    still = [way_.point(0.1).linear for (way, whole), way_ in ways.items() if way == "away" or not whole]
    assert all(np.array_equal(linear, point.linear) for linear in still)
    towards, pairwise = (ways[way, True].point(0.1).linear for way in ("towards", "pairwise"))
    assert not np.array_equal(towards, point.linear)
    assert np.array_equal(towards, pairwise)


@every_norm
@pytest.mark.parametrize("rounding", [-3, -1, 0, 1])
def test_a_point_that_is_a_vertex_itself_cannot_leave_it(norm, rounding):
    """Up to rounding errors: there is nothing else to move to. The limit is 0, and a step of 0 changes nothing."""
    problem, point = make(norm)
    weights = RADIUS * point.weights[:1] / problem.norm.value(point.weights[:1])
    single = problem.network(point.basis[:1], weights * (1.0 + rounding * np.finfo(float).eps))
    _, away = segment(problem, single, "away", 0)
    assert away.limit == 0.0
    still = away.point(0.0)
    assert np.array_equal(still.weights, single.weights)
    assert away.value(0.0) == pytest.approx(objective(problem, still), rel=1e-12)


@pytest.mark.parametrize("way", ["away", "pairwise"])
@every_norm
@pytest.mark.parametrize("radius", [RADIUS, 0.0])
def test_a_unit_without_weight_has_no_vertex_to_leave(norm, way, radius):
    problem, point = make(norm, radius=radius)
    weights = point.weights.copy()
    weights[1] = 0.0
    point = point.with_weights(weights if radius else 0.0 * weights)
    at, way_ = segment(problem, point, way)
    assert way_.limit == 0.0
    assert math.isfinite(way_.gap)
    still = way_.point(0.0)
    assert np.array_equal(still.weights[:3], point.weights)
    assert objective(problem, still) == pytest.approx(at.value, rel=1e-12)


@every_norm
@pytest.mark.parametrize("form", [{"radius": RADIUS}, {"strength": 0.1}])
def test_a_segment_needs_no_objective_value(norm, form):
    problem, point = make(norm, **form)
    at = problem.output_gradient(point)
    units = problem.lmo(at).basis[:1]
    default, given = problem.segment(point, at, units), problem.segment(point, at, units, least=at.value)
    assert math.isfinite(default.gap)
    assert default.gap == given.gap
    assert np.array_equal(default.point(0.5).weights, given.point(0.5).weights)
    assert objective(problem, default.point(line_search(default))) < at.value
    # A smaller value reached elsewhere makes the vertex shorter, a larger one does not move it.
    lengths = [
        problem.norm.value(problem.segment(point, at, units, least=factor * at.value).point(1.0).weights)
        for factor in (0.5, 1.0, 2.0)
    ]
    assert lengths == pytest.approx(np.array([0.5 if "strength" in form else 1.0, 1.0, 1.0]) * lengths[1], rel=1e-12)


@every_norm
def test_several_units_are_gone_towards_in_equal_parts(norm):
    problem, point = make(norm)
    at = problem.output_gradient(point)
    units = problem.lmo(at).basis[:2]
    assert len(units) == 2
    each = [problem.segment(point, at, unit[None]).point(1.0).weights[3] for unit in units]
    both = problem.segment(point, at, units).point(1.0).weights
    assert both[3:] == pytest.approx(0.5 * np.array(each), rel=1e-12)
    assert problem.norm.value(both) == pytest.approx(RADIUS)


def test_merging_parallel_units():
    problem = problem_of("l1/l2")
    rng = np.random.default_rng(4)
    h = rng.standard_normal((2, 5))
    basis = np.vstack([h, -h[0], h[1] + 1e-6 * rng.standard_normal(5)])
    weights = rng.standard_normal((4, 3))
    network = problem.start((basis, weights))
    merged = network.merge_parallel_units()
    assert merged.n_units == 2
    assert merged.outputs == pytest.approx(network.outputs, rel=1e-4, abs=1e-4)
    assert problem.norm.value(merged.weights) <= problem.norm.value(network.weights) * (1 + 1e-12)
    assert merged.features == pytest.approx(problem.maps.features(merged.basis))
    assert merged.merge_parallel_units() is merged
