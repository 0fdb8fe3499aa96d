"""The C library's memory, kept for the temporary arrays of loops."""

from __future__ import annotations

import numpy as np

__all__ = ["keep_freed_memory"]

# Just below glibc's largest threshold, in bytes.
_THRESHOLD = 31 << 20


def keep_freed_memory() -> None:
    """Allocate and free a block, untouched, so that the C library keeps the temporary arrays of loops.

    glibc maps large arrays afresh, page by page, until it has seen one of their size freed (its dynamic threshold, up
    to 32 MiB); a fresh array of a few MiB costs several times the arithmetic that fills it.
    """
    np.empty(_THRESHOLD, dtype=np.uint8)
