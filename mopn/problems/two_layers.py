"""F(K(X, H) V) as a function of both layers: values and gradients, a block of rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mopn.datafit import DataFit
from mopn.designs import Design
from mopn.kernels import Kernel
from mopn.network import layer_outputs
from mopn.workers import map_in_threads

__all__ = ["DenseLayers", "SparseLayers", "TwoLayers", "two_layers"]

# Entries of the (rows, k + m) arrays of a block: two of them stay in the cache.
_BLOCK_ENTRIES = 1 << 18
# Rows of a block per input: the sums over a block, (k, d), are small beside the block.
_ROWS_PER_INPUT = 4
# Sparse rows of a block, and of a slice at least; slices share the threads, and there are at most so many.
_SPARSE_BLOCK, _SLICE, _SLICES = 2048, 8192, 8


class TwoLayers(ABC):
    """The losses of networks of k units on given data.

    Nothing of n rows by k units is ever held: a block's features are used for its outputs and its gradients, and
    forgotten. That saves memory, and time, as a block stays in the cache. In ``single`` precision they are float32;
    losses, and sums over the blocks, are float64 all the same.
    """

    @abstractmethod
    def value(self, H: np.ndarray, V: np.ndarray) -> float:
        """F for units H (k, d), of any length, and weights V (k, m)."""

    @abstractmethod
    def value_gradient(self, H: np.ndarray, V: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """F, and its gradients with respect to H and V."""


class DenseLayers(TwoLayers):
    """By matrix products."""

    def __init__(self, design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool) -> None:
        self.kernel, self.dtype = kernel, np.float32 if single else np.float64
        design = design.single() if single else design
        size = max(_BLOCK_ENTRIES // (n_units + fit.n_outputs), _ROWS_PER_INPUT * design.shape[1])
        self.blocks = [(block, fit.rows(rows)) for rows, block in design.blocks(size)]

    def value(self, H: np.ndarray, V: np.ndarray) -> float:
        H, V = H.astype(self.dtype, copy=False), V.astype(self.dtype, copy=False)
        return sum(fit.value(self._outputs(self.kernel.features(block, H), V)) for block, fit in self.blocks)

    def value_gradient(self, H: np.ndarray, V: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient_H, gradient_V = 0.0, np.zeros_like(H), np.zeros_like(V)
        H, V = H.astype(self.dtype, copy=False), V.astype(self.dtype, copy=False)
        for block, fit in self.blocks:
            P = block.project(H)
            features = self.kernel.features_of(block, H, P)
            part, G = fit.value_gradient(self._outputs(features, V))
            G = G.astype(self.dtype, copy=False)
            value += part
            gradient_V += features.T @ G
            R = np.matmul(G, V.T, out=features)
            gradient_H += 2.0 * self.kernel.products_of(block, R, H, P)
        return value, gradient_H, gradient_V

    def _outputs(self, features: np.ndarray, V: np.ndarray) -> np.ndarray:
        return layer_outputs(features, V).astype(np.float64, copy=False)


class _Layers(NamedTuple):
    """Both layers as compiled loops take them: units of the 1-features (q, k') and of the others (d, k'), weights."""

    ones: np.ndarray
    units: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, H: np.ndarray, V: np.ndarray, n_ones: int, dtype: type) -> _Layers:
        """Lay them out, filled up with zeros."""
        from mopn.compiled.degree_two import WIDTH

        (k, d), m = H.shape, V.shape[1]
        padded = -(-k // WIDTH) * WIDTH
        units, weights = np.zeros((d, padded), dtype), np.zeros((m, padded), dtype)
        units[:, :k], weights[:, :k] = H.T, V.T
        return cls(units[:n_ones], units[n_ones:], weights)

    @property
    def constants(self) -> np.ndarray:
        """A^1 and A^2 of the 1-features, (2, k')."""
        first = self.ones.sum(axis=0)
        return np.stack([first, 0.5 * (first**2 - (self.ones**2).sum(axis=0))])


class SparseLayers(TwoLayers):
    """By compiled loops over the stored entries, in slices of the rows that share the threads.

    The slices, and so the results, do not depend on the number of threads.
    """

    def __init__(self, design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool) -> None:
        assert design.sparse_rows is not None
        self.rows, self.n_ones = design.sparse_rows
        self.distinct, self.dtype = kernel.name == "anova", np.float32 if single else np.float64
        n, d = design.shape
        count = min(max(1, n // max(_SLICE, _ROWS_PER_INPUT * d)), _SLICES)
        self.slices = []
        for start, end in pairwise(n * part // count for part in range(count + 1)):
            blocks = [(first, min(first + _SPARSE_BLOCK, end)) for first in range(start, end, _SPARSE_BLOCK)]
            self.slices.append([(*block, fit.rows(slice(*block))) for block in blocks])

    def value(self, H: np.ndarray, V: np.ndarray) -> float:
        layers = _Layers.of(H, V, self.n_ones, self.dtype)
        return sum(map_in_threads(partial(self._value, layers), self.slices))

    def value_gradient(self, H: np.ndarray, V: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        layers = _Layers.of(H, V, self.n_ones, self.dtype)
        parts = map_in_threads(partial(self._value_gradient, layers), self.slices)
        value, of_ones, of_units, of_weights = (sum(part) for part in zip(*parts, strict=True))
        return value, np.vstack([of_ones, of_units]).T[: len(H)], of_weights.T[: len(H)]

    def _value(self, layers: _Layers, blocks: list[_Block]) -> float:
        """Return the losses of a slice."""
        return sum(fit.value(outputs.T) for fit, outputs, *_ in self._outputs(layers, blocks))

    def _value_gradient(self, layers: _Layers, blocks: list[_Block]) -> tuple[float, Any, Any, Any]:
        """Return the losses of a slice, and their gradients with respect to the three parts of the layers."""
        from mopn.compiled.degree_two import add_gradients

        value, of_units = 0.0, np.zeros_like(layers.units)
        of_constants, of_weights = np.zeros((2, layers.units.shape[1])), np.zeros(layers.weights.shape)
        for fit, outputs, first, second, block in self._outputs(layers, blocks):
            part, G = fit.value_gradient(outputs.T)
            value += part
            slopes = np.ascontiguousarray(G.T, dtype=self.dtype)
            sums = np.zeros_like(layers.constants), np.zeros_like(layers.weights)
            add_gradients(
                self.distinct, self.rows, *block, *layers[1:], first, second, slopes, sums[0], of_units, sums[1]
            )
            of_constants += sums[0]
            of_weights += sums[1]
        # A 1-feature's derivative of K is <h, x>, without its own part if products are of distinct features.
        pulled, pulls = of_constants
        of_ones = pulled - layers.ones * pulls if self.distinct else np.broadcast_to(2.0 * pulled, layers.ones.shape)
        return value, of_ones, of_units.astype(np.float64, copy=False), of_weights

    def _outputs(self, layers: _Layers, blocks: list[_Block]) -> Iterator[tuple[DataFit, Any, Any, Any, Any]]:
        """Yield the fit, the outputs (m, b), the features and the limits of every block."""
        from mopn.compiled.degree_two import set_outputs

        k = layers.units.shape[1]
        first, second = np.empty((2, _SPARSE_BLOCK, k), self.dtype)
        for begin, stop, fit in blocks:
            size = stop - begin
            outputs = np.empty((len(layers.weights), size), self.dtype)
            features = first[:size], second[:size]
            set_outputs(self.distinct, self.rows, begin, stop, layers.constants, *layers[1:], *features, outputs)
            yield fit, outputs.astype(np.float64, copy=False), *features, (begin, stop)


_Block = tuple[int, int, DataFit]


def two_layers(design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool = False) -> TwoLayers:
    """Return the losses of networks on a design, as its storage asks."""
    kind = DenseLayers if design.sparse_rows is None else SparseLayers
    return kind(design, kernel, fit, n_units, single=single)
