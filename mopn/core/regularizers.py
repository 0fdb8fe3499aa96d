"""Regularisers R(V) of the output layer: a norm as a penalty or as a ball, and the squared l2 norm.

A regulariser offers:

* first-order methods: ``value``, ``prox``, and ``gradient`` where R is ``smooth``;
* certificates: ``dual``, ``conjugate`` and ``max_scale``. For a dual point whose dual norm is at most ``dual``,
  ``conjugate(s * dual)`` bounds R* at s times that point, and it is finite for ``s <= max_scale(dual)``.
  ``dual_of_rows`` bounds the effect of rounding on the dual norm;
* interior-point methods: ``barrier``, where ``has_barrier``;
* network problems, with a penalty or a ball (:class:`NormRegularizer`): the cost of weight, extreme points of
  conditional gradient steps, and the smooth form of the refit of both layers (:mod:`mopn.network.joint`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.core.barriers import BallBarrier, PenaltyBarrier
from mopn.core.norms import NORMS, Norm, get_norm
from mopn.data.validation import check_nonnegative
from mopn.solvers.interface import Barrier
from mopn.solvers.numerics.precision import NULL, TINY, dot
from mopn.solvers.tools.checks import check_fraction, shown

SQUARED_L2 = "squared-l2"

# Relative excess over the radius that networks to be certified may have: files and users round their weights.
_RADIUS_TOL = 1e-9
# Relative excess of a dual norm over the strength that counts as rounding of their ratio; see ``max_scale``.
_RATIO_ROUNDING = 1e-15


@dataclass(frozen=True)
class Ratio:
    """A strength as a multiple of the smallest strength whose solution is zero, as ``eps`` of ``lasso_path``.

    It need not change with the number of samples, with the number of outputs or with the units of X and y.

    Parameters
    ----------
    value : float
        In (0, 1).

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=mopn.Ratio(0.1))
    >>> round(problem.strength / problem.strength_max(), 6)
    0.1
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check_fraction(self.value, "Ratio: value"))

    def __call__(self, smallest: float) -> float:
        """Return the strength, given the smallest one whose solution is zero."""
        return self.value * smallest

    def __repr__(self) -> str:
        return f"Ratio({self.value})"


class Regularizer(ABC):
    """The interface of regularisers for all problems."""

    @property
    @abstractmethod
    def active(self) -> bool:
        """Whether R is not identically zero; if it is, no certificate exists."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The regulariser in messages, as the user gave it."""

    @abstractmethod
    def largest_norm(self, loss: float) -> float:
        """Return a norm that no minimiser exceeds if the losses are ``loss`` at weights of zero; R is active."""

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether R is differentiable."""

    @property
    def has_barrier(self) -> bool:
        """Whether there is a barrier: R is active and not smooth, and its domain has an interior."""
        return False

    @abstractmethod
    def value(self, V: np.ndarray) -> float:
        """Return R(V) at a feasible V."""

    def gradient(self, V: np.ndarray) -> np.ndarray:
        assert self.smooth
        return np.zeros_like(V)

    @abstractmethod
    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``step * R(U) + ||U - V||^2 / 2`` over U."""

    @abstractmethod
    def dual(self, G: np.ndarray) -> float:
        """Return the dual norm of G (k, m)."""

    def dual_of_rows(self, row_sum: float, k: int) -> float:
        """Bound the dual norm of k rows from above, if the moduli of each add up to ``row_sum`` at most."""
        return row_sum

    @abstractmethod
    def conjugate(self, dual: float) -> float:
        """Return R* at a point of dual norm ``dual`` (an upper bound, increasing in ``dual``)."""

    @abstractmethod
    def max_scale(self, dual: float) -> float:
        """Return the largest s with ``conjugate(s * dual)`` finite."""

    def barrier(self, V: np.ndarray, mu: float, gradient: np.ndarray) -> Barrier:
        """Return an interior-point state at weights V (k, m), moved into a ball, near the central path for mu."""
        raise NotImplementedError


class NormRegularizer(Regularizer):
    """A norm as a penalty or as a ball: it makes units zero, as network problems require.

    In the smooth form of the refit of both layers, the units A (k, d) have any length, and their weights a norm of at
    most 1. So ||A||_F^2 replaces the norm; the free variables are B (k, d).
    """

    norm: Norm

    @property
    @abstractmethod
    def constrained(self) -> bool:
        """Whether the norm is constrained (a ball) and not penalised."""

    def dual(self, G: np.ndarray) -> float:
        return self.norm.dual(G)

    def with_strength(self, strength: float) -> Penalty:
        return Penalty(self.norm, check_nonnegative(strength, "strength"))

    @abstractmethod
    def check_feasible(self, V: np.ndarray) -> None:
        """Raise ``ValueError`` for weights V (k, m) that the norm does not allow, or outside a ball."""

    @abstractmethod
    def weight_cost(self, earned: Callable[[], float]) -> float:
        """Return the dual value that a unit must exceed for weight on it to decrease the objective.

        It is the strength or, in a ball, the mean decrease of the losses per unit of norm of the present weights:
        ``earned()``, minus the inner product of the loss gradient and the units' outputs, divided by the radius.
        """

    @abstractmethod
    def vertex(self, least: float, value: float) -> tuple[float, float]:
        """Return the norm of the extreme point of a step, and the penalty per unit of norm."""

    def shares(self, V: np.ndarray, least: float) -> np.ndarray:
        """Return the coefficients (k,) of V as a combination of 0 and extreme points in the rows' directions."""
        size, _ = self.vertex(least, math.inf)
        row_norms = np.array([self.norm.value(row[None]) for row in V])
        return row_norms / max(size, math.ulp(0.0))

    @abstractmethod
    def scaled_units(self, B: np.ndarray) -> np.ndarray:
        """Return the units A (k, d) of the free variables B: for a ball, B scaled into ||A||_F^2 <= radius."""

    @abstractmethod
    def units_value_gradient(self, B: np.ndarray, A: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """Return R at the units A of B, and the gradient of F + R in B, from the gradient of F in A."""


@dataclass(frozen=True)
class Penalty(NormRegularizer):
    """``strength * norm(V)``; the conjugate is 0 up to a dual norm of ``strength``, and infinite above."""

    norm: Norm
    strength: float

    constrained = False

    @property
    def active(self) -> bool:
        return self.strength > 0

    @property
    def words(self) -> str:
        return f"strength={self.strength}"

    def largest_norm(self, loss: float) -> float:
        return loss / self.strength

    @property
    def smooth(self) -> bool:
        return not self.active and not self.norm.nonnegative

    @property
    def has_barrier(self) -> bool:
        return self.active and not self.norm.nonnegative

    def value(self, V: np.ndarray) -> float:
        return self.strength * self.norm.value(V)

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        return self.norm.prox(V, step * self.strength)

    def conjugate(self, dual: float) -> float:
        return 0.0 if dual <= self.strength * (1 + _RATIO_ROUNDING) else math.inf

    def max_scale(self, dual: float) -> float:
        return float(self.strength) / float(dual) if dual > 0 else math.inf

    def barrier(self, V: np.ndarray, mu: float, gradient: np.ndarray) -> Barrier:
        return PenaltyBarrier(self.norm, self.strength, V, mu)

    def check_feasible(self, V: np.ndarray) -> None:
        self.norm.check_feasible(V)

    def weight_cost(self, earned: Callable[[], float]) -> float:
        return self.strength

    def vertex(self, least: float, value: float) -> tuple[float, float]:
        if value <= self.strength:
            return 0.0, self.strength
        if self.strength == 0:
            raise ValueError("with strength=0 nothing bounds a step: give a radius or a positive strength")
        return least / self.strength, self.strength

    def scaled_units(self, B: np.ndarray) -> np.ndarray:
        return B

    def units_value_gradient(self, B: np.ndarray, A: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        return self.strength * dot(A.ravel(), A.ravel()), gradient + 2.0 * self.strength * A


@dataclass(frozen=True)
class Ball(NormRegularizer):
    """The constraint ``norm(V) <= radius``: 0 inside; the conjugate is ``radius`` times the dual norm."""

    norm: Norm
    radius: float

    constrained = active = True
    smooth = False

    @property
    def words(self) -> str:
        return f"radius={self.radius}"

    def largest_norm(self, loss: float) -> float:
        return self.radius

    @property
    def has_barrier(self) -> bool:
        return self.radius > 0 and not self.norm.nonnegative

    def value(self, V: np.ndarray) -> float:
        return 0.0

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        return self.norm.project(V, self.radius)

    def conjugate(self, dual: float) -> float:
        return self.radius * dual

    def max_scale(self, dual: float) -> float:
        return math.inf

    def barrier(self, V: np.ndarray, mu: float, gradient: np.ndarray) -> Barrier:
        return BallBarrier(self.norm, self.radius, V, mu, gradient)

    def check_feasible(self, V: np.ndarray) -> None:
        self.norm.check_feasible(V)
        norm = self.norm.value(V)
        if norm > self.radius * (1 + _RADIUS_TOL):
            raise ValueError(
                f"the weights have norm {norm:.6g}, outside the ball of radius {self.radius:.6g}; scale them, or "
                "certify against a larger radius"
            )

    def weight_cost(self, earned: Callable[[], float]) -> float:
        return earned() / max(self.radius, math.ulp(0.0))

    def vertex(self, least: float, value: float) -> tuple[float, float]:
        return self.radius, 0.0

    def scaled_units(self, B: np.ndarray) -> np.ndarray:
        return B * self._scale(B)

    def units_value_gradient(self, B: np.ndarray, A: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """Outside the ball, return the gradient without its component along A, scaled as B is."""
        along = float(np.vdot(gradient, A)) / max(float(np.vdot(A, A)), TINY)
        outside = float(np.vdot(B, B)) / max(self.radius, TINY) - 1.0
        if outside < -NULL or (outside <= NULL and along > 0):
            return 0.0, gradient
        return 0.0, (gradient - along * A) * self._scale(B)

    def _scale(self, B: np.ndarray) -> float:
        """Return the factor that takes B into the ball, at most 1."""
        largest = math.sqrt(self.radius)
        length = float(np.linalg.norm(B))
        return 1.0 if length <= largest else largest / length


@dataclass(frozen=True)
class SquaredL2(Regularizer):
    """``strength / 2 * ||V||^2``, for baselines: it makes no unit zero, so network problems do not take it."""

    strength: float

    smooth = True

    @property
    def words(self) -> str:
        return f"strength={self.strength}"

    def largest_norm(self, loss: float) -> float:
        return math.sqrt(2.0 * loss / self.strength)

    @property
    def active(self) -> bool:
        return self.strength > 0

    def value(self, V: np.ndarray) -> float:
        return 0.5 * self.strength * float(np.vdot(V, V))

    def gradient(self, V: np.ndarray) -> np.ndarray:
        return self.strength * V

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        return V / (1.0 + step * self.strength)

    def dual(self, G: np.ndarray) -> float:
        return float(np.linalg.norm(G))

    def dual_of_rows(self, row_sum: float, k: int) -> float:
        return math.sqrt(k) * row_sum

    def conjugate(self, dual: float) -> float:
        return 0.5 * dual**2 / self.strength

    def max_scale(self, dual: float) -> float:
        return math.inf


def make_regularizer(norm: str | Norm, strength: float | None, radius: float | None) -> Regularizer:
    """Return the regulariser of a norm with a strength or a radius: exactly one must be given."""
    if not _is_squared_l2(norm):
        return make_norm_regularizer(norm, strength, radius)
    amount = _check_amount(strength, radius)
    if radius is not None:
        raise ValueError(f"norm={SQUARED_L2!r} has no ball form here; give strength instead of radius")
    return SquaredL2(amount)


def make_norm_regularizer(norm: str | Norm, strength: Any, radius: Any) -> NormRegularizer:
    """Return the regulariser of a norm that makes units zero, with a strength or a radius."""
    amount = _check_amount(strength, radius)
    if _is_squared_l2(norm):
        raise ValueError(f"norm={norm!r} makes no unit zero; a NetworkProblem takes one of {list(NORMS)}")
    if radius is None:
        return Penalty(get_norm(norm), amount)
    return Ball(get_norm(norm), amount)


def _is_squared_l2(norm: str | Norm) -> bool:
    return isinstance(norm, str) and norm == SQUARED_L2


def _check_amount(strength: Any, radius: Any) -> float:
    """Return the strength or the radius, whichever is given."""
    if (strength is None) == (radius is None):
        remedy = "" if radius is None else "; set strength=None for a ball"
        raise ValueError(
            "give either strength (a penalty) or radius (a ball), and only one of them; "
            f"got strength={shown(strength)} and radius={shown(radius)}{remedy}"
        )
    if radius is None:
        return check_nonnegative(strength, "strength")
    return check_nonnegative(radius, "radius")
