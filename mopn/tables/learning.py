"""An encoding learned from a table: knots and functions of numbers, frequent and rare categories, missing values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from mopn.data.cells import NOTHING, NUMBERS, TEXTS
from mopn.data.row_blocks import RawBlock
from mopn.tables.columns import CategoryColumn, NumberColumns, features_of_codes
from mopn.tables.distribution import TrainingDistribution
from mopn.tables.doubts import report_of, warn_of_doubts
from mopn.tables.effects import Cells, Effects, Response
from mopn.tables.encoding import TableEncoding
from mopn.tables.functions import CURVES, NumberFunctions, functions_of_pair, sizes_of_curves
from mopn.tables.quantiles import Quantiles
from mopn.tables.reading import Table
from mopn.tables.summaries import NOT_HASHED, CategorySummary, Column, NumberSummary, TableSummary, summarise

# Categories of a smaller fraction of the rows are rare; the rare ones have one feature together.
_MIN_FREQUENT_SHARE = 5e-4
# Categories of fewer rows are rare too.
_MIN_FREQUENT_ROWS = 2
# Relative rounding error of sums of weights that are compared with rows.
_WEIGHT_TOL = 1e-9
# Frequent categories of a column; a column with more is refused.
_MAX_FREQUENT_CATEGORIES = 1000


# Returns the effects in all rows of a table, given a function for a block of rows.
EffectsOf = Callable[[Callable[[RawBlock], Effects]], Effects]


def learn_encoding(
    table: Table,
    weights: np.ndarray | None = None,
    y: np.ndarray | None = None,
    *,
    is_labels: bool = False,
    curves: int | None,
    smoothness: float,
    categorical_features: Collection[str | int] = (),
) -> TableEncoding:
    """Return the encoding of a table; see :func:`encoding_of` and :func:`~mopn.tables.summaries.summarise`."""
    summary = summarise(table, weights, categorical_features)
    if y is None:
        return encoding_of(summary, curves=curves, smoothness=smoothness)
    block = RawBlock(0, table, y, weights)
    response = Response.of(y, weights, is_labels=is_labels)
    return encoding_of(
        summary, curves=curves, smoothness=smoothness, response=response, effects_of=lambda task: task(block)
    )


def encoding_of(
    summary: TableSummary,
    *,
    curves: int | None,
    smoothness: float,
    response: Response | None = None,
    effects_of: EffectsOf | None = None,
) -> TableEncoding:
    """Return the encoding of a table, or of the blocks of one, by their summary.

    Columns of numbers have at most ``curves`` functions besides themselves, of the size 1 / k^smoothness. With None,
    they have eight, and finer ones if the targets depend on these: ``response`` are the targets, and ``effects_of``
    sums over all rows. Warns once of all columns that are probably not meant as they came. Raises ``ValueError`` for
    columns of too many categories, and where none varies.
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

    columns = list(numbers.values())
    sizes = sizes_of_curves(CURVES if curves is None else curves, len(summary.columns), smoothness)
    functions = [_functions(column, summary, sizes, smoothness) for column in columns]
    encoding = TableEncoding(
        summary.names,
        summary.named,
        tuple(numbers),
        tuple(NOTHING if column.is_empty else summary.kinds[j] for j, column in numbers.items()),
        _number_columns(columns, functions),
        tuple(categories),
        tuple(_category_column(column, summary.n, summary.names[j]) for j, column in categories.items()),
    )
    if not encoding.n_features:
        raise ValueError(
            f"0 feature(s) (shape=({summary.n}, {len(summary.columns)})) while a minimum of 1 is required: with "
            f"n_samples = {summary.n}, no column of X varies, apart from categories that occur once"
        )
    if curves is None and response is not None and effects_of is not None:
        functions = _refined(functions, encoding, response, effects_of)
        encoding = replace(encoding, numbers=_number_columns(columns, functions))
    training = TrainingDistribution.of(summary.n, map(_quantiles_and_missing, columns), encoding.numbers)
    return replace(encoding, report=report_of(summary, encoding), training=training)


def _quantiles_and_missing(column: Column) -> tuple[Quantiles | None, float]:
    """Return the distribution of a column of numbers, None without a number, and the weight of the missing ones."""
    if isinstance(column, NumberSummary) and not column.is_empty:
        return column.quantiles, column.missing
    return None, column.missing


def _number_columns(columns: Sequence[Column], functions: Sequence[NumberFunctions | None]) -> NumberColumns:
    """Return the features of the columns of numbers of a table; ``functions`` has None for fewer than three numbers."""
    parts = [
        _of_few(column) if of_column is None else of_column.at_knots()
        for column, of_column in zip(columns, functions, strict=True)
    ]
    # Numbers of single precision will do, which take half of the bytes in files.
    values = [at_knots.astype(np.float32).astype(np.float64) for _, at_knots in parts]
    has_missing = [column.missing > 0.0 and not column.is_empty for column in columns]
    return NumberColumns.of([knots for knots, _ in parts], values, has_missing)


def _of_few(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots and functions of a column of two numbers or fewer: one function, or none."""
    if isinstance(column, NumberSummary) and not column.is_empty:
        quantiles = column.quantiles.rounded()
        if len(quantiles.values) == 2:
            return quantiles.values, functions_of_pair(quantiles)
        return quantiles.values, np.zeros((1, 0))
    return np.zeros(1), np.zeros((1, 0))


def _functions(column: Column, summary: TableSummary, sizes: np.ndarray, smoothness: float) -> NumberFunctions | None:
    """Return the functions of a column of at least three numbers; None for fewer."""
    if isinstance(column, CategorySummary):
        return None
    quantiles = column.quantiles.rounded()
    if len(quantiles.values) < 3:
        return None
    return NumberFunctions(quantiles, column.missing, summary.n, sizes, smoothness)


def _refined(
    functions: Sequence[NumberFunctions | None], encoding: TableEncoding, response: Response, effects_of: EffectsOf
) -> list[NumberFunctions | None]:
    """Return the functions with finer ones where the targets depend on them."""
    knots = tuple(np.zeros(1) if of_column is None else of_column.finest_knots for of_column in functions)
    effects = effects_of(Cells(encoding, knots, response).effects)
    return [None if of_column is None else of_column.refined(effects, j) for j, of_column in enumerate(functions)]


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
