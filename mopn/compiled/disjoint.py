"""Columns without common rows, over which threads may sweep at the same time."""

from __future__ import annotations

import numpy as np

from mopn.compiled.jit import jit
from mopn.compiled.storage import place, span


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
