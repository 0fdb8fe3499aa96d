"""Solvers and epochs by degree, on small synthetic graphs."""

import numpy as np
import pytest

from benchmarks.links import higher_order


def test_exponents_are_slopes_of_logarithms():
    assert higher_order.exponent([2, 4, 8], [12.0, 48.0, 192.0]) == pytest.approx(2.0)


def test_the_best_step_does_not_diverge():
    trials = [{"step": "1", "funs": "5 nan"}, {"step": "0.1", "funs": "5 3"}, {"step": "0.01", "funs": "5 4 3.5"}]
    assert higher_order.best_step(trials) == 0.1
    assert higher_order.best_step([*trials, {"step": "0.001", "funs": "5 -inf"}]) == 0.1


def test_all_solvers_start_together_and_go_down(tmp_path, write_movielens):
    write_movielens(tmp_path)
    problem = higher_order._make_problem(str(tmp_path), "movielens", 3, 2, 0.5)
    runs = {
        name: higher_order.run_curve(problem, higher_order._solver(name, 0.1), max_iter=3)
        for name in higher_order.SOLVERS
    }
    funs = {name: higher_order._numbers(run["funs"]) for name, run in runs.items()}
    # AdaGrad leaves features that no sample has at zero.
    assert funs["cd"][0] == funs["lbfgs"][0] == pytest.approx(funs["adagrad"][0], rel=1e-2)
    assert all(curve[-1] < curve[0] for curve in funs.values())
    for run in runs.values():
        assert np.all(np.diff(higher_order._numbers(run["times"])) > 0)
