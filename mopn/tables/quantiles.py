"""Distribution of a column: its distinct values and their weights, or a sample at equal ranks if there are many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mopn.data.rounding import group_starts
from mopn.solvers.numerics.precision import EPS

# Rows of a sample: 1 MiB per column and block. Every merge of blocks adds 1.5e-5 to the error of the ranks.
SAMPLE_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Quantiles:
    """A distribution on finitely many values, near the distribution of the numbers it stands for.

    Up to 2^16 values are exact. At every x, the weights of the numbers up to x and of the ``values`` up to x differ by
    at most ``error``, apart from the rounding of sums; and likewise below x. The smallest and the largest number are
    among the values. The error is 0 if all distinct numbers are there. For a sample of B blocks it is less than
    ``(1 + ceil(log2(B))) / 2^16`` of the total weight.
    """

    values: np.ndarray  # (q,), ascending
    weights: np.ndarray  # (q,), positive
    error: float = 0.0  # in the unit of weights

    @classmethod
    def of(cls, x: np.ndarray, weights: np.ndarray) -> Quantiles:
        """Return the distribution of numbers (n,) with positive weights; with whole weights exact to the last bit."""
        values, group = np.unique(x, return_inverse=True)
        return cls(values, np.bincount(group, weights, len(values)))

    def __add__(self, other: Quantiles) -> Quantiles:
        """Return the distribution of all numbers of both."""
        both = Quantiles.of(np.append(self.values, other.values), np.append(self.weights, other.weights))
        return Quantiles(both.values, both.weights, self.error + other.error)

    def sampled(self, most: int = SAMPLE_ROWS) -> Quantiles:
        """Return the distribution of ``most`` rows at equal ranks, if there are more; adds weight / ``most`` at most.

        A rank in the middle of each of ``most`` equal parts of the weight chooses a value, which gets the weight of the
        part: this counts the weight up to any x in whole parts, to the nearest. The first and the last choose the
        smallest and the largest number, which adds half a part at most.
        """
        if len(self.values) <= most:
            return self
        after = np.cumsum(self.weights)
        part = after[-1] / most
        rows = np.searchsorted(after, (np.arange(most) + 0.5) * part)
        rows[0] = 0
        rows[-1] = len(after) - 1
        values, counts = np.unique(self.values[rows], return_counts=True)
        return Quantiles(values, counts * part, self.error + float(part))

    def at(self, shares: list[float]) -> np.ndarray:
        """Return the quantiles at some shares of the weight, linear between neighbours.

        With weights of at least 1 they equal ``numpy.quantile`` of repeated numbers to the last bit. Smaller weights,
        such as shares that sum to 1, count as multiples of the least one.
        """
        total = self.weights.sum()
        one = max(min(1.0, self.weights.min()), EPS * total)
        rank = (total - one) / one * np.asarray(shares)
        below = np.floor(rank)
        after = np.cumsum(self.weights)
        places = [np.searchsorted(after, (below + step) * one).clip(max=len(after) - 1) for step in (0.5, 1.5)]
        neighbours = self.values[np.stack(places, axis=1)]
        return np.array([np.quantile(pair, part) for pair, part in zip(neighbours, rank - below, strict=True)])

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        shares = self.weights / self.weights.sum()
        return float(np.sqrt(shares @ (self.values - shares @ self.values) ** 2))

    def rounded(self) -> Quantiles:
        """Return the distribution in which values that differ by rounding alone are the smallest of them."""
        first = group_starts(self.values, self.weights)
        if first is None:
            return self
        return Quantiles(self.values[first], np.add.reduceat(self.weights, np.flatnonzero(first)), self.error)

    @property
    def mid_ranks(self) -> np.ndarray:
        """The ranks (q,) of the values, in (0, 1): the part below, and half of the part that is equal."""
        return (np.cumsum(self.weights) - 0.5 * self.weights) / self.weights.sum()
