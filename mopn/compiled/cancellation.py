"""The guard of coordinate descent against cancellation: inaccurate columns are computed again from the rows.

The derivative of K with respect to p_j follows from A^1, ..., A^{m-1} of all features by subtraction, which loses
digits where feature j dominates. The kernels without feature j, computed from the row itself, have no cancellation.
"""

from __future__ import annotations

import numpy as np

from mopn.compiled.coordinates import derivative_of, penalized_step, weight_of
from mopn.compiled.jit import inner
from mopn.compiled.losses import SQUARED, derivative
from mopn.compiled.storage import place, span, value

__all__ = ["CANCELLATION", "cancels", "coordinate_from_rows"]

# A column whose sums lose this factor to cancellation, beyond what the signs of a row's products cause anyway, is
# computed again from its rows. The effect of the signs is measured in this number of its rows.
CANCELLATION, _SAMPLED = 1e3, 16


@inner()
def _without(theta, rows, i, j, p, e, moduli):  # type: ignore[no-untyped-def]
    """Set e to A^0, ..., A^{m-1}, or e[0] to the all-subsets kernel, of a sample without feature j.

    With ``moduli``, set it to those of |p| and |x|.
    """
    first, end = span(rows.starts, i, rows.length)
    e[0] = 1.0
    for t in range(1, len(e)):
        e[t] = 0.0
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


@inner()
def _derivative_without(theta, e, x):  # type: ignore[no-untyped-def]
    if theta is None:
        return x * e[0]
    h = 0.0
    for t in range(len(theta)):
        h += theta[t] * e[t]
    return x * h


@inner()
def cancels(theta, columns, rows, state, weights, p, j, sizes, c):  # type: ignore[no-untyped-def]
    """Return whether the sizes behind h exceed its moduli, x sum_t |theta_t| A^{t-1}(|p|, |x|) without j, too far.

    Where the products of a row cancel by their signs, the rounding error of A^t itself is relative to A^t(|p|, |x|), so
    a new computation gains nothing. A sample of the rows measures this effect.
    """
    if theta is None:
        return True
    first, end = span(columns.starts, j, columns.length)
    e = np.empty(len(theta))
    moduli, sampled = 0.0, 0.0
    for entry in range(first, end, max(np.int64(1), np.int64(end - first) // _SAMPLED)):
        i, x = place(columns.indices, entry, first), value(columns.values, entry)
        h, _ = derivative_of(theta, None, state, i, x, p[j], j)
        sampled += weight_of(weights, i) * h * h
        _without(theta, rows, i, j, p, e, np.bool_(True))
        h = 0.0
        for t in range(len(theta)):
            h += abs(theta[t]) * e[t]
        moduli += weight_of(weights, i) * (x * h) ** 2
    # If all of them vanish, nothing is known, and the column is computed from its rows.
    return sizes * sampled >= CANCELLATION**2 * c * moduli


@inner()
def coordinate_from_rows(  # type: ignore[no-untyped-def]
    theta, columns, rows, loss, smoothness, y, outputs, weights, state, p, scale, ridge, l1, j
):
    """Update p_j as ``sweep`` does, but without cancellation: kernels without feature j are computed from the rows.

    Return the derivative times the step.
    """
    first, end = span(columns.starts, j, columns.length)
    E = np.empty((np.int64(end - first), state.shape[1]))
    g, c = 0.0, 0.0
    for entry in range(first, end):
        i, e = place(columns.indices, entry, first), E[np.int64(entry - first)]
        _without(theta, rows, i, j, p, e, np.bool_(False))
        h = _derivative_without(theta, e, value(columns.values, entry))
        g += state[i, 0] * h
        c += weight_of(weights, i) * h * h
    step, gain = penalized_step(scale * g, smoothness * scale * scale * c, ridge, p[j], l1)
    p[j] -= step
    for entry in range(first, end):
        i, x, e = place(columns.indices, entry, first), value(columns.values, entry), E[np.int64(entry - first)]
        if theta is None:
            state[i, 1] = e[0] * (1.0 + p[j] * x)
        else:
            for t in range(1, len(theta)):
                state[i, t] = e[t] + p[j] * x * e[t - 1]
        change = -step * scale * _derivative_without(theta, e, x)
        if loss.code == SQUARED:
            state[i, 0] += weight_of(weights, i) * change
        else:
            outputs[i] += change
            state[i, 0] = weight_of(weights, i) * derivative(loss, y[i], outputs[i])
    return gain
