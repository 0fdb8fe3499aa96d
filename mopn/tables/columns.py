"""Columns as features: functions of numbers on a few knots, and indicators of categories and of missing values.

A number x gives its standardised self and sqrt(2) cos(pi k u) / k^s for k = 1, ..., K, where u is its rank in [0, 1]
among the training data: the eigenfunctions of smoothing on [0, 1] with their decay, so that a penalty on weights asks
for smooth functions. Columns on which the targets depend more finely have more of these, or a hat for each code, which
is a whole number that many rows share: a function that is 0 at all knots but the code. All are interpolated linearly
between knots, and constant beyond the outer ones. A unit of a polynomial network is then the square of an additive
model (g_1(x_1) + ... + g_c(x_c))^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
        widths = np.array([f.shape[1] for f in functions], np.intp)
        shape = (len(knots), max(map(len, knots), default=0))
        padded = np.full(shape, np.inf)
        values = np.zeros((*shape, widths.max(initial=0)))
        for j, (t, f) in enumerate(zip(knots, functions, strict=True)):
            padded[j, : len(t)] = t
            values[j, : len(t), : f.shape[1]] = f
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
    def _groups(self) -> list[tuple[Any, NumberColumns, Any]]:
        """The columns in groups of similar widths, each with their features: the widest would pad all others."""
        is_wide = self.widths > 2.0 * np.median(self.widths) if len(self.widths) else np.zeros(0, bool)
        if not is_wide.any():
            return [(slice(None), self, slice(0, int(self.widths.sum())))]
        owners = self.owners[: self.widths.sum()]
        groups: list[tuple[Any, NumberColumns, Any]] = []
        for is_member in (~is_wide, is_wide):
            columns = np.flatnonzero(is_member)
            parts = [self.parts[j] for j in columns]
            group = NumberColumns.of([t for t, _ in parts], [f for _, f in parts], self.missing[columns])
            groups.append((columns, group, np.flatnonzero(is_member[owners])))
        return groups

    @cached_property
    def _starts(self) -> np.ndarray:
        """The knots (c, q - 2) at which the second and later segments begin; behind them inf."""
        inner = self.knots[:, 1:-1]
        segments = np.isfinite(self.knots).sum(axis=1, keepdims=True) - 1
        return np.where(np.arange(1, inner.shape[1] + 1) < segments, inner, np.inf)

    @cached_property
    def segments(self) -> tuple[np.ndarray, ...]:
        """Reciprocal lengths (c q,) of the segments after each knot, and changes (c q, w) of the functions there."""
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
        used, with_indicator = self._features
        missing = np.isnan(X)
        out = np.empty((len(X), len(used) + len(with_indicator)))
        out[:, len(used) :] = missing[:, with_indicator]
        for columns, group, features in self._groups:
            group._encode_functions(X[:, columns], missing[:, columns], out, features)
        return out

    def _encode_functions(self, X: np.ndarray, missing: np.ndarray, out: np.ndarray, features: Any) -> None:
        """Set some features of ``out`` (n, d) to the functions of numbers (n, c)."""
        used = self._features[0]

        any_missing = missing.any()
        step = rows_at_once(1 + self.knots.size)
        for first in range(0, len(X), step):
            rows = slice(first, first + step)
            values = self._values(X[rows])
            if any_missing:
                values[missing[rows]] = 0.0
            out[rows, features] = values.reshape(len(values), -1).take(used, axis=1, mode="clip")

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


def hats_among(functions: np.ndarray) -> np.ndarray:
    """Return which functions (w,), by values (q, w) at knots, are hats: 0 at all knots but one."""
    is_hat = np.count_nonzero(functions, axis=0) == 1
    is_hat[:2] = False
    return is_hat


def features_of_codes(count: int) -> int:
    """Return the number of features of a column of categories with a number of codes.

    A single feature would be constant, and the first of two is one minus the other.
    """
    return count if count > 2 else max(count - 1, 0)


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """The features of a column of categories: indicators of each, of the rare ones together, and of missing ones.

    If there are two features, only the last one is kept. Unknown categories have the means of the training data.
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

        code_of_truth = {TRUTHS[category]: code for category, code in codes.items() if category in TRUTHS}
        if len(code_of_truth) == len(codes):  # booleans, which other programs write in other words
            codes |= {text: code_of_truth[truth] for text, truth in TRUTHS.items() if truth in code_of_truth}

        codes[None] = count + bool(self.rare) if self.missing else -1
        return codes

    def codes(self, values: Sequence[str | None] | np.ndarray) -> np.ndarray:
        """Return the index (n,) of the feature that is 1 for each category, -1 for unknown ones.

        Numbers that equal a category up to rounding are this category.
        """
        find = self.known.get
        codes = np.array([find(value, -1) for value in values], np.intp)
        known, known_codes = self._numbers
        unknown = np.flatnonzero(codes < 0).tolist()
        if len(known) and unknown:
            numbers = own_numbers({values[i] for i in unknown})
            nearest = nearest_equal(np.array(list(numbers.values())), known)
            near: dict[str | None, int] = {
                text: known_codes[k] for text, k in zip(numbers, nearest, strict=True) if k >= 0
            }
            codes[unknown] = [near.get(values[i], -1) for i in unknown]
        return codes

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """The categories that are numbers, ascending, and their codes."""
        numbers = own_numbers(self.known)
        order = sorted(numbers, key=lambda text: numbers[text])
        codes = np.array([self.known[text] for text in order], np.intp)
        return np.array([numbers[text] for text in order]), codes

    @property
    def count(self) -> int:
        """Number of codes; the first ones have no feature if there are fewer features."""
        return len(self.categories) + bool(self.rare) + self.missing

    @property
    def n_features(self) -> int:
        """Number of features."""
        return features_of_codes(self.count)

    def names(self, column: str) -> list[str]:
        """Return the names of the features of a column."""
        names = [f"{column} = {category}" for category in self.categories]
        if self.rare:
            names.append(f"{column} is a rare category")
        if self.missing:
            names.append(f"{column} is missing")
        return names[len(names) - len(self.means) :]

    @cached_property
    def table(self) -> np.ndarray:
        """The features of every code, with code -1 last."""
        indicators = np.eye(self.count)[:, self.count - len(self.means) :]
        return np.vstack([indicators, self.means])

    @cached_property
    def sparse_table(self) -> sparse.csr_matrix:
        """The same, sparse."""
        return sparse.csr_matrix(self.table)
