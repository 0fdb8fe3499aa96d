"""Weighted Gram matrices X' diag(g) X of sparse rows: SciPy's product of sparse matrices looks every column up."""

from mopn.compiled.jit import FAST, jit


@jit(fastmath=FAST)
def add_gram(data, indices, starts, g, gram):  # type: ignore[no-untyped-def]
    """Add the products of each two entries of a row, in one of the two orders, times the row's g to a matrix (d, d)."""
    for i in range(len(g)):
        first = starts[i]
        for a in range(first, starts[i + 1]):
            scaled = g[i] * data[a]
            row = gram[indices[a]]
            for b in range(first, a + 1):
                row[indices[b]] += scaled * data[b]
