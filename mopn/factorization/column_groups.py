"""The columns of each thread of coordinate descent, and an order of the samples that avoids false sharing.

Threads that write to neighbouring samples wait for each other's cache lines. So each thread's samples are contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from mopn.compiled.storage import Lines, constant, disjoint_groups, owners, row_lines
from mopn.data.designs import Design

# Threads do not pay for a group of disjoint columns with fewer entries per thread than this.
_ENTRIES_PER_THREAD = 10_000
# Smallest block of samples: smaller ones are not much longer than a cache line.
_SMALLEST_BLOCK = 64


def column_parts(columns: Lines, n_threads: int) -> np.ndarray | None:
    """Return runs of columns (groups, n_threads + 1), in groups without common rows; None if threads do not pay."""
    if n_threads == 1 or columns.starts is None:
        return None
    groups = disjoint_groups(columns)
    entries = columns.starts.astype(np.int64)
    sizes = np.diff(entries[groups])
    if sizes.sum() < _ENTRIES_PER_THREAD * n_threads * len(sizes):
        return None
    targets = entries[groups[:-1], None] + np.arange(n_threads + 1) / n_threads * sizes[:, None]
    parts = np.searchsorted(entries, targets)
    parts[:, 0], parts[:, -1] = groups[:-1], groups[1:]
    return parts


def arrangement(designs: Iterable[Lines], n_threads: int) -> np.ndarray | None:
    """Return an order (n,) in which samples of one thread are contiguous, for each group; None if it does not pay."""
    designs = list(designs)
    if any(columns.indices is None for columns in designs):
        return None
    parts = [(columns, column_parts(columns, n_threads)) for columns in designs]
    groups = [(columns, cuts) for columns, all_cuts in parts if all_cuts is not None for cuts in all_cuts]
    if not groups:
        return None
    n = designs[0].length
    key, most = np.zeros(n, np.int64), int(math.log(max(n / _SMALLEST_BLOCK, 1.0), n_threads))
    for columns, cuts in groups[:most]:
        key = n_threads * key + owners(columns, cuts)
    return np.argsort(key, kind="stable")


def arranged_lines(design: Design, order: np.ndarray | None) -> tuple[Lines, Lines]:
    """Return the columns, whose entries keep their order, and the rows of a design with its samples reordered."""
    if order is None:
        return design.column_lines, design.row_lines
    columns = design.column_lines
    position = np.empty(len(order), np.uint32)
    position[order] = np.arange(len(order))
    indices = constant(position[columns.indices], np.uint32)
    return columns._replace(indices=indices), row_lines(design.rows(order).matrix())
