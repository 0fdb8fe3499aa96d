"""Inner products without BLAS."""

from __future__ import annotations

import numpy as np


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return <a, b> of two vectors, computed by one thread.

    Idle BLAS threads busy-wait for some time, and slow down the threads of compiled loops that follow.
    """
    return float(np.einsum("i,i->", a, b))
