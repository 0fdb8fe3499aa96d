"""The sizes of blocks whose arrays stay in the cache, and of slices of rows for threads."""

from __future__ import annotations

__all__ = [
    "CACHE_ENTRIES",
    "KEPT_ENTRIES",
    "LOSS_ENTRIES",
    "MAX_SLICES",
    "ROWS_PER_INPUT",
    "SLICE_ROWS",
    "rows_at_once",
]

# Entries of a block of rows: two such arrays of float64 stay in the cache.
CACHE_ENTRIES = 1 << 18
# The same for losses and their conjugates, which need several temporary arrays of this size.
LOSS_ENTRIES = 1 << 16
# Entries that are computed at once of an array that is kept: the temporary arrays are small in comparison.
KEPT_ENTRIES = 1 << 22
# Rows per input of a block whose rows are summed to shape (k, d), at least: the sums are small in comparison.
ROWS_PER_INPUT = 4
# Smallest number of rows of a slice, and largest number of slices.
SLICE_ROWS, MAX_SLICES = 8192, 8


def rows_at_once(entries: int) -> int:
    """Return the number of rows, at least 1, that stay in the cache for a number of entries per row."""
    return max(1, CACHE_ENTRIES // entries)
