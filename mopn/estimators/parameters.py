"""Checks of the estimators' parameters and data."""

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mopn.core.regularizers import Ratio
from mopn.data.rows import Rows
from mopn.data.validation import as_array, as_numbers
from mopn.data.values import is_series
from mopn.solvers.tools.checks import Rule, check_flag, check_nonnegative, check_seconds, check_verbose, count
from mopn.solvers.tools.decorators import warn_caller
from mopn.solvers.tools.signals import signals_later

# Who takes categories and missing values.
_TABLES = "TableClassifier and TableRegressor"
_MISSING = (
    f"Input X contains NaN; {_TABLES} take missing values as they are; or impute them, for example by "
    "sklearn.impute.SimpleImputer in a pipeline"
)

# Weights below this are probably shares that sum to 1, and not numbers of rows: strengths that are added to the sum of
# the losses then leave little of a fit. Weights that fade with time are mostly larger.
_SMALL_WEIGHT = 0.1

# The parameters that all estimators share. Parameters that have no rule are checked where they are used.
COMMON = {
    "tol": check_nonnegative,
    "max_iter": count(0).or_none(),
    "max_time": check_seconds.or_none(),
    "warm_start": check_flag,
    "verbose": check_verbose,
    "random_state": Rule("an integer from 0 to 2**32 - 1, a RandomState or None", check_random_state),
}
MAX_UNITS = count().or_none()
STRENGTH = Rule(
    "a finite number >= 0 or a mopn.Ratio",
    lambda value: value if isinstance(value, Ratio) else check_nonnegative.convert(value),
)


def readable(values: Any, name: str) -> Any:
    """Return X for scikit-learn's checks; masked entries and values that are no numbers are refused.

    scikit-learn drops masks and reads dates as numbers without a word. It refuses complex numbers itself.
    """
    if values is None:  # scikit-learn knows whether it may be
        return values
    if is_series(values):
        raise ValueError(
            f"{name} must be two-dimensional, got a Series: for a column give frame[['name']], for a row "
            "frame.iloc[[0]]. Reshape your data"
        )
    if getattr(getattr(values, "dtype", None), "names", None):
        values = _of_records(values, name)
    if isinstance(values, np.ma.MaskedArray) or not (hasattr(values, "shape") or hasattr(values, "__array__")):
        values = as_array(values, name)
    dtypes = getattr(values, "dtypes", getattr(values, "dtype", None))
    if sparse.issparse(values) and values.ndim == 1:
        raise ValueError(f"{name} must have two axes, (n, d), got a sparse array of shape {values.shape}")
    if dtypes is None or sparse.issparse(values):
        return values
    kinds = {getattr(dtype, "kind", "O") for dtype in (dtypes if np.iterable(dtypes) else [dtypes])}
    if kinds <= set("fiubc"):
        return values
    try:
        numbers = as_numbers(values, name)
    except TypeError as error:
        advice = f"; {_TABLES} take strings, categories and dates" if name == "X" else ""
        raise TypeError(f"{error}{advice}") from None
    if np.isnan(numbers).any():
        raise ValueError(_MISSING)
    return values if hasattr(values, "columns") else numbers


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """Return X, or X and y, as scikit-learn's checks do, which would recommend another model for missing values."""
    try:
        return validate_data(estimator, *data, **options)
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN"):
            raise
        raise ValueError(_MISSING) from None


def _of_records(records: Any, name: str) -> Any:
    try:
        with signals_later():
            import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise ImportError(f"{name} holds records, which need pandas: pip install pandas; or give an array") from None
    return pd.DataFrame({field: np.atleast_1d(records[field]) for field in records.dtype.names})


def warn_of_small_weights(rows: Rows, **strengths: Any) -> None:
    """Warn where numbers among the strengths meet weights that sum to far less than the number of rows."""
    numbers = [name for name, value in strengths.items() if isinstance(value, Real) and float(value) > 0.0]
    if not numbers:
        return
    _, total, squares = rows.target_sums
    weight = squares / total  # the mean weight, of each unit of weight
    if weight < _SMALL_WEIGHT:
        given = " and ".join(f"{name}={strengths[name]:.6g}" for name in numbers)
        warn_caller(
            f"sample_weight: a weight of 1 is a row, but the weights are near {weight:.2g}, for which {given} may "
            f"allow hardly any fit; divide the weights by their mean, or multiply {' and '.join(numbers)} by it"
        )
