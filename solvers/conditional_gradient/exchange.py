"""The exchange of units in a full model, to leave the poor local minima in which joint refits of few units end."""

from __future__ import annotations

import math
from typing import Any

from mopn.solvers.conditional_gradient.proofs import Selection
from mopn.solvers.interface import AtOutputs, Corrective, CorrectivePoint, Monitor
from mopn.solvers.result import Status

__all__ = ["FEW_UNITS", "Exchange", "without_least_unit"]

# An exchange pays if it lowers the objective by this fraction, and none is tried unless the estimated gap is more than
# this fraction of it.
_PAYS, _WIDE = 0.01, 0.5
# Local minima of refits of both layers are far apart up to so many units; with more, each of them is good.
FEW_UNITS = 10


class Exchange:
    """Puts the best atoms into a polished model: in place of its smallest unit, or, if that did not pay, beside all.

    In place of one unit often comes what that one was, as the others hold the place open. So as many units as there are
    enter beside them, refits of which seldom end in poor minima, and the next polish takes the worst out again. The run
    ends when this does not pay, either.
    """

    def __init__(self, problem: Corrective, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.fun, self.paid = math.inf, True

    def __call__(
        self, point: CorrectivePoint, at: AtOutputs, selection: Selection
    ) -> tuple[CorrectivePoint, AtOutputs, Any]:
        """Return the point that units enter, its gradient, and the units; or end the run."""
        pays = at.value <= (1.0 - _PAYS) * self.fun
        if not (0 < point.n_units <= FEW_UNITS and (pays or self.paid) and selection.estimate > _WIDE):
            self.monitor.stop(Status.MAX_UNITS)
        self.fun, self.paid, count = min(self.fun, at.value), pays, point.n_units
        if pays:
            point, count = point.without_smallest_unit(), 1
            at = self.problem.output_gradient(point)
        units = self.problem.select_units(point, at, selection.atoms, count, fill=True, seed=self.monitor.seed)
        return point, at, units


def without_least_unit(problem: Corrective, point: CorrectivePoint) -> CorrectivePoint:
    """Return the point without the unit whose absence raises the objective least."""
    rests = map(point.without_unit, range(point.n_units))
    return min(rests, key=lambda rest: problem.output_gradient(rest).value)
