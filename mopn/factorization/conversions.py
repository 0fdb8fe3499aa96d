"""Models of degree 2 in three forms: direct (lambda, P), lifted (U, V) and the network of one output (H, v).

Each is a symmetric matrix W of low rank: P' diag(lambda) P, the symmetric part of U' V, and H' diag(v) H.
"""

from typing import Any

import numpy as np

from mopn.core.kernels import eigen_units


def lifted_to_direct(U: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return lambda (k,) and unit vectors P (k, d), r <= k <= 2 r, of the factors U (2, r, d).

    The reduced eigendecomposition of S(U' V): section 5.2 of Blondel et al. (ICML 2016).
    """
    first, second = (np.asarray(factor, dtype=np.float64) for factor in U)
    # u v' + v u' = ((u + v)(u + v)' - (u - v)(u - v)') / 2
    r = len(first)
    signs = np.concatenate([np.full(r, 0.25), np.full(r, -0.25)])
    return eigen_units(signs, np.vstack([first + second, first - second]))


def direct_to_network(lams: Any, P: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (k, d) and weights (k, 1) of the network of one output with units p_s / ||p_s||."""
    lams, P = np.asarray(lams, dtype=np.float64), np.asarray(P, dtype=np.float64)
    squares = np.einsum("sj,sj->s", P, P)
    alive = (squares > 0) & (lams != 0)
    return P[alive] / np.sqrt(squares[alive])[:, None], (lams * squares)[alive, None]
