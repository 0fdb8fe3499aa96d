"""Conjugate gradients for the positive definite systems of Newton's method, and a block preconditioner."""

from collections.abc import Callable

import numpy as np

from mopn.solvers.numerics.precision import EPS

# Added to the diagonal of the blocks, relative, as they may be singular.
_RIDGE = 1e-10
# Least eigenvalue of the blocks, relative to the largest; rounding errors may have made it smaller, or negative.
_LEAST_EIGENVALUE = 1e-14


def conjugate_gradient(
    product: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, int]:
    """Solve A x = b for A >= 0 from x = 0 to ``tol`` in the preconditioner's norm; return x and iterations."""
    x, r = np.zeros_like(b), b
    z = precondition(r)
    p, rho = z, float(np.vdot(r, z))
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
        rho, previous = float(np.vdot(r, z)), rho
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
        matrices[:, entries, entries] *= 1.0 + _RIDGE
        matrices[:, entries, entries] += diagonal.T
        self.inverses = _inverses(matrices, careful=careful)
        self.rows = self.capacitance = self.common = self.coarse = None
        if shift_invariant:
            moved = diagonal.sum(axis=1) - (0.0 if rows is None else rows.sum(axis=1) ** 2)
            # Right-hand sides have rounding errors of B and D, too.
            whole = diagonal.sum(axis=1) + np.einsum("crr->r", blocks)
            self.coarse = 1.0 / np.maximum(moved, EPS * whole)[:, None]
        if rows is not None:
            # Woodbury formula, with a capacitance matrix for the k vectors e_r. With stiff rows its least eigenvalue is
            # 1 / stiffness, so no more than EPS is added.
            S = np.eye(k) * (1.0 + EPS) - np.einsum("rc,crq,qc->rq", rows, self.inverses, rows, optimize=True)
            self.rows, self.capacitance = rows, _inverse(0.5 * (S + S.T))
        if common is not None:
            image = self(common)
            self.common = image, 1.0 + float(np.vdot(common, image))

    def __call__(self, R: np.ndarray) -> np.ndarray:
        """Return X."""
        X = self._solve_columns(R)
        if self.rows is not None and self.capacitance is not None:
            X += self._solve_columns(self.rows * (self.capacitance @ np.sum(self.rows * X, axis=1))[:, None])
        if self.coarse is not None:
            X += self.coarse * R.sum(axis=1, keepdims=True)
        if self.common is not None:
            image, size = self.common
            X -= image * (float(np.vdot(image, R)) / size)
        return X

    def _solve_columns(self, R: np.ndarray) -> np.ndarray:
        return np.matmul(self.inverses, np.ascontiguousarray(R.T)[:, :, None])[:, :, 0].T.copy()


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
    values = np.maximum(values, _LEAST_EIGENVALUE * values.max(axis=1, initial=0.0, keepdims=True))
    return (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
