"""What is known of a table before it is encoded: quantiles, means, levels and gaps of columns, which blocks add up."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from mopn.data.values import NOTHING, truths
from mopn.solvers.tools.checks import shown
from mopn.tables.encoding import level_texts
from mopn.tables.quantiles import Quantiles
from mopn.tables.reading import Table
from mopn.tables.sparse_column import SparseColumn

__all__ = ["NOT_HASHED", "LevelSummary", "NumberSummary", "TableSummary", "summarise"]

# Whole numbers from here on may be equal in floating point.
_INEXACT = 2.0**53
# More levels, rare ones included, are names of rows rather than categories.
_MOST_LEVELS = 50_000
NOT_HASHED = (
    "Levels are not hashed: drop the column, merge levels, or give indicators of them as a sparse matrix to "
    "MultiOutputFMClassifier or MultiOutputFMRegressor"
)


@dataclass(frozen=True)
class Moments:
    """The weight, the mean and the sum of squared deviations of numbers divided by 2^exponent, which are at most 1.

    Those of two parts are merged as by Chan, Golub and LeVeque (The American Statistician, 1983).
    """

    weight: float
    exponent: int
    mean: float
    squares: float

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray) -> Moments:
        """Return the moments of numbers with weights; none at all have the weight 0."""
        exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
        scaled, weight = np.ldexp(values, -exponent), float(weights.sum())
        mean = float(weights @ scaled) / (weight or 1.0)
        return cls(weight, exponent, mean, float(weights @ (scaled - mean) ** 2))

    def __add__(self, other: Moments) -> Moments:
        if not self.weight or not other.weight:
            return self if self.weight else other
        exponent, weight = max(self.exponent, other.exponent), self.weight + other.weight
        a, b = self._scaled(exponent), other._scaled(exponent)
        step, part = b.mean - a.mean, b.weight / weight
        return Moments(weight, exponent, a.mean + part * step, a.squares + b.squares + a.weight * part * step**2)

    def _scaled(self, exponent: int) -> Moments:
        shift = self.exponent - exponent
        return replace(self, mean=float(np.ldexp(self.mean, shift)), squares=float(np.ldexp(self.squares, 2 * shift)))

    def centered(self, values: np.ndarray) -> np.ndarray:
        """Return values minus the mean, divided by 2^exponent."""
        return np.ldexp(values, -self.exponent) - self.mean

    @property
    def deviation(self) -> float:
        """The standard deviation, divided by 2^exponent."""
        return float(np.sqrt(self.squares / self.weight))


@dataclass(frozen=True)
class NumberSummary:
    """A column of numbers: quantiles, moments, the weight of the rows without one, and whether it came sparse."""

    quantiles: Quantiles
    moments: Moments
    missing: float
    sparse: bool

    @property
    def is_empty(self) -> bool:
        """Whether no row has a number."""
        return not len(self.quantiles.values)

    def __add__(self, other: NumberSummary) -> NumberSummary:
        return NumberSummary(
            self.quantiles + other.quantiles,
            self.moments + other.moments,
            self.missing + other.missing,
            self.sparse or other.sparse,
        )

    def pruned(self) -> NumberSummary:
        """Return a summary of bounded size."""
        return replace(self, quantiles=self.quantiles.pruned())


@dataclass(frozen=True)
class LevelSummary:
    """A column of levels: these, sorted, their weights, and the weight of the rows without one."""

    levels: np.ndarray
    weights: np.ndarray
    missing: float

    @property
    def is_empty(self) -> bool:
        """Whether no row has a level."""
        return not len(self.levels)

    def __add__(self, other: LevelSummary) -> LevelSummary:
        levels, group = np.unique(np.append(self.levels, other.levels), return_inverse=True)
        weights = np.bincount(group, np.append(self.weights, other.weights), len(levels))
        return LevelSummary(levels, weights, self.missing + other.missing)

    def pruned(self) -> LevelSummary:
        """Return this; the number of levels is bounded."""
        return self


Column = NumberSummary | LevelSummary


@dataclass(frozen=True)
class TableSummary:
    """The columns of a table, or of some of its rows.

    Attributes
    ----------
    names : tuple of str
    named : bool
        Whether the names are the caller's; blocks with names are then merged by name.
    n : int
        Number of rows of positive weight.
    columns : tuple of NumberSummary or LevelSummary
    kinds : tuple of str
        As of a ``Table``.
    """

    names: tuple[str, ...]
    named: bool
    n: int
    columns: tuple[Column, ...]
    kinds: tuple[str, ...]

    def __add__(self, other: TableSummary) -> TableSummary:
        """Return the summary of the rows of both, of bounded size.

        Raises
        ------
        ValueError
            If they have other columns, or one has numbers here and levels there, or too many levels.
        """
        order = self._order(other)
        both = zip(self.names, self.columns, (other.columns[j] for j in order), strict=True)
        columns = tuple(_merged(name, a, b).pruned() for name, a, b in both)
        found = zip(self.names, self.kinds, (other.kinds[j] for j in order), columns, strict=True)
        return TableSummary(self.names, self.named, self.n + other.n, columns, tuple(_kind(*each) for each in found))

    def pruned(self) -> TableSummary:
        """Return a summary of bounded size."""
        return replace(self, columns=tuple(column.pruned() for column in self.columns))

    def _order(self, other: TableSummary) -> list[int]:
        """Return where the columns are in another block."""
        if self.named and other.named:
            lacking, more = (sorted(set(a) - set(b)) for a, b in ((self.names, other.names), (other.names, self.names)))
            if lacking or more:
                raise ValueError(
                    f"the blocks of X have different columns: {shown([*lacking, *more])} are not in all of them"
                )
            return [other.names.index(name) for name in self.names]
        if len(self.names) != len(other.names):
            raise ValueError(f"the blocks of X have {len(self.names)} and {len(other.names)} columns")
        return list(range(len(self.names)))


def summarise(table: Table, weights: np.ndarray | None, levels: Collection[str | int]) -> TableSummary:
    """Return the summary of a table.

    Parameters
    ----------
    table : Table
    weights : ndarray of shape (n,), optional
        A weight of 2 equals a repeated row, and one of 0 a missing one.
    levels : collection of str or int
        Names or indices of columns of numbers that are levels.

    Raises
    ------
    ValueError
        For unknown names in ``levels``, and for columns of too many levels.
    """
    declared = _indices(table, levels)
    if weights is None:
        weights = np.ones(table.n)
    elif not weights.all():
        present = np.flatnonzero(weights)
        table, weights = table.rows(present), weights[present]
    columns = tuple(
        _numbers(values, weights)
        if values.dtype.kind == "f" and j not in declared
        else _levels(_texts(values, table.names[j]), weights, table.names[j])
        for j, values in enumerate(table.columns)
    )
    return TableSummary(table.names, table.named, table.n, columns, table.kinds)


def _texts(values: np.ndarray | SparseColumn, name: str) -> np.ndarray:
    if values.dtype.kind != "f":
        return np.asarray(values)
    if (np.abs(np.asarray(values)) >= _INEXACT).any():
        raise ValueError(
            f"column {name!r} of X has codes of levels from 2**53 on, which numbers do not tell apart; make texts of "
            "them"
        )
    return level_texts(values)


def _indices(table: Table, levels: Collection[str | int]) -> set[int]:
    at: dict[str | int, int] = {name: j for j, name in enumerate(table.names)}
    at |= {j: j for j in range(len(table.names))}
    unknown = [key for key in levels if key not in at]
    if unknown:
        raise ValueError(f"levels names the column {shown(unknown[0])}, which X has not; it has {list(table.names)}")
    return {at[key] for key in levels}


def _numbers(x: np.ndarray | SparseColumn, weights: np.ndarray) -> NumberSummary:
    if isinstance(x, SparseColumn):
        return replace(_numbers(*x.weighted(weights)), sparse=True)
    missing = np.isnan(x)
    gone = float(weights[missing].sum())
    quantiles = Quantiles.of(x[~missing], weights[~missing]) if gone else Quantiles.of(x, weights)
    return NumberSummary(quantiles, Moments.of(quantiles.values, quantiles.weights), gone, False)


def _levels(texts: np.ndarray, weights: np.ndarray, name: str) -> LevelSummary:
    at: dict[str | None, int] = {None: 0}
    codes = np.array([at.setdefault(text, len(at)) for text in texts.tolist()], np.intp)
    _check_count(len(at) - 1, name)
    sums = np.bincount(codes, weights, len(at))
    levels = np.array([text for text in at if text is not None], np.str_)
    order = np.argsort(levels)
    return LevelSummary(levels[order], sums[1:][order], float(sums[0]))


def _merged(name: str, a: Column, b: Column) -> Column:
    """Return the summary of a column of two blocks; one that is empty takes the kind of the other."""
    if isinstance(a, NumberSummary) and isinstance(b, NumberSummary):
        return a + b
    if isinstance(a, LevelSummary) and isinstance(b, LevelSummary):
        both = a + b
        _check_count(len(both.levels), name)
        return both
    for full, other in ((a, b), (b, a)):
        if other.is_empty:
            return replace(full, missing=full.missing + other.missing)
    truth = [_as_truths(column) for column in (a, b)]
    if truth[0] is not None and truth[1] is not None:
        return truth[0] + truth[1]
    level = next(str(column.levels[0]) for column in (a, b) if isinstance(column, LevelSummary))
    raise ValueError(
        f"column {name!r} of X holds numbers in some blocks and levels, such as {level!r}, in others; give it one "
        f"type, or name it in levels=[{name!r}]"
    )


def _as_truths(column: Column) -> LevelSummary | None:
    """Return a column of booleans, or of 0 and 1, as one of booleans; None for any other."""
    if isinstance(column, NumberSummary):
        column = LevelSummary(level_texts(column.quantiles.values), column.quantiles.weights, column.missing)
    truth = truths(column.levels)
    if truth is None:
        return None
    found, group = np.unique(truth, return_inverse=True)
    levels = np.array([str(bool(x)) for x in found], np.str_)
    return LevelSummary(levels, np.bincount(group, column.weights, len(levels)), column.missing)


def _kind(name: str, a: str, b: str, column: Column) -> str:
    """Return what two blocks of a column hold, if they are the same, or both levels."""
    if isinstance(column, LevelSummary) or NOTHING in (a, b) or a == b:
        return b if a == NOTHING else a
    raise ValueError(f"column {name!r} of X holds {a} in some blocks and {b} in others; give it one type")


def _check_count(count: int, name: str) -> None:
    if count > _MOST_LEVELS:
        raise ValueError(f"column {name!r} of X has more than {_MOST_LEVELS} levels. {NOT_HASHED}")
