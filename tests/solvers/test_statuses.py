"""A status is true: its claim about a run is computed again, for every solver and way to end."""

import warnings

import numpy as np
import pytest

import mopn
from mopn import solvers
from mopn.solvers import Status
from mopn.solvers.result import relative

X = np.random.default_rng(0).uniform(-1, 1, (80, 4))
Y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.1 * np.random.default_rng(1).standard_normal(80)
NETWORK = mopn.NetworkProblem(X, Y > 0, norm="l1", strength=1.0, augment=True)
LAYER = mopn.OutputLayerProblem(np.abs(X), Y > 0, norm="l1", strength=0.5)
FACTORS = mopn.FactorizationProblem(X, Y, n_components=2, beta=0.1)
LARGE = mopn.FactorizationProblem(1000.0 * X, 1.0 + Y, n_components=2, beta=0.1)


class Returns(solvers.Solver):
    """Ends by itself after one step."""

    needs = frozenset({"gradient"})

    def run(self, problem, start, monitor):
        at = problem.value_gradient(start)
        monitor(start, fun=at.value)


def random_units(gammas):
    rng = np.random.default_rng(int(1e6 * np.abs(gammas).sum()) % 2**32)
    return rng.standard_normal((2, gammas.shape[1]))


RUNS = {
    "conditional gradient": (NETWORK, solvers.ConditionalGradient()),
    "both layers": (NETWORK, solvers.ConditionalGradient("full")),
    "plain steps": (NETWORK, solvers.ConditionalGradient("none")),
    "few units": (NETWORK, solvers.ConditionalGradient("full", max_units=2, schedule="fill")),
    "unproven": (NETWORK, solvers.ConditionalGradient("full", prove=False)),
    "levels off": (NETWORK, solvers.ConditionalGradient("full", prove=False, ftol=0.1)),
    "own oracle": (NETWORK, solvers.ConditionalGradient("full", oracle=random_units)),
    "fista": (LAYER, solvers.FISTA()),
    "interior point": (LAYER, solvers.InteriorPoint()),
    "interior point, unproven": (LAYER, solvers.InteriorPoint(prove=False)),
    "l-bfgs": (FACTORS, solvers.LBFGS()),
    "coordinate descent": (FACTORS, solvers.CoordinateDescent()),
    "sgd": (FACTORS, solvers.SGD()),
    "adagrad": (FACTORS, solvers.AdaGrad()),
    "sgd, large features": (LARGE, solvers.SGD()),
    "adagrad, large features": (LARGE, solvers.AdaGrad()),
    "by itself": (FACTORS, Returns()),
}


# What follows from a status, beyond its message.
CONSEQUENCES = {
    Status.CONVERGED: "claims_tolerance ended_by_itself is_judged_by_gap",
    Status.MAX_ITER: "ended_by_itself may_still_converge warns",
    Status.MAX_TIME: "may_still_converge ends_path",
    Status.STALLED: "ended_by_itself may_still_converge is_judged_by_gap",
    Status.NONFINITE: "warns broke_off",
    Status.MAX_UNITS: "may_still_converge tells_gap is_judged_by_gap",
    Status.ESTIMATED: "claims_tolerance may_still_converge tells_gap is_judged_by_gap",
    Status.INTERRUPTED: "broke_off ends_path ends_outer_run",
    Status.CALLBACK_FAILED: "broke_off ends_path",
    Status.FAILED: "warns broke_off ends_path ends_outer_run",
    Status.RETURNED: "may_still_converge",
    Status.NO_BETTER_UNIT: "may_still_converge tells_gap",
    Status.NOT_BETTER_THAN_ZERO: "warns",
    Status.LEVELLED_OFF: "may_still_converge tells_gap is_judged_by_gap",
    Status.BEST_SCORE: "",
    Status.RUNNING: "",
    Status.STOPPED: "ends_path",
}


@pytest.mark.parametrize("status", Status)
def test_what_follows_from_a_status(status):
    names = {name for name, value in vars(Status).items() if isinstance(value, property)} - {"message"}
    assert {name for name in names if getattr(status, name)} == set(CONSEQUENCES[status].split())
    assert names == {name for all_of_one in CONSEQUENCES.values() for name in all_of_one.split()}


def stops(intermediate_result):
    raise StopIteration


def fails(intermediate_result):
    raise ZeroDivisionError


def interrupts(intermediate_result):
    raise KeyboardInterrupt


LIMITS = {
    "tolerance": {"tol": 1e-2, "max_iter": 200},
    "fine": {"tol": 1e-9, "max_iter": 20},
    "no tolerance": {"tol": 0.0, "max_iter": 5},
    "iterations": {"tol": 1e-9, "max_iter": 2},
    "seconds": {"tol": 1e-9, "max_time": 0.0},
    "stopped": {"tol": 1e-9, "callback": stops},
    "failed": {"tol": 1e-9, "callback": fails},
    "interrupted": {"tol": 1e-9, "callback": interrupts},
}
BEST = {
    problem: mopn.minimize(problem, solver, tol=1e-6)
    for problem, solver in ((NETWORK, solvers.ConditionalGradient("full")), (LAYER, solvers.InteriorPoint()))
}


def is_so(problem, solver, result, limits):
    """Whether the claim of the status about a result holds."""
    tol = limits["tol"]
    fun, certified = result.fun, np.isfinite(result.gap)
    limit = limits.get("max_iter", 1000)
    zeros = problem.measure(np.zeros_like(problem.start())).fun if problem in (FACTORS, LARGE) else np.inf
    passes, own_oracle = isinstance(solver, solvers.SGD), callable(getattr(solver, "oracle", None))
    return {
        Status.CONVERGED: lambda: result.relative_gap <= tol if certified else tol and is_level(problem, result, tol),
        Status.MAX_ITER: lambda: result.nit == limit,
        Status.MAX_TIME: lambda: "max_time" in limits,
        Status.STALLED: lambda: not result.relative_gap <= tol,
        Status.NONFINITE: lambda: passes and problem is LARGE,
        Status.MAX_UNITS: lambda: getattr(solver, "max_units", None) is not None,
        Status.ESTIMATED: lambda: result.estimated_gap <= tol * fun < result.gap and not own_oracle,
        Status.LEVELLED_OFF: lambda: -np.diff(result.trace["fun"])[-1] <= solver.ftol * fun,
        Status.STOPPED: lambda: limits.get("callback") is stops,
        Status.CALLBACK_FAILED: lambda: isinstance(result.error, ZeroDivisionError),
        Status.INTERRUPTED: lambda: limits.get("callback") is interrupts,
        Status.RETURNED: lambda: isinstance(solver, Returns),
        Status.NO_BETTER_UNIT: lambda: own_oracle,
        Status.NOT_BETTER_THAN_ZERO: lambda: passes and fun == pytest.approx(zeros, rel=1e-12),
    }[result.status]()


def is_level(problem, result, tol):
    """Whether no step along the gradient decreases the objective by more than the tolerance."""
    x = problem.start(result)
    at = problem.value_gradient(x)
    slope = np.vdot(at.gradient, at.gradient)
    steps = at.value / slope * 2.0 ** np.arange(-40.0, 3.0)
    least = min(problem.measure(x - step * at.gradient).fun for step in steps)
    return at.value - least <= 1.01 * tol * at.value


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("run", RUNS)
def test_what_a_status_claims_is_so(run, limits):
    (problem, solver), given = RUNS[run], LIMITS[limits]
    result = mopn.minimize(problem, solver, rng=0, **given)
    assert is_so(problem, solver, result, given), str(result.status)
    assert result.success == (result.status == Status.CONVERGED)
    assert problem.measure(problem.start(result)).fun == pytest.approx(result.fun, rel=1e-9)
    if problem in BEST:
        assert result.fun - BEST[problem].fun <= result.gap + BEST[problem].gap
        assert result.gap_is_proven == np.isfinite(result.gap)
    if isinstance(solver, solvers.SGD):
        assert result.fun <= problem.measure(np.zeros_like(problem.start())).fun
    if result.nit > 0:
        assert result.fun <= np.nanmin(result.trace["fun"]) * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore:.*predictions are the same")
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, 1e5 / 3, 1e-30])
def test_the_relative_gap_of_a_perfect_fit_is_zero(value, loss):
    problem = mopn.NetworkProblem(X, np.full(80, value), loss=loss, strength=0.1, offset=[value], norm="l1")
    result = mopn.minimize(problem)
    assert result.relative_gap == 0.0
    assert result.status == Status.CONVERGED
    assert mopn.certify(problem, result.basis, result.weights).relative_gap == 0.0
    solved = mopn.estimators.MultiOutputPNRegressor(loss=loss).fit(X, np.full(80, value))
    assert (solved.relative_gap_, solved.status_) == (0.0, Status.CONVERGED)
    ax = mopn.plotting.plot_convergence(result, y="relative_gap")
    assert not np.isinf(ax.lines[0].get_ydata()).any()


def test_networks_that_fit_perfectly_have_no_relative_gap():
    found = mopn.certify_network([[1.0, 1.0, 0, 0]], [[0.5]], X=X, y=0.5 * (X[:, 0] + X[:, 1]) ** 2, loss="squared")
    assert found.objective < 1e-25
    assert found.relative_gap < 1e-6 or found.objective > found.rounding


@pytest.mark.parametrize(
    ("gap", "fun", "rounding", "expected"),
    [
        (0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, np.inf), (1.0, -4.0, 0.0, 0.25), (1e-29, 0.0, 1e-29, 0.0),
        (1.0, 0.0, 1e-29, np.inf), (np.inf, 0.0, np.inf, np.inf), (np.inf, 1.0, np.inf, np.inf),
        (1e-29, 1e-20, 1e-29, 1e-9),
    ],
)  # fmt: skip
def test_relative_gaps(gap, fun, rounding, expected):
    assert relative(gap, fun, rounding) == pytest.approx(expected)


@pytest.mark.parametrize("size", [1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("solver", ["sgd", "adagrad"])
def test_stochastic_fits_are_no_worse_than_no_model_or_warn(solver, size):
    target = 2.0 + Y
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mopn.estimators.FactorizationMachineRegressor(solver=solver, random_state=0).fit(size * X, target)
    assert np.mean((model.predict(size * X) - target) ** 2) <= np.mean(target**2)
    assert model.score(size * X, target) > 0.3 or len(caught) == 1
    if model.status_ == Status.CONVERGED:
        assert model.score(size * X, target) > 0.9
