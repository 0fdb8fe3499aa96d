"""The stopping test for problems without a certificate."""

from __future__ import annotations

from mopn.solvers.numerics.precision import EPS

# Iterations whose common decrease is compared with a tolerance: single ones may change little.
_WINDOW = 10


class Plateau:
    """True once ten iterations together decrease the objective by less than ``tol``, relative."""

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.recent: list[float] = []

    def __call__(self, fun: float) -> bool:
        """Record an objective value; return whether the objective has levelled off."""
        self.recent = [*self.recent[-_WINDOW:], fun]
        return len(self.recent) > _WINDOW and self.recent[0] - fun <= self.tol * abs(fun)


def negligible_decrease(gtol: float, fun: float, start_fun: float) -> float:
    """Return the decrease below which a run has converged; a fit of 0 counts as rounding of the start."""
    return gtol * gtol * max(abs(fun), EPS * abs(start_fun))
