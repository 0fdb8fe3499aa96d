"""Models in float32 compared with float64, on rows like the training data, when an export is written.

Parameters and features are rounded as in the export, and sums stay in float64: digits are lost where large numbers
cancel, where the order of sums matters little. Rows of a table are drawn from the knots and categories of its encoding.
Rows of features are drawn from the scales by which the fit divided them, around the point where the units are near 0.
"""

from typing import Any

import numpy as np

from mopn.data.designs import make_design
from mopn.models.formula import Formula, Products
from mopn.solvers.tools.decorators import warn_caller
from mopn.tables.encoding import TableEncoding

# Rows that are compared, fewer where they have many entries.
_ROWS, _ENTRIES = 256, 2**20
# The most that outputs may differ, relative to their range: ten times the error promised for float32.
_TOLERANCE = 1e-3


def warn_of_lost_digits(model: Any, dtype: type) -> None:
    """Warn the user if outputs of rows like the training data change by more than 0.1 % of their range in a dtype."""
    if dtype == np.float64:
        return
    formula, rng = model._formula(), np.random.default_rng(0)
    n = max(1, min(_ROWS, _ENTRIES // formula.linear.shape[1]))
    if model.encoding is not None:
        exact, rounded = _rows_of_table(model.encoding, n, dtype, rng)
    elif getattr(model, "feature_scales", None) is not None:
        exact = rounded = _rows_of_features(formula, model.feature_scales, n, rng)
    else:
        return
    outputs = formula.outputs(make_design(exact))
    with np.errstate(over="ignore", invalid="ignore"):
        found = formula.mapped(lambda A: _held(A, dtype)).outputs(make_design(_held(rounded, dtype)))
    errors = np.abs(found - outputs).max(axis=1) / max(float(np.ptp(outputs, axis=0).max()), np.finfo(float).tiny)
    lost = int(np.sum(~(errors <= _TOLERANCE)))
    if lost:
        text = f"dtype: in float32 the outputs of {lost} of {n} rows like the training data change by up to "
        text += f"{errors.max():.1%} of their range"
        if model.target in ("labels", "indicator"):
            text += f", and the classes of {changed_classes(model, outputs, found)}"
        text += "; take dtype='float64', or subtract from large features their means in training"
        warn_caller(text)


def changed_classes(model: Any, *outputs: np.ndarray) -> int:
    """Return how many rows have other classes by one of two outputs (n, m) than by the other."""
    a, b = (model._predictions(values).reshape(len(values), -1) for values in outputs)
    return int(np.sum((a != b).any(axis=1)))


def _held(values: Any, dtype: type) -> Any:
    """Return numbers, sparse or not, rounded to a dtype, as float64."""
    return values.astype(dtype).astype(np.float64)


def _rows_of_table(encoding: TableEncoding, n: int, dtype: type, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the features (n, d) of rows between the knots, with all categories, and of these rows as they are read."""
    numbers = np.empty((n, len(encoding.number_columns)))
    for j, (knots, _) in enumerate(encoding.numbers.parts):
        numbers[:, j] = np.interp(rng.uniform(0, len(knots) - 1, n), np.arange(len(knots)), knots)
    numbers[(rng.uniform(size=numbers.shape) < 1 / 8) & encoding.numbers.missing] = np.nan
    codes = [rng.integers(-1, column.count, n) for column in encoding.categories]
    read = encoding.input_type(dtype)
    rounded = encoding.rounded(read)
    return encoding.features(numbers, codes), rounded.features(_held(numbers, read), codes)


def _rows_of_features(formula: Formula, scales: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows (n, d) about the point, in units of the scales, at which the forms of the units are smallest."""
    products = [term for term in formula.terms if isinstance(term, Products)]
    d = len(scales)
    forms = np.concatenate([np.zeros((0, d)), *(term.factors.reshape(-1, d) for term in products)]) * scales
    biases = np.concatenate([np.zeros(0), *(term.biases.ravel() for term in products)])
    center = np.linalg.lstsq(forms, -biases, rcond=None)[0]
    return (center + rng.standard_normal((n, d))) * scales
