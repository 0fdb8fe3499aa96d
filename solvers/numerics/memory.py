"""A setting of the C library's allocator: freed memory is kept for the temporary arrays of loops."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

__all__ = ["keep_freed_memory"]

# Bytes, just below the largest threshold of glibc.
_THRESHOLD = 31 << 20


def keep_freed_memory() -> None:
    """Allocate and free a large block, so that the C library keeps the memory of temporary arrays.

    glibc maps large arrays anew, page by page, until an array of their size has been freed (its dynamic threshold, up
    to 32 MiB). A newly mapped array of a few MiB takes several times as long as the arithmetic that fills it.
    """
    # Where there is no room for such a block, loops are slower and still right.
    with suppress(MemoryError):
        np.empty(_THRESHOLD, dtype=np.uint8)
