"""Plain conditional gradient steps: line search, the short step, the open loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from scipy.optimize import minimize_scalar

from mopn.solvers.conditional_gradient.corrective_step import CorrectiveRun, CorrectiveStep
from mopn.solvers.conditional_gradient.schedule import Schedule
from mopn.solvers.interface import Atomic, AtomicPoint, AtOutputs, Monitor, Segment
from mopn.solvers.numerics.precision import NOISE
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import check_options, choice

RULES = ("line-search", "open-loop", "short")
Direction = Literal["towards", "away", "pairwise"]
# The first interval of a line search, relative to the short step, and the factor by which it grows.
_INTERVAL_FACTOR = 10.0
# It grows while the best step exceeds this fraction of the interval.
_NEAR_END_FRACTION = 0.9
# Tolerance of the best step, relative to the interval, where no refit corrects it.
_STEP_TOL = 1e-10
# Difference of slopes, relative to the gap, up to which vertices are equally bad.
_SLOPE_TIE = 1e-6
# Decrease, relative to the objective, that is negligible.
_NEGLIGIBLE_DECREASE = 1e-16


@dataclass(frozen=True)
class PlainStep(CorrectiveStep):
    """The step U <- U + gamma D of conditional gradient, without refits: D = Delta - U for the best vertex Delta.

    With away and pairwise steps units leave again (Lacoste-Julien and Jaggi, NIPS 2015; their linear rate is for
    polytopes). The point is a combination of its units' vertices Delta_r and of 0. The worst one has the largest slope;
    a step that takes its whole coefficient drops it.

    Parameters
    ----------
    rule : {"line-search", "open-loop", "short"}, default "line-search"
        Exact line search; gamma = 2 / (t + 2) in iteration t, whose first step gamma = 1 discards the start; or the
        short step with an adaptive smoothness constant (Pedregosa et al., 2020).
    direction : {"towards", "away", "pairwise"}, default "towards"
        Towards the best vertex; or away from the worst one, D = U - Delta_r, where the gap along that is larger; or
        from the worst one straight to the best one, D = Delta - Delta_r.

    Raises
    ------
    ValueError
        For unknown names, and for the open loop with another direction: its steps may be longer than the coefficients.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> step = mopn.solvers.PlainStep("open-loop")
    >>> result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(step), tol=0, max_iter=20)
    >>> result.nit, result.gap_is_proven
    (20, True)
    """

    needs = frozenset({"atomic"})
    units_per_round = 1

    rule: str = "line-search"
    direction: Direction = "towards"

    def __post_init__(self) -> None:
        check_options(self, rule=choice(RULES), direction=choice(get_args(Direction)))
        if self.rule == "open-loop" and self.direction != "towards":
            raise ValueError(
                f"direction={self.direction!r} needs steps that decrease the objective: give rule='line-search' or "
                "'short' instead of 'open-loop'"
            )

    def begin(self, problem: Atomic, monitor: Monitor, schedule: Schedule) -> CorrectiveRun:
        """Return the steps of one run."""
        return _Stepper(self, problem, monitor)


class _Stepper(CorrectiveRun):
    """Plain steps in one run; the least objective so far bounds the norm of a minimiser."""

    def __init__(self, options: PlainStep, problem: Atomic, monitor: Monitor) -> None:
        super().__init__(problem, monitor)
        self.rule, self.direction = options.rule, options.direction
        self.t = 0
        self.curvature = math.nan
        self.least = math.inf

    def insert(self, point: AtomicPoint, at: AtOutputs, units: Any) -> AtomicPoint:
        self.least = min(self.least, at.value)
        segment = self._segment(point, at, units)
        if self.rule == "open-loop":
            gamma = 2.0 / (self.t + 2.0)
        elif self.rule == "line-search":
            gamma = line_search(segment)
        else:
            gamma, self.curvature = _short_step(segment, self.curvature)
        self.t += 1
        return segment.point(gamma)

    def _segment(self, point: AtomicPoint, at: AtOutputs, units: Any) -> Segment:
        """Return the segment in the direction of this run."""
        segment = partial(self.problem.segment, point, at, least=self.least)
        if self.direction == "towards":
            return segment(units)
        slopes = self.problem.active_units(point, at, least=self.least).slopes
        if self.direction == "pairwise":
            return _away_from_worst(partial(segment, units), slopes)
        towards = segment(units)
        away = _away_from_worst(partial(segment, None), slopes)
        return max(towards, away, key=lambda along: along.gap)

    def improve(self, point: AtomicPoint) -> AtomicPoint:
        return point.drop_zero_units()

    def polish(self, point: AtomicPoint) -> NoReturn:
        self.monitor.stop(Status.MAX_UNITS)


def _away_from_worst(segment: Callable[..., Segment], slopes: np.ndarray) -> Segment:
    """Return the segment away from the worst vertex; among equally bad ones from the last, as 0 is the last one."""
    # A line search ends where both vertices of a pairwise step are equally bad, so that rounding would choose.
    worst = int(np.argmax(slopes))
    found = segment(away=worst)
    last = int(np.flatnonzero(slopes >= slopes[worst] - _SLOPE_TIE * max(found.gap, 0.0))[-1])
    return found if last == worst else segment(away=last)


def line_search(segment: Segment, tol: float = _STEP_TOL) -> float:
    """Return the best step on [0, limit] of a convex objective, up to ``tol``, relative to an interval around it.

    A limit that is as good as the best step, up to rounding errors, is taken: else negligible shares of a vertex would
    stay for ever.
    """
    # The best step may be tiny if the vertex is far away, so the interval starts near the short step and grows.
    curvature = max(segment.curvature * segment.squared_length, math.ulp(0.0))
    upper = min(segment.limit, _INTERVAL_FACTOR * segment.gap / curvature)
    if not upper > 0:
        return 0.0
    while True:
        options = {"xatol": tol * upper}
        found = minimize_scalar(segment.value, bounds=(0.0, upper), method="bounded", options=options)
        if upper == segment.limit or found.x < _NEAR_END_FRACTION * upper:
            values = {0.0: segment.value(0.0), upper: segment.value(upper), float(found.x): found.fun}
            if upper == segment.limit and values[upper] <= min(values.values()) + NOISE * abs(values[0.0]):
                return upper
            return min(values, key=values.__getitem__)
        upper = min(segment.limit, _INTERVAL_FACTOR * upper)


def _short_step(segment: Segment, curvature: float) -> tuple[float, float]:
    """Take the step min(1, gap / (L ||D||^2)) with L backtracked until the quadratic model lies above the objective."""
    curvature = segment.curvature if math.isnan(curvature) else 0.5 * curvature
    # An approximate oracle may return a vertex that is worse than the point itself.
    if not segment.gap > 0:
        return 0.0, curvature
    start = segment.value(0.0)
    while True:
        gamma = min(segment.limit, segment.gap / max(curvature * segment.squared_length, math.ulp(0.0)))
        model = start - gamma * segment.gap + 0.5 * gamma**2 * curvature * segment.squared_length
        is_low = segment.value(gamma) <= model + NOISE * abs(start)
        if is_low or gamma * segment.gap <= _NEGLIGIBLE_DECREASE * abs(start):
            return gamma, curvature
        curvature *= 2.0
