"""Columns as features: functions of numbers on a few knots, and indicators of categories and of missing values.

A number x gives its standardised self and sqrt(2) cos(pi k u) / k^s for k = 1, ..., K, where u is its rank in [0, 1]
among the training data: the eigenfunctions of smoothing on [0, 1] with their decay, so that a penalty on weights asks
for smooth functions. All are interpolated linearly between knots, and constant beyond the outer ones. A unit of a
polynomial network is then the square of an additive model (g_1(x_1) + ... + g_c(x_c))^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mopn.data.cells import TRUTHS
from mopn.data.designs import rows_at_once
from mopn.data.rounding import nearest_equal
from mopn.solvers.tools.decorators import cached_property
from mopn.tables.texts import own_numbers


@dataclass(frozen=True, eq=False)
class NumberColumns:
    """The features of c columns of numbers: functions by their values at knots, then indicators of missing ones."""

    knots: np.ndarray  # (c, q), ascending; behind the last one inf
    functions: np.ndarray  # (c, q, w), the values at the knots
    widths: np.ndarray  # (c,), the number of functions of each column, at most w
    missing: np.ndarray  # (c,), whether numbers were missing in the training data

    @classmethod
    def of(
        cls, knots: Sequence[np.ndarray], functions: Sequence[np.ndarray], missing: Sequence[bool] | np.ndarray
    ) -> NumberColumns:
        """Return the columns of some knots (q_j,), each at least one, and values (q_j, w_j) of functions at them."""
        shape = len(knots), max(map(len, knots), default=0), max((f.shape[1] for f in functions), default=0)
        padded, values = np.full(shape[:2], np.inf), np.zeros(shape)
        for j, (t, f) in enumerate(zip(knots, functions, strict=True)):
            padded[j, : len(t)], values[j, : len(t), : f.shape[1]] = t, f
        widths = np.array([f.shape[1] for f in functions], np.intp)
        return cls(padded, values, widths, np.array(missing, bool))

    @property
    def parts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The knots (q_j,) of every column, and the values (q_j, w_j) of its functions at them."""
        counts = np.isfinite(self.knots).sum(axis=1)
        columns = zip(self.knots, self.functions, counts, self.widths, strict=True)
        return [(t[:q], f[:q, :w]) for t, f, q, w in columns]

    @cached_property
    def used(self) -> np.ndarray:
        """Whether a column has a function, (c, w)."""
        return np.arange(self.functions.shape[2]) < self.widths[:, None]

    @cached_property
    def _starts(self) -> np.ndarray:
        """The knots (c, q - 2) at which the second and later segments begin; behind them inf."""
        inner, segments = self.knots[:, 1:-1], np.isfinite(self.knots).sum(axis=1, keepdims=True) - 1
        return np.where(np.arange(1, inner.shape[1] + 1) < segments, inner, np.inf)

    @cached_property
    def segments(self) -> tuple[np.ndarray, ...]:
        """Of the segments that begin at each of the (c q) knots: one over the length, and the changes of functions."""
        with np.errstate(invalid="ignore", over="ignore"):
            slopes = 1.0 / np.diff(self.knots, axis=1, append=np.inf)
        changes = np.diff(self.functions, axis=1, append=0.0)
        slopes = np.nan_to_num(slopes.ravel(), nan=0.0)  # there is no segment; tiny segments are steps
        return slopes, changes.reshape(self.knots.size, changes.shape[2])

    @cached_property
    def _first_knots(self) -> np.ndarray:
        """The index of the first knot of every column among all knots."""
        return np.arange(0, self.knots.size, max(self.knots.shape[1], 1))

    @cached_property
    def _features(self) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the functions among all (c w), and the columns with an indicator of missing numbers."""
        return np.flatnonzero(self.used), np.flatnonzero(self.missing)

    @property
    def owners(self) -> np.ndarray:
        """The column of every feature."""
        return np.append(np.nonzero(self.used)[0], self._features[1])

    def encode(self, X: np.ndarray) -> np.ndarray:
        """Return the features of numbers (n, c), NaN where they are missing."""
        (used, with_gaps), missing = self._features, np.isnan(X)
        out = np.empty((len(X), len(used) + len(with_gaps)))
        out[:, len(used) :] = missing[:, with_gaps]
        step, any_missing = rows_at_once(1 + self.knots.size), missing.any()
        for first in range(0, len(X), step):
            rows = slice(first, first + step)
            values = self._values(X[rows])
            if any_missing:
                values[missing[rows]] = 0.0
            values.reshape(len(values), -1).take(used, axis=1, out=out[rows, : len(used)], mode="clip")
        return out

    def _values(self, X: np.ndarray) -> np.ndarray:
        """Return the functions (n, c, w) of numbers (n, c)."""
        slopes, changes = self.segments
        segments = (X[..., None] >= self._starts).sum(axis=-1)
        segments += self._first_knots
        with np.errstate(over="ignore"):
            part = (X - self.knots.take(segments)) * slopes.take(segments)
        values = changes.take(segments, axis=0)
        values *= np.minimum(np.maximum(part, 0.0), 1.0)[..., None]
        values += self.functions.reshape(changes.shape).take(segments, axis=0)
        return values


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """The features of a column of categories: indicators of each, of the rare ones together, and of missing ones.

    Of two features only the last is kept. A category that is unknown has the means of the training data.
    """

    categories: tuple[str, ...]
    rare: tuple[str, ...]  # they have one feature together
    means: np.ndarray  # (w,), of the features in the training data
    missing: bool  # whether categories were missing in the training data

    @cached_property
    def known(self) -> dict[str | None, int]:
        """The index of the feature of every category and of equal booleans; None is a missing one."""
        count = len(self.categories)
        codes: dict[str | None, int] = {category: i for i, category in enumerate(self.categories)}
        codes |= dict.fromkeys(self.rare, count)
        of_truths = {TRUTHS[category]: code for category, code in codes.items() if category in TRUTHS}
        if len(of_truths) == len(codes):  # booleans, which other programs write in other words
            codes |= {text: of_truths[truth] for text, truth in TRUTHS.items() if truth in of_truths}
        return codes | {None: count + bool(self.rare) if self.missing else -1}

    def codes(self, values: Sequence[str | None] | np.ndarray) -> np.ndarray:
        """Return the index (n,) of the feature that is 1 for each category, -1 for unknown ones.

        Numbers that equal a category up to rounding are this category.
        """
        find = self.known.get
        codes = np.array([find(value, -1) for value in values], np.intp)
        known, of_known = self._numbers
        unknown = np.flatnonzero(codes < 0).tolist()
        if len(known) and unknown:
            numbers = own_numbers({values[i] for i in unknown})
            at = nearest_equal(np.array(list(numbers.values())), known)
            near: dict[str | None, int] = {text: of_known[k] for text, k in zip(numbers, at, strict=True) if k >= 0}
            codes[unknown] = [near.get(values[i], -1) for i in unknown]
        return codes

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """The categories that are numbers, ascending, and their codes."""
        numbers = own_numbers(self.known)
        order = sorted(numbers, key=lambda text: numbers[text])
        return np.array([numbers[text] for text in order]), np.array([self.known[text] for text in order], np.intp)

    @property
    def count(self) -> int:
        """Number of codes; the first ones have no feature if there are fewer features."""
        return len(self.categories) + bool(self.rare) + self.missing

    def names(self, column: str) -> list[str]:
        """Return the names of the features of a column."""
        names = [f"{column} = {category}" for category in self.categories]
        names += [f"{column} is a rare category"] * bool(self.rare) + [f"{column} is missing"] * self.missing
        return names[len(names) - len(self.means) :]

    @cached_property
    def table(self) -> np.ndarray:
        """The features of every code, with code -1 last."""
        return np.vstack([np.eye(self.count)[:, self.count - len(self.means) :], self.means])

    @cached_property
    def sparse_table(self) -> sparse.csr_matrix:
        """The same, sparse."""
        return sparse.csr_matrix(self.table)
