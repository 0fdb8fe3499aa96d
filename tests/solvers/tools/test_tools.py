"""Attributes computed at first use, representations, the names of the package, and messages that say what fits."""

import importlib
import math
import re
import typing
from itertools import product
from threading import Barrier, Event, Thread

import numpy as np
import pytest

import mopn
from mopn.core.kernels import KERNELS, KernelName
from mopn.core.norms import NORMS, NormName
from mopn.data.feature_scaling import SCALES
from mopn.losses.losses import LOSSES, LossName
from mopn.solvers.conditional_gradient.schedule import SCHEDULES, ScheduleName
from mopn.solvers.interface import Form, Measure
from mopn.solvers.numerics.precision import proven_lower, proven_upper
from mopn.solvers.tools.checks import make_generator
from mopn.solvers.tools.decorators import cached_property


class Lazy:
    def __init__(self, compute):
        self.compute = compute

    @cached_property
    def value(self):
        """The computed value."""
        return self.compute()


def test_the_value_is_computed_once():
    values = [1, 2]
    lazy = Lazy(lambda: values.pop())
    assert (lazy.value, lazy.value) == (2, 2)
    assert values == [1]
    assert Lazy.value.__doc__ == "The computed value."


def test_an_error_is_not_kept():
    values = [1]
    lazy = Lazy(lambda: 1 / values.pop(0) if len(values) > 1 else values[0])
    values.insert(0, 0)
    with pytest.raises(ZeroDivisionError):
        _ = lazy.value
    assert lazy.value == 1


def test_no_lock_is_held_while_a_thread_computes():
    """A process forked meanwhile would find the lock taken for ever."""
    computing, go_on, done = Event(), Event(), Event()

    def compute():
        computing.set()
        assert go_on.wait(60)

    def read_another():
        _ = Lazy(int).value
        done.set()

    first = Thread(target=lambda: Lazy(compute).value, daemon=True)
    first.start()
    assert computing.wait(60)
    # Another object's, then in a thread of its own, so that a lock is a failure and not a test that never ends.
    Thread(target=read_another, daemon=True).start()
    free = done.wait(10)
    go_on.set()
    first.join()
    assert free


def test_threads_that_meet_take_the_same_value():
    meeting, found = Barrier(2), []
    lazy = Lazy(lambda: (meeting.wait(60), object()))
    threads = [Thread(target=lambda: found.append(lazy.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]


def test_generators_are_kept_and_seeds_make_new_ones():
    rng = np.random.default_rng(0)
    assert make_generator(rng) is rng
    assert make_generator(7).random() == make_generator(7).random() == np.random.default_rng(7).random()
    assert make_generator(None).random() != make_generator(None).random()


@pytest.mark.parametrize(("rng", "error"), [(-1, ValueError), (0.5, TypeError), ("seed", TypeError), (True, TypeError)])
def test_what_is_no_generator_is_refused_by_name(rng, error):
    with pytest.raises(error, match="order must be a numpy Generator, a seed"):
        make_generator(rng, "order")


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("as_given", [np.array, list, lambda values: np.array(values)[:, None]])
def test_nan_becomes_the_bound_that_says_nothing(as_given):
    given = as_given([1.0, NAN, -INF, INF])
    shape = np.shape(given)
    np.testing.assert_array_equal(proven_upper(given), np.reshape([1.0, INF, -INF, INF], shape))
    np.testing.assert_array_equal(proven_lower(given), np.reshape([1.0, -INF, -INF, INF], shape))
    assert (proven_upper(NAN), proven_lower(NAN), proven_upper(2.0), proven_lower(2.0)) == (INF, -INF, 2.0, 2.0)


@pytest.mark.parametrize("values", list(product([3.0, NAN], [1.0, NAN], [1e-9, NAN], [2.0, NAN])))
def test_gaps_are_known_only_if_all_that_they_are_made_of_is(values):
    fun, lower, rounding, restricted = values
    measure = Measure(fun, lower, rounding, restricted)
    assert math.isfinite(measure.gap) == (not any(map(math.isnan, values[:3])))
    assert measure.restricted_gap <= measure.gap
    assert not math.isnan(measure.restricted_gap)
    assert (measure.proof == "none") == math.isinf(measure.gap)


# -- representations, names and messages -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown():
    """One object of each kind that is displayed."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 8))
    problem = mopn.NetworkProblem(X, X[:, 0] > 0, norm="l1/linf", strength=1.0)
    result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(), max_iter=2)
    network = problem.start(result)
    direct = mopn.FactorizationProblem(X, X[:, 0])
    one_output = mopn.minimize(direct, mopn.solvers.LBFGS(), max_iter=2)
    return [
        *(problem, result, problem.output_layer(network), problem.joint(network)),
        *(problem.joint(network, Form("composite")), mopn.Model.from_result(problem, result), mopn.path(problem, 3)),
        *(direct, mopn.LiftedProblem(X, X[:, 0]), mopn.FactorizationModel.from_result(direct, one_output)),
    ]


def test_representations_are_short_and_in_html_the_same(shown):
    for each in shown:
        text = repr(each)
        assert text.startswith(f"{type(each).__name__}(")
        assert len(text) < 250
        cells = re.findall(r"<th>(.*?)</th><td>(.*?)</td>", each._repr_html_())
        assert len(cells) == len(each._entries()) > 1


def test_html_is_escaped():
    model = mopn.Model(np.ones((1, 2)), np.ones((1, 2)), classes=np.array(["<b>", "&"]))
    assert "<b>" not in model._repr_html_()
    assert "&lt;b&gt;" in model._repr_html_()


def test_the_estimated_gap_is_that_of_the_best_point():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 4))
    problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    seen, solver = [], mopn.solvers.ConditionalGradient(oracle="power")
    result = mopn.minimize(problem, solver, max_iter=3, tol=0, callback=lambda **now: seen.extend(now.values()))
    trace = result.trace
    assert np.allclose([now.estimated_gap for now in seen], trace["estimated_gap"])
    assert np.all(trace["estimated_gap"] <= trace["gap"])
    assert result.estimated_gap == min(trace["estimated_gap"][np.argmin(trace["fun"])], result.gap)


SHOWN = {"estimators", "explain", "export", "oracles", "plotting", "ranking", "solvers", "testing"}


@pytest.mark.parametrize("name", ["", *sorted(SHOWN), "dask", "solvers.sphere", "tables"])
def test_completion_offers_public_names_alone(name):
    package = importlib.import_module(f"mopn.{name}".rstrip("."))
    public = {*package.__all__, *(SHOWN if package is mopn else ())}
    assert {found for found in dir(package) if not found.startswith("__")} == public
    assert all(getattr(package, found) is not None for found in dir(package))


@pytest.mark.parametrize(
    ("names", "known"), [(NormName, NORMS), (KernelName, KERNELS), (LossName, LOSSES), (ScheduleName, SCHEDULES)]
)
def test_the_names_of_types_are_those_known(names, known):
    assert set(typing.get_args(names)) == set(known)
    assert SCALES == ("features", "data", "large")


@pytest.mark.parametrize("solver", [mopn.solvers.FISTA(), mopn.solvers.ConditionalGradient()])
def test_messages_name_solvers_that_take_the_problem_as_it_is(shown, solver):
    free = mopn.NetworkProblem(np.eye(3), [0, 1, 2], strength=0.0)
    refused = 0
    for problem in [free, *shown]:
        if hasattr(problem, "oracles") and not solver.needs <= problem.oracles:
            refused += 1
            with pytest.raises(TypeError, match="solvers for this problem: ") as error:
                mopn.minimize(problem, solver)
            for name in str(error.value).rpartition("solvers for this problem: ")[2].split(", "):
                fitting = eval(name, {"k": 2}, vars(mopn.solvers))
                mopn.minimize(problem, fitting, tol=0, max_iter=1)
    assert refused > 2
    with pytest.raises(TypeError, match=r"FISTA serves problem.output_layer\(problem.start\(result\)\)"):
        mopn.minimize(free, mopn.solvers.FISTA())


def test_every_problem_names_its_solver(shown):
    convex = shown[:1] + shown[2:3]
    for problem in shown:
        if hasattr(problem, "oracles"):
            assert problem.default_solver().needs <= problem.oracles
            result = mopn.minimize(problem, max_iter=5)
            assert result.fun <= problem.measure(problem.start()).fun
            assert result.gap_is_proven or problem not in convex


def test_a_problem_of_ones_own_needs_a_solver():
    class Own(mopn.solvers.interface.Problem):
        oracles = frozenset({"gradient"})

    with pytest.raises(TypeError, match="Own names no solver of its own; give minimize one"):
        mopn.minimize(Own())


def test_a_status_is_printed_in_words():
    for status in mopn.Status:
        assert status.message.endswith(".")
        assert str(status) == f"{status}" == f"{status.name}: {status.message}"
    assert repr(mopn.Status.MAX_TIME) == "<Status.MAX_TIME: 2>"


def test_messages_for_what_is_no_solver_or_no_problem(shown):
    with pytest.raises(TypeError, match=r"got the class FISTA; use FISTA\(\)"):
        mopn.minimize(shown[0], mopn.solvers.FISTA)
    with pytest.raises(TypeError, match=r"one of mopn.solvers .*ConditionalGradient\(\).*got 'cg'"):
        mopn.minimize(shown[0], "cg")
    for wrong in (5, mopn.NetworkProblem):
        with pytest.raises(TypeError, match="problem must be a problem, such as"):
            mopn.minimize(wrong, mopn.solvers.FISTA())


def a_trace():
    trace = mopn.solvers.Trace()
    trace.append(nit=0, fun=1 / 3)
    trace.append(nit=1, fun=-1e-300, gap=np.inf)
    return trace


def test_a_trace_and_a_measure_are_shown_in_a_line():
    assert repr(a_trace()) == "Trace(2 rows: nit, fun, gap)"
    measure = Measure(2.0, 1.5, restricted_lower=1.75)
    assert repr(measure) == "Measure(fun=2, gap=0.5, restricted_gap=0.25, proof='deterministic')"


def test_a_trace_as_comma_separated_values(tmp_path):
    trace = a_trace()
    trace.to_csv(tmp_path / "trace.csv")
    header, *rows = (tmp_path / "trace.csv").read_text(encoding="utf-8").splitlines()
    assert tuple(header.split(",")) == trace.columns
    back = np.array([[float(cell or "nan") for cell in row.split(",")] for row in rows])
    np.testing.assert_array_equal(back, np.transpose([trace[name] for name in trace]))


def test_a_trace_as_a_frame():
    pandas = pytest.importorskip("pandas")
    trace = a_trace()
    frame = trace.to_frame()
    pandas.testing.assert_frame_equal(frame, pandas.DataFrame({name: trace[name] for name in trace}))
