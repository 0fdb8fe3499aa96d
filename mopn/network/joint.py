"""The joint refit of both layers in a smooth form, for every norm.

K(a, x) = ||a||^2 K(h, x) for a = ||a|| h, so the length of a unit can carry the norm of its weights:

    outputs  o = sum_r K(a_r, x) e_r,   norm(V) <= ||A||_F^2,   directions e_r in the unit ball of a row's norm.

The penalty is then strength * ||A||_F^2, which is smooth; in a ball, A is B cut back to ||A||_F^2 <= radius. The
directions are e = z / ||z|| for l1/l2, the box -1 <= z <= 1 for l1/linf, and fixed signed unit vectors for l1, where
every unit has one output. Each point maps back to unit vectors and weights with the same outputs and no larger an
objective.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from mopn.core.datafit import DataFit
from mopn.core.designs import Design
from mopn.core.flat import joined, split
from mopn.core.kernels import Kernel
from mopn.core.norms import Norm
from mopn.core.regularizers import Ball, Penalty
from mopn.core.spectral import eigen_units
from mopn.network.linear_term import Ridge
from mopn.network.point import Network
from mopn.network.two_layers import two_layers
from mopn.solvers.interface import Evaluation, Measure
from mopn.solvers.numerics.dot import dot

__all__ = ["JointProblem"]

# Weights below this, relative to the largest, are rounding.
_ZERO = 1e-12
# Squared norms this near the radius, relative, are on the sphere.
_ON_THE_SPHERE = 1e-12


class JointProblem:
    """Minimise F + R over units and weights together, and the coefficients of the ridge, around a network of k units.

    Made by ``NetworkProblem.joint``. The point is (A, Z, W) flat, each entry over its scale, of a fixed number of
    units; a unit of length zero is stationary, so new units must start with some weight. It is not convex, so there is
    no certificate here: the network problem's own certifies what this one finds. Oracle: ``gradient``.
    """

    oracles = frozenset({"gradient"})

    def __init__(
        self,
        design: Design,
        kernel: Kernel,
        fit: DataFit,
        regularizer: Ball | Penalty,
        ridge: Ridge,
        network: Network,
        *,
        single: bool = False,
    ) -> None:
        self.regularizer, self.ridge = regularizer, ridge
        self.directions = _make_directions(regularizer.norm, network.weights)
        self.layers = two_layers(design, kernel, fit, self.directions.n_units, single=single)
        parts = self._lengths(network), self.directions.start.ravel(), network.linear
        self._shapes = tuple(part.shape for part in parts)
        self._scales = joined(*_scales(design, fit, ridge, self._shapes))
        self._start = joined(*parts) / self._scales

    def _lengths(self, network: Network) -> np.ndarray:
        rows, sizes = self.directions.rows, self.directions.sizes
        return network.basis[rows] * np.sqrt(sizes)[:, None]

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Lower and upper bounds on the flat point, or None."""
        if self.directions.box is None:
            return None
        upper = np.full(self._start.size, np.inf)
        self._parts(upper)[1][:] = self.directions.box
        return -upper, upper

    def start(self, start: Any = None) -> np.ndarray:
        """Return the point of the network that the problem was made around, or a flat point as it is."""
        return self._start.copy() if start is None else np.array(start, dtype=np.float64)

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return A (k, d), scaled into the ball where there is one, directions E (k, m), and W."""
        return self._mapped(*self._parts(x * self._scales))

    def _mapped(self, B: np.ndarray, Z: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return B * self._scale(B), self.directions.map(Z), W

    def _parts(self, x: np.ndarray) -> list[np.ndarray]:
        """Return views B, Z and W of a flat point."""
        return split(x, self._shapes)

    def _scale(self, B: np.ndarray) -> float:
        if isinstance(self.regularizer, Penalty):
            return 1.0
        most, length = math.sqrt(self.regularizer.radius), float(np.linalg.norm(B))
        return 1.0 if length <= most else most / length

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        """Named views of the point: unit vectors ``basis``, ``weights`` and ``linear``."""
        A, E, W = self.split(x)
        sizes = np.einsum("rd,rd->r", A, A)
        alive = sizes > _ZERO * sizes.max(initial=0.0)
        basis = A[alive] / np.sqrt(sizes[alive])[:, None]
        basis, weights = self.directions.merge(basis, sizes[alive][:, None] * E[alive])
        return {"x": x, "basis": basis, "weights": weights, "linear": W}

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        """Value and gradient of the whole objective."""
        B, Z, W = self._parts(x * self._scales)
        A, E, W = self._mapped(B, Z, W)
        value, gradient_A, gradient_E, gradient_W = self.layers.value_gradient(A, E, W)
        value, gradient_W = value + self.ridge.value(W), gradient_W + self.ridge.slope(W)
        if isinstance(self.regularizer, Penalty):
            value += self.regularizer.strength * dot(A.ravel(), A.ravel())
            gradient_A += 2.0 * self.regularizer.strength * A
        else:
            gradient_A = self._within_ball(gradient_A, A, B, self.regularizer.radius)
        gradient = joined(gradient_A, self.directions.pull(Z, gradient_E), gradient_W)
        return Evaluation(value, gradient * self._scales)

    def _within_ball(self, gradient: np.ndarray, A: np.ndarray, B: np.ndarray, radius: float) -> np.ndarray:
        """Return the gradient with respect to B: outside of the ball the part along A goes, and the rest is scaled.

        On the sphere it is the gradient of the side that the objective falls to.
        """
        along = float(np.vdot(gradient, A)) / max(float(np.vdot(A, A)), np.finfo(float).tiny)
        outside = float(np.vdot(B, B)) / max(radius, np.finfo(float).tiny) - 1.0
        if outside < -_ON_THE_SPHERE or (outside <= _ON_THE_SPHERE and along > 0):
            return gradient
        return (gradient - along * A) * self._scale(B)

    def measure(self, x: np.ndarray) -> Measure:
        """Objective; no gap is known."""
        return Measure(self.value_gradient(x).value, float("inf"))


def _scales(design: Design, fit: DataFit, ridge: Ridge, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Return the scales of A, Z and W: the more samples a feature is in, the steeper the losses in its coefficients.

    Popular items are in a thousand times as many samples as others: unscaled, L-BFGS takes several times as many
    iterations on one-hot rows. All scales of A are 1 where all features are in all samples.
    """
    counts = design.occurrences(fit.sample_weights)
    of_units = np.sqrt(2.0 / (1.0 + counts / max(counts.mean(), np.finfo(float).tiny)))
    return [np.broadcast_to(of_units, shapes[0]), np.ones(shapes[1]), np.broadcast_to(ridge.scales(fit), shapes[2])]


class _Directions(ABC):
    """How the free variables Z become directions E (k, m) in the unit ball of a row's norm.

    ``rows`` says which unit of the network each unit here comes from, ``sizes`` is the norm of its weights.
    """

    box: float | None = None

    def __init__(self, weights: np.ndarray, norm: Norm) -> None:
        self.sizes = np.array([norm.value(row[None]) for row in weights])
        self.rows = np.flatnonzero(self.sizes)
        self.sizes = self.sizes[self.rows]
        self.start = weights[self.rows] / self.sizes[:, None]
        self.shape = self.start.shape

    @property
    def n_units(self) -> int:
        return self.shape[0]

    @abstractmethod
    def map(self, Z: np.ndarray) -> np.ndarray:
        """Return E for the flat Z."""

    @abstractmethod
    def pull(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to Z from that with respect to E."""

    def merge(self, basis: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return an equal network of smaller norm or fewer units."""
        return basis, weights


class _Sphere(_Directions):
    """l1/l2: E = Z / ||Z||, row by row."""

    def map(self, Z: np.ndarray) -> np.ndarray:
        Z = Z.reshape(self.shape)
        return Z / np.linalg.norm(Z, axis=1, keepdims=True)

    def pull(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        E = self.map(Z)
        along = np.einsum("rc,rc->r", gradient, E)[:, None]
        return (gradient - along * E) / np.linalg.norm(Z.reshape(self.shape), axis=1, keepdims=True)


class _Box(_Directions):
    """l1/linf: E = Z in the box."""

    box = 1.0

    def map(self, Z: np.ndarray) -> np.ndarray:
        return Z.reshape(self.shape)

    def pull(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient


class _Signs(_Directions):
    """l1: one output and a sign a unit, fixed; W_c = sum_r +-a_r a_r'."""

    def __init__(self, weights: np.ndarray, norm: Norm) -> None:
        self.rows, outputs = np.nonzero(weights)
        entries = weights[self.rows, outputs]
        self.sizes = np.abs(entries)
        self.shape = len(entries), weights.shape[1]
        self.start = np.zeros(0)
        self._E = np.zeros(self.shape)
        self._E[np.arange(len(entries)), outputs] = np.sign(entries)

    def map(self, Z: np.ndarray) -> np.ndarray:
        return self._E

    def pull(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return Z

    def merge(self, basis: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvectors of every W_c: its nuclear norm, and at most d units (Proposition 1 of the paper)."""
        units, entries = [np.zeros((0, basis.shape[1]))], [np.zeros((0, weights.shape[1]))]
        for c, column in enumerate(weights.T):
            alive = column != 0
            values, vectors = eigen_units(column[alive], basis[alive])
            units.append(vectors)
            entries.append(np.outer(values, np.eye(weights.shape[1])[c]))
        return np.vstack(units), np.vstack(entries)


def _make_directions(norm: Norm, weights: np.ndarray) -> _Directions:
    kinds: dict[str, type[_Signs] | type[_Sphere] | type[_Box]] = {"l1": _Signs, "l1/l2": _Sphere, "l1/linf": _Box}
    return kinds[norm.name](weights, norm)
