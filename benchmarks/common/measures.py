"""Means over splits, and times of calls."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

__all__ = ["mean_and_error", "seconds_of"]


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error (NaN for one value)."""
    n = len(values)
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan


def seconds_of(call: Callable[[], object], repeats: int) -> list[float]:
    """Return the seconds that each of some calls took."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return seconds
