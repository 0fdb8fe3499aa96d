"""L-BFGS on both layers from random units: the baseline without conditional gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.solvers.conditional_gradient.algorithm import record
from mopn.solvers.conditional_gradient.proofs import ProofBudget, check_certificate, measure
from mopn.solvers.conditional_gradient.refits import fit_rest, joint_tol
from mopn.solvers.conditional_gradient.schedule import Fill
from mopn.solvers.interface import SMOOTH, Corrective, Measure, Monitor, Solver
from mopn.solvers.lbfgs import LBFGS
from mopn.solvers.tools.checks import check_options, count

__all__ = ["RandomUnits"]

# Iterations of the last fit of what is beside the units.
_REST_ITER = 500


@dataclass(frozen=True)
class RandomUnits(Solver[Corrective]):
    """One refit of both layers by L-BFGS, from random units: the baseline without conditional gradient.

    No oracle selects units. The problem in units and weights is not convex, so the run ends at a local minimum. With
    many units that is often near the global one; the gap of the result tells how near: the oracle "auto" bounds all
    units once at the end, in the time that the refit took.

    L-BFGS ends when ten iterations together decrease the objective by less than ``0.003 min(tol, 1)**2``, relative,
    as the refits of :class:`mopn.solvers.FullRefit` do for a gap of ``tol``; or at a limit. To watch its iterations,
    give ``problem.joint(start)`` to :class:`mopn.solvers.LBFGS`.

    Parameters
    ----------
    n_units : int
        Number of random units k, drawn by ``mopn.minimize(rng=...)``. Those of a ``start`` join them.
    max_iter : int, default 1000
        Largest number of iterations of L-BFGS.

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
    max_iter: int = 1000
    needs = frozenset({"corrective"})

    def __post_init__(self) -> None:
        check_options(self, n_units=count(), max_iter=count())

    def run(self, problem: Corrective, start: Any, monitor: Monitor) -> None:
        """Refit both layers, and record the network with its gaps, as a round of conditional gradient does."""
        check_certificate(problem, monitor.tol)
        point = problem.with_random_units(start, self.n_units, np.random.default_rng(monitor.seed))
        joint, tol = problem.joint(point, SMOOTH), joint_tol(monitor.tol)
        point = point.with_layers(monitor.solve(joint, LBFGS(), start=None, tol=tol, max_iter=self.max_iter))
        if point.extra_size:
            point = fit_rest(problem, monitor, point, _REST_ITER)
        schedule = Fill(self.n_units, None, can_move_units=True)
        select = ProofBudget(problem, problem.oracle("auto", monitor.chance, monitor.seed), monitor, schedule)
        # A refit that ends at a limit may not have made up for what its random units cost.
        given, at = problem.output_gradient(start), problem.output_gradient(point)
        if given.value < at.value:
            point, at = start, given
        selection = select(point, at)
        times = {"oracle_time": select.oracle_time, "proof_time": select.proof_time}
        record(problem, point, at, selection, monitor, times)

    def measure(self, problem: Corrective, point: Any) -> Measure:
        """Objective from scratch; the driver has the bounds of the run."""
        return measure(problem, point)
