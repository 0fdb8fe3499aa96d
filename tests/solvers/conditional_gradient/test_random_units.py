"""L-BFGS from random units: on a problem of known minimum, and on networks in every form."""

import numpy as np
import pytest
from cases import network
from fakes import LowRankProblem, LowRankSteps, Noted, low_rank
from networks import every_form, every_kernel, every_norm, problem_of

import mopn
from mopn.solvers import ConditionalGradient, RandomUnits, Status, minimize


@pytest.mark.parametrize("seed", [0, 1])
def test_the_known_minimum_is_found_and_proven(seed):
    problem, minimum = low_rank(seed)
    result = minimize(problem, RandomUnits(8), tol=1e-5)
    assert result.status == Status.CONVERGED
    assert -1e-12 * minimum <= result.fun - minimum <= result.gap <= 1e-5 * result.fun


def test_too_few_units_end_at_a_local_minimum_whose_gap_is_proven():
    problem, minimum = low_rank()
    result = minimize(problem, RandomUnits(1), tol=1e-3)
    assert result.status == Status.RETURNED
    assert result.gap >= result.fun - minimum > 1e-3 * minimum


def test_a_bound_that_is_loose_is_called_estimated():
    problem, minimum = low_rank()

    class Loose(LowRankProblem):
        def oracle(self, spec, chance, seed):
            return "loose"

    result = minimize(Loose(problem.M, problem.B, problem.strength), RandomUnits(8), tol=1e-4)
    assert result.status == Status.ESTIMATED
    assert result.fun - minimum <= result.estimated_gap <= 1e-4 * result.fun < result.gap


def test_nothing_selects_units_on_the_way():
    problem, _ = low_rank()
    noted = Noted(problem)
    minimize(noted, RandomUnits(4), tol=0.0)
    assert [noted.calls.count(name) for name in ("joint", "lmo")] == [1, 1]
    assert not {"segment", "select_units", "output_layer"} & set(noted.calls)


def test_limits_and_callbacks_are_those_of_the_driver():
    problem, minimum = low_rank()

    def stop(intermediate_result):
        raise StopIteration

    short = minimize(problem, RandomUnits(4, max_iter=3), tol=0.0)
    assert short.refit_nit == 3
    assert short.gap >= short.fun - minimum > 0
    assert minimize(problem, RandomUnits(4), tol=0.0, max_time=0.0).status == Status.MAX_TIME
    assert minimize(problem, RandomUnits(4), tol=0.0, callback=stop).status == Status.STOPPED


def test_seeds():
    problem, _ = low_rank()
    first, again, other = (minimize(problem, RandomUnits(4, max_iter=1), tol=0.0, rng=seed).fun for seed in (0, 0, 1))
    assert first == again != other


def test_a_problem_that_offers_steps_alone_is_refused():
    problem, _ = low_rank()
    steps = LowRankSteps(problem.M, problem.B, problem.strength)
    with pytest.raises(TypeError, match=r"RandomUnits asks for the oracle 'corrective'.*offers: atomic"):
        minimize(steps, RandomUnits(3))
    with pytest.raises(ValueError, match="n_units must be an integer >= 1, got 0"):
        RandomUnits(0)
    with pytest.raises(ValueError, match="no certificate exists"):
        minimize(LowRankProblem(problem.M, problem.B, 0.0), RandomUnits(3))


# -- networks ----------------------------------------------------------------------------------------------------------


@every_kernel
@every_form
@every_norm
@pytest.mark.slow
def test_many_random_units_reach_the_optimum_of_networks(norm, form, kernel):
    problem = problem_of(norm, form, value=1.0 if form == "strength" else 3.0, kernel=kernel)
    best = minimize(problem, ConditionalGradient("full"), tol=1e-4)
    result = minimize(problem, RandomUnits(30), tol=1e-3)
    assert result.fun == pytest.approx(best.fun, rel=2e-3)
    assert result.fun - result.gap <= best.fun * (1 + 1e-12)
    if form == "radius":
        assert problem.norm.value(result.weights) <= 3.0 * (1 + 1e-12)


def test_a_linear_term_is_fitted_to_the_end():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 3))
    problem = mopn.NetworkProblem(X, X[:, 0] + X[:, 1] * X[:, 2] > 0, norm="l1", strength=0.5, alpha=0.1)
    result = minimize(problem, RandomUnits(10), tol=1e-4)
    assert result.success
    assert np.linalg.norm(result.linear) > 0


@every_form
@every_norm
def test_random_units_of_networks(norm, form):
    problem = problem_of(norm, form, value=1e-3)
    start = problem.start((np.eye(problem.design.shape[1])[:2], np.eye(3)[:2]))
    point = problem.with_random_units(start, 6, np.random.default_rng(0))
    assert np.array_equal(point.basis[:2], start.basis)
    assert np.linalg.norm(point.basis, axis=1) == pytest.approx(np.ones(8))
    assert point.weights.any(axis=1).all()
    if norm == "l1":
        assert np.array_equal(np.nonzero(point.weights[2:])[1], [0, 1, 2, 0, 1, 2])
    # A joint refit keeps all of them, in the ball if there is one.
    joint = problem.joint(point)
    basis, weights = (joint.unpack(joint.start())[name] for name in ("basis", "weights"))
    assert len(basis) == 8 or norm == "l1"
    if form == "radius":
        assert problem.norm.value(weights) <= 1e-3 * (1 + 1e-12)


# -- conditional gradient from their result ----------------------------------------------------------------------------


@every_norm
def test_conditional_gradient_goes_on_from_their_result(norm):
    """From tens of units at once, in place of rounds that add a few; those that are missing enter afterwards."""
    problem = problem_of(norm)
    begun = minimize(problem, RandomUnits(2), tol=1e-2)
    assert begun.gap > 1e-2 * begun.fun
    result = minimize(problem, ConditionalGradient("full"), start=begun, tol=1e-3)
    assert result.success
    assert result.trace["fun"][0] == pytest.approx(begun.fun, rel=1e-12)
    many = minimize(problem, RandomUnits(30), tol=1e-3)
    rounds = [minimize(problem, ConditionalGradient("full"), start=start, tol=1e-3).nit for start in (None, many)]
    assert rounds[1] < rounds[0]


@pytest.mark.parametrize("seed", range(10))
def test_a_refit_cut_short_is_no_worse_than_its_start(seed):
    """The random units beside a good start cost more than two iterations of a refit gain."""
    problem = network()
    fitted = minimize(problem, ConditionalGradient("full"), tol=1e-6)
    result = minimize(problem, RandomUnits(3, max_iter=2), start=fitted, tol=0.0, rng=seed)
    assert result.fun <= fitted.fun * (1 + 1e-12)


def test_units_of_a_start_stay():
    problem = network()
    fitted = minimize(problem, ConditionalGradient("full"), tol=1e-3)
    result = minimize(problem, RandomUnits(3), start=fitted, tol=1e-3)
    assert result.trace["fun"][0] <= 1.1 * fitted.fun
    assert result.fun <= fitted.fun * (1 + 1e-6)
    # Whether the last bound is within the tolerance depends on the last digits.
    assert result.status in (Status.CONVERGED, Status.ESTIMATED)
