"""Means over splits, times of calls, and the calibration of probabilities."""

import time
from collections.abc import Callable

import numpy as np


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error (NaN for one value)."""
    n = len(values)
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan


def seconds_of(call: Callable[[], object], repeats: int = 1) -> list[float]:
    """Return the seconds that each of some calls took, by the clock."""
    return _seconds(call, repeats, time.perf_counter)


def processor_seconds_of(call: Callable[[], object], repeats: int = 1) -> list[float]:
    """Return the seconds of this process's processor that each of some calls took."""
    return _seconds(call, repeats, time.process_time)


def _seconds(call: Callable[[], object], repeats: int, clock: Callable[[], float]) -> list[float]:
    seconds = []
    for _ in range(repeats):
        began = clock()
        call()
        seconds.append(clock() - began)
    return seconds


def calibration_error(y: np.ndarray, probabilities: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error (Guo et al., ICML 2017), over bins of equal width.

    It is the mean, weighted by rows, of |mean probability of the most probable class - share of right predictions|.
    """
    sure = probabilities.max(axis=1)
    excess = sure - (probabilities.argmax(axis=1) == y)
    places = np.minimum((bins * sure).astype(int), bins - 1)
    return float(np.abs(np.bincount(places, excess, bins)).sum() / len(y))
