"""The baselines of the papers, and what figures and tables show, by its definition."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import mopn
from benchmarks.common.baselines import GECO
from benchmarks.common.figures import pareto
from benchmarks.common.measures import calibration_error
from benchmarks.common.processes import peak_memory
from benchmarks.common.profiles import plot_profile
from mopn.solvers import LBFGS, ConditionalGradient

X = np.random.default_rng(0).uniform(-1, 1, (60, 4))
Y = X[:, 0] * X[:, 1] - X[:, 2] ** 2


def test_geco_refit_is_least_squares():
    problem = mopn.NetworkProblem(X, Y, loss="squared", strength=0.0)
    greedy = mopn.minimize(problem, GECO(max_units=4, refit_tol=1e-10), tol=0)
    features = (X @ greedy.basis.T) ** 2
    best, *_ = np.linalg.lstsq(features, Y, rcond=None)
    assert greedy.fun == pytest.approx(0.5 * np.sum((features @ best - Y) ** 2), rel=1e-8)


def test_random_units_end_at_a_local_minimum_whose_gap_is_bounded():
    problem = mopn.NetworkProblem(X, Y, loss="squared", strength=0.05)
    best = mopn.minimize(problem, ConditionalGradient("full"), tol=1e-6)
    for units in (1, 20):
        start = problem.with_random_units(problem.start(), units, np.random.default_rng(0))
        found = mopn.minimize(problem.joint(start), LBFGS())
        assert found.fun >= best.fun - best.gap
    assert found.fun == pytest.approx(best.fun, rel=1e-2)


def test_profiles_are_fractions_of_problems_by_their_definition():
    rng = np.random.default_rng(0)
    times = {name: np.where(rng.random(20) < 0.2, np.inf, rng.uniform(1, 9, 20)) for name in "abc"}
    fastest = np.min(list(times.values()), axis=0)
    ax = plt.figure().add_subplot()
    assert plot_profile(times, ax, linewidth=3) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("abc")
    for line, seconds in zip(ax.get_lines(), times.values(), strict=True):
        x, y = line.get_data()
        for factor in (1.0, 1.5, 2.0, 5.0, x[-1]):
            solved = [np.isfinite(s) and s <= factor * f * (1 + 1e-12) for s, f in zip(seconds, fastest, strict=True)]
            assert y[np.searchsorted(x, factor * (1 + 1e-12), side="right") - 1] == pytest.approx(np.mean(solved))
        assert line.get_linewidth() == 3
    plt.close("all")


def test_pareto_points_are_those_that_no_other_dominates():
    costs, accuracies = np.random.default_rng(0).integers(0, 8, (2, 30))
    best = pareto(costs, accuracies)
    points = {(costs[i], accuracies[i]) for i in best}
    assert len(points) == len(best)

    def dominated(i):
        no_worse = (costs <= costs[i]) & (accuracies >= accuracies[i])
        return np.any(no_worse & ((costs < costs[i]) | (accuracies > accuracies[i])))

    assert points == {(costs[i], accuracies[i]) for i in range(30) if not dominated(i)}


def test_calibration_is_the_mean_over_bins_of_what_probabilities_exceed():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([1, 1, 1], 200)
    y = rng.integers(0, 3, 200)
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    expected = 0.0
    for low in np.arange(5) / 5:
        inside = (sure >= low) & (sure < low + 0.2)
        if inside.any():
            expected += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    assert calibration_error(y, probabilities, bins=5) == pytest.approx(expected)
    assert calibration_error(np.zeros(4, dtype=int), np.tile([1.0, 0.0], (4, 1))) == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the sizes of a process are read from /proc")
def test_the_peak_of_memory_has_what_is_resident():
    held = np.ones(1 << 22)
    assert peak_memory() >= held.nbytes
