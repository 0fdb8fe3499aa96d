"""Ordinal regression by several binary problems: McRank as in section 6.5 of Blondel et al. (NIPS 2017).

Levels r_1 < ... < r_{m+1} make m outputs, output c for the question whether y <= r_c. (The paper has one more, for
y <= r_{m+1}, which is always so.) The outputs are trained at once, on shared units, but nothing makes their
probabilities grow with c: those of a sample that cross are put in order, which brings none of them further from the
truth and leaves their sum, hence the expectation of equally spaced levels, as it is (rearrangement: Chernozhukov,
Fernandez-Val and Galichon, Econometrica, 2010).
"""

from __future__ import annotations

import numpy as np

__all__ = ["cumulative_targets", "expected_level", "level_probabilities", "log_odds"]


def cumulative_targets(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """Return Y (n, n_levels - 1): 1 where the level's number (n,) is at most that of the column, and -1 elsewhere."""
    return np.where(codes[:, None] <= np.arange(n_levels - 1), 1.0, -1.0)


def log_odds(Y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the logarithms of the odds of 1 in every column of Y (m,), as if each side had half a sample more."""
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
    return level_probabilities(cumulative) @ levels
