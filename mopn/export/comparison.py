"""Predictions of an export compared with the model's, when it is written: one rule for all formats.

Predictions are compared with levels, scales and links, computed in the types of the export. Rows are the user's, or
like the training data. Rows of a table are drawn from the knots and categories of its encoding. Rows of features are
drawn with the scales by which the fit divided them, around the point where the units are near 0. A fit that scaled
nothing, such as one of one-hot rows, leaves no scales: its rows have two features of size 1, so that the range is not
overestimated.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mopn.data.designs import DenseDesign, Design, make_design
from mopn.data.values import to_host
from mopn.models.formula import Formula, Products, dense_rows
from mopn.solvers.tools.decorators import warn_caller
from mopn.tables.encoding import TableEncoding

# Rows that are compared: more hardly change the largest error.
_COMPARED_ROWS = 256
# Numbers of the compared rows at most (8 MiB); wide rows are fewer.
_COMPARED_NUMBERS = 2**20
# Features other than 0 of a drawn row, where the fit scaled none.
_FEATURES_OF_ROW = 2
# Change of numbers in floats without a warning, relative to their range: ten times the error promised for float32.
_MAX_CHANGE_OF_NUMBERS = 1e-3
# Change without a warning of numbers in integers relative to their range, of probabilities, and share of classes.
_MAX_CHANGE_OF_SHARES = 1e-2
# Changes of more than this number of ranges are not given in figures.
_MAX_FIGURE = 10
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
        if not self.relative <= _MAX_FIGURE:
            return f"more than {_MAX_FIGURE} times their range"
        return f"up to {self.relative:.1%} of their range"


def warn_of_changed_classes(change: Change, dtype: str) -> None:
    """Warn the user if a model in integers changes more than 1 % of the classes, or a number by 1 % of the range."""
    changed = change.relative if change.classes is None else change.classes / change.rows
    if changed <= _MAX_CHANGE_OF_SHARES:
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
    outputs = model.outputs_of_design(exact)
    found = outputs_in(model.formula(), rounded, dtype)
    change = changes(model, outputs, found)
    tells_probabilities = model.has_probabilities and model.target != "ordinal"
    # Changes of classes alone bring no warning: where outputs tie, any digit changes the class.
    if change.relative <= (_MAX_CHANGE_OF_SHARES if tells_probabilities else _MAX_CHANGE_OF_NUMBERS):
        return
    rows = "like the training data" if X is None else "of X"
    if model.encoding is None and X is None and getattr(model, "feature_scales", None) is None:
        rows = f"with {_FEATURES_OF_ROW} features of size 1"
    what = "probabilities" if tells_probabilities else "predictions"
    text = f"dtype: in {np.dtype(dtype)} the {what} of {change.rows} rows {rows} change by {change}"
    if change.classes is not None:
        text += f", and the classes of {change.classes}"
    warn_caller(f"{text}; {_advice(model, dtype, outputs)}")


def changes(model: Any, exact: np.ndarray, found: np.ndarray) -> Change:
    """Return the changes of predictions by outputs found (n, m), in the dtype of these outputs."""
    numbers = predicted_numbers(model, exact)
    rounded = predicted_numbers(model, found)
    finite = np.isfinite(numbers).all(axis=1)
    relative = 0.0
    if finite.any():
        errors = np.abs(rounded[finite] - numbers[finite]).max(axis=0)
        relative = float((errors / _sizes_of_predictions(model, numbers[finite])).max())
    classes = changed_classes(model, exact, found) if model.target in ("labels", "indicator") else None
    return Change(len(exact), relative, classes)


def predicted_numbers(model: Any, outputs: np.ndarray) -> np.ndarray:
    """Return the predictions other than classes for outputs (n, m), in their dtype: probabilities, or numbers."""
    dtype = outputs.dtype
    outputs = outputs.astype(np.float64)
    if model.target == "ordinal":
        numbers = model.probabilities_of(outputs).astype(dtype) @ model.classes.astype(dtype)[:, None]
    elif model.has_probabilities:
        numbers = model.probabilities_of(outputs)
    elif model.target in ("labels", "indicator"):
        numbers = outputs
    else:
        numbers = model.predictions_of(outputs).reshape(len(outputs), -1)
    return numbers.astype(dtype)


def _sizes_of_predictions(model: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the ranges (q,) of predicted numbers (n, q): 1 for probabilities, the largest for outputs of classes."""
    if model.has_probabilities and model.target != "ordinal":
        return np.ones(numbers.shape[1])
    sizes = sizes_of(numbers)
    return np.full(len(sizes), sizes.max()) if model.target in ("labels", "indicator") else sizes


def sizes_of(values: np.ndarray) -> np.ndarray:
    """Return the ranges (q,) of columns of numbers (n, q), and the sizes of columns that are constant."""
    ranges = np.ptp(values, axis=0)
    largest = np.abs(values).max(axis=0)
    return np.maximum(np.where(ranges > NOISE * largest, ranges, largest), np.finfo(float).tiny)


def changed_classes(model: Any, exact: np.ndarray, found: np.ndarray) -> int:
    """Return how many rows change their class, or an indicator, from exact outputs (n, m) to outputs found."""
    differ = model.predictions_of(exact) != model.predictions_of(found)
    return int(np.sum(differ.reshape(len(exact), -1).any(axis=1)))


def outputs_in(formula: Formula, X: np.ndarray, dtype: type) -> np.ndarray:
    """Return the outputs (n, m) of features (n, d), computed in a dtype, with the constant last, as in exports."""
    rounded = formula.mapped(lambda values: values.astype(dtype))
    rest = replace(rounded, constant=np.zeros_like(rounded.constant))
    return rest.outputs(DenseDesign(X.astype(dtype), dtype)).astype(dtype) + rounded.constant


def _advice(model: Any, dtype: type, outputs: np.ndarray) -> str:
    """Return the advice for digits that are lost to the level of y, of outputs or of features."""
    larger = "take dtype='float64', or " if dtype == np.float32 else ""
    # A level of this number of ranges costs a tenth of the tolerance by itself.
    large_level = 0.1 * _MAX_CHANGE_OF_NUMBERS / np.finfo(dtype).eps
    if model.target == "ordinal" and np.abs(model.classes).max() > large_level * np.ptp(model.classes):
        return f"{larger}subtract from the levels in y the smallest, and add it to predictions"
    if (np.abs(model.formula().constant) > large_level * np.ptp(outputs, axis=0)).any():
        return f"{larger}fit y without its level, and add it to predictions"
    return f"{larger}subtract from large features their means in training"


# -- rows --------------------------------------------------------------------------------------------------------------


def _rows(model: Any, dtype: type, X: Any) -> tuple[Design, np.ndarray]:
    """Return the features of rows, and the features (n, d) of these rows as the export reads them."""
    rng = np.random.default_rng(0)
    formula = model.formula()
    d = formula.linear.shape[1]
    n = max(1, min(_COMPARED_ROWS, _COMPARED_NUMBERS // d))
    if model.encoding is not None:
        if X is not None:
            return _given_rows_of_table(model.encoding, X, n, dtype)
        return _rows_of_table(model.encoding, n, dtype, rng)
    if X is not None:
        design = model.design(X)
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
    for number, j in enumerate(encoding.number_columns):
        numbers[:, number] = table.columns[j][rows]
    categories = zip(encoding.category_columns, encoding.categories, strict=True)
    codes = [column.codes(table.columns[j][rows]) for j, column in categories]
    return _read(encoding, numbers, codes, dtype)


def _read(encoding: TableEncoding, numbers: np.ndarray, codes: list[np.ndarray], dtype: type) -> tuple[Any, Any]:
    """Return the features (n, d) of numbers and codes, and the features by an export, which rounds the numbers."""
    read = encoding.input_type(dtype)
    exact = encoding.features(numbers, codes)
    rounded_numbers = numbers.astype(read).astype(np.float64)
    rounded = encoding.rounded(read).features(rounded_numbers, codes)
    return make_design(exact), dense_rows(make_design(rounded)).astype(dtype)


def _spread_rows(n: int, most: int) -> np.ndarray:
    """Return the numbers of at most ``most`` of n rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _rows_of_few_features(d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows (n, d) that are 0 but in a few features, drawn for each."""
    columns = rng.integers(0, d, (n, _FEATURES_OF_ROW))
    rows = np.zeros((n, d))
    np.put_along_axis(rows, columns, rng.standard_normal(columns.shape), axis=1)
    return rows


def _rows_of_features(formula: Formula, scales: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows (n, d) around the point where the forms of the units are smallest, with the scales of features."""
    products = [term for term in formula.terms if isinstance(term, Products)]
    d = len(scales)
    factors = [term.factors.reshape(-1, d) for term in products]
    forms = np.concatenate([np.zeros((0, d)), *factors]) * scales
    biases = np.concatenate([np.zeros(0), *(term.biases.ravel() for term in products)])
    center = np.linalg.lstsq(forms, -biases, rcond=None)[0]
    return (center + rng.standard_normal((n, d))) * scales
