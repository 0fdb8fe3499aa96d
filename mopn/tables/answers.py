"""The distributions of a model's answers on its training data: probabilities, or predicted numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mopn.tables.distribution import shares_at
from mopn.tables.quantiles import Quantiles

# Knots of each answer, at equal ranks: as many as a column of numbers has by default.
_ANSWER_KNOTS = 33
# Bits of an answer that are kept: the same row has other rounding errors in a fit, in a prediction and on a cluster.
_KEPT_BITS = 40
# Largest difference of equal answers, relative to their size: 16 units in the last of the kept bits.
ANSWER_ROUNDING = 2.0**-36


@dataclass(frozen=True, eq=False)
class AnswerDistribution:
    """The distributions of the c answers of a model on its training data.

    Shares up to a knot are exact; nothing is known between two knots.
    """

    knots: tuple[np.ndarray, ...]  # (q_j,), ascending values of each answer
    below: tuple[np.ndarray, ...]  # (q_j,), the share of the rows whose answer is less than each knot
    up_to: tuple[np.ndarray, ...]  # (q_j,), the share of the rows whose answer is at most each knot
    means: np.ndarray  # (c,), the mean of each answer

    @classmethod
    def of(cls, answers: Sequence[Quantiles]) -> AnswerDistribution:
        """Return the distributions of answers at some of their values."""
        knots: list[np.ndarray] = []
        below: list[np.ndarray] = []
        up_to: list[np.ndarray] = []
        for quantiles in answers:
            places = _places_of_knots(quantiles)
            below_knots, up_to_knots = shares_at(quantiles, places)
            knots.append(quantiles.values[places])
            below.append(below_knots)
            up_to.append(up_to_knots)
        means = [np.average(quantiles.values, weights=quantiles.weights) for quantiles in answers]
        return cls(tuple(knots), tuple(below), tuple(up_to), np.array(means))


def rounded_answers(answers: np.ndarray) -> np.ndarray:
    """Return answers (n, c) with the bits that are kept of them."""
    mantissas, exponents = np.frexp(answers)
    return np.ldexp(np.rint(np.ldexp(mantissas, _KEPT_BITS)), exponents - _KEPT_BITS)


def _places_of_knots(quantiles: Quantiles) -> np.ndarray:
    """Return which values of a distribution become knots: all if they are few, else some at equal ranks."""
    count = len(quantiles.values)
    if count <= _ANSWER_KNOTS:
        return np.arange(count)
    wanted = np.linspace(0.0, 1.0, _ANSWER_KNOTS)
    return np.unique(np.searchsorted(quantiles.mid_ranks, wanted).clip(max=count - 1))
