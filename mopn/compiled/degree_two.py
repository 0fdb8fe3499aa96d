"""Units of degree 2 on sparse rows: features, outputs and forms, and the gradients of both layers.

The units are the columns of ``units`` (d, k), padded with zeros to a multiple of eight. K(h, x) is A^2 of the h_j x_j
for distinct features, and <h, x>^2 otherwise. Rows start from the A^1 and A^2 of leading dummies, ``constants`` (2, k).

The adjoint of row i for unit s is the derivative of the losses with respect to K(h_s, x_i): sum_c G_ci V_cs, for slopes
G (m, n) and weights V (m, k).
"""

import numpy as np

from mopn.compiled.jit import FAST, inlined, jit
from mopn.compiled.storage import place, span, value

_row = inlined(nogil=True, fastmath=FAST)


@_row
def _set_row(distinct, rows, i, constants, units, A1, A2):  # type: ignore[no-untyped-def]
    """Set A1 and A2 (k,) to <h, x_i> and K(h, x_i), unless A2 is None."""
    k = units.shape[1]
    first, end = span(rows.starts, i, rows.length)
    for s in range(k):
        A1[s] = constants[0, s]
    if A2 is not None:
        for s in range(k):
            A2[s] = constants[1, s]
    for entry in range(first, end):
        j = place(rows.indices, entry, first)
        x = units.dtype.type(value(rows.values, entry))
        h = units[j]
        for s in range(k):
            if A2 is not None and distinct:
                A2[s] += h[s] * x * A1[s]
            A1[s] += h[s] * x
    if A2 is not None and not distinct:
        for s in range(k):
            A2[s] = A1[s] * A1[s]


@_row
def _set_adjoint(slopes, i, weights, adjoint):  # type: ignore[no-untyped-def]
    """Set the adjoint (k,) of a row; four outputs at a time, as stores cost more than additions."""
    adjoint[:] = 0
    fours = len(weights) - len(weights) % 4
    for c in range(0, fours, 4):
        g0 = slopes[c, i]
        g1 = slopes[c + 1, i]
        g2 = slopes[c + 2, i]
        g3 = slopes[c + 3, i]
        v0 = weights[c]
        v1 = weights[c + 1]
        v2 = weights[c + 2]
        v3 = weights[c + 3]
        for s in range(len(adjoint)):
            adjoint[s] += (g0 * v0[s] + g1 * v1[s]) + (g2 * v2[s] + g3 * v3[s])
    for c in range(fours, len(weights)):
        g = slopes[c, i]
        v = weights[c]
        for s in range(len(adjoint)):
            adjoint[s] += g * v[s]


@_row
def _add_forms(slopes, i, A2, of_weights):  # type: ignore[no-untyped-def]
    """Add the slopes of a row times K(h, x) to the derivatives of the weights (m, k)."""
    fours = len(of_weights) - len(of_weights) % 4
    for c in range(0, fours, 4):
        g0 = slopes[c, i]
        g1 = slopes[c + 1, i]
        g2 = slopes[c + 2, i]
        g3 = slopes[c + 3, i]
        of_v0 = of_weights[c]
        of_v1 = of_weights[c + 1]
        of_v2 = of_weights[c + 2]
        of_v3 = of_weights[c + 3]
        for s in range(len(A2)):
            of_v0[s] += g0 * A2[s]
            of_v1[s] += g1 * A2[s]
            of_v2[s] += g2 * A2[s]
            of_v3[s] += g3 * A2[s]
    for c in range(fours, len(of_weights)):
        g = slopes[c, i]
        of_v = of_weights[c]
        for s in range(len(A2)):
            of_v[s] += g * A2[s]


@_row
def _add_row(distinct, rows, i, units, A1, adjoint, of_constants, of_units):  # type: ignore[no-untyped-def]
    """Add the adjoint times the derivative of K(h, x_i) to the gradients of units and constants."""
    k = units.shape[1]
    for s in range(k):
        of_constants[0, s] += adjoint[s] * A1[s]
        of_constants[1, s] += adjoint[s]
    first, end = span(rows.starts, i, rows.length)
    for entry in range(first, end):
        x = units.dtype.type(value(rows.values, entry))
        j = place(rows.indices, entry, first)
        h = units[j]
        of_h = of_units[j]
        if distinct:
            for s in range(k):
                of_h[s] += adjoint[s] * x * (A1[s] - h[s] * x)
        else:
            for s in range(k):
                of_h[s] += adjoint[s] * x * (2 * A1[s])


@_row
def _add_linear_row(rows, i, linear, row, outputs):  # type: ignore[no-untyped-def]
    """Add the linear term (1 + d, m) of row i to the outputs in column ``row``."""
    m = linear.shape[1]
    for c in range(m):
        outputs[c, row] += linear[0, c]
    first, end = span(rows.starts, i, rows.length)
    for entry in range(first, end):
        x = linear.dtype.type(value(rows.values, entry))
        w = linear[1 + place(rows.indices, entry, first)]
        for c in range(m):
            outputs[c, row] += x * w[c]


@_row
def _add_linear_adjoint(rows, i, slopes, row, of_linear):  # type: ignore[no-untyped-def]
    """Add the slopes of a row to the derivatives of a linear term (1 + d, m)."""
    m = of_linear.shape[1]
    for c in range(m):
        of_linear[0, c] += slopes[c, row]
    first, end = span(rows.starts, i, rows.length)
    for entry in range(first, end):
        x = value(rows.values, entry)
        of_w = of_linear[1 + place(rows.indices, entry, first)]
        for c in range(m):
            of_w[c] += x * slopes[c, row]


@jit(nogil=True, fastmath=FAST)
def set_outputs(distinct, rows, begin, stop, constants, units, weights, linear, outputs):  # type: ignore[no-untyped-def]
    """Set the outputs (m, b) of the rows ``begin`` to ``stop - 1``: sums of K(h, x) V, and a linear term.

    The units (d, k) have ``constants`` (2, k) and weights (m, k). ``linear`` is (1 + d, m), constants first, or (0, m).
    """
    workspace = np.empty((2, units.shape[1]), units.dtype)
    A1 = workspace[0]
    A2 = workspace[1]
    for i in range(begin, stop):
        _set_row(distinct, rows, i, constants, units, A1, A2)
        for c in range(len(weights)):
            total = weights.dtype.type(0)
            v = weights[c]
            for s in range(len(A2)):
                total += A2[s] * v[s]
            outputs[c, i - begin] = total
        if len(linear):
            _add_linear_row(rows, i, linear, i - begin, outputs)


@jit(nogil=True, fastmath=FAST)
def add_gradients(  # type: ignore[no-untyped-def]
    distinct, rows, begin, stop, constants, units, weights, slopes, of_constants, of_units, of_weights, of_linear
):
    """Add the gradients of a loss with the slopes (m, b); features are computed again, not stored.

    Gradients have the shapes of the arguments of ``set_outputs``. ``of_constants`` gets the sums of adjoint * <h, x>
    and of adjoint. Without ``of_weights`` only units get gradients, and without ``weights`` only weights.
    """
    workspace = np.empty((3, units.shape[1]), units.dtype)
    A1 = workspace[0]
    adjoint = workspace[1]
    A2 = None if of_weights is None else workspace[2]
    for i in range(begin, stop):
        _set_row(distinct, rows, i, constants, units, A1, A2)
        if weights is not None:
            _set_adjoint(slopes, i - begin, weights, adjoint)
            _add_row(distinct, rows, i, units, A1, adjoint, of_constants, of_units)
        if of_weights is not None:
            _add_forms(slopes, i - begin, A2, of_weights)
        if of_linear is not None and len(of_linear):
            _add_linear_adjoint(rows, i, slopes, i - begin, of_linear)
