"""Alternating least squares on observed pairs: the exact minimum over one factor, row by row, and sums over pairs.

Pairs are lines of a compressed matrix: line i has the partners ``partners[starts[i]:starts[i + 1]]``. Loops over lines
take a range of them, so that threads share the lines; they hold no lock of Python.
"""

import numpy as np

from mopn.compiled.jit import FAST, inner, jit


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

    The sums are over the rows b of B of a line; z are the rows of Z, or 0 if it has none. Factors, confidences and
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
            if len(Z):
                for s in range(k):
                    b[s] *= target
                    for t in range(k):
                        b[s] -= M[s, t] * Z[row, t]
            M += common
            _solve(M, b)
        A[row] = b


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


@jit(nogil=True, fastmath=FAST)
def add_outer_products(starts, partners, values, K):  # type: ignore[no-untyped-def]
    """Add the lower triangle of G'G to K, in Fortran's order, for the matrix G of the lines, sorted partners."""
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            column = partners[entry]
            value = values[entry]
            for other in range(entry, starts[row + 1]):
                K[partners[other], column] += value * values[other]
