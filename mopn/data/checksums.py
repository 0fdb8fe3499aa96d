"""Checksums that notice a block that has changed since an earlier pass."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from scipy import sparse

# Words of 8 bytes that are added up before the CRC, which is slower.
_RUN = 1024


def checksum(*parts: Any) -> int:
    """Return a number that is equal for equal arrays, sparse matrices and tables, and almost surely for no others."""
    total = 0
    for part in parts:
        stored = part.tocsr() if sparse.issparse(part) else part
        plain = getattr(part, "stored_arrays", (stored,))  # of a table
        arrays = (stored.indptr, stored.indices, stored.data) if sparse.issparse(part) else plain
        total = zlib.crc32(repr(np.shape(part)).encode(), total)
        for array in arrays:
            total = _of_array(np.asarray(array), total)
    return total


def _of_array(array: np.ndarray, before: int) -> int:
    if array.dtype.hasobject:
        array = np.frombuffer("\0".join(map(str, array.flat)).encode(errors="surrogatepass"), np.uint8)
    stored = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(stored) - len(stored) % (8 * _RUN)
    sums = stored[:whole].view(np.uint64).reshape(-1, _RUN).sum(axis=1)
    return zlib.crc32(stored[whole:].tobytes(), zlib.crc32(sums.tobytes(), before))
