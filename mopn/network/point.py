"""A network: unit vectors H, output weights V, linear coefficients W, and the features K(X, H), kept up to date.

Also networks as flat points, for solvers of smooth problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mopn.core.kernels import Kernel
from mopn.data.rows import Block
from mopn.data.validation import check_start_size, finite_numbers
from mopn.network.maps import Maps
from mopn.network.two_layers import block_forms, layer_outputs
from mopn.solvers.sphere.refinement import group_leaders

# Features K(x_i, h_r) that are kept between the uses of a point: 128 MiB. More are computed again, block by block: a
# refit takes some fifty passes over the data, and the rest of a round only two or three.
_MOST_KEPT_FEATURES = 1 << 24


class Network:
    """The point of a ``NetworkProblem``: unit vectors H (k, d), weights V (k, m), and W (m, 1 + d) or (m, 0)."""

    def __init__(
        self,
        maps: Maps,
        basis: np.ndarray,
        weights: np.ndarray,
        linear: np.ndarray,
        features: np.ndarray | None = None,
        linear_outputs: np.ndarray | float | None = None,
    ) -> None:
        self._maps = maps
        self.basis, self.weights, self.linear = basis, weights, linear
        self._features, self._linear_outputs = features, linear_outputs

    @property
    def features(self) -> np.ndarray:
        """K(X, H) (n, k), column-major."""
        if self._features is None:
            self._features = self._maps.rows.map(_features, self._maps.kernel, self.basis)
        return self._features

    def compact(self) -> Network:
        """Return the network without its cached features, which are computed again on demand."""
        return Network(self._maps, self.basis, self.weights, self.linear)

    @property
    def n_units(self) -> int:
        return len(self.basis)

    @property
    def extra_size(self) -> int:
        return self.linear.size

    @property
    def unit_outputs(self) -> np.ndarray:
        """K(X, H) V (n, m), column-major."""
        rows = self._maps.rows
        if self._keeps_features:
            return rows.map(_unit_outputs, self.weights, along=(self.features,))
        return rows.map(_outputs_of_units, self._maps.kernel, self.basis, self.weights)

    def forms(self, G: np.ndarray) -> np.ndarray:
        """Return K(X, H)' G (k, m) for G (n, m)."""
        rows = self._maps.rows
        if self._keeps_features:
            return rows.crossed(self.features, G)
        return rows.sum(block_forms, self._maps.kernel, self.basis, along=(G,))

    @property
    def _keeps_features(self) -> bool:
        """Whether the features are kept: not if they are too many, or are computed again in every pass over data."""
        rows = self._maps.rows
        are_few = self._features is not None or rows.shape[0] * self.n_units <= _MOST_KEPT_FEATURES
        return are_few and rows.design is not None

    @property
    def linear_outputs(self) -> np.ndarray | float:
        """Outputs of the linear term (n, m), shared by networks with the same coefficients."""
        if self._linear_outputs is None:
            self._linear_outputs = self._maps.linear_term.outputs(self.linear) if self.linear.size else 0.0
        return self._linear_outputs

    @property
    def outputs(self) -> np.ndarray:
        return self.unit_outputs + self.linear_outputs if self.linear.size else self.unit_outputs

    def with_units(self, basis: np.ndarray) -> Network:
        """Return the network with more units, of weight zero."""
        return self.with_more(basis, np.zeros((len(basis), self.weights.shape[1])))

    def plus(self, other: Network) -> Network:
        """Return the network with the units of another one, too."""
        if not self.n_units:
            return self._changed(other.basis, other.weights, other._features)
        features = None
        if self._keeps_features and other._keeps_features:
            features = np.concatenate([self.features.T, other.features.T]).T
        weights = np.vstack([self.weights, other.weights])
        return self._changed(np.vstack([self.basis, other.basis]), weights, features)

    def with_more(self, basis: np.ndarray, weights: np.ndarray) -> Network:
        """Return the network with more units and their weights."""
        return self.plus(Network(self._maps, basis, weights, self.linear))

    def with_weights(self, weights: np.ndarray) -> Network:
        return self._changed(self.basis, weights, self._features)

    def with_linear(self, linear: np.ndarray) -> Network:
        return Network(self._maps, self.basis, self.weights, linear, self._features)

    def with_layer(self, refit: Any) -> Network:
        """Return the network with the weights, and the linear term if there is one, of a refit of the output layer."""
        network = self.with_weights(refit.weights)
        return network.with_linear(refit.linear) if self.linear.size else network

    def with_layers(self, refit: Any) -> Network:
        """Return the network that a refit of both layers found."""
        return Network(self._maps, refit.basis, refit.weights, refit.linear)

    def without_units(self) -> Network:
        return self.of_units([])

    def of_units(self, kept: np.ndarray | list[int]) -> Network:
        """Return the network of some units, by index or by mask."""
        features = None
        if isinstance(self._features, np.ndarray):
            features = self._features.T[kept].T
        return self._changed(self.basis[kept], self.weights[kept], features)

    def drop_zero_units(self, fraction: float = 0.0) -> Network:
        """Return the network without units of zero weights, or of at most a ``fraction`` of all weights in l2 norm."""
        sizes = np.linalg.norm(self.weights, axis=1)
        alive = sizes > 0
        if fraction > 0 and alive.any():
            order = np.argsort(sizes)
            is_small = np.cumsum(sizes[order]) <= fraction * sizes.sum()
            alive[order[is_small]] = False
        return self if alive.all() else self.of_units(alive)

    def without_smallest_unit(self) -> Network:
        """Return the network without the unit of the smallest weights, in l2 norm."""
        return self.without_unit(int(np.argmin(np.linalg.norm(self.weights, axis=1))))

    def without_unit(self, unit: int) -> Network:
        return self.of_units(np.arange(self.n_units) != unit)

    def merge_parallel_units(self) -> Network:
        """Return the network with nearly parallel units merged into the largest one, which gets the sum of weights."""
        order = np.argsort(-np.linalg.norm(self.weights, axis=1), kind="stable")
        keeper = group_leaders(self.basis, order, cosine=0.999)
        kept = np.flatnonzero(keeper == np.arange(self.n_units))
        if len(kept) == self.n_units:
            return self
        weights = np.zeros_like(self.weights)
        np.add.at(weights, keeper, self.weights)
        return self.with_weights(weights).of_units(kept)

    def _changed(self, basis: np.ndarray, weights: np.ndarray, features: np.ndarray | None) -> Network:
        """Return a network of other units with the same linear term."""
        return Network(self._maps, basis, weights, self.linear, features, self._linear_outputs)


def _features(block: Block, kernel: Kernel, H: np.ndarray) -> np.ndarray:
    return kernel.features(block.design, H)


def _outputs_of_units(block: Block, kernel: Kernel, H: np.ndarray, V: np.ndarray) -> np.ndarray:
    return layer_outputs(kernel.features(block.design, H), V)


def _unit_outputs(block: Block, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return layer_outputs(features, weights)


def unit_length(
    basis: Any, weights: Any, d: int, m: int, *, dummies: int = 0, argument: str = "start: "
) -> tuple[np.ndarray, np.ndarray]:
    """Check units of any length and their weights; return units of length 1 and weights of the same outputs.

    Of the ``d`` columns of ``basis`` the first are for ``dummies``; ``argument`` stands before names in messages.
    """
    basis = finite_numbers(basis, f"{argument}basis")
    weights = finite_numbers(weights, f"{argument}weights")
    if basis.ndim != 2 or basis.shape[1] != d:
        inputs = f" ({d - dummies} features after the constant)" if dummies else ""
        raise ValueError(f"{argument}basis must have {d} columns{inputs}, got shape {basis.shape}")
    if weights.shape != (len(basis), m):
        raise ValueError(
            f"{argument}weights must have shape ({len(basis)}, {m}), a row for each unit and a column for each output, "
            f"got {weights.shape}"
        )
    check_start_size(basis, f"{argument}basis")
    check_start_size(weights, f"{argument}weights")
    alive = np.linalg.norm(basis, axis=1) > 0
    return of_unit_length(basis[alive], weights[alive])


def of_unit_length(basis: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return units of length 1 and weights of the same outputs; no unit is zero."""
    lengths = np.linalg.norm(basis, axis=1, keepdims=True)
    return basis / lengths, weights * lengths**2


def joined(*arrays: np.ndarray) -> np.ndarray:
    """Return all entries in one dimension, array after array."""
    return np.concatenate([array.ravel() for array in arrays])


def split(x: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Return views of a flat point as arrays of these shapes."""
    parts = []
    first = 0
    for shape in shapes:
        stop = first + math.prod(shape)
        parts.append(x[first:stop].reshape(shape))
        first = stop
    return parts
