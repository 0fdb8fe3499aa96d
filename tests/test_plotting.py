"""Plots show the trace's columns, and nothing else."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest

import mopn
from mopn.plotting import plot_accuracy, plot_convergence

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture
def results():
    X = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, strength=0.5)
    yield [mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=0, max_iter=k) for k in (3, 5)]
    plt.close("all")


@pytest.mark.parametrize("x", ["time", "n_iter", "nit"])
@pytest.mark.parametrize("y", ["gap", "relative_gap", "fun", "n_units"])
def test_lines_are_the_columns(results, x, y):
    ax = plot_convergence({"a": results[0], "b": results[1]}, x=x, y=y)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    for line, result in zip(ax.get_lines(), results, strict=True):
        trace = result.trace
        expected = trace["gap"] / trace["fun"] if y == "relative_gap" else trace[y]
        np.testing.assert_array_equal(line.get_xdata(), trace["time" if x == "time" else "nit"])
        np.testing.assert_array_equal(line.get_ydata(), expected)
    assert ax.get_yscale() == ("log" if "gap" in y else "linear")
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_one_result_a_list_and_given_axes(results):
    ax = plt.figure().add_subplot()
    assert plot_convergence(results[0], ax=ax) is ax
    assert len(ax.get_lines()) == 1
    assert ax.get_legend() is None
    assert len(plot_convergence(results).get_lines()) == 2


def test_infinite_gaps_are_left_out():
    X = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, strength=0.0)
    result = mopn.minimize(problem, mopn.solvers.GECO(), tol=0, max_iter=2)
    assert np.isnan(plot_convergence(result).get_lines()[0].get_ydata()).all()
    plt.close("all")


def test_unknown_column(results):
    with pytest.raises(KeyError, match="no column 'speed'"):
        plot_convergence(results, y="speed")


def test_accuracy():
    ax = plot_accuracy({"l1": ([1, 2, 3], [0.5, 0.7, 0.8])}, baselines={"linear": 0.6})
    curve, line = ax.get_lines()
    np.testing.assert_array_equal(curve.get_ydata(), [0.5, 0.7, 0.8])
    assert set(line.get_ydata()) == {0.6}
    plt.close("all")


@pytest.mark.parametrize(
    ("curves", "baselines", "error", "message"),
    [
        ({"a": 1}, None, TypeError, r"curves\['a'\] must be \(n_units, accuracy\), of equal length, got 1"),
        ({"a": ([1, 2], [0.5])}, None, ValueError, r"curves\['a'\] must be an array"),
        ({"a": [1, 2, 3]}, None, TypeError, r"curves\['a'\] must be \(n_units, accuracy\)"),
        ([1, 2], None, TypeError, "curves must be a mapping from labels"),
        ({}, np.ones(2), TypeError, "baselines must be a mapping from labels"),
        ({}, {"b": None}, ValueError, r"baselines\['b'\] must be a finite number, got None"),
    ],
)
def test_what_is_no_curve_is_refused(curves, baselines, error, message):
    with pytest.raises(error, match=message):
        plot_accuracy(curves, baselines)


def test_missing_matplotlib_is_named(monkeypatch, results):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install 'mopn\\[plot\\]'"):
        plot_convergence(results)


@pytest.mark.parametrize("results", [None, 1.0, np.eye(3), [None], {"a": "b"}])
def test_what_has_no_trace_is_refused(results):
    with pytest.raises(TypeError, match="results must be a Result, a fitted estimator, or a sequence or mapping"):
        plot_convergence(results)
