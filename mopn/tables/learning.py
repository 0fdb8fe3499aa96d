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
CURVES = 8
# Least number of knots of a column with more values.
KNOTS = 33
# Knots for each cosine: four for each half wave.
_KNOTS_PER_CURVE = 4
# The linear function ends at these ranks from either end, and at most at so many standard deviations. Outliers would
# decide its slope otherwise.
_RANK_OF_ENDS = 0.005
_MAX_DEVIATIONS = 3.0
# Difference up to which ranks are equal: sums of weights that are no whole numbers are rounded.
_RANK_TIE = 1e-9
# Features of columns of numbers: with many columns, each has fewer functions.
_MAX_NUMBER_FEATURES = 256
# Height of a hat: the function that is this at one value, and 0 from the next knots on.
_SIZE_OF_HAT = 0.7
# Hats of a table at full height; the next as many fade out.
_MAX_HATS = 128
# Rows of a value, and its share of all rows, from which its hat fades in; at twice as many it has its full height.
_MIN_ROWS_OF_HAT = 24
_MIN_SHARE_OF_HAT = 1 / 128
# Hats of a column have their full height from so many more codes than curves on.
_CODES_OF_FADING = 4.0
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
    """Return the features of the columns of numbers of a table; hats are only in the default encoding."""
    sizes = _sizes_of_curves(CURVES if curves is None else curves, len(summary.columns), smoothness)
    hats = [np.zeros(0) for _ in columns] if curves is not None else _sizes_of_hats(columns, summary.n)
    knots: list[np.ndarray] = []
    functions: list[np.ndarray] = []
    for column, sizes_of_hats in zip(columns, hats, strict=True):
        t, f = _knots_and_functions(column, sizes, sizes_of_hats)
        knots.append(t)
        functions.append(f)
    return NumberColumns.of(knots, functions, [c.missing > 0.0 and not c.is_empty for c in columns])


def _sizes_of_curves(curves: int, columns: int, smoothness: float) -> np.ndarray:
    """Return the sizes of the curves of each column of a table; the last ones fade out where there are many columns."""
    k = np.arange(1.0, curves + 1)
    fading = fading_of_curves(k, columns)
    sizes: np.ndarray = k**-smoothness * fading
    return sizes[fading > 0.0]


def fading_of_curves(k: np.ndarray, columns: int) -> np.ndarray:
    """Return how far the k-th curves of each of some columns have faded: 1 for not at all, 0 for no curve."""
    room = _MAX_NUMBER_FEATURES / max(columns, 1) - 1.0
    fading: np.ndarray = (4.0 * (room - k) + 1.0).clip(0.0, 1.0)
    return fading


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


def _knots_and_functions(column: Column, sizes: np.ndarray, hats: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots (q,) of a column of numbers, and the values (q, w) of the functions at them.

    ``sizes`` are those of the curves, and ``hats`` those of the hats at every value; none for no hats.
    """
    if isinstance(column, CategorySummary) or column.is_empty:
        return np.zeros(1), np.zeros((1, 0))
    quantiles = column.quantiles.rounded()
    values = quantiles.values
    if len(values) == 1:
        functions = np.zeros((1, 0))
    elif len(values) == 2:
        shares = quantiles.weights / quantiles.weights.sum()
        functions = np.array([[-shares[1]], [shares[0]]])
    else:
        at = _knots_of(quantiles.mid_ranks, len(sizes), np.flatnonzero(hats))
        values = values[at]
        ranks = quantiles.mid_ranks[at]
        k = np.arange(1.0, min(len(sizes), len(values) - 1) + 1)
        cosines = np.sqrt(2.0) * np.cos(np.pi * ranks[:, None] * k) * sizes[: len(k)]
        functions = np.column_stack([_linear(quantiles)[at], cosines])
        if len(hats):
            functions = np.column_stack([functions, np.diag(hats[at])[:, hats[at] > 0.0]])
    # Numbers of single precision will do, which take half of the bytes in files.
    return values, functions.astype(np.float32).astype(np.float64)


def _knots_of(ranks: np.ndarray, curves: int, hats: np.ndarray) -> np.ndarray:
    """Return which of some values become knots: all if they are few.

    Else some at equal ranks, those at the ends of the linear function, and those of hats.
    """
    count = max(KNOTS, _KNOTS_PER_CURVE * curves + 1)
    if len(ranks) <= count:
        return np.arange(len(ranks))
    wanted = np.linspace(-_RANK_TIE, 1.0 - _RANK_TIE, count)
    wanted = np.append(wanted, [_RANK_OF_ENDS - _RANK_TIE, 1.0 - _RANK_OF_ENDS - _RANK_TIE])
    at = np.searchsorted(ranks, wanted).clip(0, len(ranks) - 1)
    return np.union1d(at, hats)


def _linear(quantiles: Quantiles) -> np.ndarray:
    """Return the values (q,) of a distribution, up to its ends, minus their mean and divided by their deviation."""
    exponent = int(np.frexp(np.abs(quantiles.values).max())[1])
    scaled = np.ldexp(quantiles.values, -exponent)  # against overflow
    ends = np.interp([_RANK_OF_ENDS, 1.0 - _RANK_OF_ENDS], quantiles.mid_ranks, scaled)
    held = scaled.clip(*ends)
    shares = quantiles.weights / quantiles.weights.sum()
    centered = held - shares @ held
    deviation = np.sqrt(shares @ centered**2)
    linear: np.ndarray = (centered / deviation).clip(-_MAX_DEVIATIONS, _MAX_DEVIATIONS)
    return linear


def _sizes_of_hats(columns: Sequence[Column], n: int) -> list[np.ndarray]:
    """Return the sizes (q,) of the hats at the q values of every column of a table of n rows, 0 for no hat.

    Whole numbers that many rows share have hats, in columns of more such codes than curves can tell apart. Hats fade
    out where rows, shares or codes become few, or other codes of the table are more frequent: nothing is switched off.
    """
    sizes = []
    shares = []
    for column in columns:
        if isinstance(column, CategorySummary):
            sizes.append(np.zeros(0))
            shares.append(np.zeros(0))
        else:
            quantiles = column.quantiles.rounded()
            sizes.append(_sizes_in_column(quantiles, column.missing, n))
            shares.append(quantiles.weights / (quantiles.weights.sum() + column.missing))

    of_codes = [share[size > 0.0] for share, size in zip(shares, sizes, strict=True)]
    ascending = np.sort(np.concatenate([np.zeros(0), *of_codes]))
    for size, share in zip(sizes, shares, strict=True):
        ranks = len(ascending) - np.searchsorted(ascending, share * (1.0 - _WEIGHT_TOL))
        size *= _SIZE_OF_HAT * (2.0 - ranks / _MAX_HATS).clip(0.0, 1.0)
    return sizes


def _sizes_in_column(quantiles: Quantiles, missing: float, n: int) -> np.ndarray:
    """Return the sizes (q,) of the hats of a column that is alone in its table, relative to the full one."""
    weights = quantiles.weights
    total = weights.sum() + missing
    rows = weights / min(1.0, total / n)  # as for categories
    is_whole = quantiles.values == np.rint(quantiles.values)
    fading = is_whole * _fading_in(rows, _MIN_ROWS_OF_HAT) * _fading_in(weights / total, _MIN_SHARE_OF_HAT)
    codes = fading.sum()
    sizes: np.ndarray = fading * np.clip((codes - CURVES) / _CODES_OF_FADING, 0.0, 1.0)
    return sizes


def _fading_in(x: np.ndarray, least: float) -> np.ndarray:
    """Return 0 up to the least value, 1 from twice this value on, and a line between."""
    part: np.ndarray = (x / least - 1.0).clip(0.0, 1.0)
    return part


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
