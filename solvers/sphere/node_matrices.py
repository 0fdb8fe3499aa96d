"""The matrices whose largest eigenvalues bound the nodes of a branch and bound on signs: whole ones, and reduced ones.

A node fixes the signs of the first j matrices. Its leaves are bounded by A = sum_(c<=j) s_c Gamma_c + sum_(c>j) M_c,
where -M_c <= Gamma_c <= M_c. In the basis of principal directions, the first r of them before the others, A has the
blocks A_11, A_12 and A_22, and A_22 <= R = sum_c (M_c)_22 for every node. So for t > lambda_max(R)

    lambda_max(A) <= max(t, lambda_max(A_11 + A_12 (t I - R)^-1 A_21)):

with u for the right-hand side, A_11 + A_12 (u I - R)^-1 A_21 <= u I, a Schur complement of u I - A. Matrices of order r
thus replace matrices of order d. Their loss is of second order in A_12 a, for the best vector a, and zero for A_22 = R.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere.bounds import combination_error, eigen_scale
from mopn.solvers.sphere.stack import DenseStack, in_basis, principal_basis

# Numbers of directions that are tried: each takes about three times the work of the one before.
_RANKS = (16, 24, 36, 54, 80, 120)
# Largest fraction of all directions: a node with more costs little less than a whole one.
_MAX_FRACTION = 0.5
# Loss at the signs of the best vector at which directions suffice, as a fraction of the tolerance.
GIVEN_AWAY = 0.3
# Such a loss relative to the value, whatever the tolerance: whole matrices bound the leaves that are left open.
_ALLOWED_LOSS = 1e-3


class _Sums(NamedTuple):
    """Sums of the matrices of nodes: ``fixed`` (m, ...) with signs, and the majorants from j on, ``free[j]``."""

    fixed: np.ndarray
    free: np.ndarray

    @classmethod
    def with_majorants(cls, fixed: np.ndarray, majorants: np.ndarray) -> _Sums:
        sums = np.cumsum(majorants[::-1], axis=0)[::-1]
        return cls(fixed, np.concatenate([sums, np.zeros((1, *sums.shape[1:]))]))

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        flat = signs.astype(float) @ self.fixed.reshape(len(self.fixed), -1)
        return flat.reshape(-1, *self.fixed.shape[1:]) + self.free[np.count_nonzero(signs, axis=1)]

    def part(self, rows: slice, columns: slice) -> _Sums:
        return _Sums(self.fixed[:, rows, columns], self.free[:, rows, columns])

    def times(self, F: np.ndarray) -> _Sums:
        return _Sums(self.fixed @ F, self.free @ F)


class Whole(NamedTuple):
    """The d x d matrices of nodes with signs (q, m), 0 where free; ``slack`` bounds rounding errors of eigenvalues."""

    sums: _Sums
    slack: float

    def bounds(self, signs: np.ndarray) -> np.ndarray:
        return np.linalg.eigvalsh(self.sums(signs))[:, -1] + self.slack

    def vectors(self, signs: np.ndarray) -> np.ndarray:
        return np.linalg.eigh(self.sums(signs))[1][:, :, -1]


class Reduced(NamedTuple):
    """The r x r matrices A_11 + Z Z' with Z = A_12 F and F F' = (t I - R)^-1; ``lift`` (d, d - r) is Q F."""

    leading: _Sums
    across: _Sums
    basis: np.ndarray
    lift: np.ndarray
    t: float
    slack: float

    def bounds(self, signs: np.ndarray) -> np.ndarray:
        matrices, _ = self._matrices(signs)
        return np.maximum(np.linalg.eigvalsh(matrices)[:, -1], self.t) + self.slack

    def vectors(self, signs: np.ndarray) -> np.ndarray:
        matrices, Z = self._matrices(signs)
        a = np.linalg.eigh(matrices)[1][:, :, -1]
        H = a @ self.basis.T + np.einsum("qrk,qr->qk", Z, a) @ self.lift.T
        return H / np.linalg.norm(H, axis=1, keepdims=True)

    def _matrices(self, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrices of nodes (q, r, r), and their Z (q, r, d - r)."""
        Z = self.across(signs)
        return self.leading(signs) + Z @ Z.transpose(0, 2, 1), Z


def whole(stack: DenseStack, M: np.ndarray, violation: float) -> Whole:
    """Return the whole matrices of a stack, for majorants M (m, d, d) with a violation."""
    sums = _Sums.with_majorants(stack.matrices, M)
    return Whole(sums, 2.0 * combination_error(stack) + violation)


def reduced(stack: DenseStack, M: np.ndarray, violation: float, h: np.ndarray, tol: float) -> Reduced | None:
    """Return the matrices on the fewest directions that suffice at the signs of a vector h (d,), if any."""
    forms = stack.forms(h[None])
    t = float(np.abs(forms).sum())
    signs = np.where(forms >= 0, 1, -1)
    basis = principal_basis(stack)
    gammas = in_basis(stack, basis)
    majorants = in_basis(DenseStack(M), basis)
    slack = violation + 2.0 * (combination_error(gammas) + combination_error(majorants))
    sums = _Sums.with_majorants(gammas.matrices, majorants.matrices)
    enough = t * (1.0 + max(GIVEN_AWAY * tol, _ALLOWED_LOSS))
    for r in _RANKS:
        if r > _MAX_FRACTION * len(basis):
            break
        nodes = _on_directions(r, sums, basis, t, slack)
        if nodes and nodes.bounds(signs)[0] <= enough:
            return nodes
    return None


def _on_directions(r: int, sums: _Sums, basis: np.ndarray, t: float, slack: float) -> Reduced | None:
    """Return the matrices on the first r directions, or None if t is not above lambda_max(R)."""
    first = slice(None, r)
    rest = slice(r, None)
    root = inverse_root(t * np.eye(len(basis) - r) - sums.free[0, rest, rest])
    if root is None:
        return None
    F, excess = root
    across = sums.part(first, rest)
    Z = across.times(F)
    # Errors of the products with F, of the sums, of Z Z', and of the eigenvalues.
    size = _norm_bound(Z)
    error = (len(basis) + len(sums.free) + 2) * EPS * _norm_bound(across) * float(np.linalg.norm(F))
    slack += 2.0 * size * error + error * error + (excess + (len(basis) + eigen_scale(r)) * EPS) * size * size
    return Reduced(sums.part(first, first), Z, basis[:, first], basis[:, rest] @ F, t, slack)


def _norm_bound(sums: _Sums) -> float:
    """Bound the Frobenius norm of every sum, and the total of the norms of its terms."""
    return float(np.linalg.norm(sums.fixed, axis=(1, 2)).sum() + np.linalg.norm(sums.free, axis=(1, 2)).max())


def inverse_root(K: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Return F and a small e with K^-1 <= (1 + e) F F', or None unless K is positive definite by a margin.

    The proof holds for any F: if ||F' K F - I|| <= x < 1, then K^-1 = F (F' K F)^-1 F' <= F F' / (1 - x).
    """
    n = len(K)
    L, failed = dpotrf(K, lower=1, clean=1)
    if failed:
        return None
    F = dtrtri(L, lower=1)[0].T
    error = float(np.linalg.norm(F.T @ K @ F - np.eye(n)))
    error += 4 * (n + 1) * EPS * float(np.linalg.norm(F)) ** 2 * float(np.linalg.norm(K))
    if not error < 0.5:
        return None
    return F, error / (1.0 - error)
