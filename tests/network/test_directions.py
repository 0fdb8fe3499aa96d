"""Plain steps of a network in three directions, each recomputed from the networks before and after it."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import softmax

import mopn
from mopn.solvers import ConditionalGradient, PlainStep

NORMS = ("l1", "l1/l2", "l1/linf")
FORMS = ({"radius": 4.0}, {"strength": 1.0})
STEPS = 15
every_norm = pytest.mark.parametrize("norm", NORMS)
every_form = pytest.mark.parametrize("form", FORMS, ids=("ball", "penalty"))
other_directions = pytest.mark.parametrize("direction", ["away", "pairwise"])
DUAL = {"l1": np.inf, "l1/l2": 2, "l1/linf": 1}
PRIMAL = {"l1": 1, "l1/l2": 2, "l1/linf": np.inf}


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (40, 3))
    return X, np.argmax(X**2 + 0.1 * rng.standard_normal((40, 3)), axis=1)


class Step(NamedTuple):
    """Units and weights, and the objective."""

    basis: np.ndarray
    weights: np.ndarray
    fun: float


def run(norm, form, direction):
    """Every network of a run from three units that are of no use, and its result."""
    problem, history = mopn.NetworkProblem(*data(), norm=norm, **form), []

    def note(intermediate_result):
        history.append(Step(*(np.array(intermediate_result[name]) for name in ("basis", "weights")),
                            intermediate_result.fun))  # fmt: skip

    solver = ConditionalGradient(PlainStep(direction=direction), oracle="exact")
    start = np.eye(3), -0.1 * np.eye(3)
    result = mopn.minimize(problem, solver, start=start, tol=0.0, max_iter=STEPS, callback=note)
    return problem, history, result


def slopes_by_hand(norm, form, step):
    """The slopes of all active vertices, their coefficients, and the least slope of many vertices."""
    X, y = data()
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
@every_form
def test_the_objective_falls_to_the_optimum(norm, form, direction, rule):
    problem = mopn.NetworkProblem(*data(), norm=norm, **form)
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
@every_form
@every_norm
def test_each_step_has_the_direction_of_the_paper(norm, form, direction):
    """The worst vertex is the one left; away steps are taken where their gap is larger than that of the best vertex."""
    _, history, _ = run(norm, form, direction)
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
@every_form
def test_a_linear_term_moves_with_the_steps_towards_units(form, direction):
    X, y = data()
    problem = mopn.NetworkProblem(X, y, norm="l1", alpha=20.0, **form)
    solver = ConditionalGradient(PlainStep(direction=direction))
    result = mopn.minimize(problem, solver, tol=3e-2, max_iter=300)
    assert result.success
    assert np.all(np.diff(result.trace["fun"]) <= 1e-12 * result.fun)


@other_directions
def test_without_a_strength_nothing_bounds_the_vertices(direction):
    problem = mopn.NetworkProblem(*data(), norm="l1", strength=0.0)
    with pytest.raises(TypeError, match="with strength=0 nothing bounds a step"):
        mopn.minimize(problem, ConditionalGradient(PlainStep(direction=direction)), tol=0.0)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@other_directions
@every_form
@every_norm
def test_rows_in_another_order_take_the_same_steps(norm, form, direction, seed):
    """Two vertices tie after most pairwise steps, as a line search ends where they do: rounding decides nothing."""
    X, y = data(seed)
    solver, order = ConditionalGradient(PlainStep(direction=direction)), np.random.default_rng(seed).permutation(len(y))
    first, moved = (
        mopn.minimize(mopn.NetworkProblem(X[rows], y[rows], norm=norm, **form), solver, tol=0.0, max_iter=STEPS)
        for rows in (slice(None), order)
    )
    assert moved.fun == pytest.approx(first.fun, rel=1e-7)
