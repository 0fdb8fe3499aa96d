"""Ordinal regression by several binary problems: McRank as in section 6.5 of Blondel et al. (NIPS 2017).

Levels r_1 < ... < r_{m+1} have m outputs, output c for the event y <= r_c. (The paper has one more, for y <= r_{m+1},
which is certain.) The outputs are trained together, on shared units, but their probabilities need not increase with c.
Those of a sample that cross are sorted (rearrangement: Chernozhukov, Fernández-Val and Galichon, Econometrica, 2010).
Sorting increases no convex loss with respect to the true probabilities, and does not change the sum of the
probabilities, hence not the expectation of equally spaced levels.
"""

import numpy as np


def cumulative_targets(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """Return Y (n, n_levels - 1): 1 where the code (n,) of the level is at most the column's index, else -1."""
    return np.where(codes[:, None] <= np.arange(n_levels - 1), 1.0, -1.0)


def log_odds(Y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the log-odds (m,) of 1 in every column of Y, with half a sample added to each side."""
    total = float(len(Y)) if weights is None else float(weights.sum())
    ones = (Y > 0).sum(axis=0) if weights is None else weights @ (Y > 0)
    return np.log((ones + 0.5) / (total - ones + 0.5))


def level_probabilities(cumulative: np.ndarray) -> np.ndarray:
    """Return the probabilities of the levels (n, m + 1) from those of y <= r_c (n, m), which may cross."""
    ordered = np.sort(cumulative, axis=1)
    n = len(ordered)
    return np.diff(ordered, axis=1, prepend=np.zeros((n, 1)), append=np.ones((n, 1)))


def expected_level(cumulative: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return sum_c r_c p(y = r_c), the expectation of y (n,)."""
    with np.errstate(over="ignore"):
        gaps = np.diff(levels)
    if np.isfinite(gaps[0]) and np.all(gaps == gaps[0]):
        # By parts: the sum of the probabilities is enough, in any order, and quick.
        return levels[-1] - cumulative @ gaps
    return level_probabilities(cumulative) @ levels
