"""F(K(X, H) V) as a function of both layers: values and gradients, a block of rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mopn.datafit import DataFit
from mopn.designs import Design
from mopn.kernels import Kernel
from mopn.network import layer_outputs
from mopn.sparse_rows import SparseRows, Units, padded

__all__ = ["DenseLayers", "SparseLayers", "TwoLayers", "two_layers"]

# Entries of the (rows, k + m) arrays of a block: two of them stay in the cache.
_BLOCK_ENTRIES = 1 << 18
# Rows of a block per input: the sums over a block, (k, d), are small beside the block.
_ROWS_PER_INPUT = 4
# Sparse rows of a block.
_SPARSE_BLOCK = 2048


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


class SparseLayers(TwoLayers):
    """By compiled loops over the stored entries, a slice of the rows a thread."""

    def __init__(self, design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool) -> None:
        self.rows, self.dtype = SparseRows(design, distinct=kernel.distinct), np.float32 if single else np.float64
        self.fits = {
            (first, min(first + _SPARSE_BLOCK, end)): fit.rows(slice(first, min(first + _SPARSE_BLOCK, end)))
            for start, end in self.rows.slices
            for first in range(start, end, _SPARSE_BLOCK)
        }

    def value(self, H: np.ndarray, V: np.ndarray) -> float:
        units, weights = self.rows.units(H, self.dtype), padded(V.T, self.dtype)

        def of_slice(begin: int, stop: int) -> float:
            return sum(block.fit.value(block.outputs.T) for block in self._blocks(units, weights, begin, stop))

        return sum(self.rows.map(of_slice))

    def value_gradient(self, H: np.ndarray, V: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        units, weights = self.rows.units(H, self.dtype), padded(V.T, self.dtype)
        parts = self.rows.map(partial(self._value_gradient, units, weights))
        value, of_constants, of_units, of_weights = (sum(part) for part in zip(*parts, strict=True))
        return value, self.rows.gradient(units, of_constants, of_units, len(H)), of_weights.T[: len(H)]

    def _value_gradient(self, at: Units, weights: np.ndarray, begin: int, stop: int) -> tuple[float, Any, Any, Any]:
        """Return the losses of a slice, and what makes their gradients."""
        from mopn.compiled.degree_two import add_gradients

        value, of_units = 0.0, np.zeros_like(at.units)
        of_constants, of_weights = np.zeros(at.constants.shape), np.zeros(weights.shape)
        for block in self._blocks(at, weights, begin, stop):
            part, G = block.fit.value_gradient(block.outputs.T)
            value += part
            slopes, rows = np.ascontiguousarray(G.T, dtype=self.dtype), self.rows
            sums = np.zeros_like(at.constants), of_units, np.zeros_like(weights)
            features = block.projections, block.features
            add_gradients(
                rows.distinct, rows.rows, block.begin, block.stop, at.units, weights, *features, slopes, *sums
            )
            of_constants += sums[0]
            of_weights += sums[2]
        return value, of_constants, of_units.astype(np.float64, copy=False), of_weights

    def _blocks(self, at: Units, weights: np.ndarray, begin: int, stop: int) -> Iterator[_Block]:
        """Yield the blocks of a slice; the next one overwrites the features of the last."""
        from mopn.compiled.degree_two import set_outputs

        room = np.empty((2, _SPARSE_BLOCK, at.units.shape[1]), self.dtype)
        for first in range(begin, stop, _SPARSE_BLOCK):
            end = min(first + _SPARSE_BLOCK, stop)
            projections, features = room[:, : end - first]
            outputs = np.empty((len(weights), end - first), self.dtype)
            layers, rows = (at.constants, at.units, weights), self.rows
            set_outputs(rows.distinct, rows.rows, first, end, *layers, projections, features, outputs)
            outputs = outputs.astype(np.float64, copy=False)
            yield _Block(first, end, self.fits[first, end], projections, features, outputs)


class _Block(NamedTuple):
    """Rows from ``begin`` to ``stop - 1``: <h, x> and K(h, x) (b, k'), and the outputs (m, b)."""

    begin: int
    stop: int
    fit: DataFit
    projections: np.ndarray
    features: np.ndarray
    outputs: np.ndarray


def two_layers(design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool = False) -> TwoLayers:
    """Return the losses of networks on a design, as its storage asks."""
    kind = DenseLayers if design.sparse_rows is None else SparseLayers
    return kind(design, kernel, fit, n_units, single=single)
