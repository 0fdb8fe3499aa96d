"""The iterates of L-BFGS for any smooth function, with or without bounds."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from mopn.solvers.interface import Evaluation, Metric
from mopn.solvers.numerics.dot import dot
from mopn.solvers.numerics.grid import OnGrid, on_grid
from mopn.solvers.numerics.precision import NOISE

# Weak Wolfe conditions: sufficient decrease, and the fraction of the slope that may be left.
ARMIJO, _WOLFE = 1e-4, 0.9
# Values on a line, at most: so many halvings leave 1e-12 of the first step.
_TRIALS = 40
# Least <s, y> of a pair, relative to the lengths of both.
_FLAT = 1e-10
# Variables this near to a bound, relative to the distance of both, go there if no other step decreases the function.
_MARGIN = 1e-3
# Iterations between two metrics.
_RENEWED = 50

Function = Callable[[np.ndarray], Evaluation]


def quasi_newton(
    function: Function,
    x: np.ndarray,
    memory: int,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
    scales: np.ndarray | None = None,
    metric: Callable[[np.ndarray], Metric | None] | None = None,
    *,
    coarse: bool = False,
) -> Iterator[tuple[np.ndarray, Evaluation, float]]:
    """Yield the iterates of limited-memory BFGS (Nocedal, 1980), until no step decreases the function.

    Steps satisfy the weak Wolfe conditions. With bounds, variables at an active bound are left out of the quasi-Newton
    step, and the step is projected onto the bounds (Bertsekas, 1982). SciPy's L-BFGS-B calls a second BLAS library:
    with several threads it and NumPy's wait for each other, many times longer than the method computes.
    """
    scales = np.ones(1) if scales is None else scales
    box, pairs = _Box(bounds, coarse=coarse), _CorrectionPairs(memory, scales)
    if coarse:
        x, function = box.project(x), OnGrid(function, scales)
    at = function(x)
    for iteration in itertools.count():
        if metric is not None and iteration % _RENEWED == 0:
            pairs.metric = metric(x)
        held = box.held(x, at.gradient)
        d = pairs.direction(at, held)
        decrease = dot(at.gradient, x - box.project(x + d))
        known = (pairs.kept and decrease > 0.0) or not d.any()
        yield x, at, decrease if known else math.inf
        found = _search(function, box, x, at, d)
        if found is None and pairs.kept:
            pairs.kept.clear()
            found = _search(function, box, x, at, pairs.direction(at, held))
        if found is None and len(near := box.held(x, at.gradient, _MARGIN)) > len(held):
            d = pairs.direction(at, near)
            d[near] = box.onto(x, at.gradient)[near]
            found = _search(function, box, x, at, d)
        if found is None:
            return
        x_new, at_new = found
        pairs.add(x_new - x, at_new.gradient - at.gradient)
        x, at = x_new, at_new


class _Box:
    """Bounds on the variables, or none; and whether these are on a grid."""

    def __init__(self, bounds: tuple[np.ndarray, np.ndarray] | None, *, coarse: bool) -> None:
        self.bounds, self.coarse = bounds, coarse
        if bounds is not None:
            widths = bounds[1] - bounds[0]
            self.widths = np.where(np.isfinite(widths), widths, 0.0)

    def project(self, x: np.ndarray) -> np.ndarray:
        x = on_grid(x) if self.coarse else x
        return x if self.bounds is None else np.clip(x, *self.bounds)

    def held(self, x: np.ndarray, gradient: np.ndarray, margin: float = 0.0) -> np.ndarray:
        """Return the indices of variables at a bound that minus the gradient leads to, or within a margin of it.

        Without a margin a step may be cut off at once in variables near a bound, and the rest of it be no descent in
        the variables coupled with them (Bertsekas, 1982).
        """
        if self.bounds is None:
            return np.zeros(0, int)
        return np.flatnonzero(np.abs(self.onto(x, gradient)) <= margin * self.widths)

    def onto(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the steps onto the bounds that minus the gradient leads to."""
        assert self.bounds is not None
        lower, upper = self.bounds
        return np.where(gradient > 0, lower, upper) - x


class _CorrectionPairs:
    """The latest correction pairs: steps s and changes of the gradient y, which define the inverse of the Hessian.

    They are kept with <s, y>, and its least value beyond rounding errors. Lengths are in the scaled variables, where
    the first approximation of the Hessian is a multiple of I.
    """

    def __init__(self, memory: int, scales: np.ndarray) -> None:
        self.scales = scales
        self.metric: Metric | None = None
        self.kept: deque[tuple[np.ndarray, np.ndarray, float, float]] = deque(maxlen=memory)

    def add(self, s: np.ndarray, y: np.ndarray) -> None:
        sy, least = dot(s, y), _FLAT * _length(s / self.scales) * _length(y * self.scales)
        if sy > least:
            self.kept.append((s, y, sy, least))

    def direction(self, at: Evaluation, held: np.ndarray) -> np.ndarray:
        """Return minus the inverse Hessian times the gradient by the two-loop recursion, 0 where held."""
        d = -at.gradient
        d[held] = 0.0
        pairs = list(self._among_free(held))
        if not pairs:
            if self.metric is not None:
                return self.metric.solve(d, held)
            # In units of the objective, the first step is along minus the gradient, and has length one at most.
            d *= self.scales
            return d * self.scales / (max(abs(at.value), _length(d)) or 1.0)
        parts = []
        for s, y, sy in reversed(pairs):
            parts.append(dot(s, d) / sy)
            d -= parts[-1] * y
            d[held] = 0.0
        d = self._in_metric(d, *pairs[-1][1:], held)
        for (s, y, sy), part in zip(pairs, reversed(parts), strict=True):
            d += (part - dot(y, d) / sy) * s
            d[held] = 0.0
        return d

    def _in_metric(self, d: np.ndarray, y: np.ndarray, sy: float, held: np.ndarray) -> np.ndarray:
        """Return d, zero where held, times the first approximation of the inverse Hessian, of the pair's size."""
        y = y.copy()
        y[held] = 0.0
        if self.metric is not None:
            return self.metric.solve(d, held) * (sy / dot(y, self.metric.solve(y, held)))
        y *= self.scales
        d *= sy / dot(y, y) * self.scales**2
        return d

    def _among_free(self, held: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        """Yield the pairs with inner products of their free parts beyond rounding errors."""
        for s, y, sy, least in self.kept:
            left = sy - dot(s[held], y[held])
            if left > least:
                yield s, y, left


def _length(v: np.ndarray) -> float:
    return math.sqrt(dot(v, v))


def _search(
    function: Function, box: _Box, x: np.ndarray, at: Evaluation, d: np.ndarray
) -> tuple[np.ndarray, Evaluation] | None:
    """Return a point along d that satisfies the weak Wolfe conditions (Lewis and Overton, 2013), or None."""
    low, high, step = 0.0, math.inf, 1.0
    best = None
    for _ in range(_TRIALS):
        x_new = box.project(x + step * d)
        change = x_new - x
        slope = dot(at.gradient, change)
        if not slope < 0:
            break
        new = function(x_new)
        excess = new.value - at.value - slope
        if not new.value <= at.value + ARMIJO * slope + NOISE * abs(at.value):
            high = step
            # The minimiser of the parabola through the known values, kept away from the ends of the interval.
            inner = -0.5 * slope / excess if math.isfinite(excess) and excess > 0 else 0.0
            step = low + (step - low) * min(max(inner, 0.1), 0.5)
            continue
        best = x_new, new
        if dot(new.gradient, change) >= _WOLFE * slope:
            break
        low, step = step, 2.0 * step if math.isinf(high) else 0.5 * (step + high)
    return best
