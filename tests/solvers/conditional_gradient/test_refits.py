"""Refits: their problems, tolerances, lengths and solvers; on a monitor that records every request."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from fakes import FactorsOfLowRank, FakeMonitor, LayerOfLowRank, LowRankProblem, low_rank

from mopn.solvers import FISTA, LBFGS, FullRefit, InteriorPoint, OutputRefit, Result, minimize
from mopn.solvers.conditional_gradient import make_corrective_step
from mopn.solvers.conditional_gradient.proofs import Selection
from mopn.solvers.conditional_gradient.schedule import Fill, Grow
from mopn.solvers.interface import Form


class Setup:
    """The refits of a run, and a point of ``n_units`` random units of equal weight that they begin from."""

    def __init__(self, refit, *, tol=1e-3, schedule=None, problem=None, n_units=3, weight=0.1):
        self.problem = problem or low_rank()[0]
        self.monitor = FakeMonitor(tol=tol)
        schedule = schedule or Grow(None, None, refit.can_move_units)
        self.refits = refit.begin(self.problem, self.monitor, schedule)
        point = self.problem.start()
        units = self.problem.select_units(point, self.at(point), self.atoms(point), n_units, fill=True)
        self.point = replace(point.with_units(units), weights=np.full(n_units, weight))

    def at(self, point):
        return self.problem.output_gradient(point)

    def atoms(self, point):
        return self.problem.lmo(self.at(point), "exact", None)

    def set_target(self, estimate, *, bound_is_best=False):
        atoms = self.atoms(self.point)._replace(bound_is_best=bound_is_best)
        self.refits.set_target(Selection(atoms, atoms.bound, estimate))

    @property
    def kinds(self):
        return [type(asked.problem).__name__ for asked in self.monitor.solved]

    @property
    def last(self):
        return self.monitor.solved[-1]


LAYER, BOTH = LayerOfLowRank.__name__, FactorsOfLowRank.__name__
FREE = LowRankProblem(low_rank()[0].M, low_rank()[0].B, 0.0)
OUTPUT, FULL = OutputRefit(tol=1e-4, max_iter=7, polish_iter=90), FullRefit(max_iter=7, polish_iter=90)


@pytest.mark.parametrize(
    ("refit", "options", "estimate", "expected"),
    [
        (OUTPUT, {}, 5.0, [(LAYER, 7)]),
        # Of both layers: long, as no polish may come after it.
        (FULL, {}, 5.0, [(BOTH, 90)]),
        (FULL, {"schedule": Fill(8, None, True)}, 1.0, [(BOTH, 7)]),
        # Near the end the output layer is refitted, too, for its proof.
        (FULL, {}, 1e-3, [(LAYER, 90), (BOTH, 90)]),
    ],
)
def test_refits_between_rounds(refit, options, estimate, expected):
    run = Setup(refit, **options)
    run.set_target(estimate)
    run.refits.improve(run.point)
    assert list(zip(run.kinds, [asked.max_iter for asked in run.monitor.solved], strict=True)) == expected


def tolerance(refit, estimate, **options):
    """The tolerance of the last refit of a round with this estimate of the gap."""
    run = Setup(refit, **options)
    run.set_target(estimate)
    run.refits.improve(run.point)
    return run.last.tol


def test_refits_of_the_output_layer_leave_a_part_of_the_gap():
    share = tolerance(OUTPUT, 1.0)
    assert 0.0 < share <= 0.1
    for gap in (5.0, 0.04):
        assert tolerance(OUTPUT, gap) == pytest.approx(share * gap)
    # The run ends at its own tolerance; without one, at what rounding allows; without a gap, refits end at theirs.
    assert tolerance(OUTPUT, 1e-9, tol=1e-3) == pytest.approx(share * 1e-3)
    assert 0.0 < tolerance(OUTPUT, 0.0, tol=0.0) <= 1e-6
    assert tolerance(OUTPUT, math.inf, tol=0.0, problem=FREE) == pytest.approx(OUTPUT.tol)


class OfSecondOrder(LowRankProblem):
    gap_is_of_second_order = True


def of_kind(kind):
    base, _ = low_rank()
    return kind(base.M, base.B, base.strength)


@pytest.mark.parametrize(("kind", "power"), [(LowRankProblem, 2), (OfSecondOrder, 1)])
def test_refits_of_both_layers_tighten_as_the_gap_falls(kind, power):
    problem = of_kind(kind)
    largest = tolerance(FULL, 1.0, problem=problem)
    assert 0.0 < largest <= 0.1
    for gap in (0.5, 0.1, 0.01):
        assert tolerance(FULL, gap, problem=problem) == pytest.approx(largest * gap**power)
    assert tolerance(FULL, 5.0, problem=problem) == pytest.approx(largest)
    assert tolerance(FullRefit(least_tol=largest / 2.0), 0.1, problem=problem) == pytest.approx(largest / 2.0)


@pytest.mark.parametrize(
    ("estimates", "tightens"), [((0.05, 0.01), False), ((0.05, 0.049), False), ((0.05, 0.049, 0.048), True)]
)
def test_refits_for_gaps_of_second_order_tighten_where_two_left_most_of_it(estimates, tightens):
    run = Setup(FULL, problem=of_kind(OfSecondOrder))
    for estimate in estimates:
        run.set_target(estimate)
    run.refits.improve(run.point)
    usual = tolerance(FULL, run.refits.target, problem=of_kind(OfSecondOrder))
    assert (run.last.tol < 0.5 * usual) == tightens
    assert tightens or run.last.tol == pytest.approx(usual)


def test_refits_for_gaps_of_second_order_are_at_the_tightest_as_for_those_of_first_order():
    run = Setup(FULL, problem=of_kind(OfSecondOrder))
    for number in range(9):
        run.set_target(0.05 + 1e-6 * number)
    run.refits.improve(run.point)
    assert run.last.tol == pytest.approx(tolerance(FULL, run.refits.target))


class WithSaddles(LowRankProblem):
    joint_refits_get_stuck = True


@pytest.mark.parametrize(
    ("problem", "estimates", "max_iter"),
    [
        (LowRankProblem, (0.05, 0.01, 0.009), 7),
        (LowRankProblem, (0.05, 0.049), 7),
        (LowRankProblem, (0.05, 0.049, 0.048), 90),
        (LowRankProblem, (0.05, 0.049, 0.048, 0.01), 7),
        (WithSaddles, (0.05, 0.049, 0.048), 7),
    ],
)
def test_refits_of_a_model_are_long_after_two_that_left_most_of_the_gap(problem, estimates, max_iter):
    run = Setup(FULL, schedule=Fill(8, None, True), problem=of_kind(problem))
    for estimate in estimates:
        run.set_target(estimate)
    run.refits.improve(run.point)
    assert run.last.max_iter == max_iter


@pytest.mark.parametrize("refit", [OutputRefit, FullRefit])
def test_solvers_go_where_they_belong(refit):
    mine, layers = LBFGS(gtol=1e-7), FISTA()
    run = Setup(OutputRefit(solver=layers) if refit is OutputRefit else FullRefit(solver=mine))
    run.set_target(0.009)
    run.refits.improve(run.point)
    asked = [asked.solver for asked in run.monitor.solved]
    assert asked == [layers] if refit is OutputRefit else asked[1:] == [mine]


def test_the_polish_of_both_layers_is_long():
    run = Setup(FullRefit(polish_tol=1e-5, max_iter=7, polish_iter=90), schedule=Fill(8, None, True))
    run.refits.polish(run.point)
    assert (run.kinds[0], run.monitor.solved[0].max_iter) == (BOTH, 90)
    assert run.monitor.solved[0].tol == pytest.approx(1e-5)


# -- of the output layer ----------------------------------------------------------------------------------------------


def tolerances(estimates):
    """Of the refits of a run with these estimates of the gap, and at its own tolerance."""
    run = Setup(OutputRefit(), tol=0.5)
    for estimate in estimates:
        run.set_target(estimate)
        run.refits.improve(run.point)
    return [asked.tol for asked in run.monitor.solved], tolerance(OutputRefit(), 0.5, tol=0.5)


def test_the_aim_falls_to_the_tolerance_where_the_last_refit_did_not_help():
    (first, second, third, *ends), least = tolerances([2.0, 1.9, 3.0, 0.1, 2.0])
    assert first > second > third > least
    assert ends == pytest.approx([least, least])


def test_the_aim_falls_below_the_tolerance_where_a_round_changed_nothing():
    """Such a refit returns the point without its new units, and would in every round."""
    (_, second, third, fourth, last), least = tolerances([2.0, 0.4, 0.4, 0.4, 0.3])
    assert second == pytest.approx(least)
    assert least > third > fourth
    assert last == pytest.approx(fourth)


def test_the_polish_is_as_tight_as_asked_for():
    run = Setup(OutputRefit(tol=1e-5, max_iter=7, polish_iter=90))
    run.set_target(5.0)
    polished = run.refits.polish(run.point)
    assert (run.kinds, run.last.tol, run.last.max_iter) == ([LAYER], 1e-5, 90)
    best = minimize(run.problem.output_layer(run.point), FISTA(), tol=1e-6, max_iter=1000)
    assert best.success
    assert run.at(polished).value <= best.fun * (1.0 + 1e-5)


def test_output_refits_fit_the_weights_alone_and_drop_what_became_zero():
    run = Setup(OutputRefit(), n_units=20)
    run.set_target(1e-3)
    refitted = run.refits.improve(run.point)
    assert np.all(refitted.weights != 0)
    assert 0 < refitted.n_units < 20
    rows = {tuple(row) for row in run.point.units}
    assert all(tuple(row) in rows for row in refitted.units)
    assert run.at(refitted).value < run.at(run.point).value


def test_new_units_enter_without_weight():
    run = Setup(OutputRefit())
    units = run.atoms(run.point).basis[:2]
    entered = run.refits.insert(run.point, run.at(run.point), units)
    assert np.array_equal(entered.units[3:], units)
    assert np.array_equal(entered.weights, [*run.point.weights, 0.0, 0.0])


@dataclass
class Layer:
    """Names its oracles; nobody solves it."""

    oracles: frozenset[str]
    newton_size: float


class WithLayer(LowRankProblem):
    """A problem whose output layers offer the oracles of a test."""

    layer: Layer

    def output_layer(self, point):
        return self.layer


def unsolved(problem, solver, *, start, tol, max_iter):
    return Result(weights=start.weights, units=start.units, fun=0.0)


@pytest.mark.parametrize(
    ("oracles", "size", "expected"),
    [({"barrier", "composite"}, 1, InteriorPoint), ({"barrier", "composite"}, 1.1, FISTA), ({"composite"}, 0.1, FISTA)],
)
def test_the_default_solver_and_when_it_proves(oracles, size, expected):
    base, _ = low_rank()
    problem = WithLayer(base.M, base.B, base.strength)
    problem.layer = Layer(frozenset(oracles), size)
    run = Setup(OutputRefit(), problem=problem)
    run.monitor.answer = unsolved
    # Proofs begin near the tolerance.
    for estimate, proves in ((1.0, False), (0.1, False), (1e-3, True)):
        run.set_target(estimate)
        run.refits.improve(run.point)
        assert isinstance(run.last.solver, expected)
        assert getattr(run.last.solver, "prove", proves) == proves
    run.refits.polish(run.point)
    assert getattr(run.last.solver, "prove", True)


class WithExtra(LowRankProblem):
    """The empty point has more to fit than units; its "joint" problem is recorded, not solved."""

    def start(self, start=None):
        return replace(super().start(start), extra_size=4)

    def joint(self, point, form):
        self.form = form
        return "the problem of the extra coefficients"


@pytest.mark.parametrize("refit", [OutputRefit(tol=1e-2, polish_iter=90), FullRefit(tol=1e-2, polish_iter=90)])
def test_units_fit_what_the_rest_leaves(refit):
    base, _ = low_rank()
    problem = WithExtra(base.M, base.B, base.strength)
    run = Setup(refit, problem=problem)
    run.monitor.answer = lambda *args, **options: Result(units=np.zeros((0, 11)), weights=np.zeros(0), fun=1.0)
    run.refits.start(problem.start())
    assert problem.form == Form("gradient")
    assert (run.last.problem, run.last.solver, run.last.max_iter) == (problem.joint(None, None), LBFGS(), 90)
    assert 0.0 < run.last.tol < 1e-2  # tighter than all that follows
    # A point with units, and one with nothing to fit, are begun from as they are.
    assert run.refits.start(run.point) is run.point
    empty = base.start()
    assert run.refits.start(empty) is empty
    assert len(run.monitor.solved) == 1


@pytest.mark.parametrize("refit", [OutputRefit(), FullRefit(), FullRefit(solver=FISTA())])
def test_a_gap_is_not_promised_where_none_can_be_known(refit):
    problem, _ = low_rank()
    free = LowRankProblem(problem.M, problem.B, 0.0)
    with pytest.raises(ValueError, match="no certificate exists"):
        refit.begin(free, FakeMonitor(tol=1e-3), Grow(None, None, False))
    refit.begin(free, FakeMonitor(tol=0.0), Grow(None, None, False))


# -- of both layers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound_is_best", [False, True])
def test_full_refits_by_fista_follow_one_of_the_output_layer(bound_is_best):
    run = Setup(FullRefit(tol=1e-2, solver=FISTA(), max_iter=7, polish_iter=90))
    for estimate in (1.0, 1e-3):
        first = len(run.monitor.solved)
        run.set_target(estimate, bound_is_best=bound_is_best)
        run.refits.improve(run.point)
        assert run.kinds[first:] == [LAYER, BOTH]
        assert run.last.problem.form == Form("composite")
        assert (run.last.solver, run.last.tol, run.last.max_iter) == (FISTA(), 1e-2, 7)
    first = len(run.monitor.solved)
    run.refits.polish(run.point)
    assert run.kinds[first:] == [LAYER, BOTH]
    assert {asked.max_iter for asked in run.monitor.solved[first:]} == {90}


def test_refits_by_fista_wait_for_the_proof_of_the_output_layer_whatever_the_bound():
    base, _ = low_rank()
    problem = WithLayer(base.M, base.B, base.strength)
    problem.layer = Layer(frozenset({"barrier", "composite"}), 0.1)
    run = Setup(FullRefit(solver=FISTA()), problem=problem)
    run.monitor.answer = lambda *args, **options: Result(units=run.point.units, weights=run.point.weights, fun=1.0)
    for estimate, proves in ((1.0, False), (1e-3, True)):
        run.set_target(estimate, bound_is_best=True)
        run.refits.improve(run.point)
        assert run.monitor.solved[-2].solver == InteriorPoint(prove=proves)


def test_units_without_weight_are_gone_before_both_layers_are_refitted():
    """A unit of length zero is stationary in the smooth form."""
    run = Setup(FullRefit())
    run.set_target(1.0)
    run.point.weights[1] = 0.0
    run.refits.improve(run.point)
    assert run.monitor.solved[0].problem.around.n_units == 2


class OfManySamples(LowRankProblem):
    """A problem that wants refits on fractions of its samples, of which it has none: a fraction is recorded."""

    def sample_fractions(self, point):
        return [0.1, 0.4]


@pytest.mark.parametrize("polish_tol", [1e-4, 1e-2])
def test_a_polish_starts_on_fractions_of_the_samples(polish_tol):
    """Loosely, and each from where the one before ended; only the first start is moved at random."""
    base, _ = low_rank()
    run = Setup(FullRefit(polish_tol=polish_tol), problem=OfManySamples(base.M, base.B, base.strength))
    starts = []
    run.monitor.answer = lambda *args, start, **options: starts.append(start) or minimize(*args, start=start, **options)
    polished = run.refits.polish(run.point)
    first, second, last = run.monitor.solved[:3]
    assert [asked.problem.form.sample_fraction for asked in (first, second, last)] == [0.1, 0.4, 1.0]
    assert 0.01 >= first.tol == second.tol >= last.tol == polish_tol
    assert isinstance(starts[0], np.random.Generator)
    assert starts[1] is starts[2] is None
    assert not np.array_equal(second.problem.around.units, run.point.units)
    assert run.at(polished).value < run.at(run.point).value
    run.monitor.solved.clear()
    run.set_target(1.0)
    run.refits.improve(run.point)
    assert {asked.problem.form.sample_fraction for asked in run.monitor.solved} == {1.0}, "all between rounds"


def test_units_that_are_to_move_enter_with_weight_by_a_line_search():
    run = Setup(FullRefit())
    run.set_target(1.0)
    at, units = run.at(run.point), run.atoms(run.point).basis[:2]
    entered = run.refits.insert(run.point, at, units)
    assert np.all(entered.weights != 0)
    assert run.at(entered).value < at.value


def test_near_the_end_units_wait_for_the_refit_of_the_output_layer_unless_they_are_the_last():
    run = Setup(FullRefit(), schedule=Grow(6, None, True))
    run.set_target(0.009)
    at, units = run.at(run.point), run.atoms(run.point).basis
    assert not run.refits.insert(run.point, at, units[:2]).weights[3:].any()
    # Then the polish follows at once, and it has no such refit.
    assert run.refits.insert(run.point, at, units[:3]).weights[3:].all()


@pytest.mark.parametrize("strength", [0.5, 0.0])
@pytest.mark.parametrize("solver", [LBFGS(), FISTA()])
def test_a_line_search_is_for_smooth_refits_with_a_regulariser(solver, strength):
    problem, _ = low_rank()
    run = Setup(FullRefit(solver=solver), tol=0.0, problem=LowRankProblem(problem.M, problem.B, strength))
    assert run.refits.inserts_by_line_search == (solver == LBFGS() and strength > 0)
    if not run.refits.inserts_by_line_search:
        run.set_target(1.0)
        entered = run.refits.insert(run.point, run.at(run.point), run.atoms(run.point).basis[:2])
        assert not entered.weights[3:].any()
        run.refits.improve(run.point)
        assert run.kinds == [LAYER, BOTH]


def test_an_empty_point_is_not_refitted():
    run = Setup(FullRefit())
    run.set_target(1.0)
    assert run.refits.improve(run.problem.start()).n_units == 0
    assert run.refits.polish(run.problem.start()).n_units == 0
    assert run.kinds == []


@pytest.mark.parametrize(("harm", "merged"), [(0.0, True), (0.9, True), (1.1, False)])
@pytest.mark.parametrize("way", ["improve", "polish"])
def test_merging_is_kept_unless_it_harms(way, harm, merged):
    """Two of four units coincide; the objectives that the two refits report differ by ``harm`` times the tolerance."""
    run = Setup(FullRefit(tol=1e-2, max_iter=7, polish_iter=90), schedule=Fill(9, None, True), n_units=4)
    run.point.units[1] = run.point.units[0]
    answers = []

    def refit(problem, solver, *, start, tol, max_iter):
        answers.append(problem.around.n_units)
        fun = 100.0 * (1.0 + harm * tol * (len(answers) - 1))
        return Result(units=problem.around.units, weights=problem.around.weights, fun=fun)

    run.monitor.answer = refit
    run.set_target(1.0)
    refitted = getattr(run.refits, way)(run.point)
    assert answers == [4, 3]
    assert run.last.max_iter == 7
    assert run.monitor.solved[0].tol == run.monitor.solved[1].tol
    assert refitted.n_units == (3 if merged else 4)
    if merged:
        assert refitted.weights.sum() == pytest.approx(run.point.weights.sum())


def test_names_stand_for_corrections_and_take_options():
    assert make_corrective_step("output", tol=1e-5, max_iter=3) == OutputRefit(tol=1e-5, max_iter=3)
    single = {"precision": "single"}
    assert make_corrective_step("full", full=single, tol=1e-5) == FullRefit(tol=1e-5, precision="single")
    assert make_corrective_step("output", full=single) == OutputRefit()
    mine = OutputRefit(tol=1e-6)
    assert make_corrective_step(mine) is mine


@pytest.mark.parametrize(("estimate", "single"), [(0.1, True), (0.01, False)])
def test_refits_in_single_precision_have_a_tolerance_above_its_rounding(estimate, single):
    run = Setup(FullRefit(precision="single"))
    run.set_target(estimate)
    run.refits.improve(run.point)
    assert run.last.problem.form == Form("gradient", single=single)


@pytest.mark.parametrize("solver", [LBFGS(), FISTA()])
def test_a_refit_of_both_layers_is_the_minimum_where_there_are_units_enough(solver):
    """A sum of squared lengths, whose least value over all factors is the nuclear norm: no minimum is spurious."""
    problem, minimum = low_rank()
    run = Setup(FullRefit(tol=1e-9, polish_tol=1e-12, polish_iter=5000, solver=solver), problem=problem, n_units=6)
    factors = problem.joint(run.point, Form("gradient"))
    assert minimize(factors, LBFGS(gtol=1e-12), tol=0.0, max_iter=2000).fun == pytest.approx(minimum, rel=1e-9)
    assert run.at(run.refits.polish(run.point)).value == pytest.approx(minimum, rel=1e-5)
