"""What an oracle remembers lives in a run: equal calls give equal bits, and no two proofs of a chain share a start."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest

import mopn
from mopn.oracles import basis_oracle
from mopn.solvers import ConditionalGradient, Status
from mopn.solvers.sphere import probable
from mopn.solvers.tools.budgets import FAILURE, FailureBudget


def problem_of(norm, d=5):
    rng = np.random.default_rng(0)
    return mopn.NetworkProblem(rng.uniform(-1, 1, (60, d)), rng.integers(0, 3, 60), norm=norm, strength=0.5)


def fit(problem, oracle, start=None, **options):
    return mopn.minimize(problem, ConditionalGradient(oracle=oracle), start=start, tol=1e-3, max_iter=3, **options)


@pytest.fixture
def starts(monkeypatch):
    """The starts of all random proofs, as they are drawn."""
    drawn = []

    def noted(products, start, *rest):
        drawn.extend(start)
        return chebyshev_bound(products, start, *rest)

    chebyshev_bound = probable.chebyshev_bound
    monkeypatch.setattr(probable, "chebyshev_bound", noted)
    return drawn


def all_differ(starts):
    return len(np.unique(np.round(starts, 12), axis=0)) == len(starts) > 0


@pytest.mark.parametrize(("norm", "method", "seed"), [("l1/l2", "exact", None), ("l1", "lanczos", 3)])
def test_equal_calls_give_equal_bits_with_one_oracle(norm, method, seed):
    problem, oracle = problem_of(norm), basis_oracle(norm, method, seed=seed)
    first, *others = (fit(problem, oracle) for _ in range(3))
    for other in others:
        np.testing.assert_array_equal(other.x, first.x)
        assert (other.fun, other.gap, other.nit) == (first.fun, first.gap, first.nit)


def test_no_two_proofs_of_a_chain_share_a_start(starts):
    """Neither those of a run, nor of what follows it, nor of copies; nor do those who know the code know them."""
    problem, oracle = problem_of("l1", d=3), basis_oracle("l1", "lanczos")
    for other in ("lanczos", oracle, copy.deepcopy(oracle), pickle.loads(pickle.dumps(oracle))):
        result = fit(problem, other)
        fit(problem, other, start=result)
        mopn.certify(problem, result.basis, result.weights, other)
    mopn.path(problem, 2, ConditionalGradient(oracle=oracle), tol=0.1)
    assert all_differ(starts)


def test_a_seed_repeats_a_run_but_not_within_a_chain(starts):
    problem, oracle = problem_of("l1"), basis_oracle("l1", "lanczos", seed=7)
    first = fit(problem, oracle)
    of_first = np.array(starts)
    second = fit(problem, oracle, start=first)
    assert all_differ(starts)
    starts.clear()
    fit(problem, oracle)
    np.testing.assert_array_equal(starts, of_first)
    for stated in (first, second, mopn.certify(problem, first.basis, first.weights, oracle)):
        assert stated.proof == "probability 1 - 1e-09, over starts of seed 7"


def test_a_chain_has_one_budget_of_failure():
    problem, spent = problem_of("l1"), 0.0
    result = None
    for _ in range(3):
        result = fit(problem, "lanczos", start=result)
        assert spent < result.failure < FAILURE
        assert result.proof == "probability 1 - 1e-09"
        spent = result.failure
    # A run hands on what was spent before it, and its own bounds may be proven for certain.
    for start, failure in ((result, spent), (None, 0.0)):
        certain = fit(problem, "exact", start=start)
        assert (certain.failure, certain.proof) == (failure, "deterministic")


def test_shares_of_failure_add_up_to_what_is_stated():
    failure_budget, total = FailureBudget(), 0.0
    for n in range(1, 200):
        total += failure_budget.next
        failure_budget.draw(None)
        assert failure_budget.failure == pytest.approx(total, rel=1e-9)
        assert failure_budget.failure < FAILURE
        assert FailureBudget(failure_budget.failure).proofs == n


RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (25, 3))
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
