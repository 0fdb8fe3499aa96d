"""Losses per output with a weight for each output: sum_c t_c l(y_c, o_c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mopn.losses.hessians import Diagonal
from mopn.losses.loss import Loss
from mopn.losses.namespaces import is_for_any_namespace, namespace, to_device

__all__ = ["WeightedByTarget"]


class WeightedByTarget(Loss):
    """sum_c t_c l(y_c, o_c) of a loss l per output. The conjugate is sum_c t_c l*(y_c, g_c / t_c).

    Each entry is a row of one output to l, whose results are then weighted.

    Parameters
    ----------
    loss : Loss
        A sum of losses per output.
    weights : ndarray of shape (m,)
        Positive.
    """

    def __init__(self, loss: Loss, weights: np.ndarray) -> None:
        self.loss, self.weights = loss, weights

    name = property(lambda self: self.loss.name)
    targets = property(lambda self: self.loss.targets)
    link = property(lambda self: self.loss.link)
    own_unit = property(lambda self: self.loss.own_unit)
    has_hessian = property(lambda self: self.loss.has_hessian)
    for_any_namespace = property(lambda self: is_for_any_namespace(self.loss))

    def smoothness(self, m: int) -> float:
        return float(self.weights.max()) * self.loss.smoothness(1)

    def value(self, y: Any, O: Any) -> Any:  # noqa: E741
        return self._sums(self._entries(self.loss.value, y, O))

    def value_gradient(self, y: Any, O: Any) -> tuple[Any, Any]:  # noqa: E741
        values, G = self.loss.value_gradient(_column(y), _column(O))
        return self._sums(_table(values, O)), _table(G, O) * self._like(O)

    def hessian(self, y: np.ndarray, O: np.ndarray) -> Diagonal:  # noqa: E741
        return Diagonal(self.weights * self._entries(lambda *of: self.loss.hessian(*of).diagonal, y, O))

    def conjugate(self, y: Any, G: Any) -> Any:
        return self._sums(self._entries(self.loss.conjugate, y, G / self._like(G)))

    def max_scale(self, y: Any, G: Any) -> float:
        return self.loss.max_scale(_column(y), _column(G / self._like(G)))

    def dual_point(self, y: Any, G: Any) -> Any:
        weights = self._like(G)
        return weights * self._entries(self.loss.dual_point, y, G / weights)

    def _entries(self, method: Callable[[Any, Any], Any], y: Any, A: Any) -> Any:
        """Return what a method of the loss returns for each entry of A (n, m) as a row of one output."""
        return _table(method(_column(y), _column(A)), A)

    def _sums(self, entries: Any) -> Any:
        """Return the sums (n,) of the weighted entries of each row."""
        return entries @ self._like(entries)

    def _like(self, A: Any) -> Any:
        """Return the weights in the namespace of an array."""
        return self.weights if isinstance(A, np.ndarray) else to_device(self.weights, A)


def _column(A: Any) -> Any:
    """Return the entries of A (n, m) as (nm, 1), one output after the other, as outputs are contiguous."""
    return namespace(A).reshape(A.T, (-1, 1))


def _table(entries: Any, like: Any) -> Any:
    """Return such entries, (nm,) or (nm, 1), in the shape (n, m) of an array."""
    n, m = like.shape
    return namespace(entries).reshape(entries, (m, n)).T
