"""Sweeps of coordinate descent: every coordinate of one vector p in turn, all others fixed.

The outputs are affine in each coordinate, o_i(p_j + u) = o_i + u h_i, so the objective along it is a convex function
whose curvature is at most mu sum_i w_i h_i^2 + ridge; a step to the minimum of that bound never increases the
objective, and is exact for the squared loss. These are Algorithms 1 and 2 of Blondel et al., Polynomial Networks and
Factorization Machines (ICML 2016), and section 4 of Blondel et al., Higher-Order Factorization Machines (NIPS 2016),
with h in O(m) an entry in place of their O(m^2).

``state`` (n, 1 + q) has a row a sample, whose entries lie side by side as they are used together: first the slope
w_i l'(y_i, o_i), then what h is made of.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from mopn.compiled.lines import Lines, place, span, value
from mopn.compiled.losses import SQUARED, derivative

__all__ = ["parallel_sweep_units", "sweep", "sweep_units"]

_FAST = {"contract", "nsz"}
# A column whose sums lose this factor to cancellation is computed anew from its rows.
_CANCELLATION = 1e3
# Likewise a factor of the all-subsets kernel smaller than this.
_SMALL_FACTOR = 1e-3


@njit(cache=True)
def _weight(weights, i):  # type: ignore[no-untyped-def]
    if weights is None:
        return 1.0
    return weights[i]


@njit(cache=True, fastmath=_FAST)
def _derivative(theta, omega, state, i, x, p, j):  # type: ignore[no-untyped-def]
    """Return the derivative h of K with respect to p_j at a sample, and the size of what it was computed from.

    For ANOVA, h = x sum_t theta_t e_{t-1}, where e_t is A^t without feature j: e_t = A^t - p x e_{t-1}.
    """
    if theta is None:
        if omega is None:
            factor = 1.0 + p * x
            if abs(factor) < _SMALL_FACTOR:
                return 0.0, np.inf
            return x * state[i, 1] / factor, 0.0
        return x * (state[i, 1] - omega[j] * x), 0.0
    rho = p * x
    e, size = 1.0, 1.0
    h, total = theta[0], 0.0
    for t in range(1, len(theta)):
        e = state[i, t] - rho * e
        size = abs(state[i, t]) + abs(rho) * size
        h += theta[t] * e
        total += abs(theta[t]) * size
    return x * h, x * total


@njit(cache=True, fastmath=_FAST)
def _move(theta, omega, state, i, x, p, j, step):  # type: ignore[no-untyped-def]
    """Bring the state of a sample up to date with a step of p_j; return the change of K."""
    if theta is None:
        h, _ = _derivative(theta, omega, state, i, x, p, j)
        if omega is None:
            state[i, 1] -= step * h
        return -step * h
    e, h = 1.0, theta[0]
    for t in range(1, len(theta)):
        a = state[i, t]
        state[i, t] = a - step * x * e
        e = a - p * x * e
        h += theta[t] * e
    return -step * x * h


def _sums(theta, omega, columns, state, weights, p, j):  # type: ignore[no-untyped-def]
    """Return sum_i slope_i h_i, sum_i w_i h_i^2 and the sum of the squared sizes behind h, along coordinate j."""
    first, end = span(columns.starts, j, columns.length)
    g, c, sizes = 0.0, 0.0, 0.0
    for entry in range(first, end):
        i, x = place(columns.indices, entry, first), value(columns.values, entry)
        h, size = _derivative(theta, omega, state, i, x, p, j)
        g += state[i, 0] * h
        c += _weight(weights, i) * h * h
        sizes += size * size
    return g, c, sizes


# In sums over full columns the compiler may change the order, and use vector instructions. Threads share sparse ones,
# which must add up to the same bits in either loop.
_sparse_sums = njit(cache=True, fastmath=_FAST)(_sums)
_full_sums = njit(cache=True, fastmath=_FAST | {"reassoc"})(_sums)


@njit(cache=True, fastmath=_FAST)
def sweep(  # type: ignore[no-untyped-def]
    theta, omega, columns, rows, loss, smoothness, y, outputs, weights, state, p, scale, ridge, begin, stop
):
    """Minimise along the coordinates p_begin, ..., p_{stop-1} in turn; return the largest modulus of their derivatives.

    The kernel is ANOVA with coefficients ``theta``; or a factor of a product, K_i = sum_j p_j x_ij (xi_i -
    omega_j x_ij), if theta is None; or all-subsets, if omega is None too. Each kind becomes machine code of its own.

    Parameters
    ----------
    theta : tuple or ndarray of m floats, or None
        (1.0,) for the linear kernel. The loops over a tuple are unrolled.
    omega : ndarray of shape (d,) or None
    columns, rows : Lines
        Both of X.
    loss : int
        Code of the loss, and ``smoothness``, the bound mu of its second derivative.
    y, outputs : ndarray of shape (n,)
        Targets, and outputs, which are kept up to date unless the loss is squared: then the slopes tell them.
    weights : ndarray of shape (n,) or None
        Sample weights; None if all are 1.
    state : ndarray of shape (n, 1 + q)
        The slopes, and A^1, ..., A^{m-1} for ANOVA, the kernel for all-subsets, xi for a factor; kept up to date.
    p : ndarray of shape (d,)
    scale : float
        What K is multiplied with in the outputs.
    ridge : float
        The objective's penalty is ``ridge / 2 * p_j^2``.
    begin, stop : int
    """
    largest = 0.0
    for j in range(begin, stop):
        first, end = span(columns.starts, j, columns.length)
        old = p[j]
        if columns.indices is None:
            g, c, sizes = _full_sums(theta, omega, columns, state, weights, old, j)
        else:
            g, c, sizes = _sparse_sums(theta, omega, columns, state, weights, old, j)
        if sizes > _CANCELLATION * _CANCELLATION * c:
            slope = _coordinate_from_rows(
                theta, columns, rows, loss, smoothness, y, outputs, weights, state, p, scale, ridge, j
            )
            largest = max(largest, abs(slope))
            continue
        slope, curvature = scale * g + ridge * old, smoothness * scale * scale * c + ridge
        largest = max(largest, abs(slope))
        step = slope / curvature if curvature > 0.0 else 0.0
        p[j] = old - step
        if loss == SQUARED:
            for entry in range(first, end):
                i, x = place(columns.indices, entry, first), value(columns.values, entry)
                state[i, 0] += _weight(weights, i) * scale * _move(theta, omega, state, i, x, old, j, step)
        else:
            for entry in range(first, end):
                i, x = place(columns.indices, entry, first), value(columns.values, entry)
                outputs[i] += scale * _move(theta, omega, state, i, x, old, j, step)
                state[i, 0] = _weight(weights, i) * derivative(loss, y[i], outputs[i])
    return largest


@njit(cache=True)
def _without(theta, rows, i, j, p, e):  # type: ignore[no-untyped-def]
    """Set e to A^0, ..., A^{m-1}, or e[0] to the all-subsets kernel, of a sample without feature j."""
    first, end = span(rows.starts, i, rows.length)
    e[:] = 0.0
    e[0] = 1.0
    for entry in range(first, end):
        feature, x = place(rows.indices, entry, first), value(rows.values, entry)
        if feature == j:
            continue
        if theta is None:
            e[0] *= 1.0 + p[feature] * x
        else:
            for t in range(len(e) - 1, 0, -1):
                e[t] += p[feature] * x * e[t - 1]


@njit(cache=True)
def _derivative_without(theta, e, x):  # type: ignore[no-untyped-def]
    if theta is None:
        return x * e[0]
    h = 0.0
    for t in range(len(theta)):
        h += theta[t] * e[t]
    return x * h


@njit(cache=True)
def _coordinate_from_rows(  # type: ignore[no-untyped-def]
    theta, columns, rows, loss, smoothness, y, outputs, weights, state, p, scale, ridge, j
):
    """Do what ``sweep`` does with p_j, by kernels without feature j that are computed from the rows: no cancellation.

    Return the derivative.
    """
    first, end = span(columns.starts, j, columns.length)
    E = np.empty((np.int64(end - first), state.shape[1]))
    g, c = 0.0, 0.0
    for entry in range(first, end):
        i, e = place(columns.indices, entry, first), E[np.int64(entry - first)]
        _without(theta, rows, i, j, p, e)
        h = _derivative_without(theta, e, value(columns.values, entry))
        g += state[i, 0] * h
        c += _weight(weights, i) * h * h
    slope, curvature = scale * g + ridge * p[j], smoothness * scale * scale * c + ridge
    step = slope / curvature if curvature > 0.0 else 0.0
    p[j] -= step
    for entry in range(first, end):
        i, x, e = place(columns.indices, entry, first), value(columns.values, entry), E[np.int64(entry - first)]
        if theta is None:
            state[i, 1] = e[0] * (1.0 + p[j] * x)
        else:
            for t in range(1, len(theta)):
                state[i, t] = e[t] + p[j] * x * e[t - 1]
        change = -step * scale * _derivative_without(theta, e, x)
        if loss == SQUARED:
            state[i, 0] += _weight(weights, i) * change
        else:
            outputs[i] += change
            state[i, 0] = _weight(weights, i) * derivative(loss, y[i], outputs[i])
    return slope


@njit(cache=True)
def sweep_units(  # type: ignore[no-untyped-def]
    theta, omegas, columns, rows, loss, smoothness, y, outputs, weights, state, values, P, scales, ridges, begin
):
    """Sweep over one unit after the other; return the largest modulus of the derivatives.

    ``values[s]`` (q, n) is what the state of unit s starts from, beside the slopes. ``P`` (k, d), ``scales`` (k,),
    ``ridges`` (k,) and ``omegas`` (k, d) or None have a row a unit; the others are as in ``sweep``.
    """
    largest = 0.0
    for s in range(len(P)):
        if scales[s] == 0.0:
            continue
        for t in range(values.shape[1]):
            for i in range(len(state)):
                state[i, t + 1] = values[s, t, i]
        data = (loss, smoothness, y, outputs, weights, state, P[s], scales[s], ridges[s], begin, columns.size)
        # The branch that is not taken is no part of the machine code.
        if omegas is None:
            slope = sweep(theta, None, columns, rows, *data)
        else:
            slope = sweep(theta, omegas[s], columns, rows, *data)
        largest = max(largest, slope)
    return largest


@njit(cache=True, parallel=True)
def parallel_sweep_units(  # type: ignore[no-untyped-def]
    theta, omegas, columns, rows, loss, smoothness, y, outputs, weights, state, values, P, scales, ridges, parts
):
    """Do the same with threads: the iterates are the same to the last bit.

    ``parts`` (groups, threads + 1) cuts the coordinates into groups of columns that have no row in common, and these
    into one run of columns a thread.
    """
    # Parallel loops take arrays, not tuples of them.
    c_starts, c_indices, c_values, d, n = columns.starts, columns.indices, columns.values, columns.size, columns.length
    r_starts, r_indices, r_values = rows.starts, rows.indices, rows.values
    groups, threads = parts.shape[0], parts.shape[1] - 1
    largest = np.zeros((groups, threads))
    for s in range(len(P)):
        if scales[s] == 0.0:
            continue
        for thread in prange(threads):
            for t in range(values.shape[1]):
                for i in range(thread * n // threads, (thread + 1) * n // threads):
                    state[i, t + 1] = values[s, t, i]
        for group in range(groups):
            for thread in prange(threads):
                begin, stop = parts[group, thread], parts[group, thread + 1]
                data = (loss, smoothness, y, outputs, weights, state, P[s], scales[s], ridges[s], begin, stop)
                columns_ = Lines(c_starts, c_indices, c_values, d, n)
                rows_ = Lines(r_starts, r_indices, r_values, n, d)
                if omegas is None:
                    slope = sweep(theta, None, columns_, rows_, *data)
                else:
                    slope = sweep(theta, omegas[s], columns_, rows_, *data)
                largest[group, thread] = max(largest[group, thread], slope)
    return largest.max()
