"""The effort for the bound on all units, on a scripted problem: its objective is 1, so gaps are relative."""

import math

import numpy as np
import pytest
from fakes import AtMatrix, FakeMonitor, Selected

from mopn.solvers.conditional_gradient import ConditionalGradient
from mopn.solvers.conditional_gradient.proofs import ProofSchedule
from mopn.solvers.conditional_gradient.schedule import Fill, Grow
from mopn.solvers.interface import Effort, Measure

TOL = 1e-3
SCHEDULES = {"grow": Grow(None, None, False), "fill": Fill(5, None, False)}
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def found(estimate, gap, *, best=False):
    """Atoms whose best value makes this gap if it is taken for a bound, and whose bound makes that one."""
    return Selected(np.array(["unit"]), np.array([1.0 + estimate]), 1.0 + gap, best)


class Script:
    """Gives scripted answers, and records the questions; the gap is the excess of a bound over 1."""

    def __init__(self, *answers, bounds=(), on_bound=lambda: None):
        self.answers, self.bounds, self.on_bound = list(answers), list(bounds), on_bound
        self.asked = []

    def output_gradient(self, point):
        self.point = point
        return AtMatrix(1.0, None)

    def lmo(self, at, oracle, effort):
        self.asked.append(("lmo", oracle, effort))
        return self.answers.pop(0)

    def bound(self, at, oracle, effort):
        self.asked.append(("bound", oracle, effort))
        self.on_bound()
        return self.bounds.pop(0)

    def lower(self, at, bound):
        return 2.0 - bound

    def rounding(self, point, at):
        return 0.0

    def restricted_lower(self, point, at):
        return 0.875

    @property
    def efforts(self):
        return [effort for _, _, effort in self.asked]

    @property
    def names(self):
        return [name for name, _, _ in self.asked]


def budget(script, schedule="grow", tol=TOL, **clock):
    """Return a function that selects for the next answer, and the monitor."""
    monitor = FakeMonitor(tol=tol, **clock)
    proofs = ProofSchedule(script, "an oracle", monitor, SCHEDULES[schedule])
    return (lambda **last: proofs.select(None, AtMatrix(1.0, None), **last)), monitor


ENDS = {
    "a cheap bound suffices": ("grow", [found(0.1 * TOL, 0.9 * TOL)], {"elapsed": 100.0}, False),
    "or of a model": ("fill", [found(0.1 * TOL, 0.9 * TOL)], {"elapsed": 100.0}, False),
    "the bound is the best one": ("grow", [found(0.4 * TOL, 0.5, best=True)], {"elapsed": 100.0}, True),
    "the best one of a model": ("fill", [found(0.4 * TOL, 0.5, best=True)], {"elapsed": 100.0}, True),
    "the first estimate is not level": ("grow", [found(0.9 * TOL, 0.5)], {}, False),
    "the proof finds a better unit": ("grow", [found(0.4 * TOL, 0.5), found(2.0 * TOL, 3.0 * TOL)], {}, False),
    "too early for a tight bound": ("grow", [found(0.4, 1.0)], {"elapsed": 10.0}, False),
    "the best bound is tight": ("grow", [found(0.1, 0.5, best=True)], {"elapsed": 10.0}, False),
    "no time for a tight bound": ("grow", [found(0.1, 0.5)], {"elapsed": 0.0}, False),
    "no time left": ("grow", [found(0.1, 0.5)], {"elapsed": 10.0, "left": 0.0}, False),
}


@pytest.mark.parametrize("case", ENDS)
def test_nothing_more_is_spent_where(case):
    schedule, answers, clock, exhausted = ENDS[case]
    script = Script(*answers)
    selection = budget(script, schedule, **clock)[0]()
    assert (selection.atoms, selection.bound, selection.exhausted) == (answers[-1], answers[-1].bound, exhausted)
    assert script.names == ["lmo"] * len(answers)


@every_schedule
def test_a_round_costs_little_and_knows_no_clock(schedule):
    """As tight as the gap of the round before makes worth while, within limits that repeat."""
    script = Script(found(8.0, 9.0), found(3.0, 3.1), found(2.0, 2.1))
    select, _ = budget(script, schedule, elapsed=100.0)
    for _ in range(3):
        select()
    assert [effort.precision for effort in script.efforts] == pytest.approx([math.inf, 8.0, 3.0], rel=1e-15)
    for effort in script.efforts:
        assert math.isinf(effort.seconds)
        assert math.isfinite(effort.work)
    assert {oracle for _, oracle, _ in script.asked} == {"an oracle"}


def test_no_bound_need_be_tighter_than_the_tolerance():
    script = Script(found(0.6 * TOL, 3.0 * TOL, best=True), found(0.0, 0.0))
    select, _ = budget(script)
    select(), select()
    assert [effort.precision for effort in script.efforts] == [math.inf, TOL]


def test_all_is_spent_when_nothing_but_the_proof_is_missing():
    script = Script(found(0.4 * TOL, 0.5), found(0.45 * TOL, 1.5 * TOL))
    select, _ = budget(script, elapsed=3.0, left=7.0)
    selection = select()
    proof = script.efforts[1]
    assert script.names == ["lmo", "lmo"]
    assert (proof.work, proof.seconds) == (math.inf, 7.0)
    # The atoms come from the proof, which may have found better ones.
    assert selection.atoms.values[0] == 1.0 + 0.45 * TOL
    assert selection.bound == 1.0 + 1.5 * TOL
    assert selection.estimate == pytest.approx(0.45 * TOL, rel=1e-9)
    assert selection.exhausted


def test_refits_go_on_while_they_can_carry_the_proof():
    """The bound is loose by less than the tolerance, until a refit has not helped."""
    rounds = [(0.45, 1.3), (0.2, 1.05), (0.19, 1.04)]
    script = Script(*[found(value * TOL, bound * TOL) for value, top in rounds for bound in (500.0, top)])
    select, _ = budget(script, elapsed=3.0, left=7.0)
    assert [select().exhausted for _ in rounds] == [False, False, True]


@pytest.mark.parametrize("estimate", [0.0, 0.1, 0.4, 0.49])
def test_a_proof_is_asked_for_no_tighter_than_decides(estimate):
    script = Script(found(estimate * TOL, 0.5), found(estimate * TOL, 0.9 * TOL))
    select, _ = budget(script)
    select()
    precision = script.efforts[1].precision
    value = 1.0 + estimate * TOL
    assert value * (1.0 + precision) - 1.0 <= TOL
    assert value * (1.0 + 2.0 * precision) - 1.0 > TOL or precision == 8.0 * TOL


def test_a_hopeless_proof_is_not_asked_for_ever_tighter():
    """The estimate is the tolerance itself: no precision proves it."""
    script = Script(found(0.9 * TOL, 0.5), found(TOL, 0.5), found(TOL, 0.5))
    select, _ = budget(script)
    select(), select()
    assert 1e-3 * TOL < script.efforts[2].precision <= 0.01 * TOL


@pytest.mark.parametrize(
    ("before", "now", "proven"),
    [
        (1.6, 0.9, True),  # more than half is left: it has come to rest
        (2.0, 0.9, False),  # it is still falling
        (1.6, 1.1, False),  # it is above the tolerance
        (5.0, 0.4, True),  # it is well below
    ],
)
def test_a_proof_waits_until_the_estimate_is_level_or_well_below(before, now, proven):
    script = Script(found(before * TOL, 0.5), found(now * TOL, 0.5), found(now * TOL, 0.5))
    # No time has passed, so nothing is overdue.
    select, _ = budget(script)
    assert not select().exhausted
    assert select().exhausted == proven
    assert script.names == ["lmo"] * (3 if proven else 2)


def test_a_model_is_proven_in_the_time_that_it_took_and_not_changed():
    first, better = found(0.4 * TOL, 0.5), found(2.0 * TOL, 0.3)
    script = Script(first, better)
    select, _ = budget(script, "fill", elapsed=3.0, left=7.0)
    selection = select()
    assert script.efforts[1].seconds == 3.0
    assert selection.atoms is first
    assert selection.bound == better.bound
    assert selection.estimate == pytest.approx(0.4 * TOL, rel=1e-9)
    assert selection.exhausted


@pytest.mark.parametrize("elapsed", [0.0, 1e-6, 10.0])
@pytest.mark.parametrize(("estimate", "ends"), [(0.4, True), (0.9, True), (1.1, False)])
def test_the_clock_does_not_end_the_run_for_a_model(estimate, ends, elapsed):
    """However long the run has taken, and so whatever a bound within the time allowed proves."""
    tight = found(estimate * TOL, estimate * TOL)
    script = Script(found(estimate * TOL, 0.5), tight, bounds=[tight.bound])
    select, _ = budget(script, "fill", elapsed=elapsed, left=100.0)
    selection = select()
    assert (selection.exhausted or selection.bound - 1.0 <= TOL) == ends


def test_a_model_keeps_the_better_bound_and_the_time_limit():
    script = Script(found(0.4 * TOL, 0.5), found(0.4 * TOL, 0.6))
    select, _ = budget(script, "fill", elapsed=3.0, left=1.0)
    assert select().bound == 1.5
    assert script.efforts[1].seconds == 1.0


@pytest.mark.parametrize(("schedule", "last"), [("grow", False), ("fill", True)])
def test_a_tight_bound_is_overdue(schedule, last):
    """The estimate has fallen to a part of the proven gap, or the model is complete."""
    cheap = found(0.1, 0.5)
    script = Script(cheap, bounds=[1.3])
    select, _ = budget(script, schedule, elapsed=10.0, left=100.0)
    selection = select(last=last)
    assert script.names == ["lmo", "bound"]
    assert script.efforts[1] == Effort(selection.estimate, seconds=script.efforts[1].seconds)
    assert 0.0 < script.efforts[1].seconds <= 5.0  # at most half of the time so far
    # The clock may cut short only the bound.
    assert selection.atoms is cheap
    assert selection.bound == 1.3
    assert not selection.exhausted


def test_no_tight_bound_could_end_a_run():
    """Whether it is ready depends on the clock, and so would the network: once by 2 units, once by 3."""
    script = Script(found(10 * TOL, 20 * TOL), found(0.9 * TOL, 20 * TOL))
    select, _ = budget(script, elapsed=10.0)
    select()
    assert select().bound == 1.0 + 20 * TOL
    assert script.names == ["lmo", "lmo"]


def test_tight_bounds_take_no_more_than_their_share():
    """A bound that takes longer than it was given is not paid for again until the run has caught up."""
    script = Script(*[found(0.2 * 0.2**t, 1.0) for t in range(4)], bounds=[1.5, 1.4])
    select, monitor = budget(script, elapsed=10.0)

    def late():
        monitor.elapsed += 8.0

    script.on_bound = late
    select()
    assert monitor.elapsed == 18.0
    select()
    monitor.elapsed = 20.0
    select()
    assert script.names == ["lmo", "bound", "lmo", "lmo"]
    monitor.elapsed = 30.0
    select()
    assert script.names[-1] == "bound"
    share = script.efforts[1].seconds / 10.0
    assert script.efforts[-1].seconds == pytest.approx(share * 30.0 - 8.0)


def test_the_next_tight_bound_waits_for_the_estimate_to_fall_again():
    script = Script(found(0.1, 0.5), found(0.05, 0.5), found(0.03, 0.5), bounds=[1.11, 1.035])
    select, _ = budget(script, elapsed=10.0)
    bounds = [select().bound for _ in range(3)]
    assert script.names == ["lmo", "bound", "lmo", "lmo", "bound"]
    assert bounds == [1.11, 1.5, 1.035]


def test_a_bound_that_came_out_loose_does_not_count_as_tight():
    script = Script(found(0.1, 0.5), found(0.1, 0.5), bounds=[1.7, 1.2])
    select, _ = budget(script, elapsed=10.0)
    assert [select().bound for _ in range(2)] == [1.5, 1.2]


def test_a_bound_that_missed_its_precision_is_tried_again_with_twice_the_time():
    script = Script(*[found(0.1, 0.5) for _ in range(3)], bounds=[1.4, 1.2])
    select, monitor = budget(script, elapsed=10.0)

    def late():
        monitor.elapsed += 3.0

    script.on_bound = late
    select(), select()
    assert script.names == ["lmo", "bound", "lmo"]
    monitor.elapsed = 30.0
    select()
    share = script.efforts[1].seconds / 10.0
    assert script.efforts[-1].seconds == pytest.approx(share * 30.0 - 3.0)


def test_the_final_measurement_asks_no_oracle():
    class Point:
        def compact(self):
            return "compact"

    script = Script()
    assert ConditionalGradient().measure(script, Point()) == Measure(1.0)
    assert script.point == "compact"
    assert not script.asked


def test_an_unknown_gap_pays_for_no_proof():
    """Where nothing is regularized all gaps are infinite."""
    script = Script(found(math.inf, math.inf), found(math.inf, math.inf))
    select, _ = budget(script, elapsed=10.0, tol=0.0)
    assert math.isinf(select().estimate)
    assert not select().exhausted
    assert script.names == ["lmo", "lmo"]


def test_tolerance_zero_asks_for_a_proof_only_of_the_optimum():
    script = Script(found(1e-12, 1e-12, best=True), found(0.0, 1e-9), found(0.0, 1e-9))
    select, _ = budget(script, tol=0.0)
    assert not select().exhausted
    assert select().exhausted
