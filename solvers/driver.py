"""The driver of all solvers: clock, limits, trace, callback, printing, checks for finiteness, and the best point."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np

from mopn.solvers.interface import SERVED_BY, Measure, Problem, Solver, check_needs
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.result import Result, Status, Trace, gap_in_words, proof_in_words
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.budgets import FailureBudget
from mopn.solvers.tools.checks import (
    check_callback,
    check_nonnegative,
    check_seconds,
    check_verbose,
    count,
    make_seed,
    shown,
)
from mopn.solvers.tools.decorators import callers_state, quiet

Callback = Callable[..., Any]
SomeProblem = TypeVar("SomeProblem", bound=Problem)

# Least seconds between two printed lines of a refit.
SECONDS_BETWEEN_LINES = 1.0
# Exceptions that end a run without losing its best point. Any other exception is a bug and is raised.
_RECOVERABLE = (OSError, KeyboardInterrupt, np.linalg.LinAlgError, ArithmeticError, MemoryError)
# Least width of a column of the printed table.
_WIDTH = 11
_MAX_ITER = count(0).or_none()
_MAX_TIME = check_seconds.or_none()


class NotFiniteError(ValueError):
    """The objective is not finite at the start, so there is no best point."""


@quiet()
def minimize(
    problem: SomeProblem,
    solver: Solver[SomeProblem] | None = None,
    *,
    start: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    rng: np.random.Generator | int | None = None,
    n_threads: int | None = None,
) -> Result:
    """Minimise a problem with a solver.

    Parameters
    ----------
    problem : a problem of mopn
        The problem to minimise, e.g. ``mopn.NetworkProblem(X, y)``.
    solver : Solver, optional
        The algorithm and its options, e.g. ``mopn.solvers.ConditionalGradient(refit="output")``. Default
        ``problem.default_solver()``.
    start : object, optional
        An earlier ``Result``, or a start as the problem documents it; default the zero point of the problem. Network
        problems also take models, also from :func:`mopn.load`, fitted estimators, and arrays ``(basis, weights)`` in
        the coordinates of the problem.
    tol : float, default 1e-3
        Stop when ``gap <= tol * abs(fun)``; with 0 only the limits end the run.
    max_iter : int, optional
        Largest number of iterations; default 1000.
    max_time : float, optional
        Largest number of seconds, callbacks and printing excluded; default no limit. A run may exceed it by a few
        matrix products or decompositions, and by the evaluation of the best point.
    callback : callable, optional
        Called in every iteration as ``callback(intermediate_result=Result)``, as by SciPy. ``StopIteration`` stops the
        run; any other exception does too, and is kept in ``result.error``. Its gaps and the trace's leave out rounding
        errors that the solver does not report: FISTA, InteriorPoint and LBFGS report none.
    verbose : int, default 0
        Print a table with every ``verbose``-th iteration, and a line for every second of a refit.
    rng : Generator or int, optional
        Seed of the random numbers of the run, or a generator from which a seed is drawn. It also seeds a random default
        start, but not the starts of random proofs. Default: seed 0, and the problem's own ``rng`` for its start.
    n_threads : int, optional
        Number of threads that compute blocks of rows; small data are one block. Default: ``OMP_NUM_THREADS``, or all
        cores. Linear algebra has one thread during the call, except for very large products.

    Returns
    -------
    Result
        The best point found, whatever ended the run; see its ``status`` and ``message``.

    Raises
    ------
    TypeError
        If the problem does not offer an oracle that the solver needs, or problem or solver is something else.
    ValueError
        If an option is out of range, if ``tol > 0`` is given where no certificate exists, or if the objective is not
        finite at the start.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> result = mopn.minimize(problem, tol=1e-4)
    >>> result.status.name, bool(result.gap <= 1e-4 * result.fun)
    ('CONVERGED', True)
    """
    tol = check_nonnegative(tol, "tol")
    verbose = check_verbose(verbose, "verbose")
    max_iter = _MAX_ITER(max_iter, "max_iter")
    max_time = _MAX_TIME(max_time, "max_time")
    max_iter = 1000 if max_iter is None else max_iter
    max_time = math.inf if max_time is None else max_time
    callback = check_callback(callback, "callback")
    _checked_problem(problem)  # before the solver: of minimize(X, y) the solver is y
    solver = problem.default_solver() if solver is None else solver
    check_oracles(problem, solver)
    seed = make_seed(rng)
    if rng is not None and start is None and problem.starts_at_random:
        start = np.random.default_rng(seed)
    failure_before = start.get("failure", 0.0) if isinstance(start, Result) else 0.0
    with limited_threads(n_threads):
        point = problem.start(start)
        budget = FailureBudget(failure_before)
        monitor = RunMonitor(problem, solver, budget, seed, solver.slack * tol, max_iter, max_time, callback, verbose)
        try:
            # Ctrl-C while NumPy sets its treatment of floating-point errors would leave it set.
            with np.errstate():
                solver.run(problem, point, monitor)
            monitor.status = Status.RETURNED
        except StopIteration:
            pass
        except _RECOVERABLE as error:
            if monitor.best is None:
                raise
            monitor.fail(error)
        return monitor.result()


def _checked_problem(problem: SomeProblem) -> SomeProblem:
    if isinstance(problem, type) or not isinstance(getattr(problem, "oracles", None), Set):
        given = "an array" if hasattr(problem, "shape") else shown(problem)
        estimator = "; its problem(X, y) is one" if hasattr(problem, "problem") else ""
        example = "such as mopn.NetworkProblem(X, y, strength=1.0)"
        raise TypeError(f"problem must be a problem, {example}, got {given}{estimator}")
    return problem


def check_oracles(problem: Problem, solver: Solver[Any]) -> None:
    """Raise ``TypeError`` if the problem does not offer an oracle that the solver needs, and name solvers that fit."""
    missing = sorted(check_needs(solver) - _checked_problem(problem).oracles)
    if missing:
        why = "".join(f"; {problem.reasons[name]}" for name in missing if name in problem.reasons)
        fitting = ", ".join(SERVED_BY[name] for name in sorted(problem.oracles) if name in SERVED_BY)
        raise TypeError(
            f"{type(solver).__name__} asks for the oracle {', '.join(map(repr, missing))}, which "
            f"{type(problem).__name__} does not offer (it offers: {', '.join(sorted(problem.oracles))}){why}; "
            f"solvers for this problem: {fitting or 'your own'}"
        )


@dataclass(eq=False)
class RunMonitor:
    """The monitor of one run, which ends it at a limit or by the stopping test, with its largest lower bound."""

    problem: Problem
    solver: Solver[Any]
    failure_budget: FailureBudget
    seed: int
    tol: float
    max_iter: int
    max_time: float
    callback: Callback | None
    verbose: int

    def __post_init__(self) -> None:
        self.trace = Trace()
        self.best: Any = None
        self.at_best, self.estimated_gap = Measure(math.inf), math.inf
        self.lower, self.dual = -math.inf, None
        self.status = Status.RUNNING
        self.error: BaseException | None = None
        self.nit, self.refit_nit = -1, 0
        self._status_of_subproblem: Status | None = None
        # The best refit since the last iteration, and how to make a point of it.
        self._best_refit: tuple[Callable[[Result], Any], Result] | None = None
        # A point that any result is to be better than, its objective, and the status if none is.
        self._least: tuple[Any, float, Status] = None, math.inf, Status.RUNNING
        self._seconds_paused = 0.0
        self._first_size = 0.0
        self._began = time.perf_counter()
        self._last_line = 0.0

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._began - self._seconds_paused

    @property
    def _is_within_tol(self) -> bool:
        return self._has_bound and (
            self.at_best.gap <= self.tol * abs(self.at_best.fun) or self.at_best.relative_gap == 0.0
        )

    @property
    def _has_bound(self) -> bool:
        return self.lower > -math.inf

    @property
    def left(self) -> float:
        return max(self.max_time - self.elapsed, 0.0) if self._status_of_subproblem is None else 0.0

    def __call__(
        self,
        point: Any,
        fun: float,
        lower: float = -math.inf,
        *,
        rounding: float = 0.0,
        restricted_lower: float = -math.inf,
        dual: Any = None,
        **columns: float,
    ) -> None:
        """Record one iteration; raises ``StopIteration`` when the run is over."""
        now = self.elapsed
        self.check_finite(fun)
        self.nit += 1
        self._best_refit = None
        if self.nit == 0:
            self._first_size = abs(fun)
        self._raise_lower(lower, dual)
        measure = Measure(fun, self.lower, rounding, restricted_lower)
        # An estimate is by the bound of its own iteration, which may be below the largest one.
        estimated_gap = min(columns.get("estimated_gap", math.inf), measure.gap)
        if "estimated_gap" in columns:
            columns["estimated_gap"] = estimated_gap
        if self.best is None or fun < self.at_best.fun:
            self.best, self.at_best, self.estimated_gap = point, measure, estimated_gap
        if math.isfinite(restricted_lower):
            columns = {"restricted_gap": measure.restricted_gap, **columns}
        self.trace.append(nit=self.nit, time=now, fun=fun, gap=measure.gap, **columns)
        self._report_iteration(point, measure, estimated_gap)
        self._seconds_paused += self.elapsed - now
        self._stop_if_over()

    def _raise_lower(self, lower: float, dual: Any) -> None:
        if lower > self.lower:
            self.lower, self.dual = lower, dual
            self.at_best = self.at_best._replace(lower=lower)

    def check_finite(self, fun: float) -> None:
        if not math.isfinite(fun):
            self.stop(Status.NONFINITE)

    def fail(self, error: BaseException) -> None:
        """Set the status for an exception that ends the run; the best point may come from a refit."""
        if self._best_refit is not None and self._best_refit[1].fun < self.at_best.fun:
            as_point, refit = self._best_refit
            # The objective of the subproblem bounds the point's; its rounding errors are unknown.
            self.best = as_point(refit)
            self.at_best = Measure(refit.fun, self.lower, rounding=math.inf)
            self.estimated_gap = math.inf
        if isinstance(error, KeyboardInterrupt):
            self.status = Status.INTERRUPTED
        else:
            self.status, self.error = Status.FAILED, error

    def _report_iteration(self, point: Any, measure: Measure, estimated_gap: float) -> None:
        """Print, and call the callback, whose errors end the run; the clock is stopped meanwhile."""
        if self.verbose and self.nit % self.verbose == 0:
            _print_row(self.trace, header=self.nit == 0)
        if self.callback is None:
            return
        result = _read_only(self._result(point, measure, estimated_gap))
        try:
            with callers_state():
                self.callback(intermediate_result=result)
        except StopIteration:
            self.stop(Status.STOPPED)
        except Exception as error:
            self.error = error
            self.stop(Status.CALLBACK_FAILED)

    def _stop_if_over(self) -> None:
        if self._is_within_tol:
            self.stop(Status.CONVERGED)
        if self._status_of_subproblem is not None:
            self.stop(self._status_of_subproblem)
        if self._has_bound and self.at_best.gap <= EPS * self._first_size:
            self.stop(Status.STALLED)
        if self.nit >= self.max_iter:
            self.stop(Status.MAX_ITER)
        if self.elapsed >= self.max_time:
            self.stop(Status.MAX_TIME)

    def set_least(self, point: Any, fun: float, status: Status) -> None:
        self._least = point, fun, status

    def stop(self, status: Status) -> NoReturn:
        self.status = status
        raise StopIteration

    def solve(
        self,
        problem: Problem,
        solver: Solver[Any],
        *,
        start: Any,
        tol: float,
        max_iter: int,
        as_point: Callable[[Result], Any] | None = None,
    ) -> Result:
        try:
            result = minimize(
                problem,
                solver,
                start=start,
                tol=tol,
                max_iter=max_iter,
                max_time=self.left,
                callback=self._tell_of_refit if self.verbose else None,
                rng=self.seed,
            )
        except NotFiniteError:
            self.stop(Status.NONFINITE)
        self.refit_nit += result.nit
        if result.status.ends_outer_run:
            self._status_of_subproblem, self.error = result.status, result.error
        if as_point is not None and (self._best_refit is None or result.fun < self._best_refit[1].fun):
            self._best_refit = as_point, result
        return result

    def _tell_of_refit(self, intermediate_result: Result) -> None:
        """Print the objective of a refit about once a second; the clock is stopped meanwhile."""
        now = self.elapsed
        if now - self._last_line < SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        done = self.refit_nit + intermediate_result.refit_nit + intermediate_result.nit
        sys.stdout.write(f"  refit: {done} iterations in all, objective {intermediate_result.fun:.5g}, {now:.3g} s\n")
        sys.stdout.flush()
        self._seconds_paused += self.elapsed - now

    def result(self) -> Result:
        """Return the best point, measured from scratch; if that fails, with the values recorded."""
        self._check_that_a_point_was_found()
        seconds = self.elapsed
        certified = self._has_bound
        least, fun, status = self._least
        if fun <= self.at_best.fun:
            self.best = least
            self.status = status if self.status.ended_by_itself else self.status
        try:
            measure = self.solver.measure(self.problem, self.best)
            restricted_lower = max(self.at_best.restricted_lower, measure.restricted_lower)
            self._raise_lower(measure.lower, measure.dual)
            self.at_best = measure._replace(lower=self.lower, restricted_lower=restricted_lower)
        except _RECOVERABLE as error:
            self.fail(error)
        if self.status.may_still_converge and self._is_within_tol:
            self.status = Status.CONVERGED
        # The gaps of iterations may be without the rounding error of the objective.
        if self.status == Status.CONVERGED and certified and not self._is_within_tol:
            self.status = Status.STALLED
        result = self._result(self.best, self.at_best, self.estimated_gap)
        if self.solver.slack > 1.0 and self.status.claims_tolerance:
            result = self._judged_without_slack(result)
        result.time = seconds
        if self.verbose:
            sys.stdout.write(f"{self.status.name}: {result.message}\n")
            proof = f", {result.proof}" if result.failure else ""
            sys.stdout.write(f"objective {result.fun:.8g}, gap {gap_in_words(result)}{proof}, {seconds:.3g} s\n")
        return result

    def _check_that_a_point_was_found(self) -> None:
        if self.best is not None:
            return
        if self.status != Status.NONFINITE:
            name = type(self.solver).__name__
            raise TypeError(f"{name}.run ended without a call of the monitor, so there is no point")
        raise NotFiniteError(
            "the objective is not finite at the start; scale X and y (e.g. to [-1, 1]), or give another start"
        )

    def _judged_without_slack(self, result: Result) -> Result:
        """Return the result of a run that ended at a multiple of its tolerance, with the status by the tolerance."""
        tol = self.tol / self.solver.slack
        if result.relative_gap <= tol:
            return result
        estimated = result.estimated_gap <= tol * abs(result.fun)
        self.status = Status.ESTIMATED if estimated else Status.LEVELLED_OFF
        return self._result(self.best, self.at_best, self.estimated_gap)

    def _result(self, point: Any, measure: Measure, estimated_gap: float) -> Result:
        gap = float(measure.gap)
        result = Result(
            **self.problem.unpack(point),
            fun=float(measure.fun),
            lower=float(measure.lower),
            dual=self.dual,
            gap=gap,
            estimated_gap=min(float(estimated_gap), gap),
            restricted_gap=float(measure.restricted_gap),
            gap_is_proven=math.isfinite(gap),
            rounding=float(measure.rounding),
            proof=proof_in_words(gap, random=self.failure_budget.used, seed=self.failure_budget.seed),
            failure=self.failure_budget.failure,
            success=self.status == Status.CONVERGED,
            status=self.status,
            message=self.status.message,
            nit=self.nit,
            refit_nit=self.refit_nit,
            time=self.elapsed,
            trace=self.trace,
            error=self.error,
        )
        if self.status.tells_gap and result.gap_is_proven:
            share = f", {100.0 * result.relative_gap:.3g} %" if math.isfinite(result.relative_gap) else ""
            result.message += f" The proven gap is {gap_in_words(result)}{share}."
        return result


def _read_only(value: Any) -> Any:
    """Return a result, or part of one, whose arrays cannot be written to: they belong to the running solver."""
    if isinstance(value, Result):
        return Result({name: _read_only(part) for name, part in value.items()})
    if isinstance(value, list):
        return [_read_only(part) for part in value]
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _print_row(trace: Trace, *, header: bool) -> None:
    row = {name: value for name, value in trace.last.items() if not name.endswith("_time")}
    if header:
        _print_cells(f"{name:>{_WIDTH}}" for name in row)
    _print_cells(f"{value:{max(len(name), _WIDTH)}.5g}" for name, value in row.items())
    sys.stdout.flush()


def _print_cells(cells: Iterable[str]) -> None:
    sys.stdout.write("  ".join(cells) + "\n")
