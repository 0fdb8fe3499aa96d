"""Sweeps of coordinate descent over the columns of tables whose rows many samples share, for the squared loss.

Where x_i has the row b of a table, the derivative of A^2 along p_j is h_i = x_bj (e_b + r_i): e_b is <p, b> without
column j, and r_i is the part of <p, x_i> from other tables. So steps along the columns of a table need five sums over
the samples of b, and their changes are affine in r_i. Samples are read only before and after the steps of a table
(Rendle, Scaling Factorization Machines to Relational Data, VLDB 2013). The sums are about the mean of r_i, so that no
large numbers cancel.
"""

import numpy as np

from mopn.compiled.coordinates import penalized_step, weight_of
from mopn.compiled.jit import IN_ORDER, inlined, inner, jit
from mopn.compiled.storage import place, span, value
from mopn.compiled.sweeps import CANCELLATION


@inner(fastmath=IN_ORDER)
def _part_of_others(places, i, t, own):  # type: ignore[no-untyped-def]
    """Return the part of <p, x_i> that comes from tables other than t."""
    rest = 0.0
    for u in range(len(places)):
        if u != t:
            rest += own[places[u, i]]
    return rest


@inner(fastmath=IN_ORDER)
def _part_without(rows, own, mean, b, p, j, x):  # type: ignore[no-untyped-def]
    """Return <p, b> without column j, whose entry is x."""
    part = p[j] * x
    base = own[b] - part
    if abs(own[b]) + abs(part) <= CANCELLATION * abs(base + mean[b]):
        return base
    base = 0.0
    first, end = span(rows.starts, b, rows.length)
    for entry in range(first, end):
        column = place(rows.indices, entry, first)
        if column != j:
            base += p[column] * value(rows.values, entry)
    return base


@inlined(fastmath=IN_ORDER)
def _add_sums(place_of, weights, slopes, rest, weight, mean, variance, slope, slope_about):  # type: ignore[no-untyped-def]
    """Set the five sums over the samples of each row of a table, in arrays of zeros; ``mean`` is of r_i."""
    for i in range(len(place_of)):
        b = place_of[i]
        w = weight_of(weights, i)
        weight[b] += w
        mean[b] += w * rest[i]
        slope[b] += slopes[i]
    for b in range(len(mean)):
        if weight[b] > 0.0:
            mean[b] /= weight[b]
    for i in range(len(place_of)):
        b = place_of[i]
        about = rest[i] - mean[b]
        variance[b] += weight_of(weights, i) * about * about
        slope_about[b] += slopes[i] * about


@jit(fastmath=IN_ORDER)
def sweep_tables(columns, rows, cuts, places, weights, slopes, own, p, scale, ridge, linear):  # type: ignore[no-untyped-def]
    """Minimise along p_0, p_1, ... in turn; return the largest product of a derivative and its step.

    ``columns`` and ``rows`` are of all tables, block diagonal. Table t has the columns ``cuts[t]`` to
    ``cuts[t + 1] - 1``, and sample i has its row ``places[t, i]``. The call updates p, the ``slopes`` w_i (o_i - y_i)
    and ``own`` <p, b>. ``scale`` is the factor of the kernel in the outputs; the penalty is ``ridge / 2 * p_j^2``. With
    ``linear`` the kernel is <p, x> in place of A^2, with e_b = 0 and r_i = 1.
    """
    largest = 0.0
    n_tables, n = places.shape
    rest = np.ones(n)
    for t in range(n_tables):
        # The numbers of a row share one line of the cache.
        weight, mean, variance, slope, slope_about, shift, tilt = np.zeros((columns.length, 8)).T[:7]
        place_of = places[t]
        if not linear:
            for i in range(n):
                rest[i] = _part_of_others(places, i, t, own)
        _add_sums(place_of, weights, slopes, rest, weight, mean, variance, slope, slope_about)

        for j in range(cuts[t], cuts[t + 1]):
            first, end = span(columns.starts, j, columns.length)
            g = 0.0
            c = 0.0
            for entry in range(first, end):
                b = place(columns.indices, entry, first)
                x = value(columns.values, entry)
                e = mean[b] + (0.0 if linear else _part_without(rows, own, mean, b, p, j, x))
                g += x * (e * slope[b] + slope_about[b])
                c += x * x * (e * e * weight[b] + variance[b])
            step, gain = penalized_step(scale * g, scale * scale * c, ridge, p[j])
            largest = max(largest, gain)
            new = p[j] - step
            for entry in range(first, end):
                b = place(columns.indices, entry, first)
                x = value(columns.values, entry)
                base = 0.0 if linear else _part_without(rows, own, mean, b, p, j, x)
                change = -scale * step * x
                shift[b] += change * (mean[b] + base)
                tilt[b] += change
                slope[b] += change * (mean[b] + base) * weight[b]
                slope_about[b] += change * variance[b]
                own[b] = base + new * x
            p[j] = new

        for i in range(n):
            b = place_of[i]
            slopes[i] += weight_of(weights, i) * (shift[b] + tilt[b] * (rest[i] - mean[b]))
    return largest
