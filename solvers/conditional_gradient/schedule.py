"""How many units conditional gradient adds a round, and when there are enough: two schedules, for two purposes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

__all__ = ["SCHEDULES", "Fill", "Grow", "Schedule"]

# Units a round: at least so many, and this part of those that are there.
_ATOMS, _GROWTH = 5, 0.1
# Refits of both layers take as many as there are, but no more than this: more would slow them down.
_MOST = 50
# Where the weights of a unit cannot rotate, this part of max_units.
_CHOSEN = 0.25
# A run may try so many times max_units units in all; it goes on after a polish that leaves this part of them at most.
_TRIED, _ROOM = 2, 0.5


class Schedule(ABC):
    """Counts the units of a run against ``max_units``, a limit under every schedule.

    Parameters
    ----------
    max_units : int or None
    atoms_per_round : int or None
        The user's own number of units a round.
    can_move_units : bool
        Whether refits move units after they have entered.
    """

    # Whether the run is after a model rather than a proof.
    after_a_model: bool

    def __init__(self, max_units: int | None, atoms_per_round: int | None, can_move_units: bool) -> None:
        self.max_units, self.atoms_per_round, self.can_move_units = max_units, atoms_per_round, can_move_units
        self.tried = 0

    def choose(self, problem: Any, point: Any, at: Any, atoms: Any) -> Any:
        """Return the new units of a round."""
        if self.atoms_per_round == 1:
            self.tried += 1
            return atoms.basis[:1]
        room = math.inf if self.max_units is None else self.max_units - point.n_units
        count, fill = self._wanted(point.n_units, room, problem.can_rotate_units)
        if self.atoms_per_round is not None:
            count, fill = self.atoms_per_round, False
        units = problem.select_units(point, at, atoms, int(min(count, room)), fill=fill)
        self.tried += len(units)
        return units

    def is_full(self, n_units: int, *, polished: bool) -> bool:
        """Whether no more units may be added; a polish that drops many of them makes room."""
        if self.max_units is None:
            return False
        return n_units >= (_ROOM if polished else 1.0) * self.max_units or self.tried >= _TRIED * self.max_units

    @abstractmethod
    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        """Return how many units to add, and whether others may stand in for atoms where those are too few."""

    @abstractmethod
    def refit_iterations(self, short: int, long: int) -> int:
        """Return the largest number of iterations of a refit between rounds."""


class Grow(Schedule):
    """Units enter as the gap asks for them: for a proof.

    Its cost is rounds, as each needs a new bound on all units: so several units enter a round, and where both layers
    are refitted the refits are long, as nothing comes after them.
    """

    after_a_model = False

    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        if self.can_move_units:
            return min(max(_ATOMS, n_units), _MOST), False
        return max(_ATOMS, int(_GROWTH * n_units)), False

    def refit_iterations(self, short: int, long: int) -> int:
        """Long refits where units move: nothing comes after them."""
        return long if self.can_move_units else short


class Fill(Schedule):
    """``max_units`` enter as early as they can: for the best model of that size.

    Its cost is refits. Units that a refit can move and rotate enter all at once, random ones among them, and one long
    refit makes the model; where weights cannot rotate (one output a unit, or two outputs), units must be chosen as the
    fit goes on, a part of them a round. Units that stay where they are must each be worth their place: few a round.
    """

    after_a_model = True

    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        if not self.can_move_units:
            return max(1, int(_GROWTH * n_units)), False
        if can_rotate:
            return room, True
        assert self.max_units is not None
        return math.ceil(_CHOSEN * self.max_units), False

    def refit_iterations(self, short: int, long: int) -> int:
        """Short ones: the polish follows soon."""
        return short


SCHEDULES: dict[str, type[Schedule]] = {"grow": Grow, "fill": Fill}
