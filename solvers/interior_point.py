"""A primal-dual interior-point method with truncated Newton steps, for smooth losses with a norm as regulariser."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.solvers.interface import Barrier, LayerHessian, Monitor, Quadratic, Solver, WithBarrier
from mopn.solvers.numerics.conjugate_gradients import BlockPreconditioner, conjugate_gradient
from mopn.solvers.result import Status

__all__ = ["InteriorPoint"]

# The first level is this part of the gap at the start; levels then fall by this factor, where full steps are possible.
_FIRST, _SHRINK = 0.1, 0.1
# Sufficient decrease, and rounding errors of two values that are being compared, relative.
_ARMIJO, _NOISE = 1e-4, 1e-13
_MIN_STEP = 1e-8
_EPS = float(np.finfo(float).eps)
# The run has stalled when so many steps in a row were too short.
_PATIENCE = 3
# Levels stay above this part of what the gap measured asks for: systems solved in part do not reduce it as they say.
_LEAST_LEVEL = 1e-3
# A step is long beyond this, and should leave less than this part of the gap.
_LONG, _LAG = 0.5, 0.5
_TIGHTEST = 1e-6


@dataclass(frozen=True)
class InteriorPoint(Solver[WithBarrier]):
    """Primal-dual interior-point method, for refits to high accuracy on nearly collinear features.

    Every step solves a Newton system by conjugate gradients (truncated Newton interior point, as Koh, Kim and Boyd,
    2007, do for l1), preconditioned by the loss's curvature output by output. Neither the number of steps nor that of
    conjugate gradient iterations depends much on how collinear the features are.

    Parameters
    ----------
    cg_tol : float, default 0.02
        A Newton system is solved to this residual, relative, or to a smaller one where the gap does not follow.
    cg_iter : int, default 500
        Largest number of iterations for one system.
    prove : bool, default True
        Go on until the duality gap is below the tolerance; otherwise stop where it is estimated to be: on the central
        path it is known, but what was proven may lag far behind.
    """

    cg_tol: float = 0.02
    cg_iter: int = 500
    prove: bool = True
    needs = frozenset({"barrier"})

    def __post_init__(self) -> None:
        if not 0 < self.cg_tol < 1:
            raise ValueError(f"cg_tol must lie in (0, 1), got {self.cg_tol!r}")
        if not self.cg_iter >= 1:
            raise ValueError(f"cg_iter must be >= 1, got {self.cg_iter!r}")

    def run(self, problem: WithBarrier, start: Any, monitor: Monitor) -> None:
        """Take Newton steps until the monitor ends the run."""
        shape, image = problem.shape, problem.image(start)
        at = problem.smooth(image)
        fun = at.value + problem.regularizer_value(start)
        lower = problem.dual_bound(at)
        gap = fun - lower
        monitor(start, fun=fun, gap=gap, mu=math.nan, step=0.0, inner=0)
        if not start.size:
            monitor.stop(Status.STALLED)
        mu = _FIRST * max(gap, abs(fun) * _NOISE)
        barrier = problem.barrier(start.reshape(shape), mu, at.gradient.reshape(shape))
        degree = max(barrier.degree, 1)
        newton = _NewtonSystem(problem, self.cg_tol, self.cg_iter)
        if not np.array_equal(barrier.V, start.reshape(shape)):
            image = problem.image(barrier.V.ravel())
            at = problem.smooth(image)
        mu, short = mu / degree, 0
        while True:
            quadratic, gradient = barrier.linearize(mu)
            gradient = gradient + at.gradient.reshape(shape)
            D = newton.solve(image, quadratic, -gradient)
            step_image = problem.image(D.ravel())
            slope = float(np.vdot(gradient, D))
            step = _line_search(problem, image, step_image, at.value, barrier, D, slope)
            short = 0 if step and newton.iterations else short + 1
            both = barrier.advance(D, step)
            predicted = problem.predicted_bound(at, newton.hessian, step_image)
            image = image + step * step_image
            at = problem.smooth(image)
            x, fun = _sparsified(problem, barrier, at.value)
            lower = max(lower, problem.dual_bound(at), predicted)
            gap, before = fun - lower, gap
            newton.adjust(lagging=both > _LONG and gap > _LAG * before)
            monitor(x, fun=fun, gap=gap, mu=mu, step=both, inner=newton.iterations)
            if short == _PATIENCE or 0 < degree * mu <= _EPS * abs(fun):
                monitor.stop(Status.STALLED)
            # Half the slope is what a full step gained; less is left.
            if not self.prove and degree * barrier.complementarity - 0.5 * slope <= monitor.tol * abs(fun):
                monitor.stop(Status.ESTIMATED)
            mu = max(_SHRINK, (1.0 - both) ** 2) * barrier.complementarity
            mu = max(mu, _LEAST_LEVEL * gap / degree)


def _line_search(
    problem: WithBarrier,
    image: np.ndarray,
    step_image: np.ndarray,
    value: float,
    barrier: Barrier,
    D: np.ndarray,
    slope: float,
) -> float:
    """Halve the step until the smooth part with the barrier decreases sufficiently; 0 if that takes too long."""
    start, step = value + barrier.value(barrier.V), 1.0
    while step >= _MIN_STEP:
        new = problem.smooth_value(image + step * step_image) + barrier.value(barrier.V + step * D)
        if new <= start + _ARMIJO * step * slope + _NOISE * abs(start):
            return step
        step *= 0.5
    return 0.0


def _sparsified(problem: WithBarrier, barrier: Barrier, value: float) -> tuple[np.ndarray, float]:
    """Return the point to report, with exact zeros if they do no harm, and its objective."""
    inside, zeros = barrier.V.ravel(), barrier.sparsified().ravel()
    fun = value + problem.regularizer_value(inside)
    fun_zeros = problem.smooth_value(problem.image(zeros)) + problem.regularizer_value(zeros)
    return (zeros, fun_zeros) if fun_zeros <= fun + _NOISE * abs(fun) else (inside, fun)


class _NewtonSystem:
    """Solves Newton systems; the blocks of the preconditioner are renewed when conjugate gradients slow down."""

    def __init__(self, problem: WithBarrier, tol: float, max_iter: int) -> None:
        self.problem, self.loosest, self.max_iter = problem, tol, max_iter
        self.tol = tol
        self.blocks: np.ndarray | None = None
        self.hessian: LayerHessian | None = None
        self.iterations, self.fresh, self.excess = 0, 0, 0

    def adjust(self, *, lagging: bool) -> None:
        """Solve the next systems more exactly if the gap did not follow a long step: what was left holds it up."""
        self.tol = max(0.1 * self.tol, _TIGHTEST) if lagging else min(10.0 * self.tol, self.loosest)

    def solve(self, image: np.ndarray, quadratic: Quadratic, force: np.ndarray) -> np.ndarray:
        """Solve (hessian + quadratic) D = force."""
        hessian = self.hessian = self.problem.hessian(image)
        blocks = self.blocks
        renewed = blocks is None or self.excess > self.problem.shape[0] / 2
        if blocks is None or renewed:
            blocks = self.blocks = hessian.blocks()
        parts = quadratic.diagonal, quadratic.rows, quadratic.common
        for careful in (False, True):
            preconditioner = BlockPreconditioner(
                blocks, *parts, shift_invariant=hessian.shift_invariant, careful=careful
            )
            D, self.iterations = conjugate_gradient(
                lambda X: hessian.product(X) + quadratic.product(X), force, preconditioner, self.tol, self.max_iter
            )
            # Nothing done: rounding has made the preconditioner indefinite.
            if self.iterations:
                break
        # Blocks cost as much as k / 2 iterations at most: that many more than with fresh ones are worth new ones.
        if renewed:
            self.fresh, self.excess = self.iterations, 0
        else:
            self.excess += max(self.iterations - self.fresh, 0)
        return D
