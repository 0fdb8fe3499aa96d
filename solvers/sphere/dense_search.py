"""The search of an oracle on d x d matrices: by eigenvalues, and by the proofs of ``mopn.solvers.sphere``."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mopn.solvers.interface import Effort
from mopn.solvers.sphere.boundary_point import FEW_STEPS, Multipliers, RelaxationBound, step_work
from mopn.solvers.sphere.bounds import upper_bound
from mopn.solvers.sphere.branch_signs import MANY_FEATURES, branch_and_bound, enumerate_signs
from mopn.solvers.sphere.cones import bound_by_eigenvalues
from mopn.solvers.sphere.nested import Turned, nest_and_bound
from mopn.solvers.sphere.refinement import distinct, dominant_starts, extreme_starts, gram_starts, random_starts, refine
from mopn.solvers.sphere.search import MOST_SQUARED, Plan, Proof, Proven, SearchResult, SphereSearch
from mopn.solvers.sphere.stack import DenseStack
from mopn.solvers.sphere.sum_of_squares import bound_by_squares
from mopn.solvers.tools.budgets import Budget

# Operations of a proof by signs; a limit of work, unlike one of time, does not depend on the speed of the machine.
_MAX_SIGNS_WORK = 6.6e9
# Operations of any other proof.
MAX_WORK = 4e11
# Operations for signs alone before biquadratic forms with p = 1 and few features, a second or two: a step with forms
# takes as long as thousands of nodes.
_TRIED_SIGNS_WORK = 5e8
# The relative tolerance to which all starts are refined.
ROUGH_TOL = 1e-3
# The number of distinct starts that are then refined to the tolerance of the oracle.
REFINED_STARTS = 8
# Steps of a refinement, at most. A matrix-free search has these three in common.
REFINEMENT_STEPS = 100

Memory = dict[tuple[type, bool], Any]


class DenseSearch(SphereSearch):
    """The search on a :class:`DenseStack`; ``memory`` keeps multipliers by kind of proof, timed ones apart."""

    def __init__(self, stack: DenseStack, p: float, plan: Plan, limits: Effort, effort: Effort, memory: Memory) -> None:
        super().__init__(stack, p, plan, limits, effort)
        self.rounding = stack.rounding(p)
        self.memory = memory

    def budget(self, most: float = math.inf) -> Budget:
        return super().budget(min(most, self.plan.work))

    def maximise(self) -> SearchResult:
        if self.plan.proof is not Proof.ALL_SIGNS:
            return super().maximise()
        h, bound = enumerate_signs(self.stack, self.left)
        if math.isinf(bound):
            bound = self.cheap_bound()
        return SearchResult(h[None], self.values(h[None]), bound)

    def bound(self) -> float:
        return self.cheap_bound() if self.plan.is_cheap or self.left <= 0 else self.maximise().bound

    def cheap_bound(self) -> float:
        return upper_bound(self.stack, self.p, one_sided=self.plan.one_sided)

    def starts(self) -> np.ndarray:
        if not self.plan.refines:
            return dominant_starts(self.stack, one_sided=self.plan.one_sided)
        starts = [extreme_starts(self.stack), gram_starts(self.stack, self.p)]
        # They nearly always suffice for p = 2; for p = 1 there are many sharp maxima.
        if self.p == 1:
            starts.append(random_starts(self.stack, self.effort.precision or 1.0))
        return np.vstack(starts)

    def refine(self, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Refine all starts roughly, and the best distinct ones to the tolerance; keep the starts as further units."""
        tol = self.tol
        rough, rough_values = distinct(*refine(self.stack, H, self.p, max(ROUGH_TOL, tol), REFINEMENT_STEPS, self.left))
        best, best_values = refine(self.stack, rough[:REFINED_STARTS], self.p, tol, REFINEMENT_STEPS, self.left)
        units = np.vstack([best, rough[REFINED_STARTS:], H])
        return units, np.concatenate([best_values, rough_values[REFINED_STARTS:], values])

    def prove(self, H: np.ndarray, values: np.ndarray) -> Proven:
        proven = Proven(H[:0], math.inf)
        for proof in self._proofs():
            more = proof(H)
            bound = min(proven.bound, more.bound)
            work = proven.work + more.work
            proven = Proven(np.vstack([proven.H, more.H]), bound, work)
            H = np.vstack([H, more.H])
            if self.left <= 0 or bound <= self.values(H).max() * (1.0 + self.precision):
                break
        return proven

    def _proofs(self) -> list[Callable[[np.ndarray], Proven]]:
        """Return the proofs of the plan, in the order in which they are tried."""
        if self.plan.proof is Proof.SIGNS:
            return [partial(self._prove_by_signs, work=_MAX_SIGNS_WORK)]
        if self.plan.proof is Proof.SQUARES:
            return [self._prove_by_squares]
        d = self.stack.shape[1]
        proofs: list[Callable[[np.ndarray], Proven]] = []
        if self.plan.proof is Proof.BIQUADRATIC_SIGNS and d < MANY_FEATURES:
            proofs.append(partial(self._prove_by_signs, work=_TRIED_SIGNS_WORK))
        if self.plan.proof is Proof.CONES:
            proofs.append(self._prove_by_cones)
        proofs.append(self._prove_by_biquadratic_forms)
        if self.p == 2 and d <= MOST_SQUARED:
            proofs.append(self._prove_by_squares)
        return proofs

    def _prove_by_signs(self, H: np.ndarray, work: float) -> Proven:
        budget = self.budget(work)
        best = H[[np.argmax(self.values(H))]]
        h, bound = branch_and_bound(self.stack, best, self.precision, budget)
        return Proven(h[None], bound, budget.spent)

    def _prove_by_cones(self, H: np.ndarray) -> Proven:
        budget = self.budget(MAX_WORK)
        found, bound = bound_by_eigenvalues(self.stack, H, self.precision, budget)
        return Proven(found, bound, budget.spent)

    def _prove_by_biquadratic_forms(self, H: np.ndarray) -> Proven:
        budget = self.budget(MAX_WORK)
        found = nest_and_bound(self.stack, H, int(self.p), self.precision, budget, self._last(Turned))
        return self._remembered(found, budget)

    def _prove_by_squares(self, H: np.ndarray) -> Proven:
        budget = self.budget(MAX_WORK)
        d = self.stack.shape[1]
        if not budget.affords(FEW_STEPS * step_work(d * (d + 1) // 2)):
            return Proven(H[:0], math.inf)
        found = bound_by_squares(self.stack, H, self.precision, budget, self._last(Multipliers))
        return self._remembered(found, budget)

    @property
    def _is_clocked(self) -> bool:
        return math.isfinite(self.effort.seconds) and math.isinf(self.effort.work)

    def _last(self, kind: type) -> Any:
        """Return the multipliers of the last proof of a kind, or None."""
        return self.memory.get((kind, self._is_clocked), self.memory.get((kind, False)))

    def _remembered(self, found: RelaxationBound, budget: Budget) -> Proven:
        """Return a bound, whose multipliers are kept for the next one."""
        if self._is_clocked or not budget.out_of_time:
            self.memory[type(found.last), self._is_clocked] = found.last
        return Proven(found.H, found.bound, budget.spent)
