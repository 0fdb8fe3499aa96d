"""The budget of the bound on all units: small while the gap is large, up to all limits for the final proof."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from mopn.solvers.conditional_gradient.dual_steps import ROUND_WORK, Proof, relative_gap, thorough_effort
from mopn.solvers.conditional_gradient.schedule import Schedule
from mopn.solvers.interface import Atomic, AtomicPoint, Atoms, AtOutputs, Effort, Monitor

# Fraction of the tolerance at which the final proof is tried. Below the tolerance it is also tried if the estimated gap
# is more than this fraction of the last round's; in a run for a model, always.
_WELL_BELOW = 0.5
# With a user's units, fraction of the gap by which the objective must fall before another final proof.
_FALL_BEFORE_PROOF = 0.1
# The loosest precision of the final proof, relative to the tolerance.
_LOOSEST = 8.0
# The tightest precision of the final proof, relative to the tolerance.
_TIGHTEST = 0.01
# Fraction of the proven gap to which the estimated one must fall before a tight bound is computed.
_FALL_BEFORE_BOUND = 0.3
# Fraction of the time of the run that tight bounds may take.
_TIME_OF_BOUNDS = 0.35
# Fraction of the time of the run that the tight bound of a complete model may take.
_TIME_OF_MODEL_BOUND = 0.5
# A tight bound reached its precision if it exceeds the best value by at most this multiple of it. After one that did
# not, the next waits until it may take this multiple of its time.
_LONGER = 2.0


class Selection(NamedTuple):
    """The answer of the oracle in one round: atoms, best first, and the least proven bound on all units."""

    atoms: Atoms
    bound: float
    # Estimate of the relative gap: with the value of the best atom in place of the bound. If a user's function selected
    # the atoms, it is the proven gap, as better atoms may exist.
    estimate: float
    # Whether the estimate has reached the tolerance, and neither a tighter bound nor a refit can carry the proof.
    exhausted: bool = False

    def with_proof(self, proof: Proof, fun: float, tol: float) -> Selection:
        """Return the atoms, bound and estimate of a proof that may be of another point, for an objective."""
        gap = relative_gap(fun, proof.lower, 0.0)
        if proof.atoms is self.atoms or (gap >= self.estimate and fun < proof.at.value):
            return self
        return Selection(proof.atoms, proof.bound, gap, exhausted=self.exhausted and gap <= tol)


class ProofSchedule:
    """Selects units, and sets the effort of the bound on all units.

    In every round the effort is small, and the precision is the estimated gap of the round before. When the estimated
    gap has fallen far below the proven one, a tight bound is computed, within a fraction of the time of the run. When
    the estimated gap reaches the tolerance, the final proof may use all limits of the oracle.

    A model must not depend on the clock. So its tight bound waits until it is complete. Its final proof takes at most
    as long as the run before it, selects no units, and ends the run. Without ``prove`` there are only searches.
    """

    def __init__(
        self, problem: Atomic, oracle: Any, monitor: Monitor, schedule: Schedule, *, prove: bool = True
    ) -> None:
        self.prove = prove
        self.problem, self.oracle, self.monitor, self.schedule = problem, oracle, monitor, schedule
        # The estimated gap of the last round, and the least proven one.
        self.estimate = math.inf
        self.proven = math.inf
        # Seconds spent on tight bounds, and the least that another one needs.
        self.seconds_spent = 0.0
        self.least_seconds = 0.0
        # Seconds in the searches for units, and in proofs besides these.
        self.oracle_time = 0.0
        self.proof_time = 0.0
        # The estimated gap at the last final proof.
        self.at_final_proof = math.inf
        # With a user's units, the objective that allows another final proof.
        self.next_proof = math.inf

    def select(self, point: AtomicPoint, at: AtOutputs, *, last: bool = False) -> Selection:
        """Return the best units for a gradient, and the bound on all units; ``last``: the model is complete."""
        began, proofs_before = self.monitor.elapsed, self.proof_time
        before = self.estimate
        gap = partial(_relative_gap, self.problem, point, at)
        work = ROUND_WORK if self.prove else 0.0
        effort = Effort(max(before, self.monitor.tol), work=work, seconds=self.monitor.left)
        atoms = self.problem.lmo(at, self.oracle, effort)
        # A gap takes as long as many products. Once the time is over, the proven gap serves, which is needed anyway.
        self.estimate = gap(atoms.values[0] if self.monitor.left > 0.0 else atoms.bound)
        selection = Selection(atoms, atoms.bound, self.estimate)
        if gap(atoms.bound) > self.monitor.tol:
            selection = self._with_better_bound(at, selection, gap, before, last)
        if selection.exhausted and getattr(selection.atoms, "rough", False):
            selection = self._with_refined_units(point, at, selection)
        if is_from_user(selection.atoms):
            proven = _relative_gap(self.problem, point, at, selection.bound)
            selection = selection._replace(estimate=proven, exhausted=False)
        self.oracle_time += self.monitor.elapsed - began - (self.proof_time - proofs_before)
        return selection

    def _with_better_bound(
        self, at: AtOutputs, selection: Selection, gap: Callable[[float], float], before: float, last: bool
    ) -> Selection:
        """Return the answer of the oracle with a final proof or a tight bound where one is due.

        ``before`` is the estimated gap of the round before.
        """
        tol, atoms = self.monitor.tol, selection.atoms
        if not self.prove:
            if not (last or self.estimate <= tol):
                return selection
            effort = Effort(max(before, tol), work=0.0, seconds=self.monitor.left)
            bound = min(atoms.bound, self.problem.bound(at, self.oracle, effort))
            return selection._replace(bound=bound, exhausted=self.estimate <= tol)

        # In a run for a model the final proof ends the run in any case. So it comes before a tight bound, which depends
        # on the clock, could end the run.
        level = self.schedule.fits_a_model or self.estimate > _WELL_BELOW * before
        due = self.estimate <= _WELL_BELOW * tol or (level and self.estimate <= tol)
        if due and not (is_from_user(atoms) and self._is_premature(at.value, gap(atoms.bound))):
            return self._with_final_proof(at, selection, gap)

        self.proven = min(self.proven, gap(atoms.bound))
        # While the estimated gap exceeds the tolerance, no bound ends the run, ready or not: that depends on the clock.
        if self.schedule.fits_a_model:
            wants_tight_bound = last
        else:
            wants_tight_bound = tol < self.estimate <= _FALL_BEFORE_BOUND * self.proven < math.inf
        if wants_tight_bound and not atoms.bound_is_best:
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

    def _with_refined_units(self, point: AtomicPoint, at: AtOutputs, selection: Selection) -> Selection:
        """Search again before a run ends by an estimate: the method of the oracle may miss the best unit."""
        atoms = self.problem.lmo(at, self.oracle, thorough_effort(self.monitor))
        found = _relative_gap(self.problem, point, at, atoms.values[0])
        self.estimate = max(selection.estimate, found)
        bound = min(selection.bound, atoms.bound)
        return Selection(atoms, bound, self.estimate, exhausted=self.estimate <= self.monitor.tol)

    def _is_premature(self, fun: float, proven: float) -> bool:
        """Whether a final proof is premature: tol is 0, or the objective has hardly fallen since the last one."""
        if self.monitor.tol == 0.0 or fun > self.next_proof:
            return True
        self.next_proof = fun - _FALL_BEFORE_PROOF * abs(fun) * min(proven, 1.0)
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
        fraction = _TIME_OF_MODEL_BOUND if self.schedule.fits_a_model else _TIME_OF_BOUNDS
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
    """Whether a user's function selected the atoms; atoms of other problems need not say so."""
    return getattr(atoms, "from_user", False)


def _deciding_precision(gap: Callable[[float], float], value: float, tol: float) -> float:
    """Return the precision that a bound needs to prove the gap ``tol``, if ``value`` is the maximum."""
    precision = _LOOSEST * tol
    while precision > _TIGHTEST * tol and gap(value * (1.0 + precision)) > tol:
        precision *= 0.5
    return precision


def _relative_gap(problem: Atomic, point: AtomicPoint, at: AtOutputs, bound: float) -> float:
    """Return the gap relative to the objective, for a bound on all units, or for a value in its place."""
    return relative_gap(at.value, problem.lower(at, bound), problem.rounding(point, at))
