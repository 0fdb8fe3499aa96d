"""A network: unit vectors H, output weights V, and the features K(X, H) on the training data, kept up to date."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mopn.solvers.sphere.leaders import leaders

__all__ = ["Network", "layer_outputs"]


def layer_outputs(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the product (n, m), each output contiguous: losses add up over the outputs, which is then fast."""
    return (weights.T @ features.T).T


class Network:
    """The point of a ``NetworkProblem``; immutable.

    Attributes
    ----------
    basis : ndarray of shape (k, d)
        H, unit vectors in rows.
    weights : ndarray of shape (k, m)
        V.
    features : ndarray of shape (n, k)
        K(X, H), column-major; formed when first asked for. A new unit costs one new column.
    """

    def __init__(
        self,
        feature_map: Callable[[np.ndarray], np.ndarray],
        basis: np.ndarray,
        weights: np.ndarray,
        features: np.ndarray | None = None,
    ) -> None:
        self._feature_map = feature_map
        self.basis, self.weights = basis, weights
        self._features = features

    @property
    def features(self) -> np.ndarray:
        """K(X, H)."""
        if self._features is None:
            self._features = np.asfortranarray(self._feature_map(self.basis))
        return self._features

    def without_features(self) -> Network:
        """Return the network alone, as something to keep."""
        return Network(self._feature_map, self.basis, self.weights)

    @property
    def n_units(self) -> int:
        """Number of units k."""
        return len(self.basis)

    @property
    def outputs(self) -> np.ndarray:
        """Outputs on the training data (n, m), without offset."""
        return layer_outputs(self.features, self.weights)

    def with_units(self, basis: np.ndarray, features: np.ndarray | None = None) -> Network:
        """Return the network with more units, whose weights are zero; their features (n, q) if they are known."""
        features = np.asfortranarray(self._feature_map(basis) if features is None else features)
        return Network(
            self._feature_map,
            np.vstack([self.basis, basis]),
            np.vstack([self.weights, np.zeros((len(basis), self.weights.shape[1]))]),
            np.concatenate([self.features.T, features.T]).T,
        )

    def with_weights(self, weights: np.ndarray) -> Network:
        """Return the network with other weights."""
        return Network(self._feature_map, self.basis, weights, self._features)

    def drop_zero_units(self) -> Network:
        """Return the network without the units whose weights are all zero."""
        alive = np.any(self.weights, axis=1)
        if alive.all():
            return self
        return Network(self._feature_map, self.basis[alive], self.weights[alive], self._columns(alive))

    def merge_parallel_units(self, cosine: float = 0.999) -> Network:
        """Return the network with units that point nearly the same way, up to sign, made one; the heavier one stays.

        Their weights add up, so no norm of the weights grows; outputs change by what the directions differ.
        """
        order = np.argsort(-np.linalg.norm(self.weights, axis=1), kind="stable")
        keeper = leaders(self.basis, order, cosine)
        kept = np.flatnonzero(keeper == np.arange(self.n_units))
        if len(kept) == self.n_units:
            return self
        weights = np.zeros_like(self.weights)
        np.add.at(weights, keeper, self.weights)
        return Network(self._feature_map, self.basis[kept], weights[kept], self._columns(kept))

    def _columns(self, kept: np.ndarray) -> np.ndarray | None:
        """Return the features of some units, if they are there."""
        return None if self._features is None else self._features.T[kept].T
