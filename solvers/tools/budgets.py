"""Limits of a call: seconds until a deadline, operations of a proof, failure probability of random proofs."""

from __future__ import annotations

import math
import time

import numpy as np

# The largest probability that any proof from random starts is false, in all of a chain of runs.
FAILURE = 1e-9


class Deadline:
    """The end of the seconds that a call may take: made where the call begins, and passed to all of its steps."""

    def __init__(self, seconds: float | None) -> None:
        self._end = math.inf if seconds is None else time.perf_counter() + seconds

    @property
    def left(self) -> float:
        """Seconds until the end, at least 0."""
        return max(self._end - time.perf_counter(), 0.0)

    @property
    def is_over(self) -> bool:
        return self.left == 0.0

    def share(self, part: float) -> Deadline:
        """Return the deadline of a step that may take a part of the seconds left."""
        return Deadline(part * self.left)


class Budget:
    """Operations, roughly, and seconds left to a proof; a proof that only operations limit repeats exactly."""

    def __init__(self, work: float = math.inf, seconds: float = math.inf) -> None:
        self.work = work
        self.spent = 0.0
        self._end = time.perf_counter() + seconds

    @property
    def seconds(self) -> float:
        """Seconds that are left; negative when they are over."""
        return self._end - time.perf_counter()

    @property
    def out_of_time(self) -> bool:
        return self.seconds <= 0.0

    def affords(self, work: float) -> bool:
        return work <= self.work - self.spent and not self.out_of_time

    def part(self, work: float) -> Budget:
        return Budget(min(work, self.work - self.spent), self.seconds)

    def spend(self, work: float) -> None:
        """Count operations as spent."""
        self.spent += work


class FailureBudget:
    """The budget of failure of a run, which every random proof spends from.

    Proof n may fail with a probability of FAILURE / (n (n + 1)); these add up to less than FAILURE. The probability is
    over the random starts, which must be unknown to anyone who chose the data or saw earlier proofs. So the starts come
    from the entropy of the operating system, unless the user gives a seed.
    """

    def __init__(self, spent: float = 0.0) -> None:
        # The number of random proofs of the run, and of the runs that it continues.
        self.proofs = round(spent / (FAILURE - spent))
        # Whether the run itself has random proofs, and the seed of their starts that the user gave.
        self.used = False
        self.seed: int | None = None

    @property
    def failure(self) -> float:
        """The largest probability that a proof of this run, or before it, is false; 0 without random proofs."""
        return FAILURE * self.proofs / (self.proofs + 1)

    @property
    def next(self) -> float:
        """The probability with which the next proof may fail."""
        return FAILURE / ((self.proofs + 1) * (self.proofs + 2))

    def draw(self, seed: int | None) -> np.random.Generator:
        """Spend ``next``; return a generator for the starts, which are new for every proof of the chain."""
        self.proofs += 1
        self.used = True
        self.seed = seed
        return np.random.default_rng(None if seed is None else (seed, self.proofs))
