"""Models in float32 compared with float64, on rows like the training data, when an export is written.

Parameters and features are rounded as in the export, and sums are left in float64: what is lost to rounding is lost
where large numbers cancel, and there the order of sums matters little. No rows of the data are kept: those of a table
are drawn from the knots and categories of its encoding, and those of features from the network, whose units are near 0
at the center of the data, and from the scales by which the fit divided the features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.data.designs import make_design
from mopn.models.formula import Formula, Products
from mopn.solvers.tools.caller import warn_caller
from mopn.tables.encoding import TableEncoding

__all__ = ["warn_of_lost_digits"]

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
        exact = _rows_of_features(formula, model.feature_scales, n, rng)
        rounded = exact
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
            changed = [model._predictions(values).reshape(n, -1) for values in (outputs, found)]
            text += f", and the classes of {int(np.sum((changed[0] != changed[1]).any(axis=1)))}"
        text += "; take dtype='float64', or subtract from large features their means in training"
        warn_caller(text)


def _held(values: Any, dtype: type) -> Any:
    """Return numbers, sparse or not, rounded to a dtype, as float64."""
    return values.astype(dtype).astype(np.float64)


def _rows_of_table(encoding: TableEncoding, n: int, dtype: type, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the features (n, d) of rows between the knots, with all categories, and of these rows as they are read."""
    numbers = np.empty((n, len(encoding.number_columns)))
    for j, (knots, _) in enumerate(encoding.numbers.parts):
        numbers[:, j] = np.interp(rng.uniform(0, len(knots) - 1, n), np.arange(len(knots)), knots)
    numbers[(rng.uniform(size=numbers.shape) < 1 / 8) & encoding.numbers.gaps] = np.nan
    codes = [rng.integers(-1, level.count, n) for level in encoding.levels]
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
