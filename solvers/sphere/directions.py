"""Groups of unit vectors that point nearly the same way, up to sign."""

from __future__ import annotations

import numpy as np

# Unit vectors whose |cosine| is at least this count as one: as starts, and as maxima.
_SAME_DIRECTION, SAME_MAXIMUM = 0.98, 0.999
# Pairs whose cosines are computed at a time.
_PAIRS = 1 << 20


def group_leaders(H: np.ndarray, order: np.ndarray, cosine: float) -> np.ndarray:
    """Return for every row of H (k, d) the index of the leader of its group.

    In the given order, a row without a group leads a new one, which takes all rows without a group whose |cosine| with
    the leader is at least ``cosine``.
    """
    leader = np.full(len(H), -1)
    # The cosines of all pairs may not fit in memory.
    for rows in np.array_split(order, max(1, len(H) * len(H) // _PAIRS)):
        for r, close in zip(rows, np.abs(H[rows] @ H.T) >= cosine, strict=True):
            if leader[r] < 0:
                leader[close & (leader < 0)] = r
                leader[r] = r
    return leader


def distinct(H: np.ndarray, values: np.ndarray, cosine: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Sort by decreasing value, and drop vectors whose |cosine| with a better one is at least 0.98, or ``cosine``."""
    order = np.argsort(-values, kind="stable")
    kept = order[group_leaders(H, order, _SAME_DIRECTION if cosine is None else cosine)[order] == order]
    return H[kept], values[kept]
