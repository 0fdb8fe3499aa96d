"""L-BFGS on both layers from random units: the baseline without conditional gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np

from mopn.solvers.checks import check_options, count
from mopn.solvers.conditional_gradient.algorithm import record
from mopn.solvers.conditional_gradient.proofs import ProofBudget, check_certificate, measure
from mopn.solvers.conditional_gradient.refits import fit_rest, joint_tol
from mopn.solvers.conditional_gradient.schedule import Fill
from mopn.solvers.interface import SMOOTH, Corrective, CorrectivePoint, Measure, Monitor, Smooth, Solver
from mopn.solvers.lbfgs import LBFGS
from mopn.solvers.numerics.generators import make_generator
from mopn.solvers.result import Result, Status

__all__ = ["RandomUnits"]

# Iterations of the last fit of what is beside the units.
_REST_ITER = 500


@dataclass(frozen=True)
class RandomUnits(Solver[Corrective]):
    """L-BFGS on both layers together, from random units: the baseline without conditional gradient.

    No oracle selects units, and none enter on the way. The problem in units and weights is not convex, so the run ends
    at a local minimum. With many units that is often near the global one; how near, the gap of the result tells: the
    oracle "auto" bounds all units once at the end, in the time that the run took. ``fun`` of the trace is the objective
    of the smooth form until then, which is never below that of the network.

    L-BFGS ends when ten iterations together decrease the objective by less than ``0.003 min(tol, 1)**2``, relative,
    as the refits of :class:`mopn.solvers.FullRefit` do for a gap of ``tol``; or at a limit. Out of time, the result has
    no gap; :func:`mopn.certify` can prove one later.

    Parameters
    ----------
    n_units : int
        Number of random units k. Those of a ``start`` join them.
    rng : Generator, int or None, default 0
        For the units and their weights; see ``mopn.minimize(rng=...)``.

    Raises
    ------
    ValueError
        For options that are out of range, and if nothing is regularized but ``tol`` is positive: there is no gap then.
    TypeError
        If the problem does not offer the oracle "corrective", a refit of both layers.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> result = mopn.minimize(problem, mopn.solvers.RandomUnits(10), tol=1e-3)
    >>> result.status.name, bool(result.gap <= 1e-3 * result.fun)
    ('CONVERGED', True)

    Conditional gradient goes on from such a result, with the units that it lacks:

    >>> solver = mopn.solvers.ConditionalGradient("full")
    >>> mopn.minimize(problem, solver, start=result, tol=1e-5).success
    True
    """

    n_units: int
    rng: np.random.Generator | int | None = 0
    needs = frozenset({"corrective"})

    def __post_init__(self) -> None:
        check_options(self, n_units=count())
        make_generator(self.rng)

    def run(self, problem: Corrective, start: Any, monitor: Monitor) -> None:
        """Iterate until the objective levels off or the monitor ends the run."""
        check_certificate(problem, monitor.tol)
        start = problem.with_random_units(start, self.n_units, make_generator(self.rng))
        joint: Any = problem.joint(start, SMOOTH)
        along = _Points(joint, start, monitor)
        try:
            LBFGS().run(joint, joint.start(), cast(Monitor, along))
        except _LevelledOffError:
            point = along.point
            if point.extra_size:
                point = fit_rest(problem, monitor, point, _REST_ITER)
            self._certify(problem, point, monitor)

    def _certify(self, problem: Corrective, point: CorrectivePoint, monitor: Monitor) -> None:
        """Record the point with its gaps, as a round of conditional gradient for a model of so many units."""
        schedule = Fill(self.n_units, None, can_move_units=True)
        select = ProofBudget(problem, problem.oracle("auto"), monitor, schedule)
        at = problem.output_gradient(point)
        selection = select(point, at)
        times = {"oracle_time": select.oracle_time, "proof_time": select.proof_time}
        record(problem, point, at, selection, monitor, times)

    def failure(self, problem: Corrective) -> float:
        """Return that of the oracle."""
        return getattr(problem.oracle("auto"), "failure", 0.0)

    def measure(self, problem: Corrective, point: Any, seconds: float = math.inf) -> Measure:
        """Objective and proven gaps, by the oracle "auto"."""
        return measure(problem, point, problem.oracle("auto"), seconds)


class _LevelledOffError(Exception):
    """L-BFGS has no further to go."""


class _Points:
    """The monitor of L-BFGS, as far as it asks for one: it reports the points of the problem that its own stand for."""

    def __init__(self, joint: Smooth, start: CorrectivePoint, monitor: Monitor) -> None:
        self.joint, self.point, self.monitor = joint, start, monitor
        self.tol = joint_tol(monitor.tol)

    def __call__(self, x: np.ndarray, fun: float, gap: float = math.inf) -> None:
        self.point = self.point.with_layers(Result(self.joint.unpack(x)))
        self.monitor(self.point, fun=fun, n_units=self.point.n_units)

    def stop(self, status: Status) -> NoReturn:
        raise _LevelledOffError
