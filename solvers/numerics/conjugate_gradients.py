"""Positive definite systems of Newton's method: conjugate gradients, and their preconditioner in blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["BlockPreconditioner", "conjugate_gradient"]

# Added to the diagonal of the blocks, relative: they may be singular.
_RIDGE = 1e-10
# Eigenvalues of the blocks count as this, relative to the largest, where rounding made them smaller.
_LEAST_EIGENVALUE = 1e-14
# Added to what the rows leave of the identity: with stiff rows that is 1 / stiffness, which counts.
_ROUNDING = float(np.finfo(float).eps)


def conjugate_gradient(
    product: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, int]:
    """Solve A x = b for a positive semidefinite A, from x = 0; return x and the number of iterations.

    The run ends when the residual is ``tol`` times b in the norm of the preconditioner, the one norm here that does
    not depend on how the unknowns are scaled. Every iterate is a descent direction of x'Ax/2 - b'x.
    """
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
    """Solves (B + diag(D) - sum_r e_r e_r' + z z') X = R for unknowns X (k, m), where B couples each column alone.

    Parameters
    ----------
    blocks : ndarray of shape (m, k, k)
        B, a symmetric matrix a column.
    diagonal : ndarray of shape (k, m)
        D > 0.
    rows : ndarray of shape (k, m), optional
        The vectors e_r, one within each row of X; together they must leave the matrix positive definite.
    common : ndarray of shape (k, m), optional
        The vector z.
    shift_invariant : bool, default False
        Whether the matrix that B approximates is zero on the k directions that shift all entries of a row of X by the
        same amount. B is not; the solution on these directions, from D and e_r alone, is then added (a coarse space).
    careful : bool, default False
        Decompose the blocks by eigenvalues: for those that are singular but for rounding, where it is slower.
    """

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
            self.coarse = 1.0 / np.maximum(moved, _ROUNDING * diagonal.sum(axis=1))[:, None]
        if rows is not None:
            # Woodbury: the k vectors e_r meet in one k x k matrix.
            S = np.eye(k) * (1.0 + _ROUNDING) - np.einsum("rc,crq,qc->rq", rows, self.inverses, rows, optimize=True)
            self.rows, self.capacitance = rows, np.linalg.inv(0.5 * (S + S.T))
        if common is not None:
            image = self(common)
            self.common = image, 1.0 + float(np.vdot(common, image))

    def __call__(self, R: np.ndarray) -> np.ndarray:
        """Return X."""
        X = self._solve_columns(R)
        if self.rows is not None:
            assert self.capacitance is not None
            X += self._solve_columns(self.rows * (self.capacitance @ np.sum(self.rows * X, axis=1))[:, None])
        if self.coarse is not None:
            X += self.coarse * R.sum(axis=1, keepdims=True)
        if self.common is not None:
            image, size = self.common
            X -= image * (float(np.vdot(image, R)) / size)
        return X

    def _solve_columns(self, R: np.ndarray) -> np.ndarray:
        return np.matmul(self.inverses, np.ascontiguousarray(R.T)[:, :, None])[:, :, 0].T.copy()


def _inverses(matrices: np.ndarray, *, careful: bool) -> np.ndarray:
    """Return inverses that are positive definite, as conjugate gradients ask, rounding errors included."""
    try:
        if not careful:
            roots = np.linalg.inv(np.linalg.cholesky(matrices))
            return roots.transpose(0, 2, 1) @ roots
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(matrices)
    values = np.maximum(values, _LEAST_EIGENVALUE * values.max(axis=1, initial=0.0, keepdims=True))
    return (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
