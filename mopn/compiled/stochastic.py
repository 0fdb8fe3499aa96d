"""Passes of stochastic gradient descent and AdaGrad over the rows, one mini-batch after the other.

The gradient of a sample is zero except for its own features: each of the ``counts_j`` samples that have feature j gets
an equal share of the penalty of p_j. So the mean over all samples is the gradient of the objective, divided by n.
"""

import math

import numpy as np

from mopn.compiled.coordinates import derivative
from mopn.compiled.jit import WIDTH, inlined, jit
from mopn.compiled.kernels import longest_line, row_gradient, row_values, workspace
from mopn.compiled.storage import place, span, value

# Least divisor of AdaGrad: it keeps first steps along zero gradients finite, and changes no other.
_LEAST_DIVISOR = 1e-12


@jit()
def count_entries(lines):  # type: ignore[no-untyped-def]
    """Return the number of lines with a nonzero entry at each place."""
    counts = np.zeros(lines.length)
    for row in range(lines.size):
        first, end = span(lines.starts, row, lines.length)
        for entry in range(first, end):
            if value(lines.values, entry) != 0.0:
                counts[place(lines.indices, entry, first)] += 1.0
    return counts


@jit()
def _step(parameter, sums, gradient, step, adaptive):  # type: ignore[no-untyped-def]
    """Return a parameter after a step, and the sum of its squared gradients: Duchi, Hazan and Singer (2011)."""
    if adaptive:
        sums += gradient * gradient
        return parameter - step * gradient / (math.sqrt(sums) + _LEAST_DIVISOR), sums
    return parameter - step * gradient, sums


@inlined()
def _step_units(panel, sums, gradient, feature, part, ridges, step, adaptive):  # type: ignore[no-untyped-def]
    """Take the step of a feature's parameters of eight units, and set their gradient to 0."""
    for s in range(WIDTH):
        g = gradient[feature, s] + part * ridges[s] * panel[feature, s]
        panel[feature, s], sums[feature, s] = _step(panel[feature, s], sums[feature, s], g, step, adaptive)
        gradient[feature, s] = 0.0


@inlined()
def _add_kernels(output, kind, thetas, lines, row, panels, lams, tables, values):  # type: ignore[no-untyped-def]
    """Return an output plus the kernels of all units at a row, whose ``tables`` the gradient needs."""
    for c in range(len(panels)):
        row_values(kind, thetas[c], lines, row, panels, c, tables[c], values)
        for s in range(WIDTH):
            output += lams[c, s] * values[s]
    return output


@inlined()
def _add_row(lines, first, end, slope, share, w_gradient, met, features, n_features):  # type: ignore[no-untyped-def]
    """Add a row to the gradient of w, and ``share`` to its features' entries of ``met``; list its new features.

    Return the number of features that the mini-batch has so far.
    """
    for entry in range(first, end):
        x = value(lines.values, entry)
        feature = place(lines.indices, entry, first)
        if x == 0.0:
            continue
        w_gradient[feature] += slope * x
        if met[feature] == 0.0:
            features[n_features] = feature
            n_features += 1
        met[feature] += share
    return n_features


@jit()
def stochastic_pass(  # type: ignore[no-untyped-def]
    kind, thetas, lines, loss, y, offset, weights, order, batch, step, adaptive, counts,
    panels, panel_sums, lams, ridges, w, w_sums, linear, alpha, dummies, intercept, fit_intercept,
):  # fmt: skip
    """Take one step for every ``batch`` rows in ``order``.

    ``thetas`` (c, m) are the coefficients of the kernels of each panel, with ``lams`` and ``ridges`` (c, 8). ``lines``
    have ``dummies`` leading dummies; ``counts`` (d,) says how many rows have each feature. If ``adaptive``, steps are
    divided by the roots of sums of squared gradients (AdaGrad): ``panel_sums``, ``w_sums``, and the second entry of
    ``intercept`` (2,). If ``linear``, w is fitted, with the strength ``alpha``.
    """
    longest = longest_line(lines)
    table, adjoints = workspace(kind, thetas[0], longest)
    tables = np.zeros((len(panels), *table.shape))
    values = np.zeros(WIDTH)
    scale = np.zeros(WIDTH)
    gradient = np.zeros_like(panels)
    w_gradient = np.zeros_like(w)
    met = np.zeros(len(w))
    features = np.empty(len(w), dtype=np.int64)

    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        share = 1.0 / len(rows)
        n_features = 0
        of_intercept = 0.0
        for row in rows:
            first, end = span(lines.starts, row, lines.length)
            output = offset[row] + intercept[0]
            output = _add_kernels(output, kind, thetas, lines, row, panels, lams, tables, values)
            if linear:
                for entry in range(first, end):
                    output += value(lines.values, entry) * w[place(lines.indices, entry, first)]
            slope = share * weights[row] * derivative(loss, y[row], output)
            of_intercept += slope
            for c in range(len(panels)):
                for s in range(WIDTH):
                    scale[s] = slope * lams[c, s]
                row_gradient(kind, thetas[c], lines, row, panels, c, tables[c], adjoints, scale, gradient)
            n_features = _add_row(lines, first, end, slope, share, w_gradient, met, features, n_features)

        for feature in features[:n_features]:
            part = met[feature] / counts[feature]
            met[feature] = 0.0
            for c in range(len(panels)):
                _step_units(panels[c], panel_sums[c], gradient[c], feature, part, ridges[c], step, adaptive)
            if linear and feature >= dummies:
                g = w_gradient[feature] + part * alpha * w[feature]
                w[feature], w_sums[feature] = _step(w[feature], w_sums[feature], g, step, adaptive)
            w_gradient[feature] = 0.0

        if fit_intercept:
            intercept[0], intercept[1] = _step(intercept[0], intercept[1], of_intercept, step, adaptive)
