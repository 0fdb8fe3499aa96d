"""Alternating least squares on observed pairs: the exact minimum over one factor, row by row, and sums over pairs.

Pairs are lines of a compressed matrix: line i has the partners ``partners[starts[i]:starts[i + 1]]``. Loops over lines
take a range of them, so that threads share the lines; they hold no lock of Python.
"""

import numpy as np

from mopn.compiled.jit import FAST, IN_ORDER, inner, jit


@inner(fastmath=FAST)
def _solve(M, b):  # type: ignore[no-untyped-def]
    """Overwrite b by the solution of M x = b, for a positive definite M."""
    L = np.linalg.cholesky(M)
    k = len(b)
    for i in range(k):
        rest = b[i]
        for j in range(i):
            rest -= L[i, j] * b[j]
        b[i] = rest / L[i, i]
    for i in range(k - 1, -1, -1):
        b[i] /= L[i, i]
        x = b[i]
        for j in range(i):
            b[j] -= x * L[i, j]


@jit(nogil=True, fastmath=FAST)
def half_step(A, B, starts, partners, confidences, common, Z, target, first, end):  # type: ignore[no-untyped-def]
    """Set the rows first to end of A to their minimisers: (common + M) a = target sum c b - M z, for M = sum c b b'.

    The sums are over the rows b of B of a line; z are the rows of Z. Factors, confidences and
    ``common`` (k, k) are of one precision, in which all is computed.
    """
    k = B.shape[1]
    most = 0
    for row in range(first, end):
        most = max(most, starts[row + 1] - starts[row])
    gathered = np.empty((most, k), B.dtype)
    M = np.empty((k, k), B.dtype)
    b = np.empty(k, B.dtype)
    for row in range(first, end):
        n = starts[row + 1] - starts[row]
        b[:] = 0.0
        if n > 0:
            for j in range(n):
                entry = starts[row] + j
                c = confidences[entry]
                root = np.sqrt(c)
                partner = partners[entry]
                for s in range(k):
                    gathered[j, s] = root * B[partner, s]
                    b[s] += c * B[partner, s]
            rows = gathered[:n]
            np.dot(rows.T, rows, M)
            for s in range(k):
                b[s] *= target
                for t in range(k):
                    b[s] -= M[s, t] * Z[row, t]
            M += common
            _solve(M, b)
        A[row] = b


@jit(nogil=True, fastmath=FAST)
def conjugate_steps(A, B, starts, partners, confidences, common, steps, first, end):  # type: ignore[no-untyped-def]
    """Improve the rows first to end of A, given B, by steps of conjugate gradients on the systems of `half_step`.

    Takács, Pilászy and Tikk: Applications of the conjugate gradient method for implicit feedback collaborative
    filtering. RecSys 2011.
    """
    k = B.shape[1]
    most = 0
    for row in range(first, end):
        most = max(most, starts[row + 1] - starts[row])
    gathered = np.empty((most, k), B.dtype)
    for row in range(first, end):
        n = starts[row + 1] - starts[row]
        if n == 0:
            A[row] = 0.0
            continue
        for j in range(n):
            gathered[j] = B[partners[starts[row] + j]]
        rows = gathered[:n]
        c = confidences[starts[row] : starts[row + 1]]
        x = A[row].copy()
        residual = np.dot(c * (1 - np.dot(rows, x)), rows) - np.dot(common, x)
        direction = residual.copy()
        length = np.dot(residual, residual)
        for _ in range(steps):
            if not length > 0.0:
                break
            image = np.dot(c * np.dot(rows, direction), rows) + np.dot(common, direction)
            step = length / np.dot(direction, image)
            x += step * direction
            residual -= step * image
            before = length
            length = np.dot(residual, residual)
            direction = residual + (length / before) * direction
        A[row] = x


@jit(nogil=True, fastmath=FAST)
def pair_products(A, B, starts, partners, products, first, end):  # type: ignore[no-untyped-def]
    """Set the products <a_i, b_j> of all pairs of the lines first to end, in double precision."""
    k = B.shape[1]
    for row in range(first, end):
        for entry in range(starts[row], starts[row + 1]):
            partner = partners[entry]
            total = 0.0
            for s in range(k):
                total += A[row, s] * B[partner, s]
            products[entry] = total


@jit(nogil=True, fastmath=IN_ORDER)
def line_sums(starts, partners, values, X, found, first, end):  # type: ignore[no-untyped-def]
    """Add the rows of X of the partners, times values, to the rows first to end of ``found``."""
    q = X.shape[1]
    for row in range(first, end):
        for entry in range(starts[row], starts[row + 1]):
            value = values[entry]
            partner = partners[entry]
            for s in range(q):
                found[row, s] += value * X[partner, s]


@jit(nogil=True, fastmath=FAST)
def add_outer_products(starts, partners, values, K):  # type: ignore[no-untyped-def]
    """Add the lower triangle of G'G to K, in Fortran's order, for the matrix G of the lines, sorted partners."""
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            column = partners[entry]
            value = values[entry]
            for other in range(entry, starts[row + 1]):
                K[partners[other], column] += value * values[other]
