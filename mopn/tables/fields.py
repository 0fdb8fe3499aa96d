"""The encoding of a table as arrays, for files; arrays that do not fit together are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mopn.data.validation import finite_numbers
from mopn.data.values import NUMBER_KINDS
from mopn.tables.columns import LevelColumn, NumberColumns
from mopn.tables.encoding import TableEncoding

__all__ = ["FIELDS", "from_fields", "to_fields"]

# The kinds of dtypes and the numbers of axes.
FIELDS = {
    "columns": ("U", 1),
    "columns_named": ("b", 0),
    "number_columns": ("iu", 1),
    "number_kinds": ("U", 1),
    "knots": ("f", 1),
    "knot_counts": ("iu", 1),
    "functions": ("f", 2),
    "function_counts": ("iu", 1),
    "number_gaps": ("b", 1),
    "level_columns": ("iu", 1),
    "levels": ("U", 1),
    "level_counts": ("iu", 1),
    "rare_levels": ("U", 1),
    "rare_counts": ("iu", 1),
    "level_means": ("f", 1),
    "mean_counts": ("iu", 1),
    "level_gaps": ("b", 1),
}


def to_fields(encoding: TableEncoding) -> dict[str, Any]:
    """Return the arrays of an encoding; those of columns are joined, and their lengths stored."""
    numbers, levels = encoding.numbers, encoding.levels
    finite = np.isfinite(numbers.knots)
    return {
        "columns": np.array(encoding.columns, np.str_),
        "columns_named": encoding.named,
        "number_columns": np.array(encoding.number_columns, np.intp),
        "number_kinds": np.array(encoding.number_kinds, np.str_),
        "knots": numbers.knots[finite],
        "knot_counts": finite.sum(axis=1),
        "functions": _narrowed(numbers.functions[finite]),
        "function_counts": numbers.widths,
        "number_gaps": numbers.gaps,
        "level_columns": np.array(encoding.level_columns, np.intp),
        "levels": np.array([text for level in levels for text in level.levels], np.str_),
        "level_counts": np.array([len(level.levels) for level in levels], np.intp),
        "rare_levels": np.array([text for level in levels for text in level.rare], np.str_),
        "rare_counts": np.array([len(level.rare) for level in levels], np.intp),
        "level_means": np.concatenate([np.zeros(0), *(level.means for level in levels)]),
        "mean_counts": np.array([len(level.means) for level in levels], np.intp),
        "level_gaps": np.array([level.gaps for level in levels], bool),
    }


def _narrowed(numbers: np.ndarray) -> np.ndarray:
    """Return numbers in single precision, if that changes none of them."""
    with np.errstate(over="ignore"):
        single: np.ndarray = numbers.astype(np.float32)
    return single if np.array_equal(single, numbers) else numbers


def from_fields(values: Mapping[str, Any]) -> TableEncoding:
    """Return the encoding of such arrays; ``ValueError`` for those that do not fit together."""
    for name, (kinds, axes) in FIELDS.items():
        array = np.asarray(values.get(name))
        if array.dtype.kind not in kinds or array.ndim != axes:
            raise ValueError(f"{name} must have {axes} axes, and a dtype of the kinds {kinds!r}; got {array!r}")
    columns, numbers, levels = (values[name].tolist() for name in ("columns", "number_columns", "level_columns"))
    if sorted(numbers + levels) != list(range(len(set(columns)))) or len(set(columns)) < len(columns):
        raise ValueError("the columns of numbers and of levels are not all columns, each once")
    return TableEncoding(
        columns=tuple(columns),
        named=values["columns_named"],
        number_columns=tuple(numbers),
        number_kinds=_kinds(values["number_kinds"].tolist(), len(numbers)),
        numbers=_numbers(values, len(numbers)),
        level_columns=tuple(levels),
        levels=_levels(values, len(levels)),
    )


def _kinds(kinds: list[str], count: int) -> tuple[str, ...]:
    if len(kinds) != count or not {*kinds} <= NUMBER_KINDS:
        raise ValueError(f"number_kinds must hold {count} of the kinds {sorted(NUMBER_KINDS)}, got {kinds}")
    return tuple(kinds)


def _numbers(values: Mapping[str, Any], count: int) -> NumberColumns:
    knots, functions = (_parts(values, name, "knot_counts", count) for name in ("knots", "functions"))
    widths, gaps = values["function_counts"], values["number_gaps"]
    if not len(widths) == len(gaps) == count or np.any((widths < 0) | (widths > values["functions"].shape[1])):
        raise ValueError(f"function_counts and number_gaps do not fit {count} columns of numbers")
    for t, width in zip(knots, widths, strict=True):
        if not len(t) or (width and len(t) == 1) or np.any(np.diff(t) <= 0.0):
            raise ValueError(f"knots of a column must be ascending numbers, got {t} for {width} functions")
    return NumberColumns.of(knots, [f[:, :w] for f, w in zip(functions, widths, strict=True)], gaps)


def _levels(values: Mapping[str, Any], count: int) -> tuple[LevelColumn, ...]:
    pairs = [("levels", "level_counts"), ("rare_levels", "rare_counts"), ("level_means", "mean_counts")]
    parts = [_parts(values, *pair, count) for pair in pairs]
    columns = [
        LevelColumn(tuple(levels.tolist()), tuple(rare.tolist()), means, gap)
        for levels, rare, means, gap in zip(*parts, values["level_gaps"].tolist(), strict=True)
    ]
    for level in columns:
        texts = [*level.levels, *level.rare]
        if not texts or len(set(texts)) < len(texts) or len(level.means) != {1: 0, 2: 1}.get(level.count, level.count):
            raise ValueError(f"levels of a column must be distinct, with a mean for each feature; got {level}")
    return tuple(columns)


def _parts(values: Mapping[str, Any], name: str, counts: str, number: int) -> list[np.ndarray]:
    """Return the parts of an array that belong to the columns."""
    array, lengths = values[name], values[counts]
    if array.dtype.kind == "f":
        array = finite_numbers(array, name)
    if len(lengths) != number or np.any(lengths < 0) or lengths.sum() != len(array):
        raise ValueError(f"{counts} must be the lengths of {number} parts of {len(array)} entries, got {lengths}")
    return np.split(array, np.cumsum(lengths)[:-1]) if number else []
