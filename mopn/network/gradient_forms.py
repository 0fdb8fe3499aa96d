"""The stack Gamma of a loss gradient, matrix-free: products with it, computed from the data, and cheap bounds."""

from __future__ import annotations

import math

import numpy as np

from mopn.core.designs import Design
from mopn.core.kernels import KERNELS, Kernel
from mopn.network.sparse_rows import SparseRows
from mopn.solvers.sphere import DenseStack, power_of_two
from mopn.solvers.sphere.bounds import eigen_error

__all__ = ["GradientForms"]

_EPS = float(np.finfo(float).eps)
_SMALLEST = float(np.finfo(float).smallest_subnormal)
_COLLATZ_STEPS = 20
# Up to this many samples, the n x n products of the rows are formed (once per design) for the Gram matrix of a stack.
_GRAM_SAMPLES = 3000
# Number of random vectors that estimate it for more samples.
_GRAM_PROBES = 4
# The cost of an operation on a stored entry, in operations of a matrix product.
_STORED = 30.0


class GradientForms:
    """The stack Gamma of a loss gradient G (n, m), matrix-free, for oracles on data where d x d is too large.

    Implements the ``Stack`` protocol of ``mopn.solvers.sphere``; ``dense`` forms the matrices.
    """

    def __init__(self, kernel: Kernel, design: Design, G: np.ndarray) -> None:
        self.kernel, self.design, self.G = kernel, design, G
        self.shape = G.shape[1], design.shape[1]
        self._rows = None
        if design.stored_rows is not None:
            self._rows, self._by_output = SparseRows(design, distinct=kernel.distinct), np.ascontiguousarray(G.T)

    def forms(self, H: np.ndarray) -> np.ndarray:
        """Return q (k, m), the values h_r' Gamma_c h_r for the rows of H (k, d)."""
        if self._rows is not None:
            return self._rows.forms(self._by_output, H)
        return self.kernel.features(self.design, H).T @ self.G

    def products(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return (k, d), whose row r is (sum_c W_rc Gamma_c) h_r."""
        if self._rows is not None:
            return self._rows.products(self._by_output, W, H)
        return self.kernel.products(self.design, self.G @ W.T, H)

    def scaled(self) -> tuple[GradientForms, float]:
        """Return the forms with G divided exactly by a power of two, and that power."""
        scale = power_of_two(float(np.abs(self.G).max()))
        return GradientForms(self.kernel, self.design, self.G / scale), scale

    def dense(self) -> DenseStack:
        """Form the matrices, with a bound of the rounding errors made in doing so."""
        return DenseStack(self.kernel.gammas(self.design, self.G), self._forming_error(np.abs(self.G)))

    def rounding(self, p: float) -> float:
        """Bound the change in max ||q(h)||_p over unit h by the rounding errors of the matrices."""
        return float(np.linalg.norm(self._forming_error(np.abs(self.G)), p))

    @property
    def work(self) -> tuple[float, float]:
        """The cost of the product with one vector and of one combination, in operations of a matrix product."""
        if self._rows is None:
            n, d = len(self.G), self.shape[1]
            return 4.0 * n * d, 1.0 * n * d * d
        assert self._rows.rows.starts is not None
        entries = np.diff(self._rows.rows.starts).astype(np.float64)
        return _STORED * 4.0 * float(entries.sum()), _STORED * float(entries @ entries)

    def combination(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return sum_c w_c Gamma_c (d, d), and a bound of the spectral norm of the error made in forming it."""
        m = len(w)
        error = (1 + m) * self._forming_error(np.abs(self.G) @ np.abs(w[:, None]))
        return self.kernel.gammas(self.design, (self.G @ w)[:, None])[0], float(error[0])

    def _forming_error(self, sizes: np.ndarray) -> np.ndarray:
        # A sum of n products of three factors, or of two with the root of the third each, with the three sums that take
        # away a center, errs by (n + 8) eps times the sum of moduli, whose spectral norm is at most its trace
        # sum_i |G_ic| ||x_i||^2 (a sum of positive semidefinite matrices in |x_i|).
        return (len(self.G) + 8) * _EPS * (self.design.squared_sizes @ sizes) + self._underflow(sizes)

    def _underflow(self, sizes: np.ndarray) -> np.ndarray:
        """Bound the underflow (k,) in sums of products of two features and a slope, for moduli (n, k) of the slopes.

        A row whose squares all underflow to 0 counts as 0, as it does in the outputs.
        """
        squares = self.design.squared_norms
        return (
            4.0 * self.shape[1] * _SMALLEST * (1.0 + math.sqrt(float(squares.max()))) * ((squares > 0) @ (1.0 + sizes))
        )

    def gram(self) -> np.ndarray:
        """Return M (m, m), M_ce = <Gamma_c, Gamma_e>; with many samples an estimate from a few random vectors."""
        if len(self.G) <= _GRAM_SAMPLES:
            return self._scaled_gram() * self.design.unit**4
        m, d = self.shape
        Z = np.random.default_rng(0).standard_normal((_GRAM_PROBES, d))
        images = self.products(np.tile(np.eye(m), (_GRAM_PROBES, 1)), np.repeat(Z, m, axis=0))
        images = images.reshape(_GRAM_PROBES, m, d)
        return np.einsum("pcd,ped->ce", images, images) / _GRAM_PROBES

    def _scaled_gram(self) -> np.ndarray:
        """Return M divided by ``design.unit ** 4``, as products of fourth order in small X would underflow."""
        return self.G.T @ self.kernel.inner_products(self.design) @ self.G

    def bound(self, p: float) -> float:
        """Proven upper bound of max ||q(h)||_p over unit h, without forming a d x d matrix.

        It is 0 only if the stack is, as underflow is bounded too, for G of moderate size (see ``scaled``).
        """
        return min(self.collatz_bound(p), self.gram_bound(p) if len(self.G) <= _GRAM_SAMPLES else math.inf)

    def gram_bound(self, p: float) -> float:
        """Bound by the Gram matrix M of the stack: ||q(h)||_2^2 <= lambda_max(M), and |q_c(h)|^2 <= M_cc.

        Both hold as hh' has Frobenius norm 1. Rows are scaled by ``design.unit``, so that nothing under- or overflows.
        """
        (n, m), d, square = self.G.shape, self.shape[1], self.design.unit**2
        M = self._scaled_gram()
        sizes = self.design.squared_sizes / square @ np.abs(self.G)
        error = (2 * n + 2 * d + 6) * _EPS * float(sizes @ sizes) + eigen_error(M)
        # n^2 products of sums of d, each of which may underflow.
        error += 4.0 * n * n * (d + 2) * _SMALLEST * (1.0 + float(np.sum(self.G**2)))
        largest = float(np.diag(M).max() if p == math.inf else np.linalg.eigvalsh(M)[-1])
        return math.sqrt((max(largest, 0.0) + error) * (m if p == 1 else 1)) * (1 + 4 * _EPS) * square

    def collatz_bound(self, p: float) -> float:
        """Bound by moduli, which is loose: it ignores that terms of different samples cancel.

        q(h) = sum_i K(h, x_i) G_i, so ||q(h)||_p <= |h|' A |h| with the nonnegative matrix A of weights ||G_i||_p and
        the data |x_i|, and lambda_max(A) <= max_j (A u)_j / u_j for every positive u (Collatz and Wielandt).
        """
        weights = np.linalg.norm(self.G, p, axis=1)[:, None]
        absolute = self.design.absolute
        u = np.ones((1, self.shape[1]))
        bound, best = math.inf, u
        for _ in range(_COLLATZ_STEPS):
            image = self.kernel.products(absolute, weights, u)
            ratio = float(np.max(image / u))
            if ratio < bound:
                bound, best = ratio, u
            if not image.max() > 0:
                break
            # A small multiple of u keeps the entries of features that never occur positive.
            u = np.maximum(image, 0.0) / image.max() + 1e-3 * u
        # anova subtracts the diagonal, so rounding is relative to the sum with it: the homogeneous kernel's.
        whole = float(np.max(KERNELS["homogeneous"].products(absolute, weights, best) / best))
        lost = float(self._underflow(weights)[0] / best.min()) if weights.any() else 0.0
        return max(bound, 0.0) + 4 * (len(self.G) + self.shape[1] + 10) * _EPS * whole + lost
