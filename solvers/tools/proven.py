"""Bounds that prove nothing where they are NaN, as after an overflow.

Every comparison with NaN is false, so that "proven unless x >= bound" would let it pass. An infinite bound does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def proven_lower(bound: Any) -> Any:
    """Return a lower bound, a number or an array, with -inf in place of NaN."""
    return np.fmax(bound, -np.inf)


def proven_upper(bound: Any) -> Any:
    """Return an upper bound, a number or an array, with inf in place of NaN."""
    return np.fmin(bound, np.inf)
