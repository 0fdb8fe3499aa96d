"""F(O) = sum_i w_i l(y_i, o_i + offset_i): a loss bound to targets, sample weights and offset, and its conjugate."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from mopn.core.hessians import Hessian, Weighted
from mopn.core.loss_checks import check_own_loss
from mopn.core.losses import Loss, get_loss
from mopn.core.validation import check_block_targets, check_offset, check_sample_weight, check_targets

__all__ = ["DataFit"]


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
        check_own_loss(self.loss, self.y)
        self.weights = check_sample_weight(sample_weight, n)
        self.offset = check_offset(offset, n, self.n_outputs)

    @classmethod
    def template(cls, loss: Loss, n_outputs: int, classes: np.ndarray | None, offset: Any = None) -> DataFit:
        """Return what the losses of all blocks have in common, to be completed by ``of``; ``offset`` is (m,)."""
        fit = cls.__new__(cls)
        fit.loss, fit.n_outputs, fit.classes = loss, n_outputs, classes
        fit.weights, fit.offset = None, check_offset(offset, 1, n_outputs)
        return fit

    def of(self, y: np.ndarray, weights: np.ndarray | None) -> DataFit:
        """Return the losses of some samples, with targets as the user gave them, validated."""
        part = copy(self)
        part.y = check_block_targets(y, self.loss, self.classes, self.n_outputs)
        part.weights = weights
        part.offset = None if self.offset is None else np.broadcast_to(self.offset[0], (len(y), self.n_outputs))
        return part

    def rows(self, rows: slice | np.ndarray) -> DataFit:
        """Return the sum over some samples."""
        part = copy(self)
        part.y = self.y[rows]
        part.weights = None if self.weights is None else self.weights[rows]
        part.offset = None if self.offset is None else self.offset[rows]
        return part

    def sample(self, share: float) -> tuple[np.ndarray, DataFit]:
        """Return the rows of a random share of the samples, and the sum over them, scaled to estimate that over all.

        The rows of a smaller share are among those of a larger one.
        """
        weights = self.sample_weights
        present = np.random.default_rng(0).permutation(np.flatnonzero(weights))
        rows = np.sort(present[: math.ceil(share * len(present))])
        part = self.rows(rows)
        part.weights = weights[rows] * (weights.sum() / weights[rows].sum())
        return rows, part

    def beside(self, O: np.ndarray) -> DataFit:  # noqa: E741
        """Return F(O + .) for fixed outputs O (n, m)."""
        part = copy(self)
        part.offset = O if self.offset is None else self.offset + O
        return part

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient with respect to O, in the norm that ``squared_length`` takes.

        Where the loss has none it is a first guess for line searches: the mean curvature at outputs of zero.
        """
        m = self.n_outputs
        constant = self.loss.smoothness(m)
        if math.isfinite(constant):
            return constant
        outputs = np.zeros((1, m)) if self.offset is None else self.offset
        # A guess needs no targets, which may have to be read from a file.
        y = np.zeros(len(outputs), dtype=int) if self.loss.targets == "labels" else np.ones(outputs.shape)
        return float(self.loss.hessian(y, outputs).diagonal.mean())

    def squared_length(self, D: np.ndarray) -> float:
        """Return sum_i w_i ||d_i||^2 for a direction D (n, k) of outputs; a weight of 2 equals a repeated row."""
        squares = np.einsum("ic,ic->i", D, D)
        return float(squares.sum() if self.weights is None else self.weights @ squares)

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.y)

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(len(self.y) if self.weights is None else self.weights.sum())

    @property
    def sample_weights(self) -> np.ndarray:
        """The weights (n,), 1 where none were given."""
        return np.ones(len(self.y)) if self.weights is None else self.weights

    def value(self, O: np.ndarray) -> float:  # noqa: E741
        """F(O)."""
        return self._sum(self.loss.value(self.y, self._shifted(O)))

    def value_gradient(self, O: np.ndarray) -> tuple[float, np.ndarray]:  # noqa: E741
        """F(O) and G = dF/dO (n, m)."""
        values, G = self.loss.value_gradient(self.y, self._shifted(O))
        return self._sum(values), G if self.weights is None else G * self.weights[:, None]

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
        """F*(scale * G), where scale * G is in the domain of F* up to rounding."""
        return float(self.conjugates_and_sizes(G, np.array([scale]))[0][0])

    def conjugates_and_sizes(self, G: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F*(s * G) for several scales s, and the sums of the moduli of the rows of each."""
        found = np.array([self._conjugate_and_size(s * G) for s in scales])
        return found[:, 0], found[:, 1]

    def _conjugate_and_size(self, D: np.ndarray) -> tuple[float, float]:
        values = self.loss.conjugate(self.y, self._unweighted(D))
        total = self._sum(values)
        if self.offset is not None:
            total -= float(np.vdot(D, self.offset))
        return total, self._sum(np.abs(values))

    def max_scale(self, G: np.ndarray) -> float:
        """Return the largest s with F* finite at s * G, for a gradient G (n, m)."""
        return self.loss.max_scale(self.y, self._unweighted(G))

    def slope_size(self, G: np.ndarray) -> float:
        """Return sum_ic (u + |y_ic| + |offset_ic|) |G_ic|, which bounds the terms of F and F*; without y for labels.

        u is the loss's ``own_unit``.
        """
        sizes = np.abs(G)
        total = self.loss.own_unit * float(sizes.sum())
        if self.loss.targets != "labels":
            total += float(np.vdot(sizes, np.abs(self.y)))
        return total if self.offset is None else total + float(np.vdot(sizes, np.abs(self.offset)))

    def _shifted(self, O: np.ndarray) -> np.ndarray:  # noqa: E741
        return O if self.offset is None else O + self.offset

    def _unweighted(self, G: np.ndarray) -> np.ndarray:
        if self.weights is None:
            return G
        return G / np.where(self.weights > 0, self.weights, 1.0)[:, None]

    def _sum(self, values: np.ndarray) -> float:
        return float(values.sum() if self.weights is None else self.weights @ values)
