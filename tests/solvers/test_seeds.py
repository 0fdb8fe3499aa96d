"""All random numbers of a run follow from ``minimize(rng=...)``."""

import numpy as np
import pytest

import mopn
from mopn.oracles import basis_oracle
from mopn.solvers import ConditionalGradient, FullRefit, minimize


@pytest.fixture
def seeds(monkeypatch):
    """The seeds of all generators that are made."""
    made, make = [], np.random.default_rng

    def noted(seed=None):
        made.append(seed)
        return make(seed)

    monkeypatch.setattr(np.random, "default_rng", noted)
    return made


@pytest.mark.parametrize("blocks", [False, True])
def test_a_seed_reaches_all_that_is_random(seeds, blocks):
    """Starts of searches, random units to fill up with, samples of the rows, and the start of a polish."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (2000, 8)), rng.integers(0, 3, 2000)
    data = (mopn.RowBlocks(X, y, size=1000),) if blocks else (X, y)
    problem = mopn.NetworkProblem(*data, norm="l1/linf", strength=1.0)
    seeds.clear()
    solver = ConditionalGradient(FullRefit(max_iter=3, polish_iter=3), max_units=2, schedule="fill")
    results = [minimize(problem, solver, tol=0.0, max_iter=2, rng=seed) for seed in (5, 5, 6)]
    assert {seed[0] if isinstance(seed, tuple) else seed for seed in seeds} == {5, 6}
    np.testing.assert_array_equal(results[0].x, results[1].x)
    assert not np.array_equal(results[0].x, results[2].x)
    default, zero = (minimize(problem, solver, tol=0.0, max_iter=0, **seed) for seed in ({}, {"rng": 0}))
    assert default.fun == zero.fun


def test_a_generator_gives_one_seed_for_a_run(seeds):
    """Whatever the run draws, and however long its proofs take, the next one of the generator is the same."""
    X = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    problem = mopn.NetworkProblem(X, X[:, 0] > X[:, 1], norm="l1", strength=0.1)
    after = []
    for max_iter in (0, 5):
        rng = np.random.default_rng(3)
        minimize(problem, ConditionalGradient(oracle=basis_oracle("l1", "power")), tol=0.0, max_iter=max_iter, rng=rng)
        after.append(rng.integers(2**40))
    assert after[0] == after[1]
