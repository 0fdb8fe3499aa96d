"""The search of a matrix-free oracle, by products with the data: Lanczos, and proofs by Cholesky factors."""

from __future__ import annotations

import math

import numpy as np

from mopn.network.search import Limits, Proof, Search, distinct
from mopn.solvers.interface import Effort
from mopn.solvers.sphere import refine
from mopn.solvers.sphere.cholesky import expected_seconds, expected_work, proven_bound
from mopn.solvers.sphere.stack import MatrixFreeStack
from mopn.solvers.sphere.starts import ritz_starts

__all__ = ["MatrixFreeSearch"]

# Tolerance of the values relative to that of the bound, the largest such tolerance, and the largest number of steps.
_FINER, _ROUGH, _STEPS = 0.01, 1e-3, 100
# Steps are expensive, so only this many of the best starts are refined.
_REFINED = 8


class MatrixFreeSearch(Search):
    """The search on a :class:`MatrixFreeStack`."""

    def __init__(self, stack: MatrixFreeStack, p: float, method: str, limits: Limits, effort: Effort) -> None:
        super().__init__(stack, p, method, limits, effort)
        # Without a proof the bound is loose in any case, so the values may have the largest tolerance.
        exact = method == "exact" or math.isinf(effort.work)
        self.tol = max(limits.tol, min(_ROUGH, _FINER * (self.precision if exact else 1.0)))

    def bound(self) -> float:
        """Return the bound of ``maximise`` or a smaller one: the proof needs no vectors to start from."""
        cheap = self.cheap_bound()
        return min(cheap, self._prove_by_cholesky().bound) if self.method == "exact" else cheap

    def cheap_bound(self) -> float:
        """Return the bound of the stack, by products with the data."""
        return self.stack.bound(self.p)

    def starts(self) -> np.ndarray:
        """Return start vectors (k, d)."""
        return ritz_starts(self.stack, self.p, self.tol, combined=not (self.single or self.method in ("power", "eigh")))

    def refine(self, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Refine the best distinct starts; keep the starts."""
        rough, _ = distinct(H, values)
        steps = min(_STEPS, int(_FINER / self.tol))
        best, best_values = refine(self.stack, rough[:_REFINED], self.p, self.tol, steps, self.left)
        return np.vstack([best, H]), np.concatenate([best_values, values])

    def prove(self, H: np.ndarray, values: np.ndarray) -> Proof:
        """Prove by Cholesky factors."""
        return self._prove_by_cholesky()

    def _prove_by_cholesky(self) -> Proof:
        """Return the proof by Cholesky factors, or none if it is expected to exceed the work or the time allowed."""
        if expected_work(self.stack, self.p) > self.effort.work or expected_seconds(self.stack, self.p) > self.seconds:
            return Proof(np.zeros((0, self.stack.shape[1])), math.inf)
        return Proof(*proven_bound(self.stack, self.p, self.precision, self.seconds))
