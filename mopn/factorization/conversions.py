"""One model in several forms: direct (lambda, P), lifted (U, V) and the network of one output (units, weights).

All of degree 2, where each is a symmetric matrix W of low rank: P' diag(lambda) P, the symmetric part of U' V, and
H' diag(v) H. So what one solver found can be certified, compared or refitted by another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["direct_to_lifted", "direct_to_network", "lifted_to_direct", "network_to_direct", "reduced"]

# Eigenvalues below this, relative to the largest, are rounding.
_ZERO = 1e-12


def reduced(lams: Any, P: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues (k,) and unit eigenvectors (k, d) of W = P' diag(lambda) P: the fewest units.

    Parameters
    ----------
    lams : array-like of shape (k,)
    P : array-like of shape (k, d)
    """
    lams, P = np.asarray(lams, dtype=np.float64), np.asarray(P, dtype=np.float64)
    # In the span of P: no d x d matrix.
    Q, R = np.linalg.qr(P.T)
    values, vectors = np.linalg.eigh((R * lams) @ R.T)
    kept = np.abs(values) > _ZERO * np.abs(values).max(initial=0.0)
    return values[kept], (Q @ vectors[:, kept]).T


def lifted_to_direct(U: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return lambda (k,) and unit vectors P (k, d), r <= k <= 2 r, of the factors U (2, r, d).

    The reduced eigendecomposition of S(U' V): section 5.2 of Blondel et al. (ICML 2016).
    """
    first, second = (np.asarray(factor, dtype=np.float64) for factor in U)
    # u v' + v u' = ((u + v)(u + v)' - (u - v)(u - v)') / 2
    r = len(first)
    signs = np.concatenate([np.full(r, 0.25), np.full(r, -0.25)])
    return reduced(signs, np.vstack([first + second, first - second]))


def direct_to_lifted(lams: Any, P: Any) -> np.ndarray:
    """Return balanced factors U (2, k, d) of the same model, with the same penalty: equation 12 equals 13.

    Parameters
    ----------
    lams : array-like of shape (k,)
    P : array-like of shape (k, d)
    """
    lams, P = np.asarray(lams, dtype=np.float64), np.asarray(P, dtype=np.float64)
    V = np.sqrt(np.abs(lams))[:, None] * P
    return np.stack([np.sign(lams)[:, None] * V, V])


def direct_to_network(lams: Any, P: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (k, d) and weights (k, 1) of the network of one output with units p_s / ||p_s||.

    Parameters
    ----------
    lams : array-like of shape (k,)
    P : array-like of shape (k, d)
    """
    lams, P = np.asarray(lams, dtype=np.float64), np.asarray(P, dtype=np.float64)
    squares = np.einsum("sj,sj->s", P, P)
    alive = (squares > 0) & (lams != 0)
    return P[alive] / np.sqrt(squares[alive])[:, None], (lams * squares)[alive, None]


def network_to_direct(basis: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return lambda (k,), of modulus 1, and P (k, d) of a network of one output; the penalties of both are equal.

    Parameters
    ----------
    basis : array-like of shape (k, d)
    weights : array-like of shape (k, 1)

    Raises
    ------
    ValueError
        If the network has several outputs.
    """
    basis, weights = np.asarray(basis, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[1] != 1:
        raise ValueError(f"weights must have shape (k, 1), one output, got {weights.shape}")
    lams = weights[:, 0]
    return np.where(lams < 0, -1.0, 1.0), np.sqrt(np.abs(lams))[:, None] * basis
