"""Schedules of units: their number in each round of conditional gradient, the end, and the exchange of units."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Literal

from mopn.solvers.interface import AtOutputs, Corrective, CorrectivePoint, Monitor
from mopn.solvers.result import Status

ScheduleName = Literal["grow", "fill"]

# Least number of units added in a round.
_LEAST_UNITS_PER_ROUND = 5
# Units added in a round, relative to the present units, where these do not move.
_GROWTH = 0.1
# Units that "fill" adds in a round, relative to max_units, if the weights of a unit cannot rotate.
_FILL_FRACTION = 0.25
# Largest number of candidates that a run tries, relative to max_units.
_MOST_TRIED = 2
# Fraction of max_units that a polish must leave to end the run; below it, more units are added.
_LEFT_BY_POLISH = 0.5
# Relative decrease of the objective from which an exchange pays.
_LEAST_GAIN_OF_EXCHANGE = 0.01
# Estimated gap, relative to the objective, above which an exchange is tried.
_LEAST_GAP_OF_EXCHANGE = 0.5
# Units up to which local minima of refits of both layers are far apart; with more units, each minimum is good.
FEW_UNITS = 10


class Schedule(ABC):
    """Decides how many units enter in a round; ``max_units`` is a limit for every schedule."""

    # Whether the purpose of the run is a model rather than a proof.
    fits_a_model: bool

    def __init__(self, max_units: int | None, atoms_per_round: int | None, can_move_units: bool) -> None:
        self.max_units, self.atoms_per_round, self.can_move_units = max_units, atoms_per_round, can_move_units
        self.tried = 0

    def choose(self, problem: Any, point: Any, at: Any, atoms: Any, seed: int = 0) -> Any:
        """Return the new units of a round."""
        if self.atoms_per_round == 1:
            self.tried += 1
            return atoms.basis[:1]
        room = math.inf if self.max_units is None else self.max_units - point.n_units
        count: float
        if self.atoms_per_round:
            count, fill = self.atoms_per_round, False
        else:
            count, fill = self._wanted(point.n_units, room, problem.can_rotate_units)
        units = problem.select_units(point, at, atoms, int(min(count, room)), fill=fill, seed=seed)
        self.tried += len(units)
        return units

    def is_full(self, n_units: int, *, polished: bool) -> bool:
        """Whether no more units may be added; a polish that leaves fewer than half of ``max_units`` makes room."""
        if self.max_units is None:
            return False
        fraction = _LEFT_BY_POLISH if polished else 1.0
        return n_units >= fraction * self.max_units or self.tried >= _MOST_TRIED * self.max_units

    @abstractmethod
    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        """Return the number of units to add, and whether other units make up for too few atoms."""


class Grow(Schedule):
    """For a small proven gap: several units enter in every round, as each needs an expensive bound on all units."""

    fits_a_model = False

    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        growth = n_units if self.can_move_units else int(_GROWTH * n_units)
        return max(_LEAST_UNITS_PER_ROUND, growth), False


class Fill(Schedule):
    """For the best model with ``max_units`` units: they enter as early as possible, as refits are expensive.

    If refits move the units and can rotate their weights, all units enter in the first round, with random ones if there
    are too few atoms, and one long refit follows. If ``max_units`` is large, only as many enter as a refit can use,
    which the problem knows. If the weights cannot rotate (one output for each unit, or two outputs in all), a fraction
    of the units enters in each round, selected by the new gradient. If refits do not move the units, each unit must be
    a good choice, so few enter in a round. Few units that refits can move are then exchanged; see :class:`Exchange`.
    """

    fits_a_model = True

    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        if not self.can_move_units:
            return max(1, int(_GROWTH * n_units)), False
        if can_rotate:
            return room, True
        assert self.max_units is not None
        return math.ceil(_FILL_FRACTION * self.max_units), False


SCHEDULES: dict[ScheduleName, type[Schedule]] = {"grow": Grow, "fill": Fill}


class Exchange:
    """Leaves poor local minima of few units: atoms enter a polished model, and the next polish takes the worst out.

    One atom replaces the smallest unit. Often that brings back the same unit, as the others hold its place open. If it
    did not pay, as many atoms as there are units join them: refits of twice as many seldom end in poor minima. The run
    ends when this does not pay, either.
    """

    def __init__(self, problem: Corrective, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        # The least objective so far, and whether the last exchange paid.
        self.fun = math.inf
        self.paid = True

    def __call__(
        self, point: CorrectivePoint, at: AtOutputs, atoms: Any, estimate: float
    ) -> tuple[CorrectivePoint, AtOutputs, Any]:
        """Return the point that units enter, its gradient, and the units; or end the run."""
        pays = at.value <= (1.0 - _LEAST_GAIN_OF_EXCHANGE) * self.fun
        may_pay = (pays or self.paid) and estimate > _LEAST_GAP_OF_EXCHANGE
        if not (may_pay and 0 < point.n_units <= FEW_UNITS):
            self.monitor.stop(Status.MAX_UNITS)
        self.fun = min(self.fun, at.value)
        self.paid = pays
        count = point.n_units
        if pays:
            point = point.without_smallest_unit()
            count = 1
            at = self.problem.output_gradient(point)
        units = self.problem.select_units(point, at, atoms, count, fill=True, seed=self.monitor.seed)
        return point, at, units
