"""The schedules, which count units and know no problem but one that has as many as they ask for."""

import itertools
from types import SimpleNamespace

import pytest

from mopn.solvers.conditional_gradient.schedule import SCHEDULES, Fill, Grow

UNITS = 1000


class Plenty:
    """Offers many units, or ``offered`` of them: what ``select_units`` returns is how many were asked for."""

    def __init__(self, can_rotate_units=True, offered=UNITS):
        self.can_rotate_units, self.offered, self.filled = can_rotate_units, offered, []

    def select_units(self, point, at, atoms, most, *, fill=False, seed=0):
        assert isinstance(most, int)
        self.filled.append(fill)
        return atoms.basis[: most if fill else max(1, min(most, self.offered))]


def choose(schedule, problem, n_units):
    return schedule.choose(problem, SimpleNamespace(n_units=n_units), None, SimpleNamespace(basis=range(UNITS)))


def rounds(schedule, problem, start=0):
    """Return the numbers of units of a run until it is full."""
    sizes = [start]
    while not schedule.is_full(sizes[-1], polished=False) and len(sizes) < 200:
        sizes.append(sizes[-1] + len(choose(schedule, problem, sizes[-1])))
    return sizes


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("per_round", [None, 1, 3, 40])
def test_max_units_is_a_limit(kind, per_round):
    for most, moves, rotates, offered, start in itertools.product(
        (1, 2, 7, 30), (False, True), (False, True), (1, 2, UNITS), (0, 1, 5)
    ):
        sizes = rounds(SCHEDULES[kind](most, per_round, moves), Plenty(rotates, offered), start)
        assert sizes[-1] == max(most, start)
        assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("per_round", [1, 2])
def test_twice_max_units_are_tried(kind, per_round):
    """Refits may drop units as fast as they enter: the run ends all the same."""
    schedule, problem, tried = SCHEDULES[kind](4, per_round, True), Plenty(), 0
    while not schedule.is_full(0, polished=True):
        tried += len(choose(schedule, problem, 0))
    assert tried == 8
    assert schedule.is_full(0, polished=False)


@pytest.mark.parametrize(
    ("schedule", "n_units", "expected"),
    [
        # As many as there are, of units that move.
        *((Grow(None, None, True), n_units, n_units) for n_units in (20, 300)),
        # As many as the user wants.
        *((kind(100, k, move), 0, k) for kind in (Grow, Fill) for k in (2, 7) for move in (False, True)),
    ],
)
def test_units_of_a_round(schedule, n_units, expected):
    problem = Plenty()
    assert list(choose(schedule, problem, n_units)) == list(range(expected))
    assert problem.filled == [False]


@pytest.mark.parametrize(("schedule", "least"), [(Grow(None, None, False), 2), (Fill(1000, None, False), 1)])
def test_more_units_enter_as_there_are_more(schedule, least):
    """A fraction of the units, if they stay where they are."""
    sizes = [len(choose(schedule, Plenty(), n_units)) for n_units in (0, 5, 100, 200, 400)]
    assert sizes == sorted(sizes)
    assert sizes[0] >= least
    assert sizes[2] < sizes[3] < sizes[4] <= 200


def test_fill_takes_all_units_at_once_that_a_refit_can_rotate():
    problem = Plenty(can_rotate_units=True, offered=2)
    assert len(choose(Fill(30, None, True), problem, 4)) == 26
    assert problem.filled == [True]


def test_fill_takes_equal_parts_of_units_whose_weights_it_cannot_rotate():
    problem = Plenty(can_rotate_units=False)
    *sizes, last = rounds(Fill(30, None, True), problem)
    assert len(sizes) > 1
    assert sizes == [number * sizes[1] for number in range(len(sizes))]
    assert last == 30
    assert not any(problem.filled)
