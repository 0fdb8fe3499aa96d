"""The baselines of the papers, and performance profiles by their definition."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import mopn
from benchmarks.common.baselines import GECO, from_random_units
from benchmarks.common.profiles import plot_profile
from mopn.solvers import ConditionalGradient, Status

X = np.random.default_rng(0).uniform(-1, 1, (60, 4))
Y = X[:, 0] * X[:, 1] - X[:, 2] ** 2


def test_geco_decreases_the_loss_and_beats_regularised_fits():
    problem = mopn.NetworkProblem(X, Y, loss="squared", strength=0.0)
    greedy = mopn.minimize(problem, GECO(max_units=6), tol=0)
    assert greedy.status == Status.MAX_UNITS
    assert np.all(np.diff(greedy.trace["fun"]) < 0)
    assert greedy.gap == np.inf
    assert not greedy.gap_is_proven
    bounded = mopn.minimize(
        mopn.NetworkProblem(X, Y, loss="squared", radius=1.0), ConditionalGradient(max_units=6), tol=1e-9
    )
    assert greedy.fun < bounded.fun


def test_geco_refit_is_least_squares():
    problem = mopn.NetworkProblem(X, Y, loss="squared", strength=0.0)
    greedy = mopn.minimize(problem, GECO(max_units=4, refit_tol=1e-10), tol=0)
    features = (X @ greedy.basis.T) ** 2
    best, *_ = np.linalg.lstsq(features, Y, rcond=None)
    assert greedy.fun == pytest.approx(0.5 * np.sum((features @ best - Y) ** 2), rel=1e-8)


def test_geco_refuses_a_regulariser():
    with pytest.raises(ValueError, match="give strength=0"):
        mopn.minimize(mopn.NetworkProblem(X, Y, loss="squared", strength=1.0), GECO(), tol=0)


def test_random_units_end_at_a_local_minimum_whose_gap_is_bounded():
    problem = mopn.NetworkProblem(X, Y, loss="squared", strength=0.05)
    best = mopn.minimize(problem, ConditionalGradient("full"), tol=1e-6)
    for units in (1, 20):
        found = from_random_units(problem, units, np.random.default_rng(0))
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
