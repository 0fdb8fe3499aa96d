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

from mopn.solvers.conditional_gradient.corrective_step import CorrectiveRun, CorrectiveStep
from mopn.solvers.conditional_gradient.proofs import ProofSchedule, Selection, is_from_user
from mopn.solvers.conditional_gradient.refits import FullRefit, OutputRefit
from mopn.solvers.conditional_gradient.schedule import SCHEDULES, ScheduleName
from mopn.solvers.conditional_gradient.steps import PlainStep
from mopn.solvers.interface import Atomic, AtomicPoint, AtOutputs, Corrective, Measure, Monitor, Solver
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import Rule, check_flag, check_nonnegative, check_options, choice, count, number

RefitName = Literal["none", "output", "full"]
_NAMES = choice(get_args(RefitName))
# A run without a limit of units ends when so many rounds in a row have changed the objective by rounding errors alone,
# and lowered the estimated gap by less than this fraction,
_ROUNDS_WITHOUT_PROGRESS, _LEAST_PROGRESS = 3, 1e-3
# and one with refits when so many rounds have lowered the objective by less than this fraction of the gap, and the gap
# itself by less than that one: the tolerance would take hundreds of thousands of them;
_SLOW_ROUNDS, _LEAST_SHARE, _LEAST_FALL = 20, 1e-4, 0.1
# unless the proven gap is larger than this multiple of the estimated one: that may fall with time.
_TIGHT = 2.0
# The tolerances on a sample that tells where to start: of the gap, and of the decrease in a round.
_TOL_OF_START, _FTOL_OF_START = 0.1, 1e-3
_SLACK = number("a finite number >= 1", lambda x: x >= 1.0)
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
        The run ends at gaps of ``slack * tol``, and with a status that is true for ``tol``: where the objective has
        levelled off long before a proof, ``prove=False`` and ``slack=20`` take half of the time.

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
            max_units=count().or_none(),
            schedule=choice(SCHEDULES),
            atoms_per_round=count().or_none(),
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
        step = self.corrective_step
        per_round = step.units_per_round or self.atoms_per_round
        schedule = SCHEDULES[self.schedule](self.max_units, per_round, step.can_move_units)
        correction = step.begin(problem, monitor, schedule)
        oracle = problem.oracle(self.oracle, monitor.failure_budget, monitor.seed)
        select = ProofSchedule(problem, oracle, monitor, schedule, prove=self.prove)
        progress = _StallTest(monitor, refits=step.units_per_round is None)
        point, polished = self._start(problem, start, correction, monitor)
        refit_time = monitor.elapsed
        fun = math.inf
        while True:
            at = problem.output_gradient(point)  # the objective, and the gradient of the losses at the outputs
            monitor.check_finite(at.value)
            if not self.prove and monitor.nit + 1 == monitor.max_iter:  # no time for units that would not enter
                monitor(point.compact(), at.value, rounding=problem.rounding(point, at), n_units=point.n_units)
            full = schedule.is_full(point.n_units, polished=polished)
            level = fun - at.value <= self.ftol * abs(at.value) and self.ftol > 0.0
            selection = select(point, at, last=level or (full and polished))  # atoms, and a bound on all units' slopes
            times = {"oracle_time": select.oracle_time, "proof_time": select.proof_time, "refit_time": refit_time}
            gap = _record(problem, point, at, selection, monitor, times)
            if self.max_units is None:
                progress.check(at.value, gap, selection)
            if level:
                monitor.stop(Status.LEVELLED_OFF)
            fun = at.value
            began = monitor.elapsed
            if full and polished:  # some units are exchanged for others, if that pays, or the run ends
                point = correction.exchange(point, at, selection)
            correction.set_target(selection)
            if not full:
                units = schedule.choose(problem, point, at, selection.atoms, monitor.seed)
                point = correction.insert(point, at, units)
                # The polish needs units whose weights are not zero: else a refit of the weights comes first.
                full = correction.inserts_by_line_search and schedule.is_full(point.n_units, polished=False)
            del at  # the correction needs the memory
            point = correction.polish(point) if full else correction.improve(point)
            polished = full
            refit_time += monitor.elapsed - began

    def _start(self, problem: Atomic, start: Any, correction: CorrectiveRun, monitor: Monitor) -> tuple[Any, bool]:
        """Return the first point, and whether it is polished.

        With many rows, a sample of them tells the units of a model, which is then fitted to all; or a smaller one, in
        which rounds take less time, where to start.
        """
        if correction.fits_a_model and not start.n_units:
            whole, tol = cast(Corrective, problem), monitor.tol
            sample = whole.sample_for(cast(int, self.max_units), monitor.seed)
            tells_the_model = sample is not None
            if sample is None:
                sample = whole.sample_to_start(monitor.seed)
                tol = max(tol, _TOL_OF_START)
            if sample is not None:
                unproven = replace(self, prove=False, slack=1.0, ftol=self.ftol if tells_the_model else _FTOL_OF_START)
                found = monitor.solve(sample, unproven, start=None, tol=tol, max_iter=monitor.max_iter)
                point = whole.start(found)
                return (correction.settle(point), True) if tells_the_model else (correction.start(point), False)
        return correction.start(start), False

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


def _record(
    problem: Atomic, point: AtomicPoint, at: AtOutputs, selection: Selection, monitor: Monitor, times: dict[str, float]
) -> float:
    """Report the round and return its gap; stop if the estimated one is small enough but the oracle cannot prove it."""
    lower = problem.lower(at, selection.bound)
    rounding = problem.rounding(point, at)
    monitor(
        point.compact(),
        at.value,
        lower,
        rounding=rounding,
        restricted_lower=problem.restricted_lower(point, at),
        dual=problem.dual(point, at, selection.bound),
        estimated_gap=selection.estimate * abs(at.value),
        n_units=point.n_units,
        value=selection.atoms.values[0],
        bound=selection.bound,
        **({} if problem.passes is None else {"passes": problem.passes}),
        **times,
    )
    if selection.exhausted:
        monitor.stop(Status.ESTIMATED)
    return Measure(at.value, lower, rounding).gap


class _StallTest:
    """Ends a run without a limit of units whose rounds change nothing any more, up to rounding errors, or hardly."""

    def __init__(self, monitor: Monitor, *, refits: bool) -> None:
        self.monitor = monitor
        self.fun = math.inf
        self.estimate = math.inf
        self.rounds = 0
        # Plain steps may be slow, as each is cheap, and without a tolerance users want all that the limits allow.
        self.may_be_slow = not refits or monitor.tol == 0.0
        self.recent: deque[tuple[float, float]] = deque(maxlen=_SLOW_ROUNDS + 1)

    def check(self, fun: float, gap: float, selection: Selection) -> None:
        """Stop if several rounds changed neither objective nor estimated gap, or hardly, and the bound is tight."""
        # A user's function may draw units at random, so that the next ones may be better: more rounds are waited for.
        from_user = is_from_user(selection.atoms)
        estimate = selection.estimate * abs(fun)
        tight = gap <= _TIGHT * estimate
        slow = self._is_slow(fun, gap)
        same = abs(fun - self.fun) <= 4.0 * math.ulp(fun) and estimate >= (1.0 - _LEAST_PROGRESS) * self.estimate
        self.rounds = self.rounds + 1 if same and tight else 0
        self.fun = fun
        self.estimate = min(estimate, self.estimate)
        if from_user and self.monitor.tol > 0.0 and (slow or self.rounds == _SLOW_ROUNDS):
            self.monitor.stop(Status.NO_BETTER_UNIT)
        if not from_user and tight and (slow or self.rounds == _ROUNDS_WITHOUT_PROGRESS):
            self.monitor.stop(Status.STALLED)

    def _is_slow(self, fun: float, gap: float) -> bool:
        """Whether the last rounds hardly lowered objective and gap."""
        self.recent.append((fun, gap))
        fun_then, gap_then = self.recent[0]
        return (
            len(self.recent) > _SLOW_ROUNDS
            and not self.may_be_slow
            and fun_then - fun < _LEAST_SHARE * gap
            and gap > (1.0 - _LEAST_FALL) * gap_then
        )
