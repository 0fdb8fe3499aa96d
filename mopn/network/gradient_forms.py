"""The stack Gamma of a loss gradient, matrix-free: products with it, computed from the data, and cheap bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mopn.core.gap import dual_error
from mopn.core.kernels import KERNELS, Kernel
from mopn.data.designs import Design
from mopn.data.rows import Block, Rows
from mopn.network.two_layers import two_layers
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere import DenseStack, power_of_two
from mopn.solvers.sphere.bounds import eigen_error
from mopn.solvers.tools.decorators import cached_property

SMALLEST = float(np.finfo(float).smallest_subnormal)
# Largest number of passes over the rows, for a bound that is loose in any case.
_COLLATZ_STEPS = 20
# Samples up to which the n x n products of the rows are formed (once per design) for the Gram matrix of a stack.
MAX_GRAM_SAMPLES = 3000
# Random vectors that estimate the Gram matrix for more samples.
_GRAM_PROBES = 4


class GradientForms:
    """The ``Stack`` Gamma of a loss gradient G (n, m), matrix-free: d x d matrices of large data do not fit.

    ``seed`` draws the vectors that searches start from, and the estimate of the Gram matrix.
    """

    def __init__(self, kernel: Kernel, rows: Rows, G: Any, seed: int = 0) -> None:
        self.kernel, self.rows, self.G, self.seed = kernel, rows, G, seed
        self.shape = G.shape[1], rows.shape[1]
        self._sums = two_layers(rows, kernel)

    @property
    def of_losses(self) -> GradientForms:
        """The stack of the losses alone."""
        return self

    def forms(self, H: np.ndarray) -> np.ndarray:
        """Return q (k, m), the values h_r' Gamma_c h_r for the rows of H (k, d)."""
        return self._sums.forms(self.G, H)

    def products(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return (k, d), whose row r is (sum_c W_rc Gamma_c) h_r."""
        return self._sums.products(self.G, W, H)

    def scaled(self) -> tuple[GradientForms, float]:
        """Return the forms with G divided exactly by a power of two, and that power."""
        scale = power_of_two(self.rows.sum(lambda block, G: float(abs(G).max()), along=(self.G,), combine=max))
        return GradientForms(self.kernel, self.rows, self.G / scale, self.seed), scale

    @cached_property
    def dense(self) -> DenseStack:
        """The matrices, formed at the first use, with a bound of the rounding errors made in doing so."""
        matrices, moduli, counts, left_out = self.rows.sum(_gammas_and_moduli, self.kernel, along=(self.G,))
        if isinstance(matrices, _OppositeMatrices):
            matrices = matrices.stored()
        return DenseStack(matrices, self._forming_error(moduli, counts) + 2.0 * left_out, self.seed)

    def rounding(self, p: float) -> float:
        """Bound the change in max ||q(h)||_p over unit h by the rounding errors of the matrices."""
        return float(np.linalg.norm(self._forming_error(*self.rows.sum(_moduli, along=(self.G,))), p))

    @property
    def work(self) -> tuple[float, float]:
        """The cost of the product with one vector and of one combination, in operations of a matrix product."""
        product, gram = self.rows.work
        return 4.0 * product, gram

    def combination(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return sum_c w_c Gamma_c (d, d), and a bound of the spectral norm of the error made in forming it."""
        matrices, moduli, counts = self.rows.sum(_combined_and_moduli, self.kernel, w, along=(self.G,))
        return matrices[0], (1 + len(w)) * float(self._forming_error(moduli, counts)[0])

    def _forming_error(self, moduli: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Bound the spectral norms (m,) of the rounding errors in the matrices, from the sums of ``_moduli``."""
        # The matrices are sums of n products of three factors (or of two, each with the root of the third), and of
        # three more sums that subtract a center. They err by (n + 8) eps times the sum of moduli. Its spectral norm is
        # at most its trace sum_i |G_ic| ||x_i||^2: it is a sum of positive semidefinite matrices in |x_i|.
        # The proof is for a point near G whose entries differ by ``dual_error`` units of rounding.
        n = self.rows.shape[0]
        m = self.G.shape[1]
        return (n + 8 + dual_error(m)) * EPS * moduli + self._underflow(counts)

    def _underflow(self, counts: np.ndarray) -> np.ndarray:
        """Bound the underflow (k,) in sums of products of two features and a slope, from the counts of ``_moduli``."""
        largest = 1.0 + math.sqrt(self.rows.largest_square)
        with np.errstate(under="ignore"):
            return 4.0 * self.shape[1] * SMALLEST * largest * counts

    def gram(self) -> np.ndarray:
        """Return M (m, m), M_ce = <Gamma_c, Gamma_e>; with many samples an estimate from a few random vectors."""
        if self._few is not None:
            return self._scaled_gram(self._few) * self._few.unit**4
        return self._estimated_gram()

    def _estimated_gram(self) -> np.ndarray:
        """Estimate M from a few random vectors."""
        m, d = self.shape
        Z = np.random.default_rng(self.seed).standard_normal((_GRAM_PROBES, d))
        images = self.products(np.tile(np.eye(m), (_GRAM_PROBES, 1)), np.repeat(Z, m, axis=0))
        images = images.reshape(_GRAM_PROBES, m, d)
        return np.einsum("pcd,ped->ce", images, images) / _GRAM_PROBES

    @property
    def _few(self) -> Design | None:
        """The design in memory, if it is small enough for products of all pairs of rows."""
        return self.rows.design if self.rows.shape[0] <= MAX_GRAM_SAMPLES else None

    def _scaled_gram(self, design: Design) -> np.ndarray:
        """Return M divided by ``design.unit ** 4``, as products of fourth order in small X would underflow."""
        return self.G.T @ self.kernel.inner_products(design) @ self.G

    def bound(self, p: float) -> float:
        """Proven upper bound of max ||q(h)||_p over unit h, without forming a d x d matrix."""
        by_gram = math.inf if self._few is None else self.gram_bound(p)
        return min(self.collatz_bound(p), by_gram)

    def gram_bound(self, p: float) -> float:
        """Bound by the Gram matrix M of the stack: ||q(h)||_2^2 <= lambda_max(M), and |q_c(h)|^2 <= M_cc.

        Both hold as hh' has Frobenius norm 1. Rows are scaled by ``design.unit``, so that nothing under- or overflows.
        """
        design = self._few
        assert design is not None
        n, m = self.G.shape
        d = self.shape[1]
        square = design.unit**2
        M = self._scaled_gram(design)
        sizes = design.squared_sizes / square @ np.abs(self.G)
        error = (2 * n + 2 * d + 6 + 2 * dual_error(m)) * EPS * float(sizes @ sizes) + eigen_error(M)
        # n^2 products of sums of d, and each may underflow.
        error += 4.0 * n * n * (d + 2) * SMALLEST * (1.0 + float(np.sum(self.G**2)))
        largest = float(np.diag(M).max() if p == math.inf else np.linalg.eigvalsh(M)[-1])
        # ||q||_1^2 is at most m ||q||_2^2.
        factor = m if p == 1 else 1
        return math.sqrt((max(largest, 0.0) + error) * factor) * (1 + 4 * EPS) * square

    def collatz_bound(self, p: float) -> float:
        """Bound by moduli, which is loose: it ignores that terms of different samples cancel.

        q(h) = sum_i K(h, x_i) G_i, so ||q(h)||_p <= |h|' A |h| with the nonnegative matrix A of weights ||G_i||_p and
        the data |x_i|, and lambda_max(A) <= max_j (A u)_j / u_j for every positive u (Collatz and Wielandt).
        """
        u = np.ones((1, self.shape[1]))
        bound = math.inf
        best = u
        for _ in range(_COLLATZ_STEPS):
            image = self.rows.sum(_absolute_products, self.kernel, p, u, along=(self.G,))
            ratio = float(np.max(image / u))
            if ratio < bound:
                bound = ratio
                best = u
            if not image.max() > 0:
                break
            # A small multiple of u keeps the entries of features that never occur positive.
            u = np.maximum(image, 0.0) / image.max() + 1e-3 * u
        # anova subtracts the diagonal, so rounding is relative to the sum with it: the homogeneous kernel's.
        whole, counts = self.rows.sum(_whole_and_counts, p, best, along=(self.G,))
        underflow = float(self._underflow(counts)[0] / best.min())
        n, d = self.rows.shape
        roundings = 4 * (n + d + 10) + dual_error(self.shape[0])
        return max(bound, 0.0) + roundings * EPS * float(np.max(whole / best)) + underflow


def _moduli(block: Block, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of |G_ic| ||x_i||^2, and the sums of 1 + |G_ic| over rows that are not 0 and may underflow."""
    sizes = abs(G)
    moduli = block.design.squared_sizes @ sizes
    nonzero = (block.design.squared_norms > 0).astype(np.float64)
    return moduli, nonzero @ (1.0 + sizes)


class _OppositeMatrices:
    """The stack of -A and A, with A (1, d, d) stored once while sums are formed."""

    # Sums with arrays are formed here.
    __array_ufunc__ = None

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def stored(self) -> np.ndarray:
        return np.concatenate([-self.matrix, self.matrix])

    def __add__(self, other: np.ndarray | _OppositeMatrices) -> np.ndarray | _OppositeMatrices:
        if isinstance(other, _OppositeMatrices):
            return _OppositeMatrices(self.matrix + other.matrix)
        return self.stored() + other

    def __radd__(self, other: np.ndarray) -> np.ndarray:
        return other + self.stored()


def _gammas_and_moduli(
    block: Block, G: np.ndarray, kernel: Kernel
) -> tuple[np.ndarray | _OppositeMatrices, np.ndarray, np.ndarray, np.ndarray]:
    """Return the matrices, the sums of ``_moduli``, and bounds (m,) of the terms that the matrices leave out."""
    moduli, counts = _moduli(block, G)
    left_out = np.zeros(len(moduli))
    if len(moduli) == 2:
        # Slopes of two classes are opposite up to rounding, and so are their matrices.
        left_out[0] = block.design.squared_sizes @ abs(G[:, 0] + G[:, 1])
        if left_out[0] <= len(G) * EPS * moduli.min():
            return _OppositeMatrices(kernel.gammas(block.design, G[:, 1:])), moduli, counts, left_out
        left_out[0] = 0.0
    return kernel.gammas(block.design, G), moduli, counts, left_out


def _combined_and_moduli(
    block: Block, G: np.ndarray, kernel: Kernel, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    moduli = _moduli(block, abs(G) @ abs(w[:, None]))
    return kernel.gammas(block.design, (G @ w)[:, None]), *moduli


def _row_lengths(G: np.ndarray, p: float) -> np.ndarray:
    """Return the p-norms (n, 1) of the rows of G."""
    return np.linalg.norm(G, p, axis=1)[:, None]


def _absolute_products(block: Block, G: np.ndarray, kernel: Kernel, p: float, u: np.ndarray) -> np.ndarray:
    return kernel.products(block.design.absolute, _row_lengths(G, p), u)


def _whole_and_counts(block: Block, G: np.ndarray, p: float, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A u for the homogeneous kernel, and the counts of ``_moduli`` for the row lengths of G."""
    lengths = _row_lengths(G, p)
    whole = KERNELS["homogeneous"].products(block.design.absolute, lengths, u)
    _, counts = _moduli(block, lengths)
    # A G of zeros loses nothing.
    return whole, counts * lengths.any()
