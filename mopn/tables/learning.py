"""An encoding learned from a table: knots and functions of numbers, frequent and rare levels, gaps."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mopn.solvers.tools.checks import shown
from mopn.tables.columns import LevelColumn, NumberColumns
from mopn.tables.encoding import TableEncoding, level_texts
from mopn.tables.reading import Table

__all__ = ["learn_encoding"]

# Knots of a column, and rows whose order statistics they are.
_KNOTS, _MOST_ROWS = 33, 100_000
# Columns have fewer functions where they are many, so that the features are not more than these.
_MOST_FEATURES = 256
# Levels of a smaller part of the rows have one feature together.
_RARE = 5e-4
# More levels are names of rows rather than categories.
_MOST_LEVELS = 1000


def learn_encoding(
    table: Table,
    weights: np.ndarray | None = None,
    *,
    curves: int,
    smoothness: float,
    levels: Collection[str | int] = (),
) -> TableEncoding:
    """Return the encoding of a table by its rows.

    Parameters
    ----------
    table : Table
    weights : ndarray of shape (n,), optional
        A weight of 2 equals a repeated row.
    curves : int
        Largest number K of functions of a column of numbers, beside itself.
    smoothness : float
        The exponent s of their decay.
    levels : collection of str or int
        Names or indices of columns of numbers that are levels.

    Raises
    ------
    ValueError
        For columns without a value, of too many levels, or unknown names in ``levels``; and where all are constant.
    """
    declared = _indices(table, levels)
    weights = np.ones(table.n) if weights is None else weights
    curves = min(curves, max(_MOST_FEATURES // len(table.columns) - 1, 0)) if len(table.columns) else curves
    numbers = [j for j, c in enumerate(table.columns) if c.dtype.kind == "f" and j not in declared]
    others = [j for j in range(len(table.columns)) if j not in set(numbers)]
    of_numbers = [_learn_numbers(table.columns[j], weights, table.names[j], curves, smoothness) for j in numbers]
    encoding = TableEncoding(
        table.names,
        table.named,
        tuple(numbers),
        NumberColumns.of(*([*part] for part in zip(*of_numbers, strict=True)))
        if numbers
        else NumberColumns.of([], [], []),
        tuple(others),
        tuple(_learn_levels(table.columns[j], weights, table.names[j]) for j in others),
    )
    if not encoding.n_features:
        raise ValueError(
            f"0 feature(s) (shape=({table.n}, {len(table.columns)})) while a minimum of 1 is required: with "
            f"n_samples = {table.n}, no column of X varies"
        )
    return encoding


def _indices(table: Table, levels: Collection[str | int]) -> set[int]:
    at: dict[str | int, int] = {name: j for j, name in enumerate(table.names)}
    at |= {j: j for j in range(len(table.names))}
    unknown = [key for key in levels if key not in at]
    if unknown:
        raise ValueError(f"levels names the column {shown(unknown[0])}, which X has not; it has {list(table.names)}")
    return {at[key] for key in levels}


def _learn_numbers(
    x: np.ndarray, weights: np.ndarray, name: str, curves: int, smoothness: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the knots, the values of the functions at them, and whether numbers are missing."""
    missing = np.isnan(x)
    present, weights = x[~missing], weights[~missing]
    if not len(present):
        raise ValueError(f"column {name!r} of X has no value; drop it")
    values, counts = _distinct(present, weights)
    if len(values) < 3:
        mean = counts @ values / counts.sum()
        itself = (values - mean)[:, None] / np.ptp(values) if len(values) == 2 else np.zeros((1, 0))
        return values, itself, bool(missing.any())
    standardised, ranks = _standardised(values, counts), (np.cumsum(counts) - 0.5 * counts) / counts.sum()
    if len(values) > _KNOTS:
        at = np.unique(np.searchsorted(ranks, np.linspace(0.0, 1.0, _KNOTS)).clip(0, len(values) - 1))
        values, standardised, ranks = values[at], standardised[at], ranks[at]
    k = np.arange(1, min(curves, len(values) - 1) + 1)
    cosines = np.sqrt(2.0) * np.cos(np.pi * ranks[:, None] * k) / k**smoothness
    return values, np.column_stack([standardised, cosines]), bool(missing.any())


def _distinct(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of a sample of the rows, always the same, and their weights; the range is exact.

    What is computed of them is equal to the last bit for rows that are weighted and repeated.
    """
    chosen = slice(None) if len(x) <= _MOST_ROWS else np.random.default_rng(0).permutation(len(x))[:_MOST_ROWS]
    values, group = np.unique(x[chosen], return_inverse=True)
    values[0], values[-1] = x.min(), x.max()
    return values, np.bincount(group, weights=weights[chosen])


def _standardised(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return values minus their mean, over their deviation, without overflow."""
    size = np.abs(values).max()
    scaled = values / size if size else values
    centered = scaled - counts @ scaled / counts.sum()
    return centered / np.sqrt(counts @ centered**2 / counts.sum())


def _learn_levels(values: np.ndarray, weights: np.ndarray, name: str) -> LevelColumn:
    texts = level_texts(values) if values.dtype.kind == "f" else values
    present = np.array([text is not None for text in texts])
    if not present.any():
        raise ValueError(f"column {name!r} of X has no value; drop it")
    known, group = np.unique(texts[present].astype(np.str_), return_inverse=True)
    shares = np.bincount(group, weights=weights[present]) / weights.sum()
    frequent, gaps = shares >= _RARE, weights[~present].sum() / weights.sum()
    if frequent.sum() > _MOST_LEVELS:
        raise ValueError(
            f"column {name!r} of X has {len(known)} levels, {frequent.sum()} of them frequent; at most {_MOST_LEVELS} "
            "have features. Levels are not hashed: drop the column, merge levels, or give indicators of them as a "
            "sparse matrix to MultiOutputFMClassifier or MultiOutputFMRegressor"
        )
    means = np.array(
        [*shares[frequent], *[shares[~frequent].sum()] * (not frequent.all()), *[gaps] * (not present.all())]
    )
    # A single feature would be constant, and the first of two is one minus the other.
    means = means[{1: 1, 2: 1}.get(len(means), 0) :]
    return LevelColumn(tuple(known[frequent].tolist()), tuple(known[~frequent].tolist()), means, not present.all())
