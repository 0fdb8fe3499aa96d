"""Every way to bound max ||q(h)||_p, and the public maximum: tight without a limit, true at any, at all scales."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from stacks import STACKS, attained, best_of_many, draw_small, every_kind, slow_maximum, symmetric, unit_vectors

from mopn.solvers.sphere import DenseStack, dense_search, enumerate_signs, maximise, refine
from mopn.solvers.sphere.biquadratic import Biquadratic
from mopn.solvers.sphere.boundary_point import Multipliers, step_work
from mopn.solvers.sphere.branch_signs import NODE_WORK, branch_and_bound
from mopn.solvers.sphere.cones import bound_by_eigenvalues
from mopn.solvers.sphere.nested import branch_on_forms, nest_and_bound
from mopn.solvers.sphere.sum_of_squares import bound_by_squares
from mopn.solvers.tools.budgets import Budget


class Way(NamedTuple):
    """A function of a scaled stack, a tolerance and a budget: vectors, which may be none, and a bound."""

    prove: Callable
    p: int
    tols: tuple[float, ...]
    # The excess of the bound over the maximum without a limit, in tolerances and in addition.
    slack: tuple[float, float]
    # Units of work whose numbers are tried.
    unit: Callable = lambda m, d: step_work((m + 1) * d)
    work: float = np.inf


def by_signs(stack, tol, budget):
    h, bound = branch_and_bound(stack, np.eye(stack.shape[1])[:1], tol, budget)
    return h[None], bound


def by_forms(stack, tol, budget):
    """On all directions; the best of the starts that its nodes suggest is a vector."""
    found = [refine(stack, np.eye(stack.shape[1]), 1)]

    def best():
        return max(float(values.max()) for _, values in found)

    form = Biquadratic(stack.matrices, stack.shape[1], best(), np.zeros((0, 0)), 1)
    none = Multipliers.none(len(form.matrix))

    def look(starts):
        found.append(refine(stack, starts, 1))

    bound, _ = branch_on_forms(form, none, look, lambda: best() * (1.0 + tol), budget)
    return np.vstack([H for H, _ in found]), bound


def nested(p):
    def prove(stack, tol, budget):
        found = nest_and_bound(stack, unit_vectors(np.random.default_rng(0), 3, stack.shape[1]), p, tol, budget)
        return found.H, found.bound

    return prove


def by_eigenvalues(stack, tol, budget):
    return bound_by_eigenvalues(stack, unit_vectors(np.random.default_rng(0), 1, stack.shape[1]), tol, budget)


def by_squares(stack, tol, budget):
    start = np.eye(stack.shape[1])
    return start, bound_by_squares(stack, start, tol=tol, budget=budget).bound


WAYS = {
    "signs": Way(by_signs, 1, (1e-9, 1e-3, 1e-1), (1.01, 1e-9), lambda m, d: NODE_WORK),
    "forms": Way(by_forms, 1, (1e-4,), (1.01, 0.0), lambda m, d: 60.0 * step_work((m + 1) * d)),
    "nested signs": Way(nested(1), 1, (1e-12,), (1.0, 0.3), lambda m, d: 1e8, work=2e9),
    "nested": Way(nested(2), 2, (1e-12,), (1.0, 1e-3), lambda m, d: 1e8, work=2e9),
    "eigenvalues": Way(by_eigenvalues, 2, (1e-2, 1e-6, 1e-15), (1.01, 1e-8), lambda m, d: 1e6, work=1e9),
    "squares": Way(by_squares, 2, (1e-4,), (1.01, 1e-7), lambda m, d: step_work(d * (d + 1) // 2)),
}
every_way = pytest.mark.parametrize("way", WAYS)


def maximum(A, p, rng):
    return slow_maximum(A) if p == 1 else best_of_many(A, 2, rng, starts=50)


def drawn(way, kind, rng):
    """A small stack; of four outputs at most, or of three, where a way is for few."""
    if way == "eigenvalues":
        A = symmetric(STACKS[kind](rng, int(rng.integers(1, 5)), 5))
        return np.concatenate([A, -A.sum(axis=0, keepdims=True), 0.0 * A[:1]])
    return symmetric(STACKS[kind](rng, 3, 5)) if way.startswith("nested") else draw_small(kind, rng)


@every_way
@every_kind
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e140])
def test_bounds_are_tight_without_a_limit(way, kind, scale):
    rng, (prove, p, tols, (factor, more), _, work) = np.random.default_rng(1), WAYS[way]
    for _ in range(5 if way == "signs" else 1):
        stack, _ = DenseStack(scale * drawn(way, kind, rng)).scaled()
        value = maximum(stack.matrices, p, rng)
        for tol in tols if value > 0 else ():
            H, bound = prove(stack, tol, Budget(work))
            found = attained(stack.matrices, H, p).max(initial=0.0)
            best = max(value, float(found))
            assert value <= bound <= best * (1.0 + factor * tol + more)
            assert found <= bound
            if p == 1:
                assert value * (1.0 - factor * tol - more) <= found <= value * (1.0 + 1e-9)


@every_way
@pytest.mark.parametrize("units", [0, 1, 3, 30])
def test_bounds_are_true_at_any_limit(way, units):
    rng, prove, p, unit = np.random.default_rng(2), WAYS[way].prove, WAYS[way].p, WAYS[way].unit
    for kind in (kind for kind in STACKS if kind != "zero"):
        stack, _ = DenseStack(drawn(way, kind, rng)).scaled()
        budget = Budget(units * unit(*stack.shape))
        H, bound = prove(stack, 1e-9, budget)
        assert max(maximum(stack.matrices, p, rng), attained(stack.matrices, H, p).max(initial=0.0)) <= bound
        assert budget.spent <= budget.work or way in ("signs", "forms")
    assert prove(stack, 1e-9, Budget(seconds=1e-9))[1] >= maximum(stack.matrices, p, rng)


# -- the public maximum: known maxima of tensors, any scale and limit --------------------------------------------------


# The state of three qubits W, and GHZ; and another one of three levels.
W = np.array([[[0, 1], [1, 0]], [[1, 0], [0, 0]]]) / np.sqrt(3)
GHZ = np.array([np.diag([1, 0]), np.diag([0, 1])]) / np.sqrt(2)
THREE = np.array([np.diag(e) for e in np.eye(3)]) / np.sqrt(3)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize(("state", "norm"), [(W, 2 / 3), (GHZ, 2**-0.5), (THREE, 3**-0.5)])
def test_injective_norms_of_states(state, norm, scale):
    found = maximise(scale * state, 2, 1e-6)
    assert found.value / scale == pytest.approx(norm, rel=1e-6)
    assert norm <= found.bound / scale <= 1.000002 * norm
    assert np.linalg.norm(np.einsum("cij,i,j", state, found.h, found.h)) == pytest.approx(found.value / scale)


@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("max_time", [1e-9, np.inf])
def test_the_maximum_is_between_value_and_bound(p, max_time):
    rng = np.random.default_rng(0)
    A = symmetric(rng.standard_normal((3, 28, 28)))
    value, bound = maximise(A, p, 1e-3, max_time)[1:]
    best = best_of_many(A, p, rng, starts=50)
    assert value <= best * (1 + 1e-5)
    assert best <= bound
    assert max_time < 1 or bound <= 1.001 * value
    if p == 1:
        assert value <= enumerate_signs(DenseStack(A))[1] * (1 + 1e-12)


def test_a_search_that_has_spent_its_work_is_continued(monkeypatch):
    monkeypatch.setattr(dense_search, "MAX_WORK", 80 * step_work(36))
    A = symmetric(np.random.default_rng(3).standard_normal((4, 8, 8)))
    value, bound = maximise(A, 2, 1e-4)[1:]
    assert best_of_many(A, 2, np.random.default_rng(0), starts=50) <= bound <= 1.0001 * value


def test_signs_of_many_outputs_that_are_soon_decided_need_no_forms(monkeypatch):
    monkeypatch.setattr(dense_search, "nest_and_bound", None)
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((14, 6, 3))
    signs = rng.choice([-1.0, 1.0], (14, 1, 1))
    A = signs * (roots @ roots.swapaxes(1, 2)) + 0.3 * symmetric(rng.standard_normal((14, 6, 6)))
    value, bound = maximise(A, 1, 1e-4)[1:]
    assert enumerate_signs(DenseStack(A))[1] * (1 - 1e-12) <= bound <= 1.0001 * value


def test_no_matrix_but_zero():
    assert maximise(np.zeros((2, 3, 3)))[1:] == (0.0, 0.0)
