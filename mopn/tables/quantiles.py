"""Quantiles of a column: its distinct values and their weights, or few values with a bound on the error of ranks.

The summary of Greenwald and Khanna (Power-conserving computation of order-statistics over sensor networks, PODS 2004):
merging adds the errors, and so keeps them relative to the weight, and pruning to q values adds less than one part in q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Quantiles"]

# Values that are left after pruning, at most.
_MOST_VALUES = 8192
# Numbers that differ by less of their size are equal up to rounding: 16 units in the last place, the error of a sum of
# some 30 numbers.
_ROUNDING = 2.0**-48


@dataclass(frozen=True, eq=False)
class Quantiles:
    """A distribution on finitely many values, near that of the numbers it stands for.

    At every x, the weights of the numbers up to x and of the ``values`` up to x differ by at most ``error``, apart from
    the rounding of sums; and likewise below x. The smallest and the largest number are among the values.

    Attributes
    ----------
    values : ndarray of shape (q,)
        Ascending.
    weights : ndarray of shape (q,)
        Positive.
    error : float
        Zero if all distinct numbers are there.
    """

    values: np.ndarray
    weights: np.ndarray
    error: float = 0.0

    @classmethod
    def of(cls, x: np.ndarray, weights: np.ndarray) -> Quantiles:
        """Return the distribution of numbers (n,) with positive weights, without an error.

        It is equal to the last bit for numbers that have whole weights or are repeated.
        """
        values, group = np.unique(x, return_inverse=True)
        return cls(values, np.bincount(group, weights, len(values)))

    def __add__(self, other: Quantiles) -> Quantiles:
        """Return the distribution of all numbers of both."""
        both = Quantiles.of(np.append(self.values, other.values), np.append(self.weights, other.weights))
        return Quantiles(both.values, both.weights, self.error + other.error)

    def pruned(self) -> Quantiles:
        """Return a distribution on 8192 values at most; the error grows by less than the weight over 8190.

        Values whose mid-ranks lie in the same of equal intervals of length s become the one in their middle. Of two or
        more, the first and the last weigh together at most twice the distance of their mid-ranks, so that all of them
        weigh less than 2 s, and less than s lies on each side of their middle.
        """
        if len(self.values) <= _MOST_VALUES:
            return self
        after = np.cumsum(self.weights)
        before = after - self.weights
        group = ((before + 0.5 * self.weights) * ((_MOST_VALUES - 2) / after[-1])).astype(np.intp)
        group[0], group[-1] = -1, _MOST_VALUES
        first = np.flatnonzero(np.diff(group, prepend=-2))
        last = np.append(first[1:], len(group)) - 1
        low, high = before[first], after[last]
        middle = np.clip(np.searchsorted(after, 0.5 * (low + high)), first, last)
        error = np.maximum(before[middle] - low, high - after[middle]).max()
        return Quantiles(self.values[middle], np.add.reduceat(self.weights, first), self.error + float(error))

    def at(self, shares: list[float]) -> np.ndarray:
        """Return the quantiles at some shares of the weight, linear between neighbours.

        Of weights of at least 1 they are to the last bit what ``numpy.quantile`` returns for repeated numbers. Smaller
        weights, such as those that sum to 1, count as multiples of the least one.
        """
        total, eps = self.weights.sum(), np.finfo(float).eps
        one = max(min(1.0, self.weights.min()), eps * total)
        rank = (total - one) / one * np.asarray(shares)
        below, after = np.floor(rank), np.cumsum(self.weights)
        places = [np.searchsorted(after, (below + step) * one).clip(max=len(after) - 1) for step in (0.5, 1.5)]
        ends = self.values[np.stack(places, axis=1)]
        return np.array([np.quantile(pair, part) for pair, part in zip(ends, rank - below, strict=True)])

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        shares = self.weights / self.weights.sum()
        return float(np.sqrt(shares @ (self.values - shares @ self.values) ** 2))

    def rounded(self) -> Quantiles:
        """Return the distribution in which values that differ by rounding alone are the smallest of them.

        They differ by at most 2^-48 of the larger one, or of the median size of those that are not 0: what is computed
        as 0 or near 0 has the rounding of what it was computed of. Whole numbers are exact.
        """
        values = self.values
        sizes = np.abs(values)
        if len(values) < 2 or np.array_equal(values, np.rint(values)):
            return self
        with np.errstate(over="ignore", under="ignore"):
            steps, tolerance = np.diff(values), sizes * _ROUNDING
        if steps.min() > tolerance.max():
            return self
        typical = _median(tolerance[sizes > 0.0], self.weights[sizes > 0.0])
        tolerance = np.maximum(tolerance, typical)
        near = np.flatnonzero(steps <= np.maximum(tolerance[1:], tolerance[:-1]))
        if not len(near):
            return self
        first, start = np.ones(len(values), bool), -1
        for i in near + 1:
            if first[i - 1]:
                start = i - 1
            first[i] = values[i] - values[start] > max(tolerance[i], tolerance[start])
        return Quantiles(values[first], np.add.reduceat(self.weights, np.flatnonzero(first)), self.error)

    @property
    def mid_ranks(self) -> np.ndarray:
        """The ranks (q,) of the values, in (0, 1): the part below, and half of the part that is equal."""
        return (np.cumsum(self.weights) - 0.5 * self.weights) / self.weights.sum()


def _median(x: np.ndarray, weights: np.ndarray) -> float:
    """Return the smallest number that half of the weight does not exceed."""
    order = np.argsort(x, kind="stable")
    after = np.cumsum(weights[order])
    return float(x[order][np.searchsorted(after, 0.5 * after[-1])])
