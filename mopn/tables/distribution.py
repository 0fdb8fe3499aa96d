"""The distributions of the columns of the training data, as far as an encoding keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mopn.tables.columns import CategoryColumn, NumberColumns
from mopn.tables.quantiles import Quantiles

# Rounding error of shares, which are sums in numbers of single precision.
SHARE_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class TrainingDistribution:
    """The number of rows of the training data, and the distributions of its c columns of numbers.

    Shares up to a knot are exact; nothing is known between two knots. Shares of categories are in their columns:
    :func:`category_shares`.
    """

    n: int  # rows of positive weight
    missing: np.ndarray  # (c,), the share of rows without a number
    below: tuple[np.ndarray, ...]  # (q_j,), the share of the numbers that are less than each knot
    up_to: tuple[np.ndarray, ...]  # (q_j,), the share of the numbers that are at most each knot

    @classmethod
    def of(
        cls, n: int, columns: Iterable[tuple[Quantiles | None, float]], numbers: NumberColumns
    ) -> TrainingDistribution:
        """Return the distributions at the knots of columns, given the weight of the rows without a number, too.

        A column without a number has None.
        """
        missing: list[float] = []
        below: list[np.ndarray] = []
        up_to: list[np.ndarray] = []
        for (quantiles, weight_of_missing), (knots, _) in zip(columns, numbers.parts, strict=True):
            if quantiles is None:
                missing.append(1.0)
                below.append(np.zeros(len(knots)))
                up_to.append(np.zeros(len(knots)))
                continue
            distinct = quantiles.rounded()  # the knots are among these values
            total = float(distinct.weights.sum())
            missing.append(weight_of_missing / (total + weight_of_missing))
            below_knots, up_to_knots = shares_at(distinct, np.searchsorted(distinct.values, knots))
            below.append(below_knots)
            up_to.append(up_to_knots)
        return cls(n, np.array(missing, np.float64), tuple(below), tuple(up_to))


def shares_at(quantiles: Quantiles, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of a distribution below some of its values, given by their places, and up to them."""
    after = np.cumsum(quantiles.weights)
    total = float(after[-1])
    below = _single_precision((after - quantiles.weights)[places] / total)
    return below, _single_precision(after[places] / total)


def _single_precision(shares: np.ndarray) -> np.ndarray:
    """Return shares as numbers of single precision, which take half of the bytes in files."""
    return shares.clip(0.0, 1.0).astype(np.float32).astype(np.float64)


def category_shares(column: CategoryColumn) -> np.ndarray:
    """Return the share of the training rows that has each code of a column of categories."""
    return np.append(1.0 - column.means.sum(), column.means)[-column.count :].clip(0.0, 1.0)
