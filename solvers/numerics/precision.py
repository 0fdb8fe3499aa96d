"""Constants of float64, the precision of everything that is proven."""

from __future__ import annotations

import numpy as np

__all__ = ["EPS", "TINY"]

# Twice the largest relative error of one rounded operation.
EPS = float(np.finfo(np.float64).eps)
# Smallest normal number: a product below it has no relative accuracy.
TINY = float(np.finfo(np.float64).tiny)
