"""Regularisers R(V) of the output layer: a norm as a penalty or as a ball, and the squared l2 norm.

A certificate needs the conjugate R* of each along a ray: for a dual point whose dual norm is at most ``dual``,
``conjugate(s * dual)`` bounds R* at s times that point, and it is finite for ``s <= max_scale(dual)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mopn.core.norms import Norm, get_norm
from mopn.core.validation import check_strength

__all__ = ["SQUARED_L2", "Ball", "Penalty", "Regularizer", "SquaredL2", "make_regularizer"]

SQUARED_L2 = "squared-l2"


class Regularizer(ABC):
    """What a problem asks of its regulariser."""

    @abstractmethod
    def value(self, V: np.ndarray) -> float:
        """Return R(V)."""

    @abstractmethod
    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``step * R(U) + ||U - V||^2 / 2`` over U."""

    @abstractmethod
    def dual(self, G: np.ndarray) -> float:
        """Return the dual norm of G (k, m)."""

    @abstractmethod
    def conjugate(self, dual: float) -> float:
        """Return R* at a point of dual norm ``dual`` (an upper bound, increasing in ``dual``)."""

    @abstractmethod
    def max_scale(self, dual: float) -> float:
        """Return the largest s with ``conjugate(s * dual)`` finite."""

    @property
    @abstractmethod
    def active(self) -> bool:
        """Whether it restrains the weights at all; if not, no certificate exists."""


@dataclass(frozen=True)
class Penalty(Regularizer):
    """``strength * norm(V)``; the conjugate is 0 up to a dual norm of ``strength``, and infinite above."""

    norm: Norm
    strength: float

    def value(self, V: np.ndarray) -> float:
        return self.strength * self.norm.value(V)

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        return self.norm.prox(V, step * self.strength)

    def dual(self, G: np.ndarray) -> float:
        return self.norm.dual(G)

    def conjugate(self, dual: float) -> float:
        # max_scale returns the largest admissible ratio; its rounding must not turn a proof into infinity.
        return 0.0 if dual <= self.strength * (1 + 1e-15) else math.inf

    def max_scale(self, dual: float) -> float:
        return self.strength / dual if dual > 0 else math.inf

    @property
    def active(self) -> bool:
        return self.strength > 0


@dataclass(frozen=True)
class Ball(Regularizer):
    """The constraint ``norm(V) <= radius``: 0 inside; the conjugate is ``radius`` times the dual norm."""

    norm: Norm
    radius: float

    def value(self, V: np.ndarray) -> float:
        return 0.0

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        return self.norm.project(V, self.radius)

    def dual(self, G: np.ndarray) -> float:
        return self.norm.dual(G)

    def conjugate(self, dual: float) -> float:
        return self.radius * dual

    def max_scale(self, dual: float) -> float:
        return math.inf

    @property
    def active(self) -> bool:
        return True


@dataclass(frozen=True)
class SquaredL2(Regularizer):
    """``strength / 2 * ||V||^2``, for baselines: it makes no unit zero, so it has no oracle over all units."""

    strength: float

    def value(self, V: np.ndarray) -> float:
        return 0.5 * self.strength * float(np.vdot(V, V))

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        return V / (1.0 + step * self.strength)

    def dual(self, G: np.ndarray) -> float:
        return float(np.linalg.norm(G))

    def conjugate(self, dual: float) -> float:
        return 0.5 * dual**2 / self.strength

    def max_scale(self, dual: float) -> float:
        return math.inf

    @property
    def active(self) -> bool:
        return self.strength > 0


def make_regularizer(norm: str | Norm, strength: float | None, radius: float | None) -> Regularizer:
    """Return the regulariser of a norm with a strength or a radius, exactly one of which must be given."""
    if (strength is None) == (radius is None):
        raise ValueError(
            "give either strength (a penalty) or radius (a ball), and only one of them; "
            f"got strength={strength!r} and radius={radius!r}"
        )
    name, number = ("strength", strength) if radius is None else ("radius", radius)
    number = check_strength(number, name)
    if isinstance(norm, str) and norm == SQUARED_L2:
        if radius is not None:
            raise ValueError(f"norm={SQUARED_L2!r} has no ball form here; give strength instead of radius")
        return SquaredL2(number)
    return Penalty(get_norm(norm), number) if radius is None else Ball(get_norm(norm), number)
