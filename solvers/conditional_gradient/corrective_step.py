"""The interface of corrections: the part of Algorithm 1 that improves the weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mopn.solvers.conditional_gradient.proofs import Selection
from mopn.solvers.conditional_gradient.schedule import Schedule
from mopn.solvers.interface import SMOOTH, Form, Monitor, Solver
from mopn.solvers.lbfgs import LBFGS
from mopn.solvers.result import Status
from mopn.solvers.tools.members import data_member


class CorrectiveStep(ABC):
    """The options of a correction; ``begin`` returns the :class:`CorrectiveRun` of one run."""

    # The solver that takes a correction: messages name it where a correction is given in place of a solver.
    taken_by = "ConditionalGradient"
    # Names of the oracles that a problem must offer.
    needs: frozenset[str]
    # Number of units that it adds in a round; None leaves it to the schedule.
    units_per_round: int | None = None

    @data_member
    def can_move_units(self) -> bool:
        """Whether the correction optimises the units too; then many may enter at once, and random ones serve."""
        return False

    @abstractmethod
    def begin(self, problem: Any, monitor: Monitor, schedule: Schedule) -> CorrectiveRun:
        """Return the correction of one run, which may keep a state from round to round."""


class CorrectiveRun(ABC):
    """The correction of one run."""

    # Whether units enter with weights that are not zero, so that a polish may follow in the same round.
    inserts_by_line_search = False
    # Whether the purpose of the run is a model. A sample may tell its units; ``settle`` then fits it to all rows.
    fits_a_model = False
    # Tolerance of the fit in ``start``.
    start_tol = 1e-6
    # Largest number of iterations of this fit, as for a polish.
    start_iter = 500

    def __init__(self, problem: Any, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor

    def start(self, point: Any) -> Any:
        """Fit the linear term of an empty point; units then fit the residual."""
        if "corrective" not in self.problem.oracles or point.n_units or not point.extra_size:
            return point
        return self._refit(point, SMOOTH, LBFGS(), self.start_tol, self.start_iter)

    def _refit(self, point: Any, form: Form, solver: Solver[Any], tol: float, max_iter: int) -> Any:
        """Return the point after a refit of both layers, or of the linear term, in this form."""
        joint = self.problem.joint(point, form)
        refit = self.monitor.solve(joint, solver, start=None, tol=tol, max_iter=max_iter)
        return point.with_layers(refit)

    def settle(self, point: Any) -> Any:
        """Fit the model that was found on a sample to all rows, without an exchange of units."""
        raise NotImplementedError

    def set_target(self, selection: Selection) -> None:  # noqa: B027
        """Receive the round's gap before units enter; refits choose their tolerance by it."""

    def tighten(self) -> None:  # noqa: B027
        """Make the next refits tighter: the objective has levelled off, and the gap is not proven."""

    @abstractmethod
    def insert(self, point: Any, at: Any, units: Any) -> Any:
        """Return the point with new units, chosen for the gradient ``at``."""

    def exchange(self, point: Any, at: Any, selection: Selection) -> Any:
        """Return a polished point with more units than the model may have, for another polish; or end the run."""
        self.monitor.stop(Status.MAX_UNITS)

    @abstractmethod
    def improve(self, point: Any) -> Any:
        """Correct the weights between rounds."""

    @abstractmethod
    def polish(self, point: Any) -> Any:
        """Correct the weights of a full model to a tight tolerance, or end the run."""
