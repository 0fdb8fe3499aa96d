"""What the fields of models may hold: checks that name the field, for models made by hand and read from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_flag", "check_labels", "check_number", "check_numbers", "check_scale"]


def check_numbers(value: Any, name: str) -> np.ndarray:
    """Return finite real numbers as an array of float64, which is not copied if it is one already.

    Raises
    ------
    TypeError
        For anything but real numbers.
    ValueError
        For NaN and infinity.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        raise TypeError(f"{name} must hold real numbers, got rows of different lengths") from None
    if array.dtype.kind not in "iuf":
        got = f"dtype {array.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise TypeError(f"{name} must hold real numbers, got {got}")
    with np.errstate(over="ignore"):
        array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return array


def check_number(value: Any, name: str) -> float:
    """Return a finite real number as a float."""
    number = check_numbers(value, name)
    if number.ndim:
        raise ValueError(f"{name} must be a number, got shape {number.shape}")
    return float(number)


def check_scale(value: Any, d: int) -> np.ndarray:
    """Return the sizes (d,) of the features."""
    scale = check_numbers(value, "scale")
    if scale.shape != (d,):
        raise ValueError(f"scale must hold one number per feature, {d} in all, got shape {scale.shape}")
    return scale


def check_flag(value: Any, name: str) -> bool:
    """Return True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return one of several names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_labels(classes: Any) -> np.ndarray | None:
    """Return the labels of classes, a vector of any type, or None."""
    if classes is None:
        return None
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        got = f"shape {classes.shape}" if isinstance(classes, np.ndarray) else type(classes).__name__
        raise ValueError(f"classes must be an array of labels of shape (m,), got {got}")
    if classes.dtype.kind in "fM" and not np.isfinite(classes).all():
        raise ValueError("classes contains NaN or infinity")
    return classes
