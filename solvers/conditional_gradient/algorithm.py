"""Conditional gradient over infinitely many units: Algorithm 1 of Blondel et al. (NIPS 2017).

A point is a network of finitely many units. In every round the oracle receives the gradient of the losses at the
outputs of the point. It returns units along which the objective falls steeply, the atoms, best first, and a bound on
the slopes along all units, which proves a duality gap. With the slope of the best atom in place of the bound, the gap
is an estimate. Atoms enter the point, and a correction improves its weights, or units and weights. A model of
``max_units`` units is full: it gets a correction to a tight tolerance, the polish. Then the run ends, or some units are
exchanged.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.conditional_gradient.dual_steps import MAX_PRICE_OF_LAST_STEPS, DualSteps, Proof
from mopn.solvers.conditional_gradient.proofs import ProofSchedule, Selection, is_from_user
from mopn.solvers.conditional_gradient.refits import FullRefit, OutputRefit
from mopn.solvers.conditional_gradient.schedule import SCHEDULES, ScheduleName
from mopn.solvers.conditional_gradient.steps import PlainStep
from mopn.solvers.interface import Atomic, Corrective, Measure, Monitor, Solver
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import Rule, check_flag, check_nonnegative, check_options, choice, count, number

RefitName = Literal["none", "output", "full"]
_NAMES = choice(get_args(RefitName))
# A run without a limit of units ends after this number of rounds without progress, one after another.
_MAX_ROUNDS_WITHOUT_PROGRESS = 3
# A round without progress changes the objective by rounding errors alone, and lowers the estimated gap by less than
# this fraction.
_MIN_RELATIVE_FALL_OF_ESTIMATE = 1e-3
# A run with refits also ends if this number of rounds has hardly lowered the objective and the gap: reaching the
# tolerance would take hundreds of thousands of rounds.
_SLOW_ROUNDS = 20
# Slow rounds together lower the objective by less than this fraction of the gap, ...
_MIN_FALL_OF_OBJECTIVE_BY_GAP = 1e-4
# ... and the gap by less than this fraction of itself.
_MIN_RELATIVE_FALL_OF_GAP = 0.1
# A run does not end early if the proven gap exceeds this multiple of the estimated one: the proof may still improve.
_MAX_PROVEN_BY_ESTIMATED_GAP = 2.0
# The estimated gap, relative, from which on a better dual point is looked for: the steps to it are local. In rounds
# that hardly lower the objective it always is.
_MAX_ESTIMATE_FOR_STEPS = 0.5
# A step to a better dual point takes the time of this number of evaluations of the objective, at most, in rounds that
# lower it.
_MAX_PRICE_OF_STEP = 30.0
# Rounds after the first one that hardly lowers the objective, in which refits are tighter, for the sake of the proof.
_ROUNDS_FOR_PROOF = 2
# A model that is complete loses the units that change least: the objective rises by at most this part of the tolerance,
_RISE_BY_THINNING = 0.2
# by at most this part of itself,
_MAX_RISE = 2e-3
# and its proven gap to at most this part.
_GAP_AFTER_THINNING = 0.98
# The tolerance of the gap on a sample that tells where to start.
_GAP_TOL_OF_START = 0.1
# The tolerance of the decrease in a round on such a sample.
_FTOL_OF_START = 1e-3
_SLACK = number("a finite number >= 1", lambda x: x >= 1.0)
_COUNT = count().or_none()
_SCHEDULE = choice(SCHEDULES)
_REFIT = Rule(f"{_NAMES.takes}, or a corrective step such as FullRefit()", _NAMES.convert)


@dataclass(frozen=True)
class ConditionalGradient(Solver[Atomic]):
    """Conditional gradient with corrective refits: Algorithm 1 of Blondel et al. (NIPS 2017).

    Parameters
    ----------
    refit : str or corrective step, default "output"
        The correction of the weights in every round. ``"output"``: a convex refit of the output layer
        (:class:`mopn.solvers.OutputRefit`); ``"full"``: a non-convex refit of both layers
        (:class:`mopn.solvers.FullRefit`); ``"none"``: a plain conditional gradient step
        (:class:`mopn.solvers.PlainStep`). Pass such an object to set its options.
    max_units : int, optional
        Largest number of units k, unless the start has more; the run also ends when ``2 * max_units`` candidates were
        tried. Default no limit.
    schedule : {"grow", "fill"}, default "grow"
        ``"grow"``: for a small proven gap; a few units enter in every round. ``"fill"``: for the best model with
        ``max_units`` units; they enter as early as possible, one long refit follows, and few units are exchanged
        while that pays. See :mod:`mopn.solvers.conditional_gradient.schedule`.
    oracle : str or oracle, default "auto"
        The oracle that selects units: a method of ``mopn.oracles.basis_oracle``, an oracle that it returned, or a
        function of your own, from the matrices Gamma (m, d, d) of the gradient to a unit (d,) or several (q, d). Bounds
        are then as by "auto", the values of units estimate no gap, and the run ends with the status
        ``NO_BETTER_UNIT`` if for 20 rounds no unit is worth adding.
    atoms_per_round : int, optional
        Number of units added in a round, the best distinct ones of the oracle; default set by the schedule. Plain
        steps add one.
    prove : bool, default True
        Whether time is spent on proofs beyond the bounds that the searches for units give. Without, a run ends with the
        status ``ESTIMATED`` where its estimated gap reaches the tolerance; :func:`mopn.certify` can prove a gap later.
    ftol : float, default 0
        The run also ends, with the status ``LEVELLED_OFF``, when a round lowers the objective by at most this,
        relative. Default: never.
    slack : float, default 1
        The run ends when the gap is at most ``slack * tol``; its status still tells whether ``tol`` was reached. Often
        the objective levels off long before the proof: ``prove=False`` and ``slack=20`` then take half of the time.

    Raises
    ------
    ValueError
        For options that are out of range, or ``schedule="fill"`` without ``max_units``.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> solver = mopn.solvers.ConditionalGradient(refit="full", max_units=5, schedule="fill")
    >>> result = mopn.minimize(problem, solver)
    >>> len(result.basis) <= 5, result.gap_is_proven
    (True, True)
    """

    refit: RefitName | CorrectiveStep = "output"
    max_units: int | None = None
    schedule: ScheduleName = "grow"
    oracle: Any = "auto"
    atoms_per_round: int | None = None
    prove: bool = True
    ftol: float = 0.0
    slack: float = 1.0

    def __post_init__(self) -> None:
        make_corrective_step(self.refit)
        check_options(
            self,
            max_units=_COUNT,
            schedule=_SCHEDULE,
            atoms_per_round=_COUNT,
            prove=check_flag,
            ftol=check_nonnegative,
            slack=_SLACK,
        )
        if self.schedule == "fill" and self.max_units is None:
            raise ValueError("schedule='fill' fits a model of max_units units: give max_units, or schedule='grow'")

    @property
    def corrective_step(self) -> CorrectiveStep:
        """The correction that ``refit`` stands for."""
        return make_corrective_step(self.refit)

    @property
    def needs(self) -> frozenset[str]:
        """Names of the oracles that a problem must offer, as the correction says."""
        return self.corrective_step.needs

    def run(self, problem: Atomic, start: Any, monitor: Monitor) -> None:
        """Select units, record the gap, then refit or step, until the monitor ends the run by ``StopIteration``."""
        rounds = _Rounds(self, problem, monitor)
        rounds.start(start)
        while True:
            rounds.select()
            rounds.correct()

    def measure(self, problem: Atomic, point: Any) -> Measure:
        """Return the objective from scratch; the rounds have the bounds of the minimum."""
        point = point.compact()
        at = problem.output_gradient(point)
        return Measure(at.value, rounding=problem.rounding(point, at))


def make_corrective_step(
    refit: RefitName | CorrectiveStep, *, full: Mapping[str, Any] | None = None, **options: Any
) -> CorrectiveStep:
    """Return the correction of a name, with these options of refits, and ``full`` for refits of both layers alone."""
    if isinstance(refit, CorrectiveStep):
        return refit
    name = _REFIT(refit, "refit")
    if name == "none":
        return PlainStep()
    return OutputRefit(**options) if name == "output" else FullRefit(**options, **(full or {}))


class _Rounds:
    """The rounds of one run: its point, its corrective step, its schedule and its proofs."""

    def __init__(self, options: ConditionalGradient, problem: Atomic, monitor: Monitor) -> None:
        self.options, self.problem, self.monitor = options, problem, monitor
        step = options.corrective_step
        per_round = step.units_per_round or options.atoms_per_round
        self.schedule = SCHEDULES[options.schedule](options.max_units, per_round, step.can_move_units)
        self.correction = step.begin(problem, monitor, self.schedule)
        oracle = problem.oracle(options.oracle, monitor.failure_budget, monitor.seed)
        self.proofs = ProofSchedule(problem, oracle, monitor, self.schedule, prove=options.prove)
        moves_dual = options.prove and step.can_move_units
        self.dual_steps = DualSteps(problem, oracle, monitor) if moves_dual else None
        self.progress = _StallTest(monitor, refits=step.units_per_round is None)
        self.point: Any = None
        # The gradient of the losses at the outputs of the point, and the units selected for it.
        self.at: Any = None
        self.selection: Selection | None = None
        # Whether the point is a full model, refitted to a tight tolerance.
        self.polished = False
        # The objective of the round before.
        self.fun = math.inf
        self.level_rounds = 0
        self.refit_time = 0.0

    def start(self, start: Any) -> None:
        """Find the first point.

        With many rows, a sample of them tells the units of a model, which is then fitted to all; or a smaller one, in
        which rounds take less time, where to start.
        """
        self.point = self._first_point(start)
        self.refit_time = self.monitor.elapsed

    def _first_point(self, start: Any) -> Any:
        correction = self.correction
        if not correction.fits_a_model or start.n_units:
            return correction.start(start)
        options, monitor = self.options, self.monitor
        whole = cast(Corrective, self.problem)
        sample = whole.sample_for(cast(int, options.max_units), monitor.seed)
        if sample is not None:
            self.polished = True
            return correction.settle(whole.start(self._on_sample(sample, options.ftol, monitor.tol)))
        sample = whole.sample_to_start(monitor.seed)
        if sample is not None:
            tol = max(monitor.tol, _GAP_TOL_OF_START)
            start = whole.start(self._on_sample(sample, _FTOL_OF_START, tol))
        return correction.start(start)

    def _on_sample(self, sample: Corrective, ftol: float, tol: float) -> Any:
        unproven = replace(self.options, prove=False, slack=1.0, ftol=ftol)
        return self.monitor.solve(sample, unproven, start=None, tol=tol, max_iter=self.monitor.max_iter)

    def select(self) -> None:
        """Select units for the gradient at the point, and record its gap."""
        problem, monitor = self.problem, self.monitor
        at = problem.output_gradient(self.point)
        monitor.check_finite(at.value)
        if not self.options.prove and monitor.nit + 1 == monitor.max_iter:  # no time for units that would not enter
            rounding = problem.rounding(self.point, at)
            monitor(self.point.compact(), at.value, rounding=rounding, n_units=self.point.n_units)

        is_level = self._has_levelled_off(at.value)
        selection = self.proofs.select(self.point, at, last=is_level or (self._is_full and self.polished))
        proof = Proof(self.point, at, selection.atoms, selection.bound, problem.lower(at, selection.bound))
        if self.dual_steps is not None and self._steps_pay(selection.estimate):
            proof = self.dual_steps.improved(proof)
            selection = selection.with_proof(proof, monitor.tol)

        is_allowed = self.options.max_units is None or proof.point.n_units <= self.options.max_units
        moves = is_allowed and proof.at.value < at.value
        ends = is_level or selection.exhausted or selection.estimate <= monitor.tol
        if is_level and moves:
            self.point = proof.point
            at = proof.at
        if ends and not self._is_full and self.correction.fits_a_model:
            self.point, at = self._thinned(at, proof)
        self._record(at, selection, proof)
        if is_level:
            monitor.stop(Status.LEVELLED_OFF)
        self.fun = at.value
        if moves:
            self.point = proof.point
            at = proof.at
        self.at, self.selection = at, selection

    def correct(self) -> None:
        """Let the selected units enter the point, and correct it."""
        began = self.monitor.elapsed
        is_full = self._insert(self.at, cast(Selection, self.selection))
        self.at = None  # the correction needs the memory
        correct = self.correction.polish if is_full else self.correction.improve
        self.point = correct(self.point)
        self.polished = is_full
        self.refit_time += self.monitor.elapsed - began

    def _steps_pay(self, estimate: float) -> bool:
        """Whether steps to better dual points pay at the point, whose estimated gap is given."""
        if not self.point.n_units:
            return False
        is_level = self.level_rounds > 1
        if not is_level and estimate > _MAX_ESTIMATE_FOR_STEPS:
            return False
        # A run that ends at a level objective waits with dear steps until then.
        waits = self.options.ftol > 0.0 and not is_level
        most = _MAX_PRICE_OF_STEP if waits else MAX_PRICE_OF_LAST_STEPS
        return self.problem.dual_step_price(self.point) <= most

    @property
    def _is_full(self) -> bool:
        return self.schedule.is_full(self.point.n_units, polished=self.polished)

    def _has_levelled_off(self, fun: float) -> bool:
        """Whether the objective hardly falls any more, in refits that are tight enough for a proof if there may be one.

        If not, the next refits are tighter.
        """
        if self.options.ftol == 0.0 or self.fun - fun > self.options.ftol * abs(fun):
            return False
        self.level_rounds += 1
        if self.dual_steps is None or self.level_rounds > _ROUNDS_FOR_PROOF:
            return True
        if self.problem.dual_step_price(self.point) > MAX_PRICE_OF_LAST_STEPS:
            return True
        self.correction.tighten()
        return False

    def _thinned(self, at: Any, proof: Proof) -> tuple[Any, Any]:
        """Return the model without the units that change little, within the tolerance, and its gradient."""
        tol = self.monitor.tol / self.options.slack * abs(at.value)
        gap = at.value - proof.lower
        rise = min(_RISE_BY_THINNING * tol, _MAX_RISE * abs(at.value))
        if gap <= tol:
            rise = min(rise, _GAP_AFTER_THINNING * tol - gap)
        if rise <= 0.0:
            return self.point, at
        return cast(Corrective, self.problem).thinned(self.point, at, at.value + rise)

    def _record(self, at: Any, selection: Selection, proof: Proof) -> None:
        """Report the round; stop if the estimated gap is small enough but the oracle cannot prove it."""
        problem, monitor, point = self.problem, self.monitor, self.point
        rounding = problem.rounding(point, at)
        passes = {} if problem.passes is None else {"passes": problem.passes}
        of_steps = 0.0 if self.dual_steps is None else self.dual_steps.seconds
        monitor(
            point.compact(),
            at.value,
            proof.lower,
            rounding=rounding,
            restricted_lower=problem.restricted_lower(point, at),
            dual=problem.dual(proof.point, proof.at, proof.bound),
            estimated_gap=selection.estimate * abs(at.value),
            n_units=point.n_units,
            value=selection.atoms.values[0],
            bound=selection.bound,
            oracle_time=self.proofs.oracle_time,
            proof_time=self.proofs.proof_time + of_steps,
            refit_time=self.refit_time,
            **passes,
        )
        if selection.exhausted:
            monitor.stop(Status.ESTIMATED)
        if self.options.max_units is None:
            self.progress.check(at.value, Measure(at.value, proof.lower, rounding).gap, selection)

    def _insert(self, at: Any, selection: Selection) -> bool:
        """Let units enter the point; return whether a polish is due."""
        is_full = self._is_full
        if is_full and self.polished:  # some units are exchanged for others, if that pays, or the run ends
            self.point = self.correction.exchange(self.point, at, selection)
        self.correction.set_target(selection)
        if is_full:
            return True
        units = self.schedule.choose(self.problem, self.point, at, selection.atoms, self.monitor.seed)
        self.point = self.correction.insert(self.point, at, units)
        # The polish needs units whose weights are not zero: else a refit of the weights comes first.
        return self.correction.inserts_by_line_search and self.schedule.is_full(self.point.n_units, polished=False)


class _StallTest:
    """Ends a run without a limit of units whose rounds change nothing any more, up to rounding errors, or hardly."""

    def __init__(self, monitor: Monitor, *, refits: bool) -> None:
        self.monitor = monitor
        self.fun, self.estimate, self.rounds = math.inf, math.inf, 0
        # Plain steps may be slow, as each is cheap, and without a tolerance users want all that the limits allow.
        self.may_be_slow = not refits or monitor.tol == 0.0
        self.recent: deque[tuple[float, float]] = deque(maxlen=_SLOW_ROUNDS + 1)

    def check(self, fun: float, gap: float, selection: Selection) -> None:
        """Stop if several rounds changed neither objective nor estimated gap, or hardly, and the bound is tight."""
        # A user's function may draw units at random, so that the next ones may be better: more rounds are waited for.
        from_user = is_from_user(selection.atoms)
        estimate = selection.estimate * abs(fun)
        tight = gap <= _MAX_PROVEN_BY_ESTIMATED_GAP * estimate
        slow = self._is_slow(fun, gap)
        same_fun = abs(fun - self.fun) <= 4.0 * math.ulp(fun)
        same = same_fun and estimate >= (1.0 - _MIN_RELATIVE_FALL_OF_ESTIMATE) * self.estimate
        self.rounds = self.rounds + 1 if same and tight else 0
        self.fun = fun
        self.estimate = min(estimate, self.estimate)
        if from_user and self.monitor.tol > 0.0 and (slow or self.rounds == _SLOW_ROUNDS):
            self.monitor.stop(Status.NO_BETTER_UNIT)
        if not from_user and tight and (slow or self.rounds == _MAX_ROUNDS_WITHOUT_PROGRESS):
            self.monitor.stop(Status.STALLED)

    def _is_slow(self, fun: float, gap: float) -> bool:
        """Whether the last rounds hardly lowered objective and gap."""
        self.recent.append((fun, gap))
        fun_then, gap_then = self.recent[0]
        return (
            len(self.recent) > _SLOW_ROUNDS
            and not self.may_be_slow
            and fun_then - fun < _MIN_FALL_OF_OBJECTIVE_BY_GAP * gap
            and gap > (1.0 - _MIN_RELATIVE_FALL_OF_GAP) * gap_then
        )
