"""Several arrays as one flat point, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mopn.data.validation import check_input, finite_numbers


def joined(*arrays: np.ndarray) -> np.ndarray:
    """Return all entries in one dimension, array after array."""
    return np.concatenate([array.ravel() for array in arrays])


def split(x: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Return views of a flat point as arrays of these shapes."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(x, ends[:-1]), shapes, strict=True)]


def check_start(start: Any, size: int) -> np.ndarray:
    """Return a copy of a flat point, or of an earlier result's point, to start from."""
    x = finite_numbers(getattr(start, "x", start), "start").copy()
    if x.shape != (size,):
        raise ValueError(f"start must be a flat point of shape ({size},), got {x.shape}")
    check_input(x, "start")
    return x
