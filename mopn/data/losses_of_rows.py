"""The losses l(y_i, o_i + offset_i) of rows, with weights, as functions of their outputs O, and their conjugates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mopn.data.loss_checks import check_user_loss
from mopn.data.validation import (
    check_block_targets,
    check_offset,
    check_sample_weight,
    check_targets,
)
from mopn.losses.hessians import Hessian, Weighted
from mopn.losses.losses import Loss, LossDual, dual_of, get_loss, rowwise_inner
from mopn.solvers.numerics.precision import EPS

# Relative tolerance up to which a gradient counts as unchanged; in other blocks its last digits may differ.
_GRADIENT_TOL = 8 * EPS
# Counts below this have logarithms that exceed the 128 roundings of a slope.
_TINY_COUNT = math.exp(-128.0)
# Largest ratio of such a logarithm, at most 745, to these roundings.
_ROUNDING_OF_TINY_COUNTS = 6.0


@dataclass(frozen=True, eq=False)
class OutputLoss:
    """A loss of m outputs, common to all rows."""

    loss: Loss
    n_outputs: int
    classes: np.ndarray | None  # the labels of the outputs of a multi-class loss
    offset: Any  # an array (n, m) or (1, m) that is added to the outputs, or None

    @classmethod
    def of_blocks(cls, loss: Loss, m: int, classes: np.ndarray | None, offset: Any) -> OutputLoss:
        """Return the loss of blocks, with an offset (m,)."""
        return cls(loss, m, classes, check_offset(offset, 1, m))

    def with_targets(self, y: Any, weights: np.ndarray | None) -> Losses:
        """Return the losses of a block with these targets and weights."""
        y = check_block_targets(y, self.loss, self.classes, self.n_outputs)
        offset = None if self.offset is None else np.broadcast_to(self.offset[0], (len(y), self.n_outputs))
        return Losses(self.loss, self.n_outputs, self.classes, offset, y, weights)

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient in O; if infinite, the mean curvature at 0, a guess for line searches."""
        m = self.n_outputs
        constant = self.loss.smoothness(m)
        if math.isfinite(constant):
            return constant
        outputs = np.zeros((1, m)) if self.offset is None else self.offset
        # A guess needs no targets, which may have to be read from a file.
        y = np.zeros(len(outputs), dtype=int) if self.loss.targets == "labels" else np.ones(outputs.shape)
        return float(self.loss.hessian(y, outputs).diagonal.mean())


@dataclass(frozen=True, eq=False)
class Losses(OutputLoss):
    """F(O) = sum_i w_i l(y_i, o_i + offset_i) of n rows."""

    y: Any  # numbers (n,) of classes for multi-class losses, or targets (n, m)
    weights: Any = None  # (n,), or None for 1: a weight of 2 equals a repeated row

    @classmethod
    def of_data(cls, loss: str | Loss, y: Any, n: int, sample_weight: Any = None, offset: Any = None) -> Losses:
        loss = get_loss(loss)
        y, m, classes = check_targets(y, n, loss)
        if dual_of(loss) is None:
            check_user_loss(loss, y)
        weights = check_sample_weight(sample_weight, n)
        return cls(loss, m, classes, check_offset(offset, n, m), y, weights)

    def rows(self, rows: slice | np.ndarray) -> Losses:
        weights = None if self.weights is None else self.weights[rows]
        offset = None if self.offset is None else self.offset[rows]
        return replace(self, y=self.y[rows], weights=weights, offset=offset)

    def sample(self, fraction: float, seed: int) -> tuple[np.ndarray, Losses]:
        """Return a random sample of the rows, and losses that estimate the sum over all; fractions of a seed nest."""
        weights = self.sample_weights
        present = np.random.default_rng(seed).permutation(np.flatnonzero(weights))
        rows = np.sort(present[: math.ceil(fraction * len(present))])
        drawn = weights[rows]
        return rows, replace(self.rows(rows), weights=drawn * (weights.sum() / drawn.sum()))

    def plus(self, O: Any) -> Losses:  # noqa: E741
        return replace(self, offset=self._shifted(O))

    @property
    def n(self) -> int:
        return self.y.shape[0]

    @property
    def total_weight(self) -> float:
        return float(self.n if self.weights is None else self.weights.sum())

    @property
    def sample_weights(self) -> Any:
        return np.ones(self.n) if self.weights is None else self.weights

    def squared_length(self, D: Any) -> Any:
        """Return sum_i w_i ||d_i||^2 for a direction D (n, k) of outputs."""
        return self._sum(rowwise_inner(D, D))

    def value(self, O: Any) -> Any:  # noqa: E741
        return self._sum(self.loss.value(self.y, self._shifted(O)))

    def value_gradient(self, O: Any) -> tuple[Any, Any]:  # noqa: E741
        """F(O) and G = dF/dO (n, m)."""
        values, G = self.loss.value_gradient(self.y, self._shifted(O))
        return self._sum(values), self._weighted(G)

    def hessian(self, O: np.ndarray) -> Hessian:  # noqa: E741
        hessian = self.loss.hessian(self.y, self._shifted(O))
        return hessian if self.weights is None else Weighted(hessian, self.weights)

    def dual_point(self, G: Any) -> Any:
        """Return a point near G (n, m) where F* is finite: G itself if it is a gradient."""
        return self._weighted(self._dual.dual_point(self.y, self._unweighted(G)))

    def conjugates_and_sizes(self, G: Any, scales: Any) -> tuple[Any, Any]:
        """F*(s * G) for several scales s, up to rounding in its domain, and the sums of moduli over the rows."""
        dual = self._dual
        found = []
        for s in scales:
            D = s * G
            conjugates = dual.conjugate(self.y, self._unweighted(D))
            found.append(self._sum_of_conjugates(D, conjugates))
        values, sizes = np.array(found).T
        return values, sizes

    @property
    def _dual(self) -> LossDual:
        dual = dual_of(self.loss)
        assert dual is not None
        return dual

    def _sum_of_conjugates(self, D: Any, conjugates: Any) -> tuple[Any, Any]:
        """Return F*(D) from the conjugates of the rows, and the sum of their moduli."""
        value = self._sum(conjugates)
        if self.offset is not None:
            value = value - inner(D, self.offset)
        return value, self._sum(abs(conjugates))

    def conjugate_bounds_and_sizes(self, G: Any, O: Any, scales: Any) -> tuple[Any, Any]:  # noqa: E741
        """Bound F*(s * G) for several scales s in [0, 1], where G is the gradient at O, and the sizes of the terms.

        At a gradient g of a convex loss l the conjugate is <g, o> - l(o), and at 0 it is minus the least value. Between
        these two points it is at most their chord. The loss's own conjugate counts in rows where it is larger: a bound
        is false only if both are. There is no bound if G is no gradient, because the loss has changed meanwhile.
        """
        shifted = self._shifted(O)
        slopes = self._unweighted(G)
        values, gradients = self.loss.value_gradient(self.y, shifted)
        same = np.all(abs(self._weighted(gradients) - G) <= _GRADIENT_TOL * abs(G))
        at_gradient = rowwise_inner(slopes, shifted) - values if same else np.full_like(values, math.inf)
        at_zero = np.maximum(self.loss.conjugate(self.y, 0.0 * slopes), 0.0)
        products = inner(abs(G), abs(shifted))
        found = []
        for s in scales:
            conjugates = self.loss.conjugate(self.y, s * slopes)
            chord = s * at_gradient + (1.0 - s) * at_zero
            value, size = self._sum_of_conjugates(s * G, np.where(conjugates > chord, conjugates, chord))
            found.append((value, size + s * products))
        values, sizes = np.array(found).T
        return values, sizes

    def max_scale(self, G: Any) -> float:
        """Return the largest s with F* finite at s * G, for a gradient G (n, m)."""
        return self._dual.max_scale(self.y, self._unweighted(G))

    def slope_size(self, G: Any) -> Any:
        """Return sum_ic (u + |y_ic| + |offset_ic|) |G_ic| for the loss's ``output_scale`` u; no y for labels."""
        sizes = abs(G)
        size = self.loss.output_scale * float(sizes.sum())
        if self.loss.targets != "labels":
            size = size + inner(sizes, abs(self.y))
        if self.loss.targets == "counts":
            tiny = (self.y > 0.0) & (self.y < _TINY_COUNT)
            size = size + _ROUNDING_OF_TINY_COUNTS * float(np.where(tiny, sizes, 0.0 * sizes).sum())
        return size if self.offset is None else size + inner(sizes, abs(self.offset))

    def _shifted(self, O: Any) -> Any:  # noqa: E741
        return O if self.offset is None else O + self.offset

    def _weighted(self, G: Any) -> Any:
        return G if self.weights is None else G * self.weights[:, None]

    def _unweighted(self, G: Any) -> Any:
        if self.weights is None:
            return G
        return G / np.where(self.weights > 0.0, self.weights, 1.0)[:, None]

    def _sum(self, values: Any) -> Any:
        """Return the weighted sum of the values (n,) of rows."""
        return float(values.sum()) if self.weights is None else inner(self.weights, values)


def inner(A: np.ndarray, B: np.ndarray) -> float:
    return float(np.vdot(A, B))
