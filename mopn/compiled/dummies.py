"""Coordinate descent along the entries gamma of p that belong to dummies, the columns of ones in front of X.

A^t([gamma, p], [1, x]) = sum_u D^{t-u} A^u(p, x), where D^0, D^1, ... are the elementary symmetric polynomials of
gamma. So dummies are equivalent to coefficients of lower degrees. The derivative with respect to one of them is a sum
of the A^u(p, x) with the coefficients of the other dummies, without subtraction.
"""

import numpy as np
from numba import types
from numba.extending import overload
from numba.np.unsafe.ndarray import to_fixed_tuple

from mopn.compiled.coordinates import quadratic_step, weight_of
from mopn.compiled.jit import IN_ORDER, inner
from mopn.compiled.losses import SQUARED, derivative


@inner()
def symmetric_polynomials(gamma, without):  # type: ignore[no-untyped-def]
    """Return D^0, D^1, ... of the entries of gamma but for one; of all if ``without`` is -1."""
    D = np.zeros(len(gamma) + 1)
    D[0] = 1.0
    for g in range(len(gamma)):
        if g != without:
            for t in range(len(gamma), 0, -1):
                D[t] += gamma[g] * D[t - 1]
    return D


@inner()
def lower_degrees(theta, D):  # type: ignore[no-untyped-def]
    """Return sum_{t >= u} theta_t D^{t-u} for u = 1, ..., m: of all dummies, the coefficient of A^u."""
    coefficients = np.zeros(len(theta))
    for u in range(1, len(theta) + 1):
        for t in range(u, min(u + len(D), len(theta) + 1)):
            coefficients[u - 1] += theta[t - 1] * D[t - u]
    return coefficients


def as_theta(theta, coefficients):  # type: ignore[no-untyped-def]
    """Return the coefficients with the type of theta: a tuple, whose loops are unrolled, an array, or None."""


@overload(as_theta)
def _as_theta_of_types(theta, coefficients):  # type: ignore[no-untyped-def]
    if isinstance(theta, types.BaseTuple):
        length = len(theta)
        return lambda theta, coefficients: to_fixed_tuple(coefficients, length)  # type: ignore[call-arg]
    if isinstance(theta, types.NoneType):
        return lambda theta, coefficients: None
    return lambda theta, coefficients: coefficients


@inner(fastmath=IN_ORDER)
def sweep_dummies(  # type: ignore[no-untyped-def]
    theta, loss, smoothness, y, outputs, weights, state, gamma, scale, ridge
):
    largest = 0.0
    for g in range(len(gamma)):
        kappa = lower_degrees(theta, symmetric_polynomials(gamma, g))
        slope, curvature = 0.0, 0.0
        for i in range(len(state)):
            h = kappa[0]
            for u in range(1, len(kappa)):
                h += kappa[u] * state[i, u]
            slope += state[i, 0] * h
            curvature += weight_of(weights, i) * h * h
        slope, curvature = scale * slope + ridge * gamma[g], smoothness * scale * scale * curvature + ridge
        step = quadratic_step(slope, curvature)
        largest = max(largest, slope * step)
        gamma[g] -= step
        for i in range(len(state)):
            h = kappa[0]
            for u in range(1, len(kappa)):
                h += kappa[u] * state[i, u]
            if loss.code == SQUARED:
                state[i, 0] -= weight_of(weights, i) * scale * step * h
            else:
                outputs[i] -= scale * step * h
                state[i, 0] = weight_of(weights, i) * derivative(loss, y[i], outputs[i])
    return largest
