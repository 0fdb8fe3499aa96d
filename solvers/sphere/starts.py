"""Start vectors for refinement: many at once, spread over the sphere.

The dominant eigenvector of a single Gamma_c (the l1 start of Blondel et al., NIPS 2017) maximises one output; further
eigenvectors are units of its minimum, too, so that fits with few outputs need not add one unit a round. The weights w
of Gram starts make ||sum_c w_c Gamma_c||_F large, hence also the spectral norm, at least 1 / sqrt(d) times as large.
Random starts find maxima that both miss late in a fit. For matrix-free stacks several eigenvectors of each combination
replace them: they take no more products than one eigenvector.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mopn.solvers.numerics.precision import NULL
from mopn.solvers.sphere.eigenvectors import dominant_eigenvectors, lanczos, lanczos_start
from mopn.solvers.sphere.refinement import dual_vectors
from mopn.solvers.sphere.stack import DenseStack, Stack

# Combinations of the largest norms that give starts.
_GRAM_STARTS = 5
# Number of eigenvectors of each combination, and of each matrix of a dense stack.
_RITZ_STARTS, _EIGENVECTORS = 6, 12
# Approximate operations of random starts, and their largest number, for a rough search; a finer one may have more.
_RANDOM_WORK, _RANDOM_STARTS, _FINEST = 1.5e6, 500, 8.0


def dominant_starts(stack: DenseStack, *, one_sided: bool = False) -> np.ndarray:
    """Return dominant eigenvectors (k, d) of every Gamma_c, or ``one_sided`` the least, the first of each first."""
    values, vectors = stack.eigen
    order = np.argsort(values if one_sided else -np.abs(values), axis=1, kind="stable")[:, :_EIGENVECTORS]
    return np.concatenate(np.take_along_axis(vectors, order[:, None], axis=2).transpose(2, 0, 1))


def extreme_starts(stack: DenseStack) -> np.ndarray:
    """Return the eigenvectors of the largest and of the smallest eigenvalue of every Gamma_c (2m, d)."""
    _, vectors = stack.eigen
    return np.concatenate([vectors[:, :, -1], vectors[:, :, 0]])


def ritz_starts(stack: Stack, p: float, tol: float, *, combined: bool, one_sided: bool = False) -> np.ndarray:
    """Return eigenvectors (k, d) of every Gamma_c and, if ``combined``, of the Gram combinations, by Lanczos."""
    m, d = stack.shape
    W = np.vstack([np.eye(m), _gram_weights(stack, p)]) if combined else np.eye(m)
    start, products = lanczos_start(len(W), d, stack.seed), partial(stack.products, W)
    return lanczos(products, start, tol=tol, count=_RITZ_STARTS, one_sided=one_sided)


def gram_starts(stack: DenseStack, p: float) -> np.ndarray:
    """Return dominant eigenvectors (k, d) of combinations sum_c w_c Gamma_c of large Frobenius norm w'Mw."""
    W = _gram_weights(stack, p)
    return dominant_eigenvectors(stack, W, lanczos_start(len(W), stack.shape[1], stack.seed))


def _gram_weights(stack: Stack, p: float) -> np.ndarray:
    """Return weights w (k, m) of combinations with large w'Mw, M_ce = <Gamma_c, Gamma_e>.

    For p = 2 the w are the top eigenvectors of M, for p = 1 their signs, improved by single flips. Combinations by null
    vectors of M are rounding errors, such as by (1, ..., 1) for multi-class losses.
    """
    M = stack.gram()
    values, vectors = np.linalg.eigh(M)
    W = vectors[:, values > NULL * values[-1]].T[-_GRAM_STARTS:]
    if p == 1:
        W = _flipped(M, dual_vectors(W, 1))
    return W / math.sqrt(len(M))


def random_starts(stack: DenseStack, precision: float = 1.0) -> np.ndarray:
    """Return random unit vectors (k, d) of the seed: fewer for large d, more for a finer precision."""
    _, d = stack.shape
    rough = min(int(_RANDOM_WORK / d**3), _RANDOM_STARTS)
    H = lanczos_start(int(rough * min(1.0 / math.sqrt(precision), _FINEST)), d, stack.seed)
    return H / np.linalg.norm(H, axis=1, keepdims=True)


def _flipped(M: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Flip the best sign of every row of S (k, m) while s'Ms grows; return the distinct rows up to sign."""
    for _ in range(4 * len(M)):
        # Flipping s_c changes s'Ms by 4 (M_cc - s_c (M s)_c).
        gains = np.diag(M) - S * (S @ M)
        best = gains.argmax(axis=1)
        rows = np.flatnonzero(gains[np.arange(len(S)), best] > 1e-12 * np.trace(M))
        if not len(rows):
            break
        S[rows, best[rows]] *= -1.0
    return np.unique(S * S[:, :1], axis=0)
