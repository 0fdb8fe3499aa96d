"""L-BFGS for smooth problems, within bounds if there are any."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mopn.solvers.driver import Monitor
from mopn.solvers.interface import Evaluation, Solver
from mopn.solvers.plateau import Plateau
from mopn.solvers.result import Status

__all__ = ["LBFGS"]

# Weak Wolfe conditions: sufficient decrease, and enough of the slope gone.
_ARMIJO, _WOLFE = 1e-4, 0.9
_TRIALS = 40
# Rounding errors of two objective values that are being compared, relative.
_NOISE = 1e-14
# Pairs of less curvature, relative to the change of the gradient, are not kept.
_FLAT = 1e-10


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS (Nocedal, 1980), with weak Wolfe steps; within bounds by projection (Bertsekas, 1982).

    Variables that their bounds hold back are left out of the quasi-Newton step, and steps are cut off at the bounds.
    It is our own because SciPy's calls another BLAS library than NumPy's: with several threads, theirs wait for each
    other, many times longer than the method computes.

    Parameters
    ----------
    memory : int, default 20
        Number of correction pairs kept.
    gtol : float, default 1e-8
        The run also ends when the largest entry of the projected gradient is at most ``gtol`` times
        ``max(1, abs(fun))``, with fun at the start. Without a certificate that is convergence, and so are ten
        iterations that together decrease the objective by less than ``tol``, relative.
    """

    memory: int = 20
    gtol: float = 1e-8
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})

    def __post_init__(self) -> None:
        if not self.memory >= 1:
            raise ValueError(f"memory must be >= 1, got {self.memory!r}")
        if not self.gtol >= 0:
            raise ValueError(f"gtol must be >= 0, got {self.gtol!r}")

    def run(self, problem: Any, start: Any, monitor: Monitor) -> None:
        """Iterate until the monitor ends the run."""
        certified = "dual" in problem.oracles
        levelled_off = Plateau(monitor.tol)
        box = _Box(problem.bounds)
        x, at = start, problem.value_gradient(start)
        pairs = _Pairs(self.memory)
        gtol = self.gtol * max(1.0, abs(at.value))
        while True:
            monitor(x, fun=at.value, gap=at.value - problem.dual_bound(at) if certified else math.inf)
            if not certified and monitor.tol > 0 and levelled_off(at.value):
                monitor.stop(Status.CONVERGED)
            if np.abs(x - box.project(x - at.gradient)).max(initial=0.0) <= gtol:
                monitor.stop(Status.STALLED if certified else Status.CONVERGED)
            free = box.free(x, at.gradient)
            found = _search(problem.value_gradient, box, x, at, pairs.direction(at.gradient, free))
            if found is None and pairs.kept:
                pairs.kept.clear()
                found = _search(problem.value_gradient, box, x, at, pairs.direction(at.gradient, free))
            if found is None:
                monitor.stop(Status.STALLED)
            x_new, at_new = found
            pairs.add(x_new - x, at_new.gradient - at.gradient)
            x, at = x_new, at_new


class _Box:
    """Bounds on the variables, or none."""

    def __init__(self, bounds: tuple[np.ndarray, np.ndarray] | None) -> None:
        self.bounds = bounds

    def project(self, x: np.ndarray) -> np.ndarray:
        return x if self.bounds is None else np.clip(x, *self.bounds)

    def free(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
        """Return where the variables are free to follow minus the gradient; None for everywhere."""
        if self.bounds is None:
            return None
        lower, upper = self.bounds
        return np.where(gradient > 0, x > lower, x < upper)


class _Pairs:
    """The latest steps s and changes of the gradient y, which stand for the inverse of the Hessian."""

    def __init__(self, memory: int) -> None:
        self.kept: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=memory)

    def add(self, s: np.ndarray, y: np.ndarray) -> None:
        if np.vdot(s, y) > _FLAT * np.vdot(y, y) * _scale(s, y):
            self.kept.append((s, y))

    def direction(self, gradient: np.ndarray, free: np.ndarray | None) -> np.ndarray:
        """Return minus the inverse Hessian times the gradient, of the free variables: the two-loop recursion."""
        d, pairs = -gradient, list(self.kept)
        if free is not None:
            d = d * free
            pairs = [(s * free, y * free) for s, y in pairs]
        pairs = [(s, y, float(np.vdot(s, y))) for s, y in pairs]
        pairs = [(s, y, sy) for s, y, sy in pairs if sy > 0]
        if not pairs:
            # A first step of length one at most.
            return d / max(1.0, float(np.linalg.norm(d)))
        parts = []
        for s, y, sy in reversed(pairs):
            parts.append(float(np.vdot(s, d)) / sy)
            d = d - parts[-1] * y
        s, y, sy = pairs[-1]
        d *= sy / float(np.vdot(y, y))
        for (s, y, sy), part in zip(pairs, reversed(parts), strict=True):
            d += (part - float(np.vdot(y, d)) / sy) * s
        return d


def _scale(s: np.ndarray, y: np.ndarray) -> float:
    """Return |s| / |y|, the size of the inverse Hessian that a pair shows."""
    return float(np.linalg.norm(s)) / max(float(np.linalg.norm(y)), float(np.finfo(float).tiny))


def _search(
    function: Callable[[np.ndarray], Evaluation], box: _Box, x: np.ndarray, at: Evaluation, d: np.ndarray
) -> tuple[np.ndarray, Evaluation] | None:
    """Return a point along the direction that fulfils the weak Wolfe conditions, or None (Lewis and Overton, 2013)."""
    low, high, step = 0.0, math.inf, 1.0
    best = None
    for _ in range(_TRIALS):
        x_new = box.project(x + step * d)
        change = x_new - x
        slope = float(np.vdot(at.gradient, change))
        if not slope < 0:
            break
        new = function(x_new)
        excess = new.value - at.value - slope
        if not new.value <= at.value + _ARMIJO * slope + _NOISE * abs(at.value):
            high = step
            # The least of the parabola through what is known, kept away from the ends.
            inner = -0.5 * slope / excess if math.isfinite(excess) and excess > 0 else 0.0
            step = low + (step - low) * min(max(inner, 0.1), 0.5)
            continue
        best = x_new, new
        if float(np.vdot(new.gradient, change)) >= _WOLFE * slope:
            break
        low, step = step, 2.0 * step if math.isinf(high) else 0.5 * (step + high)
    return best
