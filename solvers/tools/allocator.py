"""A setting of the C library's allocator: freed memory is kept for the temporary arrays of loops."""

from __future__ import annotations

import ctypes
import os

__all__ = ["keep_freed_memory"]

# Parameters of glibc's mallopt: free memory at the end of the heap from which on it is returned, and the size from
# which on an array is mapped. In bytes, the latter just below the largest that glibc takes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_ARRAY = 31 << 20
_LARGEST_REST = 2 * _LARGEST_ARRAY


def keep_freed_memory() -> None:
    """Let glibc keep up to 62 MiB of freed memory for the rest of the process, where it is the C library.

    By default it maps large arrays anew, page by page, and a newly mapped array of a few MiB takes several times as
    long as the arithmetic that fills it. Its threshold grows by itself, but not where ``MALLOC_TRIM_THRESHOLD_`` is
    set, as it is for Dask's workers; tasks of ``mopn.dask`` call this. Nothing else in mopn does: it changes the memory
    of the whole process, which is yours to decide. Elsewhere than on Linux it does nothing.

    Examples
    --------
    >>> import mopn
    >>> mopn.keep_freed_memory()
    """
    if os.name != "posix":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_ARRAY)
        mallopt(_TRIM_THRESHOLD, _LARGEST_REST)
