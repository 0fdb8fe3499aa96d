"""L-BFGS: SciPy's L-BFGS-B behind the driver's monitor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import OptimizeResult
from scipy.optimize import minimize as scipy_minimize

from mopn.solvers.driver import Monitor
from mopn.solvers.interface import Solver
from mopn.solvers.plateau import Plateau
from mopn.solvers.result import Status

__all__ = ["LBFGS"]


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS with bounds (Byrd, Lu, Nocedal and Zhu, 1995), SciPy's implementation.

    Parameters
    ----------
    memory : int, default 10
        Number of correction pairs kept.
    gtol : float, default 1e-8
        The run also ends when the largest entry of the projected gradient is at most ``gtol`` times
        ``max(1, abs(fun))``, with fun at the start. Without a certificate that is convergence, and so are ten
        iterations that together decrease the objective by less than ``tol``, relative.
    """

    memory: int = 10
    gtol: float = 1e-8
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})

    def __post_init__(self) -> None:
        if not self.memory >= 1:
            raise ValueError(f"memory must be >= 1, got {self.memory!r}")
        if not self.gtol >= 0:
            raise ValueError(f"gtol must be >= 0, got {self.gtol!r}")

    def run(self, problem: Any, start: Any, monitor: Monitor) -> None:
        """Hand the loop to SciPy, which calls the monitor after every iteration."""
        certified = "dual" in problem.oracles
        levelled_off = Plateau(monitor.tol)
        latest = problem.value_gradient(start)

        def value_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal latest
            latest = problem.value_gradient(x)
            return latest.value, latest.gradient

        def report(intermediate_result: OptimizeResult) -> None:
            # The last evaluation is nearly always the accepted one; any dual point is proven, so only the gap's
            # tightness depends on it.
            gap = intermediate_result.fun - problem.dual_bound(latest) if certified else math.inf
            monitor(intermediate_result.x.copy(), fun=float(intermediate_result.fun), gap=gap)
            if not certified and monitor.tol > 0 and levelled_off(float(intermediate_result.fun)):
                monitor.stop(Status.CONVERGED)

        monitor(start, fun=latest.value, gap=latest.value - problem.dual_bound(latest) if certified else math.inf)
        options = {
            "maxcor": self.memory,
            "maxiter": monitor.max_iter + 1,
            "maxfun": np.iinfo(np.int32).max,
            "gtol": self.gtol * max(1.0, abs(latest.value)),
            "ftol": 0.0,
        }
        found = scipy_minimize(
            value_gradient, start, jac=True, method="L-BFGS-B", bounds=problem.bounds, callback=report, options=options
        )
        if found.status == 99:  # SciPy swallowed the monitor's StopIteration; the monitor holds the status
            raise StopIteration
        monitor.stop(Status.CONVERGED if found.success and not certified else Status.STALLED)
