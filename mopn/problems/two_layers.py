"""F(K(X, H) V) as a function of both layers: values and gradients, a block of rows at a time."""

from __future__ import annotations

import numpy as np

from mopn.datafit import DataFit
from mopn.designs import Design
from mopn.kernels import Kernel
from mopn.network import layer_outputs

__all__ = ["TwoLayers"]

# Entries of the (rows, k + m) arrays of a block: two of them stay in the cache.
_BLOCK_ENTRIES = 1 << 18
# Rows of a block per input: the sums over a block, (k, d), are small beside the block.
_ROWS_PER_INPUT = 4


class TwoLayers:
    """The losses of networks of k units on given data.

    Nothing of n rows by k units is ever held: a block's features are used for its outputs and its gradients, and
    forgotten. That saves memory, and time, as a block stays in the cache. In ``single`` precision they are float32;
    losses, and sums over the blocks, are float64 all the same.
    """

    def __init__(self, design: Design, kernel: Kernel, fit: DataFit, n_units: int, *, single: bool = False) -> None:
        self.kernel, self.dtype = kernel, np.float32 if single else np.float64
        design = design.single() if single else design
        size = max(_BLOCK_ENTRIES // (n_units + fit.n_outputs), _ROWS_PER_INPUT * design.shape[1])
        self.blocks = [(block, fit.rows(rows)) for rows, block in design.blocks(size)]

    def value(self, H: np.ndarray, V: np.ndarray) -> float:
        """F for units H (k, d), of any length, and weights V (k, m)."""
        H, V = H.astype(self.dtype, copy=False), V.astype(self.dtype, copy=False)
        return sum(fit.value(self._outputs(self.kernel.features(block, H), V)) for block, fit in self.blocks)

    def value_gradient(self, H: np.ndarray, V: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """F, and its gradients with respect to H and V."""
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
