"""The driver: limits, status, trace, callbacks, interruptions and the best point, with every solver."""

import math
import pickle
import time

import numpy as np
import pytest
from cases import SOLVERS, X, Y, every_solver, layer, network
from fakes import low_rank

import mopn
from mopn.solvers import FISTA, LBFGS, ConditionalGradient, InteriorPoint, Result, Solver, Status, Trace, driver
from mopn.solvers.conditional_gradient import make_corrective_step
from mopn.solvers.interface import Measure
from mopn.solvers.result import gap_in_words

FIELDS = {
    *("x", "fun", "lower", "gap", "estimated_gap", "restricted_gap", "dual", "gap_is_proven", "rounding", "proof"),
    *("failure", "success", "status", "message", "nit", "refit_nit", "time", "trace", "error"),
}


class Later(Exception):
    pass


def raises_at(number, error):
    def callback(intermediate_result):
        if intermediate_result.nit == number:
            raise error

    return callback


def check(result):
    """What holds for every result, however it ended."""
    assert set(result) >= FIELDS
    assert math.isfinite(result.fun)
    assert 0 <= result.restricted_gap <= result.gap
    assert result.gap_is_proven == math.isfinite(result.gap)
    assert result.message == result.status.message
    assert result.success == (result.status == Status.CONVERGED)
    lengths = {len(result.trace[name]) for name in result.trace}
    assert lengths == {len(result.trace)} == {result.nit + 1}
    assert result.fun <= np.min(result.trace["fun"]) * (1 + 1e-12)
    assert np.all(np.diff(result.trace["time"]) >= 0)


def test_the_cases_are_all_solvers():
    exported = [getattr(mopn.solvers, name) for name in mopn.solvers.__all__]
    classes = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Solver)} - {Solver}
    # A run of random units is a single refit.
    assert {type(solver) for _, solver in SOLVERS.values()} == classes


@every_solver
def test_limits_and_status(make, solver):
    for limits, status, nit in (({"max_iter": 3}, Status.MAX_ITER, 3), ({"max_time": 0.0}, Status.MAX_TIME, 0)):
        result = mopn.minimize(make(), solver, tol=0, **limits)
        check(result)
        assert (result.status, result.nit) == (status, nit)


@every_solver
def test_callback_sees_each_iteration_and_may_stop(make, solver):
    problem, seen = make(), []

    def callback(intermediate_result):
        seen.append((intermediate_result.nit, intermediate_result.fun))
        assert intermediate_result.keys() == FIELDS | problem.unpack(problem.start()).keys()
        if intermediate_result.nit == 2:
            raise StopIteration

    result = mopn.minimize(problem, solver, tol=0, max_iter=50, callback=callback)
    check(result)
    assert result.status == Status.STOPPED
    assert seen == list(enumerate(result.trace["fun"]))
    assert len(seen) == 3


@every_solver
@pytest.mark.parametrize(
    ("error", "status"),
    [(Later("a bug in the callback"), Status.CALLBACK_FAILED), (KeyboardInterrupt(), Status.INTERRUPTED)],
)
def test_a_failing_callback_and_ctrl_c_keep_the_best_point(make, solver, error, status):
    result = mopn.minimize(make(), solver, tol=0, max_iter=50, callback=raises_at(2, error))
    check(result)
    assert result.status == status
    assert result.error is (error if status == Status.CALLBACK_FAILED else None)
    assert result.fun < result.trace["fun"][0]


def failing_at(problem, number, error):
    """Make the number-th evaluation of the loss raise; count all of them."""
    count = [0]

    def wrapped(function):
        def evaluate(outputs):
            count[0] += 1
            if count[0] == number:
                raise error
            return function(outputs)

        return evaluate

    problem.losses.value_gradient = wrapped(problem.losses.value_gradient)
    problem.losses.value = wrapped(problem.losses.value)
    return count


def test_an_interrupted_run_leaves_the_treatment_of_floating_point_errors_as_it_was():
    """NumPy sets it in two steps, in decompositions for example; Ctrl-C may come between these."""

    class Interrupted(Solver):
        needs = frozenset()

        def run(self, problem, start, monitor):
            monitor(start, fun=1.0)
            np.seterr(all="raise")
            raise KeyboardInterrupt

    before = np.geterr()
    assert mopn.minimize(low_rank()[0], Interrupted(), tol=0).status == Status.INTERRUPTED
    assert np.geterr() == before


ERRORS = [KeyboardInterrupt(), np.linalg.LinAlgError("no convergence"), MemoryError()]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("refit", ["none", "output", pytest.param("full", marks=pytest.mark.slow)])
def test_a_failure_at_any_moment_keeps_the_best_point(refit, error):
    """Each evaluation in turn fails, in the loop, in refits and in the last measurement: the run ends with a point.

    Refits of both layers have many: each fails by one of the errors.
    """
    solver = ConditionalGradient(refit=make_corrective_step(refit, max_iter=6), max_units=2, schedule="fill")
    problem = network()
    total = failing_at(problem, -1, error)
    whole = mopn.minimize(problem, solver, tol=0)
    status = Status.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Status.FAILED
    step = len(ERRORS) if refit == "full" else 1
    for number in range(2 + ERRORS.index(error) % step, total[0] + 1, step):
        problem = network()
        count = failing_at(problem, number, error)
        result = mopn.minimize(problem, solver, tol=0)
        assert result.status == status, number
        assert result.error is (error if status == Status.FAILED else None)
        assert result.fun >= whole.fun * (1 - 1e-12)
        assert math.isfinite(result.fun)
        # Nothing goes on but to measure what there is.
        assert count[0] <= number + 3


def test_ctrl_c_before_there_is_a_point_is_passed_on(monkeypatch):
    problem = network()

    def interrupted(outputs):
        raise KeyboardInterrupt

    monkeypatch.setattr(problem.losses, "value_gradient", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mopn.minimize(problem, ConditionalGradient())


def test_an_objective_that_starts_infinite_is_an_error():
    problem = mopn.NetworkProblem(X, X[:, 0], loss="squared", strength=1.0)
    with pytest.raises(ValueError, match="start: weights is too large for floating point"):
        mopn.minimize(problem, ConditionalGradient(), start=(np.ones((1, X.shape[1])), [[1e200]]))
    problem.losses.value_gradient = lambda outputs: (np.inf, outputs)
    with pytest.raises(ValueError, match="not finite at the start"):
        mopn.minimize(problem, ConditionalGradient())


def test_success_means_the_gap_where_there_is_one():
    problem = mopn.OutputLayerProblem(X**2, Y, norm="squared-l2", strength=0.5)
    result = mopn.minimize(problem, LBFGS(gtol=0.1), tol=1e-9)
    assert result.gap > 1e-9 * result.fun
    assert not result.success
    assert result.status == Status.STALLED


def test_an_output_layer_without_regulariser_has_no_certificate():
    problem = mopn.OutputLayerProblem(X**2, Y, strength=0.0)
    assert problem.oracles == {"composite", "gradient"}
    for solver in (FISTA(), LBFGS()):
        result = mopn.minimize(problem, solver, tol=1e-6)
        assert result.status == Status.CONVERGED
        assert not result.gap_is_proven


def test_a_bug_is_not_swallowed(monkeypatch):
    problem = network()
    monkeypatch.setattr(problem, "lower", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        mopn.minimize(problem, ConditionalGradient())


class Diverging(Solver):
    """Steps to a better point, then to an objective that is not finite; with None, to a refit that begins at one."""

    needs = frozenset({"composite"})

    def __init__(self, last):
        self.last = last

    def run(self, problem, start, monitor):
        monitor(start, fun=problem.smooth_value(problem.image(start)))
        better = FISTA_POINT.copy()
        monitor(better, fun=problem.smooth_value(problem.image(better)) + problem.regularizer_value(better))
        if self.last is None:
            problem.smooth_value = lambda image: math.nan
            monitor.solve(problem, FISTA(), start=start, tol=0.0, max_iter=1)
        monitor(np.full_like(start, np.nan), fun=self.last)


FISTA_POINT = mopn.minimize(layer(), FISTA(), tol=0, max_iter=5).x


@pytest.mark.parametrize("last", [math.nan, math.inf, -math.inf, None])
def test_nonfinite_objective_gives_back_the_last_finite_point(last):
    result = mopn.minimize(layer(), Diverging(last), tol=0)
    check(result)
    assert result.status == Status.NONFINITE
    assert np.array_equal(result.x, FISTA_POINT)


def test_fista_gives_up_where_no_step_has_a_value(monkeypatch):
    problem = layer()
    value = problem.smooth_value
    monkeypatch.setattr(problem, "smooth_value", lambda image: math.nan if image.any() else value(image))
    result = mopn.minimize(problem, FISTA())
    assert (result.status, result.nit) == (Status.STALLED, 0)
    assert not result.x.any()


@every_solver
def test_runs_are_repeatable_and_silent_unless_asked(make, solver, capsys, monkeypatch):
    monkeypatch.setattr(driver, "SECONDS_BETWEEN_LINES", math.inf)
    first = mopn.minimize(make(), solver, tol=0, max_iter=2)
    assert capsys.readouterr().out == ""
    second = mopn.minimize(make(), solver, tol=0, max_iter=2, verbose=1, callback=lambda intermediate_result: None)
    out = capsys.readouterr().out
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.trace["fun"], second.trace["fun"])
    lines = out.strip().splitlines()
    assert lines[0].split() == [name for name in second.trace.columns if not name.endswith("_time")]
    assert len(lines) == 1 + (second.nit + 1) + 2


def test_verbose_prints_every_so_many_rows(capsys, monkeypatch):
    monkeypatch.setattr(driver, "SECONDS_BETWEEN_LINES", math.inf)
    mopn.minimize(network(), ConditionalGradient(), tol=0, max_iter=6, verbose=3)
    lines = capsys.readouterr().out.strip().splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["0", "3", "6"]


def test_the_clock_stands_still_in_callbacks():
    began = time.perf_counter()
    result = mopn.minimize(network(), ConditionalGradient(), tol=0, max_iter=5, callback=lambda **_: time.sleep(0.05))
    assert result.nit == 5
    # The six pauses are in the time of the call alone.
    assert result.time <= time.perf_counter() - began - 6 * 0.05


def test_trace_columns_stay_equal():
    trace = Trace()
    trace.append(a=1.0)
    trace.append(a=2.0, b=5.0)
    trace.append(b=6.0)
    assert trace.columns == ("a", "b")
    assert len(trace) == 3
    np.testing.assert_array_equal(trace["a"], [1.0, 2.0, np.nan])
    np.testing.assert_array_equal(trace["b"], [np.nan, 5.0, 6.0])
    assert trace.to_dict().keys() == {"a", "b"}
    with pytest.raises(KeyError, match="no column 'c'; it has a, b"):
        trace["c"]


def test_results_pickle():
    result = mopn.minimize(network(), ConditionalGradient(), max_iter=3)
    again = pickle.loads(pickle.dumps(result))
    assert isinstance(again, Result)
    assert np.array_equal(again.basis, result.basis)
    assert np.array_equal(again.trace["gap"], result.trace["gap"])
    assert again.status is Status(result.status)


@pytest.mark.parametrize("solver", [FISTA(), InteriorPoint()])
def test_the_callers_start_is_not_overwritten(solver):
    problem = layer()
    start = np.ones((4, 3))
    mopn.minimize(problem, solver, start=start, max_iter=20, tol=0)
    assert np.array_equal(start, np.ones((4, 3)))


class OneStep(Solver):
    """A solver that returns of its own accord, after as many calls of the monitor as it is told."""

    needs = frozenset()

    def __init__(self, calls):
        self.calls = calls

    def run(self, problem, start, monitor):
        for _ in range(self.calls):
            measure = problem.measure(start)
            monitor(start, fun=measure.fun, lower=measure.lower)


def test_a_solver_that_returns_leaves_a_status():
    result = mopn.minimize(layer(), OneStep(2), tol=0)
    check(result)
    assert result.status == Status.RETURNED
    assert mopn.minimize(layer(), OneStep(1), tol=1e6).success
    with pytest.raises(TypeError, match=r"OneStep\.run ended without a call of the monitor"):
        mopn.minimize(layer(), OneStep(0))


@pytest.mark.parametrize("callback", [lambda: None, lambda x: None, lambda intermediate_result, more: None])
def test_a_callback_of_another_signature_is_refused_before_the_run(callback):
    with pytest.raises((TypeError, ValueError), match=r"callback must be callable as callback\(intermediate_result="):
        mopn.minimize(layer(), FISTA(), callback=callback)
    with pytest.raises(TypeError, match=r"callback must be callable .* or None, got 'print'"):
        mopn.minimize(layer(), FISTA(), callback="print")


def test_callbacks_of_all_fitting_signatures():
    seen = []
    for callback in (lambda **result: seen.append(result), lambda intermediate_result, k=1: seen.append(k), dict):
        mopn.minimize(layer(), FISTA(), max_iter=0, callback=callback)
    assert len(seen) == 2


@every_solver
def test_a_callback_cannot_write_into_the_running_solver(make, solver):
    def arrays(value):
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, dict | list):
            for part in value.values() if isinstance(value, dict) else value:
                yield from arrays(part)

    found = []
    result = mopn.minimize(make(), solver, tol=0, max_iter=2, callback=lambda **now: found.extend(arrays(now)))
    assert found
    assert not any(array.flags.writeable for array in found)
    assert all(array.flags.writeable for array in arrays(result))


class Reporting(Solver):
    """A solver that reports given values, as rows of the trace, and for the last point."""

    needs = frozenset()

    def __init__(self, rows, last):
        self.rows, self.last = rows, last

    def run(self, problem, start, monitor):
        for row in self.rows:
            monitor(start, **row)

    def measure(self, problem, point):
        return self.last


def test_the_restricted_gap_is_at_most_the_gap_to_the_best_bound_of_the_run(capsys):
    rows = [
        {"fun": 10.0, "lower": 6.0, "restricted_lower": 7.0, "n_units": 1},
        {"fun": 9.0, "lower": 0.0, "restricted_lower": 4.0, "n_units": 2},
        {"fun": 8.0, "lower": 0.0, "restricted_lower": 7.5, "n_units": 2},
    ]
    seen = []
    solver = Reporting(rows, Measure(8.0, 0.0, restricted_lower=7.75))
    result = mopn.minimize(layer(), solver, tol=0, verbose=1, callback=lambda **now: seen.extend(now.values()))
    check(result)
    assert result.trace["gap"] == pytest.approx([4.0, 3.0, 2.0], rel=1e-15)
    assert result.trace["restricted_gap"].tolist() == [now.restricted_gap for now in seen]
    assert result.trace["restricted_gap"] == pytest.approx([3.0, 3.0, 0.5], rel=1e-15)
    assert (result.gap, result.restricted_gap) == pytest.approx((2.0, 0.25), rel=1e-15)
    assert result.lower == 6.0
    header, *lines, last = capsys.readouterr().out.splitlines()
    assert last.startswith("objective 8, gap 2 (at most 0.25 with these units, 1.75 more with others), ")
    # Every number ends where the name of its column does.
    for name, value in (("restricted_gap", "3"), ("n_units", "2")):
        end = header.index(f" {name}") + 1 + len(name)
        assert lines[1][:end].endswith(f" {value}")


@pytest.mark.parametrize(("problem", "solver"), [(layer(), FISTA()), (low_rank()[0], ConditionalGradient())])
def test_a_problem_that_knows_one_gap(problem, solver, capsys):
    result = mopn.minimize(problem, solver, tol=0, max_iter=3, verbose=1)
    check(result)
    assert "restricted_gap" not in result.trace
    assert result.restricted_gap == result.gap
    assert f"gap {result.gap:.3g}" in capsys.readouterr().out.splitlines()[-1]


def test_the_iterations_of_refits_are_counted():
    class Refitting(OneStep):
        def run(self, problem, start, monitor):
            for _ in range(self.calls):
                monitor.solve(problem, FISTA(), start=start, tol=0.0, max_iter=7)
            super().run(problem, start, monitor)

    assert mopn.minimize(layer(), Refitting(3), tol=0).refit_nit == 21
    assert mopn.minimize(layer(), FISTA(), tol=0, max_iter=5).refit_nit == 0


def test_lines_of_refits_change_nothing(monkeypatch, capsys):
    """About once a second, each counts the iterations of all refits so far."""
    solver, lines = ConditionalGradient(refit="full"), {}
    for wait in (0.0, np.inf):
        monkeypatch.setattr(driver, "SECONDS_BETWEEN_LINES", wait)
        result = mopn.minimize(network(), solver, tol=0, max_iter=2, verbose=1)
        lines[wait] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  refit: ")]
    silent = mopn.minimize(network(), solver, tol=0, max_iter=2)
    assert np.array_equal(result.x, silent.x)
    assert result.refit_nit == silent.refit_nit
    assert not lines[np.inf]
    counts = [int(line.split()[1]) for line in lines[0.0]]
    assert counts == sorted(counts)
    assert len(counts) > 3
    assert counts[-1] <= result.refit_nit


@pytest.mark.parametrize("refit", ["none", "output", "full"])
def test_times_of_the_parts_add_up_to_less_than_the_whole(refit):
    trace = mopn.minimize(network(), ConditionalGradient(refit=refit), tol=1e-4, max_iter=8).trace
    parts = [trace[f"{part}_time"] for part in ("oracle", "proof", "refit")]
    assert all(np.all(np.diff(part) >= 0) for part in parts)
    assert trace["oracle_time"][0] > 0
    assert trace["refit_time"][-1] > 0
    assert np.all(sum(parts) <= trace["time"] + 1e-9)


def test_a_run_without_proofs_ends_at_the_estimate():
    problem = network()
    result = mopn.minimize(problem, ConditionalGradient(refit="full", prove=False), tol=1e-3)
    assert result.estimated_gap <= 1e-3 * result.fun
    assert result.status in (Status.ESTIMATED, Status.CONVERGED)
    assert np.all(result.trace["proof_time"] == 0)
    proven = mopn.certify(problem, result.basis, result.weights, oracle="exact")
    assert proven.gap <= 2e-3 * proven.fun


@pytest.mark.parametrize(
    ("restricted", "estimated", "words"),
    [
        (2.0, 0.5, "2"),
        (0.25, 2.0, "2 (at most 0.25 with these units, 1.75 more with others)"),
        (0.25, 1.99, "2 (at most 0.25 with these units, 1.75 more with others)"),
        (0.25, 0.75, "2 (at most 0.25 with these units; by estimate 0.5 more with others, the rest a loose bound)"),
        (0.25, 0.125, "2 (at most 0.25 with these units; by estimate 0 more with others, the rest a loose bound)"),
    ],
)
def test_parts_of_a_gap_that_are_not_proven_are_called_estimates(restricted, estimated, words):
    result = mopn.Result(gap=2.0, restricted_gap=restricted, estimated_gap=estimated)
    assert gap_in_words(result) == words
