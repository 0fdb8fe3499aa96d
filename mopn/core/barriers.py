"""Interior-point states of regularisers: norms as sums of bounds t on weights v, strictly inside their cones.

R(V) = strength * sum(t) with |v_rc| <= t_rc for l1, ||v_r||_2 <= t_r for l1/l2, |v_rc| <= t_r for l1/linf; in a ball,
sum(t) <= radius. With mu times the logarithmic barriers of the cones, minimised over t, R becomes a smooth convex
function of V, which tends to R as mu tends to 0. The multipliers z of the cones, with <s, z> = mu on the central path,
are variables of their own, so that mu may decrease fast: primal-dual methods for linear cones, and the method of Chan,
Golub and Mulet (1999) for lengths. Solvers see the states as :class:`mopn.solvers.interface.Barrier`.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.optimize import brentq

from mopn.core.norms import Norm
from mopn.solvers.interface import BarrierHessian
from mopn.solvers.numerics.precision import EPS, NULL, TINY

# Largest part of the way to the boundary of their cones that a step takes multipliers: at 1 it would end there.
_MAX_BOUNDARY_FRACTION = 0.99
# Least distance of multipliers' lengths from 1, relative to that on the central path: nearer, steps become short.
_MIN_CENTRAL_FRACTION = 0.5
# Lengths of multipliers below this, relative to the weights' lengths, count as zero; it only prevents overflow.
_ZERO_LENGTH = 1e-100
# Relative slack of bounds above which weights count as zero, as the bounds of nonzero weights become active.
_MIN_INACTIVE_SLACK = 0.05
# Newton steps, at most, to the best bound of a row; a few suffice, as they converge quadratically.
_MAX_ROOT_STEPS = 50


# Omega, coupling, diagonal and rows: second derivatives omega in t, and coupling in t and v. With t eliminated, the
# second derivative in v is diag(diagonal) - sum_r e_r e_r', with the vectors e_r in rows.
Scaling = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


class Cones(ABC):
    """Weights V (k, m), the slack of their bounds, (k, m) or (k, 1), and multipliers, all strictly feasible.

    ``degree`` is the number of products <s, z>. The slack, t minus the size that it bounds, is stored in place of t,
    which would lose digits near the boundary.
    """

    degree: int
    V: np.ndarray
    slack: np.ndarray

    def total(self, X: np.ndarray) -> np.ndarray:
        """Add up (k, m) over the entries that share a bound."""
        return X.sum(axis=1, keepdims=True)

    @abstractmethod
    def sizes(self, V: np.ndarray) -> np.ndarray:
        """Return the moduli or norms of V that the bounds t bound."""

    @abstractmethod
    def best_slack(self, V: np.ndarray, multiplier: float, mu: float) -> np.ndarray:
        """Minimise ``multiplier * sum(t)`` plus the barrier over t; return t minus the sizes."""

    @abstractmethod
    def value(self, V: np.ndarray, slack: np.ndarray, mu: float) -> float:
        """Return the barrier: minus mu times the sum of the logarithms of the distances from the boundary."""

    @abstractmethod
    def update_bounds(self, slack: np.ndarray, multiplier: float) -> None:
        """Set the bounds t by their slack, and the multiplier of sum(t)."""

    @abstractmethod
    def gradient(self, mu: float) -> np.ndarray:
        """Return the barrier's gradient with respect to V."""

    @abstractmethod
    def scaling(self, mu: float) -> Scaling:
        """Return omega, coupling, diagonal and rows at V and the present multipliers."""

    @abstractmethod
    def advance_multipliers(self, dT: np.ndarray, dV: np.ndarray, mu: float) -> float:
        """Take the Newton step of the multipliers, shortened to stay in their cones; return its length, at most 1."""

    @property
    @abstractmethod
    def product(self) -> float:
        """The sum of all <s, z>."""


class Boxes(Cones):
    """-t <= v_rc <= t with one bound per entry (l1) or one per row (l1/linf)."""

    def __init__(self, V: np.ndarray, multiplier: float, mu: float, by_row: bool) -> None:
        self.by_row = by_row
        self.degree = 2 * V.size
        self.V = V
        self.update_bounds(self.best_slack(V, multiplier, mu), multiplier)
        self.upper = mu / self.above
        self.lower = mu / self.below

    def total(self, X: np.ndarray) -> np.ndarray:
        return super().total(X) if self.by_row else X

    def sizes(self, V: np.ndarray) -> np.ndarray:
        return np.abs(V).max(axis=1, keepdims=True) if self.by_row else np.abs(V)

    def best_slack(self, V: np.ndarray, multiplier: float, mu: float) -> np.ndarray:
        # 2 mu t / (t^2 - v^2) = multiplier for one entry; for a row, its largest entry alone gives a lower bound.
        size = self.sizes(V)
        half = mu / multiplier
        slack = half + half * (half / (np.hypot(half, size) + size))
        if not self.by_row:
            return slack
        for _ in range(_MAX_ROOT_STEPS):
            # Newton's method on 1 / f - 1 / multiplier for f = sum_c 2 mu t / (t^2 - v_c^2), which is concave: the
            # iterates increase to the root.
            near, far = self._distances(V, slack)
            f = mu * np.sum(1.0 / near + 1.0 / far, axis=1, keepdims=True)
            slope = mu * np.sum(1.0 / near**2 + 1.0 / far**2, axis=1, keepdims=True)
            step = (f / multiplier - 1.0) * f / slope
            slack = slack + np.maximum(step, 0.0)
            if np.all(step <= NULL * slack):
                break
        return slack

    def _distances(self, V: np.ndarray, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return t - |v| and t + |v|."""
        sizes = self.sizes(V)
        entries = np.abs(V)
        return slack + (sizes - entries), slack + (sizes + entries)

    def value(self, V: np.ndarray, slack: np.ndarray, mu: float) -> float:
        near, far = self._distances(V, slack)
        return -mu * float(np.log(near * far).sum())

    def update_bounds(self, slack: np.ndarray, multiplier: float) -> None:
        self.slack = slack
        near, far = self._distances(self.V, slack)
        positive = self.V > 0
        self.above = np.where(positive, near, far)
        self.below = np.where(positive, far, near)

    def gradient(self, mu: float) -> np.ndarray:
        return mu / self.above - mu / self.below

    def scaling(self, mu: float) -> Scaling:
        above = self.upper / self.above
        below = self.lower / self.below
        both = above + below
        coupling = below - above
        omega = self.total(both)
        if self.by_row:
            return omega, coupling, both, coupling / np.sqrt(omega)
        return omega, coupling, 4.0 * above * (below / both), None

    def advance_multipliers(self, dT: np.ndarray, dV: np.ndarray, mu: float) -> float:
        d_upper = (mu - self.upper * (dT - dV)) / self.above - self.upper
        d_lower = (mu - self.lower * (dT + dV)) / self.below - self.lower
        fastest_upper = (-d_upper / self.upper).max(initial=TINY)
        fastest_lower = (-d_lower / self.lower).max(initial=TINY)
        step = min(1.0, _MAX_BOUNDARY_FRACTION / float(max(fastest_upper, fastest_lower)))
        self.upper = self.upper + step * d_upper
        self.lower = self.lower + step * d_lower
        return step

    @property
    def product(self) -> float:
        return float(np.vdot(self.upper, self.above) + np.vdot(self.lower, self.below))


class SecondOrder(Cones):
    """||v_r||_2 <= t_r (l1/l2), with multipliers ``multiplier`` times (1, -p_r); p_r tends to v_r / ||v_r||."""

    def __init__(self, V: np.ndarray, multiplier: float, mu: float) -> None:
        self.degree = len(V)
        self.V = V
        self.update_bounds(self.best_slack(V, multiplier, mu), multiplier)
        self.P = V / self.T

    def sizes(self, V: np.ndarray) -> np.ndarray:
        return np.linalg.norm(V, axis=1, keepdims=True)

    def best_slack(self, V: np.ndarray, multiplier: float, mu: float) -> np.ndarray:
        # t^2 - ||v||^2 = t mu / multiplier.
        size = self.sizes(V)
        half = 0.5 * mu / multiplier
        return half + half * (half / (np.hypot(half, size) + size))

    def value(self, V: np.ndarray, slack: np.ndarray, mu: float) -> float:
        return -0.5 * mu * float(np.log(slack * (slack + 2.0 * self.sizes(V))).sum())

    def update_bounds(self, slack: np.ndarray, multiplier: float) -> None:
        self.slack = slack
        self.T = slack + self.sizes(self.V)
        self.multiplier = multiplier

    def gradient(self, mu: float) -> np.ndarray:
        return self.multiplier * self.V / self.T

    def scaling(self, mu: float) -> Scaling:
        size = self.sizes(self.V)
        weight = self.multiplier / self.T
        determinant = self.T * (mu / self.multiplier)
        omega = mu * (self.T**2 + size**2) / determinant**2
        coupling = -2.0 * mu * self.T * self.V / determinant**2
        # Exact on the central path, where P = V / T and dT / d(size) = size / (T - mu / (2 multiplier)).
        # The curvature multiplies P, so that it does not matter where P vanishes.
        length = np.maximum(self.sizes(self.P), np.maximum(_ZERO_LENGTH * size, TINY))
        curvature = (size / length) / (self.T - 0.5 * mu / self.multiplier)
        return omega, coupling, np.broadcast_to(weight, self.V.shape), np.sqrt(weight * curvature) * self.P

    def advance_multipliers(self, dT: np.ndarray, dV: np.ndarray, mu: float) -> float:
        # t p = v, linearised.
        dP = (dV - self.P * dT + self.V) / self.T - self.P
        a = self.total(dP * dP)
        b = self.total(self.P * dP)
        c = np.maximum(1.0 - self.total(self.P * self.P), EPS)
        # ||p + s dp||^2 = 1 at s = c / (b + sqrt(b^2 + a c)).
        steps = np.minimum(1.0, _MAX_BOUNDARY_FRACTION * c / np.maximum(b + np.sqrt(b * b + a * c), TINY))
        self.P = self.P + steps * dP
        # Nearer to the boundary, further steps would be short; on the central path 1 - ||p||^2 is mu / (multiplier t).
        largest = np.sqrt(np.maximum(1.0 - _MIN_CENTRAL_FRACTION * mu / (self.multiplier * self.T), 0.0))
        self.P = self.P * np.minimum(1.0, largest / np.maximum(self.sizes(self.P), TINY))
        return float(steps.min(initial=1.0))

    @property
    def product(self) -> float:
        # t - p'v without cancellation.
        deviation = np.maximum(self.sizes(self.V) - self.total(self.P * self.V), 0.0)
        return self.multiplier * float((self.slack + deviation).sum())


def _cones(norm: Norm, multiplier: float, V: np.ndarray, mu: float) -> Cones:
    """Return the cones of a norm near weights V, on the central path."""
    if norm.name == "l1/l2":
        return SecondOrder(V, multiplier, mu)
    return Boxes(V, multiplier, mu, by_row=norm.name == "l1/linf")


class PenaltyBarrier:
    """``strength * norm(V)`` near weights V (k, m), on the central path of the level mu."""

    def __init__(self, norm: Norm, strength: float, V: np.ndarray, mu: float) -> None:
        self.norm = norm
        self.strength = strength
        self.mu = mu
        self.cones = _cones(norm, strength, V, mu)
        self.degree = self.cones.degree

    @property
    def V(self) -> np.ndarray:
        return self.cones.V

    @property
    def complementarity(self) -> float:
        return self.cones.product / self.degree

    def multiplier(self, V: np.ndarray) -> float:
        """Return the multiplier of sum(t) at V."""
        return self.strength

    def budget_curvature(self, multiplier: float) -> float:
        """Return the second derivative with respect to sum(t)."""
        return 0.0

    def value(self, V: np.ndarray) -> float:
        slack, strength = self._best_bounds(V)
        barrier = self.cones.value(V, slack, self.mu)
        return barrier + strength * float(slack.sum()) + strength * self.norm.value(V)

    def _best_bounds(self, V: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best slack for V, and the multiplier."""
        multiplier = self.multiplier(V)
        return self.cones.best_slack(V, multiplier, self.mu), multiplier

    def linearize(self, mu: float) -> tuple[BarrierHessian, np.ndarray]:
        self.mu = mu
        slack, multiplier = self._best_bounds(self.cones.V)
        self.cones.update_bounds(slack, multiplier)
        self.omega, self.coupling, diagonal, rows = self.cones.scaling(mu)

        curvature = self.budget_curvature(multiplier)
        self.stiffness = curvature / (1.0 + curvature * float((1.0 / self.omega).sum()))
        common = np.sqrt(self.stiffness) * self.coupling / self.omega if curvature else None
        return BarrierHessian(diagonal, rows, common), self.cones.gradient(mu)

    def advance(self, D: np.ndarray, step: float) -> float:
        # (diag(omega) + curvature 11') dT = -total(coupling D).
        force = -self.cones.total(self.coupling * D)
        dT = (force - self.stiffness * float((force / self.omega).sum())) / self.omega
        dual_step = self.cones.advance_multipliers(dT, D, self.mu)
        self.cones.V = self.cones.V + step * D
        self.cones.update_bounds(*self._best_bounds(self.cones.V))
        return min(step, dual_step)

    def sparsified(self) -> np.ndarray:
        sizes = self.cones.sizes(self.V)
        slack = self.cones.slack
        # As mu decreases, the sizes of weights that tend to zero decrease with their slack; the other sizes do not.
        zero = (slack > _MIN_INACTIVE_SLACK * sizes) | (slack * sizes.max(initial=0.0) > sizes**2)
        return np.where(zero, 0.0, self.V)


class BallBarrier(PenaltyBarrier):
    """``norm(V) <= radius`` near weights V (k, m), with mu times the logarithmic barrier of radius - sum(t).

    It is a penalty whose strength depends on V. V is scaled into the interior, for the strength that the loss gradient
    (k, m) at V suggests.
    """

    def __init__(self, norm: Norm, radius: float, V: np.ndarray, mu: float, gradient: np.ndarray) -> None:
        degree = 2 * V.size + 1
        multiplier = max(norm.dual(gradient), 4.0 * degree * mu / radius)
        largest = radius - degree * mu / multiplier
        V = V * min(1.0, largest / max(norm.value(V), TINY))
        super().__init__(norm, multiplier, V, mu)
        self.radius = radius
        self.degree += 1

    @property
    def complementarity(self) -> float:
        return (self.cones.product + self.mu) / self.degree

    def multiplier(self, V: np.ndarray) -> float:
        # sum(t) plus the slack of the ball, mu / multiplier, equals the radius.
        budget = self.radius - self.norm.value(V)

        def budget_excess(multiplier: float) -> float:
            return float(self.cones.best_slack(V, multiplier, self.mu).sum()) + self.mu / multiplier - budget

        # The slack is at most mu / multiplier times the degree, so that the excess is negative at the upper end.
        low = self.mu / (2.0 * budget)
        high = (self.degree + 1) * self.mu / budget
        return brentq(budget_excess, low, high, xtol=TINY, rtol=NULL)

    def budget_curvature(self, multiplier: float) -> float:
        return multiplier**2 / self.mu

    def value(self, V: np.ndarray) -> float:
        if not self.norm.value(V) < self.radius:
            return np.inf
        slack, multiplier = self._best_bounds(V)
        return self.cones.value(V, slack, self.mu) - self.mu * float(np.log(self.mu / multiplier))
