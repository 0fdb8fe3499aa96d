"""Segments of a network problem: towards a vertex, away from one, from one to another; and plain steps along them."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from networks import problem_of
from scipy.special import softmax

import mopn
from mopn.solvers import ConditionalGradient, PlainStep
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
    """It is the derivative, except for the ridge, which is not linearised: its fall is taken over the whole step."""
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
    """sum_r c_r Delta_r, with the rest for 0; and the slopes are derivatives of the objective."""
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
    assert merged.features == pytest.approx(problem.network(merged.basis, merged.weights).features)
    assert merged.merge_parallel_units() is merged


# -- plain steps, each recomputed from the networks before and after it ------------------------------------------------


BALL_AND_PENALTY = ({"radius": 4.0}, {"strength": 1.0})
STEPS = 15
ball_or_penalty = pytest.mark.parametrize("form", BALL_AND_PENALTY, ids=("ball", "penalty"))
other_directions = pytest.mark.parametrize("direction", ["away", "pairwise"])
DUAL = {"l1": np.inf, "l1/l2": 2, "l1/linf": 1}
PRIMAL = {"l1": 1, "l1/l2": 2, "l1/linf": np.inf}


def samples(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (40, 3))
    return X, np.argmax(X**2 + 0.1 * rng.standard_normal((40, 3)), axis=1)


class Step(NamedTuple):
    """Units and weights, and the objective."""

    basis: np.ndarray
    weights: np.ndarray
    fun: float


def networks_of_run(norm, form, direction):
    """Every network of a run from three units that are of no use, and its result."""
    problem, history = mopn.NetworkProblem(*samples(), norm=norm, **form), []

    def note(intermediate_result):
        history.append(Step(*(np.array(intermediate_result[name]) for name in ("basis", "weights")),
                            intermediate_result.fun))  # fmt: skip

    solver = ConditionalGradient(PlainStep(direction=direction), oracle="exact")
    start = np.eye(3), -0.1 * np.eye(3)
    result = mopn.minimize(problem, solver, start=start, tol=0.0, max_iter=STEPS, callback=note)
    return problem, history, result


def slopes_by_hand(norm, form, step):
    """The slopes of all active vertices, their coefficients, and the least slope of many vertices."""
    X, y = samples()
    features = (X @ step.basis.T) ** 2
    G = softmax(features @ step.weights, axis=1) - np.eye(3)[y]
    sizes = np.linalg.norm(step.weights, PRIMAL[norm], axis=1)
    radius = form.get("radius", step.fun / form.get("strength", 1.0))
    cost = form.get("strength", 0.0)
    slopes = radius * (np.einsum("kc,kc->k", features.T @ G, step.weights) / sizes + cost)
    coefficients = sizes / radius
    H = np.random.default_rng(0).standard_normal((2000, 3))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    q = ((X @ H.T) ** 2).T @ G
    best = min(0.0, radius * (cost - np.linalg.norm(q, DUAL[norm], axis=1).max()))
    return np.append(slopes, 0.0), np.append(coefficients, 1.0 - coefficients.sum()), best


def worst_of(slopes, coefficients, best):
    """The vertex of the largest slope; of those as large but for rounding the last, which is 0 if there is a share."""
    slopes = np.where(coefficients > 1e-12, slopes, -np.inf)
    return np.flatnonzero(slopes >= slopes.max() - 1e-6 * (slopes.max() - best))[-1]


def is_new(units, others):
    """Which units (k,) are none of the others."""
    return np.array([not np.any(np.all(unit == others, axis=1)) for unit in units], dtype=bool)


@pytest.mark.parametrize(("norm", "rule"), [*((norm, "line-search") for norm in NORMS), ("l1", "short")])
@other_directions
@ball_or_penalty
def test_the_objective_falls_to_the_optimum(norm, form, direction, rule):
    problem = mopn.NetworkProblem(*samples(), norm=norm, **form)
    best = mopn.minimize(problem, ConditionalGradient("full"), tol=1e-5)
    assert best.success
    solver = ConditionalGradient(PlainStep(rule, direction), oracle="exact")
    result = mopn.minimize(problem, solver, tol=0.1, max_iter=200)
    assert result.success
    assert best.fun * (1 - 1e-5) <= result.fun <= best.fun / (1 - 0.1)
    fun = result.trace["fun"]
    assert np.all(np.diff(fun) <= 1e-12 * fun[0])
    assert np.all(fun - result.trace["gap"] <= best.fun * (1 + 1e-12))
    if "radius" in form:
        assert problem.norm.value(result.weights) <= form["radius"] * (1 + 1e-12)


@other_directions
@ball_or_penalty
@every_norm
def test_each_step_has_the_direction_of_the_paper(norm, form, direction):
    """The worst vertex is the one left; away steps are taken where their gap is larger than the best vertex's."""
    _, history, _ = networks_of_run(norm, form, direction)
    seen = set()
    for before, after in itertools.pairwise(history):
        slopes, coefficients, best = slopes_by_hand(norm, form, before)
        worst = worst_of(slopes, coefficients, best)
        new = is_new(after.basis, before.basis)
        kept, old = after.weights[~new], before.weights[~is_new(before.basis, after.basis)]
        moved = np.flatnonzero(np.any(np.abs(kept - old) > 1e-12 * np.abs(old), axis=1))
        if direction == "pairwise":
            left = np.flatnonzero(is_new(before.basis, after.basis))
            seen.add("drop" if len(left) else "step")
            # The unit of the worst vertex alone changes, or is gone; all others keep their weights.
            assert len(left) + len(moved) <= 1
            if worst < len(before.basis):
                assert left.tolist() == [worst] or moved.tolist() == [worst]
            else:
                assert len(left) + len(moved) == 0
            continue
        # The vertex that was taken, or any new one, has no smaller slope than the best of many.
        mean = coefficients @ slopes
        gaps = {"towards": mean - best, "away": slopes[worst] - mean}
        if abs(gaps["towards"] - gaps["away"]) < 1e-2 * gaps["away"]:
            continue
        way = max(gaps, key=gaps.__getitem__)
        seen.add(way)
        assert new.any() == (way == "towards")
    assert seen == ({"drop", "step"} if direction == "pairwise" else {"towards", "away"})


@other_directions
def test_without_a_strength_nothing_bounds_the_vertices(direction):
    problem = mopn.NetworkProblem(*samples(), norm="l1", strength=0.0)
    with pytest.raises(TypeError, match="with strength=0 nothing bounds a step"):
        mopn.minimize(problem, ConditionalGradient(PlainStep(direction=direction)), tol=0.0)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@other_directions
@ball_or_penalty
@every_norm
def test_rows_in_another_order_take_the_same_steps(norm, form, direction, seed):
    """Two vertices tie after most pairwise steps, as a line search ends at a tie: rounding decides nothing."""
    X, y = samples(seed)
    solver, order = ConditionalGradient(PlainStep(direction=direction)), np.random.default_rng(seed).permutation(len(y))
    first, moved = (
        mopn.minimize(mopn.NetworkProblem(X[rows], y[rows], norm=norm, **form), solver, tol=0.0, max_iter=STEPS)
        for rows in (slice(None), order)
    )
    assert moved.fun == pytest.approx(first.fun, rel=1e-7)
