"""Losses per output with a weight for each output: sum_c t_c l(y_c, o_c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mopn.losses.hessians import Diagonal
from mopn.losses.loss import Loss


class WeightedByTarget(Loss):
    """sum_c t_c l(y_c, o_c) of a loss l of one output; the conjugate is sum_c t_c l*(y_c, g_c / t_c)."""

    def __init__(self, loss: Any, weights: np.ndarray) -> None:
        self.loss, self.weights = loss, weights

    name = property(lambda self: self.loss.name)
    targets = property(lambda self: self.loss.targets)
    link = property(lambda self: self.loss.link)
    output_scale = property(lambda self: self.loss.output_scale)
    has_hessian = property(lambda self: self.loss.has_hessian)

    def smoothness(self, m: int) -> float:
        return float(self.weights.max()) * self.loss.smoothness(1)

    def value(self, y: np.ndarray, O: np.ndarray) -> np.ndarray:  # noqa: E741
        return self._entries(self.loss.value, y, O) @ self.weights

    def value_gradient(self, y: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        values, G = self.loss.value_gradient(_column(y), _column(O))
        return _table(values, O) @ self.weights, _table(G, O) * self.weights

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(self.weights * self._entries(lambda *of: self.loss.hessian(*of).diagonal, y, O))

    def conjugate(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return self._entries(self.loss.conjugate, y, G / self.weights) @ self.weights

    def max_scale(self, y: np.ndarray, G: np.ndarray) -> float:
        return self.loss.max_scale(_column(y), _column(G / self.weights))

    def dual_point(self, y: np.ndarray, G: np.ndarray) -> np.ndarray:
        return self.weights * self._entries(self.loss.dual_point, y, G / self.weights)

    def _entries(self, method: Callable[..., np.ndarray], y: np.ndarray, A: np.ndarray) -> np.ndarray:
        return _table(method(_column(y), _column(A)), A)


def _column(A: np.ndarray) -> np.ndarray:
    """Return the entries of A (n, m) as (nm, 1), output by output, as these are contiguous."""
    return A.T.reshape(-1, 1)


def _table(entries: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return entries (nm,) or (nm, 1), output by output, in the shape (n, m) of an array."""
    return entries.reshape(like.shape[::-1]).T
