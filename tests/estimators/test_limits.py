"""Limits of time: on a clock that counts passes over the samples, and Ctrl-C at any moment of a choice."""

import inspect
import re
import time
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from estimator_names import OF_SAMPLES
from sklearn.exceptions import ConvergenceWarning

import mopn
import mopn.estimators
from mopn.data import rows
from mopn.estimators import folds, strength_choice
from mopn.solvers import Status
from mopn.solvers.driver import RunMonitor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
NUMBERS = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=150)
LEVELS = np.digitize(NUMBERS, [-0.5, 0.5])
KINDS = [name for name in OF_SAMPLES if name not in ("TableEncoder", "PathCV")]
OPTIONS = {"tol": 0.0, "random_state": 0, "max_units": 100, "max_iter": 10000}
# Sums over the samples by which a call may exceed its limit: a round and the last measurement of the network, where a
# ridge has three bounds.
ROUND = 60
# Those that make a problem and measure the first network.
READING = 60


@pytest.fixture
def clock(monkeypatch):
    """Every sum over the samples takes a second, as does every iteration, and nothing else takes time."""
    now = [0.0]

    def ticking(function):
        def call(*arguments, **options):
            now[0] += 1.0
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(rows.ArrayRows, "sum", ticking(rows.ArrayRows.sum))
    monkeypatch.setattr(RunMonitor, "__call__", ticking(RunMonitor.__call__))
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def limited(name, max_time, **options):
    """Return an estimator that ends by its limit of time, and its targets."""
    if name == "PathCV":
        estimator, y = limited("MultiOutputPNClassifier", max_time, **options)
        return mopn.estimators.PathCV(estimator, max_units=(4, 2)), y
    kind = getattr(mopn.estimators, name)
    known = inspect.signature(kind).parameters
    options = {key: value for key, value in (OPTIONS | options).items() if key in known}
    y = NUMBERS if name.endswith("Regressor") and not name.startswith("Ordinal") else LEVELS
    return kind(max_time=max_time, **options), LEVELS > 1 if "n_components" in known and y is LEVELS else y


@pytest.mark.filterwarnings("ignore:.*predictions are the same", "ignore:max_time ended the choice")
@pytest.mark.parametrize("name", [*KINDS, "PathCV"])
def test_a_limit_of_time_is_for_the_whole_call(clock, name):
    """Choices of a strength, folds and the last fit, all together."""
    estimator, y = limited(name, 200.0)
    estimator.fit(X, y)
    assert getattr(estimator, "best_estimator_", estimator).status_ == Status.MAX_TIME
    assert clock[0] <= 1.1 * 200 + ROUND
    assert np.isfinite(estimator.score(X, y))


@pytest.mark.parametrize("name", [*KINDS, "PathCV"])
def test_without_any_time_there_is_a_model(clock, name):
    estimator, y = limited(name, 0.0)
    networks = hasattr(estimator, "max_units") or name == "PathCV"
    with pytest.warns(ConvergenceWarning, match="max_time ended") if networks else nullcontext():
        estimator.fit(X, y)
    # A search makes the problem of each of its three folds as well.
    assert clock[0] <= READING * (5 if name == "PathCV" else 1)
    assert getattr(estimator, "best_estimator_", estimator).status_ == Status.MAX_TIME
    assert len(estimator.predict(X)) == len(X)
    if name == "PathCV":
        assert estimator.estimator.max_time == estimator.best_estimator_.max_time == 0.0


def test_a_path_is_limited_with_its_scores(clock):
    problem = mopn.NetworkProblem(X, NUMBERS, strength=1.0, augment=True)

    def slow(model):
        clock[0] += 100.0
        return 0.0

    found = mopn.path(problem, 8, score=slow, max_time=150.0)
    assert len(found.results) < 5
    assert found.results[-1].status == Status.MAX_TIME


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize("limit", [70.0, 90.0, 120.0, 200.0])
def test_out_of_time_a_usable_strength_is_fitted(clock, monkeypatch, limit):
    losses, losses_of = [], folds.HeldOut.losses_of

    def recorded(fold, network):
        found = losses_of(fold, network)
        losses.append(found.total)
        return found

    monkeypatch.setattr(folds, "MANY_SAMPLES", 0)
    monkeypatch.setattr(folds.HeldOut, "losses_of", recorded)
    table, y = limited("TableClassifier", limit, tol=0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table.fit(X, y)
    largest = limited("TableClassifier", 0.0, strength=mopn.Ratio(0.5))[0].fit(X, y).strength_ / 0.5
    best = strength_choice.RATIOS[np.argmin(losses) if losses else 0]
    # The losses never rose: they may fall on.
    assert table.strength_ == pytest.approx(min(best(largest), 0.01 * largest))
    assert len(losses) < len(strength_choice.RATIOS)
    few = [str(each.message) for each in caught if "ended the choice" in str(each.message)]
    assert len(few) == (len(losses) < 3)
    assert all(f"after {len(losses)} of 6" in words for words in few)
    assert table.status_ == Status.MAX_TIME
    assert "max_time" in table.status_.message


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in ("TableClassifier", "TableRegressor", "PathCV", "FactorizationMachineRegressor")]
    + [("FactorizationMachineRegressor", {"beta": 1.0, "tol": 0.0})],
)
def test_an_interrupted_choice_keeps_the_best_model_so_far(monkeypatch, name, options):
    """Ctrl-C at any iteration: before the first network there is nothing to keep."""
    calls, count = RunMonitor.__call__, [0]

    def interrupted(monitor, *arguments, **now):
        calls(monitor, *arguments, **now)
        count[0] += 1
        if count[0] == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(RunMonitor, "__call__", interrupted)
    for after in (1, 2, 20, 40):
        count[0] = 0
        estimator, y = limited(name, None, **{"tol": 0.01} | options)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, y)
        assert np.isfinite(estimator.predict(X)).all()
        if name != "PathCV":
            assert estimator.status_ == Status.INTERRUPTED
            assert np.isfinite(estimator.objective_)
            if after > 20 and name.startswith("Table"):
                assert len(estimator.basis_)


@pytest.mark.parametrize("name", [*KINDS, "PathCV"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_verbose_tells_what_is_done_from_the_beginning(capsys, name):
    estimator, y = limited(name, None, verbose=1, tol=0.5, max_units=2, max_iter=20)
    estimator.fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "reading the samples"
    if name.startswith("Table"):
        assert lines[1].startswith("choice of the strength")
        assert re.match(r"  Ratio\(0\.\d\): loss .* units", lines[2])
    if name == "PathCV":
        assert lines[1] == "3 folds of 4 strengths"
        assert re.match(r"  strength .*: score .* units", lines[2])
