"""What the fields of models may hold: checks that name the field, for models made by hand and read from files."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.data.validation import finite_numbers

__all__ = ["check_feature_names", "check_labels", "check_number", "check_scale"]


def check_number(value: Any, name: str) -> float:
    """Return a finite real number as a float."""
    number = finite_numbers(value, name)
    if number.ndim:
        raise ValueError(f"{name} must be a number, got shape {number.shape}")
    return float(number)


def check_scale(value: Any, d: int, name: str = "scale") -> np.ndarray:
    """Return the sizes (d,) of the features."""
    scale = finite_numbers(value, name)
    if scale.shape != (d,):
        raise ValueError(f"{name} must hold one number per feature, {d} in all, got shape {scale.shape}")
    return scale


def check_feature_names(names: Any, d: int, name: str = "feature_names") -> np.ndarray | None:
    """Return the names (d,) of the features, or None."""
    if names is None:
        return None
    labels = list(names) if np.iterable(names) and not isinstance(names, str) else []
    if len(labels) != d:
        got = f"{len(labels)} names" if labels else repr(names)
        raise ValueError(f"{name} must be a sequence with one name per feature, {d} in all, got {got}")
    if not all(isinstance(label, str) for label in labels):
        raise TypeError(f"{name} must be strings, got {next(x for x in labels if not isinstance(x, str))!r}")
    return np.array(labels, dtype=np.str_)


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
