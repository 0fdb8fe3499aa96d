"""Several arrays as one flat point, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["joined", "split"]


def joined(*arrays: np.ndarray) -> np.ndarray:
    """Return all entries in one dimension, array after array."""
    return np.concatenate([array.ravel() for array in arrays])


def split(x: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Return views of a flat point as arrays of these shapes."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(x, ends[:-1]), shapes, strict=True)]
