"""Alternating least squares on observed pairs: steps to the minimum over one factor, row by row, and sums over pairs.

Pairs are lines of a compressed matrix: line i has the partners ``partners[starts[i]:starts[i + 1]]``. Loops over lines
take a range of them, so that threads share the lines; they hold no lock of Python.
"""

import numpy as np

from mopn.compiled.jit import FAST, IN_ORDER, inner, jit

# Numbers between an array that loops write and any other. Loops take vectors only if arrays lie far enough apart, and
# sums would be rounded in an order that depends on where memory was free.
_MARGIN = 64


@inner(fastmath=FAST)
def _add_normal(B, partners, confidences, first, end, x, target, found):  # type: ignore[no-untyped-def]
    """Add the sum of c (target - <b, x>) b over the pairs first to end to ``found``.

    Four pairs at a time: ``x`` and ``found`` are then read and written a quarter as often, and each row b is read twice
    in a row.
    """
    k = B.shape[1]
    last = end - (end - first) % 4
    for pair in range(first, last, 4):
        i = partners[pair]
        j = partners[pair + 1]
        m = partners[pair + 2]
        n = partners[pair + 3]
        at_i = B.dtype.type(0.0)
        at_j = B.dtype.type(0.0)
        at_m = B.dtype.type(0.0)
        at_n = B.dtype.type(0.0)
        for s in range(k):
            at_i += B[i, s] * x[s]
            at_j += B[j, s] * x[s]
            at_m += B[m, s] * x[s]
            at_n += B[n, s] * x[s]
        at_i = confidences[pair] * (target - at_i)
        at_j = confidences[pair + 1] * (target - at_j)
        at_m = confidences[pair + 2] * (target - at_m)
        at_n = confidences[pair + 3] * (target - at_n)
        for s in range(k):
            found[s] += at_i * B[i, s] + at_j * B[j, s] + at_m * B[m, s] + at_n * B[n, s]
    for pair in range(last, end):
        i = partners[pair]
        at_i = B.dtype.type(0.0)
        for s in range(k):
            at_i += B[i, s] * x[s]
        at_i = confidences[pair] * (target - at_i)
        for s in range(k):
            found[s] += at_i * B[i, s]


@jit(nogil=True, fastmath=FAST)
def conjugate_steps(A, B, Z, starts, partners, confidences, steps, first, end):  # type: ignore[no-untyped-def]
    """Improve the rows a of A, first to end, by steps of conjugate gradients on sum c/2 (<a + z, b> - 1)^2 + <a, a>/2.

    The sum is over the partners b of a line; z are the rows of Z, which may be empty for zeros. Takács, Pilászy and
    Tikk: Applications of the conjugate gradient method for implicit feedback collaborative filtering. RecSys 2011.
    """
    k = B.shape[1]
    one = B.dtype.type(1.0)
    zero = B.dtype.type(0.0)
    own = slice(_MARGIN, _MARGIN + k)
    work = np.empty((3, k + 2 * _MARGIN), B.dtype)
    residual = work[0, own]
    direction = work[1, own]
    image = work[2, own]
    has_offsets = len(Z) > 0
    for row in range(first, end):
        x = A[row]
        begin = starts[row]
        stop = starts[row + 1]
        for s in range(k):
            residual[s] = -x[s]
            direction[s] = x[s] + Z[row, s] if has_offsets else x[s]
        _add_normal(B, partners, confidences, begin, stop, direction, one, residual)
        square = zero
        for s in range(k):
            direction[s] = residual[s]
            square += residual[s] * residual[s]
        for _ in range(steps):
            if not square > zero:
                break
            for s in range(k):
                image[s] = -direction[s]
            _add_normal(B, partners, confidences, begin, stop, direction, zero, image)
            curvature = zero
            for s in range(k):
                curvature -= direction[s] * image[s]
            length = square / curvature
            before = square
            square = zero
            for s in range(k):
                x[s] += length * direction[s]
                residual[s] += length * image[s]
                square += residual[s] * residual[s]
            ratio = square / before
            for s in range(k):
                direction[s] = residual[s] + ratio * direction[s]


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
    """Add the rows of X of the partners, times values, to the rows first to end of ``found``, four at a time."""
    q = X.shape[1]
    for row in range(first, end):
        stop = starts[row + 1]
        last = stop - (stop - starts[row]) % 4
        for entry in range(starts[row], last, 4):
            i = partners[entry]
            j = partners[entry + 1]
            m = partners[entry + 2]
            n = partners[entry + 3]
            at_i = values[entry]
            at_j = values[entry + 1]
            at_m = values[entry + 2]
            at_n = values[entry + 3]
            for s in range(q):
                found[row, s] += at_i * X[i, s] + at_j * X[j, s] + at_m * X[m, s] + at_n * X[n, s]
        for entry in range(last, stop):
            value = values[entry]
            i = partners[entry]
            for s in range(q):
                found[row, s] += value * X[i, s]


@jit(nogil=True, fastmath=FAST)
def add_outer_products(starts, partners, values, K):  # type: ignore[no-untyped-def]
    """Add the lower triangle of G'G to K, in Fortran's order, for the matrix G of the lines, sorted partners.

    A column of K is finished before the next: it stays in the nearest memory. Lines wait in a list of the column of
    their next entry.
    """
    n_lines = len(starts) - 1
    first_line = np.full(K.shape[0], -1, np.int64)
    next_line = np.empty(n_lines, np.int64)
    places = starts[:-1].copy()
    for row in range(n_lines):
        if places[row] < starts[row + 1]:
            column = partners[places[row]]
            next_line[row] = first_line[column]
            first_line[column] = row
    for column in range(K.shape[0]):
        row = first_line[column]
        while row >= 0:
            following = next_line[row]
            place = places[row]
            value = values[place]
            for other in range(place, starts[row + 1]):
                K[partners[other], column] += value * values[other]
            place += 1
            places[row] = place
            if place < starts[row + 1]:
                later = partners[place]
                next_line[row] = first_line[later]
                first_line[later] = row
            row = following
