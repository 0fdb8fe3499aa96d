"""The budget of the bound on all units: small while the gap is large, up to all limits for the final proof."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from mopn.solvers.conditional_gradient.schedule import Schedule
from mopn.solvers.interface import Atomic, AtomicPoint, Atoms, AtOutputs, Effort, Measure, Monitor

# Operations for the bound in a round: no limit of time, so that runs repeat.
_ROUND_WORK = 2e8
# The final proof is tried when the estimated gap is at most this fraction of the tolerance, or below the tolerance and
# more than this fraction of the last round's; in a run for a model, when it is below the tolerance.
_WELL_BELOW = 0.5
# With units of the user's another final proof waits until the objective has fallen by so much of the gap.
_OF_A_GAP = 0.1
# Range of the precision of the final proof, relative to the tolerance.
_LOOSEST, _TIGHTEST = 8.0, 0.01
# A tight bound is computed when the estimated gap has fallen to this fraction of the proven one. These bounds may take
# this fraction of the time of the run, and the one of a complete model that one. One that missed its precision is
# followed by one that may take so many times as long.
_FALLEN, _OVERHEAD, _OF_A_MODEL, _LONGER = 0.3, 0.35, 0.5, 2.0


class Selection(NamedTuple):
    """The answer of the oracle in one round: atoms, best first, and the least proven bound on all units."""

    atoms: Atoms
    bound: float
    # Estimate of the relative gap: the value of the best atom in place of the bound. The proven one if a function of
    # the user's selected the atoms, as better ones may exist.
    estimate: float
    # Whether the estimate has reached the tolerance, and neither a tighter bound nor a refit can carry the proof.
    exhausted: bool = False


class ProofSchedule:
    """Selects units, and sets the effort of the bound on all units.

    In every round the effort is small, and the precision is the estimated gap of the round before. When the estimated
    gap has fallen far below the proven one, a tight bound is computed, within a fraction of the time of the run. When
    the estimated gap reaches the tolerance, the final proof may use all limits of the oracle. So that a model does not
    depend on the clock, its tight bound waits until it is complete; its final proof takes at most as long as the run
    before it, selects no units, and ends the run. Without ``prove`` there are searches alone.
    """

    def __init__(
        self, problem: Atomic, oracle: Any, monitor: Monitor, schedule: Schedule, *, prove: bool = True
    ) -> None:
        self.prove = prove
        self.problem, self.oracle, self.monitor, self.schedule = problem, oracle, monitor, schedule
        self.estimate, self.proven = math.inf, math.inf
        self.seconds_spent, self.least_seconds = 0.0, 0.0
        # Seconds in the searches for units, and in proofs beyond these.
        self.oracle_time, self.proof_time = 0.0, 0.0
        # The estimated gap at the last final proof, and with units of the user's the objective that allows another.
        self.at_final_proof, self.next_proof = math.inf, math.inf

    def __call__(self, point: AtomicPoint, at: AtOutputs, *, last: bool = False) -> Selection:
        """Return the best units for a gradient, and the bound on all units; ``last``: the model is complete."""
        began, proofs_before = self.monitor.elapsed, self.proof_time
        selection = self._select(point, at, last)
        if is_from_user(selection.atoms):
            proven = _relative_gap(self.problem, point, at, selection.bound)
            selection = selection._replace(estimate=proven, exhausted=False)
        self.oracle_time += self.monitor.elapsed - began - (self.proof_time - proofs_before)
        return selection

    def _select(self, point: AtomicPoint, at: AtOutputs, last: bool) -> Selection:
        tol, before = self.monitor.tol, self.estimate
        gap = partial(_relative_gap, self.problem, point, at)
        effort = Effort(max(before, tol), work=_ROUND_WORK if self.prove else 0.0, seconds=self.monitor.left)
        atoms = self.problem.lmo(at, self.oracle, effort)
        # A gap takes as long as many products. Once the time is over, the proven one serves, which is due anyway.
        self.estimate = gap(atoms.values[0] if self.monitor.left > 0.0 else atoms.bound)
        selection = Selection(atoms, atoms.bound, self.estimate)
        if gap(atoms.bound) <= tol:
            return selection
        if not self.prove:
            if not (last or self.estimate <= tol):
                return selection
            bound = min(atoms.bound, self.problem.bound(at, self.oracle, effort))
            return selection._replace(bound=bound, exhausted=self.estimate <= tol)
        # Where a model is fitted, the run ends here in any case, and so before a tight bound, which depends on the
        # clock, could end it.
        level = self.schedule.fits_a_model or self.estimate > _WELL_BELOW * before
        due = self.estimate <= _WELL_BELOW * tol or (level and self.estimate <= tol)
        if due and not (is_from_user(atoms) and self._is_soon(at.value, gap(atoms.bound))):
            return self._with_final_proof(at, selection, gap)
        self.proven = min(self.proven, gap(atoms.bound))
        # While the estimated gap exceeds the tolerance no bound ends the run: if one is ready depends on the clock.
        decides = last if self.schedule.fits_a_model else tol < self.estimate <= _FALLEN * self.proven < math.inf
        if decides and not atoms.bound_is_best:
            selection = self._with_tight_bound(at, selection)
            self.proven = min(self.proven, gap(selection.bound))
        return selection

    def _with_final_proof(self, at: AtOutputs, selection: Selection, gap: Callable[[float], float]) -> Selection:
        """Try the final proof, with all limits of the oracle."""
        atoms, tol = selection.atoms, self.monitor.tol
        if atoms.bound_is_best:
            return selection._replace(exhausted=True)
        seconds = self.monitor.left
        if self.schedule.fits_a_model:
            seconds = min(seconds, self.monitor.elapsed)
        began = self.monitor.elapsed
        effort = Effort(_deciding_precision(gap, atoms.values[0], tol), seconds=seconds)
        proof = self.problem.lmo(at, self.oracle, effort)
        self.proof_time += self.monitor.elapsed - began
        if self.schedule.fits_a_model:
            # A proof that a time limit may have cut short must not change the model.
            return selection._replace(bound=min(atoms.bound, proof.bound), exhausted=self.estimate <= tol)
        self.estimate = gap(proof.values[0])
        return Selection(proof, proof.bound, self.estimate, exhausted=self._is_exhausted(gap(proof.bound)))

    def _is_soon(self, fun: float, proven: float) -> bool:
        """Whether none can end the run, or the last one was at about this objective: poor units seem the best ones."""
        if self.monitor.tol == 0.0 or fun > self.next_proof:
            return True
        self.next_proof = fun - _OF_A_GAP * abs(fun) * min(proven, 1.0)
        return False

    def _is_exhausted(self, proven: float) -> bool:
        """Whether the oracle alone keeps the proven gap above the tolerance, or refits no longer help it."""
        tol = self.monitor.tol
        looseness = proven - self.estimate
        stuck = self.estimate > _WELL_BELOW * self.at_final_proof
        self.at_final_proof = self.estimate
        return self.estimate <= tol and (looseness >= tol or stuck)

    def _with_tight_bound(self, at: AtOutputs, selection: Selection) -> Selection:
        """Return the same atoms with a tighter bound; atoms that depend on the clock would change the run."""
        fraction = _OF_A_MODEL if self.schedule.fits_a_model else _OVERHEAD
        seconds = min(fraction * self.monitor.elapsed - self.seconds_spent, self.monitor.left)
        if seconds <= self.least_seconds:
            return selection
        began = self.monitor.elapsed
        bound = self.problem.bound(at, self.oracle, Effort(self.estimate, seconds=seconds))
        took = self.monitor.elapsed - began
        self.seconds_spent += took
        self.proof_time += took
        reached = bound <= selection.atoms.values[0] * (1.0 + _LONGER * self.estimate)
        self.least_seconds = 0.0 if reached else _LONGER * took
        return selection._replace(bound=min(bound, selection.bound))


def is_from_user(atoms: Atoms) -> bool:
    """Whether a function of the user's selected the atoms; atoms of other problems need not say so."""
    return getattr(atoms, "from_user", False)


def _deciding_precision(gap: Callable[[float], float], value: float, tol: float) -> float:
    """Return the precision that a bound needs to prove the gap ``tol``, if ``value`` is the maximum."""
    precision = _LOOSEST * tol
    while precision > _TIGHTEST * tol and gap(value * (1.0 + precision)) > tol:
        precision *= 0.5
    return precision


def _relative_gap(problem: Atomic, point: AtomicPoint, at: AtOutputs, bound: float) -> float:
    """Return the gap relative to the objective, for a bound on all units, or for a value in its place."""
    gap = Measure(at.value, problem.lower(at, bound), problem.rounding(point, at)).gap
    return gap / max(abs(at.value), math.ulp(0.0))
