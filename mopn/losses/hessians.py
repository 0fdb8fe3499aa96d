"""Second derivatives of losses with respect to the outputs (n, m), without the (m, m) matrices of the samples."""

from abc import ABC, abstractmethod

import numpy as np


class Hessian(ABC):
    """A positive semidefinite second derivative; ``shift_invariant`` if equal shifts of all outputs change no loss."""

    diagonal: np.ndarray
    shift_invariant: bool = False

    @abstractmethod
    def product(self, Z: np.ndarray) -> np.ndarray:
        """Return the product with a direction Z (n, m) of the outputs."""

    def along(self, E: np.ndarray) -> np.ndarray:
        """Return e_r' H_i e_r, shape (n, k), for the rows of E (k, m)."""
        ones = np.ones((len(self.diagonal), 1))
        columns = [np.einsum("ic,c->i", self.product(ones * e), e) for e in E]
        return np.stack(columns, axis=1)

    def total(self, weights: np.ndarray) -> np.ndarray:
        """Return sum_i w_i H_i, shape (m, m), for weights (n,)."""
        ones = np.ones((len(weights), 1))
        columns = [weights @ self.product(ones * e) for e in np.eye(self.diagonal.shape[1])]
        return np.stack(columns, axis=1)


class Diagonal(Hessian):
    """diag(h_i) for h (n, m): losses of single outputs, added up."""

    def __init__(self, h: np.ndarray) -> None:
        self.diagonal = h

    def product(self, Z: np.ndarray) -> np.ndarray:
        return self.diagonal * Z

    def along(self, E: np.ndarray) -> np.ndarray:
        return self.diagonal @ (E * E).T

    def total(self, weights: np.ndarray) -> np.ndarray:
        return np.diag(weights @ self.diagonal)


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

    def along(self, E: np.ndarray) -> np.ndarray:
        return self.P @ (E * E).T - (self.P @ E.T) ** 2

    def total(self, weights: np.ndarray) -> np.ndarray:
        weighted = weights[:, None] * self.P
        return np.diag(weighted.sum(axis=0)) - weighted.T @ self.P


class MarginHessian(Hessian):
    """Losses of the margins o_c - o_y, added up: sum_c h_ic (z_ic - z_iy)^2 / 2 for H (n, m) with h_iy = 0."""

    shift_invariant = True

    def __init__(self, H: np.ndarray, y: np.ndarray) -> None:
        self.H = H
        self.rows = np.arange(len(y))
        self.y = y

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

    def along(self, E: np.ndarray) -> np.ndarray:
        at_y = E[:, self.y].T
        return self.H @ (E * E).T - 2.0 * (self.H @ E.T) * at_y + self.H.sum(axis=1)[:, None] * at_y**2

    def total(self, weights: np.ndarray) -> np.ndarray:
        weighted = weights[:, None] * self.H
        m = weighted.shape[1]
        crossed = np.zeros((m, m))
        np.add.at(crossed, self.y, weighted)
        return np.diag(weighted.sum(axis=0) + crossed.sum(axis=1)) - crossed - crossed.T


class Weighted(Hessian):
    """A Hessian whose samples have weights (n,)."""

    def __init__(self, hessian: Hessian, weights: np.ndarray) -> None:
        self.hessian = hessian
        self.weights = weights[:, None]
        self.shift_invariant = hessian.shift_invariant

    @property
    def diagonal(self) -> np.ndarray:  # type: ignore[override]
        return self.weights * self.hessian.diagonal

    def product(self, Z: np.ndarray) -> np.ndarray:
        W = self.hessian.product(Z)
        W *= self.weights
        return W

    def along(self, E: np.ndarray) -> np.ndarray:
        return self.weights * self.hessian.along(E)

    def total(self, weights: np.ndarray) -> np.ndarray:
        return self.hessian.total(self.weights[:, 0] * weights)
