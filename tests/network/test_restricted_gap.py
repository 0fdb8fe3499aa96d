"""The gap with the units as they are, against minima over their weights that another solver finds."""

import numpy as np
import pytest
from networks import data, every_form, every_kernel, every_norm, random_network

import mopn
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint, Status

TOL = 1e-9


def make_problem(norm, form, kernel, loss="logistic", alpha=None):
    X, y = data(loss)
    return mopn.NetworkProblem(X, y, loss=loss, kernel=kernel, norm=norm, augment=True, alpha=alpha, **{form: 1.0})


def features(problem, network):
    """K(x, h), sample by sample and unit by unit."""
    rows = np.hstack([np.ones((40, problem.kernel.dummies)), data("logistic")[0]])
    upper = np.triu_indices(rows.shape[1], k=1)
    pairs = {"homogeneous": np.outer, "anova": lambda a, b: np.outer(a, b)[upper]}[problem.kernel.name]
    return np.array([[np.sum(pairs(x, x) * pairs(h, h)) for h in network.basis] for x in rows])


def check(problem, network, best):
    """The gaps of a network lie in their order, above its distance to the best weights of its units."""
    measured = problem.measure(network)
    assert measured.fun - best.fun <= measured.restricted_gap <= measured.gap
    # No network whatever lies below the whole gap, and none of these units below the restricted one.
    assert best.fun - best.gap >= measured.fun - measured.gap


def check_refitted(problem, network):
    """At the best weights only other units help."""
    measured = problem.measure(network)
    # Weights within TOL of the minimum have a gradient, and so a dual point, within about its root.
    assert measured.restricted_gap <= 1e-4 * measured.fun
    assert measured.gap > 0.05 * measured.fun


@every_form
@every_kernel
@every_norm
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_it_bounds_the_distance_to_the_best_weights(norm, kernel, form, loss):
    problem, y = make_problem(norm, form, kernel, loss), data(loss)[1]
    network = random_network(problem, k=2)
    layer = mopn.OutputLayerProblem(features(problem, network), y, loss=loss, norm=norm, **{form: 1.0})
    best = mopn.minimize(layer, InteriorPoint(prove=True), tol=TOL)
    assert best.success
    for share in (0.0, 0.01, 0.5, 1.0):
        check(problem, network.with_weights(share * network.weights), best)
        check(problem, network.with_weights((1.0 - share) * best.weights + share * network.weights), best)
    check_refitted(problem, network.with_weights(best.weights))


@every_form
@every_norm
def test_the_linear_term_belongs_to_the_weights(norm, form):
    problem = make_problem(norm, form, "homogeneous", alpha=0.5)
    network = random_network(problem, k=2)
    best = mopn.minimize(problem.output_layer(network), FISTA(), tol=1e-7, max_iter=20_000)
    assert best.success
    refitted = network.with_layer(best)
    for share in (0.0, 0.1, 1.0):
        check(problem, refitted.with_linear(share * best.linear), best)
        check(problem, network.with_linear(share * best.linear), best)
    check_refitted(problem, refitted)


def test_without_units_nothing_can_be_gained_by_weights_and_without_a_regulariser_all():
    problem = make_problem("l1/l2", "strength", "homogeneous")
    measured = problem.measure(problem.start())
    assert measured.restricted_gap <= 1e-9 * measured.fun
    assert measured.gap > 0.5 * measured.fun
    free = problem.with_strength(0.0)
    assert free.measure(random_network(free)).restricted_gap == np.inf


@pytest.mark.parametrize("refit", ["none", "output", "full"])
def test_runs_report_both_gaps(refit):
    problem = make_problem("l1", "strength", "homogeneous")
    solver = ConditionalGradient(refit=refit, max_units=None if refit == "none" else 2)
    seen = []
    result = mopn.minimize(problem, solver, max_iter=5, callback=lambda **now: seen.extend(now.values()))
    network = problem.start(result)
    assert result.restricted_gap == pytest.approx(problem.measure(network).restricted_gap, rel=1e-6, abs=1e-9)
    assert np.all(result.trace["restricted_gap"] <= result.trace["gap"])
    for row, gap in zip(seen, result.trace["restricted_gap"], strict=True):
        assert row.restricted_gap == gap
        assert gap == pytest.approx(problem.measure(problem.start(row)).restricted_gap, rel=1e-6, abs=1e-9)
    if refit == "output":
        # Refits end at a hundredth of the gap.
        assert result.restricted_gap <= 0.01 * result.gap < 0.1 * result.fun


def test_past_the_time_limit_no_bound_is_proven_twice(monkeypatch):
    problem, proven = make_problem("l1", "strength", "homogeneous"), []
    restricted_lower = mopn.NetworkProblem.restricted_lower
    monkeypatch.setattr(mopn.NetworkProblem, "restricted_lower", lambda *a: proven.append(a) or restricted_lower(*a))
    result = mopn.minimize(problem, start=random_network(problem), max_time=0.0)
    assert (result.status, len(proven)) == (Status.MAX_TIME, 1)
    assert result.restricted_gap == result.trace["restricted_gap"][0] < np.inf
