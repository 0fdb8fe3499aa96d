"""What the fields of models may hold, and what names their features and outputs: checks that name the argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mopn.data.validation import finite_numbers


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


def check_names(names: Any, count: int, name: str) -> np.ndarray | None:
    """Return the names (count,) of features or outputs, or None."""
    if names is None:
        return None
    labels = list(names) if np.iterable(names) and not isinstance(names, str) else []
    if len(labels) != count:
        got = f"{len(labels)} names" if labels else repr(names)
        raise ValueError(f"{name} must be a sequence of {count} names, got {got}")
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


def feature_groups(groups: Any, labels: Sequence[str] | np.ndarray | None, d: int, name: str) -> list[tuple[int, ...]]:
    """Return groups of features, which are given by index or by name, as tuples of indices."""
    names = [] if labels is None else list(map(str, labels))
    given, numbers = list(groups) if np.iterable(groups) else [groups], {label: j for j, label in enumerate(names)}
    if given and len(numbers) < len(names):
        raise ValueError("names must be distinct, so that features can be found by them")
    return [_indices(group, numbers, d, name) for group in given]


def _indices(group: Any, numbers: Mapping[Any, int], d: int, name: str) -> tuple[int, ...]:
    """Return the indices of a group of features."""
    try:
        indices = tuple(numbers.get(j, j) for j in group)
        right = all(isinstance(j, (int, np.integer)) and 0 <= j < d for j in indices)
    except TypeError:  # no group, or of objects that cannot be names
        right = False
    if not right or not indices or len(set(indices)) < len(indices):
        raise ValueError(f"{name} must be tuples of distinct indices below {d}, or of names; got {group!r}")
    return indices
