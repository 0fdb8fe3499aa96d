"""A function as oracle."""

import numpy as np
import pytest

import mopn

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 3))
Y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.4, 0.4])


def problem(norm):
    return mopn.NetworkProblem(X, Y, norm=norm, strength=0.5, augment=True)


def eigenvector(gammas):
    """The dominant eigenvector of the matrix of largest norm: the best unit for l1."""
    best = max(gammas, key=lambda gamma: np.linalg.norm(gamma, 2))
    values, vectors = np.linalg.eigh(best)
    return 7.0 * vectors[:, np.argmax(np.abs(values))]


def random_units(gammas):
    return np.random.default_rng(0).standard_normal((5, gammas.shape[1]))


@pytest.mark.covering(1)
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("function", [eigenvector, random_units])
@pytest.mark.parametrize("refit", ["none", "full"])
def test_certificates_are_true_whatever_the_function_selects(norm, function, refit):
    solver = mopn.solvers.ConditionalGradient(refit=refit, oracle=function)
    found = mopn.minimize(problem(norm), solver, tol=1e-6, max_iter=5)
    least = mopn.minimize(problem(norm), mopn.solvers.ConditionalGradient(refit="full"), tol=1e-4, max_iter=20)
    assert least.gap < 1e-3 * least.fun
    assert least.fun - least.gap <= found.fun
    assert found.fun - found.gap <= least.fun


def test_the_best_units_for_l1_find_the_minimum():
    solver = mopn.solvers.ConditionalGradient(refit="full", oracle=eigenvector)
    assert mopn.minimize(problem("l1"), solver, tol=1e-5).success


@pytest.mark.parametrize("units", [np.zeros(4), np.ones(3), np.ones((0, 4)), np.full(4, np.nan), np.ones((2, 2, 4))])
def test_wrong_units(units):
    at = problem("l1").output_gradient(problem("l1").start())
    with pytest.raises(ValueError, match=r"the oracle must return units|units of the oracle contains NaN"):
        problem("l1").lmo(at, lambda gammas: units)
