"""Coordinate descent: minimisation, of the objective or of an upper bound, along one coordinate after the other."""

import math
from dataclasses import dataclass
from typing import Any

from mopn.solvers.interface import Blockwise, Monitor, Solver
from mopn.solvers.numerics.precision import Plateau, negligible_decrease
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import check_nonnegative, check_options, count


@dataclass(frozen=True)
class CoordinateDescent(Solver[Blockwise]):
    """Cyclic coordinate descent (Bertsekas, Nonlinear Programming, section 2.7); the objective never increases.

    An iteration is an epoch, one update of every coordinate. The run ends when no step of an epoch decreases the
    objective any more: when the largest product of a derivative and the step along its coordinate is at most
    ``gtol**2`` times ``abs(fun)``. This does not depend on the units of the data. The run also ends when
    ten epochs together decrease the objective by less than ``tol``, relative. There is no certificate. The trace has a
    column ``decrease``, the largest product.

    Parameters
    ----------
    n_threads : int, default 1
        Number of threads for groups of columns that have no row in common, such as one-hot fields. The iterates do not
        depend on it, to the last bit.
    gtol : float, default 1e-8
        Tolerance of the derivatives, for coordinates in whose unit the curvature of the objective is ``abs(fun)``.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.FactorizationProblem(X, X[:, 0] * X[:, 1], n_components=2, beta=0.1)
    >>> mopn.minimize(problem, mopn.solvers.CoordinateDescent(), tol=1e-6).status.name
    'CONVERGED'
    """

    n_threads: int = 1
    gtol: float = 1e-8
    needs = frozenset({"blocks"})

    def __post_init__(self) -> None:
        check_options(self, n_threads=count(), gtol=check_nonnegative)

    def run(self, problem: Blockwise, start: Any, monitor: Monitor) -> None:
        """Do epochs until the monitor ends the run."""
        blocks = problem.blocks(start, self.n_threads)
        levelled_off = Plateau(monitor.tol)
        fun = blocks.value()
        start_fun = fun
        decrease = math.nan
        while True:
            monitor(blocks.point(), fun=fun, decrease=decrease)
            is_stationary = decrease <= negligible_decrease(self.gtol, fun, start_fun)
            if is_stationary or (monitor.tol > 0 and levelled_off(fun)):
                monitor.stop(Status.CONVERGED)
            decrease = max(update() for update in blocks.updates)
            fun = blocks.value()
