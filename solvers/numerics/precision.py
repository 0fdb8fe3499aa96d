"""Constants of float64, the precision of everything that is proven."""

from __future__ import annotations

import numpy as np

# Twice the largest relative error of one rounded operation.
EPS = float(np.finfo(np.float64).eps)
# Smallest normal number: a product below it has no relative accuracy.
TINY = float(np.finfo(np.float64).tiny)
# Rounding error in the comparison of two objective values, relative.
NOISE = 1e-14
# Eigenvalues and sizes of weights below this, relative to the largest, are rounding errors.
NULL = 1e-12
