"""A function as oracle."""

from functools import cache

import numpy as np
import pytest

import mopn
from mopn.solvers import ConditionalGradient, Status

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 3))
Y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.4, 0.4])


def problem(norm):
    return mopn.NetworkProblem(X, Y, norm=norm, strength=0.5, augment=True)


@cache
def minimum(norm):
    return mopn.minimize(problem(norm), ConditionalGradient(refit="full"), tol=1e-4, max_iter=20)


def eigenvector(gammas):
    """The dominant eigenvector of the matrix of largest norm: the best unit for l1."""
    best = max(gammas, key=lambda gamma: np.linalg.norm(gamma, 2))
    values, vectors = np.linalg.eigh(best)
    return 7.0 * vectors[:, np.argmax(np.abs(values))]


def random_units(gammas):
    return np.random.default_rng(0).standard_normal((5, gammas.shape[1]))


@pytest.mark.covering(1)
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("function", [eigenvector, random_units, lambda gammas: np.eye(gammas.shape[1])[0]])
@pytest.mark.parametrize("refit", ["none", "output", "full"])
@pytest.mark.parametrize("tol", [1e-2, 0.0])
def test_certificates_are_true_whatever_the_function_selects(norm, function, refit, tol):
    """The bound is mopn's own; units of a function estimate nothing."""
    asked = []
    solver = ConditionalGradient(refit, oracle=lambda gammas: asked.append(gammas) or function(gammas))
    found, least = mopn.minimize(problem(norm), solver, tol=tol, max_iter=6), minimum(norm)
    assert least.gap < 1e-3 * least.fun
    assert least.fun - least.gap <= found.fun
    assert found.fun - found.gap <= least.fun
    assert found.status in (Status.CONVERGED, Status.MAX_ITER, Status.NO_BETTER_UNIT)
    assert (found.relative_gap <= tol) == found.success
    np.testing.assert_allclose(found.trace["estimated_gap"], found.trace["gap"], rtol=1e-12)
    assert len(asked) >= found.nit
    assert tol > 0 or found.nit == 6
    if found.status == Status.NO_BETTER_UNIT:
        assert f"{100 * found.relative_gap:.3g} %" in found.message


def test_the_best_units_for_l1_find_the_minimum():
    solver = ConditionalGradient(refit="full", oracle=eigenvector)
    assert mopn.minimize(problem("l1"), solver, tol=1e-5).success


@pytest.mark.parametrize("units", [np.zeros(4), np.ones(3), np.ones((0, 4)), np.full(4, np.nan), np.ones((2, 2, 4))])
def test_wrong_units(units):
    at = problem("l1").output_gradient(problem("l1").start())
    with pytest.raises(ValueError, match=r"the oracle must return units|units of the oracle contains NaN"):
        problem("l1").lmo(at, lambda gammas: units)
