"""Refinement of unit vectors by monotone block ascent on ||q(h)||_p, the role of iteration (6) of the paper.

There are many starts, spread over the sphere:

* The dominant eigenvector of a single Gamma_c (the l1 start of Blondel et al., NIPS 2017) maximises one output. Further
  eigenvectors are units of its minimum, too, so that fits with few outputs need not add one unit a round.
* The weights w of Gram starts make ||sum_c w_c Gamma_c||_F large, hence also the spectral norm.
* Random starts find maxima that both miss late in a fit. For matrix-free stacks several eigenvectors of each
  combination replace them: they take no more products than one eigenvector.
"""

import math
import time
from functools import partial

import numpy as np

from mopn.solvers.numerics.precision import NULL
from mopn.solvers.sphere.eigenvectors import dominant_eigenvectors, lanczos, lanczos_start
from mopn.solvers.sphere.stack import DenseStack, Stack

# Combinations of the largest norms that give starts.
_GRAM_STARTS = 5
# Eigenvectors of each combination of a matrix-free stack that are starts.
_RITZ_STARTS = 6
# Eigenvectors of all matrices of a dense stack together that are starts. With a ridge minima have as many units as
# there are rows; more starts made narrow data slower.
_DENSE_STARTS = 100
# Eigenvectors of each matrix that are starts, at least.
_LEAST_MATRIX_STARTS = 12
# Approximate operations of the random starts of a rough search.
_RANDOM_WORK = 1.5e6
# Largest number of random starts of a rough search.
_MAX_RANDOM_STARTS = 500
# Largest factor by which a finer search has more of them.
_MAX_FINE_FACTOR = 8.0
# |Cosine| of two starts from which on they count as one.
_SAME_START = 0.98
# |Cosine| of two maxima from which on they count as one.
SAME_MAXIMUM = 0.999
# Pairs whose cosines are computed at a time, 8 MiB.
_PAIRS_AT_A_TIME = 1 << 20
# Steps of Lanczos in an iteration: few, as the next iteration has another combination.
_LANCZOS_STEPS = 5


def refine(
    stack: Stack, H: np.ndarray, p: float, tol: float = 1e-8, max_iter: int = 100, max_time: float = math.inf
) -> tuple[np.ndarray, np.ndarray]:
    """Improve unit vectors by block ascent on max over h and ||w||_p* <= 1 of sum_c w_c h' Gamma_c h.

    For fixed h the best w is the dual vector of q(h); for fixed w the best h is a dominant eigenvector of
    sum_c w_c Gamma_c. Neither step decreases ||q(h)||_p, unlike the paper's gradient step with eta = 1 for indefinite
    Gamma_c, which needs an Armijo rule.
    """
    began = time.perf_counter()
    forms = stack.forms(H)
    H = H.copy()
    values = np.linalg.norm(forms, p, axis=1)
    growing = np.arange(len(H))
    for _ in range(max_iter):
        H_new = dominant_eigenvectors(stack, dual_vectors(forms[growing], p), H[growing], max_steps=_LANCZOS_STEPS)
        forms_new = stack.forms(H_new)
        values_new = np.linalg.norm(forms_new, p, axis=1)
        better = values_new > values[growing]
        still = values_new > values[growing] * (1.0 + tol)
        rows = growing[better]
        H[rows] = H_new[better]
        forms[rows] = forms_new[better]
        values[rows] = values_new[better]
        growing = growing[still]
        if not len(growing) or time.perf_counter() - began >= max_time:
            break
    return H, values


def dual_vectors(Q: np.ndarray, p: float) -> np.ndarray:
    """Return w (k, m) with ||w_r|| = 1 in the dual norm of p and <w_r, q_r> = ||q_r||_p, for the rows of Q."""
    if p == 1:
        return np.where(Q >= 0, 1.0, -1.0)
    if p == 2:
        lengths = np.linalg.norm(Q, axis=1, keepdims=True)
        even = np.full_like(Q, 1.0 / math.sqrt(Q.shape[1]))
        return np.where(lengths > 0, Q / np.where(lengths > 0, lengths, 1.0), even)
    rows = np.arange(len(Q))
    best = np.argmax(np.abs(Q), axis=1)
    W = np.zeros_like(Q)
    W[rows, best] = np.where(Q[rows, best] >= 0, 1.0, -1.0)
    return W


def group_leaders(H: np.ndarray, order: np.ndarray, cosine: float) -> np.ndarray:
    """Return the leader of every row of H (k, d): the first in the order with at least this |cosine|."""
    leader = np.full(len(H), -1)
    # The cosines of all pairs may not fit in memory.
    for rows in np.array_split(order, max(1, len(H) * len(H) // _PAIRS_AT_A_TIME)):
        for r, close in zip(rows, np.abs(H[rows] @ H.T) >= cosine, strict=True):
            if leader[r] < 0:
                leader[close & (leader < 0)] = r
                leader[r] = r
    return leader


def distinct(H: np.ndarray, values: np.ndarray, cosine: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Sort by decreasing value, and drop vectors whose |cosine| with a better one is at least 0.98, or ``cosine``."""
    order = np.argsort(-values, kind="stable")
    leaders = group_leaders(H, order, _SAME_START if cosine is None else cosine)
    kept = order[leaders[order] == order]
    return H[kept], values[kept]


def dominant_starts(stack: DenseStack, *, one_sided: bool = False) -> np.ndarray:
    """Return dominant eigenvectors (k, d) of every Gamma_c, or ``one_sided`` the least, the first of each first."""
    values, vectors = stack.eigen
    ranks = values if one_sided else -np.abs(values)
    count = max(_DENSE_STARTS // stack.shape[0], _LEAST_MATRIX_STARTS)
    order = np.argsort(ranks, axis=1, kind="stable")[:, :count]
    chosen = np.take_along_axis(vectors, order[:, None], axis=2)
    return np.concatenate(chosen.transpose(2, 0, 1))


def extreme_starts(stack: DenseStack) -> np.ndarray:
    """Return the eigenvectors of the largest and of the smallest eigenvalue of every Gamma_c (2m, d)."""
    _, vectors = stack.eigen
    return np.concatenate([vectors[:, :, -1], vectors[:, :, 0]])


def ritz_starts(stack: Stack, p: float, tol: float, *, combined: bool, one_sided: bool = False) -> np.ndarray:
    """Return eigenvectors (k, d) of every Gamma_c and, if ``combined``, of the Gram combinations, by Lanczos."""
    m, d = stack.shape
    W = np.vstack([np.eye(m), _gram_weights(stack, p)]) if combined else np.eye(m)
    start = lanczos_start(len(W), d, stack.seed)
    products = partial(stack.products, W)
    return lanczos(products, start, tol=tol, count=_RITZ_STARTS, one_sided=one_sided)


def gram_starts(stack: DenseStack, p: float) -> np.ndarray:
    """Return dominant eigenvectors (k, d) of combinations sum_c w_c Gamma_c of large Frobenius norm w'Mw."""
    W = _gram_weights(stack, p)
    return dominant_eigenvectors(stack, W, lanczos_start(len(W), stack.shape[1], stack.seed))


def _gram_weights(stack: Stack, p: float) -> np.ndarray:
    """Return weights w (k, m) of combinations with large w'Mw, M_ce = <Gamma_c, Gamma_e>.

    For p = 2 the w are the top eigenvectors of M, for p = 1 their signs, improved by single flips. Combinations by null
    vectors of M, such as (1, ..., 1) for multi-class losses, are rounding errors.
    """
    M = stack.gram()
    values, vectors = np.linalg.eigh(M)
    W = vectors[:, values > NULL * values[-1]].T[-_GRAM_STARTS:]
    if p == 1:
        W = _improved_signs(M, dual_vectors(W, 1))
    return W / math.sqrt(len(M))


def random_starts(stack: DenseStack, precision: float = 1.0) -> np.ndarray:
    """Return random unit vectors (k, d) of the seed: fewer for large d, more for a finer precision."""
    _, d = stack.shape
    rough = min(int(_RANDOM_WORK / d**3), _MAX_RANDOM_STARTS)
    fine_factor = min(1.0 / math.sqrt(precision), _MAX_FINE_FACTOR)
    H = lanczos_start(int(rough * fine_factor), d, stack.seed)
    return H / np.linalg.norm(H, axis=1, keepdims=True)


def _improved_signs(M: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Flip the best sign of every row of S (k, m) while s'Ms grows; return the distinct rows up to sign."""
    for _ in range(4 * len(M)):
        # Flipping s_c changes s'Ms by 4 (M_cc - s_c (M s)_c).
        gains = np.diag(M) - S * (S @ M)
        best = gains.argmax(axis=1)
        rows = np.flatnonzero(gains[np.arange(len(S)), best] > NULL * np.trace(M))
        if not len(rows):
            break
        S[rows, best[rows]] *= -1.0
    return np.unique(S * S[:, :1], axis=0)
