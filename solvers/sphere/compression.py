"""Bounds for p = 2 and many features: the stack on its principal directions, and what the rest can add to it.

In the basis of the eigenvectors of sum_c Gamma_c^2, the largest first, let P be the first r of them and Q the others.
Every unit vector is h = alpha P a + beta Q b with unit vectors a and b and alpha^2 + beta^2 = 1, so

    ||q(h)||_2 <= alpha^2 nu + 2 alpha beta kappa + beta^2 rho <= lambda_max [[nu, kappa], [kappa, rho]],

where nu bounds the stack P' Gamma P (m, r, r), rho bounds Q' Gamma Q, and kappa bounds ||(a' P' Gamma_c Q b)_c||_2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mopn.solvers.sphere.bounds import eigen_error, upper_bound
from mopn.solvers.sphere.stack import DenseStack

__all__ = ["Compressed", "Rotated", "in_basis", "principal_basis", "rotated"]

_EPS = float(np.finfo(float).eps)


class Compressed(NamedTuple):
    """The first r directions of a stack: the stack on them, and the proven bounds kappa and rho of the rest."""

    leading: DenseStack
    kappa: float
    rho: float

    def bound(self, nu: float) -> float:
        """Return the bound on the whole sphere, for a proven bound nu of the leading stack."""
        mean, half = 0.5 * (nu + self.rho), 0.5 * (nu - self.rho)
        return (mean + math.hypot(half, self.kappa)) * (1 + 8 * _EPS)


class Rotated(NamedTuple):
    """A stack in another orthonormal basis, whose vectors are the columns of ``basis`` (d, d)."""

    stack: DenseStack
    basis: np.ndarray

    def compressed(self, r: int) -> Compressed:
        """Keep the first r directions."""
        matrices, error = self.stack.matrices, self.stack.error
        if r == self.stack.shape[1]:
            return Compressed(self.stack, 0.0, 0.0)
        rest = DenseStack(matrices[:, r:, r:], error)
        kappa = _trilinear_norm(matrices[:, :r, r:]) + float(np.linalg.norm(error))
        return Compressed(DenseStack(matrices[:, :r, :r], error), kappa, upper_bound(rest, 2))


def rotated(stack: DenseStack) -> Rotated:
    """Return the stack in its principal basis."""
    basis = principal_basis(stack)
    return Rotated(in_basis(stack, basis), basis)


def principal_basis(stack: DenseStack) -> np.ndarray:
    """Return the eigenvectors (d, d) of sum_c Gamma_c^2 in columns, the largest first."""
    m, d = stack.shape
    flat = stack.matrices.transpose(1, 0, 2).reshape(d, m * d)
    return np.linalg.eigh(flat @ flat.T)[1][:, ::-1]


def in_basis(stack: DenseStack, basis: np.ndarray) -> DenseStack:
    """Return the stack in a basis (d, d) that is orthonormal up to rounding."""
    d = len(basis)
    # The nearest orthonormal basis differs from the computed one by no more than U'U differs from I. A product of
    # matrices errs by d eps times the product of their Frobenius norms, which is sqrt(d) for a basis.
    slack = float(np.linalg.norm(basis.T @ basis - np.eye(d))) + 2 * d * d * _EPS
    sizes = np.linalg.norm(stack.matrices, axis=(1, 2))
    error = stack.error * (1.0 + slack) ** 2 + (2.0 * slack + slack * slack + 4 * d**1.5 * _EPS) * sizes
    return DenseStack(basis.T @ stack.matrices @ basis, error)


def _trilinear_norm(B: np.ndarray) -> float:
    """Bound max ||(a' B_c b)_c||_2 over unit a and b by the least spectral norm of the unfoldings of B (m, r, s)."""
    size = float(np.sum(B * B))
    norms = []
    for axis in range(3):
        unfolded = np.moveaxis(B, axis, 0).reshape(B.shape[axis], -1)
        gram = unfolded @ unfolded.T
        error = eigen_error(gram) + unfolded.shape[1] * _EPS * size
        norms.append(max(float(np.linalg.eigvalsh(gram)[-1]), 0.0) + error)
    return math.sqrt(min(norms))
