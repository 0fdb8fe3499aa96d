"""How much is computed at once: blocks whose arrays stay in the cache, and slices of rows that threads share."""

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
# The same for losses and their conjugates, which make several temporary arrays of that size.
LOSS_ENTRIES = 1 << 16
# Entries of an array that is kept as a whole, computed at once: the temporary arrays are small beside it.
KEPT_ENTRIES = 1 << 22
# A block of sums of shape (k, d) over the rows has at least so many rows per input: the sums are small beside it.
ROWS_PER_INPUT = 4
# Least number of rows in a slice, and the largest number of slices.
SLICE_ROWS, MAX_SLICES = 8192, 8


def rows_at_once(entries: int) -> int:
    """Return how many rows of so many entries each stay in the cache, at least 1."""
    return max(1, CACHE_ENTRIES // entries)
