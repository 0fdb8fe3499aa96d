"""The symmetric matrices of a few vectors: the units of one output as one convex variable."""

from __future__ import annotations

import math

import numpy as np

from mopn.core.kernels import Kernel
from mopn.data.designs import Design

# Derivatives of outputs that are in memory at once, 2 MiB.
FEATURES_AT_A_TIME = 1 << 18
# Moduli of eigenvalues of T, relative to the largest, that make no unit.
_NEGLIGIBLE = 1e-12


class Compression:
    """The symmetric matrices Q T Q' of one direction of the outputs, for vectors Q (d, q), and their values at rows.

    A point is the upper triangle of T as a vector of the same length. ``outputs`` (m,) is the change of all outputs by
    a step of 1 along the direction. The network has the matrix ``first`` (q, q), at which the slopes are ``slopes``
    (q, q).
    """

    def __init__(
        self,
        Q: np.ndarray,
        first: np.ndarray,
        slopes: np.ndarray,
        outputs: np.ndarray,
        kernel: Kernel,
        design: Design,
    ) -> None:
        self.Q, self.outputs, self.kernel, self.design = Q, outputs, kernel, design
        self.projections = design.project(Q.T)  # (n, q)
        self.rows, self.columns = np.triu_indices(Q.shape[1])
        self.factors = np.where(self.rows == self.columns, 1.0, math.sqrt(2.0))
        self.size = len(self.factors)
        self.first = self.vector(first)
        self.first_slopes = self.vector(slopes)

    def vector(self, T: np.ndarray) -> np.ndarray:
        return T[self.rows, self.columns] * self.factors

    def matrix(self, x: np.ndarray) -> np.ndarray:
        q = self.Q.shape[1]
        T = np.zeros((q, q))
        T[self.rows, self.columns] = x / self.factors
        T[self.columns, self.rows] = T[self.rows, self.columns]
        return T

    @property
    def longest(self) -> float:
        """The largest modulus of a projection."""
        return max(float(np.abs(self.projections).max()), math.ulp(0.0))

    def features(self, rows: np.ndarray, length: float) -> np.ndarray:
        """Return the derivatives (size, rows) of the output in single precision, where projections have a unit."""
        Z = np.ascontiguousarray(self.projections[rows].T / length, dtype=np.float32)
        products = np.empty((self.size, len(rows)), dtype=np.float32)
        first = 0
        for k in range(len(Z)):
            np.multiply(Z[k], Z[k:], out=products[first : first + len(Z) - k])
            first += len(Z) - k
        if self.kernel.distinct:
            of_pairs = self.Q[:, self.rows] * self.Q[:, self.columns] / length**2
            products -= self.design.rows(rows).project_squares(of_pairs.T).T.astype(np.float32)
        products *= (self.kernel.of_square * self.factors).astype(np.float32)[:, None]
        return products

    def _blocks(self) -> list[np.ndarray]:
        """Return the projections in blocks of rows, as products with each take as much memory."""
        step = max(1, FEATURES_AT_A_TIME // self.Q.shape[1])
        return [self.projections[first : first + step] for first in range(0, len(self.projections), step)]

    def output(self, x: np.ndarray) -> np.ndarray:
        """Return the output (n,)."""
        T = self.matrix(x)
        output = np.concatenate([np.einsum("iq,iq->i", Z @ T, Z) for Z in self._blocks()])
        if self.kernel.distinct:
            output -= self.design.project_squares(self._diagonal(T)[None])[:, 0]
        return self.kernel.of_square * output

    def slopes(self, g: np.ndarray) -> np.ndarray:
        """Return the derivatives (size,) of a sum over the rows with derivatives g (n,) in the output."""
        q = self.Q.shape[1]
        S = np.zeros((q, q))
        first = 0
        for Z in self._blocks():
            S += Z.T @ (Z * g[first : first + len(Z), None])
            first += len(Z)
        if self.kernel.distinct:
            S -= (self.Q.T * self.design.adjoint_squares(g[:, None])) @ self.Q
        return self.kernel.of_square * self.vector(S)

    def ridge_slopes(self, x: np.ndarray) -> np.ndarray:
        """Return the derivatives (size,) of half the squared length of the output as a function."""
        T = self.matrix(x)
        if self.kernel.distinct:
            T = T - (self.Q.T * self._diagonal(T)) @ self.Q
        return self.kernel.of_square * self.vector(T)

    def _diagonal(self, T: np.ndarray) -> np.ndarray:
        """Return the diagonal (d,) of Q T Q'."""
        return np.einsum("dq,dq->d", self.Q @ T, self.Q)

    def shrunk(self, x: np.ndarray, by: float) -> np.ndarray:
        """Return the point whose eigenvalues have moduli smaller by a number, or are 0: the nuclear norm's prox."""
        values, vectors = np.linalg.eigh(self.matrix(x))
        values = np.sign(values) * np.maximum(np.abs(values) - by, 0.0)
        return self.vector((vectors * values) @ vectors.T)

    def norm(self, x: np.ndarray) -> float:
        """Return the trace norm: the sum of the moduli of the eigenvalues."""
        return float(np.abs(np.linalg.eigvalsh(self.matrix(x))).sum())

    def largest(self, x: np.ndarray) -> float:
        """Return the largest modulus of an eigenvalue."""
        return float(np.abs(np.linalg.eigvalsh(self.matrix(x))).max())

    def units(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Q T Q' as units (k, d) and their weights (k, m)."""
        values, vectors = np.linalg.eigh(self.matrix(x))
        kept = np.abs(values) > _NEGLIGIBLE * np.abs(values).max()
        basis = (self.Q @ vectors[:, kept]).T
        return basis, values[kept, None] * self.outputs
