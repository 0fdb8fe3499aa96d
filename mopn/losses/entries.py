"""Entries of the labels' own outputs, and other functions of arrays, in the forms that NumPy computes fastest.

Losses are computed thousands of times, on few rows too, where each call of a function of NumPy counts.
"""

from __future__ import annotations

import numpy as np

__all__ = ["at", "either", "own_entries", "put", "rowwise_inner"]


def own_entries(O: np.ndarray, y: np.ndarray) -> np.ndarray:  # noqa: E741
    """Return the places (n,), in flat O', of the entries o_iy of the labels y (n,)."""
    return np.multiply(y, len(y), dtype=np.intp) + np.arange(len(y))


def at(own: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the entries a_iy (n,) of A (n, m)."""
    return A.T.reshape(-1)[own]


def put(own: np.ndarray, A: np.ndarray, values: np.ndarray | float) -> np.ndarray:
    """Return A (n, m), which may be changed, with a number, or numbers (n,), as the entries a_iy."""
    # One index is several times as fast as two. Where outputs are contiguous, as they mostly are, this is no copy.
    flat = A.T.reshape(-1)
    flat[own] = values
    return flat.reshape(A.shape[::-1]).T


def either(mask: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A where a mask is true, and B elsewhere; finite numbers.

    ``np.where`` takes several times as long where masks are irregular, as it branches on every entry.
    """
    return A * mask + B * ~mask


def rowwise_inner(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return <a_i, b_i> (n,) of the rows of two arrays."""
    return np.einsum("ic,ic->i", A, B)
