"""The encoding of a table as arrays, for files; arrays that do not fit together are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mopn.data.cells import NUMBER_KINDS
from mopn.data.validation import finite_numbers
from mopn.tables.answers import AnswerDistribution
from mopn.tables.columns import CategoryColumn, NumberColumns
from mopn.tables.distribution import SHARE_ROUNDING, TrainingDistribution
from mopn.tables.encoding import TableEncoding

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
    "number_missing": ("b", 1),
    "category_columns": ("iu", 1),
    "categories": ("U", 1),
    "category_counts": ("iu", 1),
    "rare_categories": ("U", 1),
    "rare_counts": ("iu", 1),
    "category_means": ("f", 1),
    "mean_counts": ("iu", 1),
    "category_missing": ("b", 1),
}
# The same of the distribution of the training data, which files before format 4 do not have.
TRAINING_FIELDS = {
    "training_rows": ("iu", 0),
    "missing_shares": ("f", 1),
    "shares_below": ("f", 1),
    "shares_up_to": ("f", 1),
}
# The same of the answers on the training data, which files before format 5 do not have.
ANSWER_FIELDS = {
    "answer_knots": ("f", 1),
    "answer_counts": ("iu", 1),
    "answers_below": ("f", 1),
    "answers_up_to": ("f", 1),
    "answer_means": ("f", 1),
}


def to_fields(encoding: TableEncoding) -> dict[str, Any]:
    """Return the arrays of an encoding; arrays of columns are joined, and their lengths stored."""
    numbers = encoding.numbers
    categories = encoding.categories
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
        "number_missing": numbers.missing,
        "category_columns": np.array(encoding.category_columns, np.intp),
        "categories": np.array([text for column in categories for text in column.categories], np.str_),
        "category_counts": np.array([len(column.categories) for column in categories], np.intp),
        "rare_categories": np.array([text for column in categories for text in column.rare], np.str_),
        "rare_counts": np.array([len(column.rare) for column in categories], np.intp),
        "category_means": np.concatenate([np.zeros(0), *(column.means for column in categories)]),
        "mean_counts": np.array([len(column.means) for column in categories], np.intp),
        "category_missing": np.array([column.missing for column in categories], bool),
    } | _training_fields(encoding.training)


def _training_fields(training: TrainingDistribution | None) -> dict[str, Any]:
    """Return the arrays of the distribution of the training data, None if it is not known."""
    if training is None:
        return dict.fromkeys(TRAINING_FIELDS)
    return {
        "training_rows": training.n,
        "missing_shares": training.missing,
        "shares_below": _narrowed(np.concatenate([np.zeros(0), *training.below])),
        "shares_up_to": _narrowed(np.concatenate([np.zeros(0), *training.up_to])),
    }


def answer_fields(answers: AnswerDistribution | None) -> dict[str, Any]:
    """Return the arrays of the distributions of answers, None if they are not known."""
    if answers is None:
        return dict.fromkeys(ANSWER_FIELDS)
    return {
        "answer_knots": _narrowed(np.concatenate(answers.knots)),
        "answer_counts": np.array([len(knots) for knots in answers.knots], np.intp),
        "answers_below": _narrowed(np.concatenate(answers.below)),
        "answers_up_to": _narrowed(np.concatenate(answers.up_to)),
        "answer_means": answers.means,
    }


def answers_of_fields(values: Mapping[str, Any]) -> AnswerDistribution | None:
    """Return the distributions of such arrays; ``ValueError`` if they do not fit together."""
    if all(values.get(name) is None for name in ANSWER_FIELDS):
        return None
    _check_arrays(values, ANSWER_FIELDS)
    count = len(values["answer_counts"])
    knots = _arrays_by_column(values, "answer_knots", "answer_counts", count)
    below = _arrays_by_column(values, "answers_below", "answer_counts", count)
    up_to = _arrays_by_column(values, "answers_up_to", "answer_counts", count)
    means = finite_numbers(values["answer_means"], "answer_means")
    are_ascending = all(len(t) and np.all(np.diff(t) > 0.0) for t in knots)
    shares = np.concatenate([np.zeros(0), *below, *up_to])
    are_shares = bool(np.all((shares >= 0.0) & (shares <= 1.0))) and all(map(_are_cumulated, below, up_to))
    if not (are_ascending and are_shares and len(means) == count):
        raise ValueError(f"answers must have {count} means, ascending knots, and shares from 0 to 1 that ascend")
    return AnswerDistribution(tuple(knots), tuple(below), tuple(up_to), means)


def _narrowed(numbers: np.ndarray) -> np.ndarray:
    """Return numbers in single precision, if that changes none of them."""
    with np.errstate(over="ignore"):
        single: np.ndarray = numbers.astype(np.float32)
    return single if np.array_equal(single, numbers) else numbers


def from_fields(values: Mapping[str, Any]) -> TableEncoding:
    """Return the encoding of such arrays; ``ValueError`` if they do not fit together."""
    is_held = any(values.get(name) is not None for name in TRAINING_FIELDS)
    fields = FIELDS | TRAINING_FIELDS if is_held else FIELDS
    _check_arrays(values, fields)
    columns = values["columns"].tolist()
    numbers = values["number_columns"].tolist()
    categories = values["category_columns"].tolist()
    if sorted(numbers + categories) != list(range(len(set(columns)))) or len(set(columns)) < len(columns):
        raise ValueError("the columns of numbers and of categories are not all columns, each once")
    kinds = values["number_kinds"].tolist()
    if len(kinds) != len(numbers) or not {*kinds} <= NUMBER_KINDS:
        raise ValueError(f"number_kinds must hold {len(numbers)} of the kinds {sorted(NUMBER_KINDS)}, got {kinds}")
    return TableEncoding(
        columns=tuple(columns),
        named=values["columns_named"],
        number_columns=tuple(numbers),
        number_kinds=tuple(kinds),
        numbers=_numbers(values, len(numbers)),
        category_columns=tuple(categories),
        categories=_categories(values, len(categories)),
        training=_training(values, len(numbers)) if is_held else None,
    )


def _check_arrays(values: Mapping[str, Any], fields: Mapping[str, tuple[str, int]]) -> None:
    for name, (kinds, axes) in fields.items():
        array = np.asarray(values.get(name))
        if array.dtype.kind not in kinds or array.ndim != axes:
            raise ValueError(f"{name} must have {axes} axes, and a dtype of the kinds {kinds!r}; got {array!r}")


def _numbers(values: Mapping[str, Any], count: int) -> NumberColumns:
    knots = _arrays_by_column(values, "knots", "knot_counts", count)
    functions = _arrays_by_column(values, "functions", "knot_counts", count)
    widths = values["function_counts"]
    missing = values["number_missing"]
    is_whole = len(widths) == len(missing) == count
    if not is_whole or np.any((widths < 0) | (widths > values["functions"].shape[1])):
        raise ValueError(f"function_counts and number_missing do not fit {count} columns of numbers")
    for t, width in zip(knots, widths, strict=True):
        if not len(t) or (width and len(t) == 1) or np.any(np.diff(t) <= 0.0):
            raise ValueError(f"knots of a column must be ascending numbers, got {t} for {width} functions")
    return NumberColumns.of(knots, [f[:, :w] for f, w in zip(functions, widths, strict=True)], missing)


def _training(values: Mapping[str, Any], count: int) -> TrainingDistribution:
    below = _arrays_by_column(values, "shares_below", "knot_counts", count)
    up_to = _arrays_by_column(values, "shares_up_to", "knot_counts", count)
    missing = finite_numbers(values["missing_shares"], "missing_shares")
    n = values["training_rows"]
    shares = np.concatenate([missing, *below, *up_to])
    are_shares = len(missing) == count and bool(np.all((shares >= 0.0) & (shares <= 1.0)))
    if n < 1 or not are_shares or not all(map(_are_cumulated, below, up_to)):
        raise ValueError(f"shares of the training data must be from 0 to 1, ascending, of {count} columns of numbers")
    return TrainingDistribution(n, missing, tuple(below), tuple(up_to))


def _are_cumulated(below: np.ndarray, up_to: np.ndarray) -> bool:
    """Whether shares below and up to each knot ascend."""
    return bool(np.all(below <= up_to) and np.all(up_to[:-1] <= below[1:] + SHARE_ROUNDING))


def _categories(values: Mapping[str, Any], count: int) -> tuple[CategoryColumn, ...]:
    rows = zip(
        _arrays_by_column(values, "categories", "category_counts", count),
        _arrays_by_column(values, "rare_categories", "rare_counts", count),
        _arrays_by_column(values, "category_means", "mean_counts", count),
        values["category_missing"].tolist(),
        strict=True,
    )
    columns = [
        CategoryColumn(tuple(categories.tolist()), tuple(rare.tolist()), means, missing)
        for categories, rare, means, missing in rows
    ]
    for column in columns:
        texts = [*column.categories, *column.rare]
        repeats = len(set(texts)) < len(texts)
        if not texts or repeats or len(column.means) != column.n_features:
            raise ValueError(f"categories of a column must be distinct, with a mean for each feature; got {column}")
    return tuple(columns)


def _arrays_by_column(values: Mapping[str, Any], name: str, counts: str, number: int) -> list[np.ndarray]:
    """Return the parts of an array that belong to the columns."""
    array = values[name]
    lengths = values[counts]
    if array.dtype.kind == "f":
        array = finite_numbers(array, name)
    if len(lengths) != number or np.any(lengths < 0) or lengths.sum() != len(array):
        raise ValueError(f"{counts} must be the lengths of {number} parts of {len(array)} entries, got {lengths}")
    return np.split(array, np.cumsum(lengths)[:-1]) if number else []
