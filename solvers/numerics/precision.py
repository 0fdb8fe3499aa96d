"""Constants of float64, the precision of all proofs; bounds without NaN; tests of negligible decreases.

Every comparison with NaN is false, so that "proven unless x >= bound" would let it pass. An infinite bound does not.
"""

from typing import Any

import numpy as np

# Iterations whose common decrease is compared with a tolerance: single ones may change little.
_PLATEAU_ITERATIONS = 10
# Twice the largest relative error of one rounded operation.
EPS = float(np.finfo(np.float64).eps)
# Smallest normal number: a product below it has no relative accuracy.
TINY = float(np.finfo(np.float64).tiny)
# Rounding error in the comparison of two objective values, relative.
NOISE = 1e-14
# Eigenvalues, sizes of weights, shares and differences below this are rounding errors, relative to the largest.
NULL = 1e-12
# Added to the diagonal of matrices that may be singular, relative.
JITTER = 1e-10


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return <a, b> of two vectors; within a call linear algebra has one thread."""
    return float(np.dot(a, b))


def proven_lower(bound: Any) -> Any:
    """Return a lower bound, a number or an array, with -inf in place of NaN."""
    return np.fmax(bound, -np.inf)


def proven_upper(bound: Any) -> Any:
    """Return an upper bound, a number or an array, with inf in place of NaN."""
    return np.fmin(bound, np.inf)


class Plateau:
    """True once ten iterations together decrease the objective by less than ``tol``, relative."""

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.recent: list[float] = []

    def __call__(self, fun: float) -> bool:
        """Record an objective value; return whether the objective has levelled off."""
        self.recent = [*self.recent[-_PLATEAU_ITERATIONS:], fun]
        is_full = len(self.recent) > _PLATEAU_ITERATIONS
        return is_full and self.recent[0] - fun <= self.tol * abs(fun)


def negligible_decrease(gtol: float, fun: float, start_fun: float) -> float:
    """Return the decrease below which a run has converged; an objective near 0 counts as rounding of the start's."""
    return gtol * gtol * max(abs(fun), EPS * abs(start_fun))
