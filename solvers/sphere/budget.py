"""The budget of a proof, which all of its layers spend from."""

from __future__ import annotations

import math
import time


class Budget:
    """The operations of decompositions, roughly, and the seconds that are left to a proof.

    A proof that operations alone limit ends at the same place in every run.
    """

    def __init__(self, work: float = math.inf, seconds: float = math.inf) -> None:
        self.work, self.spent = work, 0.0
        self._end = time.perf_counter() + seconds

    @property
    def seconds(self) -> float:
        """Seconds that are left; negative when they are over."""
        return self._end - time.perf_counter()

    @property
    def out_of_time(self) -> bool:
        """Whether no seconds are left."""
        return self.seconds <= 0.0

    def affords(self, work: float) -> bool:
        """Whether so many operations are left, and any time."""
        return work <= self.work - self.spent and not self.out_of_time

    def part(self, work: float) -> Budget:
        """Return a budget of at most so many of the operations that are left."""
        return Budget(min(work, self.work - self.spent), self.seconds)

    def spend(self, work: float) -> None:
        """Take off so many operations."""
        self.spent += work
