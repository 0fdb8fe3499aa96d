"""What the loop of conditional gradient asks of a correction: the part of Algorithm 1 that improves the weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mopn.solvers.conditional_gradient.proofs import Selection
from mopn.solvers.conditional_gradient.schedule import Schedule
from mopn.solvers.interface import SMOOTH, Monitor
from mopn.solvers.lbfgs import LBFGS

__all__ = ["Correction", "Corrector"]


class Correction(ABC):
    """Options of a correction."""

    @property
    @abstractmethod
    def needs(self) -> frozenset[str]:
        """Names of the oracles that a problem must offer."""

    @property
    @abstractmethod
    def can_move_units(self) -> bool:
        """Whether units move after they have entered: then many may enter at once, wherever they are."""

    @property
    def units_per_round(self) -> int | None:
        """Number of units that it takes a round; None for as many as the schedule says."""
        return None

    @abstractmethod
    def begin(self, problem: Any, monitor: Monitor, schedule: Schedule) -> Corrector:
        """Return the correction of one run, which may remember what it learns on the way."""


class Corrector(ABC):
    """The correction of one run."""

    # Whether units enter with some weight, so that a polish may follow at once.
    inserts_by_line_search = False
    # Of the fit of what an empty point has beside units: like that of a last refit.
    start_tol, start_iter = 1e-6, 500

    def __init__(self, problem: Any, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor

    def start(self, point: Any) -> Any:
        """Fit what an empty point has beside units, a linear term say, where the problem can: units fit the rest."""
        if "corrective" not in self.problem.oracles or point.n_units or not point.extra_size:
            return point
        joint = self.problem.joint(point, SMOOTH)
        return point.with_layers(
            self.monitor.solve(joint, LBFGS(), start=None, tol=self.start_tol, max_iter=self.start_iter)
        )

    def aim_at(self, selection: Selection) -> None:  # noqa: B027
        """Take notice of the gap that is left, where it matters."""

    @abstractmethod
    def insert(self, point: Any, at: Any, units: Any) -> Any:
        """Return the point with new units, chosen for the gradient ``at``."""

    @abstractmethod
    def improve(self, point: Any) -> Any:
        """Correct the weights, between rounds."""

    @abstractmethod
    def polish(self, point: Any) -> Any:
        """Correct the weights once more when all units are there, or end the run."""
