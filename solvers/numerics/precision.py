"""Constants of float64, the precision of everything that is proven; inner products, and bounds without NaN.

Every comparison with NaN is false, so that "proven unless x >= bound" would let it pass. An infinite bound does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Twice the largest relative error of one rounded operation.
EPS = float(np.finfo(np.float64).eps)
# Smallest normal number: a product below it has no relative accuracy.
TINY = float(np.finfo(np.float64).tiny)
# Rounding error in the comparison of two objective values, relative.
NOISE = 1e-14
# Eigenvalues and sizes of weights below this, relative to the largest, are rounding errors.
NULL = 1e-12


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return <a, b> of two vectors, computed by one thread.

    Idle BLAS threads busy-wait for some time, and slow down the threads of compiled loops that follow.
    """
    return float(np.einsum("i,i->", a, b))


def proven_lower(bound: Any) -> Any:
    """Return a lower bound, a number or an array, with -inf in place of NaN."""
    return np.fmax(bound, -np.inf)


def proven_upper(bound: Any) -> Any:
    """Return an upper bound, a number or an array, with inf in place of NaN."""
    return np.fmin(bound, np.inf)
