"""GECO, a baseline: units selected greedily, all weights refitted without a regulariser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mopn.solvers.interface import Corrective, Effort, Measure, Monitor, Solver
from mopn.solvers.lbfgs import LBFGS
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import check_options, check_positive, count

__all__ = ["GECO"]


@dataclass(frozen=True)
class GECO(Solver[Corrective]):
    """Greedy efficient component optimisation (Shalev-Shwartz, Gonen and Shamir, ICML 2011): a baseline.

    Like conditional gradient with refits of the output layer, but without a regulariser: the problem must have
    ``strength=0``, and there is no certificate.

    Parameters
    ----------
    max_units : int, optional
        Largest number of units; default no limit.
    oracle : str or oracle, default "auto"
        As for :class:`ConditionalGradient`.
    refit_tol : float, default 1e-3
        Tolerance ``gtol`` of the refits, which are by L-BFGS, relative to the objective at the start of each.
    refit_iter : int, default 100
        Largest number of iterations of a refit.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.0)
    >>> result = mopn.minimize(problem, mopn.solvers.GECO(max_units=3), tol=0)
    >>> len(result.basis), result.gap_is_proven
    (3, False)
    """

    max_units: int | None = None
    oracle: Any = "auto"
    refit_tol: float = 1e-3
    refit_iter: int = 100

    def __post_init__(self) -> None:
        check_options(self, max_units=count().or_none(), refit_tol=check_positive, refit_iter=count())

    @property
    def needs(self) -> frozenset[str]:
        """Problems of the losses alone whose weights can be refitted."""
        return frozenset({"corrective", "unregularized"})

    def run(self, problem: Corrective, start: Any, monitor: Monitor) -> None:
        """Select a unit, then refit all weights without a regulariser, until the monitor ends the run."""
        if monitor.tol > 0:
            raise ValueError(f"GECO has no certificate, so tol={monitor.tol} is never reached; give tol=0 and limits")
        point, refit = start, LBFGS(gtol=self.refit_tol)
        oracle = problem.oracle(self.oracle, monitor.chance, monitor.seed)
        while True:
            at = problem.output_gradient(point)
            atoms = problem.lmo(at, oracle, Effort(seconds=monitor.left))
            monitor(point, fun=at.value, n_units=point.n_units, value=atoms.values[0], bound=atoms.bound)
            if self.max_units is not None and monitor.nit >= self.max_units:
                monitor.stop(Status.MAX_UNITS)
            point = point.with_units(atoms.basis[:1])
            layer = monitor.solve(problem.output_layer(point), refit, start=point, tol=0.0, max_iter=self.refit_iter)
            point = point.with_layer(layer).drop_zero_units()

    def measure(self, problem: Corrective, point: Any) -> Measure:
        """Objective from scratch; no gap is known."""
        return Measure(problem.output_gradient(point.compact()).value)
