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
def test_after_a_polish_that_dropped_units_there_is_room_for_those(kind):
    schedule = SCHEDULES[kind](10, 8, True)
    choose(schedule, Plenty(), 0)
    assert schedule.is_full(10, polished=False)
    assert not schedule.is_full(9, polished=False)
    # Half of them, or fewer, make a round worth while.
    assert schedule.is_full(6, polished=True)
    assert schedule.is_full(5, polished=True)
    assert not schedule.is_full(4, polished=True)
    assert len(choose(schedule, Plenty(), 4)) == 6


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("per_round", [1, 2])
def test_twice_max_units_are_tried(kind, per_round):
    """Refits may drop units as fast as they enter: the run ends all the same."""
    schedule, problem, tried = SCHEDULES[kind](4, per_round, True), Plenty(), 0
    while not schedule.is_full(0, polished=True):
        tried += len(choose(schedule, problem, 0))
    assert tried == 8
    assert schedule.is_full(0, polished=False)


def test_without_a_limit_no_run_is_full():
    schedule = Grow(None, 50, True)
    for _ in range(10):
        choose(schedule, Plenty(), 10**6)
    assert not schedule.is_full(10**9, polished=False)
    assert not schedule.is_full(10**9, polished=True)


@pytest.mark.parametrize(
    ("can_move", "n_units", "expected"),
    [(False, 0, 5), (False, 50, 5), (False, 80, 8), (True, 0, 5), (True, 20, 20), (True, 300, 300)],
)
def test_grow_takes_several_units_and_more_as_there_are_more(can_move, n_units, expected):
    problem = Plenty()
    assert list(choose(Grow(None, None, can_move), problem, n_units)) == list(range(expected))
    assert problem.filled == [False]


@pytest.mark.parametrize(("n_units", "expected"), [(0, 1), (19, 1), (30, 3)])
def test_fill_takes_few_units_that_stay_where_they_are(n_units, expected):
    assert len(choose(Fill(100, None, False), Plenty(), n_units)) == expected


def test_fill_takes_all_units_at_once_that_a_refit_can_rotate():
    problem = Plenty(can_rotate_units=True, offered=2)
    assert len(choose(Fill(30, None, True), problem, 4)) == 26
    assert problem.filled == [True]


def test_fill_takes_a_quarter_a_round_of_units_whose_weights_it_cannot_rotate():
    problem = Plenty(can_rotate_units=False)
    assert rounds(Fill(30, None, True), problem) == [0, 8, 16, 24, 30]
    assert not any(problem.filled)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_the_users_number_of_units_a_round(kind):
    for can_move, per_round in itertools.product((False, True), (2, 7)):
        problem = Plenty()
        assert len(choose(SCHEDULES[kind](100, per_round, can_move), problem, 0)) == per_round
        assert problem.filled == [False]


@pytest.mark.parametrize("kind", SCHEDULES)
def test_one_unit_a_round_is_the_best_one_whatever_it_is_worth(kind):
    """Plain steps ask a problem for no selection: it may have none to offer."""
    assert list(choose(SCHEDULES[kind](9, 1, False), None, 0)) == [0]


def test_a_start_with_more_units_than_the_limit_is_full():
    assert Grow(3, None, True).is_full(5, polished=False)
