"""What a run pays for the bound on all units: little while the gap is wide, all limits when only a proof is missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from mopn.solvers.conditional_gradient.schedule import Schedule
from mopn.solvers.interface import Atomic, AtomicPoint, Atoms, AtOutputs, Effort, Measure, Monitor

__all__ = ["ProofBudget", "Selection", "measure"]

# What a bound may cost while the gap is wide: no clock, so that runs repeat.
_ROUND_WORK, _ROUND_NODES = 2e8, 45_000
# The last measurement need not be tighter than what the run has proven already.
_FINAL_PRECISION = 1e-2
# Nothing but the proof is missing once the estimated gap is this part of the tolerance, or has fallen below it and is
# still more than this part of the one before.
_WELL_BELOW, _LEVEL = 0.5, 0.5
# How tight the bound of that proof may have to be, relative to the gap that is asked for.
_LOOSEST, _TIGHTEST = 8.0, 0.01
# A tight bound is overdue when the estimated gap is this part of that at the last one, and the proven one is wider by
# this; such bounds may take this share of the time.
_OVERDUE, _WIDE, _OVERHEAD = 0.3, 2.0, 0.2


class Selection(NamedTuple):
    """Atoms, the least bound known, the relative gap that the best atom estimates, and whether all was spent on it."""

    atoms: Atoms
    bound: float
    estimate: float
    exhausted: bool = False


class ProofBudget:
    """Selects units, and decides what to pay for the bound on all units.

    While the gap is wide a bound costs little, and is little tighter than the gap of the round before makes worth
    while. Once the estimated gap has fallen well below that of the last tight bound, another is paid for, within a
    share of the time of the run. All of the oracle's limits may be spent once nothing but the proof is missing. Where
    the schedule is after a model, the proof may cost what the model did, and chooses no units.
    """

    def __init__(self, problem: Atomic, oracle: Any, monitor: Monitor, schedule: Schedule) -> None:
        self.problem, self.oracle, self.monitor, self.schedule = problem, oracle, monitor, schedule
        self.estimate, self.tight, self.spent = math.inf, 1.0, 0.0

    def __call__(self, point: AtomicPoint, at: AtOutputs) -> Selection:
        """Return the best units for a gradient."""
        tol, before = self.monitor.tol, self.estimate
        gap = partial(_relative_gap, self.problem, point, at)
        atoms = self.problem.lmo(at, self.oracle, _round_effort(max(before, tol)))
        self.estimate = gap(atoms.values[0])
        selection = Selection(atoms, atoms.bound, self.estimate)
        if gap(atoms.bound) <= tol:
            return selection
        if self.estimate <= _WELL_BELOW * tol or _LEVEL * before < self.estimate <= tol:
            return self._proven(at, selection, gap)
        wide = gap(atoms.bound) > _WIDE * self.estimate
        if self.estimate <= _OVERDUE * self.tight and wide and not atoms.bound_is_best:
            return self._tightened(at, selection)
        return selection

    def _proven(self, at: AtOutputs, selection: Selection, gap: Callable[[float], float]) -> Selection:
        """Spend all that may be spent on the bound: nothing else is missing."""
        atoms, tol = selection.atoms, self.monitor.tol
        if atoms.bound_is_best:
            return selection._replace(exhausted=True)
        seconds = self.monitor.left
        if self.schedule.after_a_model:
            seconds = min(seconds, self.monitor.elapsed)
        proof = self.problem.lmo(
            at, self.oracle, Effort(_deciding_precision(gap, atoms.values[0], tol), seconds=seconds)
        )
        if self.schedule.after_a_model:
            # What a clock may have cut short must not change the model.
            return selection._replace(bound=min(atoms.bound, proof.bound), exhausted=self.estimate <= tol)
        self.estimate = gap(proof.values[0])
        return Selection(proof, proof.bound, self.estimate, exhausted=self.estimate <= tol)

    def _tightened(self, at: AtOutputs, selection: Selection) -> Selection:
        """Return the same atoms with a tighter bound: what depends on the clock must not change the run."""
        seconds = min(_OVERHEAD * self.monitor.elapsed - self.spent, self.monitor.left)
        if seconds <= 0:
            return selection
        began = self.monitor.elapsed
        bound = self.problem.bound(at, self.oracle, Effort(self.estimate, seconds=seconds))
        self.spent += self.monitor.elapsed - began
        if bound < selection.bound:
            self.tight = self.estimate
        return selection._replace(bound=min(bound, selection.bound))


def measure(problem: Atomic, point: AtomicPoint, oracle: Any) -> Measure:
    """Return objective and gap from scratch, by a bound that costs no more than that of a round."""
    point = point.compact()
    at = problem.output_gradient(point)
    bound = problem.bound(at, oracle, _round_effort(_FINAL_PRECISION))
    return Measure(at.value, problem.gap(point, at, bound))


def _round_effort(precision: float) -> Effort:
    return Effort(precision, work=_ROUND_WORK, nodes=_ROUND_NODES)


def _deciding_precision(gap: Callable[[float], float], value: float, tol: float) -> float:
    """Return how tight a bound proves the gap ``tol``: a power of 2 times it."""
    precision = _LOOSEST * tol
    while precision > _TIGHTEST * tol and gap(value * (1.0 + precision)) > tol:
        precision *= 0.5
    return precision


def _relative_gap(problem: Atomic, point: AtomicPoint, at: AtOutputs, bound: float) -> float:
    """Return the gap over the objective, for a bound on all units, or for a value as if it were one."""
    return problem.gap(point, at, bound) / max(abs(at.value), math.ulp(0.0))
