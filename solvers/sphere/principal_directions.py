"""Orthonormal bases in which few matrices and features hold most of a stack, and their rounding errors."""

import math
from typing import NamedTuple

import numpy as np

from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere.stack import DenseStack, sum_of_squares

# Size of combinations of the matrices, relative to the largest, below which they are left out.
_NOTHING = 1e-7


def principal_basis(stack: DenseStack) -> np.ndarray:
    """Return the eigenvectors (d, d) of sum_c Gamma_c^2 in columns, the largest first."""
    return np.linalg.eigh(sum_of_squares(stack.matrices))[1][:, ::-1]


def in_basis(stack: DenseStack, basis: np.ndarray) -> DenseStack:
    """Return the stack in a basis (d, d) that is orthonormal up to rounding."""
    d = len(basis)
    slack = far_from_orthonormal(basis)
    sizes = np.linalg.norm(stack.matrices, axis=(1, 2))
    error = stack.error * (1.0 + slack) ** 2 + (2.0 * slack + slack * slack + 4 * d**1.5 * EPS) * sizes
    return DenseStack(basis.T @ stack.matrices @ basis, error)


class RotatedOutputs(NamedTuple):
    """Combinations of the matrices of a stack, rows of ``basis`` (k, m): the same ||q(h)||_2, but for the left out."""

    stack: DenseStack
    basis: np.ndarray
    left_out: float
    slack: float

    def bound(self, t: float) -> float:
        """Return the bound of the whole stack for a bound t of this one."""
        return math.hypot(t, self.left_out) * (1.0 + self.slack) * (1 + 8 * EPS)


def rotated_outputs(stack: DenseStack) -> RotatedOutputs:
    """Return the combinations by the eigenvectors of the Gram matrix, the largest first, without those that vanish."""
    m, _ = stack.shape
    values, vectors = np.linalg.eigh(stack.gram())
    size = math.sqrt(float(np.sum(stack.matrices**2)))
    basis = vectors[:, ::-1].T
    kept = values[::-1] > _NOTHING**2 * values[-1]
    kept[0] = True
    matrices = stack.combine(basis)
    # Errors of the sums of m products, and of the matrices.
    error = np.abs(basis) @ stack.error + (m + 2) * EPS * size
    left_out = math.sqrt(float(np.sum(matrices[~kept] ** 2))) * (1 + 8 * EPS) + float(np.linalg.norm(error[~kept]))
    # ||q|| <= ||U'|| ||U q|| + ||I - U'U|| ||q||.
    slack = far_from_orthonormal(basis.T)
    return RotatedOutputs(DenseStack(matrices[kept], error[kept]), basis[kept], left_out, 2.0 * slack + slack * slack)


def far_from_orthonormal(basis: np.ndarray) -> float:
    """Bound the distance of U (d, r) from the nearest orthonormal columns by that of U'U from I, with its error."""
    d, r = basis.shape
    return float(np.linalg.norm(basis.T @ basis - np.eye(r))) + 2 * d * r * EPS
