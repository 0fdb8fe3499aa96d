"""Means over splits."""

from __future__ import annotations

import numpy as np

__all__ = ["mean_and_error"]


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error (NaN for one value)."""
    n = len(values)
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan
