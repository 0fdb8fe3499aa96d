"""When to stop looking for a better score."""

from __future__ import annotations

import math

from mopn.solvers import Result

__all__ = ["EarlyStopping"]


class EarlyStopping:
    """The scores of a series of networks, the best of them, and how long ago that was.

    An empty network is the best one only as long as there is no other.
    """

    def __init__(self, patience: int | None) -> None:
        self.patience = math.inf if patience is None else patience
        self.scores: list[float] = []
        self.best: Result | None = None
        self.best_index = 0

    def add(self, result: Result, score: float) -> None:
        """Take the next network's score, the larger the better."""
        self.scores.append(score)
        if self.best is None or len(self.best.basis) == 0 or score > self.scores[self.best_index]:
            self.best, self.best_index = result, len(self.scores) - 1

    @property
    def is_over(self) -> bool:
        """Whether as many networks as patience allows have not been better."""
        return len(self.scores) - 1 - self.best_index >= self.patience
