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
from numba import njit, prange, types
from numba.extending import overload
from numba.np.unsafe.ndarray import to_fixed_tuple

from mopn.compiled.losses import SQUARED, derivative
from mopn.compiled.storage import Lines, place, span, value
from mopn.compiled.vectorization import FAST, IN_ORDER

__all__ = ["parallel_sweep_units", "sweep", "sweep_units"]

# A column whose sums lose this factor to cancellation, beyond what the signs of a row's products do anyway, is computed
# anew from its rows. What the signs do is seen in so many of its rows.
_CANCELLATION, _SAMPLED = 1e3, 16
# Likewise a factor of the all-subsets kernel smaller than this.
_SMALL_FACTOR = 1e-3


@njit(cache=True)
def _weight(weights, i):  # type: ignore[no-untyped-def]
    if weights is None:
        return 1.0
    return weights[i]


@njit(cache=True)
def _step(slope, curvature):  # type: ignore[no-untyped-def]
    """Return the step to the minimum of the quadratic bound."""
    return slope / curvature if curvature > 0.0 else 0.0


@njit(cache=True, fastmath=IN_ORDER)
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


@njit(cache=True, fastmath=IN_ORDER)
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
    """Return sum_i slope_i h_i, sum_i w_i h_i^2 and the same sum of the sizes behind h, along coordinate j."""
    first, end = span(columns.starts, j, columns.length)
    g, c, sizes = 0.0, 0.0, 0.0
    for entry in range(first, end):
        i, x = place(columns.indices, entry, first), value(columns.values, entry)
        h, size = _derivative(theta, omega, state, i, x, p, j)
        g += state[i, 0] * h
        c += _weight(weights, i) * h * h
        # Samples of no weight do not count, not even those of infinite size.
        if _weight(weights, i) > 0.0:
            sizes += _weight(weights, i) * size * size
    return g, c, sizes


# In sums over full columns the compiler may change the order, and use vector instructions. Threads share sparse ones,
# which must add up to the same bits in either loop.
_sparse_sums = njit(cache=True, fastmath=IN_ORDER)(_sums)
_full_sums = njit(cache=True, fastmath=FAST)(_sums)


@njit(cache=True, fastmath=IN_ORDER)
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
        if sizes > _CANCELLATION**2 * c and _cancels(theta, columns, rows, state, weights, p, j, sizes, c):
            slope = _coordinate_from_rows(
                theta, columns, rows, loss, smoothness, y, outputs, weights, state, p, scale, ridge, j
            )
            largest = max(largest, abs(slope))
            continue
        slope, curvature = scale * g + ridge * old, smoothness * scale * scale * c + ridge
        largest = max(largest, abs(slope))
        step = _step(slope, curvature)
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
def _without(theta, rows, i, j, p, e, moduli):  # type: ignore[no-untyped-def]
    """Set e to A^0, ..., A^{m-1}, or e[0] to the all-subsets kernel, of a sample without feature j.

    With ``moduli`` those of |p| and |x|.
    """
    first, end = span(rows.starts, i, rows.length)
    e[:] = 0.0
    e[0] = 1.0
    for entry in range(first, end):
        feature, x = place(rows.indices, entry, first), value(rows.values, entry)
        if feature == j:
            continue
        rho = abs(p[feature] * x) if moduli else p[feature] * x
        if theta is None:
            e[0] *= 1.0 + rho
        else:
            for t in range(len(e) - 1, 0, -1):
                e[t] += rho * e[t - 1]


@njit(cache=True)
def _derivative_without(theta, e, x):  # type: ignore[no-untyped-def]
    if theta is None:
        return x * e[0]
    h = 0.0
    for t in range(len(theta)):
        h += theta[t] * e[t]
    return x * h


@njit(cache=True)
def _cancels(theta, columns, rows, state, weights, p, j, sizes, c):  # type: ignore[no-untyped-def]
    """Return whether the sizes behind h exceed its moduli, x sum_t |theta_t| A^{t-1}(|p|, |x|) without j, too far.

    Where the products of a row cancel by their signs, A^t itself is known to its rounding errors only, which are
    relative to A^t(|p|, |x|): nothing is gained by computing it anew. How much they do is measured in a few rows.
    """
    if theta is None:
        return True
    first, end = span(columns.starts, j, columns.length)
    e = np.empty(len(theta))
    moduli, sampled = 0.0, 0.0
    for entry in range(first, end, max(np.int64(1), np.int64(end - first) // _SAMPLED)):
        i, x = place(columns.indices, entry, first), value(columns.values, entry)
        h, _ = _derivative(theta, None, state, i, x, p[j], j)
        sampled += _weight(weights, i) * h * h
        _without(theta, rows, i, j, p, e, True)
        h = 0.0
        for t in range(len(theta)):
            h += abs(theta[t]) * e[t]
        moduli += _weight(weights, i) * (x * h) ** 2
    # Where all of them vanish nothing is known, and the rows decide.
    return sizes * sampled >= _CANCELLATION**2 * c * moduli


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
        _without(theta, rows, i, j, p, e, False)
        h = _derivative_without(theta, e, value(columns.values, entry))
        g += state[i, 0] * h
        c += _weight(weights, i) * h * h
    slope, curvature = scale * g + ridge * p[j], smoothness * scale * scale * c + ridge
    step = _step(slope, curvature)
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


# -- 1-features --------------------------------------------------------------------------------------------------------
#
# A^t([gamma, p], [1, x]) = sum_u D^{t-u} A^u(p, x), where D^0, D^1, ... are the elementary symmetric polynomials of the
# entries gamma of p that belong to 1-features. So these make coefficients of lower degrees; and the derivative with
# respect to one of them is a sum of the A^u(p, x), with the coefficients that the others make: nothing to subtract.


@njit(cache=True)
def _symmetric(gamma, without):  # type: ignore[no-untyped-def]
    """Return D^0, D^1, ... of the entries of gamma but for one; of all if ``without`` is -1."""
    D = np.zeros(len(gamma) + 1)
    D[0] = 1.0
    for g in range(len(gamma)):
        if g != without:
            for t in range(len(gamma), 0, -1):
                D[t] += gamma[g] * D[t - 1]
    return D


@njit(cache=True)
def _lower_degrees(theta, D):  # type: ignore[no-untyped-def]
    """Return sum_{t >= u} theta_t D^{t-u} for u = 1, ..., m.

    Of all 1-features, that is the coefficient of A^u; of all but one, in the derivative by that one, of A^{u-1}.
    """
    coefficients = np.zeros(len(theta))
    for u in range(1, len(theta) + 1):
        for t in range(u, min(u + len(D), len(theta) + 1)):
            coefficients[u - 1] += theta[t - 1] * D[t - u]
    return coefficients


def _alike(theta, coefficients):  # type: ignore[no-untyped-def]
    """Return the coefficients as a tuple if theta is one, whose loops are unrolled, and None if theta is."""
    raise NotImplementedError("compiled code only")


@overload(_alike)
def _alike_of_types(theta, coefficients):  # type: ignore[no-untyped-def]
    if isinstance(theta, types.BaseTuple):
        length = len(theta)
        return lambda theta, coefficients: to_fixed_tuple(coefficients, length)  # type: ignore[call-arg]
    if isinstance(theta, types.NoneType):
        return lambda theta, coefficients: None
    return lambda theta, coefficients: coefficients


@njit(cache=True, fastmath=IN_ORDER)
def _sweep_ones(  # type: ignore[no-untyped-def]
    theta, loss, smoothness, y, outputs, weights, state, gamma, scale, ridge
):
    """Do what ``sweep`` does, with the entries gamma of 1-features."""
    largest = 0.0
    for g in range(len(gamma)):
        kappa = _lower_degrees(theta, _symmetric(gamma, g))
        slope, curvature = 0.0, 0.0
        for i in range(len(state)):
            h = kappa[0]
            for u in range(1, len(kappa)):
                h += kappa[u] * state[i, u]
            slope += state[i, 0] * h
            curvature += _weight(weights, i) * h * h
        slope, curvature = scale * slope + ridge * gamma[g], smoothness * scale * scale * curvature + ridge
        largest = max(largest, abs(slope))
        step = _step(slope, curvature)
        gamma[g] -= step
        for i in range(len(state)):
            h = kappa[0]
            for u in range(1, len(kappa)):
                h += kappa[u] * state[i, u]
            if loss == SQUARED:
                state[i, 0] -= _weight(weights, i) * scale * step * h
            else:
                outputs[i] -= scale * step * h
                state[i, 0] = _weight(weights, i) * derivative(loss, y[i], outputs[i])
    return largest


# -- all units ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def sweep_units(  # type: ignore[no-untyped-def]
    theta, omegas, columns, rows, loss, smoothness, y, outputs, weights, state, values, P, scales, ridges, ones
):
    """Sweep over one unit after the other; return the largest modulus of the derivatives.

    ``values[s]`` (q, n) is what the state of unit s starts from, beside the slopes. ``P`` (k, ones + d), ``scales``
    (k,), ``ridges`` (k,) and ``omegas`` (k, d) or None have a row a unit; P begins with the entries of 1-features,
    which only ANOVA has and which are no columns. The others are as in ``sweep``.
    """
    largest = 0.0
    for s in range(len(P)):
        if scales[s] == 0.0:
            continue
        for t in range(values.shape[1]):
            for i in range(len(state)):
                state[i, t + 1] = values[s, t, i]
        losses, gamma, p = (loss, smoothness, y, outputs, weights, state), P[s, :ones], P[s, ones:]
        last = (0, columns.size)
        # The branches that are not taken are no part of the machine code.
        if theta is not None:
            largest = max(largest, _sweep_ones(theta, *losses, gamma, scales[s], ridges[s]))
            unrolled = _alike(theta, _lower_degrees(theta, _symmetric(gamma, -1)))
            slope = sweep(unrolled, None, columns, rows, *losses, p, scales[s], ridges[s], *last)
        elif omegas is None:
            slope = sweep(None, None, columns, rows, *losses, p, scales[s], ridges[s], *last)
        else:
            slope = sweep(None, omegas[s], columns, rows, *losses, p, scales[s], ridges[s], *last)
        largest = max(largest, slope)
    return largest


@njit(cache=True, parallel=True)
def parallel_sweep_units(  # type: ignore[no-untyped-def]
    theta, omegas, columns, rows, loss, smoothness, y, outputs, weights, state, values, P, scales, ridges, ones, parts
):
    """Do the same with threads: the iterates are the same to the last bit.

    ``parts`` (groups, threads + 1) cuts the coordinates into groups of columns that have no row in common, and these
    into one run of columns a thread.
    """
    # Parallel loops take arrays, not tuples of them.
    c_starts, c_indices, c_values, d, n = columns.starts, columns.indices, columns.values, columns.size, columns.length
    r_starts, r_indices, r_values = rows.starts, rows.indices, rows.values
    groups, threads = parts.shape[0], parts.shape[1] - 1
    largest, of_ones = np.zeros((groups, threads)), 0.0
    for s in range(len(P)):
        if scales[s] == 0.0:
            continue
        for thread in prange(threads):
            for t in range(values.shape[1]):
                for i in range(thread * n // threads, (thread + 1) * n // threads):
                    state[i, t + 1] = values[s, t, i]
        coefficients = np.empty(0)
        if theta is not None:
            losses = (loss, smoothness, y, outputs, weights, state)
            of_ones = max(of_ones, _sweep_ones(theta, *losses, P[s, :ones], scales[s], ridges[s]))
            coefficients = _lower_degrees(theta, _symmetric(P[s, :ones], -1))
        for group in range(groups):
            for thread in prange(threads):
                begin, stop = parts[group, thread], parts[group, thread + 1]
                losses = (loss, smoothness, y, outputs, weights, state)
                data = (*losses, P[s, ones:], scales[s], ridges[s], begin, stop)
                unrolled = _alike(theta, coefficients)
                columns_ = Lines(c_starts, c_indices, c_values, d, n)
                rows_ = Lines(r_starts, r_indices, r_values, n, d)
                if omegas is None:
                    part = sweep(unrolled, None, columns_, rows_, *data)
                else:
                    part = sweep(unrolled, omegas[s], columns_, rows_, *data)
                largest[group, thread] = max(largest[group, thread], part)
    return max(largest.max(), of_ones)
