"""Start vectors for refinement: many at once, spread over the sphere.

The dominant eigenvectors of single Gamma_c (the l1 start of Blondel et al., NIPS 2017) serve one output each. The Gram
starts serve all of them: their weights w make ||sum_c w_c Gamma_c||_F large, hence also its spectral norm, which is no
less than 1 / sqrt(d) of it. Random starts find what both miss late in a fit. Without matrices several eigenvectors of
each combination take their place: they cost no more products than one.
"""

from __future__ import annotations

import math

import numpy as np

from mopn.solvers.sphere.eigenvectors import dominant_eigenvectors, lanczos, lanczos_start
from mopn.solvers.sphere.refinement import dual_vectors
from mopn.solvers.sphere.stack import DenseStack, Stack

__all__ = ["dominant_starts", "extreme_starts", "gram_starts", "random_starts", "ritz_starts"]

_GRAM_STARTS = 5
# Eigenvalues of the Gram matrix below this, relative to the largest, are rounding.
_NULL = 1e-12
# Eigenvectors of a combination.
_RITZ_STARTS = 6
# Random starts take about so many operations, and are at most so many.
_RANDOM_WORK, _RANDOM_STARTS = 1.5e6, 500


def dominant_starts(stack: DenseStack) -> np.ndarray:
    """Return a dominant eigenvector of every Gamma_c (m, d)."""
    m, _ = stack.shape
    values, vectors = stack.eigen
    return vectors[np.arange(m), :, np.abs(values).argmax(axis=1)]


def extreme_starts(stack: DenseStack) -> np.ndarray:
    """Return the eigenvectors of the largest and of the smallest eigenvalue of every Gamma_c (2m, d)."""
    _, vectors = stack.eigen
    return np.concatenate([vectors[:, :, -1], vectors[:, :, 0]])


def ritz_starts(stack: Stack, p: float, tol: float, *, combined: bool) -> np.ndarray:
    """Return eigenvectors (k, d) of every Gamma_c and, if ``combined``, of those combinations, by Lanczos."""
    m, d = stack.shape
    W = np.vstack([np.eye(m), _gram_weights(stack, p)]) if combined else np.eye(m)
    return lanczos(stack, W, lanczos_start(len(W), d), tol=tol, count=_RITZ_STARTS)


def gram_starts(stack: DenseStack, p: float) -> np.ndarray:
    """Return dominant eigenvectors (k, d) of combinations sum_c w_c Gamma_c of large Frobenius norm w'Mw."""
    W = _gram_weights(stack, p)
    return dominant_eigenvectors(stack, W, lanczos_start(len(W), stack.shape[1]))


def _gram_weights(stack: Stack, p: float) -> np.ndarray:
    """Return the weights w (k, m) of such combinations.

    M_ce = <Gamma_c, Gamma_e>. For p = 2 the w are the top eigenvectors of M; for p = 1 they are sign vectors, from
    the signs of those by single flips while w'Mw grows. Null vectors of M are left out: gradients of multi-class losses
    add up to 0 over the classes, so that (1, ..., 1) is one, and the eigenvectors of its combination are rounding.
    """
    M = stack.gram()
    W = _significant_eigenvectors(M)[-_GRAM_STARTS:]
    if p == 1:
        W = _flipped(M, dual_vectors(W, 1))
    return W / math.sqrt(len(M))


def _significant_eigenvectors(M: np.ndarray) -> np.ndarray:
    """Return the eigenvectors of a Gram matrix (k, m), by ascending eigenvalue, whose eigenvalues are not rounding."""
    values, vectors = np.linalg.eigh(M)
    return vectors[:, values > _NULL * values[-1]].T


def random_starts(stack: DenseStack) -> np.ndarray:
    """Return fixed pseudo-random unit vectors (k, d), the same in every run: many where d is small, few elsewhere."""
    _, d = stack.shape
    H = lanczos_start(min(int(_RANDOM_WORK / d**3), _RANDOM_STARTS), d)
    return H / np.linalg.norm(H, axis=1, keepdims=True)


def _flipped(M: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Flip signs (k, m) one by one, the best flip of every row first, while s'Ms grows; distinct rows are returned."""
    for _ in range(4 * len(M)):
        # Flipping s_c changes s'Ms by 4 (M_cc - s_c (M s)_c).
        gains = np.diag(M) - S * (S @ M)
        best = gains.argmax(axis=1)
        rows = np.flatnonzero(gains[np.arange(len(S)), best] > 1e-12 * np.trace(M))
        if not len(rows):
            break
        S[rows, best[rows]] *= -1.0
    return np.unique(S * S[:, :1], axis=0)
