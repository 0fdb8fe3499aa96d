"""The layout of a design for compiled functions: its rows or its columns one after the other, for any storage.

Also groups of columns without common rows, over which threads may sweep at the same time.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.compiled.jit import inlined, jit

# Entries are counted in 32 bits: with 64, sweeps over one-hot columns would read twice as many bytes of indices.
_MAX_ENTRIES = 1 << 32


class Lines(NamedTuple):
    """The rows or the columns of a matrix, laid out one after the other: ``size`` lines of ``length`` places.

    ``starts`` says where each line starts, and where the last one ends, ``indices`` the place of each entry in its
    line; both are None if all lines are full. They are unsigned, so that compiled code does not check for negative
    indices. ``values`` are None if all are 1: no multiplications then.
    """

    starts: np.ndarray | None
    indices: np.ndarray | None
    values: np.ndarray | None
    size: int
    length: int


def constant(values: Any, dtype: type = np.float64) -> np.ndarray:
    """Return a contiguous, read-only array: each type of an argument would be compiled for several seconds."""
    array: np.ndarray = np.ascontiguousarray(values, dtype=dtype).view()
    array.flags.writeable = False
    return array


def row_lines(X: Any) -> Lines:
    return _lines(X.tocsr() if sparse.issparse(X) else X)


def column_lines(X: Any) -> Lines:
    return _lines(X.tocsc().T if sparse.issparse(X) else X.T)


def _lines(X: Any) -> Lines:
    count, length = X.shape
    entries = X.nnz if sparse.issparse(X) else X.size
    if entries >= _MAX_ENTRIES:
        raise ValueError(f"X has {entries} entries; compiled solvers take fewer than {_MAX_ENTRIES}")
    if not sparse.issparse(X):
        return Lines(None, None, constant(X).reshape(-1), count, length)
    values = None if np.all(X.data == 1.0) else constant(X.data)
    return Lines(constant(X.indptr, np.uint32), constant(X.indices, np.uint32), values, count, length)


@inlined()
def span(starts, line, length):  # type: ignore[no-untyped-def]
    """Return the first entry of a line and the one after its last."""
    if starts is None:
        return np.uint64(line * length), np.uint64((line + 1) * length)
    return starts[line], starts[line + 1]


@inlined()
def place(indices, entry, first):  # type: ignore[no-untyped-def]
    """Return the place of an entry in its line, which starts at ``first``."""
    if indices is None:
        return entry - first
    return indices[entry]


@inlined()
def value(values, entry):  # type: ignore[no-untyped-def]
    if values is None:
        return 1.0
    return values[entry]


@jit()
def disjoint_groups(columns):  # type: ignore[no-untyped-def]
    """Return where runs of consecutive columns without a common row start; the number of columns comes last."""
    group_of_row = np.full(columns.length, 0)
    starts = [0]
    for j in range(columns.size):
        first, end = span(columns.starts, j, columns.length)
        for entry in range(first, end):
            if group_of_row[place(columns.indices, entry, first)] == len(starts):
                starts.append(j)
                break
        for entry in range(first, end):
            group_of_row[place(columns.indices, entry, first)] = len(starts)
    starts.append(columns.size)
    return np.array(starts)


@jit()
def owners(columns, cuts):  # type: ignore[no-untyped-def]
    """Return which run of columns, cuts_t, ..., cuts_{t+1} - 1, has an entry of a row (n,); 0 if none has."""
    owner = np.zeros(columns.length, np.int64)
    for t in range(len(cuts) - 1):
        for j in range(cuts[t], cuts[t + 1]):
            first, end = span(columns.starts, j, columns.length)
            for entry in range(first, end):
                owner[place(columns.indices, entry, first)] = t
    return owner
