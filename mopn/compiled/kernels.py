"""The polynomial kernels K(p, x) of any degree, their values and gradients, for dense and sparse rows.

There are three kernels, all of Blondel et al., Higher-Order Factorization Machines (NIPS 2016):

* ANOVA A^m, by dynamic programming in O(m) an entry, and its gradient in reverse mode (Algorithms 1 and 2);
* inhomogeneous ANOVA A^{1..m}(.; theta) = sum_t theta_t A^t (equation 13);
* all-subsets S (section 5.2).

Eight kernels p_1, ..., p_8 are computed at a time by vector instructions: ``panels`` (panels, d, 8) holds P (k, d) in
panels of eight, padded with zeros.
"""

import math

import numpy as np

from mopn.compiled.jit import FAST, WIDTH, inlined, inner, jit, prange
from mopn.compiled.storage import Lines, place, span, value

# The kinds of kernels. ANOVA has coefficients theta_1, ..., theta_m, all-subsets none.
ANOVA = 0
SUBSETS = 1
# Rows in a block: the kernels of one unit, 8 KiB for each degree, stay in the cache.
_ROWS_IN_CACHE = 1024

_of_row = inlined(fastmath=FAST)


def pack(P: np.ndarray) -> np.ndarray:
    """Return P (k, d) in panels of eight, (panels, d, 8)."""
    k, d = P.shape
    panels = np.zeros((math.ceil(k / WIDTH), WIDTH, d))
    panels.reshape(-1, d)[:k] = P
    return np.ascontiguousarray(panels.transpose(0, 2, 1))


def unpack(panels: np.ndarray, k: int) -> np.ndarray:
    """Return P (k, d) from its panels."""
    return np.ascontiguousarray(panels.transpose(0, 2, 1)).reshape(-1, panels.shape[1])[:k]


def theta_of_dummies(gamma: np.ndarray) -> np.ndarray:
    """Unroll the parameters gamma (k, m - 1) of dummies into theta (k, m).

    ``A^m([gamma, p], [1, ..., 1, x]) = sum_t theta_t A^t(p, x)``: theta_t is the elementary symmetric polynomial of
    degree m - t in gamma (equation 15 of the ICML paper, applied repeatedly).
    """
    gamma = np.atleast_2d(np.asarray(gamma, dtype=np.float64))
    k, dummies = gamma.shape
    theta = np.zeros((k, dummies + 1))
    theta[:, -1] = 1.0
    for column in gamma.T:
        theta[:, :-1] += column[:, None] * theta[:, 1:]
    return theta


@inner()
def workspace(kind, theta, longest):  # type: ignore[no-untyped-def]
    """Return arrays for the dynamic programme of a row of at most ``longest`` entries, and for its adjoints."""
    degrees = len(theta) + 1 if kind == ANOVA else 1
    table = np.zeros((longest + 1, degrees, WIDTH))
    adjoints = np.zeros((degrees + 1, WIDTH))
    return table, adjoints


@inner(fastmath=FAST)
def row_values(kind, theta, lines, row, panels, c, table, out):  # type: ignore[no-untyped-def]
    """Set out (8,) to the kernels of a row and panel c; ``table`` keeps them for the first 0, 1, ... entries."""
    first, end = span(lines.starts, row, lines.length)
    for s in range(WIDTH):
        table[0, 0, s] = 1.0
    if kind == ANOVA:
        _set_anova(theta, lines, first, end, panels, c, table, out)
    else:
        _set_subsets(lines, first, end, panels, c, table, out)


@_of_row
def _set_anova(theta, lines, first, end, panels, c, table, out):  # type: ignore[no-untyped-def]
    """Set out (8,) to sum_t theta_t A^t of a row, and table[j, t] to A^t of the first j entries (Algorithm 1)."""
    degree = len(theta)
    for t in range(1, degree + 1):
        for s in range(WIDTH):
            table[0, t, s] = 0.0

    for entry in range(first, end):
        j = np.int64(entry - first)
        x = value(lines.values, entry)
        feature = place(lines.indices, entry, first)
        for s in range(WIDTH):
            table[j + 1, 0, s] = 1.0
        for t in range(1, degree + 1):
            for s in range(WIDTH):
                table[j + 1, t, s] = table[j, t, s] + x * panels[c, feature, s] * table[j, t - 1, s]

    for s in range(WIDTH):
        out[s] = 0.0
    for t in range(degree):
        for s in range(WIDTH):
            out[s] += theta[t] * table[np.int64(end - first), t + 1, s]


@_of_row
def _set_subsets(lines, first, end, panels, c, table, out):  # type: ignore[no-untyped-def]
    """Set out (8,) to the product of all 1 + p x of a row, and table[j, 0] to the product of the first j."""
    for entry in range(first, end):
        j = np.int64(entry - first)
        x = value(lines.values, entry)
        feature = place(lines.indices, entry, first)
        for s in range(WIDTH):
            table[j + 1, 0, s] = table[j, 0, s] * (1.0 + x * panels[c, feature, s])
    for s in range(WIDTH):
        out[s] = table[np.int64(end - first), 0, s]


@inner(fastmath=FAST)
def row_gradient(kind, theta, lines, row, panels, c, table, adjoints, scale, gradient):  # type: ignore[no-untyped-def]
    """Add scale (8,) times the gradients of the kernels of a row to ``gradient``, after ``row_values``."""
    first, end = span(lines.starts, row, lines.length)
    if kind == ANOVA:
        _add_anova_gradient(theta, lines, first, end, panels, c, table, adjoints, scale, gradient)
    else:
        _add_subsets_gradient(lines, first, end, panels, c, table, adjoints, scale, gradient)


@_of_row
def _add_anova_gradient(theta, lines, first, end, panels, c, table, adjoints, scale, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of ANOVA; adjoints[t] is the derivative in A^t of the first j entries (Algorithm 2)."""
    degree = len(theta)
    for t in range(degree):
        for s in range(WIDTH):
            adjoints[t + 1, s] = theta[t] * scale[s]
    for s in range(WIDTH):
        adjoints[degree + 1, s] = 0.0

    for entry in range(np.int64(end) - 1, np.int64(first) - 1, -1):
        j = np.int64(entry - first)
        x = value(lines.values, entry)
        feature = place(lines.indices, entry, first)
        for t in range(1, degree + 1):
            for s in range(WIDTH):
                gradient[c, feature, s] += x * adjoints[t, s] * table[j, t - 1, s]
                adjoints[t, s] += x * panels[c, feature, s] * adjoints[t + 1, s]


@_of_row
def _add_subsets_gradient(lines, first, end, panels, c, table, adjoints, scale, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of all-subsets: products before and after an entry, without division by 1 + p x."""
    for s in range(WIDTH):
        adjoints[0, s] = scale[s]
    for entry in range(np.int64(end) - 1, np.int64(first) - 1, -1):
        j = np.int64(entry - first)
        x = value(lines.values, entry)
        feature = place(lines.indices, entry, first)
        for s in range(WIDTH):
            gradient[c, feature, s] += x * adjoints[0, s] * table[j, 0, s]
            adjoints[0, s] *= 1.0 + x * panels[c, feature, s]


@inner()
def longest_line(lines):  # type: ignore[no-untyped-def]
    """Return the largest number of entries of a line."""
    longest = np.int64(0)
    for line in range(lines.size):
        first, end = span(lines.starts, line, lines.length)
        longest = max(longest, np.int64(end - first))
    return longest


@jit(fastmath=FAST)
def set_features(kind, theta, lines, panels, out):  # type: ignore[no-untyped-def]
    """Set out (n, panels, 8) to K(p_s, x_i)."""
    table, _ = workspace(kind, theta, longest_line(lines))
    for c in range(len(panels)):
        for row in range(lines.size):
            row_values(kind, theta, lines, row, panels, c, table, out[row, c])


@jit(fastmath=FAST)
def add_outputs(kind, theta, lines, panels, weights, out):  # type: ignore[no-untyped-def]
    """Add sum_s weights_s K(p_s, x_i) to out (n,); weights (panels, 8)."""
    table, _ = workspace(kind, theta, longest_line(lines))
    values = np.zeros(WIDTH)
    for c in range(len(panels)):
        for row in range(lines.size):
            row_values(kind, theta, lines, row, panels, c, table, values)
            for s in range(WIDTH):
                out[row] += weights[c, s] * values[s]


@jit(fastmath=FAST)
def add_anova(theta, lines, panels, weights, out):  # type: ignore[no-untyped-def]
    """Add the outputs of ANOVA faster: if ``theta`` is a tuple, the kernels of a row stay in registers."""
    A = np.empty((len(theta) + 1, WIDTH))
    for s in range(WIDTH):
        A[0, s] = 1.0
    for c in range(len(panels)):
        for row in range(lines.size):
            first, end = span(lines.starts, row, lines.length)
            for t in range(1, len(theta) + 1):
                for s in range(WIDTH):
                    A[t, s] = 0.0
            for entry in range(first, end):
                x = value(lines.values, entry)
                feature = place(lines.indices, entry, first)
                for t in range(len(theta), 0, -1):
                    for s in range(WIDTH):
                        A[t, s] += x * panels[c, feature, s] * A[t - 1, s]
            total = 0.0
            for t in range(len(theta)):
                for s in range(WIDTH):
                    total += theta[t] * weights[c, s] * A[t + 1, s]
            out[row] += total


@jit(fastmath=FAST)
def anova_degrees(theta, lines, panels, c, out, begin, stop):  # type: ignore[no-untyped-def]
    """Set out[s, t - 1, i] (8, m - 1, n) to A^t(p_s, x_i), t < m, of panel c and rows ``begin`` to ``stop - 1``."""
    A = np.empty((len(theta), WIDTH))
    for s in range(WIDTH):
        A[0, s] = 1.0
    for row in range(begin, stop):
        first, end = span(lines.starts, row, lines.length)
        for t in range(1, len(theta)):
            for s in range(WIDTH):
                A[t, s] = 0.0
        for entry in range(first, end):
            x = value(lines.values, entry)
            feature = place(lines.indices, entry, first)
            for t in range(len(theta) - 1, 0, -1):
                for s in range(WIDTH):
                    A[t, s] += x * panels[c, feature, s] * A[t - 1, s]
        for t in range(1, len(theta)):
            for s in range(WIDTH):
                out[s, t - 1, row] = A[t, s]


@jit(parallel=True)
def parallel_anova_degrees(theta, lines, panels, c, out, threads):  # type: ignore[no-untyped-def]
    """Set ``anova_degrees`` for all rows, in parallel."""
    # Parallel loops take arrays, not tuples of them.
    starts = lines.starts
    indices = lines.indices
    values = lines.values
    n = lines.size
    d = lines.length
    for thread in prange(threads):
        rows = Lines(starts, indices, values, n, d)
        anova_degrees(theta, rows, panels, c, out, thread * n // threads, (thread + 1) * n // threads)


@jit(fastmath=FAST)
def anova_degrees_of_columns(columns, P, out):  # type: ignore[no-untyped-def]
    """Set out[s, t - 1, i] to A^t(p_s, x_i), t < m, from full columns for units P (k, d), by blocks of rows."""
    for s in range(len(P)):
        out[s] = 0.0
        for begin in range(0, columns.length, _ROWS_IN_CACHE):
            stop = min(begin + _ROWS_IN_CACHE, columns.length)
            for j in range(columns.size):
                p = P[s, j]
                x = columns.values[j * columns.length + begin : j * columns.length + stop]
                for t in range(out.shape[1] - 1, 0, -1):
                    A = out[s, t][begin:stop]
                    lower = out[s, t - 1][begin:stop]
                    for i in range(len(x)):
                        A[i] += p * x[i] * lower[i]
                A = out[s, 0][begin:stop]
                for i in range(len(x)):
                    A[i] += p * x[i]


@jit(fastmath=FAST)
def add_gradient(kind, theta, lines, panels, weights, slopes, gradient):  # type: ignore[no-untyped-def]
    """Add sum_i slopes_i weights_s times the gradient of K(p_s, x_i) to ``gradient`` (panels, d, 8)."""
    table, adjoints = workspace(kind, theta, longest_line(lines))
    scale = np.zeros(WIDTH)
    values = np.zeros(WIDTH)
    for c in range(len(panels)):
        for row in range(lines.size):
            row_values(kind, theta, lines, row, panels, c, table, values)
            for s in range(WIDTH):
                scale[s] = slopes[row] * weights[c, s]
            row_gradient(kind, theta, lines, row, panels, c, table, adjoints, scale, gradient)
