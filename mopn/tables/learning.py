"""An encoding learned from a table: knots and functions of numbers, frequent and rare categories, missing values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from mopn.data.cells import NOTHING, NUMBERS, TEXTS
from mopn.tables.columns import CategoryColumn, NumberColumns, features_of_codes
from mopn.tables.distribution import TrainingDistribution
from mopn.tables.doubts import report_of, warn_of_doubts
from mopn.tables.encoding import TableEncoding
from mopn.tables.quantiles import Quantiles
from mopn.tables.reading import Table
from mopn.tables.summaries import NOT_HASHED, CategorySummary, Column, NumberSummary, TableSummary, summarise

# Cosines per column of numbers.
_FEW_CURVES = 8
# The same in tables of many rows and few columns.
MANY_CURVES = 16
# Rows from which more cosines pay.
_MIN_ROWS_OF_MANY_CURVES = 4000
# Columns up to which a table has few.
_MAX_FEW_COLUMNS = 10
# Least number of knots of a column with more values.
KNOTS = 33
# Knots for each cosine: four for each half wave.
_KNOTS_PER_CURVE = 4
# Standard deviations at which the linear function ends. Outliers would decide its slope otherwise.
_MAX_DEVIATIONS = 3.0
# The same in tables of many columns and rows, where many rows are far out in some column.
_MAX_DEVIATIONS_OF_MANY = 2.0
# Rows from which tables of many columns have the lower limit.
_MIN_ROWS_OF_LOWER_LIMIT = 2000
# Difference up to which ranks are equal: sums of weights that are no whole numbers are rounded.
_RANK_TIE = 1e-9
# Features of columns of numbers: with many columns, each has fewer functions.
_MAX_NUMBER_FEATURES = 256
# Categories of a smaller fraction of the rows are rare; the rare ones have one feature together.
_MIN_FREQUENT_SHARE = 5e-4
# Categories of fewer rows are rare too.
_MIN_FREQUENT_ROWS = 2
# Relative rounding error of sums of weights that are compared with rows.
_WEIGHT_TOL = 1e-9
# Frequent categories of a column; a column with more is refused.
_MAX_FREQUENT_CATEGORIES = 1000


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

    Columns of numbers have at most ``curves`` functions besides themselves, of the size 1 / k^smoothness. With None,
    the number of rows and columns decides. Warns once of all columns that are probably not meant as they came. Raises
    ``ValueError`` for columns of too many categories, and where none varies.
    """
    summary = _with_numbers_from_texts(summary)
    warn_of_doubts(summary)

    categories: dict[int, CategorySummary] = {}
    numbers: dict[int, Column] = {}
    for j, column in enumerate(summary.columns):
        if isinstance(column, CategorySummary) and not column.is_empty:
            categories[j] = column
        else:
            numbers[j] = column

    encoding = TableEncoding(
        summary.names,
        summary.named,
        tuple(numbers),
        tuple(NOTHING if column.is_empty else summary.kinds[j] for j, column in numbers.items()),
        _number_columns(list(numbers.values()), summary, curves, smoothness),
        tuple(categories),
        tuple(_category_column(column, summary.n, summary.names[j]) for j, column in categories.items()),
    )
    if not encoding.n_features:
        raise ValueError(
            f"0 feature(s) (shape=({summary.n}, {len(summary.columns)})) while a minimum of 1 is required: with "
            f"n_samples = {summary.n}, no column of X varies, apart from categories that occur once"
        )
    training = TrainingDistribution.of(summary.n, map(_quantiles_and_missing, numbers.values()), encoding.numbers)
    return replace(encoding, report=report_of(summary, encoding), training=training)


def _quantiles_and_missing(column: Column) -> tuple[Quantiles | None, float]:
    """Return the distribution of a column of numbers, None without a number, and the weight of the missing ones."""
    if isinstance(column, NumberSummary) and not column.is_empty:
        return column.quantiles, column.missing
    return None, column.missing


def _number_columns(
    columns: Sequence[Column], summary: TableSummary, curves: int | None, smoothness: float
) -> NumberColumns:
    """Return the features of the columns of numbers of a table."""
    width = len(summary.columns)
    are_few = width <= _MAX_FEW_COLUMNS
    if curves is None:
        curves = MANY_CURVES if summary.n >= _MIN_ROWS_OF_MANY_CURVES and are_few else _FEW_CURVES
    curves = min(curves, max(_MAX_NUMBER_FEATURES // max(width, 1) - 1, 0))
    deviations = _MAX_DEVIATIONS if are_few or summary.n < _MIN_ROWS_OF_LOWER_LIMIT else _MAX_DEVIATIONS_OF_MANY

    knots: list[np.ndarray] = []
    functions: list[np.ndarray] = []
    for column in columns:
        t, f = _knots_and_functions(column, curves, smoothness, deviations)
        knots.append(t)
        functions.append(f)
    return NumberColumns.of(knots, functions, [c.missing > 0.0 and not c.is_empty for c in columns])


def _with_numbers_from_texts(summary: TableSummary) -> TableSummary:
    """Return the summary with numbers for texts that are all numbers, or signs of missing ones among them.

    Categories that are numbers and differ by rounding alone become one.
    """
    columns = list(summary.columns)
    kinds = list(summary.kinds)
    for j, column in enumerate(summary.columns):
        numbers = column.as_numbers() if isinstance(column, CategorySummary) else column
        if numbers is not None and not numbers.is_empty:
            columns[j] = numbers
            kinds[j] = NUMBERS if kinds[j] == TEXTS else kinds[j]
        elif isinstance(column, CategorySummary):
            columns[j] = column.rounded()
    return replace(summary, columns=tuple(columns), kinds=tuple(kinds))


def _knots_and_functions(
    column: Column, curves: int, smoothness: float, deviations: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots (q,) of a column of numbers, and the values (q, w) of the functions at them.

    The linear function ends at a number of standard deviations.
    """
    if isinstance(column, CategorySummary) or column.is_empty:
        return np.zeros(1), np.zeros((1, 0))
    quantiles = column.quantiles.rounded()
    values = quantiles.values
    centered, deviation = _centered(column.quantiles, values)
    if len(values) == 1:
        functions = np.zeros((1, 0))
    elif len(values) == 2:
        functions = centered[:, None] / np.ptp(centered)
    else:
        ranks = quantiles.mid_ranks
        knots = max(KNOTS, _KNOTS_PER_CURVE * curves + 1)
        if len(values) > knots:
            wanted = np.linspace(-_RANK_TIE, 1.0 - _RANK_TIE, knots)
            at = np.unique(np.searchsorted(ranks, wanted).clip(0, len(values) - 1))
            values = values[at]
            centered = centered[at]
            ranks = ranks[at]
        k = np.arange(1.0, min(curves, len(values) - 1) + 1)
        cosines = np.sqrt(2.0) * np.cos(np.pi * ranks[:, None] * k) * k**-smoothness
        linear = (centered / deviation).clip(-deviations, deviations)
        functions = np.column_stack([linear, cosines])
    # Numbers of single precision will do, which take half of the bytes in files.
    return values, functions.astype(np.float32).astype(np.float64)


def _centered(quantiles: Quantiles, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return values minus the mean of a distribution, and its deviation, divided by a power of 2 against overflow."""
    exponent = int(np.frexp(np.abs(quantiles.values).max())[1])
    scaled = np.ldexp(quantiles.values, -exponent)
    total = float(quantiles.weights.sum())
    mean = float(quantiles.weights @ scaled) / total
    squares = float(quantiles.weights @ (scaled - mean) ** 2)
    return np.ldexp(values, -exponent) - mean, float(np.sqrt(squares / total))


def _category_column(column: CategorySummary, n: int, name: str) -> CategoryColumn:
    """Return the features of a column of categories of a table of n rows."""
    total = column.weights.sum() + column.missing
    shares = column.weights / total
    # Weights that are below 1 on average count as parts of the rows, and others as repetitions.
    least = _MIN_FREQUENT_ROWS * min(1.0, total / n) * (1.0 - _WEIGHT_TOL)
    frequent = (shares >= _MIN_FREQUENT_SHARE) & (column.weights >= least)
    if frequent.sum() > _MAX_FREQUENT_CATEGORIES:
        raise ValueError(
            f"column {name!r} of X has {len(shares)} categories, {frequent.sum()} of them frequent; at most "
            f"{_MAX_FREQUENT_CATEGORIES} have features. {NOT_HASHED}"
        )
    means = shares[frequent].tolist()
    if not frequent.all():
        means.append(shares[~frequent].sum())
    has_missing = column.missing > 0.0
    if has_missing:
        means.append(column.missing / total)
    without_feature = len(means) - features_of_codes(len(means))
    return CategoryColumn(
        tuple(column.categories[frequent].tolist()),
        tuple(column.categories[~frequent].tolist()),
        np.array(means[without_feature:], np.float64),
        bool(has_missing),
    )
