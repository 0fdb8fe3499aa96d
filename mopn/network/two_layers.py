"""F(K(X, H) V + [1, X] W') as a function of both layers and the linear term: values and gradients, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mopn.core import blocks
from mopn.core.datafit import DataFit
from mopn.core.designs import Design
from mopn.core.kernels import Kernel
from mopn.network.linear_term import LinearTerm
from mopn.network.sparse_rows import SparseRows, Units, padded

__all__ = ["DenseLayers", "SparseLayers", "TwoLayers", "layer_outputs", "two_layers"]


def layer_outputs(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the product (n, m), with each output contiguous, which makes sums over the outputs fast."""
    return (weights.T @ features.T).T


class TwoLayers(ABC):
    """The losses of networks of k units with a linear term, on given data.

    No array of n rows by k units is formed. Features are computed block by block or row by row and discarded: this
    saves memory, and time, as they stay in the cache. In ``single`` precision they are float32; losses and sums over
    the blocks are float64.
    """

    @abstractmethod
    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        """F for units H (k, d) of any length, weights V (k, m), and coefficients W of the linear term."""

    @abstractmethod
    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        """F, and its gradients with respect to H, V and W."""


class DenseLayers(TwoLayers):
    """By matrix products."""

    def __init__(
        self, design: Design, kernel: Kernel, fit: DataFit, linear_term: LinearTerm, n_units: int, *, single: bool
    ) -> None:
        self.kernel, self.dtype = kernel, np.float32 if single else np.float64
        # Steps that a line search tries may exceed the numbers in single precision: it takes shorter ones then.
        self.errors = dict.fromkeys(("over", "invalid"), "ignore" if single else None)
        design = design.single() if single else design
        size = max(blocks.rows_at_once(n_units + fit.n_outputs), blocks.ROWS_PER_INPUT * design.shape[1])
        self.blocks = [(block, linear_term.on(block), fit.rows(rows)) for rows, block in design.blocks(size)]

    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        with np.errstate(**self.errors):
            H, V, W = (part.astype(self.dtype, copy=False) for part in (H, V, W))
            return sum(
                fit.value(self._outputs(linear, self.kernel.features(block, H), V, W))
                for block, linear, fit in self.blocks
            )

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        with np.errstate(**self.errors):
            return self._value_gradient(H, V, W)

    def _value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        value, gradient_H, gradient_V, gradient_W = 0.0, np.zeros_like(H), np.zeros_like(V), np.zeros_like(W)
        H, V, W = (part.astype(self.dtype, copy=False) for part in (H, V, W))
        for block, linear, fit in self.blocks:
            P = block.project(H)
            features = self.kernel.features_of(block, H, P)
            part, G = fit.value_gradient(self._outputs(linear, features, V, W))
            G = G.astype(self.dtype, copy=False)
            value += part
            gradient_V += features.T @ G
            gradient_W += linear.adjoint(G)
            R = np.matmul(G, V.T, out=features)
            gradient_H += 2.0 * self.kernel.products_of(block, R, H, P)
        return value, gradient_H, gradient_V, gradient_W

    def _outputs(self, linear: LinearTerm, features: np.ndarray, V: np.ndarray, W: np.ndarray) -> np.ndarray:
        outputs = layer_outputs(features, V)
        linear.add_outputs(outputs, W)
        return outputs.astype(np.float64, copy=False)


class SparseLayers(TwoLayers):
    """By compiled loops over the stored entries, slice by slice of the rows; only the outputs of a slice are formed."""

    def __init__(
        self, design: Design, kernel: Kernel, fit: DataFit, linear_term: LinearTerm, n_units: int, *, single: bool
    ) -> None:
        self.rows = SparseRows(design, distinct=kernel.distinct)
        self.dtype = np.float32 if single else np.float64
        self.fits = {limits: fit.rows(slice(*limits)) for limits in self.rows.slices}

    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        (total,) = self.rows.sum(partial(self._value, self._layers(H, V, W)))
        return total

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        layers = self._layers(H, V, W)
        value, of_constants, of_units, of_weights, of_linear = self.rows.sum(partial(self._value_gradient, layers))
        gradient_H = self.rows.gradient(layers.at, of_constants, of_units, len(H))
        return value, gradient_H, of_weights.T[: len(H)], self.rows.linear_gradient(of_linear)

    def _layers(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        """Lay out a point for compiled loops."""
        at = self.rows.units(H, self.dtype)
        return _Layers(at, at.constants(), padded(V.T, self.dtype), self.rows.linear(W, self.dtype))

    def _value(self, layers: _Layers, begin: int, stop: int) -> tuple[float]:
        """Return the losses of a slice."""
        return (self.fits[begin, stop].value(self._outputs(layers, begin, stop)),)

    def _value_gradient(self, layers: _Layers, begin: int, stop: int) -> tuple[float, Any, Any, Any, Any]:
        """Return the losses of a slice, and their gradients with respect to constants, units, weights and W'."""
        from mopn.compiled.degree_two import add_gradients

        at, constants, weights, linear = layers
        value, G = self.fits[begin, stop].value_gradient(self._outputs(layers, begin, stop))
        slopes = np.ascontiguousarray(G.T, dtype=self.dtype)
        # Sums to which every row contributes are in float64.
        sums = np.zeros(constants.shape), np.zeros_like(at.units), np.zeros(weights.shape), np.zeros(linear.shape)
        units = constants, at.units, weights
        add_gradients(self.rows.distinct, self.rows.rows, begin, stop, *units, slopes, *sums)
        of_constants, of_units, of_weights, of_linear = sums
        return value, of_constants, of_units.astype(np.float64, copy=False), of_weights, of_linear

    def _outputs(self, layers: _Layers, begin: int, stop: int) -> np.ndarray:
        """Return the outputs of a slice (n', m)."""
        from mopn.compiled.degree_two import set_outputs

        at, constants, weights, linear = layers
        outputs = np.empty((linear.shape[1], stop - begin), self.dtype)
        set_outputs(self.rows.distinct, self.rows.rows, begin, stop, constants, at.units, weights, linear, outputs)
        return outputs.T.astype(np.float64, copy=False)


class _Layers(NamedTuple):
    """Units, their constants, weights (m, k') and W' (1 + d, m) as compiled loops take them."""

    at: Units
    constants: np.ndarray
    weights: np.ndarray
    linear: np.ndarray


def two_layers(
    design: Design, kernel: Kernel, fit: DataFit, linear_term: LinearTerm, n_units: int, *, single: bool = False
) -> TwoLayers:
    """Return the losses of networks on a design, dense or sparse."""
    kind = DenseLayers if design.stored_rows is None else SparseLayers
    return kind(design, kernel, fit, linear_term, n_units, single=single)
