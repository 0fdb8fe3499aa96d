"""Baselines of the papers, on the public interface: GECO, and both layers by L-BFGS from random units."""

from dataclasses import dataclass
from typing import Any

from mopn.solvers import LBFGS, Status
from mopn.solvers.interface import Corrective, Effort, Measure, Monitor, Solver


@dataclass(frozen=True)
class GECO(Solver[Corrective]):
    """Greedy efficient component optimisation (Shalev-Shwartz, Gonen and Shamir, ICML 2011): a baseline.

    Like conditional gradient with refits of the output layer, but without a regulariser: the problem must have
    ``strength=0``, and there is no certificate.
    """

    max_units: int | None = None
    oracle: Any = "auto"
    refit_tol: float = 1e-3
    refit_iter: int = 100

    needs = frozenset({"corrective"})

    def run(self, problem: Corrective, start: Any, monitor: Monitor) -> None:
        """Select a unit, then refit all weights without a regulariser, until the monitor ends the run."""
        if monitor.tol > 0 or problem.regularized:
            raise ValueError(
                "GECO minimises the losses alone, without a certificate: give strength=0, tol=0 and limits"
            )
        point, refit = start, LBFGS(gtol=self.refit_tol)
        oracle = problem.oracle(self.oracle, monitor.failure_budget, monitor.seed)
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
