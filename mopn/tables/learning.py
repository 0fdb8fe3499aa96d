"""An encoding learned from a table: knots and functions of numbers, frequent and rare categories, missing values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from mopn.data.cells import NOTHING, NUMBERS, TEXTS
from mopn.tables.columns import CategoryColumn, NumberColumns
from mopn.tables.doubts import report_of, warn_of_doubts
from mopn.tables.encoding import TableEncoding
from mopn.tables.quantiles import Quantiles
from mopn.tables.reading import Table
from mopn.tables.summaries import NOT_HASHED, CategorySummary, Column, TableSummary, summarise

# Functions of a column of numbers besides itself, and where more pay: from so many rows on, up to so many columns.
_FEW_CURVES, MANY_CURVES, _MANY_ROWS, _FEW_COLUMNS = 8, 16, 4000, 10
# Knots of a column, at least, and for each function.
KNOTS, _KNOTS_A_CURVE = 33, 4
# A standardised column is cut off at so many deviations, as its functions end at the outer knots: outliers would decide
# its slope otherwise. Of more than a few columns, from so many rows on, sooner: rows are far out in several of them.
_FAR, _FAR_OF_MANY, _ROWS_OF_FAR = 3.0, 2.0, 2000
# Ranks that differ by less are equal: sums of weights that are no whole numbers are rounded.
_TIE = 1e-9
# Columns have fewer functions where they are many, so that the features are not more than these.
_MOST_FEATURES = 256
# Categories of a smaller part of the rows have one feature together, and so do categories of fewer rows.
_RARE, _RARE_ROWS = 5e-4, 2
# More categories that are frequent have no features.
_MOST_CATEGORIES = 1000


def learn_encoding(
    table: Table,
    weights: np.ndarray | None = None,
    *,
    curves: int | None,
    smoothness: float,
    categorical_features: Collection[str | int] = (),
) -> TableEncoding:
    """Return the encoding of a table; see :func:`encoding_of` and :func:`~mopn.tables.summaries.summarise`."""
    return encoding_of(summarise(table, weights, categorical_features), curves=curves, smoothness=smoothness)


def encoding_of(summary: TableSummary, *, curves: int | None, smoothness: float) -> TableEncoding:
    """Return the encoding of a table, or of the blocks of one, by their summary.

    Columns of numbers have at most ``curves`` functions besides themselves, of the size 1 / k^smoothness; None for as
    many as the rows carry. Warns once of all columns that are probably not meant as they came. Raises ``ValueError``
    for columns of too many categories, and where none varies.
    """
    summary = _read(summary)
    warn_of_doubts(summary)
    of = dict(enumerate(summary.columns))
    few = len(of) <= _FEW_COLUMNS
    if curves is None:
        curves = MANY_CURVES if summary.n >= _MANY_ROWS and few else _FEW_CURVES
    curves = min(curves, max(_MOST_FEATURES // max(len(of), 1) - 1, 0))
    categories = {j: column for j, column in of.items() if isinstance(column, CategorySummary) and not column.is_empty}
    numbers = {j: column for j, column in of.items() if j not in categories}
    far = _FAR if few or summary.n < _ROWS_OF_FAR else _FAR_OF_MANY
    parts = [_functions(column, curves, smoothness, far) for column in numbers.values()]
    encoding = TableEncoding(
        summary.names,
        summary.named,
        tuple(numbers),
        tuple(NOTHING if column.is_empty else summary.kinds[j] for j, column in numbers.items()),
        NumberColumns.of(
            [t for t, _ in parts],
            [f for _, f in parts],
            [c.missing > 0.0 and not c.is_empty for c in numbers.values()],
        ),
        tuple(categories),
        tuple(_categories(column, summary.n, summary.names[j]) for j, column in categories.items()),
    )
    if not encoding.n_features:
        raise ValueError(
            f"0 feature(s) (shape=({summary.n}, {len(of)})) while a minimum of 1 is required: with "
            f"n_samples = {summary.n}, no column of X varies, apart from categories that occur once"
        )
    return replace(encoding, report=report_of(summary, encoding))


def _read(summary: TableSummary) -> TableSummary:
    """Return the summary with numbers for texts that are all numbers, or signs of missing ones among them.

    Categories that are numbers and differ by rounding alone become one.
    """
    columns, kinds = list(summary.columns), list(summary.kinds)
    for j, column in enumerate(summary.columns):
        numbers = column.as_numbers() if isinstance(column, CategorySummary) else column
        if numbers is not None and not numbers.is_empty:
            columns[j], kinds[j] = numbers, NUMBERS if kinds[j] == TEXTS else kinds[j]
        elif isinstance(column, CategorySummary):
            columns[j] = column.rounded()
    return replace(summary, columns=tuple(columns), kinds=tuple(kinds))


def _functions(column: Column, curves: int, smoothness: float, far: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots (q,) of a column of numbers, and the values (q, w) of the functions at them."""
    if isinstance(column, CategorySummary) or column.is_empty:
        return np.zeros(1), np.zeros((1, 0))
    quantiles = column.quantiles.rounded()
    values, ranks = quantiles.values, quantiles.mid_ranks
    centered, deviation = _centered(column.quantiles, values)
    if len(values) < 3:
        functions = centered[:, None] / np.ptp(centered) if len(values) == 2 else np.zeros((1, 0))
    else:
        knots = max(KNOTS, _KNOTS_A_CURVE * curves + 1)
        if len(values) > knots:
            at = np.unique(np.searchsorted(ranks, np.linspace(-_TIE, 1.0 - _TIE, knots)).clip(0, len(values) - 1))
            values, centered, ranks = values[at], centered[at], ranks[at]
        k = np.arange(1.0, min(curves, len(values) - 1) + 1)
        cosines = np.sqrt(2.0) * np.cos(np.pi * ranks[:, None] * k) * k**-smoothness
        functions = np.column_stack([(centered / deviation).clip(-far, far), cosines])
    # Numbers of single precision will do, which take half of the bytes in files.
    return values, functions.astype(np.float32).astype(np.float64)


def _centered(quantiles: Quantiles, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return values minus the mean of a distribution, and its deviation, divided by a power of 2 against overflow."""
    exponent = int(np.frexp(np.abs(quantiles.values).max())[1])
    scaled, total = np.ldexp(quantiles.values, -exponent), float(quantiles.weights.sum())
    mean = float(quantiles.weights @ scaled) / total
    squares = float(quantiles.weights @ (scaled - mean) ** 2)
    return np.ldexp(values, -exponent) - mean, float(np.sqrt(squares / total))


def _categories(column: CategorySummary, n: int, name: str) -> CategoryColumn:
    total = column.weights.sum() + column.missing
    shares = column.weights / total
    # Weights that are below 1 on average count as parts of the rows, and others as repetitions.
    least = _RARE_ROWS * min(1.0, total / n) * (1.0 - 1e-9)
    frequent, missing = (shares >= _RARE) & (column.weights >= least), column.missing > 0.0
    if frequent.sum() > _MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} of X has {len(shares)} categories, {frequent.sum()} of them frequent; at most "
            f"{_MOST_CATEGORIES} have features. {NOT_HASHED}"
        )
    means = np.array(
        [*shares[frequent], *[shares[~frequent].sum()] * (not frequent.all()), *[column.missing / total] * missing]
    )
    # A single feature would be constant, and the first of two is one minus the other.
    means = means[{1: 1, 2: 1}.get(len(means), 0) :]
    return CategoryColumn(
        tuple(column.categories[frequent].tolist()), tuple(column.categories[~frequent].tolist()), means, bool(missing)
    )
