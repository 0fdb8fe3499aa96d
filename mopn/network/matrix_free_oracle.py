"""The search of a matrix-free oracle, by products with the data: Lanczos, and proofs, some with a probability."""

from __future__ import annotations

import math

import numpy as np

from mopn.solvers.failure_budget import FailureBudget
from mopn.solvers.interface import Effort
from mopn.solvers.sphere import refine
from mopn.solvers.sphere.cholesky import OPERATIONS_A_SECOND, expected_work, proven_bound
from mopn.solvers.sphere.dense_search import REFINED, ROUGH, STEPS
from mopn.solvers.sphere.directions import distinct
from mopn.solvers.sphere.plan import Plan, Proof
from mopn.solvers.sphere.probable import expected_products, probable_bound
from mopn.solvers.sphere.search import Proven, SphereSearch
from mopn.solvers.sphere.stack import MatrixFreeStack
from mopn.solvers.sphere.starts import ritz_starts

# Tolerance of the values relative to the bound's.
_FINER = 0.01
# Precision of random bounds, unless a finer one is asked for; for p = 2, where its price is that of a covering of a
# sphere, a rougher one; and the finest.
_PROBABLE, _PROBABLE_FOR_TWO, _FINEST = 1e-2, 5e-2, 1e-4


class MatrixFreeSearch(SphereSearch):
    """The search on a :class:`MatrixFreeStack`; random proofs spend failure probability."""

    def __init__(
        self,
        stack: MatrixFreeStack,
        p: float,
        plan: Plan,
        limits: Effort,
        effort: Effort,
        failure_budget: FailureBudget,
        seed: int | None,
    ) -> None:
        super().__init__(stack, p, plan, limits, effort)
        self.failure_budget, self.seed = failure_budget, seed
        # Without a proof the bound is loose in any case, so the values may have the largest tolerance.
        exact = plan.proof is Proof.CHOLESKY or math.isinf(effort.work)
        self.tol = max(self.tol, min(ROUGH, _FINER * (self.precision if exact else 1.0)))

    def bound(self) -> float:
        """Return the bound of ``maximise`` or a smaller one: the proof needs no vectors to start from."""
        if not self.effort.work:
            return self.stack.collatz_bound(self.p)
        cheap = self.cheap_bound()
        return cheap if self.plan.is_cheap else min(cheap, self._proof().bound)

    def cheap_bound(self) -> float:
        """Return the bound of the stack, by products with the data; none without work to spend."""
        return self.stack.bound(self.p) if self.effort.work else math.inf

    def starts(self) -> np.ndarray:
        """Return start vectors (k, d)."""
        plan = self.plan
        return ritz_starts(self.stack, self.p, self.tol, combined=plan.refines, one_sided=plan.one_sided)

    def refine(self, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Refine the best distinct starts; keep the starts."""
        rough, _ = distinct(H, values)
        steps = min(STEPS, int(_FINER / self.tol))
        best, best_values = refine(self.stack, rough[:REFINED], self.p, self.tol, steps, self.left)
        return np.vstack([best, H]), np.concatenate([best_values, values])

    def prove(self, H: np.ndarray, values: np.ndarray) -> Proven:
        """Prove by Cholesky factors, or with a probability."""
        return self._proof(float(values.max()))

    def _proof(self, best: float = 0.0) -> Proven:
        """Return the proof; none if it is expected to exceed the work or the time allowed."""
        stack, p, budget, failure = self.stack, self.p, self.budget(), self.failure_budget.next
        precision = _PROBABLE_FOR_TWO if p == 2 and stack.shape[0] > 1 else _PROBABLE
        if self.effort.precision is not None:
            precision = min(max(self.effort.precision, _FINEST), precision)
        cholesky = self.plan.proof is Proof.CHOLESKY
        work = expected_work(stack, p) if cholesky else stack.work[0] * expected_products(stack, p, precision, failure)
        if not budget.affords(work) or work / OPERATIONS_A_SECOND > budget.seconds:
            return Proven(np.zeros((0, stack.shape[1])), math.inf)
        if cholesky:
            return Proven(*proven_bound(stack, p, self.precision, budget, one_sided=self.plan.one_sided))
        rng = self.failure_budget.draw(self.seed)
        return Proven(*probable_bound(stack, p, precision, failure, rng, budget, best))
