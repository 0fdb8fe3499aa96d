"""The layout of units, weights and linear terms for compiled loops over the stored entries of sparse rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mopn.data.centered import uncentered
from mopn.data.designs import Entries


class PaddedUnits(NamedTuple):
    """Units by features, padded with zeros: entries of the dummies (q, k') and of the other features (d, k')."""

    dummies: np.ndarray
    units: np.ndarray

    def constants(self) -> np.ndarray:
        """A^1 and A^2 of the dummies, (2, k')."""
        first = self.dummies.sum(axis=0)
        return np.stack([first, 0.5 * (first**2 - (self.dummies**2).sum(axis=0))])


class SparseLayout:
    """Parameters as compiled loops take them, and gradients as they return them."""

    def __init__(self, entries: Entries, *, distinct: bool) -> None:
        self.n_dummies, self.center = entries
        assert self.center is None or not distinct
        self.distinct = distinct

    def units(self, H: np.ndarray, dtype: type = np.float64) -> PaddedUnits:
        """Lay out units H (k, q + d) for compiled loops, which read x: h_0 + <h, x - c> = (h_0 - <h, c>) + <h, x>."""
        table = padded(uncentered(H, self.center, self.n_dummies).T, dtype)
        return PaddedUnits(table[: self.n_dummies], table[self.n_dummies :])

    def linear(self, W: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        """Return the coefficients W' (1 + d, m) of a linear term for compiled loops; (0, m) for an inactive one."""
        return np.ascontiguousarray((uncentered(W, self.center, 1) if W.shape[1] else W).T, dtype)

    def linear_gradient(self, of_linear: np.ndarray) -> np.ndarray:
        """Return the gradient (m, 1 + d) with respect to W from the sums (1 + d, m) of the compiled loops."""
        return self._pulled_back(of_linear.T, 1) if len(of_linear) else of_linear.T

    def gradient(self, at: PaddedUnits, of_constants: np.ndarray, of_units: np.ndarray, k: int) -> np.ndarray:
        """Return the gradient (k, q + d) from the sums of the compiled loops."""
        # The derivative of A^2 in a dummy's entry is <h, x> without its own term, and of <h, x>^2 it is 2 <h, x>.
        projections, slopes = of_constants
        if self.distinct:
            of_dummies = projections - at.dummies * slopes
        else:
            of_dummies = np.broadcast_to(2.0 * projections, at.dummies.shape)
        return self._pulled_back(np.vstack([of_dummies, of_units]).T[:k], self.n_dummies)

    def _pulled_back(self, gradient: np.ndarray, dummies: int) -> np.ndarray:
        """Return the gradient with respect to coefficients of [1, x - c] from that of those of [1, x]."""
        if self.center is None:
            return gradient
        gradient = gradient.copy()
        gradient[:, dummies:] -= np.outer(gradient[:, 0], self.center)
        return gradient


def padded(table: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """Return a contiguous table with rows padded by zeros to a multiple of the width of compiled loops."""
    from mopn.compiled.vectorization import WIDTH

    rows, k = table.shape
    filled = np.zeros((rows, -(-k // WIDTH) * WIDTH), dtype)
    filled[:, :k] = table
    return filled
