"""The exchange of units in a full model, to leave the poor local minima in which joint refits of few units end."""

from __future__ import annotations

import math

from mopn.solvers.conditional_gradient.proofs import Selection
from mopn.solvers.interface import AtOutputs, Corrective, CorrectivePoint, Monitor
from mopn.solvers.result import Status

__all__ = ["FEW_UNITS", "Exchange"]

# The run goes on while each exchange lowers the objective by this fraction, and while the estimated gap is more than
# this fraction of it.
_PAYS, _WIDE = 0.01, 0.5
# Local minima of refits of both layers are far apart up to so many units; with more, each of them is good.
FEW_UNITS = 10


class Exchange:
    """Takes the smallest unit out of a polished model, so that the best atom enters and the model is polished again.

    The unit must be worth less than the estimated gap, which is all that an exchange can gain.
    """

    def __init__(self, problem: Corrective, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.fun = math.inf

    def __call__(
        self, point: CorrectivePoint, at: AtOutputs, selection: Selection
    ) -> tuple[CorrectivePoint, AtOutputs]:
        """Return the point without its smallest unit, and its gradient; or end the run, as no exchange pays."""
        pays = at.value <= (1.0 - _PAYS) * self.fun
        if not (0 < point.n_units <= FEW_UNITS and pays and selection.estimate > _WIDE):
            self.monitor.stop(Status.MAX_UNITS)
        self.fun = at.value
        rest = point.without_smallest_unit()
        without = self.problem.output_gradient(rest)
        if without.value - at.value > selection.estimate * abs(at.value):
            self.monitor.stop(Status.MAX_UNITS)
        return rest, without
