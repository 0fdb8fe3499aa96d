"""Second derivatives of losses with respect to the outputs (n, m): products with directions, and diagonals.

The (m, m) matrices of the samples are never formed; three kinds cover all losses of :mod:`mopn.core.losses`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

__all__ = ["Diagonal", "Hessian", "Margins", "Softmax", "Weighted"]


class Hessian(ABC):
    """A positive semidefinite second derivative at fixed outputs.

    ``shift_invariant`` says that the loss is constant when all outputs of a sample shift by the same amount.
    """

    diagonal: np.ndarray
    shift_invariant: bool = False

    @abstractmethod
    def product(self, Z: np.ndarray) -> np.ndarray:
        """Return the product with a direction Z (n, m) of the outputs."""


class Diagonal(Hessian):
    """diag(h_i) for h (n, m): losses that add up over the outputs."""

    def __init__(self, h: np.ndarray) -> None:
        self.diagonal = h

    def product(self, Z: np.ndarray) -> np.ndarray:
        return self.diagonal * Z


class Softmax(Hessian):
    """diag(p_i) - p_i p_i' for probabilities P (n, m)."""

    shift_invariant = True

    def __init__(self, P: np.ndarray) -> None:
        self.P = P

    @property
    def diagonal(self) -> np.ndarray:  # type: ignore[override]
        return self.P * (1.0 - self.P)

    def product(self, Z: np.ndarray) -> np.ndarray:
        W = Z - np.einsum("ic,ic->i", self.P, Z)[:, None]
        W *= self.P
        return W


class Margins(Hessian):
    """sum_c h_ic (z_ic - z_iy)^2 / 2 for H (n, m) with h_iy = 0: losses that add up over the margins o_c - o_y."""

    shift_invariant = True

    def __init__(self, H: np.ndarray, y: np.ndarray) -> None:
        self.H, self.rows, self.y = H, np.arange(len(y)), y

    @property
    def diagonal(self) -> np.ndarray:  # type: ignore[override]
        diagonal = self.H.copy(order="K")
        diagonal[self.rows, self.y] = self.H.sum(axis=1)
        return diagonal

    def product(self, Z: np.ndarray) -> np.ndarray:
        W = Z - Z[self.rows, self.y][:, None]
        W *= self.H
        W[self.rows, self.y] = -W.sum(axis=1)
        return W


class Weighted(Hessian):
    """A Hessian whose samples have weights (n,)."""

    def __init__(self, hessian: Hessian, weights: np.ndarray) -> None:
        self.hessian, self.weights, self.shift_invariant = hessian, weights[:, None], hessian.shift_invariant

    @property
    def diagonal(self) -> np.ndarray:  # type: ignore[override]
        return self.weights * self.hessian.diagonal

    def product(self, Z: np.ndarray) -> np.ndarray:
        W = self.hessian.product(Z)
        W *= self.weights
        return W
