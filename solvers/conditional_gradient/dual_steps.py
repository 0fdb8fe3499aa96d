"""Better dual points by steps from a refitted point, which the problem offers: the gap falls without another refit."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mopn.solvers.interface import Atomic, AtomicPoint, Atoms, AtOutputs, Effort, Measure, Monitor

# A step takes the time of this number of evaluations of the objective, at most, where the objective falls no more: the
# steps may then take as long as the run before them.
MAX_PRICE_OF_LAST_STEPS = 500.0
# Steps after a refit, at most.
_MOST_STEPS = 4
# Fraction of the gap that two steps must leave at most, so that others follow.
_LEFT_BY_TWO_STEPS = 0.8
# Fraction of the tolerance to which the gap falls, so that units that change little may leave.
_ROOM = 0.8
# Operations for the bound in a round; there is no limit of time, so that runs repeat.
ROUND_WORK = 2e8


class Proof(NamedTuple):
    """A lower bound of the minimum, the point whose gradient proves it, its atoms, and the bound on all units."""

    point: AtomicPoint
    at: AtOutputs
    atoms: Atoms
    bound: float
    lower: float


class DualSteps:
    """Takes steps to better dual points while these lower the gap."""

    def __init__(self, problem: Atomic, oracle: Any, monitor: Monitor) -> None:
        self.problem, self.oracle, self.monitor = problem, oracle, monitor
        self.seconds = 0.0

    def improved(self, proof: Proof) -> Proof:
        """Return the proof of the largest lower bound, among the proofs of a refitted point and of points near it."""
        began = self.monitor.elapsed
        fun = proof.at.value
        rounding = self.problem.rounding(proof.point, proof.at)
        best = latest = proof
        for step in range(1, _MOST_STEPS + 1):
            gap = relative_gap(fun, best.lower, rounding)
            if gap <= _ROOM * self.monitor.tol or self.monitor.left <= 0.0:
                break
            moved = self.problem.better_dual(latest.point, latest.at, min(gap, 1.0), self.monitor.seed)
            if moved is None:
                break
            if step == 1 and not proof.atoms.bound_is_best:
                best = max(best, self._proof(proof.point, proof.at), key=lambda each: each.lower)
            latest = self._proof(moved, self.problem.output_gradient(moved))
            if not math.isfinite(latest.at.value):
                break
            if latest.lower > best.lower:
                best = latest
            if step >= 2 and relative_gap(fun, best.lower, rounding) > _LEFT_BY_TWO_STEPS * gap:
                break
        self.seconds += self.monitor.elapsed - began
        return best

    def _proof(self, point: AtomicPoint, at: AtOutputs) -> Proof:
        """Return the proven lower bound of a point, with the units of a thorough search."""
        atoms = self.problem.lmo(at, self.oracle, thorough_effort(self.monitor))
        return Proof(point, at, atoms, atoms.bound, self.problem.lower(at, atoms.bound))


def relative_gap(fun: float, lower: float, rounding: float) -> float:
    """Return the gap relative to the objective."""
    return Measure(fun, lower, rounding).gap / max(abs(fun), math.ulp(0.0))


def thorough_effort(monitor: Monitor) -> Effort:
    """Return the effort of a search that refines units, also where the oracle's own method leaves that out."""
    return Effort(monitor.tol, work=ROUND_WORK, seconds=monitor.left, thorough=True)
