"""Refinement of unit vectors by monotone block ascent on ||q(h)||_p, the role of iteration (6) of the paper.

Also groups of unit vectors that point nearly the same way, up to sign.
"""

from __future__ import annotations

import math
import time

import numpy as np

from mopn.solvers.sphere.eigenvectors import dominant_eigenvectors
from mopn.solvers.sphere.stack import Stack

# Unit vectors whose |cosine| is at least this count as one: as starts, and as maxima.
_SAME_DIRECTION, SAME_MAXIMUM = 0.98, 0.999
# Pairs whose cosines are computed at a time.
_PAIRS = 1 << 20
# Few, as the next iteration has another combination.
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
    H, forms = H.copy(), stack.forms(H)
    values = np.linalg.norm(forms, p, axis=1)
    growing = np.arange(len(H))
    for _ in range(max_iter):
        H_new = dominant_eigenvectors(stack, dual_vectors(forms[growing], p), H[growing], max_steps=_LANCZOS_STEPS)
        forms_new = stack.forms(H_new)
        values_new = np.linalg.norm(forms_new, p, axis=1)
        better = values_new > values[growing]
        still = values_new > values[growing] * (1.0 + tol)
        rows = growing[better]
        H[rows], forms[rows], values[rows] = H_new[better], forms_new[better], values_new[better]
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
    rows, best = np.arange(len(Q)), np.argmax(np.abs(Q), axis=1)
    W = np.zeros_like(Q)
    W[rows, best] = np.where(Q[rows, best] >= 0, 1.0, -1.0)
    return W


def group_leaders(H: np.ndarray, order: np.ndarray, cosine: float) -> np.ndarray:
    """Return the leader of every row of H (k, d): the first in the order with at least this |cosine|."""
    leader = np.full(len(H), -1)
    # The cosines of all pairs may not fit in memory.
    for rows in np.array_split(order, max(1, len(H) * len(H) // _PAIRS)):
        for r, close in zip(rows, np.abs(H[rows] @ H.T) >= cosine, strict=True):
            if leader[r] < 0:
                leader[close & (leader < 0)] = r
                leader[r] = r
    return leader


def distinct(H: np.ndarray, values: np.ndarray, cosine: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Sort by decreasing value, and drop vectors whose |cosine| with a better one is at least 0.98, or ``cosine``."""
    order = np.argsort(-values, kind="stable")
    kept = order[group_leaders(H, order, _SAME_DIRECTION if cosine is None else cosine)[order] == order]
    return H[kept], values[kept]
