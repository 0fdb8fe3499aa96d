"""Groups of unit vectors that point nearly the same way, up to sign."""

from __future__ import annotations

import numpy as np

__all__ = ["group_leaders"]


def group_leaders(H: np.ndarray, order: np.ndarray, cosine: float) -> np.ndarray:
    """Return for every row of H (k, d) the index of the row that represents its group: the leader of the group.

    Rows are visited in the given order. A row without a group becomes the leader of a new one, which takes all rows
    without a group whose |cosine| with the leader is at least ``cosine``.
    """
    close = np.abs(H @ H.T) >= cosine
    leader = np.full(len(H), -1)
    for r in order:
        if leader[r] < 0:
            leader[close[r] & (leader < 0)] = r
            leader[r] = r
    return leader
