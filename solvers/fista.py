"""FISTA: accelerated proximal gradient with backtracking and restart."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.solvers.interface import Composite, Evaluation, Monitor, Solver
from mopn.solvers.numerics.precision import NOISE, Plateau
from mopn.solvers.result import Status

# Doublings of the curvature in a step, at most: 2^-60 of a step is below its rounding errors.
_MAX_DOUBLINGS = 60
# Units of the first working set, at least: sets double where the gap falls slowly.
_FIRST_WORKING_SET = 50
# The gap that a working set may leave, as a part of the gap over all units.
_WORKING_SET_GAP = 0.1
# Iterations between two lower bounds: a bound costs about as much as an iteration.
_BOUND_EVERY = 5
# First curvature, as a fraction of the problem's bound, which steps seldom need; each doubling costs an evaluation.
_FIRST_CURVATURE = 0.1
# Factor of the curvature from step to step: backtracking only raises it, and steps may become longer again.
_CURVATURE_DECAY = 0.9


@dataclass(frozen=True)
class FISTA(Solver[Composite]):
    """Accelerated proximal gradient (Beck and Teboulle, 2009), monotone.

    The step size is found by backtracking. The momentum is reset to zero when it opposes the proximal step (gradient
    restart of O'Donoghue and Candès, 2015). A point is accepted only if it decreases the objective, so the method is
    safe on non-convex problems too.

    Every fifth iteration evaluates the duality gap. Without one the run has converged when ten iterations together
    decrease the objective by less than ``tol``, relative. With 100 or more units, the iterations move a working set
    (Massias, Gramfort and Salmon, ICML 2018): the units with weights, and as many with the largest slopes, until the
    gap of the set is a tenth of the gap over all.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> features = np.random.default_rng(0).uniform(0, 1, (60, 4))
    >>> problem = mopn.OutputLayerProblem(features, features[:, 0] > 0.5, norm="l1", strength=0.1)
    >>> mopn.minimize(problem, mopn.solvers.FISTA(), tol=1e-4).gap_is_proven
    True
    """

    needs = frozenset({"composite"})

    def run(self, problem: Composite, start: Any, monitor: Monitor) -> None:
        """Iterate until the monitor ends the run, on working sets, which grow where the gap falls slowly, or on all."""
        levelled_off = Plateau(monitor.tol)
        x = start
        least_size = _FIRST_WORKING_SET
        gap = math.inf
        while (part := problem.working_set(x, least_size)) is not None:
            for x_part, fun, lower in _iterates(part.problem, x[part.kept]):
                x = np.zeros_like(x)
                x[part.kept] = x_part
                monitor(x, fun=fun, lower=part.lower)
                if fun - lower <= _WORKING_SET_GAP * (fun - part.lower):
                    break
            if fun - part.lower > 0.5 * gap:
                least_size *= 2
            gap = fun - part.lower

        for point, fun, lower in _iterates(problem, x):
            monitor(point, fun=fun, lower=lower)
            if math.isinf(lower) and levelled_off(fun):
                monitor.stop(Status.CONVERGED)
        monitor.stop(Status.STALLED)


def _iterates(problem: Composite, x: np.ndarray) -> Iterator[tuple[np.ndarray, float, float]]:
    """Yield points, objectives and the largest lower bounds, until no step decreases the objective."""
    image = problem.image(x)
    fun = problem.smooth_value(image) + problem.regularizer_value(x)
    z = x
    z_image = image
    t = 1.0
    curvature = _FIRST_CURVATURE * problem.curvature
    lower = -math.inf
    yield x, fun, lower
    for iteration in itertools.count():
        at = problem.smooth(z_image)
        if iteration % _BOUND_EVERY == 0:
            lower = max(lower, problem.dual_bound(at))
        step = _proximal_step(problem, z, at, _CURVATURE_DECAY * curvature)
        if step is None:
            return
        x_new, image_new, value, curvature = step
        fun_new = value + problem.regularizer_value(x_new)
        if not fun_new < fun:
            yield x, fun, lower
            if z is x:
                return
            z = x
            z_image = image
            t = 1.0
            continue

        if np.vdot(z - x_new, x_new - x) > 0:
            t = 1.0
        t_new = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        momentum = (t - 1.0) / t_new
        if momentum > 0:
            z = _extrapolated(x_new, x, momentum)
            z_image = _extrapolated(image_new, image, momentum)
        else:
            z = x_new
            z_image = image_new
        x = x_new
        image = image_new
        fun = fun_new
        t = t_new
        yield x, fun, lower


def _extrapolated(new: np.ndarray, old: np.ndarray, momentum: float) -> np.ndarray:
    """Return new + momentum (new - old), allocating only one array, as images are large."""
    z = new - old
    z *= momentum
    z += new
    return z


def _proximal_step(
    problem: Composite, z: np.ndarray, at: Evaluation, curvature: float
) -> tuple[np.ndarray, np.ndarray, float, float] | None:
    """Return the new point, its image, its smooth part and the curvature; None if no curvature is large enough.

    The curvature is doubled until the quadratic model at z is above the smooth part at the new point.
    """
    for _ in range(_MAX_DOUBLINGS):
        x = problem.prox(z - at.gradient / curvature, 1.0 / curvature)
        image = problem.image(x)
        value = problem.smooth_value(image)
        step = x - z
        model = at.value + np.vdot(at.gradient, step) + 0.5 * curvature * np.vdot(step, step)
        if value <= model + NOISE * abs(at.value):
            return x, image, value, curvature
        curvature *= 2.0
    return None
