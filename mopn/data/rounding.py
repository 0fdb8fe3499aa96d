"""Numbers that are equal up to rounding, and different values that became one number."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from mopn.solvers.numerics.precision import EPS

# Largest difference of numbers that are equal up to rounding, relative to their size: 16 units in the last place, the
# error of a sum of some 30 numbers.
_ROUNDING = 16 * EPS
# Whole numbers from here on may be equal in floating point.
INEXACT = 2.0 / EPS
# Values of a column that are kept to find other values that become the same number in later blocks.
_MOST_WRITTEN = 1000

# -- equal up to rounding ----------------------------------------------------------------------------------------------


def group_starts(values: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """Return which of ascending numbers (q,) begin a group of equal ones, up to rounding; None if all are different.

    Numbers of a group differ by at most 2^-48 of the larger one, or of the median size of all numbers other than 0: a
    result near 0 has the rounding error of the numbers from which it was computed. Whole numbers are exact.
    """
    sizes = np.abs(values)
    if len(values) < 2 or np.array_equal(values, np.rint(values)):
        return None
    with np.errstate(over="ignore", under="ignore"):
        steps = np.diff(values)
        tolerance = sizes * _ROUNDING
    if steps.min() > tolerance.max():
        return None
    typical = _median(tolerance[sizes > 0.0], weights[sizes > 0.0])
    tolerance = np.maximum(tolerance, typical)
    near = np.flatnonzero(steps <= np.maximum(tolerance[1:], tolerance[:-1]))
    if not len(near):
        return None
    first = np.ones(len(values), bool)
    start = -1
    for i in map(int, near + 1):
        if first[i - 1]:
            start = i - 1
        first[i] = values[i] - values[start] > max(tolerance[i], tolerance[start])
    return first


def rounded_levels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels among ascending numbers (q,), and the index (q,) of each one's level.

    Numbers that are equal up to rounding are one level: the one that is written with the fewest digits.
    """
    distinct, index = np.unique(values, return_inverse=True)
    starts = group_starts(distinct, np.ones(len(distinct)))
    if starts is None:
        return distinct, index
    group = np.cumsum(starts) - 1
    shortest: dict[int, float] = {}
    for number, its_group in zip(distinct.tolist(), group.tolist(), strict=True):
        shortest[its_group] = min(shortest.get(its_group, number), number, key=lambda x: len(repr(x)))
    return np.array(list(shortest.values())), group[index]


def nearest_equal(x: np.ndarray, known: np.ndarray, rounding: float = _ROUNDING) -> np.ndarray:
    """Return the index of the ascending known number that equals each of x up to rounding; -1 if there is none.

    ``rounding`` is relative to the size of the numbers.
    """
    if not len(known):
        return np.full(len(x), -1)
    above = np.searchsorted(known, x).clip(max=len(known) - 1)
    below = np.maximum(above - 1, 0)
    at = np.where(np.abs(x - known[below]) < np.abs(known[above] - x), below, above)
    if np.array_equal(known, np.rint(known)) and np.array_equal(x, np.rint(x)):
        return np.where(known[at] == x, at, -1)
    sizes = np.abs(known)
    nonzero = sizes[sizes > 0.0]
    typical = _median(nonzero, np.ones(len(nonzero))) if len(nonzero) else 0.0
    tolerance = rounding * np.maximum(np.maximum(np.abs(x), sizes[at]), typical)
    return np.where(np.abs(x - known[at]) <= tolerance, at, -1)


def _median(x: np.ndarray, weights: np.ndarray) -> float:
    """Return the smallest number that half of the weight does not exceed."""
    order = np.argsort(x, kind="stable")
    after = np.cumsum(weights[order])
    return float(x[order][np.searchsorted(after, 0.5 * after[-1])])


# -- different values that became one number ---------------------------------------------------------------------------

# Numbers, and how they were written: one or two texts.
Written = dict[float, tuple[str, ...]]


def number_text(number: float) -> str:
    """Return the text of a number as a category: an integer's, unless it may stand for several integers."""
    return str(int(number)) if number == int(number) and abs(number) < INEXACT else str(number)


def exact_text(cell: Any) -> str:
    """Return the text of a number of any type: the text of the double, if it stands for this number alone."""
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, int | np.integer):
        return str(int(cell))
    if isinstance(cell, np.generic):
        return str(cell)
    if abs(cell) >= INEXACT:
        return str(cell)
    text = number_text(float(cell))
    return text if Decimal(text) == cell else str(cell)


def written(exact: np.ndarray, numbers: np.ndarray) -> Written:
    """Return how at most 1000 numbers were written, first the numbers that stand for two different values."""
    present = ~np.isnan(numbers)
    cells = exact[present]
    index = np.array(list({cell: i for i, cell in enumerate(cells.tolist())}.values()), np.intp)
    if cells.dtype != object:
        index = np.unique(cells, return_index=True)[1]
    index = index[np.argsort(numbers[present][index], kind="stable")]
    distinct = numbers[present][index]
    twice = np.flatnonzero(np.diff(distinct) == 0.0)[:1]
    texts: dict[float, set[str]] = {}
    for i in [*twice, *(twice + 1), *range(min(len(index), _MOST_WRITTEN))]:
        texts.setdefault(float(distinct[i]), set()).add(exact_text(cells[index[i]]))
    return joined({number: tuple(those) for number, those in texts.items()}, {})


def joined(a: Written, b: Written) -> Written:
    """Return how the numbers of two parts were written, first the numbers that stand for two different values."""
    both = {number: tuple(sorted({*a.get(number, ()), *b.get(number, ())})[:2]) for number in a | b}
    order = sorted(both, key=lambda number: (-len(both[number]), number))
    return {number: both[number] for number in order[:_MOST_WRITTEN]}


def one_number(found: Written) -> tuple[str, ...] | None:
    """Return two different values that became one number, if there are some."""
    return next((texts for texts in found.values() if len(texts) > 1), None)
