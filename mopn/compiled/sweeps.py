"""Sweeps of coordinate descent: every coordinate of one vector p in turn, all others fixed.

The outputs are affine in each coordinate, o_i(p_j + u) = o_i + u h_i, so the curvature along it is at most
mu sum_i w_i h_i^2 + ridge. A step to the minimum of that bound never increases the objective, and is exact for the
squared loss. These are Algorithms 1 and 2 of Blondel et al., Polynomial Networks and Factorization Machines (ICML
2016), and section 4 of Blondel et al., Higher-Order Factorization Machines (NIPS 2016). Here h takes O(m) an entry, not
O(m^2).

``state`` (n, 1 + q) has a row per sample, contiguous as its entries are used together: first the slope
w_i l'(y_i, o_i), then the values from which h is computed.

The derivative of K along p_j follows from A^1, ..., A^{m-1} of all features by subtraction, which loses digits where
feature j dominates. Such columns are computed again from the rows, by kernels without feature j.

Dummies are the columns of ones in front of X: A^t([gamma, p], [1, x]) = sum_u D^{t-u} A^u(p, x), where D^0, D^1, ...
are the elementary symmetric polynomials of gamma. So they are equivalent to coefficients of lower degrees. The
derivative with respect to one of them is a sum of the A^u(p, x), without subtraction.
"""

import numpy as np

from mopn.compiled.coordinates import (
    SQUARED,
    derivative,
    derivative_of,
    penalized_step,
    quadratic_step,
    update_state,
    weight_of,
)
from mopn.compiled.jit import FAST, IN_ORDER, inlined, inner, jit, overload, prange, to_fixed_tuple, types
from mopn.compiled.storage import Lines, place, span, value

# Factor lost by cancellation from which on a column is computed from its rows: three of sixteen digits. The loss by the
# signs of a row's products, which no computation avoids, does not count.
CANCELLATION = 1e3
# Rows of a column, about, in which the effect of the signs is measured: each costs a pass over its entries.
_SAMPLED_ROWS = 16


# The compiler may change the order of the sums, but it is the same with and without threads.
@inlined(fastmath=FAST)
def _sums(theta, omega, columns, state, weights, p, j):  # type: ignore[no-untyped-def]
    """Return sum_i slope_i h_i, sum_i w_i h_i^2 and sum_i w_i size_i^2, of the sizes behind h, along coordinate j."""
    first, end = span(columns.starts, j, columns.length)
    g = 0.0
    c = 0.0
    sizes = 0.0
    for entry in range(first, end):
        i = place(columns.indices, entry, first)
        x = value(columns.values, entry)
        h, size = derivative_of(theta, omega, state, i, x, p, j)
        g += state[i, 0] * h
        c += weight_of(weights, i) * h * h
        # Samples of weight 0 do not count, even if their size is infinite.
        if weight_of(weights, i) > 0.0:
            sizes += weight_of(weights, i) * size * size
    return g, c, sizes


# Chosen by type, not by a branch: as a function of its own it would change the order of the sums.
def _omega_of(omegas, s):  # type: ignore[no-untyped-def]
    """Return row s, or None if there are no rows."""
    return None if omegas is None else omegas[s]


@overload(_omega_of)
def _omega_of_types(omegas, s):  # type: ignore[no-untyped-def]
    if isinstance(omegas, types.NoneType):
        return lambda omegas, s: None
    return lambda omegas, s: omegas[s]


@inner(fastmath=IN_ORDER)
def sweep(  # type: ignore[no-untyped-def]
    theta, omega, columns, rows, loss, smoothness, y, outputs, weights, state, p, scale, ridge, begin, stop
):
    """Minimise along the coordinates p_begin, ..., p_{stop-1} in turn; return the largest derivative times its step.

    This is twice the decrease of the bound along a coordinate, whatever the units of X and p.

    ``theta`` is a tuple, whose loops are unrolled, or an array (m,), (1.0,) for the linear kernel, or None. ``rows``
    are None for kernels whose derivatives have no differences that cancel, ``weights`` if all are 1. ``smoothness``
    bounds the loss's second derivative. ``outputs`` are updated unless the loss is squared: then they follow from the
    slopes. ``state`` (n, 1 + q) has the slopes, and A^1, ..., A^{m-1} for ANOVA, the kernel for all-subsets, xi for a
    factor. ``scale`` is the factor of K in the outputs; the penalty is ``ridge / 2 * p_j^2``.
    """
    largest = 0.0
    if rows is not None:
        # An array is one type for all degrees: the rare case is compiled once.
        coefficients = None if theta is None else np.asarray(theta)
    for j in range(begin, stop):
        first, end = span(columns.starts, j, columns.length)
        old = base = p[j]
        g, c, sizes = _sums(theta, omega, columns, state, weights, old, j)
        if (
            rows is not None
            and sizes > CANCELLATION**2 * c
            and set_without(coefficients, columns, rows, state, weights, p, j, sizes, c)
        ):
            # From the state for p_j = 0, h has no differences.
            base = 0.0
            g, c, _ = _sums(theta, omega, columns, state, weights, base, j)

        step, gain = penalized_step(scale * g, smoothness * scale * scale * c, ridge, old)
        largest = max(largest, gain)
        p[j] = old - step
        change = p[j] - base

        # Two loops, as a choice within one would not be vectorised.
        if loss.code == SQUARED:
            for entry in range(first, end):
                i = place(columns.indices, entry, first)
                x = value(columns.values, entry)
                h = update_state(theta, omega, state, i, x, base, j, change)
                state[i, 0] -= weight_of(weights, i) * (scale * step * h)
        else:
            for entry in range(first, end):
                i = place(columns.indices, entry, first)
                x = value(columns.values, entry)
                outputs[i] -= scale * step * update_state(theta, omega, state, i, x, base, j, change)
                state[i, 0] = weight_of(weights, i) * derivative(loss, y[i], outputs[i])
    return largest


@jit()
def sweep_units(  # type: ignore[no-untyped-def]
    theta, omegas, columns, rows, loss, smoothness, y, outputs, weights, state, values, P, scales, ridges, dummies
):
    """Sweep over one unit after the other, as ``sweep``; return the largest product of a derivative and its step.

    ``values[s]`` (q, n) is the state of unit s without the slopes; ANOVA's is updated. ``P`` (k, dummies + d),
    ``scales``, ``ridges`` and ``omegas`` have a row per unit. The first columns of P are the entries of dummies, which
    only ANOVA has and ``columns`` has not. ``dummies`` is None if there are none, as less is compiled then.
    """
    largest = 0.0
    for s in range(len(P)):
        if scales[s] == 0.0:
            continue
        _load_state(values[s], state, 0, len(state))
        losses = (loss, smoothness, y, outputs, weights, state)
        p = P[s, dummies:]
        coefficients = theta
        if dummies is not None:
            gamma = P[s, :dummies]
            largest = max(largest, sweep_dummies(theta, *losses, gamma, scales[s], ridges[s]))
            coefficients = as_theta(theta, lower_degrees(theta, symmetric_polynomials(gamma, -1)))
        omega = _omega_of(omegas, s)
        decrease = sweep(coefficients, omega, columns, rows, *losses, p, scales[s], ridges[s], 0, columns.size)
        largest = max(largest, decrease)
        if theta is not None:
            _save_state(values[s], state, 0, len(state))
    return largest


@inner()
def _load_state(values, state, begin, stop):  # type: ignore[no-untyped-def]
    """Copy the values (q, n) of a unit to the samples ``begin`` to ``stop - 1`` of the state (n, 1 + q)."""
    for t in range(len(values)):
        for i in range(begin, stop):
            state[i, t + 1] = values[t, i]


@inner()
def _save_state(values, state, begin, stop):  # type: ignore[no-untyped-def]
    """Copy the values (q, n) of a unit from the samples ``begin`` to ``stop - 1`` of the state (n, 1 + q)."""
    for t in range(len(values)):
        for i in range(begin, stop):
            values[t, i] = state[i, t + 1]


@jit(parallel=True)
def parallel_sweep_units(  # type: ignore[no-untyped-def]
    theta, omegas, columns, rows, loss, smoothness, y, outputs, weights, state, values, P, scales, ridges, dummies,
    parts,
):  # fmt: skip
    """Sweep with threads, to the same bits: ``parts`` are groups of columns without common rows, one run a thread."""
    # Parallel loops take arrays, not tuples of them.
    c_starts = columns.starts
    c_indices = columns.indices
    c_values = columns.values
    d = columns.size
    n = columns.length
    r_starts = rows.starts
    r_indices = rows.indices
    r_values = rows.values
    groups = parts.shape[0]
    threads = parts.shape[1] - 1
    largest = np.zeros((groups, threads))
    of_dummies = 0.0
    for s in range(len(P)):
        if scales[s] == 0.0:
            continue
        for thread in prange(threads):
            _load_state(values[s], state, thread * n // threads, (thread + 1) * n // threads)
        coefficients = np.empty(0)
        if theta is not None:
            losses = (loss, smoothness, y, outputs, weights, state)
            of_dummies = max(of_dummies, sweep_dummies(theta, *losses, P[s, :dummies], scales[s], ridges[s]))
            coefficients = lower_degrees(theta, symmetric_polynomials(P[s, :dummies], -1))
        for group in range(groups):
            for thread in prange(threads):
                begin = parts[group, thread]
                stop = parts[group, thread + 1]
                losses = (loss, smoothness, y, outputs, weights, state)
                data = (*losses, P[s, dummies:], scales[s], ridges[s], begin, stop)
                unrolled = as_theta(theta, coefficients)
                omega = _omega_of(omegas, s)
                own_columns = Lines(c_starts, c_indices, c_values, d, n)
                own_rows = Lines(r_starts, r_indices, r_values, n, d)
                decrease = sweep(unrolled, omega, own_columns, own_rows, *data)
                largest[group, thread] = max(largest[group, thread], decrease)
        if theta is not None:
            for thread in prange(threads):
                _save_state(values[s], state, thread * n // threads, (thread + 1) * n // threads)
    return max(largest.max(), of_dummies)


@inner()
def _set_kernels_without(theta, rows, i, j, p, e, moduli):  # type: ignore[no-untyped-def]
    """Set e to A^0, ..., A^{m-1}, or e[1] to the all-subsets kernel, of sample i without feature j.

    With ``moduli`` they are the kernels of |p| and |x|.
    """
    first, end = span(rows.starts, i, rows.length)
    e[0] = 1.0
    for t in range(1, len(e)):
        e[t] = 1.0 if theta is None else 0.0
    for entry in range(first, end):
        feature = place(rows.indices, entry, first)
        x = value(rows.values, entry)
        if feature == j:
            continue
        rho = abs(p[feature] * x) if moduli else p[feature] * x
        if theta is None:
            e[1] *= 1.0 + rho
        else:
            for t in range(len(e) - 1, 0, -1):
                e[t] += rho * e[t - 1]


@inner()
def set_without(theta, columns, rows, state, weights, p, j, sizes, c):  # type: ignore[no-untyped-def]
    """Set the state of a column's samples for p_j = 0, from their rows, if their h lose digits; return whether it did.

    They lose digits if the sizes behind h exceed its moduli, x sum_t |theta_t| A^{t-1}(|p|, |x|) without j, too far.
    Where products cancel by their signs, a new computation gains nothing.
    """
    first, end = span(columns.starts, j, columns.length)
    e = np.empty(state.shape[1])
    if theta is not None:
        moduli = 0.0
        sampled = 0.0
        for entry in range(first, end, 1 + (end - first) // _SAMPLED_ROWS):
            i = place(columns.indices, entry, first)
            x = value(columns.values, entry)
            h, _ = derivative_of(theta, None, state, i, x, p[j], j)
            sampled += weight_of(weights, i) * h * h
            _set_kernels_without(theta, rows, i, j, p, e, np.bool_(True))
            h = 0.0
            for t in range(len(theta)):
                h += abs(theta[t]) * e[t]
            moduli += weight_of(weights, i) * (x * h) ** 2
        # If all of them vanish, nothing is known, and the column is computed from its rows.
        if not sizes * sampled >= CANCELLATION**2 * c * moduli:
            return False
    for entry in range(first, end):
        i = place(columns.indices, entry, first)
        _set_kernels_without(theta, rows, i, j, p, e, np.bool_(False))
        for t in range(1, len(e)):
            state[i, t] = e[t]
    return True


@inner()
def symmetric_polynomials(gamma, without):  # type: ignore[no-untyped-def]
    """Return D^0, D^1, ... of the entries of gamma except the one at ``without``; -1 leaves out none."""
    D = np.zeros(len(gamma) + 1)
    D[0] = 1.0
    for g in range(len(gamma)):
        if g != without:
            for t in range(len(gamma), 0, -1):
                D[t] += gamma[g] * D[t - 1]
    return D


@inner()
def lower_degrees(theta, D):  # type: ignore[no-untyped-def]
    """Return the coefficients sum_{t >= u} theta_t D^{t-u} of A^u for u = 1, ..., m."""
    coefficients = np.zeros(len(theta))
    for u in range(1, len(theta) + 1):
        for t in range(u, min(u + len(D), len(theta) + 1)):
            coefficients[u - 1] += theta[t - 1] * D[t - u]
    return coefficients


def as_theta(theta, coefficients):  # type: ignore[no-untyped-def]
    """Return the coefficients with the type of theta: a tuple, whose loops are unrolled, an array, or None."""
    if theta is None:
        return None
    return tuple(coefficients) if isinstance(theta, tuple) else coefficients


@overload(as_theta)
def _as_theta_of_types(theta, coefficients):  # type: ignore[no-untyped-def]
    if isinstance(theta, types.BaseTuple):
        length = len(theta)
        return lambda theta, coefficients: to_fixed_tuple(coefficients, length)  # type: ignore[call-arg]
    if isinstance(theta, types.NoneType):
        return lambda theta, coefficients: None
    return lambda theta, coefficients: coefficients


@inlined(fastmath=IN_ORDER)
def _sum_of_degrees(kappa, state, i):  # type: ignore[no-untyped-def]
    """Return sum_u kappa_u A^u of a sample, the derivative of the kernel along a dummy."""
    h = kappa[0]
    for u in range(1, len(kappa)):
        h += kappa[u] * state[i, u]
    return h


@inner(fastmath=IN_ORDER)
def sweep_dummies(  # type: ignore[no-untyped-def]
    theta, loss, smoothness, y, outputs, weights, state, gamma, scale, ridge
):
    """Minimise along the dummies' entries gamma in turn; return the largest product of a derivative and its step."""
    largest = 0.0
    for g in range(len(gamma)):
        kappa = lower_degrees(theta, symmetric_polynomials(gamma, g))
        slope = 0.0
        curvature = 0.0
        for i in range(len(state)):
            h = _sum_of_degrees(kappa, state, i)
            slope += state[i, 0] * h
            curvature += weight_of(weights, i) * h * h
        slope = scale * slope + ridge * gamma[g]
        curvature = smoothness * scale * scale * curvature + ridge
        step = quadratic_step(slope, curvature)
        largest = max(largest, slope * step)
        gamma[g] -= step
        for i in range(len(state)):
            h = _sum_of_degrees(kappa, state, i)
            if loss.code == SQUARED:
                state[i, 0] -= weight_of(weights, i) * scale * step * h
            else:
                outputs[i] -= scale * step * h
                state[i, 0] = weight_of(weights, i) * derivative(loss, y[i], outputs[i])
    return largest
