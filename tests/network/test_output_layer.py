"""The output layer: gaps recomputed from the definition, solvers that agree, and a solution in closed form."""

from fractions import Fraction

import numpy as np
import pytest
from networks import LOSSES, data

import mopn
from mopn.solvers import FISTA, LBFGS, InteriorPoint


@pytest.mark.parametrize(("k", "expected"), [(30, InteriorPoint), (80, FISTA)])
def test_the_default_solver_is_that_of_refits(k, expected):
    features = np.random.default_rng(0).uniform(0, 1, (60, k))
    problem = mopn.OutputLayerProblem(features, features[:, 0] > 0.5, norm="l1", strength=0.1)
    assert isinstance(problem.default_solver(), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_lbfgs_and_fista_agree_on_the_smooth_problem(loss):
    X, y = data(loss)
    problem = mopn.OutputLayerProblem(X**2, y, loss=loss, norm="squared-l2", strength=0.5)
    fista = mopn.minimize(problem, FISTA(), tol=1e-9, max_iter=5000)
    lbfgs = mopn.minimize(problem, LBFGS(gtol=1e-12), tol=1e-9)
    assert fista.success
    assert lbfgs.success
    assert lbfgs.fun == pytest.approx(fista.fun, rel=3e-9)
    assert lbfgs.weights == pytest.approx(fista.weights, abs=1e-3)
    with pytest.raises(TypeError, match=r"there is none for a smooth penalty; use LBFGS\(\)"):
        mopn.minimize(problem, InteriorPoint())


@pytest.mark.parametrize("tol", [1e-13, 2e-13, 4e-13])
def test_success_is_a_gap_below_the_tolerance_with_its_rounding(tol):
    for seed in range(8):
        problem = mopn.OutputLayerProblem(
            *np.split(np.random.default_rng(seed).standard_normal((50, 6)), [5], 1), loss="squared", strength=1.0
        )
        result = mopn.minimize(problem, InteriorPoint(), tol=tol)
        assert result.success == (result.gap <= tol * result.fun)


@pytest.mark.parametrize("solver", [InteriorPoint(), FISTA()], ids=repr)
@pytest.mark.parametrize(("y", "strength", "start"), [(1.5, 0.5, -1.1e8), (1.25, 0.75, -1.1e8), (1.25, 0.75, -3e7)])
def test_bounds_from_far_starts_are_kept_as_they_were_proven(y, strength, start, solver):
    """For one sample x = 1 the minimum is strength y - strength^2 / 2; at a far start fun - gap is rounded by more."""
    problem = mopn.OutputLayerProblem(np.ones((1, 1)), [[y]], loss="squared", norm="l1", strength=strength)
    result = mopn.minimize(problem, solver, start=np.array([[start]]), tol=1e-3)
    weight, lam = Fraction(float(result.weights[0, 0])), Fraction(strength)
    minimum = lam * Fraction(y) - lam**2 / 2
    exact = (weight - Fraction(y)) ** 2 / 2 + lam * abs(weight)
    assert Fraction(result.lower) <= minimum
    assert Fraction(result.gap) >= max(exact, Fraction(result.fun)) - minimum
