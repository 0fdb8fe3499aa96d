"""The progress bar."""

import sys

import numpy as np
import pytest

import mopn
from mopn.solvers import driver
from mopn.solvers.progress import Progress, ProgressBar

X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
PROBLEM = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)


def now(nit=0, gap=1.0, time=0.0):
    return Progress(nit=nit, refit_nit=0, fun=10.0, gap=gap, time=time)


def test_the_bar_is_the_part_of_the_way_to_the_nearest_end():
    pytest.importorskip("tqdm")
    bar = ProgressBar(tol=1e-5, max_iter=100, max_time=50.0)
    done = []
    # In logarithms from 1e-1 to 1e-5; beside 40 of 100 iterations, and 40 of 50 seconds; a bar does not go back.
    for report in (now(gap=np.inf), now(), now(gap=1e-2), now(40, 1e-2), now(41, 1e-2, 40.0), now(42)):
        bar(report)
        done.append(bar.bar.n)
    bar.close()
    assert done == pytest.approx([0.0, 0.0, 0.5, 0.5, 0.8, 0.8])


def test_without_a_tolerance_and_limits_there_is_nothing_to_show_but_numbers(capsys):
    pytest.importorskip("tqdm")
    bar = ProgressBar(tol=0.0, max_iter=None, max_time=None)
    bar(now(3))
    bar.close()
    assert bar.bar.n == 0.0
    assert "objective 10, gap 1.0e-01, 3 iterations" in capsys.readouterr().err


@pytest.mark.parametrize("refit", ["full", "output"])
def test_runs_draw_bars_also_from_inside_refits(capsys, monkeypatch, refit):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(driver, "_BETWEEN", 0.0)
    solver = mopn.solvers.ConditionalGradient(refit=refit)
    seen = []
    barred = mopn.minimize(PROBLEM, solver, tol=1e-3, verbose="bar", progress=seen.append)
    printed = capsys.readouterr()
    assert "100%" in printed.err
    assert printed.out == ""
    assert any(report.refit_nit > 0 for report in seen)
    np.testing.assert_array_equal(barred.x, mopn.minimize(PROBLEM, solver, tol=1e-3).x)


def test_estimators_draw_bars(capsys):
    pytest.importorskip("tqdm")
    mopn.estimators.MultiOutputPNClassifier(max_units=2, verbose="bar").fit(X, X[:, 0] > 0)
    assert "objective" in capsys.readouterr().err


def test_the_bar_ends_with_an_error(capsys):
    pytest.importorskip("tqdm")

    def fail(intermediate_result):
        raise KeyError("the callback's own")

    result = mopn.minimize(PROBLEM, mopn.solvers.ConditionalGradient(), verbose="bar", callback=fail)
    assert result.status == mopn.Status.CALLBACK_FAILED
    assert capsys.readouterr().err.endswith("\n")


def test_without_tqdm_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"pip install tqdm"):
        mopn.minimize(PROBLEM, mopn.solvers.ConditionalGradient(), verbose="bar")


def test_other_strings_are_refused():
    with pytest.raises(ValueError, match="verbose must be an integer >= 0, True, False or 'bar'"):
        mopn.minimize(PROBLEM, mopn.solvers.ConditionalGradient(), verbose="bars")
