"""The probability with which random proofs may fail: one budget for a run and those that it continues."""

from __future__ import annotations

import numpy as np

# The largest probability that any proof from random starts is false, all those of a chain of runs together.
FAILURE = 1e-9


class FailureBudget:
    """The budget of failure of a run, which every random proof spends from.

    Proof n may fail with a probability of FAILURE / (n (n + 1)); these add up to less than FAILURE. They are over the
    starts of the proofs, which whoever chose the data, or saw earlier proofs, must not know: so the starts come from
    the entropy of the operating system, unless the user gives a seed.
    """

    proofs: int
    """Number of random proofs of the run and of those that it continues."""
    used: bool
    """Whether the run itself has random proofs."""
    seed: int | None
    """The seed of their starts that the user gave."""

    def __init__(self, spent: float = 0.0) -> None:
        self.proofs = round(spent / (FAILURE - spent))
        self.used, self.seed = False, None

    @property
    def failure(self) -> float:
        """The largest probability that any proof so far is false, in this run or before it; 0 without random ones."""
        return FAILURE * self.proofs / (self.proofs + 1)

    @property
    def next(self) -> float:
        """The probability with which the next proof may fail."""
        return FAILURE / ((self.proofs + 1) * (self.proofs + 2))

    def draw(self, seed: int | None) -> np.random.Generator:
        """Spend ``next``; return a generator for the starts, new ones for every proof of the chain."""
        self.proofs, self.used, self.seed = self.proofs + 1, True, seed
        return np.random.default_rng(None if seed is None else (seed, self.proofs))
