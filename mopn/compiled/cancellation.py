"""The guard of coordinate descent against cancellation: inaccurate columns are computed again from the rows.

The derivative of K along p_j follows from A^1, ..., A^{m-1} of all features by subtraction, which loses digits where
feature j dominates. The kernels without feature j, computed from the row, have no cancellation.
"""

from __future__ import annotations

import numpy as np

from mopn.compiled.coordinates import derivative_of, weight_of
from mopn.compiled.jit import inner
from mopn.compiled.storage import place, span, value

# The loss by cancellation, beyond that by the signs of a row's products, from which on a column is computed from its
# rows; and the number of rows in which the effect of the signs is measured.
CANCELLATION, _SAMPLED = 1e3, 16


@inner()
def _without(theta, rows, i, j, p, e, moduli):  # type: ignore[no-untyped-def]
    """Set e to A^0, ..., A^{m-1}, or e[1] to the all-subsets kernel, of a sample without j; ``moduli`` of |p|, |x|."""
    first, end = span(rows.starts, i, rows.length)
    e[0] = 1.0
    for t in range(1, len(e)):
        e[t] = 1.0 if theta is None else 0.0
    for entry in range(first, end):
        feature, x = place(rows.indices, entry, first), value(rows.values, entry)
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
    """Set the state of a column's samples to that for p_j = 0, from their rows, if their h lose digits; return whether.

    They do if the sizes behind h exceed its moduli, x sum_t |theta_t| A^{t-1}(|p|, |x|) without j, too far. Where
    products cancel by their signs, rounding is relative to A^t(|p|, |x|), and a new computation gains nothing.
    """
    first, end = span(columns.starts, j, columns.length)
    e = np.empty(state.shape[1])
    if theta is not None:
        moduli, sampled = 0.0, 0.0
        for entry in range(first, end, 1 + (end - first) // _SAMPLED):
            i, x = place(columns.indices, entry, first), value(columns.values, entry)
            h, _ = derivative_of(theta, None, state, i, x, p[j], j)
            sampled += weight_of(weights, i) * h * h
            _without(theta, rows, i, j, p, e, np.bool_(True))
            h = 0.0
            for t in range(len(theta)):
                h += abs(theta[t]) * e[t]
            moduli += weight_of(weights, i) * (x * h) ** 2
        # If all of them vanish, nothing is known, and the column is computed from its rows.
        if not sizes * sampled >= CANCELLATION**2 * c * moduli:
            return False
    for entry in range(first, end):
        i = place(columns.indices, entry, first)
        _without(theta, rows, i, j, p, e, np.bool_(False))
        for t in range(1, len(e)):
            state[i, t] = e[t]
    return True
