"""Bounds that prove nothing where they are NaN, as after an overflow.

Every comparison with NaN is false, so that "proven unless x >= bound" would let it pass. An infinite bound does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["lower_bounds", "upper_bounds"]


def upper_bounds(values: Any) -> Any:
    """Return upper bounds, a number or an array, with inf in place of NaN."""
    return np.where(np.isnan(values), np.inf, values)[()]


def lower_bounds(values: Any) -> Any:
    """Return lower bounds, a number or an array, with -inf in place of NaN."""
    return -upper_bounds(np.negative(values))
