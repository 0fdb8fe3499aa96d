"""Bounds for p = 2 and p = 1 by the biquadratic form in output space, on principal directions with a Schur complement.

Let U be the unit vectors of R^m (p = 2), or the vectors of signs (p = 1). With A(u) = sum_c u_c Gamma_c,
max_h ||q(h)||_p is the largest eigenvalue of all A(u). In the basis of principal directions, the first r of them before
the others, A(u) has the blocks A_11, A_12 and A_22. If R >= A(u)_22 for all u in U, then t > lambda_max(R) bounds the
maximum if, for all u,

    A(u)_11 + sum_ce u_c u_e B_ce <= t I,    B_ce = sym(Gamma_c,12 (t I - R)^-1 Gamma_e,21),

the Schur complement of t I - A(u). With y = (1, u), of squared length s = 2 (p = 2) or m + 1 (p = 1), the left side at
a unit vector a is the value at x = (y (x) a) / sqrt(s) of a form M of order (m + 1) r, whose blocks are
M_0c = s Gamma_c,11 / 2 and M_ce = s B_ce. The form changes at no x if a multiplier N is added whose blocks N_ij are
antisymmetric, N_ji = -N_ij; and, for p = 1, one with diagonal blocks whose sum is zero, as |y_i| = 1. So the maximum is
at most max(t, lambda_max(M + N)): at any larger t the B are smaller.

(sum_c u_c Gamma_c)^2 <= |u|^2 sum_c Gamma_c^2, and roots of matrices are monotone: R = |u| (sum_c Gamma_c,22^2)^(1/2).

For p = 1 some signs may be fixed: y = E' z for fewer signs z, where the first row of E has the fixed signs, and each
other row a single 1. Then z has the form (E (x) I) M (E (x) I)', times the ratio of the lengths s of z and of y.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np
from scipy.linalg import eigh

from mopn.solvers.numerics.precision import EPS, proven_upper
from mopn.solvers.sphere.bounds import eigen_error
from mopn.solvers.sphere.node_matrices import inverse_root
from mopn.solvers.sphere.stack import sum_of_squares


class Biquadratic:
    """The form M on r directions at a bound t, and its multipliers.

    The symmetric matrices (m, d, d), in the basis of principal directions, count as exact; R (d - r, d - r) is the
    :func:`rest_majorant` of the other directions. ``ValueError`` if t is not above lambda_max(R).
    """

    def __init__(self, matrices: np.ndarray, r: int, t: float, R: np.ndarray, p: int) -> None:
        m, d, _ = matrices.shape
        self.shape = (m + 1, r)
        self.t = t
        self.p = p
        self._length = 2.0 if p == 2 else m + 1.0
        blocks = np.zeros((m + 1, r, m + 1, r))
        blocks[0, :, 1:] = (0.5 * self._length) * matrices[:, :r, :r].transpose(1, 0, 2)
        blocks[1:, :, 0] = (0.5 * self._length) * matrices[:, :r, :r]
        # Products with a factor s / 2 that is no power of two are rounded.
        self._error = EPS * float(np.linalg.norm(blocks))
        if r < d:
            blocks[1:, :, 1:] += self._complement(matrices[:, :r, r:], R)
        n = (m + 1) * r
        # Entries of equal indices are computed in the same way, except for the order of sums in a product of matrices.
        self.matrix = _symmetric(blocks.reshape(n, n))

    def with_signs(self, E: np.ndarray) -> Biquadratic:
        """Return the form for the signs y = E' z (p = 1); each column of E (k, m + 1) has a single -1 or 1."""
        k, m = E.shape
        form = copy(self)
        form.shape = (k, self.shape[1])
        form._length = float(k)
        form.matrix = _symmetric(in_bases(self.matrix, E) * (k / m))
        # ||E||_2^2 is the largest number of signs in a row; its square is the number of terms in a sum.
        most = float(np.abs(E).sum(axis=1).max())
        added = (2.0 * most + 6.0) * EPS * float(np.linalg.norm(self.matrix))
        form._error = (k / m) * most * (self._error + added)
        return form

    def _complement(self, across: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Return the blocks s B (m, r, m, r) for Gamma_12 (m, r, d - r), and count their rounding errors."""
        m, r, rest = across.shape
        # Less than t, for the rounding of this difference.
        root = inverse_root(self.t * (1 - 4 * EPS) * np.eye(rest) - R)
        if root is None:
            raise ValueError(f"t = {self.t} is not above the largest eigenvalue of R")
        F, excess = root
        Z = (across.reshape(m * r, rest) @ F) * math.sqrt(1.0 + excess)
        product = (Z @ Z.T).reshape(m, r, m, r)
        # The error of Z by its product with F, then of Z Z' and the sums and products that follow.
        size = float(np.linalg.norm(Z))
        error = (rest + 4) * EPS * float(np.linalg.norm(across)) * float(np.linalg.norm(F)) * (1.0 + excess)
        self._error += self._length * (2.0 * size * error + error * error + (rest + 8) * EPS * size * size)
        return (0.5 * self._length) * (product + product.transpose(0, 3, 2, 1))

    def project(self, V: np.ndarray) -> np.ndarray:
        k, r = self.shape
        V = V.reshape(k, r, k, r)
        V = 0.5 * (V + V.transpose(2, 3, 0, 1))
        N = 0.5 * (V - V.transpose(0, 3, 2, 1))
        if self.p == 1:
            i = np.arange(k)
            N[i, :, i] = V[i, :, i] - V[i, :, i].mean(axis=0)
        return N.reshape(k * r, k * r)

    def bound(self, form: np.ndarray, top: float, N: np.ndarray) -> float:
        """Return the proven bound by M + N, rounding errors included."""
        k, r = self.shape
        added = 2 * EPS * (float(np.linalg.norm(self.matrix)) + float(np.linalg.norm(N)))
        error = self._error + eigen_error(form) + added
        if self.p == 1:
            diagonal = N.reshape(k, r, k, r)[np.arange(k), :, np.arange(k)]
            rounding = k * EPS * float(np.linalg.norm(diagonal, axis=(1, 2)).sum())
            error += (float(np.linalg.norm(diagonal.sum(axis=0))) + rounding) / self._length
        return float(proven_upper(np.maximum(self.t, top + error) * (1 + 8 * EPS)))

    def reach(self, H: np.ndarray, Q: np.ndarray) -> float:
        """Return a value that no bound can be below: the form at unit vectors H (q, r) and vectors u, Q (q, m)."""
        y = np.hstack([np.ones((len(Q), 1)), Q]) / math.sqrt(self._length)
        x = (y[:, :, None] * H[:, None, :]).reshape(len(H), -1)
        return float(np.einsum("qi,qi->q", x @ self.matrix, x).max())

    def starts(self, X: np.ndarray) -> np.ndarray:
        """Return unit vectors (3, r): the dominant directions of the three top eigenvectors of pseudo-moments."""
        k, r = self.shape
        n = len(X)
        _, vectors = eigh(X, subset_by_index=(max(n - 3, 0), n - 1), check_finite=False)
        _, _, directions = np.linalg.svd(vectors.T.reshape(-1, k, r))
        return directions[:, 0]


def in_bases(matrix: np.ndarray, E: np.ndarray, Q: np.ndarray | None = None) -> np.ndarray:
    """Return (E (x) Q) M (E (x) Q)', for E (k, m) and Q (q, r), or the identity."""
    r = len(matrix) // E.shape[1] if Q is None else Q.shape[1]
    blocks = matrix.reshape(E.shape[1], r, E.shape[1], r)
    blocks = np.einsum("ia,jb,apbq->ipjq", E, E, blocks, optimize=True)
    if Q is not None:
        blocks = np.einsum("rp,ipjq,sq->irjs", Q, blocks, Q, optimize=True)
    n = blocks.shape[0] * blocks.shape[1]
    return blocks.reshape(n, n)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return 0.5 * (matrix + matrix.T)


def rest_majorant(rest: np.ndarray, p: int) -> np.ndarray:
    """Return R (k, k) >= sum_c u_c Gamma_c for all unit vectors u (p = 2), or all signs (p = 1).

    The symmetric matrices Gamma_c (m, k, k) count as exact. The square of a computed Q >= 0 is nearly S = sum_c
    Gamma_c^2. As S <= Q^2 + e I, and roots are monotone, S^(1/2) <= Q + sqrt(e) I; Q may lack its rounding errors.
    """
    m, k, _ = rest.shape
    squares = sum_of_squares(rest)
    values, vectors = np.linalg.eigh(squares)
    Q = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    Q = 0.5 * (Q + Q.T)
    length = float(np.linalg.norm(Q))
    lacking = (m * k + k + 4) * EPS * (float(np.sum(rest * rest)) + length * length)
    e = float(np.linalg.norm(squares - Q @ Q)) + lacking
    # Q is positive semidefinite up to the rounding of its product: |Q| <= Q + 2 delta I.
    delta = 2 * (k + 4) * EPS * float(np.sqrt(np.maximum(values, 0.0)).sum())
    scale = 1.0 if p == 2 else math.sqrt(m)
    shift = math.sqrt(e) + 2.0 * delta + 8 * EPS * length
    return scale * (1 + 4 * EPS) * Q + scale * shift * np.eye(k)
