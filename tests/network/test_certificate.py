"""Whole fits that are proven, certificates of any model, and what is not called proven."""

import numpy as np
import pytest
from mpmath import mp, mpf
from networks import LOSSES, data, every_form, every_norm, problem_of, random_network, wide_problem

import mopn
import mopn.network.problem
from mopn.data.rows import SumOfLosses
from mopn.solvers import ConditionalGradient, Status


@pytest.mark.slow
@every_form
@every_norm
def test_fits_are_proven_optimal(norm, form):
    problem = problem_of(norm, form, value=2.0)
    solver = ConditionalGradient(refit="full", oracle="exact", atoms_per_round=3)
    result = mopn.minimize(problem, solver, tol=1e-4, max_iter=60)
    assert result.success, result
    assert result.gap_is_proven
    # A run that goes on with another refit and another oracle finds nothing below what is proven.
    other = mopn.minimize(problem, ConditionalGradient(oracle="refine"), tol=1e-6, max_iter=10, start=result)
    assert other.fun <= result.fun * (1 + 1e-14)
    assert other.fun >= result.fun - result.gap


@every_form
@every_norm
def test_wide_fits_are_proven(norm, form):
    problem = wide_problem(norm, m=2, **{form: 0.2})
    result = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-4, max_iter=60)
    assert result.success, result
    assert result.gap_is_proven


def test_what_is_not_proven_is_called_estimated():
    problem = wide_problem("l1/l2", m=4, strength=0.2)
    result = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="refine"), tol=1e-3, max_iter=60)
    assert result.status == Status.ESTIMATED
    assert not result.success
    assert result.gap > 1e-3 * result.fun


def test_the_allowance_for_rounding_has_no_unit_of_its_own_for_the_squared_loss():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (20, 3)), rng.standard_normal(20)
    gaps = []
    for c in (1.0, 2.0**-40):
        problem = mopn.NetworkProblem(X, c * y, loss="squared", norm="l1", strength=100.0 * c)
        measured = mopn.certify(problem, np.zeros((0, 3)), np.zeros((0, 1)))
        gaps.append(measured.gap / measured.fun)
    # Zero is the minimiser, so that the gap is the budget.
    assert gaps[0] < 1e-12
    assert gaps[1] == gaps[0]


@every_norm
@every_form
def test_certify_any_model(norm, form):
    problem = problem_of(norm, form, value=1.5)
    best = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="exact"), tol=1e-4, max_iter=60)
    measure = mopn.certify(problem, best.basis, best.weights, "exact")
    assert measure.fun == pytest.approx(best.fun, rel=1e-12)
    assert measure.gap <= 3e-3 * measure.fun
    # A model found by something else, with units of other lengths.
    rng = np.random.default_rng(6)
    basis, weights = 0.5 * rng.standard_normal((4, 5)), 0.1 * rng.standard_normal((4, 3))
    other = mopn.certify(problem, basis, weights)
    assert other.fun - other.gap <= best.fun <= other.fun


def test_certify_refuses_what_it_cannot_certify():
    ball = problem_of("l1", "radius", value=1.0)
    with pytest.raises(ValueError, match="outside the ball of radius 1"):
        mopn.certify(ball, np.ones((1, 5)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="strength=0 no certificate"):
        mopn.certify(problem_of("l1", "strength", value=0.0), np.ones((1, 5)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="basis \\(k, 5\\)"):
        mopn.certify(ball, np.ones((1, 4)), np.ones((1, 3)))


@pytest.mark.parametrize("loss", ["squared", "poisson"])
@pytest.mark.parametrize(("size", "offset", "alpha"), [(1e6, 0.0, None), (1.0, 9.0, None), (1.0, 0.0, 1e-20)])
def test_rounded_outputs_count_where_the_gradient_at_them_is_zero(loss, size, offset, alpha):
    """Targets are those that the rounded outputs fit best: the exact objective is of second order in their errors."""
    rng = np.random.default_rng(0)
    X, H = rng.standard_normal((12, 3)), rng.standard_normal((4, 3))
    basis = np.vstack([H, H + 1e-7 * rng.standard_normal(H.shape)])
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    weights = np.vstack([np.full((4, 1), size), np.full((4, 1), -size)])
    linear = None if alpha is None else rng.standard_normal((1, 4))
    options = {"loss": loss, "norm": "l1", "strength": 1e-30, "alpha": alpha, "offset": np.full((12, 1), offset)}
    outputs = mopn.NetworkProblem(X, np.ones(12), **options).start((basis, weights, linear)).outputs + offset
    y = outputs if loss == "squared" else np.exp(outputs)
    measured = mopn.certify(mopn.NetworkProblem(X, y, **options), basis, weights, linear=linear)
    with mp.workdps(60):
        X, H, V = (mp.matrix(array.tolist()) for array in (X, basis, weights))
        exact = mpf(1e-30) * mp.fsum(mp.fabs(v) * mp.fsum(h * h for h in H[r, :]) for r, v in enumerate(V))
        if linear is not None:
            exact += mp.fsum(mpf(alpha) * (1 if j else mpf(0.01)) * mpf(w) ** 2 / 2 for j, w in enumerate(linear[0]))
        O = X * H.T  # noqa: E741
        O = O.apply(lambda o: o * o) * V  # noqa: E741
        for i in range(12):
            o, target = O[i] + mpf(offset), mpf(float(y[i, 0]))
            if linear is not None:
                o += mpf(linear[0, 0]) + mp.fdot(X[i, :], map(mpf, linear[0, 1:]))
            exact += (o - target) ** 2 / 2 if loss == "squared" else mp.exp(o) - target * (1 + o - mp.log(target))
        assert exact <= mpf(measured.fun) + mpf(measured.rounding)
        assert measured.restricted_gap >= measured.rounding


@every_form
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bound", [0.05, 0.4, 2.5, 40.0])
def test_the_best_scale_of_the_dual_point_is_found_in_few_evaluations(loss, form, bound, monkeypatch):
    problem = mopn.NetworkProblem(*data(loss), loss=loss, **{form: 2.0})
    at, asked, conjugates = problem.output_gradient(random_network(problem)), [], SumOfLosses.conjugates_and_sizes
    scales = np.linspace(0.0, min(at.dual.max_scale, 4.0), 5001)[:-1]
    penalties = 2.0 * scales * bound if form == "radius" else np.where(scales * bound <= 2.0, 0.0, np.inf)
    best = np.max(-conjugates(problem.losses, at.G, scales)[0] - penalties)
    monkeypatch.setattr(SumOfLosses, "conjugates_and_sizes", lambda *a: asked.extend(a[2]) or conjugates(*a))
    assert problem.lower(at, bound) >= best - 1e-5 * abs(best) - 1e-8
    assert len(asked) <= 25
