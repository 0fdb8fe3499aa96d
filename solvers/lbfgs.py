"""L-BFGS for smooth problems, with or without bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from mopn.solvers.interface import Monitor, Smooth, Solver
from mopn.solvers.numerics.plateau import Plateau, negligible_decrease
from mopn.solvers.numerics.quasi_newton import quasi_newton
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import check_nonnegative, check_options, count

# The default number of correction pairs, the least number, and the bytes that more than these may take.
_PAIRS, _MIN_PAIRS, _BYTES = 20, 10, 1 << 24
# A quasi-Newton step pays if it promises this part of the tolerance, which is for ten steps.
_PROMISED = 1e-3


@dataclass(frozen=True)
class LBFGS(Solver[Smooth]):
    """Limited-memory BFGS (Nocedal, 1980), with weak Wolfe steps; within bounds by projection (Bertsekas, 1982).

    The iterates are those of :func:`mopn.solvers.numerics.quasi_newton.quasi_newton`.

    Parameters
    ----------
    memory : int, optional
        Number of correction pairs kept. Default 20, but no more than fit in 16 MiB, and at least 10: a step reads all
        pairs, and outside the cache this takes longer than the iterations that more pairs save.
    gtol : float, default 1e-8
        The run also ends when minus the inner product of the gradient and the quasi-Newton step is at most ``gtol**2``
        times ``abs(fun)``, whatever the units of the data. Without a certificate the run has then converged, and also
        when ten iterations together decrease the objective by less than ``tol``, relative.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.FactorizationProblem(X, X[:, 0] * X[:, 1], n_components=2, beta=0.1)
    >>> mopn.minimize(problem, mopn.solvers.LBFGS(), tol=1e-6).status.name
    'CONVERGED'
    """

    memory: int | None = None
    gtol: float = 1e-8
    needs = frozenset({"gradient"})
    # Whether points and gradients are on a grid.
    coarse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self, memory=count().or_none(), gtol=check_nonnegative)

    def run(self, problem: Smooth, start: Any, monitor: Monitor) -> None:
        """Iterate until the monitor ends the run."""
        levelled_off = Plateau(monitor.tol)
        start_fun = math.nan
        parts = problem.bounds, problem.scales, partial(problem.metric, tol=monitor.tol)
        iterates = quasi_newton(problem.value_gradient, start, self._pairs(start), *parts, coarse=self.coarse)
        for x, at, decrease in iterates:
            start_fun = at.value if math.isnan(start_fun) else start_fun
            lower = problem.dual_bound(at)
            certified = math.isfinite(lower)
            monitor(x, fun=at.value, lower=lower)
            if not certified and monitor.tol > 0:
                # A step that promises next to nothing ends the run before the search for it meets rounding errors.
                if levelled_off(at.value) or decrease <= _PROMISED * monitor.tol * abs(at.value):
                    monitor.stop(Status.CONVERGED)
            if decrease <= negligible_decrease(self.gtol, at.value, start_fun):
                monitor.stop(Status.STALLED if certified else Status.CONVERGED)
        monitor.stop(Status.STALLED)

    def _pairs(self, start: Any) -> int:
        if self.memory is not None:
            return self.memory
        return min(_PAIRS, max(_MIN_PAIRS, _BYTES // (2 * max(start.nbytes, 1))))


@dataclass(frozen=True)
class CoarseLBFGS(LBFGS):
    """The same on a grid, so that rounding errors do not choose between local minima; for ``tol >= 1e-6``."""

    coarse: ClassVar[bool] = True
