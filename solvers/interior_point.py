"""A primal-dual interior-point method, for smooth losses and a norm as regulariser, by preconditioned Newton steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.solvers.interface import Barrier, BarrierHessian, Evaluation, LayerHessian, Monitor, Solver, WithBarrier
from mopn.solvers.lbfgs import ARMIJO
from mopn.solvers.numerics.precision import EPS, JITTER, NOISE
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import check_flag, check_options


def conjugate_gradient(
    product: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, int]:
    """Solve A x = b for A >= 0 from x = 0 to ``tol`` in the preconditioner's norm; return x and iterations."""
    x = np.zeros_like(b)
    r = b
    z = precondition(r)
    p = z
    rho = float(np.vdot(r, z))
    target = tol**2 * rho
    for iteration in range(max_iter):
        if not rho > target:
            return x, iteration
        q = product(p)
        curvature = float(np.vdot(p, q))
        if not curvature > 0:
            return x, iteration
        step = rho / curvature
        x += step * p
        r = r - step * q
        z = precondition(r)
        previous = rho
        rho = float(np.vdot(r, z))
        p = z + (rho / previous) * p
    return x, max_iter


class BlockPreconditioner:
    """Solves (B + diag(D) - sum_r e_r e_r' + z z') X = R for X (k, m), with a B that acts on each column separately."""

    def __init__(
        self,
        blocks: np.ndarray,
        diagonal: np.ndarray,
        rows: np.ndarray | None,
        common: np.ndarray | None,
        *,
        shift_invariant: bool = False,
        careful: bool = False,
    ) -> None:
        _, k, _ = blocks.shape
        matrices = blocks.copy()
        entries = np.arange(k)
        matrices[:, entries, entries] *= 1.0 + JITTER
        matrices[:, entries, entries] += diagonal.T
        self.inverses = _inverses(matrices, careful=careful)
        self.rows = self.capacitance = self.common = self.coarse = None
        if shift_invariant:
            of_rows = 0.0 if rows is None else rows.sum(axis=1) ** 2
            along_shifts = diagonal.sum(axis=1) - of_rows
            # Right-hand sides have rounding errors of B and D, too.
            whole = diagonal.sum(axis=1) + np.einsum("crr->r", blocks)
            self.coarse = 1.0 / np.maximum(along_shifts, EPS * whole)[:, None]
        if rows is not None:
            # Woodbury formula, with a capacitance matrix for the k vectors e_r. With stiff rows its least eigenvalue is
            # 1 / stiffness, so no more than EPS is added.
            S = np.eye(k) * (1.0 + EPS) - np.einsum("rc,crq,qc->rq", rows, self.inverses, rows, optimize=True)
            self.rows = rows
            self.capacitance = _inverse(0.5 * (S + S.T))
        if common is not None:
            image = self(common)
            self.common = image, 1.0 + float(np.vdot(common, image))

    def __call__(self, R: np.ndarray) -> np.ndarray:
        """Return X."""
        X = self._solve_columns(R)
        if self.rows is not None and self.capacitance is not None:
            coefficients = self.capacitance @ np.sum(self.rows * X, axis=1)
            X += self._solve_columns(self.rows * coefficients[:, None])
        if self.coarse is not None:
            X += self.coarse * R.sum(axis=1, keepdims=True)
        if self.common is not None:
            image, size = self.common
            X -= image * (float(np.vdot(image, R)) / size)
        return X

    def _solve_columns(self, R: np.ndarray) -> np.ndarray:
        """Return (B + diag(D))^-1 R."""
        columns = np.ascontiguousarray(R.T)[:, :, None]
        return np.matmul(self.inverses, columns)[:, :, 0].T.copy()


def _inverse(capacitance: np.ndarray) -> np.ndarray:
    """Return the inverse of a matrix, or of one that differs by rounding errors if it is singular."""
    try:
        return np.linalg.inv(capacitance)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(capacitance)
        return (vectors / np.maximum(values, EPS)) @ vectors.T


def _inverses(matrices: np.ndarray, *, careful: bool) -> np.ndarray:
    """Return inverses that are positive definite despite rounding errors, as conjugate gradients require."""
    try:
        if not careful:
            roots = np.linalg.inv(np.linalg.cholesky(matrices))
            return roots.transpose(0, 2, 1) @ roots
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(matrices)
    values = np.maximum(values, NOISE * values.max(axis=1, initial=0.0, keepdims=True))
    return (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)


# The first mu, as a fraction of the gap at the start: a far smaller one starts off the central path.
_FIRST_MU = 0.1
# The least factor of mu in a step; a full step takes it.
_MU_FACTOR = 0.1
# Rounding error in the comparison of two values, relative, also where they include barriers.
_NOISE = 1e-13
# Length of a step below which a line search has failed.
_MIN_STEP = 1e-8
# Failed steps in a row after which the run has stalled.
_MAX_FAILED_STEPS = 3
# The least mu, as a fraction of the mu of the measured gap, which inexact steps reduce less than predicted.
_LEAST_MU = 1e-3
# Length of a step from which on it should reduce the gap, ...
_LONG_STEP = 0.5
# ... to less than this fraction; otherwise the next systems are solved more accurately.
_LAGGING_GAP = 0.5
# The least tolerance of conjugate gradients.
_LEAST_TOL = 1e-6


@dataclass(frozen=True)
class InteriorPoint(Solver[WithBarrier]):
    """Primal-dual interior-point method, for refits to high accuracy on nearly collinear features.

    Every step solves a Newton system by conjugate gradients (a truncated Newton interior-point method; for l1: Koh,
    Kim and Boyd, 2007). The preconditioner is the curvature of the loss for each output alone. The numbers
    of steps and of conjugate gradient iterations depend little on how collinear the features are.

    Parameters
    ----------
    prove : bool, default True
        Run until the duality gap is proven to be below the tolerance. If False, stop when it is estimated to be: near
        the central path the gap is known approximately, and the proven one may be much larger.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> features = np.random.default_rng(0).uniform(0, 1, (60, 4))
    >>> problem = mopn.OutputLayerProblem(features, features[:, 0] > 0.5, norm="l1", strength=0.1)
    >>> result = mopn.minimize(problem, mopn.solvers.InteriorPoint(), tol=1e-8)
    >>> result.status.name, result.nit < 30
    ('CONVERGED', True)
    """

    prove: bool = True
    needs = frozenset({"barrier"})

    def __post_init__(self) -> None:
        check_options(self, prove=check_flag)

    def run(self, problem: WithBarrier, start: Any, monitor: Monitor) -> None:
        """Take Newton steps until the monitor ends the run."""
        shape = problem.shape
        image = problem.image(start)
        at = problem.smooth(image)
        fun = at.value + problem.regularizer_value(start)
        lower = problem.dual_bound(at)
        gap = fun - lower
        monitor(start, fun=fun, lower=lower, mu=math.nan, step=0.0, inner=0)
        if not start.size:
            monitor.stop(Status.STALLED)

        mu = _FIRST_MU * max(gap, abs(fun) * _NOISE)
        barrier, image, at = _moved_inside(problem, start, image, at, mu)
        newton = _NewtonSystem(problem)
        degree = barrier.degree
        failed = 0
        mu /= degree
        while True:
            quadratic, gradient = barrier.linearize(mu)
            gradient = gradient + at.gradient.reshape(shape)
            D = newton.solve(image, quadratic, -gradient)
            step_image = problem.image(D.ravel())
            slope = float(np.vdot(gradient, D))
            step = _line_search(problem, image, step_image, at.value, barrier, D, slope)
            failed = 0 if step and newton.iterations else failed + 1
            common_step = barrier.advance(D, step)

            predicted = problem.predicted_bound(at, newton.hessian, step_image)
            image = image + step * step_image
            at = problem.smooth(image)
            x, fun = _sparsified(problem, barrier, at.value)
            lower = max(lower, problem.dual_bound(at), predicted)
            previous_gap = gap
            gap = fun - lower
            newton.adjust(lagging=common_step > _LONG_STEP and gap > _LAGGING_GAP * previous_gap)
            monitor(x, fun=fun, lower=lower, mu=mu, step=common_step, inner=newton.iterations)
            if failed == _MAX_FAILED_STEPS or degree * mu <= EPS * abs(fun):
                monitor.stop(Status.STALLED)
            # A full Newton step decreases the objective by about minus half the slope; the rest is smaller.
            if not self.prove and degree * barrier.complementarity - 0.5 * slope <= monitor.tol * abs(fun):
                monitor.stop(Status.ESTIMATED)
            mu = max(_MU_FACTOR, (1.0 - common_step) ** 2) * barrier.complementarity
            mu = max(mu, _LEAST_MU * gap / degree)


def _moved_inside(
    problem: WithBarrier, start: np.ndarray, image: np.ndarray, at: Evaluation, mu: float
) -> tuple[Barrier, np.ndarray, Evaluation]:
    """Return the barrier at the start, moved into its domain, and the image and the evaluation there."""
    V = start.reshape(problem.shape)
    barrier = problem.barrier(V, mu, at.gradient.reshape(problem.shape))
    if not np.array_equal(barrier.V, V):
        image = problem.image(barrier.V.ravel())
        at = problem.smooth(image)
    return barrier, image, at


def _line_search(
    problem: WithBarrier, image: np.ndarray, way: np.ndarray, fun: float, barrier: Barrier, D: np.ndarray, slope: float
) -> float:
    """Halve the step until the sum of smooth part and barrier decreases sufficiently; return 0 if none is found."""
    start = fun + barrier.value(barrier.V)
    step = 1.0
    while step >= _MIN_STEP:
        new = problem.smooth_value(image + step * way) + barrier.value(barrier.V + step * D)
        if new <= start + ARMIJO * step * slope + _NOISE * abs(start):
            return step
        step *= 0.5
    return 0.0


def _sparsified(problem: WithBarrier, barrier: Barrier, value: float) -> tuple[np.ndarray, float]:
    """Return the point to report and its objective, with exact zeros unless they increase the objective."""
    inside = barrier.V.ravel()
    zeros = barrier.sparsified().ravel()
    fun = value + problem.regularizer_value(inside)
    fun_zeros = problem.smooth_value(problem.image(zeros)) + problem.regularizer_value(zeros)
    if fun_zeros <= fun + _NOISE * abs(fun):
        return zeros, fun_zeros
    return inside, fun


class _NewtonSystem:
    """Solves Newton systems; the preconditioner is renewed when conjugate gradients take many more iterations."""

    # The largest relative residual of conjugate gradients: enough for the first steps.
    largest_tol = 0.02
    # Iterations of conjugate gradients for a system, at most.
    max_iter = 500

    def __init__(self, problem: WithBarrier) -> None:
        self.problem = problem
        self.tol = self.largest_tol
        self.blocks: np.ndarray | None = None
        self.hessian: LayerHessian | None = None
        self.iterations = 0
        self.iterations_when_new = 0
        self.additional = 0

    def adjust(self, *, lagging: bool) -> None:
        """Decrease the tolerance of the next systems if a long step decreased the gap too little; relax it if not."""
        if lagging:
            self.tol = max(0.1 * self.tol, _LEAST_TOL)
        else:
            self.tol = min(10.0 * self.tol, self.largest_tol)

    def solve(self, image: np.ndarray, quadratic: BarrierHessian, force: np.ndarray) -> np.ndarray:
        hessian = self.hessian = self.problem.hessian(image)
        # Blocks take at most as long as k / 2 iterations, so they are renewed after that many additional iterations.
        renewed = self.blocks is None or self.additional > self.problem.shape[0] / 2
        if self.blocks is None or renewed:
            self.blocks = hessian.blocks()

        parts = quadratic.diagonal, quadratic.rows, quadratic.common
        for careful in (False, True):
            shift = hessian.shift_invariant
            preconditioner = BlockPreconditioner(self.blocks, *parts, shift_invariant=shift, careful=careful)
            D, self.iterations = conjugate_gradient(
                lambda X: hessian.product(X) + quadratic.product(X), force, preconditioner, self.tol, self.max_iter
            )
            # No iteration was possible: rounding errors have made the preconditioner indefinite.
            if self.iterations:
                break

        if renewed:
            self.iterations_when_new = self.iterations
            self.additional = 0
        self.additional += max(self.iterations - self.iterations_when_new, 0)
        return D
