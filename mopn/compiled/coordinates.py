"""Derivatives and steps along one coordinate of a vector p at one sample; also derivatives of losses.

The kernel K is ANOVA with coefficients ``theta``; or a factor of a product, sum_j p_j x_j (xi - omega_j x_j), if theta
is None; or all-subsets, if omega is None too. As None has its own type, each kind is compiled separately.
"""

import math

import numpy as np

from mopn.compiled.codes import CLIPPED, LARGEST_EXPONENT, LOGISTIC, POISSON, SQUARED
from mopn.compiled.jit import IN_ORDER, inlined, jit

# Least modulus of a factor 1 + p x of the all-subsets kernel by which sweeps divide: three digits are lost at it.
_LEAST_DIVISOR = 1e-3


@inlined()
def weight_of(weights, i):  # type: ignore[no-untyped-def]
    """Return the weight of a sample: 1 without weights."""
    if weights is None:
        return 1.0
    return weights[i]


@inlined()
def quadratic_step(slope, curvature):  # type: ignore[no-untyped-def]
    """Return the step to the minimum of a parabola, or 0 for a line."""
    return slope / curvature if curvature > 0.0 else 0.0


@inlined(fastmath=IN_ORDER)
def penalized_step(g, c, ridge, old):  # type: ignore[no-untyped-def]
    """Return the step to the minimum along p_j with ``ridge / 2 * p_j^2``, and the derivative times it."""
    slope = g + ridge * old
    step = quadratic_step(slope, c + ridge)
    return step, slope * step


@inlined(fastmath=IN_ORDER)
def derivative_of(theta, omega, state, i, x, p, j):  # type: ignore[no-untyped-def]
    """Return the derivative h of K in p_j at a sample, and the size of the terms behind it.

    For ANOVA h is x sum_t theta_t e_{t-1}, by the recurrence e_t = A^t - p x e_{t-1}.
    """
    if theta is None:
        if omega is None:
            factor = 1.0 + p * x
            if abs(factor) < _LEAST_DIVISOR:
                return 0.0, np.inf
            return x * state[i, 1] / factor, 0.0
        return x * (state[i, 1] - omega[j] * x), 0.0
    rho = p * x
    e = 1.0
    size = 1.0
    h = theta[0]
    total = 0.0
    for t in range(1, len(theta)):
        e = state[i, t] - rho * e
        size = abs(state[i, t]) + abs(rho) * size
        h += theta[t] * e
        total += abs(theta[t]) * size
    return x * h, x * total


@inlined(fastmath=IN_ORDER)
def update_state(theta, omega, state, i, x, p, j, change):  # type: ignore[no-untyped-def]
    """Update the state of a sample, given for p_j = p, after a change of p_j; return the derivative h of K."""
    if theta is None:
        h, _ = derivative_of(theta, omega, state, i, x, p, j)
        if omega is None:
            state[i, 1] += change * h
        return h
    e = 1.0
    h = theta[0]
    for t in range(1, len(theta)):
        a = state[i, t]
        state[i, t] = a + change * x * e
        e = a - p * x * e
        h += theta[t] * e
    return x * h


@jit()
def minimize_l1(K, slopes, thresholds, z, rounds, tol):  # type: ignore[no-untyped-def]
    """Minimise <slopes, u> + u' K u / 2 + sum_s thresholds_s |z_s + u_s| over u; add u to z in place.

    K (k, k) is positive semidefinite; coordinates with K_ss = 0 stay. ``slopes`` (k,) become slopes + K u. At most
    ``rounds`` passes are made, until one changes no coordinate by more than ``tol`` times the largest of z.
    """
    for _ in range(rounds):
        moved = 0.0
        for s in range(len(z)):
            if K[s, s] == 0.0:
                continue
            target = z[s] - slopes[s] / K[s, s]
            new = np.sign(target) * max(abs(target) - thresholds[s] / K[s, s], 0.0)
            step = new - z[s]
            if step != 0.0:
                z[s] = new
                slopes += step * K[s]
                moved = max(moved, abs(step))
        if moved <= tol * np.abs(z).max():
            return


@inlined()
def derivative(loss, y, output):  # type: ignore[no-untyped-def]
    """Return the derivative of a ``CompiledLoss``."""
    if loss.code == SQUARED:
        return output - y
    if loss.code == LOGISTIC:
        return -y / (1.0 + np.exp(y * output))
    if loss.code == CLIPPED:
        return min(max((output - y) / loss.width, loss.low), loss.high)
    if loss.code == POISSON:
        return math.exp(min(output, LARGEST_EXPONENT)) - y
    return -2.0 * y * max(1.0 - y * output, 0.0)
