"""Networks of units of degree 2 on sparse rows: features and outputs, and the gradients of both layers.

The units are the columns of ``units`` (d, k), so that those of a feature lie side by side, filled up with zeros to a
multiple of ``WIDTH``. K(h, x) is the elementary symmetric polynomial A^2 of the h_j x_j for distinct features, and
<h, x>^2 otherwise. Leading 1-features come as the constants that a row starts from.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mopn.compiled.lines import place, span, value

__all__ = ["WIDTH", "add_gradients", "set_outputs"]

WIDTH = 8
_FAST = {"contract", "reassoc", "nsz"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def set_outputs(distinct, rows, begin, stop, constants, units, weights, first, second, outputs):  # type: ignore[no-untyped-def]
    """Set the features and the outputs of the rows ``begin`` to ``stop - 1``.

    Parameters
    ----------
    distinct : bool
        Whether products are of distinct features only.
    rows : Lines
    begin, stop : int
    constants : ndarray of shape (2, k)
        A^1 and A^2 of the 1-features.
    units : ndarray of shape (d, k)
    weights : ndarray of shape (m, k)
    first, second : ndarray of shape (b, k)
        Set to <h, x> and to K(h, x).
    outputs : ndarray of shape (m, b)
        Set to the sums of K(h, x) times the weights.
    """
    k = units.shape[1]
    for i in range(begin, stop):
        A1, A2 = first[i - begin], second[i - begin]
        for s in range(k):
            A1[s], A2[s] = constants[0, s], constants[1, s]
        entry_of_row, end = span(rows.starts, i, rows.length)
        for entry in range(entry_of_row, end):
            x, h = units.dtype.type(value(rows.values, entry)), units[place(rows.indices, entry, entry_of_row)]
            for s in range(k):
                if distinct:
                    A2[s] += h[s] * x * A1[s]
                A1[s] += h[s] * x
        if not distinct:
            for s in range(k):
                A2[s] = A1[s] * A1[s]
        for c in range(len(weights)):
            total, v = A2[0] * 0, weights[c]
            for s in range(k):
                total += A2[s] * v[s]
            outputs[c, i - begin] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_gradients(  # type: ignore[no-untyped-def]
    distinct, rows, begin, stop, units, weights, first, second, slopes, of_constants, of_units, of_weights
):
    """Add the gradients of a loss whose slopes are ``slopes`` (m, b), after ``set_outputs``.

    ``of_units`` (d, k) and ``of_weights`` (m, k) are added to, and ``of_constants`` (2, k): the sums over the rows of
    pull * <h, x>, and of pull, where pull is the derivative with respect to K(h, x).
    """
    k = units.shape[1]
    pull = np.empty(k, units.dtype)
    for i in range(begin, stop):
        A1, A2 = first[i - begin], second[i - begin]
        pull[:] = 0
        for c in range(len(weights)):
            g, v, of_v = slopes[c, i - begin], weights[c], of_weights[c]
            for s in range(k):
                pull[s] += g * v[s]
                of_v[s] += g * A2[s]
        for s in range(k):
            of_constants[0, s] += pull[s] * A1[s]
            of_constants[1, s] += pull[s]
        entry_of_row, end = span(rows.starts, i, rows.length)
        for entry in range(entry_of_row, end):
            x, j = units.dtype.type(value(rows.values, entry)), place(rows.indices, entry, entry_of_row)
            h, of_h = units[j], of_units[j]
            if distinct:
                for s in range(k):
                    of_h[s] += pull[s] * x * (A1[s] - h[s] * x)
            else:
                for s in range(k):
                    of_h[s] += pull[s] * x * (2 * A1[s])
