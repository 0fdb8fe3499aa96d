"""An encoding learned from a table: knots and functions of numbers, frequent and rare levels, gaps."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mopn.tables.columns import LevelColumn, NumberColumns
from mopn.tables.encoding import TableEncoding, level_texts
from mopn.tables.reading import Table

__all__ = ["learn_encoding"]

# Knots of a column, and rows whose order statistics they are.
_KNOTS, _MOST_ROWS = 33, 100_000
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
            f"0 feature(s) (shape=({table.n}, {len(table.columns)})) while a minimum of 1 is required: no column of X "
            "varies"
        )
    return encoding


def _indices(table: Table, levels: Collection[str | int]) -> set[int]:
    at: dict[str | int, int] = {name: j for j, name in enumerate(table.names)}
    at |= {j: j for j in range(len(table.names))}
    unknown = [key for key in levels if key not in at]
    if unknown:
        raise ValueError(f"levels names the column {unknown[0]!r}, which X has not; it has {list(table.names)}")
    return {at[key] for key in levels}


def _learn_numbers(
    x: np.ndarray, weights: np.ndarray, name: str, curves: int, smoothness: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the knots, the values of the functions at them, and whether numbers are missing."""
    missing = np.isnan(x)
    present, weights = x[~missing], weights[~missing]
    if not len(present):
        raise ValueError(f"column {name!r} of X has no value; drop it")
    mean = np.average(present, weights=weights)
    deviation = np.sqrt(np.average((present - mean) ** 2, weights=weights))
    knots, ranks = _knots(present, weights)
    if len(knots) < 3:
        itself = (knots - mean)[:, None] / np.ptp(knots) if len(knots) == 2 else np.zeros((1, 0))
        return knots, itself, bool(missing.any())
    k = np.arange(1, min(curves, len(knots) - 1) + 1)
    cosines = np.sqrt(2.0) * np.cos(np.pi * ranks[:, None] * k) / k**smoothness
    return knots, np.column_stack([(knots - mean) / deviation, cosines]), bool(missing.any())


def _knots(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct values, at equal distances in rank if they are many, and their mid-ranks in [0, 1]."""
    chosen = slice(None) if len(x) <= _MOST_ROWS else np.random.default_rng(0).permutation(len(x))[:_MOST_ROWS]
    values, group = np.unique(x[chosen], return_inverse=True)
    counts = np.bincount(group, weights=weights[chosen])
    ranks = (np.cumsum(counts) - 0.5 * counts) / counts.sum()
    if len(values) > _KNOTS:
        at = np.unique(np.searchsorted(ranks, np.linspace(0.0, 1.0, _KNOTS)).clip(0, len(values) - 1))
        values, ranks = values[at], ranks[at]
    values[0], values[-1] = x.min(), x.max()
    return values, ranks


def _learn_levels(values: np.ndarray, weights: np.ndarray, name: str) -> LevelColumn:
    texts = level_texts(values) if values.dtype.kind == "f" else values
    present = np.array([text is not None for text in texts])
    if not present.any():
        raise ValueError(f"column {name!r} of X has no value; drop it")
    known, group = np.unique(texts[present].astype(np.str_), return_inverse=True)
    shares = np.bincount(group, weights=weights[present]) / weights.sum()
    frequent, gaps = shares >= _RARE, 1.0 - float(shares.sum())
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
