"""The loop of conditional gradient, on a problem of known minimum that is no model of mopn's."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from fakes import FakeMonitor, LowRankProblem, LowRankSteps, Noted, low_rank

import mopn
from mopn.solvers import FISTA, ConditionalGradient, FullRefit, OutputRefit, Status, minimize
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveRun, CorrectiveStep

# With the tolerances that they reach soon.
CORRECTIONS = {
    "none": ("none", 0.05),
    "output": ("output", 1e-3),
    "full": ("full", 1e-6),
    "full by FISTA": (FullRefit(solver=FISTA()), 1e-4),
}
every_correction = pytest.mark.parametrize("name", CORRECTIONS)


def check_trace(result, minimum):
    """Every bound that was proven holds, and so does the last one."""
    distance = result.trace["fun"] - minimum
    assert np.all(distance >= -1e-12 * minimum)
    assert np.all(result.trace["gap"] >= distance - 1e-12 * minimum)
    assert result.gap >= result.fun - minimum - 1e-12 * minimum


@every_correction
@pytest.mark.parametrize("oracle", ["exact", "patient"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_known_minimum_is_found_and_proven(name, oracle, seed):
    refit, tol = CORRECTIONS[name]
    problem, minimum = low_rank(seed)
    result = minimize(problem, ConditionalGradient(refit, oracle=oracle), tol=tol)
    assert result.status == Status.CONVERGED
    assert result.success
    assert result.gap_is_proven
    check_trace(result, minimum)
    assert result.fun - minimum <= result.gap <= tol * result.fun


@every_correction
def test_a_loose_bound_is_called_estimated(name):
    """The oracle finds the best units; its bound on the others never meets the tolerance."""
    refit, tol = CORRECTIONS[name]
    problem, minimum = low_rank()
    result = minimize(problem, ConditionalGradient(refit, oracle="loose"), tol=tol)
    assert result.status == Status.ESTIMATED
    assert not result.success
    check_trace(result, minimum)
    assert result.gap > tol * result.fun
    assert result.fun - minimum <= tol * result.fun


@every_correction
@pytest.mark.parametrize("schedule", ["grow", "fill"])
@pytest.mark.parametrize("per_round", [None, 1, 2])
def test_max_units_ends_the_run(name, schedule, per_round):
    problem, minimum = low_rank()
    options = {"oracle": "exact", "max_units": 1, "schedule": schedule, "atoms_per_round": per_round}
    result = minimize(problem, ConditionalGradient(CORRECTIONS[name][0], **options), tol=1e-6)
    assert result.status == Status.MAX_UNITS
    assert result.trace["n_units"].max() == len(result.weights) == 1
    check_trace(result, minimum)


@pytest.mark.parametrize("refit", ["output", FullRefit(), FullRefit(solver=FISTA())])
def test_the_last_refit_is_the_polish(refit):
    problem, _ = low_rank()
    options = {"tol": 1e-8, "max_iter": 1, "polish_iter": 2000}
    refit = OutputRefit(**options) if refit == "output" else FullRefit(**options, solver=refit.solver)
    result = minimize(problem, ConditionalGradient(refit, max_units=2, schedule="fill"), tol=1e-9)
    layer = minimize(problem.output_layer(problem.start(result)), FISTA(), tol=1e-7, max_iter=1000)
    assert layer.success
    assert result.fun <= layer.fun * (1 + 1e-6)


@every_correction
def test_a_run_goes_on_from_its_result(name):
    refit, tol = CORRECTIONS[name]
    problem, minimum = low_rank()
    solver = ConditionalGradient(refit, oracle="exact")
    first = minimize(problem, solver, tol=tol)
    second = minimize(problem, solver, start=first, tol=tol)
    assert second.trace["fun"][0] == pytest.approx(first.fun, rel=1e-12)
    assert second.status == Status.CONVERGED
    # The bounds of earlier rounds may have been better ones.
    assert second.nit <= 1
    check_trace(second, minimum)


@every_correction
def test_zero_is_recognised(name):
    """Beyond the smallest strength whose solution is zero: the first bound proves that no unit is worth its weight."""
    problem, _ = low_rank()
    strong = LowRankProblem(problem.M, problem.B, 1.001 * float(np.linalg.norm(problem.M * problem.B, 2)))
    result = minimize(strong, ConditionalGradient(CORRECTIONS[name][0], oracle="exact"), tol=1e-9)
    assert result.status == Status.CONVERGED
    assert result.nit == 0
    assert len(result.weights) == 0


@pytest.mark.parametrize("refit", ["output", FullRefit()])
def test_without_a_regulariser_the_loss_goes_to_zero(refit):
    problem, _ = low_rank()
    free = LowRankProblem(problem.M, problem.B, 0.0)
    result = minimize(free, ConditionalGradient(refit), tol=0.0, max_iter=8)
    assert math.isinf(result.gap)
    assert result.fun <= 1e-3 * result.trace["fun"][0]
    with pytest.raises(ValueError, match="no certificate exists"):
        minimize(free, ConditionalGradient(refit), tol=1e-3)


@pytest.mark.parametrize("refit", ["output", "full", OutputRefit(), FullRefit(solver=FISTA())])
def test_refits_of_a_problem_that_offers_steps_alone_are_refused_before_the_run(refit):
    problem, _ = low_rank()
    steps = Noted(LowRankSteps(problem.M, problem.B, problem.strength))
    with pytest.raises(TypeError, match=r"ConditionalGradient asks for the oracle 'corrective'.*offers: atomic"):
        minimize(steps, ConditionalGradient(refit))
    assert steps.calls == []


class Spy(CorrectiveStep):
    """A correction that notes when it is asked for what; it adds units without weight and fits nothing."""

    needs, can_move_units = frozenset({"atomic"}), False

    def __init__(self, units_per_round=None, inserts_by_line_search=False):
        self._units_per_round, self.weighs, self.calls = units_per_round, inserts_by_line_search, []

    @property
    def units_per_round(self):
        return self._units_per_round

    def begin(self, problem, monitor, schedule):
        self.schedule = schedule
        return SpyRun(self, problem, monitor, problem.calls if isinstance(problem, Noted) else self.calls)


class SpyRun(CorrectiveRun):
    def __init__(self, spy, problem, monitor, calls):
        super().__init__(problem, monitor)
        self.inserts_by_line_search, self.calls, self.inserted = spy.weighs, calls, []
        spy.run = self

    def start(self, point):
        self.calls.append("start")
        return point

    def set_target(self, selection):
        self.calls.append("set_target")

    def insert(self, point, at, units):
        self.calls.append("insert")
        self.inserted.append(len(units))
        return point.with_units(units)

    def improve(self, point):
        self.calls.append("improve")
        return point

    def polish(self, point):
        self.calls.append("polish")
        return point


def calls_of(spy, max_iter=1000, **options):
    problem, monitor = Noted(low_rank()[0]), FakeMonitor(tol=0.0, max_iter=max_iter)
    solver = ConditionalGradient(spy, oracle="loose", **options)
    with pytest.raises(StopIteration):
        solver.run(problem, problem.start(), monitor)
    # Bounds are asked for as often as their price is weighed.
    bounds = ("lower", "rounding", "restricted_lower", "bound")
    calls = [name for name in problem.calls[1:] if name not in bounds]
    return calls, monitor


def test_a_round_selects_records_aims_inserts_and_improves():
    calls, monitor = calls_of(Spy(), max_iter=2)
    a_round = ["output_gradient", "lmo", "dual", "set_target", "select_units", "insert", "improve"]
    assert calls == ["oracle", "start", *a_round, *a_round, "output_gradient", "lmo", "dual"]
    assert monitor.status == Status.MAX_ITER
    assert [row["n_units"] for row in monitor.rows] == [0, 3, 6]


@pytest.mark.parametrize("inserts_by_line_search", [False, True])
def test_a_full_run_is_polished_once_and_ends(inserts_by_line_search):
    """At once where units enter with weight."""
    calls, monitor = calls_of(Spy(inserts_by_line_search=inserts_by_line_search), max_units=2)
    select = ["output_gradient", "lmo", "dual"]
    refit = [] if inserts_by_line_search else ["improve", *select, "set_target"]
    enter = [*select, "set_target", "select_units", "insert"]
    assert calls == ["oracle", "start", *enter, *refit, "polish", *select]
    assert monitor.status == Status.MAX_UNITS
    assert [row["n_units"] for row in monitor.rows][-1] == 2


@pytest.mark.parametrize("seed", [4, 12])
def test_units_of_a_full_model_are_exchanged_while_that_pays(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (200, 6))
    y = np.argmax(np.stack([X[:, 0] * X[:, 1], X[:, 2] * X[:, 3], X[:, 5]], axis=1), axis=1)
    problem = mopn.NetworkProblem(X, y, strength=0.5, augment=True)
    solver = ConditionalGradient(refit="full", max_units=4, schedule="fill")
    result, first = mopn.minimize(problem, solver), mopn.minimize(problem, solver, max_iter=1)
    assert result.status == Status.MAX_UNITS
    assert len(result.basis) == 4
    assert result.fun < 0.92 * first.fun
    assert result.fun == pytest.approx(min(result.trace["fun"]), rel=1e-12)


@pytest.mark.parametrize(("kept", "inserted"), [(0, [3, 3]), (1, [3, 2, 2]), (2, [3])])
def test_a_polish_that_drops_half_of_the_units_makes_room(kept, inserted):
    """Until twice max_units have been tried."""

    class Dropping(Spy):
        def begin(self, problem, monitor, schedule):
            run = super().begin(problem, monitor, schedule)
            run.polish = lambda point: replace(point, units=point.units[:kept], weights=point.weights[:kept])
            return run

    spy = Dropping()
    _, monitor = calls_of(spy, max_units=3, max_iter=20)
    assert spy.run.inserted == inserted
    assert monitor.status == Status.MAX_UNITS


@pytest.mark.parametrize("max_units", [None, 9])
def test_a_run_that_changes_nothing_ends(max_units):
    """In the third such round, or with a limit after twice as many candidates."""
    problem, monitor = low_rank()[0], FakeMonitor(tol=0.0, max_iter=100)
    spy = Spy()
    with pytest.raises(StopIteration):
        ConditionalGradient(spy, oracle="exact", max_units=max_units).run(problem, problem.start(), monitor)
    assert monitor.status == (Status.STALLED if max_units is None else Status.MAX_UNITS)
    assert max_units is not None or monitor.nit == 3


@pytest.mark.parametrize(
    ("tol", "units_per_round", "status", "rounds"),
    [(1e-6, None, Status.STALLED, 20), (0.0, None, Status.MAX_ITER, 30), (1e-6, 1, Status.MAX_ITER, 30)],
)
def test_refits_that_gain_next_to_nothing_end_a_run_that_has_a_tolerance(tol, units_per_round, status, rounds):
    """Without a tolerance, and of plain steps, the user wants as many as the limits allow."""
    problem, monitor = low_rank()[0], FakeMonitor(tol=tol, max_iter=30)
    gradient, rounds_before = problem.output_gradient, itertools.count()

    def output_gradient(point):
        at = gradient(point)
        return at._replace(value=at.value * (1.0 - 1e-9 * next(rounds_before)))

    problem.output_gradient = output_gradient
    with pytest.raises(StopIteration):
        ConditionalGradient(Spy(units_per_round=units_per_round), oracle="loose").run(problem, problem.start(), monitor)
    assert (monitor.status, monitor.nit) == (status, rounds)


def test_a_round_is_recorded_with_its_value_and_bound():
    problem, monitor = low_rank()[0], FakeMonitor(tol=0.0, max_iter=0)
    problem.restricted_lower, problem.rounding = lambda point, at: 0.25, lambda point, at: 0.125
    with pytest.raises(StopIteration):
        ConditionalGradient(Spy(), oracle="loose").run(problem, problem.start(), monitor)
    point = problem.start()
    at = problem.output_gradient(point)
    bound = float(np.linalg.norm(at.G))
    assert monitor.rows == [
        {
            "fun": at.value,
            "lower": problem.lower(at, bound),
            "rounding": 0.125,
            "restricted_lower": 0.25,
            "dual": None,
            "estimated_gap": pytest.approx(at.value - problem.lower(at, np.linalg.norm(at.G, 2)) + 0.125, rel=1e-12),
            "n_units": 0,
            "value": pytest.approx(np.linalg.norm(at.G, 2), rel=1e-12),
            "bound": bound,
            **dict.fromkeys(("oracle_time", "proof_time", "refit_time"), 0.0),
        }
    ]
