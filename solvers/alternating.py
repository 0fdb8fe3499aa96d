"""Alternating least squares over two factors, whose rank grows as the residuals ask for, with a proven gap."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.solvers.interface import Alternating, Measure, Monitor, Solver
from mopn.solvers.numerics.precision import NOISE
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import check_flag, check_options, count

# Tolerance, relative, from which on single precision is enough.
_SINGLE_TOL = 1e-5
# Decrease of the objective in a sweep, relative, below which single precision ends: its rounding errors.
_LEAST_SINGLE_DECREASE = 1e-7
# A proof begins at this part of the tolerated gap, or of the estimate at the proof before: it takes as long as twenty
# sweeps, and finds some units that the estimate misses.
_PROVEN_FROM = 0.4
# Part of the tolerated gap that a missing unit may leave.
_LEAST_GAP_OF_UNIT = 1e-2


@dataclass(frozen=True)
class AlternatingLeastSquares(Solver[Alternating]):
    """Minimise over one factor and the other in turn, nearly; units enter while their slopes exceed the strength.

    A sweep has a least-squares problem for each row of both factors (Hu, Koren and Volinsky, ICDM 2008). Some steps of
    conjugate gradients from the row before are as good as its solution, and quicker (Takács, Pilászy and Tikk, RecSys
    2011). Units are the columns of the factors. A sweep looks for more of them first, by Lanczos steps on the
    residuals; units that become zero leave. The trace has a column ``estimated_gap``, from singular values as found,
    and ``n_units``.

    Parameters
    ----------
    max_units : int, optional
        Largest number of units, the rank; default as many as the strength allows.
    first_units : int, default 32
        Units that enter at a time, at most, and directions from which they are sought.
    prove : bool, default True
        Whether the gap is proven, when it is estimated to be small enough and at the end; else a run ends as
        ``ESTIMATED``, and ``mopn.certify`` may prove the gap later.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from scipy import sparse
    >>> likes = sparse.csr_array((np.random.default_rng(0).random((50, 20)) < 0.3).astype(float))
    >>> problem = mopn.ImplicitProblem(likes, mopn.Ratio(0.2))
    >>> mopn.minimize(problem, mopn.solvers.AlternatingLeastSquares(), tol=1e-6).status.name
    'CONVERGED'
    """

    max_units: int | None = None
    first_units: int = 32
    prove: bool = True
    needs = frozenset({"alternating"})

    def __post_init__(self) -> None:
        check_options(self, max_units=count().or_none(), first_units=count(), prove=check_flag)

    def run(self, problem: Alternating, start: Any, monitor: Monitor) -> None:
        """Do sweeps until the monitor ends the run."""
        _Run(self, problem, monitor).do(start)

    def measure(self, problem: Alternating, point: Any) -> Measure:
        """Objective and proven lower bound of the final point; without ``prove`` the objective alone."""
        return problem.measure(point) if self.prove else Measure(problem.evaluate(point).value)


class _Run:
    """The state of one run."""

    def __init__(self, solver: AlternatingLeastSquares, problem: Alternating, monitor: Monitor) -> None:
        self.solver = solver
        self.problem = problem
        self.monitor = monitor
        self.single = problem.allows_single and monitor.tol >= _SINGLE_TOL
        self.most_units = math.inf if solver.max_units is None else solver.max_units
        self.grows = True
        self.probes: Any = solver.first_units
        self.tried_gap = math.inf
        # Decrease of the objective in a sweep, relative, from which on the gap may be as small as the tolerance.
        self.near = max(monitor.tol, NOISE)

    def do(self, point: Any) -> None:
        """Do sweeps without an end."""
        at = self.problem.evaluate(point)
        decrease = math.inf
        while True:
            self.monitor.check_finite(at.value)
            levelled = decrease <= NOISE * abs(at.value)
            estimate = self._estimate(point, at, decrease)
            self._report(point, at, estimate, levelled=levelled)
            room = max(self.most_units - point.n_units, 0)
            if estimate is not None:
                self.grows = estimate.units.n_units > 0 and room > 0
            if levelled and not self.grows:
                self.monitor.stop(Status.STALLED)
            following = point
            if self.grows and estimate is not None:
                following = self.problem.with_units(point, estimate.units, min(room, estimate.units.n_units))
            following = self.problem.sweep(following, single=self.single)
            at_following = self.problem.evaluate(following)
            decrease = at.value - at_following.value
            if self.single and not decrease > _LEAST_SINGLE_DECREASE * abs(at.value):
                # Rounding errors are all that is left to single precision.
                self.single = False
                decrease = math.inf
                if not at_following.value < at.value:
                    continue
            point = following
            at = at_following

    def _estimate(self, point: Any, at: Any, decrease: float) -> Any:
        """Return an estimate of the gap where it may be small, or new units are to enter; else None."""
        is_near = decrease <= self.near * abs(at.value)
        if not is_near and not self.grows:
            return None
        least = _LEAST_GAP_OF_UNIT * max(self.monitor.tol, NOISE) * abs(at.value)
        estimate = self.problem.estimate(point, at, self.probes, least, self.monitor.seed)
        # The next search goes on from these directions.
        self.probes = estimate.probes[:, : self.solver.first_units]
        if is_near and not estimate.units.n_units:
            # Without new units the gap falls about as the decrease does.
            gap = max(at.value - estimate.lower, 0.0)
            goal = max(self.monitor.tol, NOISE) * abs(at.value)
            self.near = max(NOISE, decrease / max(gap, goal) * max(self.monitor.tol, NOISE))
        return estimate

    def _report(self, point: Any, at: Any, estimate: Any, *, levelled: bool) -> None:
        """Tell the monitor of a point, with a proof where the estimate promises success."""
        columns: dict[str, Any] = {"n_units": point.n_units}
        goal = self.monitor.tol * abs(at.value)
        if estimate is None:
            self.monitor(point, fun=at.value, **columns)
            return
        gap = max(at.value - estimate.lower, 0.0)
        columns["estimated_gap"] = gap
        promising = gap <= _PROVEN_FROM * min(goal, self.tried_gap)
        if self.solver.prove and (promising or levelled):
            self.tried_gap = gap
            columns["dual"] = self.problem.dual(point, at, goal, self.monitor.failure_budget)
            columns["lower"] = columns["dual"].lower
            # The last directions of the proof may be units that are missing.
            self.probes = np.hstack([self.probes, columns["dual"].vectors])[:, -self.solver.first_units :]
            columns["rounding"] = self.problem.rounding(point, at)
        self.monitor(point, fun=at.value, **columns)
        if gap <= goal and not self.solver.prove:
            self.monitor.stop(Status.ESTIMATED)
