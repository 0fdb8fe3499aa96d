"""Summaries of columns, which blocks add up: quantiles and means, or categories, and missing values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from mopn.data.cells import CATEGORIES, NOTHING, NUMBERS, TEXTS, truths
from mopn.data.rounding import INEXACT, Written, joined, written
from mopn.solvers.tools.checks import shown
from mopn.tables.encoding import category_texts
from mopn.tables.quantiles import Quantiles
from mopn.tables.reading import Table
from mopn.tables.texts import numbers_of, without_rounding

# Categories of a column, rare ones included; more are names of rows rather than categories.
MAX_CATEGORIES = 50_000
NOT_HASHED = (
    "Categories are not hashed: drop the column, merge categories, or give indicators of them as a sparse matrix to "
    "MultiOutputFMClassifier or MultiOutputFMRegressor"
)


@dataclass(frozen=True)
class NumberSummary:
    """A column of numbers: their distribution, and the weight of the rows without one."""

    quantiles: Quantiles
    missing: float
    text: str | None = None  # the first text, if the numbers were texts
    signs: frozenset[str] = frozenset()  # texts that stood for missing numbers
    written: Written = field(default_factory=dict)  # numbers that may stand for several values, and these values

    @property
    def is_empty(self) -> bool:
        """Whether no row has a number."""
        return not len(self.quantiles.values)

    def __add__(self, other: NumberSummary) -> NumberSummary:
        texts = [text for text in (self.text, other.text) if text is not None]
        return NumberSummary(
            self.quantiles + other.quantiles,
            self.missing + other.missing,
            min(texts, default=None),
            self.signs | other.signs,
            joined(self.written, other.written) if self.written or other.written else {},
        )


@dataclass(frozen=True)
class CategorySummary:
    """A column of categories: sorted, with their weights, the weight of missing ones, and whether declared."""

    categories: np.ndarray
    weights: np.ndarray
    missing: float
    declared: bool

    @property
    def is_empty(self) -> bool:
        """Whether no row has a category."""
        return not len(self.categories)

    def __add__(self, other: CategorySummary) -> CategorySummary:
        categories, group = np.unique(np.append(self.categories, other.categories), return_inverse=True)
        weights = np.bincount(group, np.append(self.weights, other.weights), len(categories))
        return CategorySummary(categories, weights, self.missing + other.missing, self.declared or other.declared)

    def as_numbers(self) -> NumberSummary | None:
        """Return the column as numbers; None if a category is no number, or they are declared as categories."""
        numbers = None if self.declared or self.is_empty else numbers_of(self.categories.tolist())
        if numbers is None:
            return None
        found = _number_summary(numbers, self.weights)
        missing = np.isnan(numbers)
        text = None if missing.all() else str(self.categories[~missing][0])
        signs = frozenset(self.categories[missing].tolist())
        ways = written(self.categories, numbers)
        return replace(found, missing=found.missing + self.missing, text=text, signs=signs, written=ways)

    def rounded(self) -> CategorySummary:
        """Return the categories in which numbers that differ by rounding alone are one."""
        texts = without_rounding(self.categories.tolist())
        if len(set(texts)) == len(texts):
            return self
        categories, group = np.unique(texts, return_inverse=True)
        return replace(self, categories=categories, weights=np.bincount(group, self.weights, len(categories)))


Column = NumberSummary | CategorySummary


@dataclass(frozen=True)
class TableSummary:
    """The columns of a table, or of some of its rows; n rows have positive weight, and the rest is as in ``Table``."""

    names: tuple[str, ...]
    named: bool
    n: int
    columns: tuple[Column, ...]
    kinds: tuple[str, ...]

    def __add__(self, other: TableSummary) -> TableSummary:
        """Return the summary of the rows of both, of bounded size; ``ValueError`` if their columns do not fit."""
        order = self._order(other)
        columns: list[Column] = []
        for name, column, j in zip(self.names, self.columns, order, strict=True):
            columns.append(_sampled(_merged(name, column, other.columns[j])))
        kinds: list[str] = []
        for name, kind, column, j in zip(self.names, self.kinds, columns, order, strict=True):
            kinds.append(_common_kind(name, kind, other.kinds[j], column))
        return TableSummary(self.names, self.named, self.n + other.n, tuple(columns), tuple(kinds))

    def sampled(self) -> TableSummary:
        """Return a summary of bounded size."""
        return replace(self, columns=tuple(map(_sampled, self.columns)))

    def _order(self, other: TableSummary) -> list[int]:
        """Return where the columns are in another block."""
        if self.named and other.named:
            only_here = sorted(set(self.names) - set(other.names))
            only_there = sorted(set(other.names) - set(self.names))
            if only_here or only_there:
                raise ValueError(
                    f"the blocks of X have different columns: {shown([*only_here, *only_there])} are not in all of them"
                )
            return [other.names.index(name) for name in self.names]
        if len(self.names) != len(other.names):
            raise ValueError(f"the blocks of X have {len(self.names)} and {len(other.names)} columns")
        return list(range(len(self.names)))


def summarise(table: Table, weights: np.ndarray | None, categorical_features: Collection[str | int]) -> TableSummary:
    """Return the summary of a table; a weight of 2 equals a repeated row, and one of 0 a missing one.

    Columns in ``categorical_features`` are categories, whether they hold numbers or texts. Raises ``ValueError`` for
    unknown names there, and for columns of too many categories.
    """
    declared = _indices(table, categorical_features)
    table, weights, _ = table.present_rows(weights)
    columns: list[Column] = []
    for j, (values, name) in enumerate(zip(table.columns, table.names, strict=True)):
        if values.dtype.kind == "f" and j not in declared:
            columns.append(_number_summary(values, weights, table.exact_of(j)))
        else:
            is_meant = j in declared or table.kinds[j] == CATEGORIES
            columns.append(_category_summary(_texts(table, j), weights, name, is_meant))
    return TableSummary(table.names, table.named, table.n, tuple(columns), table.kinds)


def _texts(table: Table, j: int) -> np.ndarray:
    """Return the categories of a column."""
    values = table.columns[j]
    exact = table.exact_of(j)
    if values.dtype.kind != "f":
        return values
    if exact is None and (np.abs(values) >= INEXACT).any():
        raise ValueError(
            f"column {table.names[j]!r} of X has codes of categories from 2**53 on, which numbers do not tell apart; "
            "make texts of them"
        )
    return category_texts(values, table.kinds[j], exact)


def _indices(table: Table, categorical_features: Collection[str | int]) -> set[int]:
    """Return the indices of columns that are given by names or indices."""
    at: dict[str | int, int] = {name: j for j, name in enumerate(table.names)}
    at |= {j: j for j in range(len(table.names))}
    unknown = [key for key in categorical_features if key not in at]
    if unknown:
        raise ValueError(
            f"categorical_features names the column {shown(unknown[0])}, which X has not; it has {list(table.names)}"
        )
    return {at[key] for key in categorical_features}


def _number_summary(x: np.ndarray, weights: np.ndarray, exact: np.ndarray | None = None) -> NumberSummary:
    missing = np.isnan(x)
    gone = float(weights[missing].sum())
    quantiles = Quantiles.of(x[~missing], weights[~missing]) if gone else Quantiles.of(x, weights)
    return NumberSummary(quantiles, gone, written={} if exact is None else written(exact, x))


def _category_summary(texts: np.ndarray, weights: np.ndarray, name: str, declared: bool) -> Column:
    at: dict[str | None, int] = {None: 0}
    codes = np.array([at.setdefault(text, len(at)) for text in texts.tolist()], np.intp)
    if len(at) - 1 > MAX_CATEGORIES and (declared or numbers_of(at) is None):
        raise _too_many(name)
    sums = np.bincount(codes, weights, len(at))
    categories = np.array([text for text in at if text is not None], np.str_)
    order = np.argsort(categories)
    return _bounded(CategorySummary(categories[order], sums[1:][order], float(sums[0]), declared), name)


def _sampled(column: Column) -> Column:
    """Return a column of bounded size; categories are few already."""
    if isinstance(column, NumberSummary):
        return replace(column, quantiles=column.quantiles.sampled())
    return column


def _merged(name: str, a: Column, b: Column) -> Column:
    """Return the summary of a column of two blocks; one that is empty takes the kind of the other."""
    if isinstance(a, NumberSummary) and isinstance(b, NumberSummary):
        return a + b
    if isinstance(a, CategorySummary) and isinstance(b, CategorySummary):
        return _bounded(a + b, name)
    for full, other in ((a, b), (b, a)):
        if other.is_empty:
            return replace(full, missing=full.missing + other.missing)
    left = a.as_numbers() if isinstance(a, CategorySummary) else a
    right = b.as_numbers() if isinstance(b, CategorySummary) else b
    if left is not None and right is not None:
        return left + right
    left_truths = _as_truths(a)
    right_truths = _as_truths(b)
    if left_truths is not None and right_truths is not None:
        return left_truths + right_truths
    category = next(str(column.categories[0]) for column in (a, b) if isinstance(column, CategorySummary))
    raise ValueError(
        f"column {name!r} of X holds numbers in some blocks and categories, such as {category!r}, in others; "
        f"give it one type, or name it in categorical_features=[{name!r}]"
    )


def _as_truths(column: Column) -> CategorySummary | None:
    """Return a column of booleans, or of 0 and 1, as one of booleans; None for any other."""
    if isinstance(column, NumberSummary):
        column = CategorySummary(
            category_texts(column.quantiles.values), column.quantiles.weights, column.missing, False
        )
    truth = truths(column.categories)
    if truth is None:
        return None
    found, group = np.unique(truth, return_inverse=True)
    categories = np.array([str(bool(x)) for x in found], np.str_)
    weights = np.bincount(group, column.weights, len(categories))
    return CategorySummary(categories, weights, column.missing, column.declared)


def _common_kind(name: str, a: str, b: str, column: Column) -> str:
    """Return the kind of a column of two blocks, if they have the same, or both have categories."""
    if isinstance(column, NumberSummary):
        a = NUMBERS if a == TEXTS else a
        b = NUMBERS if b == TEXTS else b
    if isinstance(column, CategorySummary) or NOTHING in (a, b) or a == b:
        return b if a == NOTHING else a
    raise ValueError(f"column {name!r} of X holds {a} in some blocks and {b} in others; give it one type")


def _bounded(column: CategorySummary, name: str) -> Column:
    """Return a column of not too many categories, or numbers if they are texts of these."""
    if len(column.categories) <= MAX_CATEGORIES:
        return column
    numbers = column.as_numbers()
    if numbers is None:
        raise _too_many(name)
    return numbers


def _too_many(name: str) -> ValueError:
    return ValueError(f"column {name!r} of X has more than {MAX_CATEGORIES} categories. {NOT_HASHED}")
