"""The spectral decomposition of a symmetric matrix of low rank, given as a sum of rank-one matrices."""

from __future__ import annotations

import numpy as np

from mopn.solvers.numerics.precision import NULL

__all__ = ["eigen_units"]


def eigen_units(weights: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nonzero eigenvalues (r,) and unit eigenvectors (r, d) of W = sum_s weights_s h_s h_s'.

    Fewer units cannot represent W, and the moduli of the eigenvalues add up to its nuclear norm.
    """
    # W = H' diag(weights) H is decomposed in the span of the units: no d x d matrix.
    Q, R = np.linalg.qr(units.T)
    values, vectors = np.linalg.eigh((R * weights) @ R.T)
    kept = np.abs(values) > NULL * np.abs(values).max(initial=0.0)
    return values[kept], (Q @ vectors[:, kept]).T
