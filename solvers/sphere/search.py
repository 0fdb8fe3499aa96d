"""The search of an oracle on a stack: starts, refinement, proof."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from mopn.solvers.interface import Effort
from mopn.solvers.sphere.nested import BoundParts
from mopn.solvers.sphere.plan import Plan
from mopn.solvers.tools.budgets import Budget

# The precision for p = 2 of calls without one, as relaxations converge slowly near their limit.
_DEFAULT_FOR_TWO = 1e-4


class SearchResult(NamedTuple):
    """Unit vectors (k, d), their values ``||q(h_r)||_p`` (k,), a proven bound, the work of its proof, and its parts."""

    H: np.ndarray
    values: np.ndarray
    bound: float
    work: float = 0.0
    parts: BoundParts | None = None


class Proven(NamedTuple):
    """Unit vectors (k, d) found during the proof, the bound, the work, and the parts of the bound."""

    H: np.ndarray
    bound: float
    work: float = 0.0
    parts: BoundParts | None = None


class SphereSearch(ABC):
    """Maximises ``||q(h)||_p`` over unit h, with a subclass for each kind of stack."""

    def __init__(self, stack: Any, p: float, plan: Plan, limits: Effort, effort: Effort) -> None:
        self.stack, self.p, self.plan, self.limits, self.effort = stack, p, plan, limits, effort
        default = _DEFAULT_FOR_TWO if p == 2 else 0.0
        self.tol = limits.precision or 0.0
        self.precision = max(self.tol, default if effort.precision is None else min(effort.precision, 1.0))
        self._began = time.perf_counter()
        # Bound of the error in ``||q(h)||_p`` from forming the stack.
        self.rounding = 0.0

    @property
    def left(self) -> float:
        """Seconds left to the call."""
        return self.effort.seconds - (time.perf_counter() - self._began)

    def budget(self, most: float = math.inf) -> Budget:
        """Return the budget of a proof from now on, of at most so many operations."""
        work = min(self.limits.work, self.effort.work, most)
        return Budget(work, min(self.limits.seconds, self.left))

    def maximise(self) -> SearchResult:
        """Return unit vectors, their values and a proven bound; out of time, the starts."""
        bound = self.cheap_bound()
        H = self.starts()
        values = self.values(H)
        if self.plan.refines and self.left > 0:
            H, values = self.refine(H, values)
        best = float(values.max())
        tight = bound <= max(best * (1.0 + self.precision), best + 2.0 * self.rounding)
        if self.plan.is_cheap or self.left <= 0 or tight:
            return SearchResult(H, values, bound)
        proof = self.prove(H, values)
        H, parts = np.vstack([H, proof.H]), proof.parts if proof.bound <= bound else None
        return SearchResult(H, self.values(H), min(bound, proof.bound), proof.work, parts)

    def values(self, H: np.ndarray) -> np.ndarray:
        """Return ``||q(h_r)||_p`` for the rows of H, one-sided of negative values alone."""
        forms = self.stack.forms(H)
        return np.linalg.norm(np.minimum(forms, 0.0) if self.plan.one_sided else forms, self.p, axis=1)

    @abstractmethod
    def bound(self) -> float:
        """Return only the bound of ``maximise``, with a search only if the proof starts from units."""

    @abstractmethod
    def cheap_bound(self) -> float:
        """Return the least of the bounds that take milliseconds."""

    @abstractmethod
    def starts(self) -> np.ndarray:
        """Return start vectors (k, d): dominant eigenvectors of the Gamma_c, and more for refinement."""

    @abstractmethod
    def refine(self, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Improve the best distinct starts; return the vectors to keep, with their values."""

    @abstractmethod
    def prove(self, H: np.ndarray, values: np.ndarray) -> Proven:
        """Tighten the bound towards the best value, within the limits and the effort."""
