"""A stack of m symmetric d x d matrices: the dense one, and the methods that a matrix-free one must offer.

Also orthonormal bases in which few matrices and features hold most of a stack, with their rounding errors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from mopn.solvers.numerics.precision import EPS
from mopn.solvers.tools.decorators import cached_property

# Size of combinations of the matrices, relative to the largest, below which they are left out; bounds count them.
_NEGLIGIBLE_SIZE = 1e-7


class Stack(Protocol):
    """The methods of a stack of symmetric matrices Gamma (m, d, d) that the maximisers use."""

    shape: tuple[int, int]
    # For the random starts of searches.
    seed: int

    def forms(self, H: np.ndarray) -> np.ndarray:
        """Return q (k, m), the values h_r' Gamma_c h_r for the rows of H (k, d)."""

    def products(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return (k, d), whose row r is (sum_c W_rc Gamma_c) h_r."""

    def gram(self) -> np.ndarray:
        """Return M (m, m), M_ce = <Gamma_c, Gamma_e>; an estimate if the stack is matrix-free."""

    def scaled(self) -> tuple[Stack, float]:
        """Return the stack divided by a power of two, and the power; squares neither under- nor overflow."""


class MatrixFreeStack(Stack, Protocol):
    """A stack that forms one combination of its matrices at a time."""

    def bound(self, p: float) -> float:
        """Proven upper bound of max ||q(h)||_p over unit vectors h, rounding errors included."""

    def rounding(self, p: float) -> float:
        """Bound the change in max ||q(h)||_p over unit h by rounding errors."""

    @property
    def work(self) -> tuple[float, float]:
        """Approximate operations of the product with one vector, and of forming one combination."""

    def combination(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return sum_c w_c Gamma_c (d, d), and a bound of the spectral norm of the error made in forming it."""


class DenseStack:
    """A stack of stored matrices (m, d, d), with bounds (m,) of their errors."""

    def __init__(self, matrices: np.ndarray, error: np.ndarray | None = None, seed: int = 0) -> None:
        halves = 0.5 * matrices
        self.matrices = halves + halves.transpose(0, 2, 1)
        self.error = np.zeros(len(matrices)) if error is None else error
        self.shape = (matrices.shape[0], matrices.shape[2])
        self.seed = seed

    @cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues (m, d), ascending, and eigenvectors (m, d, d), in columns, of every matrix."""
        if len(self.matrices) == 2 and np.array_equal(self.matrices[0], -self.matrices[1]):
            values, vectors = np.linalg.eigh(self.matrices[1])
            return np.stack([-values[::-1], values]), np.stack([vectors[:, ::-1], vectors])
        values, vectors = np.linalg.eigh(self.matrices)
        return values, vectors

    @cached_property
    def moduli(self) -> np.ndarray:
        """The matrix absolute values |Gamma_c| (m, d, d), for which |h' Gamma_c h| <= h' |Gamma_c| h."""
        values, vectors = self.eigen
        return (vectors * np.abs(values)[:, None, :]) @ vectors.transpose(0, 2, 1)

    def combine(self, W: np.ndarray) -> np.ndarray:
        """Return the matrices sum_c W_rc Gamma_c, shape (k, d, d), for the rows of W (k, m)."""
        m, d = self.shape
        return (W @ self.matrices.reshape(m, d * d)).reshape(len(W), d, d)

    def forms(self, H: np.ndarray) -> np.ndarray:
        return np.einsum("cdk,kd->kc", self.matrices @ H.T, H)

    def products(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        return np.einsum("kc,cdk->kd", W, self.matrices @ H.T)

    def rounding(self, p: float) -> float:
        return float(np.linalg.norm(self.error, p))

    def gram(self) -> np.ndarray:
        flat = self.matrices.reshape(len(self.matrices), -1)
        return flat @ flat.T

    def scaled(self) -> tuple[DenseStack, float]:
        return self._scaled

    @cached_property
    def _scaled(self) -> tuple[DenseStack, float]:
        # Cached, like its decompositions. The division is exact unless the errors exceed the matrices by far.
        scale = power_of_two(max(float(np.abs(self.matrices).max()), float(self.error.max(initial=0.0))))
        return DenseStack(self.matrices / scale, self.error / scale, self.seed), scale


def sum_of_squares(matrices: np.ndarray) -> np.ndarray:
    """Return sum_c Gamma_c^2 (d, d) for symmetric matrices (m, d, d); entries are sums of m d products."""
    m, d, _ = matrices.shape
    flat = matrices.transpose(1, 0, 2).reshape(d, m * d)
    return flat @ flat.T


def power_of_two(size: float) -> float:
    """Return the largest power of two that does not exceed a size (1 for 0); division by it is exact."""
    if not size > 0:
        return 1.0
    _, exponent = math.frexp(size)
    return math.ldexp(1.0, max(exponent - 1, -1000))


def symmetric_matrices(values: Any, name: str) -> np.ndarray:
    """Return matrices (m, d, d) as floats; raise an error if they are not finite, real and symmetric."""
    matrices = np.asarray(values)
    if matrices.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {matrices.dtype}")
    matrices = matrices.astype(np.float64, copy=False)
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or 0 in matrices.shape:
        raise ValueError(f"{name} must have shape (m, d, d) with m, d >= 1, got {matrices.shape}")
    if not np.isfinite(matrices).all():
        raise ValueError(f"{name} contains NaN or infinity")
    if not np.allclose(matrices, matrices.transpose(0, 2, 1), rtol=1e-8, atol=1e-8 * float(np.abs(matrices).max())):
        raise ValueError(f"{name} must be symmetric in its last two axes; symmetrise it as (G + G') / 2 first")
    return matrices


def principal_basis(stack: DenseStack) -> np.ndarray:
    """Return the eigenvectors (d, d) of sum_c Gamma_c^2 in columns, the largest first."""
    _, vectors = np.linalg.eigh(sum_of_squares(stack.matrices))
    return vectors[:, ::-1]


def in_basis(stack: DenseStack, basis: np.ndarray) -> DenseStack:
    """Return the stack in a basis (d, d) that is orthonormal up to rounding."""
    d = len(basis)
    slack = far_from_orthonormal(basis)
    sizes = np.linalg.norm(stack.matrices, axis=(1, 2))
    rounding = (2.0 * slack + slack * slack + 4 * d**1.5 * EPS) * sizes
    return DenseStack(basis.T @ stack.matrices @ basis, stack.error * (1.0 + slack) ** 2 + rounding)


class RotatedOutputs(NamedTuple):
    """Combinations of the matrices of a stack by the rows of ``basis`` (k, m).

    They have the same ||q(h)||_2, except for the combinations that are left out, whose norm is at most ``left_out``.
    """

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
    kept = values[::-1] > _NEGLIGIBLE_SIZE**2 * values[-1]
    kept[0] = True
    matrices = stack.combine(basis)
    # Errors of the sums of m products, and of the matrices.
    error = np.abs(basis) @ stack.error + (m + 2) * EPS * size
    size_left_out = math.sqrt(float(np.sum(matrices[~kept] ** 2)))
    left_out = size_left_out * (1 + 8 * EPS) + float(np.linalg.norm(error[~kept]))
    # ||q|| <= ||U'|| ||U q|| + ||I - U'U|| ||q||.
    distance = far_from_orthonormal(basis.T)
    slack = 2.0 * distance + distance * distance
    return RotatedOutputs(DenseStack(matrices[kept], error[kept]), basis[kept], left_out, slack)


def far_from_orthonormal(basis: np.ndarray) -> float:
    """Bound the distance of U (d, r) from orthonormal columns by the distance of U'U from I, with its error."""
    d, r = basis.shape
    return float(np.linalg.norm(basis.T @ basis - np.eye(r))) + 2 * d * r * EPS
