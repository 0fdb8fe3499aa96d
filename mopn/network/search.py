"""The search of an oracle on one stack: starts, refinement, proof; what storage decides is left to two subclasses."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from mopn.solvers.interface import Effort
from mopn.solvers.sphere.directions import leaders

__all__ = ["Found", "Limits", "Proof", "Search", "distinct"]

# Sums of squares come near their limit slowly; a call that does not say otherwise asks for no more than this.
_DEFAULT_FOR_TWO = 1e-4
# Units that are nearer than this, by |cosine|, count as one.
_SAME_DIRECTION = 0.98


class Limits(NamedTuple):
    """An oracle's own limits: the tolerance of iterations, nodes of branch and bound, and seconds of a proof."""

    tol: float
    max_nodes: int
    max_time: float


class Found(NamedTuple):
    """Unit vectors (k, d), their values ``||q(h_r)||_p`` (k,), a proven bound, and the work of its proof."""

    H: np.ndarray
    values: np.ndarray
    bound: float
    work: int = 0


class Proof(NamedTuple):
    """Unit vectors (k, d) found on the way, the bound, and the work."""

    H: np.ndarray
    bound: float
    work: int = 0


class Search(ABC):
    """Maximises ``||q(h)||_p`` over unit h, by one method.

    Parameters
    ----------
    stack : DenseStack or MatrixFreeStack
        Scaled to about 1.
    p : {1, 2, inf}
    method : str
        One of ``METHODS`` but "auto".
    limits : Limits
    effort : Effort
    """

    def __init__(self, stack: Any, p: float, method: str, limits: Limits, effort: Effort) -> None:
        self.stack, self.p, self.method, self.limits, self.effort = stack, p, method, limits, effort
        default = _DEFAULT_FOR_TWO if p == 2 else 0.0
        self.precision = max(limits.tol, default if effort.precision is None else min(effort.precision, 1.0))
        self.seconds = min(limits.max_time, effort.seconds)
        # Whether each output has its own maximum, an eigenvector.
        self.single = p == math.inf or stack.shape[0] == 1

    def maximise(self) -> Found:
        """Return unit vectors, their values and a proven bound."""
        bound = self.cheap_bound()
        H = self.starts()
        values = self.values(H)
        if self.method in ("refine", "exact") and not self.single:
            H, values = self.refine(H, values)
        if self.method != "exact" or bound <= values.max() * (1.0 + self.precision):
            return Found(H, values, bound)
        proof = self.prove(H, values)
        H = np.vstack([H, proof.H])
        return Found(H, self.values(H), min(bound, proof.bound), proof.work)

    def values(self, H: np.ndarray) -> np.ndarray:
        """Return ``||q(h_r)||_p`` for the rows of H."""
        return np.linalg.norm(self.stack.forms(H), self.p, axis=1)

    @abstractmethod
    def bound(self) -> float:
        """Return the bound of ``maximise`` alone; units are selected only where the proof starts from them."""

    @abstractmethod
    def cheap_bound(self) -> float:
        """Return the bound that costs little."""

    @abstractmethod
    def starts(self) -> np.ndarray:
        """Return start vectors (k, d): dominant eigenvectors of the Gamma_c, and more where they are refined."""

    @abstractmethod
    def refine(self, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Improve the best distinct starts, and return all that is worth keeping with its values."""

    @abstractmethod
    def prove(self, H: np.ndarray, values: np.ndarray) -> Proof:
        """Close the gap between value and bound, as far as limits and effort allow."""


def distinct(H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort by value and drop what points (up to sign) nearly where a better one does."""
    order = np.argsort(-values, kind="stable")
    kept = order[leaders(H, order, _SAME_DIRECTION)[order] == order]
    return H[kept], values[kept]
