"""Targets of any type: numbers for regressors, labels for classifiers, levels for ordinal ones."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mopn.data.cells import DATES, DURATIONS, TEXTS, TIMES, ZONED_DATES, is_period, kind_of
from mopn.data.rounding import nearest_equal
from mopn.data.values import as_array, as_numbers, check_text, finite_numbers, is_missing
from mopn.solvers.tools.checks import shown

_ADVICE_FOR_TEXTS = "classifiers take classes, and regressors numbers"


def as_targets(y: Any, *, numeric: bool, advice: str = _ADVICE_FOR_TEXTS) -> np.ndarray:
    """Return numbers or labels in their own type; missing values are refused, and so are texts in place of numbers.

    ``advice`` ends the message about texts.
    """
    what = "number" if numeric else "label"
    if isinstance(y, str | bytes):
        raise ValueError(
            f"y must hold a {what} for each row, got the text {shown(y)}; give the column itself, such as "
            f"frame[{shown(y)}], and X without it"
        )
    if isinstance(y, set | Mapping):
        raise TypeError(f"y must hold a {what} for each row in their order, got {shown(y)}; give a list")
    if isinstance(y, list | tuple):  # before NumPy drops the ends of texts
        _check_texts(y, "y")
    y = as_array(y, "y")
    if not y.ndim:
        raise ValueError(f"y must hold a {what} for each row, got {shown(y[()])}")
    if y.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has dtype {y.dtype}")
    if numeric:
        _refuse_texts(y, advice)
        numbers = as_numbers(y, "y")
        if np.isnan(numbers).any():
            raise ValueError("y contains NaN; drop these samples")
        if np.isinf(numbers).any():
            raise ValueError("y contains infinity; drop these samples")
        return numbers
    _check_labels(y, "y")
    return _in_own_type(y) if y.dtype.kind == "O" and y.ndim == 1 else y


def _refuse_texts(y: np.ndarray, advice: str) -> None:
    """Refuse targets that are texts, even texts of numbers."""
    cells = y.ravel().tolist() if y.dtype.kind in "OSUT" else []
    texts = [cell for cell in cells if isinstance(cell, str | bytes)]
    if not texts:
        return
    example = next((text for text in texts if not _is_number(text)), None)
    if example is None:
        raise TypeError(
            f"y holds numbers as texts, such as {shown(texts[0])}: make numbers of them, by pandas.to_numeric"
        )
    raise TypeError(f"y holds texts such as {shown(example)}: {advice}")


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _in_own_type(labels: np.ndarray) -> np.ndarray:
    """Return objects other than texts as an array of their own type; ``ValueError`` if NumPy has none."""
    cells = labels.tolist()
    kind = kind_of(cells, "y")
    if kind == TEXTS:
        return labels
    array = labels
    has_type = kind not in (ZONED_DATES, TIMES) and not any(map(is_period, cells))
    if has_type:
        array = np.array(cells, {DATES: "M8[us]", DURATIONS: "m8[us]"}.get(kind))
    if array.dtype.kind == "O":
        raise ValueError(
            f"y holds labels of the type {type(cells[0]).__name__}, such as {shown(cells[0])}; give texts, integers, "
            "booleans or dates of NumPy"
        )
    return array


def _check_texts(cells: Iterable[Any], name: str) -> None:
    for cell in cells:
        if isinstance(cell, str | bytes):
            check_text(cell, name)


def _check_labels(labels: np.ndarray, name: str) -> None:
    """Refuse missing labels, and texts that NumPy would change."""
    kind = labels.dtype.kind
    if kind == "O":
        cells = labels.ravel().tolist()
        if any(cell is None or is_missing(cell) for cell in cells):
            raise ValueError(f"{name} has missing labels; drop these samples")
        _check_texts(cells, name)
    elif kind in "fcmM":
        if np.isnan(labels).any():
            raise ValueError(f"{name} has missing labels; drop these samples")
        if not np.isfinite(labels).all():
            raise ValueError(f"{name} contains infinity")


def distinct_labels(y: Any, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted distinct labels, and the index of each entry's label."""
    y = as_array(y, name)
    _check_labels(y, name)
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"{name} holds labels that cannot be sorted ({error}); give labels of a single type, none of them missing"
        ) from None
    return labels, codes.reshape(y.shape)


def label_codes(y: np.ndarray, classes: np.ndarray, name: str = "y") -> np.ndarray:
    """Return the index of each entry's label among sorted classes; equal values of other types are the same label."""
    try:
        labels, codes = distinct_labels(y, name)
        at = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        known = np.broadcast_to(classes[at] == labels, len(labels))  # a single False for types that never compare
    except TypeError:  # labels that cannot be compared with the classes
        at = np.zeros(len(labels), int)
        known = np.zeros(len(labels), bool)
    if not known.all():
        raise ValueError(f"{name} has the label {shown(labels[~known][0])}, which is not among the classes {classes}")
    return at[codes]


def level_codes(y: np.ndarray, levels: np.ndarray, name: str = "y") -> np.ndarray:
    """Return the index of the ascending level that each number equals up to rounding."""
    y = finite_numbers(y, name)
    at = nearest_equal(y, finite_numbers(levels, name))
    if (at < 0).any():
        raise ValueError(f"{name} has the level {shown(y[at < 0][0])}, which is not among the levels {levels}")
    return at


def category_order(values: Any) -> tuple[np.ndarray, bool] | None:
    """Return the categories of a column of pandas, polars or Arrow, and whether they have an order; else None."""
    dtype: Any = getattr(values, "dtype", getattr(values, "type", None))
    if hasattr(dtype, "value_type") and hasattr(dtype, "index_type"):  # Arrow
        chunks = values.unify_dictionaries().chunks if hasattr(values, "chunks") else [values]
        categories = np.asarray(chunks[0].dictionary) if chunks else np.zeros(0)
        return categories, bool(dtype.ordered)
    if type(dtype).__name__ == "Enum":  # polars
        return np.asarray(dtype.categories), True
    if type(dtype).__name__ == "Categorical":
        return np.asarray(values.unique().drop_nulls()), False
    if hasattr(dtype, "categories") and hasattr(dtype, "ordered"):
        return np.asarray(dtype.categories), bool(dtype.ordered)
    return None
