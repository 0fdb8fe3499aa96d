"""F(K(X, H) V + [1, X] W') as a function of both layers and the linear term: values and gradients, by rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mopn.core import blocks
from mopn.core.datafit import DataFit
from mopn.core.designs import Design, linear_design
from mopn.core.kernels import Kernel
from mopn.network.sparse_rows import SparseRows, Units, padded

__all__ = ["DenseLayers", "SparseLayers", "TwoLayers", "layer_outputs", "two_layers"]


def layer_outputs(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the product (n, m), each output contiguous: losses add up over the outputs, which is then fast."""
    return (weights.T @ features.T).T


class TwoLayers(ABC):
    """The losses of networks of k units, and of a linear term, on given data.

    Nothing of n rows by k units is ever held: features are used, block by block or row by row, and forgotten. That
    saves memory, and time, as they stay in the cache. In ``single`` precision they are float32;
    losses, and sums over the blocks, are float64 all the same.
    """

    @abstractmethod
    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        """F for units H (k, d), of any length, weights V (k, m), and W (m, 1 + d), or (m, 0) for no linear term."""

    @abstractmethod
    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        """F, and its gradients with respect to H, V and W."""


class DenseLayers(TwoLayers):
    """By matrix products."""

    def __init__(self, design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool) -> None:
        self.kernel, self.dtype = kernel, np.float32 if single else np.float64
        design = design.single() if single else design
        size = max(blocks.rows_at_once(n_units + fit.n_outputs), blocks.ROWS_PER_INPUT * design.shape[1])
        self.blocks = [(block, linear_design(block), fit.rows(rows)) for rows, block in design.blocks(size)]

    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        H, V, W = (part.astype(self.dtype, copy=False) for part in (H, V, W))
        return sum(
            fit.value(self._outputs(linear, self.kernel.features(block, H), V, W)) for block, linear, fit in self.blocks
        )

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        value, gradient_H, gradient_V, gradient_W = 0.0, np.zeros_like(H), np.zeros_like(V), np.zeros_like(W)
        H, V, W = (part.astype(self.dtype, copy=False) for part in (H, V, W))
        for block, linear, fit in self.blocks:
            P = block.project(H)
            features = self.kernel.features_of(block, H, P)
            part, G = fit.value_gradient(self._outputs(linear, features, V, W))
            G = G.astype(self.dtype, copy=False)
            value += part
            gradient_V += features.T @ G
            if W.size:
                gradient_W += linear.adjoint(G)
            R = np.matmul(G, V.T, out=features)
            gradient_H += 2.0 * self.kernel.products_of(block, R, H, P)
        return value, gradient_H, gradient_V, gradient_W

    def _outputs(self, linear: Design, features: np.ndarray, V: np.ndarray, W: np.ndarray) -> np.ndarray:
        outputs = layer_outputs(features, V)
        if W.size:
            outputs += linear.project(W)
        return outputs.astype(np.float64, copy=False)


class SparseLayers(TwoLayers):
    """By compiled loops over the stored entries, a slice of the rows a thread: of a slice, the outputs are held."""

    def __init__(self, design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool) -> None:
        self.rows, self.dtype = SparseRows(design, distinct=kernel.distinct), np.float32 if single else np.float64
        self.fits = {limits: fit.rows(slice(*limits)) for limits in self.rows.slices}

    def value(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> float:
        layers = self._layers(H, V, W)
        return sum(self.rows.map(lambda *limits: self.fits[limits].value(self._outputs(layers, *limits))))

    def value_gradient(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[float, Any, Any, Any]:
        layers = self._layers(H, V, W)
        parts = self.rows.map(partial(self._value_gradient, layers))
        value, of_constants, of_units, of_weights, of_linear = (sum(part) for part in zip(*parts, strict=True))
        gradient_H = self.rows.gradient(layers.at, of_constants, of_units, len(H))
        return value, gradient_H, of_weights.T[: len(H)], of_linear.T

    def _layers(self, H: np.ndarray, V: np.ndarray, W: np.ndarray) -> _Layers:
        """Lay out a point."""
        at = self.rows.units(H, self.dtype)
        return _Layers(at, at.constants(), padded(V.T, self.dtype), np.ascontiguousarray(W.T, self.dtype))

    def _value_gradient(self, layers: _Layers, begin: int, stop: int) -> tuple[float, Any, Any, Any, Any]:
        """Return the losses of a slice, and what makes their gradients."""
        from mopn.compiled.degree_two import add_gradients

        at, constants, weights, linear = layers
        value, G = self.fits[begin, stop].value_gradient(self._outputs(layers, begin, stop))
        slopes = np.ascontiguousarray(G.T, dtype=self.dtype)
        # Where each row adds to the same few numbers, sums are in float64.
        sums = np.zeros(constants.shape), np.zeros_like(at.units), np.zeros(weights.shape), np.zeros(linear.shape)
        units = constants, at.units, weights
        add_gradients(self.rows.distinct, self.rows.rows, begin, stop, *units, slopes, *sums)
        of_constants, of_units, of_weights, of_linear = sums
        return value, of_constants, of_units.astype(np.float64, copy=False), of_weights, of_linear

    def _outputs(self, layers: _Layers, begin: int, stop: int) -> np.ndarray:
        """Return those of a slice (n', m)."""
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


def two_layers(design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool = False) -> TwoLayers:
    """Return the losses of networks on a design, as its storage asks."""
    kind = DenseLayers if design.sparse_rows is None else SparseLayers
    return kind(design, kernel, fit, n_units, single=single)
