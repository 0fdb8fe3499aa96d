"""The search of an oracle on d x d matrices: by eigenvalues, and by the proofs of ``mopn.solvers.sphere``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mopn.network.search import Found, Limits, Proof, Search, distinct
from mopn.solvers.interface import Effort
from mopn.solvers.sphere import DenseStack, enumerate_signs, refine
from mopn.solvers.sphere.bounds import upper_bound
from mopn.solvers.sphere.branch_regions import split_and_bound
from mopn.solvers.sphere.branch_signs import branch_and_bound
from mopn.solvers.sphere.nested import Cost, nest_and_bound
from mopn.solvers.sphere.starts import dominant_starts, extreme_starts, gram_starts, random_starts

__all__ = ["DenseSearch"]

# Sums of squares work on matrices of order d (d + 1) / 2; beyond these features, on some principal directions first.
_ALL_DIRECTIONS = 26
# Each of their steps decomposes one such matrix, at this cost. The operations of a call are limited, so that results do
# not depend on the speed of the machine. Fewer steps than the least prove nothing.
_COST, _WORK, _NESTED_WORK = Cost(overhead=1e7, least=10), 4e11, 2e12
# Many starts lead to the same few maxima: all are refined to the rough tolerance, and then so many distinct ones to the
# tolerance of the oracle.
_ROUGH, _REFINED = 1e-3, 8
_STEPS = 100


class DenseSearch(Search):
    """The search on a :class:`DenseStack`; ``memory`` keeps the sum-of-squares proof from call to call."""

    def __init__(
        self,
        stack: DenseStack,
        p: float,
        method: str,
        limits: Limits,
        effort: Effort,
        memory: dict[str, np.ndarray],
    ) -> None:
        super().__init__(stack, p, method, limits, effort)
        self.rounding = stack.rounding(p)
        self.memory = memory

    def maximise(self) -> Found:
        """Return unit vectors, their values and a proven bound."""
        if self.method != "enumerate":
            return super().maximise()
        h, bound = enumerate_signs(self.stack, self.left)
        if math.isinf(bound):
            bound = self.cheap_bound()
        return Found(h[None], self.values(h[None]), bound)

    def bound(self) -> float:
        """Return only the bound of ``maximise``."""
        return self.maximise().bound if self.method in ("enumerate", "exact") and self.left > 0 else self.cheap_bound()

    def cheap_bound(self) -> float:
        """Return the least of the bounds that take milliseconds."""
        return upper_bound(self.stack, self.p)

    def starts(self) -> np.ndarray:
        """Return start vectors (k, d)."""
        if self.single or self.method in ("power", "eigh"):
            return dominant_starts(self.stack)
        starts = [extreme_starts(self.stack), gram_starts(self.stack, self.p)]
        # They nearly always suffice for p = 2. For p = 1 there are many sharp maxima, so random starts are added.
        return np.vstack([*starts, random_starts(self.stack, self.effort.precision or 1.0)] if self.p == 1 else starts)

    def refine(self, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Refine all starts roughly, and the best distinct ones to the tolerance; keep the starts.

        Many starts may lead to the same few maxima; the starts themselves are further, distinct units for a round.
        """
        tol = self.limits.tol
        rough, rough_values = distinct(*refine(self.stack, H, self.p, max(_ROUGH, tol), _STEPS, self.left))
        best, best_values = refine(self.stack, rough[:_REFINED], self.p, tol, _STEPS, self.left)
        return np.vstack([best, rough[_REFINED:], H]), np.concatenate([best_values, rough_values[_REFINED:], values])

    def prove(self, H: np.ndarray, values: np.ndarray) -> Proof:
        """Prove by branch and bound on signs for p = 1, and by sums of squares on parts of the sphere for p = 2."""
        if self.p == 1:
            return self._prove_by_signs(H[[np.argmax(values)]])
        return self._prove_by_squares(H)

    def _prove_by_signs(self, best: np.ndarray) -> Proof:
        nodes = int(min(self.limits.max_nodes, self.effort.nodes))
        h, bound, nodes = branch_and_bound(self.stack, best, self.precision, max_nodes=nodes, max_time=self.seconds)
        return Proof(h[None], bound, nodes)

    def _prove_by_squares(self, H: np.ndarray) -> Proof:
        d = self.stack.shape[1]
        if self.p == math.inf:
            return Proof(H[:0], math.inf)
        if d > _ALL_DIRECTIONS:
            work = min(_NESTED_WORK, self.effort.work)
            nested = nest_and_bound(self.stack, H, self.precision, _COST, work, self.seconds)
            return Proof(nested.H, nested.bound, nested.n_eigh, nested.parts)
        max_eigh = _COST.steps(d, min(_WORK, self.effort.work))
        if not max_eigh:
            return Proof(H[:0], math.inf)
        # A proof that only the clock limits must not change the answers of others: it has a memory of its own. One
        # whose work is limited too ends at the same place in every run, unless the run is out of time.
        clocked = math.isfinite(self.effort.seconds) and math.isinf(self.effort.work)
        start: Any = self.memory.get("clocked N" if clocked else "N", self.memory.get("N"))
        split = split_and_bound(self.stack, H, self.precision, start, max_eigh=max_eigh, max_time=self.seconds)
        if clocked:
            self.memory["clocked N"] = split.N
        elif not split.out_of_time:
            self.memory["N"] = split.N
        return Proof(split.H, split.bound, split.n_eigh)
