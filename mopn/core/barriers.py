"""Interior-point states of regularisers: norms as sums of bounds t on weights v, held inside their cones.

R(V) = strength * sum(t) with |v_rc| <= t_rc for l1, ||v_r||_2 <= t_r for l1/l2, |v_rc| <= t_r for l1/linf; in a ball,
sum(t) <= radius. With mu times the logarithmic barriers of the cones, and the bounds at their best, R becomes a smooth
convex function of V, which tends to R with mu. Its second derivative is not taken at V alone: multipliers z of the
cones, with <s, z> = mu where all is settled, are carried along by steps of their own. That is what lets mu fall fast:
primal-dual methods for linear cones, and for lengths the one of Chan, Golub and Mulet (1999).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from mopn.core.regularizers import Ball, Penalty, Regularizer, SquaredL2

__all__ = ["Barrier", "Quadratic", "make_barrier"]

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
# Multipliers go at most this part of the way to the edge of their cones.
_TO_THE_EDGE = 0.99
# Lengths of multipliers stay this part of the central path's distance away from 1.
_NEAREST = 0.5
# Weights whose bounds exceed them by more, relative, count as zero: those that stay press on theirs as mu goes to 0.
_SLACK = 0.05
# Newton's steps to the best bound of a row, and how near its distance from the weights must come.
_ROOT_STEPS, _ROOT_TOL = 50, 1e-12


class Quadratic(NamedTuple):
    """The barrier's part of the Newton matrix over weights (k, m): diag(D) - sum_r e_r e_r' + z z'."""

    diagonal: np.ndarray
    rows: np.ndarray | None
    common: np.ndarray | None

    def product(self, D: np.ndarray) -> np.ndarray:
        """Return the product with a direction D (k, m)."""
        image = self.diagonal * D
        if self.rows is not None:
            image -= self.rows * np.sum(self.rows * D, axis=1, keepdims=True)
        if self.common is not None:
            image += self.common * float(np.vdot(self.common, D))
        return image


class Scaling(NamedTuple):
    """Second derivatives in (t, v): omega for t, the coupling, and for v, t at its best, diagonal and rows."""

    omega: np.ndarray
    coupling: np.ndarray
    diagonal: np.ndarray
    rows: np.ndarray | None


class Cones(ABC):
    """Weights V (k, m), how far their bounds exceed them, (k, m) or (k, 1), and multipliers; strictly inside.

    ``degree`` is the number of products <s, z>. The excess is the best one for V at a level mu and a price of sum(t).
    It is kept in place of t, which near the edge would lose its digits.
    """

    degree: int
    V: np.ndarray
    excess: np.ndarray

    @abstractmethod
    def total(self, X: np.ndarray) -> np.ndarray:
        """Add up (k, m) over the entries that share a bound."""

    @abstractmethod
    def sizes(self, V: np.ndarray) -> np.ndarray:
        """Return what the bounds bound."""

    @abstractmethod
    def best_excess(self, V: np.ndarray, price: float, mu: float) -> np.ndarray:
        """Minimise ``price * sum(t)`` plus the barrier over t; return t minus the sizes."""

    @abstractmethod
    def value(self, V: np.ndarray, excess: np.ndarray, mu: float) -> float:
        """Return the barrier: mu times minus the logarithm of the distances from the edge."""

    @abstractmethod
    def settle(self, excess: np.ndarray, price: float) -> None:
        """Take the best excess for V."""

    @abstractmethod
    def gradient(self, mu: float) -> np.ndarray:
        """Return the barrier's gradient with respect to V."""

    @abstractmethod
    def scaling(self, mu: float) -> Scaling:
        """Return the second derivatives at V and the present multipliers."""

    @abstractmethod
    def advance_multipliers(self, dT: np.ndarray, dV: np.ndarray, mu: float) -> float:
        """Move the multipliers as the direction asks, within their cones; return the step, 1 at most."""

    @property
    @abstractmethod
    def product(self) -> float:
        """The sum of all <s, z>."""


class Boxes(Cones):
    """-t <= v_rc <= t with one bound an entry (l1) or one a row (l1/linf)."""

    def __init__(self, V: np.ndarray, price: float, mu: float, by_row: bool) -> None:
        self.by_row, self.degree, self.V = by_row, 2 * V.size, V
        self.settle(self.best_excess(V, price, mu), price)
        self.upper, self.lower = mu / self.above, mu / self.below

    def total(self, X: np.ndarray) -> np.ndarray:
        return X.sum(axis=1, keepdims=True) if self.by_row else X

    def sizes(self, V: np.ndarray) -> np.ndarray:
        return np.abs(V).max(axis=1, keepdims=True) if self.by_row else np.abs(V)

    def best_excess(self, V: np.ndarray, price: float, mu: float) -> np.ndarray:
        # 2 mu t / (t^2 - v^2) = price, of one entry or of the largest of a row, which lacks the others' part.
        size, half = self.sizes(V), mu / price
        excess = half + half * (half / (np.hypot(half, size) + size))
        if not self.by_row:
            return excess
        for _ in range(_ROOT_STEPS):
            # Newton's method on 1 / f - 1 / price for f = sum_c 2 mu t / (t^2 - v_c^2), which is concave: it grows to
            # the root.
            near, far = self._distances(V, excess)
            f = mu * np.sum(1.0 / near + 1.0 / far, axis=1, keepdims=True)
            slope = mu * np.sum(1.0 / near**2 + 1.0 / far**2, axis=1, keepdims=True)
            step = (f / price - 1.0) * f / slope
            excess = excess + np.maximum(step, 0.0)
            if np.all(step <= _ROOT_TOL * excess):
                break
        return excess

    def _distances(self, V: np.ndarray, excess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return t - |v| and t + |v|."""
        sizes, entries = self.sizes(V), np.abs(V)
        return excess + (sizes - entries), excess + (sizes + entries)

    def value(self, V: np.ndarray, excess: np.ndarray, mu: float) -> float:
        near, far = self._distances(V, excess)
        return -mu * float(np.log(near * far).sum())

    def settle(self, excess: np.ndarray, price: float) -> None:
        self.excess = excess
        near, far = self._distances(self.V, excess)
        positive = self.V > 0
        self.above, self.below = np.where(positive, near, far), np.where(positive, far, near)

    def gradient(self, mu: float) -> np.ndarray:
        return mu / self.above - mu / self.below

    def scaling(self, mu: float) -> Scaling:
        above, below = self.upper / self.above, self.lower / self.below
        both, coupling = above + below, below - above
        omega = self.total(both)
        if self.by_row:
            return Scaling(omega, coupling, both, coupling / np.sqrt(omega))
        return Scaling(omega, coupling, 4.0 * above * (below / both), None)

    def advance_multipliers(self, dT: np.ndarray, dV: np.ndarray, mu: float) -> float:
        d_upper = (mu - self.upper * (dT - dV)) / self.above - self.upper
        d_lower = (mu - self.lower * (dT + dV)) / self.below - self.lower
        fastest = max((-d_upper / self.upper).max(initial=_TINY), (-d_lower / self.lower).max(initial=_TINY))
        step = min(1.0, _TO_THE_EDGE / float(fastest))
        self.upper = self.upper + step * d_upper
        self.lower = self.lower + step * d_lower
        return step

    @property
    def product(self) -> float:
        return float(np.vdot(self.upper, self.above) + np.vdot(self.lower, self.below))


class SecondOrder(Cones):
    """||v_r||_2 <= t_r (l1/l2), with multipliers -price * p_r, ||p_r|| < 1, that tend to directions v_r / ||v_r||."""

    def __init__(self, V: np.ndarray, price: float, mu: float) -> None:
        self.degree, self.V = len(V), V
        self.settle(self.best_excess(V, price, mu), price)
        self.P = V / self.T

    def total(self, X: np.ndarray) -> np.ndarray:
        return X.sum(axis=1, keepdims=True)

    def sizes(self, V: np.ndarray) -> np.ndarray:
        return np.linalg.norm(V, axis=1, keepdims=True)

    def best_excess(self, V: np.ndarray, price: float, mu: float) -> np.ndarray:
        # t^2 - ||v||^2 = t mu / price.
        size, half = self.sizes(V), 0.5 * mu / price
        return half + half * (half / (np.hypot(half, size) + size))

    def value(self, V: np.ndarray, excess: np.ndarray, mu: float) -> float:
        return -0.5 * mu * float(np.log(excess * (excess + 2.0 * self.sizes(V))).sum())

    def settle(self, excess: np.ndarray, price: float) -> None:
        self.excess, self.T, self.price = excess, excess + self.sizes(self.V), price

    def gradient(self, mu: float) -> np.ndarray:
        return self.price * self.V / self.T

    def scaling(self, mu: float) -> Scaling:
        weight = self.price / self.T
        determinant = self.T * (mu / self.price)
        omega = mu * (self.T**2 + self.sizes(self.V) ** 2) / determinant**2
        coupling = -2.0 * mu * self.T * self.V / determinant**2
        # Exact on the central path, where P = V / T and dT / d(size) = size / (T - mu / (2 price)).
        size, length = self.sizes(self.V), self.sizes(self.P)
        slant = (size / np.maximum(length, _TINY)) / (self.T - 0.5 * mu / self.price)
        return Scaling(omega, coupling, np.broadcast_to(weight, self.V.shape), np.sqrt(weight * slant) * self.P)

    def advance_multipliers(self, dT: np.ndarray, dV: np.ndarray, mu: float) -> float:
        # t p = v, linearised.
        dP = (dV - self.P * dT + self.V) / self.T - self.P
        a, b = self.total(dP * dP), self.total(self.P * dP)
        c = np.maximum(1.0 - self.total(self.P * self.P), _EPS)
        steps = np.minimum(1.0, _TO_THE_EDGE * c / np.maximum(b + np.sqrt(b * b + a * c), _TINY))
        self.P = self.P + steps * dP
        # Too near the edge they would be stuck there; on the central path 1 - ||p||^2 is mu / (price t).
        largest = np.sqrt(np.maximum(1.0 - _NEAREST * mu / (self.price * self.T), 0.0))
        self.P = self.P * np.minimum(1.0, largest / np.maximum(self.sizes(self.P), _TINY))
        return float(steps.min(initial=1.0))

    @property
    def product(self) -> float:
        # t - p'v without cancellation.
        slack = np.maximum(self.sizes(self.V) - self.total(self.P * self.V), 0.0)
        return self.price * float((self.excess + slack).sum())


class Barrier(ABC):
    """What an interior-point solver asks of a regulariser; ``degree`` times mu is the gap on the central path."""

    degree: int
    V: np.ndarray

    @property
    @abstractmethod
    def complementarity(self) -> float:
        """The present mean of <s, z>."""

    @abstractmethod
    def linearize(self, mu: float) -> tuple[Quadratic, np.ndarray]:
        """Set the level; return the barrier's part of the Newton matrix, and its gradient (k, m)."""

    @abstractmethod
    def value(self, V: np.ndarray) -> float:
        """Return the smoothed regulariser at the level set; inf outside of a ball."""

    @abstractmethod
    def advance(self, D: np.ndarray, step: float) -> float:
        """Go a step along D, whose multipliers follow; return the smaller of both steps."""

    @abstractmethod
    def rounded(self) -> np.ndarray:
        """Return V with those weights zero that do not press on their bounds."""


class ConicBarrier(Barrier):
    """A norm, as a penalty or in a ball."""

    def __init__(self, cones: Cones, regularizer: Penalty | Ball, mu: float) -> None:
        self.cones, self.regularizer, self.mu = cones, regularizer, mu
        self.in_ball = isinstance(regularizer, Ball)
        self.degree = cones.degree + self.in_ball

    @property
    def V(self) -> np.ndarray:  # type: ignore[override]
        return self.cones.V

    @property
    def complementarity(self) -> float:
        return (self.cones.product + (self.mu if self.in_ball else 0.0)) / self.degree

    def _best(self, V: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best excess for V, and the price of sum(t): in a ball that of the slack mu / price."""
        regularizer = self.regularizer
        price = regularizer.strength if isinstance(regularizer, Penalty) else self._price(V, regularizer)
        return self.cones.best_excess(V, price, self.mu), price

    def _price(self, V: np.ndarray, ball: Ball) -> float:
        room = ball.radius - ball.norm.value(V)

        def overdrawn(price: float) -> float:
            return float(self.cones.best_excess(V, price, self.mu).sum()) + self.mu / price - room

        # Bounds exceed the weights by mu / price times the degree at most: there nothing is overdrawn.
        return brentq(overdrawn, self.mu / (2.0 * room), (self.degree + 1) * self.mu / room, xtol=_TINY, rtol=_ROOT_TOL)

    def value(self, V: np.ndarray) -> float:
        if isinstance(self.regularizer, Ball) and not self.regularizer.norm.value(V) < self.regularizer.radius:
            return np.inf
        excess, price = self._best(V)
        barrier = self.cones.value(V, excess, self.mu)
        if self.in_ball:
            return barrier - self.mu * float(np.log(self.mu / price))
        return barrier + price * float(excess.sum()) + self.regularizer.value(V)

    def linearize(self, mu: float) -> tuple[Quadratic, np.ndarray]:
        self.mu = mu
        excess, price = self._best(self.cones.V)
        self.cones.settle(excess, price)
        omega, coupling, diagonal, rows = self.cones.scaling(mu)
        self.omega, self.coupling = omega, coupling
        curvature = price**2 / mu if self.in_ball else 0.0
        self.stiffness = curvature / (1.0 + curvature * float((1.0 / omega).sum()))
        common = np.sqrt(self.stiffness) * coupling / omega if self.in_ball else None
        return Quadratic(diagonal, rows, common), self.cones.gradient(mu)

    def advance(self, D: np.ndarray, step: float) -> float:
        # (diag(omega) + curvature 11') dT = -total(coupling D).
        pull = -self.cones.total(self.coupling * D)
        dT = (pull - self.stiffness * float((pull / self.omega).sum())) / self.omega
        dual_step = self.cones.advance_multipliers(dT, D, self.mu)
        self.cones.V = self.cones.V + step * D
        self.cones.settle(*self._best(self.cones.V))
        return min(step, dual_step)

    def rounded(self) -> np.ndarray:
        sizes, excess = self.cones.sizes(self.V), self.cones.excess
        # With mu, sizes of zeros fall as their excess does, and those of other weights do not.
        zero = (excess > _SLACK * sizes) | (excess * sizes.max(initial=0.0) > sizes**2)
        return np.where(zero, 0.0, self.V)


class QuadraticBarrier(Barrier):
    """strength / 2 ||V||^2 needs no barrier."""

    degree, complementarity = 0, 0.0

    def __init__(self, V: np.ndarray, strength: float) -> None:
        self.V, self.strength = V, strength

    def linearize(self, mu: float) -> tuple[Quadratic, np.ndarray]:
        return Quadratic(np.full(self.V.shape, self.strength), None, None), self.strength * self.V

    def value(self, V: np.ndarray) -> float:
        return 0.5 * self.strength * float(np.vdot(V, V))

    def advance(self, D: np.ndarray, step: float) -> float:
        self.V = self.V + step * D
        return step

    def rounded(self) -> np.ndarray:
        return self.V


def make_barrier(regularizer: Regularizer, V: np.ndarray, mu: float, gradient: np.ndarray) -> Barrier:
    """Return a state at weights V (k, m), near the central path for the level mu.

    In a ball V is moved inside, by what its multiplier, guessed from the loss gradient (k, m) at V, would leave.
    """
    if isinstance(regularizer, SquaredL2):
        return QuadraticBarrier(V, regularizer.strength)
    assert isinstance(regularizer, Penalty | Ball)
    norm, price = regularizer.norm, regularizer.strength if isinstance(regularizer, Penalty) else 1.0
    if isinstance(regularizer, Ball):
        degree = 2 * V.size + 1
        price = max(regularizer.dual(gradient), 4.0 * degree * mu / regularizer.radius)
        largest = regularizer.radius - degree * mu / price
        V = V * min(1.0, largest / max(norm.value(V), _TINY))
    cones = SecondOrder(V, price, mu) if norm.name == "l1/l2" else Boxes(V, price, mu, by_row=norm.name == "l1/linf")
    return ConicBarrier(cones, regularizer, mu)
