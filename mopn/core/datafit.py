"""F(O) = sum_i w_i l(y_i, o_i + offset_i): a loss bound to targets, sample weights and offset, and its dual side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from mopn.core.hessians import Hessian, Weighted
from mopn.core.losses import Loss, get_loss
from mopn.core.regularizers import Regularizer
from mopn.core.validation import check_offset, check_sample_weight, check_targets

__all__ = ["DataFit"]

_EPS = float(np.finfo(float).eps)
# Scales of the dual point beyond this are not tried; ``rounding`` counts on it.
_MAX_SCALE = 4.0
# Losses and conjugates are added up over chunks of so many entries.
_CHUNK = 1 << 16
# Scales closer than this, relative, are not told apart.
_NEARBY = 1e-3


class DataFit:
    """The sum of losses over n samples as a function of the outputs O (n, m).

    Parameters
    ----------
    loss : str or Loss
    y : array-like
        Labels (n,) for multi-class losses, targets (n,) or (n, m) for losses per output.
    n : int
        Number of samples.
    sample_weight : array-like of shape (n,), optional
        Nonnegative, not all zero; a weight of 2 equals a repeated row.
    offset : array-like of shape (n,) or (n, m) or (m,), optional
        Added to the outputs.
    """

    def __init__(self, loss: str | Loss, y: Any, n: int, sample_weight: Any = None, offset: Any = None) -> None:
        self.loss = get_loss(loss)
        self.y, self.n_outputs, self.classes = check_targets(y, n, self.loss)
        self.weights = check_sample_weight(sample_weight, n)
        self.offset = check_offset(offset, n, self.n_outputs)

    def rows(self, rows: slice | np.ndarray) -> DataFit:
        """Return the sum over some samples."""
        part = copy(self)
        part.y = self.y[rows]
        part.weights = None if self.weights is None else self.weights[rows]
        part.offset = None if self.offset is None else self.offset[rows]
        return part

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient with respect to O, in the norm that ``squared_length`` takes."""
        return self.loss.smoothness(self.n_outputs)

    def squared_length(self, D: np.ndarray) -> float:
        """Return sum_i w_i ||d_i||^2 for a direction D (n, k) of outputs: weights count as repetitions do."""
        squares = np.einsum("ic,ic->i", D, D)
        return float(squares.sum() if self.weights is None else self.weights @ squares)

    @property
    def sample_weights(self) -> np.ndarray:
        """The weights (n,), 1 where none were given."""
        return np.ones(len(self.y)) if self.weights is None else self.weights

    def value(self, O: np.ndarray) -> float:  # noqa: E741
        """F(O)."""
        return sum(part._sum(part.loss.value(part.y, part._shifted(O[rows]))) for rows, part in self._chunks())

    def value_gradient(self, O: np.ndarray) -> tuple[float, np.ndarray]:  # noqa: E741
        """F(O) and G = dF/dO (n, m)."""
        if O.size <= _CHUNK:
            return self._value_gradient(O)
        total, G = 0.0, np.empty_like(O, dtype=np.float64)
        for rows, part in self._chunks():
            value, G[rows] = part._value_gradient(O[rows])
            total += value
        return total, G

    def hessian(self, O: np.ndarray) -> Hessian:  # noqa: E741
        """Second derivative of F at O."""
        hessian = self.loss.hessian(self.y, self._shifted(O))
        return hessian if self.weights is None else Weighted(hessian, self.weights)

    def dual_point(self, G: np.ndarray) -> np.ndarray:
        """Return a point near G (n, m) where F* is finite: G itself if it is a gradient."""
        if self.weights is None:
            return self.loss.dual_point(self.y, G)
        return self.loss.dual_point(self.y, self._unweighted(G)) * self.weights[:, None]

    def conjugate(self, G: np.ndarray, scale: float = 1.0) -> float:
        """F*(scale * G); scale * G in the domain up to rounding."""
        return sum(part._conjugate(scale * G[rows]) for rows, part in self._chunks())

    def _chunks(self) -> Iterator[tuple[slice, DataFit]]:
        """Yield the samples in parts whose temporary arrays stay in the cache, and are small beside the outputs."""
        size = max(1, _CHUNK // self.n_outputs)
        for first in range(0, len(self.y), size):
            rows = slice(first, first + size)
            yield rows, self.rows(rows)

    def _value_gradient(self, O: np.ndarray) -> tuple[float, np.ndarray]:  # noqa: E741
        values, G = self.loss.value_gradient(self.y, self._shifted(O))
        return self._sum(values), G if self.weights is None else G * self.weights[:, None]

    def _conjugate(self, G: np.ndarray) -> float:
        if self.weights is None:
            total = float(self.loss.conjugate(self.y, G).sum())
        else:
            total = float(self.weights @ self.loss.conjugate(self.y, self._unweighted(G)))
        return total if self.offset is None else total - float(np.vdot(G, self.offset))

    def dual_value(
        self, G: np.ndarray, dual: float, regularizer: Regularizer, ridge: float = 0.0, *, search: bool = True
    ) -> float:
        """Return a lower bound of the minimum of F + R from a gradient G: the largest -F*(s G) - R*(s G) over s.

        Parameters
        ----------
        G : ndarray of shape (n, m)
            A gradient of F.
        dual : float
            A proven upper bound of the dual norm of G pulled back to the weights.
        regularizer : Regularizer
            R; without one (strength 0) there is no certificate and the bound is -inf.
        ridge : float, default 0
            Upper bound of the conjugate of a ridge at G, which is s^2 times as much at s G.
        search : bool, default True
            Search s in one dimension; without it s is 1, or the largest admissible scale below 1.
        """
        if not regularizer.active or not math.isfinite(dual):
            return -math.inf
        limit = min(self.loss.max_scale(self.y, self._unweighted(G)), regularizer.max_scale(dual))

        def loss_of_bound(s: float) -> float:
            return self.conjugate(G, s) + regularizer.conjugate(s * dual) + s * s * ridge

        s = min(1.0, limit)
        best = loss_of_bound(s)
        if search:
            upper = min(limit, _MAX_SCALE)
            # Convex in s: if neither side is better nearby, none is further away.
            if loss_of_bound((1.0 - _NEARBY) * s) < best:
                best = min(best, _least(loss_of_bound, 0.0, s))
            elif upper > s and loss_of_bound(min((1.0 + _NEARBY) * s, upper)) < best:
                best = min(best, _least(loss_of_bound, s, upper), loss_of_bound(upper))
        return -best

    def rounding(self, fun: float, dual_value: float, G: np.ndarray) -> float:
        """Bound what rounding may add to a gap whose dual point is at most 4 G.

        Each of F and F* sums n m terms. Those of F* are at most 1 + |y| + |offset| times |g|, apart from terms of one
        sign; they may be far larger than their sum.
        """
        total = float(np.abs(G).sum())
        if not self.loss.multiclass:
            total += float(np.vdot(np.abs(G), np.abs(self.y)))
        if self.offset is not None:
            total += float(np.vdot(np.abs(G), np.abs(self.offset)))
        terms = len(self.y) * self.n_outputs + 16
        return terms * _EPS * (abs(fun) + abs(dual_value) + _MAX_SCALE * total)

    def _shifted(self, O: np.ndarray) -> np.ndarray:  # noqa: E741
        return O if self.offset is None else O + self.offset

    def _unweighted(self, G: np.ndarray) -> np.ndarray:
        if self.weights is None:
            return G
        return G / np.where(self.weights > 0, self.weights, 1.0)[:, None]

    def _sum(self, values: np.ndarray) -> float:
        return float(values.sum() if self.weights is None else self.weights @ values)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    options = {"xatol": _NEARBY * (high - low), "maxiter": 20}
    return float(minimize_scalar(function, bounds=(low, high), method="bounded", options=options).fun)
