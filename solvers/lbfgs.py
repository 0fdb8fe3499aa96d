"""L-BFGS for smooth problems, with or without bounds."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.lapack import dtrtrs

from mopn.solvers.interface import Evaluation, Metric, Monitor, Smooth, Solver
from mopn.solvers.numerics.precision import NOISE, Plateau, dot, negligible_decrease
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import check_nonnegative, check_options, count

# Iterates of a function that is not convex double an error every few steps: from 1e-16 to another local minimum. A grid
# removes the error in every step, except at the border of two cells.
# Bits of a variable on the grid, and of a derivative in units of the value and of the variable's typical step.
_GRID_BITS = 24
# Bits of a value on the grid, relative to the first value.
_VALUE_BITS = 34
# Sufficient decrease, as a fraction of the decrease along the slope: the first of the weak Wolfe conditions.
ARMIJO = 1e-4
# The fraction of the slope that may be left: the second of the weak Wolfe conditions.
_WOLFE = 0.9
# Values on a line, at most: 40 halvings leave 1e-12 of the first step.
_MAX_TRIALS = 40
# Least <s, y> of a pair, relative to the lengths of both: smaller ones are mostly rounding errors.
_LEAST_CURVATURE = 1e-10
# Distance from a bound, relative to the distance of both bounds, within which variables go there as a last resort.
_BOUND_MARGIN = 1e-3
# Iterations between two metrics: a metric takes as long as several iterations.
_METRIC_EVERY = 50
# The default number of correction pairs: a step reads all of them.
_MAX_PAIRS = 20
# The least default number of correction pairs, however large they are.
_MIN_PAIRS = 10
# Bytes that pairs beyond the least number may take: outside the cache they cost more iterations than they save.
_MAX_PAIR_BYTES = 1 << 24
_MEMORY = count().or_none()

Function = Callable[[np.ndarray], Evaluation]


@dataclass(frozen=True)
class LBFGS(Solver[Smooth]):
    """Limited-memory BFGS (Nocedal, 1980), with weak Wolfe steps; within bounds by projection (Bertsekas, 1982).

    :func:`mopn.solvers.lbfgs.quasi_newton` yields the iterates.

    Parameters
    ----------
    memory : int, optional
        Number of correction pairs kept. Default 20, but no more than fit in 16 MiB, and at least 10: a step reads all
        pairs, and outside the cache this takes longer than the iterations that more pairs save.
    gtol : float, default 1e-8
        The run also ends when minus the inner product of the gradient and the quasi-Newton step is at most ``gtol**2``
        times ``abs(fun)``, whatever the units of the data. Without a certificate the run has then converged, and also
        when ten iterations together decrease the objective by less than ``tol``, relative.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.FactorizationProblem(X, X[:, 0] * X[:, 1], n_components=2, beta=0.1)
    >>> mopn.minimize(problem, mopn.solvers.LBFGS(), tol=1e-6).status.name
    'CONVERGED'
    """

    memory: int | None = None
    gtol: float = 1e-8
    needs = frozenset({"gradient"})
    # Whether points and gradients are on a grid.
    coarse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self, memory=_MEMORY, gtol=check_nonnegative)

    def run(self, problem: Smooth, start: Any, monitor: Monitor) -> None:
        """Iterate until the monitor ends the run."""
        levelled_off = Plateau(monitor.tol)
        start_fun = math.nan
        gtol = max(self.gtol, math.sqrt(problem.resolution))
        metric = partial(problem.metric, tol=monitor.tol)
        iterates = quasi_newton(
            problem.value_gradient, start, self._number_of_pairs(start), problem.bounds, problem.scales, metric,
            coarse=self.coarse,
        )  # fmt: skip
        for x, at, decrease in iterates:
            if math.isnan(start_fun):
                start_fun = at.value
            lower = problem.dual_bound(at)
            certified = math.isfinite(lower)
            monitor(x, fun=at.value, lower=lower)
            if not certified and monitor.tol > 0 and levelled_off(at.value):
                monitor.stop(Status.CONVERGED)
            if decrease <= negligible_decrease(gtol, at.value, start_fun):
                monitor.stop(Status.STALLED if certified else Status.CONVERGED)
        monitor.stop(Status.STALLED)

    def _number_of_pairs(self, start: Any) -> int:
        if self.memory is not None:
            return self.memory
        pair_bytes = 2 * max(start.nbytes, 1)
        return min(_MAX_PAIRS, max(_MIN_PAIRS, _MAX_PAIR_BYTES // pair_bytes))


@dataclass(frozen=True)
class CoarseLBFGS(LBFGS):
    """L-BFGS on a grid, so that rounding errors do not choose between local minima; for ``tol >= 1e-6``."""

    coarse: ClassVar[bool] = True


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
    """Yield the iterates of L-BFGS with weak Wolfe steps, until no step decreases the function.

    Variables at an active bound are left out of the step, which is projected (Bertsekas, 1982). SciPy's L-BFGS-B calls
    a second BLAS library: with several threads it and NumPy's wait for each other, many times longer than the method
    computes.
    """
    scales = np.ones(1) if scales is None else scales
    box = _Box(bounds, coarse=coarse)
    pairs = _CorrectionPairs(memory, scales)
    if coarse:
        x = box.project(x)
        function = OnGrid(function, scales)
    at = function(x)
    for iteration in itertools.count():
        if metric is not None and iteration % _METRIC_EVERY == 0:
            pairs.metric = metric(x)
        held = box.held(x, at.gradient)
        d = pairs.direction(at, held)
        decrease = dot(at.gradient, x - box.project(x + d))
        decrease_is_known = (len(pairs) > 0 and decrease > 0.0) or not d.any()
        yield x, at, decrease if decrease_is_known else math.inf

        found = _search(function, box, x, at, d)
        if found is None and len(pairs):
            pairs.clear()
            found = _search(function, box, x, at, pairs.direction(at, held))
        if found is None and len(near := box.held(x, at.gradient, _BOUND_MARGIN)) > len(held):
            d = pairs.direction(at, near)
            d[near] = box.to_bounds(x, at.gradient)[near]
            found = _search(function, box, x, at, d)
        if found is None:
            return

        x_new, at_new = found
        pairs.add(x_new - x, at_new.gradient - at.gradient)
        x = x_new
        at = at_new


class _Box:
    """Bounds on the variables, or none; if ``coarse``, variables are also on a grid."""

    def __init__(self, bounds: tuple[np.ndarray, np.ndarray] | None, *, coarse: bool) -> None:
        self.bounds = bounds
        self.coarse = coarse
        if bounds is not None:
            widths = bounds[1] - bounds[0]
            self.widths = np.where(np.isfinite(widths), widths, 0.0)

    def project(self, x: np.ndarray) -> np.ndarray:
        x = on_grid(x) if self.coarse else x
        return x if self.bounds is None else np.clip(x, *self.bounds)

    def held(self, x: np.ndarray, gradient: np.ndarray, margin: float = 0.0) -> np.ndarray:
        """Return the variables at a bound, or within a margin of it, that minus the gradient leads to.

        Without a margin a step may be cut off at once in variables near a bound, and its rest be no descent (Bertsekas,
        1982).
        """
        if self.bounds is None:
            return np.zeros(0, int)
        return np.flatnonzero(np.abs(self.to_bounds(x, gradient)) <= margin * self.widths)

    def to_bounds(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the steps to the bounds that minus the gradient leads to."""
        assert self.bounds is not None
        lower, upper = self.bounds
        return np.where(gradient > 0, lower, upper) - x


class _LatestRows:
    """The latest rows that were added, ``most`` of them, from the oldest on: a view of a buffer with more room."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows = np.empty((0, 0))
        self._buffer = np.empty((0, 0))
        self._end = 0

    def add(self, row: np.ndarray) -> None:
        if not self._end:
            self._buffer = np.empty((self.most + (self.most + 1) // 2, row.size))
        elif self._end == len(self._buffer):
            # The rest of the buffer fills up before rows move again.
            self._end = self.most - 1
            self._buffer[: self._end] = self.rows[1:].copy()
        self._buffer[self._end] = row
        self._end += 1
        self.rows = self._buffer[max(self._end - self.most, 0) : self._end]


class _CorrectionPairs:
    """The latest steps S and changes Y of the gradient, in rows from the oldest on.

    R is upper triangular, with the products <s_i, y_j> for i <= j; ``least`` are the smallest useful ones on its
    diagonal.
    """

    def __init__(self, memory: int, scales: np.ndarray) -> None:
        self.memory = memory
        self.scales = scales
        self.metric: Metric | None = None
        self.clear()

    def clear(self) -> None:
        self._steps = _LatestRows(self.memory)
        self._changes = _LatestRows(self.memory)
        self.R = np.empty((0, 0))
        self.least = np.empty(0)

    @property
    def S(self) -> np.ndarray:
        return self._steps.rows

    @property
    def Y(self) -> np.ndarray:
        return self._changes.rows

    def __len__(self) -> int:
        return len(self.R)

    def add(self, s: np.ndarray, y: np.ndarray) -> None:
        sy = dot(s, y)
        least = _LEAST_CURVATURE * _length(s / self.scales) * _length(y * self.scales)
        if not (self.memory and sy > least):
            return
        kept = slice(max(len(self) + 1 - self.memory, 0), None)
        self._steps.add(s)
        self._changes.add(y)
        R = np.zeros((len(self.S), len(self.S)))
        R[:-1, :-1] = self.R[kept, kept]
        R[:-1, -1] = self.S[:-1] @ y
        R[-1, -1] = sy
        self.R = R
        self.least = np.append(self.least[kept], least)

    def direction(self, at: Evaluation, held: np.ndarray) -> np.ndarray:
        """Return minus the inverse Hessian times the gradient, 0 where held.

        The two loops of the recursion are triangular systems with R (Byrd, Nocedal and Schnabel, Representations of
        quasi-Newton matrices, 1994).
        """
        d = -at.gradient
        d[held] = 0.0
        S, Y, R = self._among_free(held)
        if not len(S):
            if self.metric is not None:
                return self.metric.solve(d, held)
            # In units of the objective, the first step is along minus the gradient, and has length one at most.
            d *= self.scales
            size = max(abs(at.value), _length(d))
            return d * self.scales / (size or 1.0)

        coefficients, _ = dtrtrs(R, S @ d)
        d -= coefficients @ Y
        d[held] = 0.0
        d = self._in_metric(d, Y[-1], R[-1, -1], held)
        steps, _ = dtrtrs(R, np.diag(R) * coefficients - Y @ d, trans=1)
        d += steps @ S
        d[held] = 0.0
        return d

    def _in_metric(self, d: np.ndarray, y: np.ndarray, sy: float, held: np.ndarray) -> np.ndarray:
        """Return d, zero where held, times the first approximation of the inverse Hessian.

        It is the metric, or the squared scales, times a factor for which it takes y to a step of the same <s, y>.
        """
        y = y.copy()
        y[held] = 0.0
        if self.metric is not None:
            factor = sy / dot(y, self.metric.solve(y, held))
            return self.metric.solve(d, held) * factor
        y *= self.scales
        d *= sy / dot(y, y) * self.scales**2
        return d

    def _among_free(self, held: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return S, Y and R of the pairs whose free parts have inner products beyond rounding errors."""
        S = self.S
        Y = self.Y
        R = self.R
        if len(held) and len(S):
            R = R - np.triu(S[:, held] @ Y[:, held].T)
            left = np.diag(R) > self.least
            S = S[left]
            Y = Y[left]
            R = R[np.ix_(left, left)]
        return S, Y, R


def _length(v: np.ndarray) -> float:
    return math.sqrt(dot(v, v))


def _search(
    function: Function, box: _Box, x: np.ndarray, at: Evaluation, d: np.ndarray
) -> tuple[np.ndarray, Evaluation] | None:
    """Return a point along d that satisfies the weak Wolfe conditions (Lewis and Overton, 2013), or None."""
    low = 0.0
    high = math.inf
    step = 1.0
    best = None
    for _ in range(_MAX_TRIALS):
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
            fraction = min(max(inner, 0.1), 0.5)
            step = low + (step - low) * fraction
            continue
        best = x_new, new
        if dot(new.gradient, change) >= _WOLFE * slope:
            break
        low = step
        step = 2.0 * step if math.isinf(high) else 0.5 * (step + high)
    return best


def on_grid(x: np.ndarray) -> np.ndarray:
    """Return the nearest numbers on the grid of variables."""
    mantissas, exponents = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissas, _GRID_BITS)), exponents - _GRID_BITS)


class OnGrid:
    """A function with rounded values and gradients, on grids set by its first value and the scales of variables."""

    def __init__(self, function: Callable[[np.ndarray], Evaluation], scales: np.ndarray) -> None:
        self.function = function
        self._scale_exponents = _exponents(scales)
        self._size: int | None = None

    def __call__(self, x: np.ndarray) -> Evaluation:
        """Return the rounded value and gradient."""
        at = self.function(x)
        if not np.isfinite(at.value):
            return at
        if self._size is None:
            self._size = int(_exponents(abs(at.value)))
        value = _rounded(at.value, self._size - _VALUE_BITS)
        gradient = _rounded(at.gradient, self._size - self._scale_exponents - _GRID_BITS)
        return Evaluation(float(value), gradient)


def _exponents(sizes: np.ndarray | float) -> np.ndarray:
    """Return the binary exponents of the nearest powers of two; 0 for 0."""
    # Rounding happens far from round numbers, where errors would choose.
    return np.rint(np.log2(np.where(np.greater(sizes, 0.0), sizes, 1.0))).astype(int)


def _rounded(values: np.ndarray | float, exponents: np.ndarray | int) -> np.ndarray:
    """Return the nearest multiples of these powers of two."""
    return np.ldexp(np.rint(np.ldexp(values, -exponents)), exponents)
