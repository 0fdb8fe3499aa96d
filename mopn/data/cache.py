"""The size of blocks of rows whose arrays stay in the cache."""

from __future__ import annotations

# Entries of a block of rows: two such arrays of float64 stay in the cache.
CACHE_ENTRIES = 1 << 18


def rows_at_once(entries: int) -> int:
    """Return the number of rows, at least 1, that stay in the cache for a number of entries per row."""
    return max(1, CACHE_ENTRIES // entries)
