"""Predictions of an export compared with the model's, when it is written: one rule for all formats.

What a caller gets is compared, with levels, scales and links, computed in the types of the export. Rows are the user's,
or like the training data: rows of a table are drawn from the knots and categories of its encoding, rows of features
from the scales by which the fit divided them, around the point where the units are near 0. A fit that scaled nothing,
as of one-hot rows, leaves no scales: its rows have two features of size 1, so that the range is not overestimated.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mopn.data.designs import DenseDesign, Design, make_design
from mopn.data.values import to_host
from mopn.models.formula import Formula, Products, dense_rows
from mopn.solvers.tools.decorators import warn_caller
from mopn.tables.encoding import TableEncoding

# Rows that are compared, fewer where they have many entries.
_ROWS, _ENTRIES = 256, 2**20
# Features of rows that are not 0, where the fit scaled none.
_ENTRIES_OF_ROW = 2
# The largest changes without a warning: of numbers in floats, relative to their range, ten times the error promised for
# float32; of numbers in integers, of probabilities, and the share of changed classes.
_TOLERANCE, _CONSIDERABLE = 1e-3, 1e-2
# Changes beyond so many ranges are not told in figures.
_MANY = 10
# Ranges of outputs that are rounding errors, relative to the outputs.
NOISE = 64.0 * np.finfo(float).eps


@dataclass(frozen=True)
class Change:
    """Changes of the predictions of some rows.

    ``relative`` is the largest change of a number, relative to the range of all, or of a probability. ``classes``
    counts the rows whose class changes, None if the model predicts no classes.
    """

    rows: int
    relative: float
    classes: int | None

    def __str__(self) -> str:
        if not self.relative <= _MANY:
            return f"more than {_MANY} times their range"
        return f"up to {self.relative:.1%} of their range"


def warn_of_changed_classes(change: Change, dtype: str) -> None:
    """Warn the user if a model in integers changes more than 1 % of the classes, or a number by 1 % of the range."""
    changed = change.relative if change.classes is None else change.classes / change.rows
    if changed <= _CONSIDERABLE:
        return
    if change.classes is None:
        text = f"predictions of the rows of X change by {change}"
    else:
        text = f"{change.classes:,} of the {change.rows:,} rows of X ({change.classes / change.rows:.1%}) change class"
    better = "dtype='int16' or arithmetic='float'" if dtype == "int8" else "arithmetic='float'"
    warn_caller(f"arithmetic: in integers with parameters of {dtype} {text}; take {better}")


def warn_of_lost_digits(model: Any, dtype: type, X: Any = None) -> None:
    """Warn the user if predictions of rows X, by default like the training data, change by 0.1 % of their range."""
    exact, rounded = _rows(model, dtype, to_host(X))
    outputs = model._outputs(exact)
    found = outputs_in(model._formula(), rounded, dtype)
    change = changes(model, outputs, found)
    tells_probabilities = model.has_probabilities and model.target != "ordinal"
    # Classes alone change where outputs tie, of which no digit decides.
    if change.relative <= (_CONSIDERABLE if tells_probabilities else _TOLERANCE):
        return
    of = "like the training data" if X is None else "of X"
    if model.encoding is None and X is None and getattr(model, "feature_scales", None) is None:
        of = f"with {_ENTRIES_OF_ROW} features of size 1"
    what = "probabilities" if tells_probabilities else "predictions"
    text = f"dtype: in {np.dtype(dtype)} the {what} of {change.rows} rows {of} change by {change}"
    if change.classes is not None:
        text += f", and the classes of {change.classes}"
    warn_caller(f"{text}; {_advice(model, dtype, outputs)}")


def changes(model: Any, exact: np.ndarray, found: np.ndarray) -> Change:
    """Return the changes of predictions by outputs found (n, m), in the type in which these are."""
    numbers, held = predicted_numbers(model, exact), predicted_numbers(model, found)
    finite = np.isfinite(numbers).all(axis=1)
    relative = 0.0
    if finite.any():
        errors = np.abs(held[finite] - numbers[finite]).max(axis=0)
        relative = float((errors / _sizes_of_predictions(model, numbers[finite])).max())
    classes = changed_classes(model, exact, found) if model.target in ("labels", "indicator") else None
    return Change(len(exact), relative, classes)


def predicted_numbers(model: Any, outputs: np.ndarray) -> np.ndarray:
    """Return what a caller gets for outputs (n, m) besides classes, in their type: probabilities, or numbers."""
    dtype, outputs = outputs.dtype, outputs.astype(np.float64)
    if model.target == "ordinal":
        numbers = model._probabilities_of_labels(outputs).astype(dtype) @ model.classes.astype(dtype)[:, None]
    elif model.has_probabilities:
        numbers = model._probabilities_of_labels(outputs)
    elif model.target in ("labels", "indicator"):
        numbers = outputs
    else:
        numbers = model._predictions(outputs).reshape(len(outputs), -1)
    return numbers.astype(dtype)


def _sizes_of_predictions(model: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the ranges (q,) of predicted numbers (n, q): 1 of probabilities, and one for the outputs of classes."""
    if model.has_probabilities and model.target != "ordinal":
        return np.ones(numbers.shape[1])
    sizes = sizes_of(numbers)
    return np.full(len(sizes), sizes.max()) if model.target in ("labels", "indicator") else sizes


def sizes_of(values: np.ndarray) -> np.ndarray:
    """Return the ranges (q,) of columns of numbers (n, q), and the sizes of columns that are constant."""
    ranges, largest = np.ptp(values, axis=0), np.abs(values).max(axis=0)
    return np.maximum(np.where(ranges > NOISE * largest, ranges, largest), np.finfo(float).tiny)


def changed_classes(model: Any, *outputs: np.ndarray) -> int:
    """Return how many rows have other classes by one of two outputs (n, m) than by the other."""
    a, b = (model._predictions(values).reshape(len(values), -1) for values in outputs)
    return int(np.sum((a != b).any(axis=1)))


def outputs_in(formula: Formula, X: np.ndarray, dtype: type) -> np.ndarray:
    """Return the outputs (n, m) of features (n, d), computed in a dtype, the constant last, as by exports."""
    held = formula.mapped(lambda values: values.astype(dtype))
    rest = replace(held, constant=np.zeros_like(held.constant))
    return rest.outputs(DenseDesign(X.astype(dtype), dtype)).astype(dtype) + held.constant


def _advice(model: Any, dtype: type, outputs: np.ndarray) -> str:
    """Return what to do about digits that are lost to the level of y, of outputs or of features."""
    larger = "take dtype='float64', or " if dtype == np.float32 else ""
    smallest = 0.1 * _TOLERANCE / np.finfo(dtype).eps
    if model.target == "ordinal" and np.abs(model.classes).max() > smallest * np.ptp(model.classes):
        return f"{larger}subtract from the levels in y the smallest, and add it to predictions"
    if (np.abs(model._formula().constant) > smallest * np.ptp(outputs, axis=0)).any():
        return f"{larger}fit y without its level, and add it to predictions"
    return f"{larger}subtract from large features their means in training"


# -- rows --------------------------------------------------------------------------------------------------------------


def _rows(model: Any, dtype: type, X: Any) -> tuple[Design, np.ndarray]:
    """Return the features of rows, and the features (n, d) of these rows as the export reads them."""
    formula, rng = model._formula(), np.random.default_rng(0)
    d = formula.linear.shape[1]
    n = max(1, min(_ROWS, _ENTRIES // d))
    if model.encoding is not None:
        if X is not None:
            return _given_rows_of_table(model.encoding, X, n, dtype)
        return _rows_of_table(model.encoding, n, dtype, rng)
    if X is not None:
        design = model._design(X)
        design = design.rows(_spread_rows(design.shape[0], n))
    elif getattr(model, "feature_scales", None) is None:
        design = make_design(_rows_of_few_features(d, n, rng))
    else:
        design = make_design(_rows_of_features(formula, model.feature_scales, n, rng))
    return design, dense_rows(design).astype(dtype)


def _rows_of_table(encoding: TableEncoding, n: int, dtype: type, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the features (n, d) of rows between the knots, with all categories, and of these rows as they are read."""
    numbers = np.empty((n, len(encoding.number_columns)))
    for j, (knots, _) in enumerate(encoding.numbers.parts):
        numbers[:, j] = np.interp(rng.uniform(0, len(knots) - 1, n), np.arange(len(knots)), knots)
    numbers[(rng.uniform(size=numbers.shape) < 1 / 8) & encoding.numbers.missing] = np.nan
    codes = [rng.integers(-1, column.count, n) for column in encoding.categories]
    return _read(encoding, numbers, codes, dtype)


def _given_rows_of_table(encoding: TableEncoding, X: Any, n: int, dtype: type) -> tuple[Any, Any]:
    """Return the features (n, d) of at most n rows of a table, and of these rows as they are read."""
    table = encoding.arranged(X)
    rows = _spread_rows(table.n, n)
    numbers = np.empty((len(rows), len(encoding.number_columns)))
    for to, j in enumerate(encoding.number_columns):
        numbers[:, to] = table.columns[j][rows]
    parts = zip(encoding.category_columns, encoding.categories, strict=True)
    return _read(encoding, numbers, [column.codes(table.columns[j][rows]) for j, column in parts], dtype)


def _read(encoding: TableEncoding, numbers: np.ndarray, codes: list[np.ndarray], dtype: type) -> tuple[Any, Any]:
    """Return the features (n, d) of numbers and codes, and those by an export, which reads numbers in its type."""
    read = encoding.input_type(dtype)
    exact = encoding.features(numbers, codes)
    rounded = encoding.rounded(read).features(numbers.astype(read).astype(np.float64), codes)
    return make_design(exact), dense_rows(make_design(rounded)).astype(dtype)


def _spread_rows(n: int, most: int) -> np.ndarray:
    """Return at most so many of n rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _rows_of_few_features(d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows (n, d) that are 0 but in a few features, drawn for each."""
    columns = rng.integers(0, d, (n, _ENTRIES_OF_ROW))
    rows = np.zeros((n, d))
    np.put_along_axis(rows, columns, rng.standard_normal(columns.shape), axis=1)
    return rows


def _rows_of_features(formula: Formula, scales: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows (n, d) about the point, in units of the scales, at which the forms of the units are smallest."""
    products = [term for term in formula.terms if isinstance(term, Products)]
    d = len(scales)
    forms = np.concatenate([np.zeros((0, d)), *(term.factors.reshape(-1, d) for term in products)]) * scales
    biases = np.concatenate([np.zeros(0), *(term.biases.ravel() for term in products)])
    center = np.linalg.lstsq(forms, -biases, rcond=None)[0]
    return (center + rng.standard_normal((n, d))) * scales
