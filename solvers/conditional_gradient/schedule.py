"""The number of units that conditional gradient adds in a round, and when the model is full: two schedules."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Literal

__all__ = ["SCHEDULES", "Fill", "Grow", "Schedule", "ScheduleName"]

ScheduleName = Literal["grow", "fill"]

# Units added in a round: at least this many, and this fraction of the present units.
_MIN_UNITS, _GROWTH = 5, 0.1
# If the weights of a unit cannot rotate, "fill" adds this fraction of max_units in a round.
_FILL_FRACTION = 0.25
# A run may try this multiple of max_units candidates. It goes on after a polish that leaves less than this fraction of
# max_units.
_MAX_TRIED, _LEFT_BY_POLISH = 2, 0.5


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
        count, fill = self._wanted(point.n_units, room, problem.can_rotate_units)
        if self.atoms_per_round is not None:
            count, fill = self.atoms_per_round, False
        units = problem.select_units(point, at, atoms, int(min(count, room)), fill=fill, seed=seed)
        self.tried += len(units)
        return units

    def is_full(self, n_units: int, *, polished: bool) -> bool:
        """Whether no more units may be added; a polish that leaves fewer than half of ``max_units`` makes room."""
        if self.max_units is None:
            return False
        limit = (_LEFT_BY_POLISH if polished else 1.0) * self.max_units
        return n_units >= limit or self.tried >= _MAX_TRIED * self.max_units

    @abstractmethod
    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        """Return how many units to add, and whether to fill up with other units if there are too few atoms."""

    @abstractmethod
    def refit_iterations(self, short: int, long: int) -> int:
        """Return the largest number of iterations of a refit between rounds."""


class Grow(Schedule):
    """For a small proven gap: a few units enter in every round.

    Rounds are expensive, as each needs a new bound on all units. So several units enter in a round, and refits of both
    layers are long, since no polish follows them.
    """

    fits_a_model = False

    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        if self.can_move_units:
            return max(_MIN_UNITS, n_units), False
        return max(_MIN_UNITS, int(_GROWTH * n_units)), False

    def refit_iterations(self, short: int, long: int) -> int:
        """Long refits if they move units, as no polish follows."""
        return long if self.can_move_units else short


class Fill(Schedule):
    """For the best model with ``max_units`` units: they enter as early as possible.

    Refits are expensive. If refits move the units and can rotate their weights, all units enter in the first round,
    with random ones if there are too few atoms, and one long refit follows; of a generous ``max_units``, as many as the
    problem says that a refit can use. If the weights cannot rotate (one output for each unit, or two outputs in all), a
    fraction of the units enters in each round, selected by the new gradient. If refits do not move the units, each unit
    must be a good choice, so few enter in a round. Few units that refits can move are then exchanged; see
    :mod:`mopn.solvers.conditional_gradient.exchange`.
    """

    fits_a_model = True

    def _wanted(self, n_units: int, room: float, can_rotate: bool) -> tuple[float, bool]:
        if not self.can_move_units:
            return max(1, int(_GROWTH * n_units)), False
        if can_rotate:
            return room, True
        assert self.max_units is not None
        return math.ceil(_FILL_FRACTION * self.max_units), False

    def refit_iterations(self, short: int, long: int) -> int:
        """Short refits, as the polish follows soon."""
        return short


SCHEDULES: dict[ScheduleName, type[Schedule]] = {"grow": Grow, "fill": Fill}
