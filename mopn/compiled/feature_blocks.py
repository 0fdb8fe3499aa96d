"""Sweeps of block coordinate descent: the entries of one feature in all units, which a penalty makes zero together.

The outputs of units of degree 2 with weights of +1 and -1 are affine in the entries q_j (k,) of a feature j:
o_i(q_j + u) = o_i + <u, h_i> with h_is = sign_s x_ij (<q_s, x_i> - q_sj x_ij). So the losses are at most a quadratic of
curvature mu sum_i w_i ||h_i||^2 in every direction. With the penalty ``ridge / 2 * (sum_j ||q_j||)^2`` the minimum of
this bound has a closed form: a step of the gradient, shortened by a multiple of the lengths of the other features, and
exactly zero where it is no longer. This is the block-wise proximal method of Atarashi, Oyama and Kurihara (JMLR 2021).
"""

from __future__ import annotations

import numpy as np

from mopn.compiled.cancellation import CANCELLATION
from mopn.compiled.coordinates import weight_of
from mopn.compiled.jit import inner, jit
from mopn.compiled.losses import SQUARED, derivative
from mopn.compiled.storage import place, span, value
from mopn.compiled.vectorization import FAST, IN_ORDER

__all__ = ["sweep_features"]


@inner(fastmath=FAST)
def _length(q):  # type: ignore[no-untyped-def]
    total = 0.0
    for s in range(len(q)):
        total += q[s] * q[s]
    return np.sqrt(total)


@inner(fastmath=IN_ORDER)
def _set_without(rows, i, j, Q, base):  # type: ignore[no-untyped-def]
    """Set base (k,) to <q_s, x_i> without feature j, from the row itself."""
    first, end = span(rows.starts, i, rows.length)
    base[:] = 0.0
    for entry in range(first, end):
        feature, x = place(rows.indices, entry, first), value(rows.values, entry)
        if feature != j:
            for s in range(len(base)):
                base[s] += Q[feature, s] * x


@inner(fastmath=IN_ORDER)
def _bases(columns, rows, weights, projections, Q, j, bases):  # type: ignore[no-untyped-def]
    """Set the projections of a column's samples without feature j; return sum_i w_i x_i^2 ||base_i||^2.

    Where the differences would lose digits, they are sums over the rows.
    """
    first, end = span(columns.starts, j, columns.length)
    curvature, sizes = 0.0, 0.0
    for entry in range(first, end):
        i, x = place(columns.indices, entry, first), value(columns.values, entry)
        base, part, size = bases[np.int64(entry - first)], 0.0, 0.0
        for s in range(len(base)):
            own = Q[j, s] * x
            base[s] = projections[i, s] - own
            part += base[s] * base[s]
            size += own * own
        curvature += weight_of(weights, i) * x * x * part
        sizes += weight_of(weights, i) * x * x * size
    if sizes <= CANCELLATION**2 * curvature:
        return curvature
    curvature = 0.0
    for entry in range(first, end):
        i, x = place(columns.indices, entry, first), value(columns.values, entry)
        base, part = bases[np.int64(entry - first)], 0.0
        _set_without(rows, i, j, Q, base)
        for s in range(len(base)):
            part += base[s] * base[s]
        curvature += weight_of(weights, i) * x * x * part
    return curvature


@jit(fastmath=IN_ORDER)
def sweep_features(  # type: ignore[no-untyped-def]
    columns, rows, loss, smoothness, y, outputs, weights, slopes, projections, Q, signs, ridge
):
    """Minimise along the entries of feature 0, 1, ... in turn; return the largest curvature times its squared step.

    Parameters
    ----------
    columns, rows, loss, smoothness, y, outputs, weights
        As in :func:`mopn.compiled.sweeps.sweep`.
    slopes : ndarray of shape (n,)
        w_i l'(y_i, o_i); updated.
    projections : ndarray of shape (n, k)
        <q_s, x_i>; updated.
    Q : ndarray of shape (d, k)
        The entries of each feature, updated.
    signs : ndarray of shape (k,)
    ridge : float
    """
    largest, total, longest = 0.0, 0.0, 0
    for j in range(len(Q)):
        first, end = span(columns.starts, j, columns.length)
        longest = max(longest, np.int64(end - first))
        total += _length(Q[j])
    bases, slope, target = np.empty((longest, len(signs))), np.empty(len(signs)), np.empty(len(signs))
    for j in range(len(Q)):
        first, end = span(columns.starts, j, columns.length)
        q = Q[j]
        of_losses = smoothness * _bases(columns, rows, weights, projections, Q, j, bases)
        curvature = of_losses + ridge
        if curvature <= 0.0:
            continue
        others = max(total - _length(q), 0.0)
        slope[:] = 0.0
        for entry in range(first, end):
            i, x = place(columns.indices, entry, first), value(columns.values, entry)
            base = bases[np.int64(entry - first)]
            for s in range(len(q)):
                slope[s] += slopes[i] * x * base[s]
        for s in range(len(q)):
            target[s] = (of_losses * q[s] - signs[s] * slope[s]) / curvature
        length = _length(target)
        kept = max(1.0 - ridge * others / (curvature * length), 0.0) if length > 0.0 else 0.0
        for s in range(len(q)):
            target[s] = kept * target[s] if kept > 0.0 else 0.0
        total = others + kept * length
        gain = 0.0
        for s in range(len(q)):
            gain += curvature * (target[s] - q[s]) ** 2
        largest = max(largest, gain)
        if gain > 0.0:
            for entry in range(first, end):
                i, x = place(columns.indices, entry, first), value(columns.values, entry)
                base, change = bases[np.int64(entry - first)], 0.0
                for s in range(len(q)):
                    change += signs[s] * (target[s] - q[s]) * x * base[s]
                    projections[i, s] = base[s] + target[s] * x
                if loss.code == SQUARED:
                    slopes[i] += weight_of(weights, i) * change
                else:
                    outputs[i] += change
                    slopes[i] = weight_of(weights, i) * derivative(loss, y[i], outputs[i])
            q[:] = target
    return largest
