"""Groups of unit vectors that point nearly the same way, up to sign."""

from __future__ import annotations

import numpy as np

__all__ = ["leaders"]


def leaders(H: np.ndarray, order: np.ndarray, cosine: float) -> np.ndarray:
    """Return for every row of H (k, d) the row that leads its group; leaders lead themselves.

    In the given order, a row that no group has taken leads one: of all rows left within ``cosine`` of it.
    """
    close = np.abs(H @ H.T) >= cosine
    leader = np.full(len(H), -1)
    for r in order:
        if leader[r] < 0:
            leader[close[r] & (leader < 0)] = r
            leader[r] = r
    return leader
