"""Sparsity-inducing norms of weights V (k, m) (Table 1 of Blondel et al., NIPS 2017).

Each has its value, its dual norm, the prox of ``step * norm`` and the projection onto a ball. The one that is infinite
for negative weights is no norm but a gauge, to which all of this applies: units then only add to outputs.
"""

import math
from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from mopn.data.validation import check_member
from mopn.solvers.sphere.refinement import dual_vectors

NormName = Literal["l1", "l1/l2", "l1/linf", "nonnegative-l1"]


class Norm(ABC):
    """A sum of norms of the rows of V."""

    name: str
    # The p of the dual norm, max over rows of ``||g_r||_p``.
    exponent: float
    # Whether weights must be nonnegative; only the negative entries of g count then.
    nonnegative = False

    @abstractmethod
    def sizes(self, V: np.ndarray) -> np.ndarray:
        """Return the numbers whose sum is the norm of V: one for each entry, or one for each row."""

    def value(self, V: np.ndarray) -> float:
        return float(self.sizes(V).sum())

    def dual(self, G: np.ndarray) -> float:
        """Return the dual norm of G (k, m): the largest of its rows; 0 for no rows."""
        return float(self.duals(G).max(initial=0.0))

    def duals(self, G: np.ndarray) -> np.ndarray:
        """Return the dual norm of every row of G (k, m): ``||g_r||_p``."""
        return np.linalg.norm(G, self.exponent, axis=1)

    def steepest(self, G: np.ndarray) -> np.ndarray:
        """Return weights (k, m) with <g_r, v_r> = minus the dual norm of each row of G; rows of norm 1, or 0."""
        return -dual_vectors(G, self.exponent)

    def check_feasible(self, V: np.ndarray) -> None:
        """Raise ``ValueError`` if weights V (k, m) must be nonnegative, and are not."""
        if self.nonnegative and V.min(initial=0.0) < 0.0:
            raise ValueError(
                f"the weights must be nonnegative for norm={self.name!r}, and the least is {V.min():.6g}; set negative "
                "ones to 0, or take norm='l1'"
            )

    @abstractmethod
    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``step * norm(U) + ||U - V||^2 / 2`` over U."""

    def shrinkage(self, V: np.ndarray, step: float) -> tuple[float, float]:
        """Return the norm of ``prox(V, step)`` and minus its derivative in the step."""
        sizes = self.sizes(V)
        kept = sizes > step
        return float(np.sum(sizes[kept] - step)), float(np.count_nonzero(kept))

    def project(self, V: np.ndarray, radius: float) -> np.ndarray:
        """Return the nearest point of the ball ``norm(U) <= radius``."""
        if self.value(V) <= radius:
            return np.array(V)
        # It is prox(V, step) for the step at which its norm equals the radius. That norm is convex, decreasing and
        # piecewise linear in the step, so Newton's method from 0 increases monotonically and ends at the root.
        step = -1.0
        new = 0.0
        while new > step:
            step = new
            value, slope = self.shrinkage(V, step)
            if value > radius and slope > 0:
                new = step + (value - radius) / slope
        U = self.prox(V, step)
        value = self.value(U)
        # Rounding may leave it outside.
        return U * (radius / value) if value > radius else U

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class L1(Norm):
    """Sum of all absolute entries; dual: the largest."""

    name = "l1"
    exponent = math.inf

    def sizes(self, V: np.ndarray) -> np.ndarray:
        return np.abs(V)

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        return V - np.clip(V, -step, step)


class NonnegativeL1(L1):
    """The sum of entries, which must be nonnegative (for ``sizes``, too); dual: the largest of -G, or 0."""

    name = "nonnegative-l1"
    nonnegative = True

    def duals(self, G: np.ndarray) -> np.ndarray:
        return super().duals(np.minimum(G, 0.0))

    def steepest(self, G: np.ndarray) -> np.ndarray:
        return np.maximum(super().steepest(np.minimum(G, 0.0)), 0.0)

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        return np.maximum(V - step, 0.0)

    def project(self, V: np.ndarray, radius: float) -> np.ndarray:
        return super().project(np.maximum(V, 0.0), radius)


class L1L2(Norm):
    """Sum of the rows' Euclidean lengths (group lasso); dual: the largest length."""

    name = "l1/l2"
    exponent = 2.0

    def sizes(self, V: np.ndarray) -> np.ndarray:
        return np.linalg.norm(V, axis=1)

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        lengths = self.sizes(V)[:, None]
        kept = lengths > step
        divisors = np.where(kept, lengths, 1.0)
        return V * np.where(kept, 1.0 - step / divisors, 0.0)


class L1Linf(Norm):
    """Sum of the rows' largest absolute entries; dual: the largest row sum of absolute entries."""

    name = "l1/linf"
    exponent = 1.0

    def sizes(self, V: np.ndarray) -> np.ndarray:
        return np.abs(V).max(axis=1, initial=0.0)

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        level, _ = _clipping_levels(V, step)
        return np.clip(V, -level[:, None], level[:, None])

    def shrinkage(self, V: np.ndarray, step: float) -> tuple[float, float]:
        level, count = _clipping_levels(V, step)
        return float(level.sum()), float(np.sum(1.0 / count[level > 0]))


def _clipping_levels(V: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every row, u with sum_c max(|v_c| - u, 0) = step, or 0, and the number of entries that it clips."""
    a = -np.sort(-np.abs(V), axis=1)
    counts = np.arange(1, V.shape[1] + 1)
    levels = (np.cumsum(a, axis=1) - step) / counts
    # The number of clipped entries is the largest j whose j-th entry lies above (or at) the level of the first j.
    count = V.shape[1] - np.argmax((a >= levels)[:, ::-1], axis=1)
    level = levels[np.arange(len(V)), count - 1]
    return np.maximum(level, 0.0), count


NORMS: dict[str, Norm] = {norm.name: norm for norm in (L1(), L1L2(), L1Linf(), NonnegativeL1())}


def get_norm(norm: str | Norm) -> Norm:
    return check_member(norm, "norm", Norm, NORMS, "bounds over all units are proven for these alone")
