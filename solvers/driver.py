"""The one driver: it owns clock, limits, trace, callback, printing, finiteness and the best point so far."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mopn.solvers.interface import Measure, Solver
from mopn.solvers.result import Result, Status, Trace

__all__ = ["Monitor", "minimize"]

Callback = Callable[..., Any]


def minimize(
    problem: Any,
    solver: Solver,
    *,
    start: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
) -> Result:
    """Minimise a problem with a solver.

    Parameters
    ----------
    problem : a problem of mopn
        Says what is minimised, ``mopn.NetworkProblem`` for instance.
    solver : Solver
        Says how, ``mopn.solvers.ConditionalGradient()`` for instance.
    start : object, optional
        Where to start: an earlier ``Result``, or what the problem documents; default the problem's zero point.
    tol : float, default 1e-3
        Stop when ``gap <= tol * abs(fun)``; 0 leaves it to the limits.
    max_iter : int, optional
        Largest number of iterations; default 1000.
    max_time : float, optional
        Largest number of seconds, callbacks and printing excluded; default no limit.
    callback : callable, optional
        Called once an iteration as ``callback(intermediate_result=Result)``; ``StopIteration`` stops the run. Any
        other exception ends the run too, and is kept in ``result.error``.
    verbose : int, default 0
        Print a table with every ``verbose``-th iteration.

    Returns
    -------
    Result
        The best point found, always; see its ``status`` and ``message``.

    Raises
    ------
    TypeError
        If the problem lacks an oracle that the solver asks for.
    ValueError
        If an option is out of range, or a tolerance is asked for where no certificate exists.
    """
    _check_options(tol, max_iter, max_time)
    check_oracles(problem, solver)
    point = problem.start(start)
    monitor = Monitor(
        problem, solver, tol=tol, max_iter=max_iter, max_time=max_time, callback=callback, verbose=verbose
    )
    try:
        solver.run(problem, point, monitor)
    except StopIteration:
        pass
    except KeyboardInterrupt:
        if monitor.best is None:
            raise
        monitor.status = Status.INTERRUPTED
    except (np.linalg.LinAlgError, FloatingPointError, MemoryError) as error:
        if monitor.best is None:
            raise
        monitor.status, monitor.error = Status.FAILED, error
    return monitor.result()


def check_oracles(problem: Any, solver: Solver) -> None:
    """Fail at once, by name, if the problem lacks an oracle that the solver asks for."""
    missing = sorted(solver.needs - problem.oracles)
    if missing:
        raise TypeError(
            f"{type(solver).__name__} asks for the oracle {', '.join(map(repr, missing))}, which "
            f"{type(problem).__name__} does not offer (it offers: {', '.join(sorted(problem.oracles))}); "
            "use another solver or another form of the problem"
        )


def _check_options(tol: float, max_iter: int | None, max_time: float | None) -> None:
    if not (tol >= 0 and math.isfinite(tol)):
        raise ValueError(f"tol must be a finite number >= 0, got {tol!r}")
    if max_iter is not None and not (max_iter >= 0 and int(max_iter) == max_iter):
        raise ValueError(f"max_iter must be an integer >= 0 or None, got {max_iter!r}")
    if max_time is not None and not max_time >= 0:
        raise ValueError(f"max_time must be a number of seconds >= 0 or None, got {max_time!r}")


class Monitor:
    """What a solver calls once an iteration. It records the iteration and ends the run when a limit or test says so.

    Any proven lower bound of the minimum stays proven, so ``gap`` is measured against the best one seen.
    """

    def __init__(
        self,
        problem: Any,
        solver: Solver,
        *,
        tol: float,
        max_iter: int | None,
        max_time: float | None,
        callback: Callback | None,
        verbose: int,
    ) -> None:
        self.problem, self.solver = problem, solver
        self.tol, self.callback, self.verbose = tol, callback, int(verbose)
        self.max_iter = 1000 if max_iter is None else int(max_iter)
        self.max_time = math.inf if max_time is None else float(max_time)
        self.trace = Trace()
        self.best: Any = None
        self.fun, self.lower = math.inf, -math.inf
        self.status, self.error = Status.STOPPED, None  # type: tuple[Status, BaseException | None]
        self.nit = -1
        self._pending: Status | None = None
        self._paused = 0.0
        self._began = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the start, without callbacks and printing."""
        return time.perf_counter() - self._began - self._paused

    def __call__(self, point: Any, fun: float, gap: float = math.inf, **columns: float) -> None:
        """Record one iteration; raises ``StopIteration`` when the run is over."""
        now = self.elapsed
        if not math.isfinite(fun):
            self.stop(Status.NONFINITE)
        self.nit += 1
        self.lower = max(self.lower, fun - gap)
        if self.best is None or fun < self.fun:
            self.best, self.fun = point, fun
        self.trace.append(nit=self.nit, time=now, fun=fun, gap=fun - self.lower, **columns)
        self._speak(point)
        self._paused += self.elapsed - now
        self._stop_if_over()

    def _speak(self, point: Any) -> None:
        """Print and call back; the clock stands still meanwhile."""
        if self.verbose and self.nit % self.verbose == 0:
            _print_row(self.trace, header=self.nit == 0)
        if self.callback is None:
            return
        try:
            self.callback(intermediate_result=self._report(point, self.trace.last["fun"]))
        except StopIteration:
            self.stop(Status.STOPPED)
        except Exception as error:
            self.error = error
            self.stop(Status.CALLBACK_FAILED)

    def _stop_if_over(self) -> None:
        if self.fun - self.lower <= self.tol * abs(self.fun):
            self.stop(Status.CONVERGED)
        if self._pending is not None:
            self.stop(self._pending)
        if self.nit >= self.max_iter:
            self.stop(Status.MAX_ITER)
        if self.elapsed >= self.max_time:
            self.stop(Status.MAX_TIME)

    def stop(self, status: Status) -> None:
        """End the run for a reason of the solver's own."""
        self.status = status
        raise StopIteration

    def solve(self, problem: Any, solver: Solver, *, start: Any, tol: float, max_iter: int) -> Result:
        """Run a solver on a subproblem within this run's time; a Ctrl-C in it ends this run at its next iteration."""
        left = max(self.max_time - self.elapsed, 0.0)
        result = minimize(problem, solver, start=start, tol=tol, max_iter=max_iter, max_time=left)
        if result.status in (Status.INTERRUPTED, Status.FAILED):
            self._pending, self.error = result.status, result.error
        return result

    def result(self) -> Result:
        """Measure the best point from scratch and report it."""
        seconds = self.elapsed
        measure: Measure = self.solver.measure(self.problem, self.best)
        self.fun, self.lower = measure.fun, max(self.lower, measure.fun - measure.gap)
        if self.fun - self.lower <= self.tol * abs(self.fun):
            self.status = Status.CONVERGED
        result = self._report(self.best, self.fun)
        result.time = seconds
        if self.verbose:
            sys.stdout.write(f"{self.status.name}: {result.message}\n")
            sys.stdout.write(f"objective {result.fun:.8g}, gap {result.gap:.3g}, {seconds:.3g} s\n")
        return result

    def _report(self, point: Any, fun: float) -> Result:
        gap = max(fun - self.lower, 0.0)
        return Result(
            **self.problem.unpack(point),
            fun=float(fun),
            gap=gap,
            certified=math.isfinite(gap),
            success=self.status == Status.CONVERGED,
            status=self.status,
            message=self.status.message,
            nit=self.nit,
            time=self.elapsed,
            trace=self.trace,
            error=self.error,
        )


def _print_row(trace: Trace, *, header: bool) -> None:
    if header:
        sys.stdout.write("  ".join(f"{name:>11}" for name in trace.columns) + "\n")
    sys.stdout.write("  ".join(f"{value:11.5g}" for value in trace.last.values()) + "\n")
    sys.stdout.flush()
