"""Input validation. Every message names the argument, the fault and a remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from mopn.core.losses import Loss
from mopn.core.sparse_structure import compressed

__all__ = [
    "check_count",
    "check_member",
    "check_offset",
    "check_sample_weight",
    "check_strength",
    "check_targets",
    "present_rows",
]

Member = TypeVar("Member")


def check_targets(y: Any, n: int, loss: Loss) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Return the targets in the form of the loss, the number of outputs, and the classes (or None)."""
    y = np.asarray(y)
    if y.ndim == 0 or len(y) != n:
        raise ValueError(f"y must have one row per sample: X has {n} rows, y has shape {y.shape}")
    if n < 2:
        raise ValueError(f"at least 2 samples are needed to fit, got n_samples = {n}; a fit on 1 sample is meaningless")
    if loss.targets == "labels":
        return _labels(y, loss)
    return _per_output(y, loss)


def _labels(y: np.ndarray, loss: Loss) -> tuple[np.ndarray, int, np.ndarray]:
    if y.ndim != 1:
        raise ValueError(
            f"loss={loss.name!r} is multi-class and takes labels of shape (n,), got y of shape {y.shape}; "
            "for several targets per sample use a loss per output, such as 'squared' or 'binary-logistic'"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity")
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y holds labels that cannot be sorted ({error}); are some missing?") from None
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes[0]!r}); classification needs at least 2")
    return codes, len(classes), classes


def _per_output(y: np.ndarray, loss: Loss) -> tuple[np.ndarray, int, None]:
    if y.ndim > 2 or 0 in y.shape:
        raise ValueError(f"y must have shape (n,) or (n, m) with m >= 1, got {y.shape}")
    try:
        Y = y.astype(np.float64).reshape(len(y), -1)
    except (TypeError, ValueError):
        raise TypeError(
            f"loss={loss.name!r} takes numeric targets, got y of dtype {y.dtype}; for labels use loss='logistic'"
        ) from None
    if not np.isfinite(Y).all():
        raise ValueError("y contains NaN or infinity")
    if loss.targets == "signs" and not np.isin(Y, (-1.0, 1.0)).all():
        raise ValueError(f"loss={loss.name!r} takes targets -1 and +1 only; convert 0 and 1 by 2 * y - 1")
    return Y, Y.shape[1], None


def check_sample_weight(weights: Any, n: int) -> np.ndarray | None:
    """Return the weights as floats, or None if none were given."""
    if weights is None:
        return None
    weights = _numbers(weights, "sample_weight")
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per sample, got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and >= 0")
    if not weights.any():
        raise ValueError("sample_weight is zero for all samples; at least one must be positive")
    return weights


def check_offset(offset: Any, n: int, m: int) -> np.ndarray | None:
    """Return the offset broadcast to (n, m), or None if none was given."""
    if offset is None:
        return None
    offset = _numbers(offset, "offset")
    if offset.shape == (n,) and m == 1:
        offset = offset[:, None]
    if offset.shape not in ((n, m), (m,), (1, m)):
        raise ValueError(f"offset must have shape ({n}, {m}) or ({m},), got {offset.shape}")
    if not np.isfinite(offset).all():
        raise ValueError("offset contains NaN or infinity")
    return np.broadcast_to(offset, (n, m))


def _numbers(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numeric, got {type(values).__name__}") from None


def check_member(value: Any, argument: str, kind: type, members: Mapping[str, Member], reason: str) -> Member:
    """Return the member of a closed set that was named, or the member itself; objects of the kind are refused."""
    names = ", ".join(map(repr, members))
    for member in members.values():
        if value is member:
            return member
    if isinstance(value, kind):
        raise TypeError(f"{argument} must be one of {names}, by name: {reason}; got the object {value!r}")
    if not isinstance(value, str) or value not in members:
        raise ValueError(f"{argument} must be one of {names}, got {value!r}")
    return members[value]


def check_strength(value: Any, name: str) -> float:
    """Return a strength or a radius as a float, a finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return float(value)


def check_count(value: Any, name: str, least: int = 1) -> int:
    """Return a count, an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


def present_rows(parts: Sequence[Any], y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Any, Any, Any]:
    """Return the samples of positive weight: the parts of X, y, the weights and the offset."""
    n = np.shape(y)[0] if np.ndim(y) else 0
    if sample_weight is None or np.shape(sample_weight) != (n,) or np.all(sample_weight) or not np.any(sample_weight):
        return parts, y, sample_weight, offset
    rows = np.flatnonzero(sample_weight)
    parts = [compressed(part).tocsr()[rows] if hasattr(part, "tocsr") else np.asarray(part)[rows] for part in parts]
    offset = np.asarray(offset)[rows] if np.ndim(offset) and len(offset) == n else offset
    return parts, np.asarray(y)[rows], np.asarray(sample_weight)[rows], offset
