"""The losses l(y_i, o_i + offset_i) of rows, with weights, as functions of their outputs O, and their conjugates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mopn.data.loss_checks import check_own_loss, check_sum_over_outputs
from mopn.data.validation import (
    check_block_targets,
    check_offset,
    check_sample_weight,
    check_target_weight,
    check_targets,
)
from mopn.losses.array_functions import at_least, inner, rowwise_inner, total
from mopn.losses.hessians import Hessian, Weighted
from mopn.losses.losses import Loss, get_loss
from mopn.losses.namespaces import is_for_any_namespace, namespace, to_device, to_host
from mopn.losses.target_weights import WeightedByTarget

__all__ = ["Losses", "OutputLoss"]

# Relative agreement of the same gradient computed twice, of a row in other blocks.
_SAME_GRADIENT = 8 * float(np.finfo(float).eps)
# Logarithms of counts below the first, up to 745, exceed the 128 roundings of a slope so many times at most.
_TINY_COUNT, _OF_TINY_COUNTS = math.exp(-128.0), 6.0


@dataclass(frozen=True, eq=False)
class OutputLoss:
    """What the losses of all rows have in common: a loss of m outputs.

    Attributes
    ----------
    loss : Loss
    n_outputs : int
        m.
    classes : ndarray or None
        The labels that the outputs of a multi-class loss stand for.
    offset : array of shape (n, m) or (1, m), optional
        Added to the outputs; a single row is the same for all.
    """

    loss: Loss
    n_outputs: int
    classes: np.ndarray | None
    offset: Any

    @classmethod
    def of_blocks(cls, loss: Loss, m: int, classes: np.ndarray | None, offset: Any) -> OutputLoss:
        """Return what the losses of blocks have in common; an offset is (m,)."""
        return cls(loss, m, classes, check_offset(offset, 1, m))

    def with_targets(self, y: Any, weights: np.ndarray | None) -> Losses:
        """Return the losses of some rows, with targets as the user gave them, which are validated."""
        y = check_block_targets(y, self.loss, self.classes, self.n_outputs)
        offset = None if self.offset is None else np.broadcast_to(self.offset[0], (len(y), self.n_outputs))
        return Losses(self.loss, self.n_outputs, self.classes, offset, y, weights)

    def by_target(self, target_weight: Any, y: np.ndarray) -> Self:
        """Return the same with a weight for the loss of each output, if weights are given; y are some targets."""
        if target_weight is None:
            return self
        weights = check_target_weight(target_weight, self.n_outputs, self.loss)
        check_sum_over_outputs(self.loss, y)
        return replace(self, loss=WeightedByTarget(self.loss, weights))

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


@dataclass(frozen=True, eq=False)
class Losses(OutputLoss):
    """F(O) = sum_i w_i l(y_i, o_i + offset_i) of n rows, in arrays of one namespace; sums on a device have no axes.

    Attributes
    ----------
    y : array of shape (n,) or (n, m)
        Numbers of classes for multi-class losses, or targets of every output.
    weights : array of shape (n,), optional
        A weight of 2 equals a repeated row. Default 1.
    """

    y: Any
    weights: Any = None

    @classmethod
    def of_data(
        cls, loss: str | Loss, y: Any, n: int, sample_weight: Any = None, offset: Any = None, target_weight: Any = None
    ) -> Losses:
        """Validate what a user gave for n rows.

        Parameters
        ----------
        loss : str or Loss
        y : array-like
            Labels (n,) for multi-class losses, targets (n,) or (n, m) for losses per output.
        n : int
        sample_weight : array-like of shape (n,), optional
            Nonnegative, not all zero.
        offset : array-like of shape (n,) or (n, m) or (m,), optional
        target_weight : array-like of shape (m,), optional
            Positive; for losses per output.
        """
        loss = get_loss(loss)
        y, m, classes = check_targets(y, n, loss)
        check_own_loss(loss, y)
        weights = check_sample_weight(sample_weight, n)
        return cls(loss, m, classes, check_offset(offset, n, m), y, weights).by_target(target_weight, y)

    def on_device(self, like: Any) -> Losses:
        """Return the same in the namespace, and on the device, of an array."""
        parts = {"y": self.y, "weights": self.weights, "offset": self.offset}
        return replace(self, **{name: to_device(part, like) for name, part in parts.items() if part is not None})

    def rows(self, rows: slice | np.ndarray) -> Losses:
        """Return those of some rows."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, y=self.y[rows], weights=weights, offset=None if self.offset is None else self.offset[rows])

    def sample(self, fraction: float, seed: int) -> tuple[np.ndarray, Losses]:
        """Return a random sample of the rows, and their losses, scaled to estimate the sum over all.

        The rows of a smaller fraction are among those of a larger one with the same seed.
        """
        weights = self.sample_weights
        present = np.random.default_rng(seed).permutation(np.flatnonzero(weights))
        rows = np.sort(present[: math.ceil(fraction * len(present))])
        return rows, replace(self.rows(rows), weights=weights[rows] * (weights.sum() / weights[rows].sum()))

    def beside(self, O: Any) -> Losses:  # noqa: E741
        """Return F(O + .) for fixed outputs O (n, m)."""
        return replace(self, offset=self._shifted(O))

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.y.shape[0]

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.n if self.weights is None else self.weights.sum())

    @property
    def sample_weights(self) -> Any:
        """The weights (n,), 1 where none were given."""
        if self.weights is not None:
            return self.weights
        xp = namespace(self.y)
        return xp.ones_like(self.y if self.y.ndim == 1 else self.y[:, 0], dtype=xp.float64)

    def squared_length(self, D: Any) -> Any:
        """Return sum_i w_i ||d_i||^2 for a direction D (n, k) of outputs."""
        return self._sum(rowwise_inner(D, D))

    def value(self, O: Any) -> Any:  # noqa: E741
        """F(O)."""
        return self._sum(self._by_row(self.loss.value, self._shifted(O)))

    def value_gradient(self, O: Any) -> tuple[Any, Any]:  # noqa: E741
        """F(O) and G = dF/dO (n, m)."""
        values, G = self._by_row(self.loss.value_gradient, self._shifted(O))
        return self._sum(values), self._weighted(G)

    def hessian(self, O: np.ndarray) -> Hessian:  # noqa: E741
        """Second derivative of F at O."""
        hessian = self.loss.hessian(self.y, self._shifted(O))
        return hessian if self.weights is None else Weighted(hessian, self.weights)

    def dual_point(self, G: Any) -> Any:
        """Return a point near G (n, m) where F* is finite: G itself if it is a gradient."""
        return self._weighted(self._by_row(self.loss.dual_point, self._unweighted(G)))

    def conjugates_and_sizes(self, G: Any, scales: Any) -> tuple[Any, Any]:
        """F*(s * G) for several scales s, up to rounding in its domain, and the sums of the moduli of its rows."""
        found = zip(*(self._conjugate_and_size(scales[i] * G) for i in range(scales.shape[0])), strict=True)
        values, sizes = map(np.array if isinstance(G, np.ndarray) else namespace(G).stack, found)
        return values, sizes

    def _conjugate_and_size(self, D: Any) -> tuple[Any, Any]:
        return self._conjugate_of_rows(D, self._by_row(self.loss.conjugate, self._unweighted(D)))

    def _conjugate_of_rows(self, D: Any, values: Any) -> tuple[Any, Any]:
        """Return F*(D) from the conjugates of the rows, and the sum of their moduli."""
        value = self._sum(values)
        return value if self.offset is None else value - inner(D, self.offset), self._sum(abs(values))

    def conjugate_bounds_and_sizes(self, G: Any, O: Any, scales: Any) -> tuple[Any, Any]:  # noqa: E741
        """Bound F*(s * G) for several scales s in [0, 1], where G is the gradient at O, and the sizes of the terms.

        At a gradient g of a convex loss l the conjugate is <g, o> - l(o), and at 0 minus the least value, so that it is
        at most their chord between the two. What the loss says itself counts, row by row, where it is larger: a bound
        is false only if both are. Where G is no gradient, as the loss is another one meanwhile, there is no bound.
        """
        xp, shifted, slopes = namespace(G), self._shifted(O), self._unweighted(G)
        values, gradients = self._by_row(self.loss.value_gradient, shifted)
        same = xp.all(abs(self._weighted(gradients) - G) <= _SAME_GRADIENT * abs(G))
        ends = rowwise_inner(slopes, shifted) - values if same else xp.full_like(values, math.inf)
        starts = at_least(self._by_row(self.loss.conjugate, 0.0 * slopes), 0.0)
        products = inner(abs(G), abs(shifted))
        found = []
        for i in range(scales.shape[0]):
            s = scales[i]
            own, chord = self._by_row(self.loss.conjugate, s * slopes), s * ends + (1.0 - s) * starts
            value, size = self._conjugate_of_rows(s * G, xp.where(own > chord, own, chord))
            found.append((value, size + s * products))
        stacked = np.array if isinstance(G, np.ndarray) else xp.stack
        return tuple(map(stacked, zip(*found, strict=True)))

    def max_scale(self, G: Any) -> float:
        """Return the largest s with F* finite at s * G, for a gradient G (n, m)."""
        return self._by_row(self.loss.max_scale, self._unweighted(G))

    def slope_size(self, G: Any) -> Any:
        """Return sum_ic (u + |y_ic| + |offset_ic|) |G_ic|, which bounds the terms of F and F*; without y for labels.

        u is the loss's ``own_unit``.
        """
        sizes = abs(G)
        size = self.loss.own_unit * total(sizes)
        if self.loss.targets != "labels":
            size = size + inner(sizes, abs(self.y))
        if self.loss.targets == "counts":
            tiny = (self.y > 0.0) & (self.y < _TINY_COUNT)
            size = size + _OF_TINY_COUNTS * total(namespace(G).where(tiny, sizes, 0.0 * sizes))
        return size if self.offset is None else size + inner(sizes, abs(self.offset))

    def _by_row(self, method: Callable[..., Any], A: Any) -> Any:
        """Return what a method of the loss returns for outputs or slopes A; some know arrays of NumPy alone."""
        if isinstance(A, np.ndarray) or is_for_any_namespace(self.loss):
            return method(self.y, A)
        found = method(to_host(self.y), to_host(A))
        if isinstance(found, tuple):
            return tuple(to_device(part, A) for part in found)
        return to_device(found, A) if isinstance(found, np.ndarray) else found

    def _shifted(self, O: Any) -> Any:  # noqa: E741
        return O if self.offset is None else O + self.offset

    def _weighted(self, G: Any) -> Any:
        return G if self.weights is None else G * self.weights[:, None]

    def _unweighted(self, G: Any) -> Any:
        if self.weights is None:
            return G
        return G / namespace(G).where(self.weights > 0.0, self.weights, 1.0)[:, None]

    def _sum(self, values: Any) -> Any:
        return total(values) if self.weights is None else inner(self.weights, values)
