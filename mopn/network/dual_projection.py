"""Better dual points under l1: the gradient of the losses at a nearby network, along whose units it is smaller.

Where refits end, the eigenvalues of Gamma above the strength belong to directions of high curvature, which refits leave
for the end: each is worth little of the objective, but the gap is of first order in it. Let Q_c (d, q_c) span the
eigenvectors of Gamma_c whose moduli exceed about the strength and, as far as there is room, the units of output c. Let
O be the outputs of all other units. The convex problem

    min over symmetric T_c (q_c, q_c) of F(O + outputs of Q_c T_c Q_c') + target * sum_c ||T_c||_*

has few variables. Its dual is the projection of G onto the points for which every ||Q_c' Gamma_c Q_c|| is at most
``target``, in the metric of the losses. It is solved by Newton steps from the network on. With T in the place of the
units that moved along the result is a network, so that the gradient there is an ordinary dual point, whose bounds hold
for reasons of their own, whatever the accuracy of the solution (docs/mathematics.md, 5.8).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mopn.losses.hessians import Hessian
from mopn.network.compression import FEATURES_AT_A_TIME, Compression
from mopn.network.point import Network
from mopn.network.trace_norm_model import TraceNormModel
from mopn.solvers.lbfgs import ARMIJO
from mopn.solvers.tools.decorators import cached_property

# Modulus of an eigenvalue, relative to the strength, above which its eigenvector may move: a slightly smaller one would
# exceed it after the step.
_NEAR = 0.8
# Variables of the problem, at most: beyond, a larger modulus is asked for.
_MOST_VARIABLES = 1000
# Variables up to which units of the network move, too: with more of them a step takes longer than a refit.
_MOST_WITH_UNITS = 300
# Multiplications that form the curvature, at most: beyond, it is computed from random rows.
_MOST_WORK = 2e10
# Random rows for each variable, at least: with 20 a step leaves about a fifth of what the slopes exceed the target by.
_LEAST_ROWS_PER_VARIABLE = 20
# The probability of a row, relative to the mean one, at least.
_LEAST_PROBABILITY = 1e-3
# The target is below the strength by this fraction of the relative gap,
_BELOW = 0.1
# and by at most this fraction of the strength.
_MOST_BELOW = 0.01
# Newton steps, at most: more change less than the directions that are left out.
_MOST_STEPS = 8
# The shortest part of a Newton step that is tried.
_SHORTEST_STEP = 1e-3
# Part of the mean curvature that is added to each variable, so that the curvature is positive definite.
_LEAST_CURVATURE = 1e-6
# Length of the part of a unit outside of the vectors from which on it makes a vector of its own.
_INDEPENDENT = 1e-8


class _At(NamedTuple):
    """A point of the problem, the outputs (n, m) there, the objective, and the slopes of losses and ridge."""

    x: np.ndarray
    outputs: np.ndarray
    value: float
    slopes: np.ndarray


class DualProjection:
    """The problem at a network whose relative gap is ``gap``: points of all compressions follow one another.

    ``at`` is the objective and gradient at the network. Random rows are drawn by ``seed``.
    """

    def __init__(self, problem: Any, network: Network, at: Any, gap: float, seed: int = 0) -> None:
        self.network = network
        self.losses, self.ridge = problem.losses, problem.ridge
        self.of_square = problem.kernel.of_square
        self.strength = problem.strength
        self.target = self.strength * (1.0 - min(_BELOW * gap, _MOST_BELOW))
        self.rng = np.random.default_rng(seed)
        self.outputs = np.asarray(network.outputs)
        self.compressions = self._compressions(problem, at)
        sizes = [each.size for each in self.compressions]
        self.size = sum(sizes)
        self._ends = np.cumsum(sizes)[:-1]
        # The network as a point, and the slopes there.
        self.first = np.concatenate([np.empty(0), *(each.first for each in self.compressions)])
        self.first_slopes = np.concatenate([np.empty(0), *(each.first_slopes for each in self.compressions)])

    def _compressions(self, problem: Any, at: Any) -> list[Compression]:
        """Return the compressions of all outputs with eigenvalues near the strength or above it."""
        stack, scale = at.forms(problem.kernel).dense.scaled()
        values, vectors = stack.eigen
        values = scale * values
        m = len(values)
        directions = dict(enumerate(np.eye(m)))
        if m == 2 and problem.losses.is_shift_invariant:
            # Gamma_0 is -Gamma_1, with a ridge at the minimum, and both classes move alike.
            directions = {1: np.array([-1.0, 1.0])}
        least = _least_modulus([values[c] for c in directions], self.strength)
        near = {c: np.abs(values[c]) > least for c in directions}
        chosen = self._units_with_room(directions, {c: int(kept.sum()) for c, kept in near.items()})
        rest = self.network.weights.copy()
        found = []
        for c, outputs in directions.items():
            units = chosen[c]
            H = self.network.basis[units]
            Q = _with_directions(vectors[c][:, near[c]], H.T)
            if Q.shape[1]:
                projected = H @ Q
                first = (projected.T * _along(self.network.weights[units], outputs)) @ projected
                along = Q.T @ vectors[c]
                slopes = (along * values[c]) @ along.T
                found.append(Compression(Q, first, slopes, outputs, problem.kernel, problem.rows.design))
            rest[np.ix_(np.array(units, dtype=int), np.flatnonzero(outputs))] = 0.0
        self.rest = self.network.with_weights(rest).drop_zero_units()
        return found

    def _units_with_room(self, directions: dict[int, np.ndarray], sizes: dict[int, int]) -> dict[int, list[int]]:
        """Return the units of each direction that the problem has room for besides its vectors, the largest first."""
        weights = np.column_stack([_along(self.network.weights, outputs) for outputs in directions.values()])
        chosen: dict[int, list[int]] = {c: [] for c in directions}
        n_variables = sum(q * (q + 1) // 2 for q in sizes.values())
        sizes = dict(sizes)
        for place in np.argsort(-np.abs(weights), axis=None, kind="stable"):
            unit, column = np.unravel_index(place, weights.shape)
            c = list(directions)[int(column)]
            if not weights[unit, column] or n_variables + sizes[c] + 1 > _MOST_WITH_UNITS:
                break
            sizes[c] += 1
            n_variables += sizes[c]
            chosen[c].append(int(unit))
        return chosen

    def solve(self) -> Network | None:
        """Return the network of the better dual point; None where no slope exceeds the target, or no step helps."""
        if not self.size:
            return None
        if self._largest(self.first_slopes) <= self.target:
            return None
        first = self._point(self.first, self.outputs)
        at = first
        model = None
        for _ in range(_MOST_STEPS):
            try:
                if model is None:
                    K, unit = self._curvature(at.outputs)
                    model = TraceNormModel(K, self._shrunk, self._largest)
                    # The unit of points in which the norm of the model has weight 1.
                    length = self.target / unit
                change = length * model.minimiser(at.slopes / self.target, at.x / length) - at.x
            except np.linalg.LinAlgError:  # numbers so large or small that the curvature has lost its digits
                break
            new, step = self._search(at, change)
            if new is None:
                break
            at = new
            if self._largest(at.slopes) <= self.strength:
                break
            if step < 1.0:  # the curvature changes on the way
                model = None
        return None if at is first else self._moved(at.x)

    def _search(self, at: _At, change: np.ndarray) -> tuple[_At | None, float]:
        """Return the point after a step along a change that lowers the objective enough, and its length; or None."""
        of_change = self._outputs(change)
        slope = at.slopes @ change + self.target * (self._norm(at.x + change) - self._norm(at.x))
        step = 1.0
        while slope < 0.0 and step >= _SHORTEST_STEP:
            new = self._point(at.x + step * change, at.outputs + step * of_change)
            if new.value <= at.value + ARMIJO * step * slope:
                return (new if np.isfinite(new.slopes).all() else None), step
            step *= 0.5
        return None, step

    def _point(self, x: np.ndarray, outputs: np.ndarray) -> _At:
        """Return a point; its objective, less a constant, has the target for the strength and the slopes' unit."""
        value, G = self.losses.value_gradient(outputs)
        # Each class that moves along has a share.
        shares = np.abs(self.compressions[0].outputs).sum()
        of_ridge = self._ridge_slopes(x)
        value = float(value) / shares + self._others @ x + 0.5 * (x @ of_ridge) + self.target * self._norm(x)
        return _At(x, outputs, value, self._others + self._slopes(G) + of_ridge)

    @cached_property
    def _others(self) -> np.ndarray:
        """The slopes of the ridge of the rest of the network."""
        _, G = self.losses.value_gradient(self.outputs)
        return self.first_slopes - self._slopes(G) - self._ridge_slopes(self.first)

    def _moved(self, x: np.ndarray) -> Network:
        parts = [each.units(part) for each, part in self._parts(x) if part.any()]
        if not parts:
            return self.rest
        basis, weights = zip(*parts, strict=True)
        # All units enter at once, as the features of a network are copied.
        return self.rest.with_more(np.vstack(basis), np.vstack(weights))

    # Sums and joins over the compressions.

    def _parts(self, x: np.ndarray) -> list[tuple[Compression, np.ndarray]]:
        """Return each compression and its part of a point."""
        return list(zip(self.compressions, np.split(x, self._ends), strict=True))

    def _shrunk(self, x: np.ndarray, by: float) -> np.ndarray:
        return np.concatenate([each.shrunk(part, by) for each, part in self._parts(x)])

    def _norm(self, x: np.ndarray) -> float:
        return sum(each.norm(part) for each, part in self._parts(x))

    def _largest(self, x: np.ndarray) -> float:
        return max([each.largest(part) for each, part in self._parts(x)])

    def _outputs(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, m) of a point."""
        outputs = np.zeros_like(self.outputs)
        for each, part in self._parts(x):
            outputs += each.output(part)[:, None] * each.outputs
        return outputs

    def _slopes(self, G: Any) -> np.ndarray:
        """Return the slopes of the losses with gradient G (n, m), for each class that moves along."""
        G = np.asarray(G)
        return np.concatenate([each.slopes(_along(G, each.outputs)) for each in self.compressions])

    def _ridge_slopes(self, x: np.ndarray) -> np.ndarray:
        if not self.ridge:
            return np.zeros_like(x)
        return self.ridge * np.concatenate([each.ridge_slopes(part) for each, part in self._parts(x)])

    def _hessian(self, rows: slice | np.ndarray, outputs: np.ndarray) -> Hessian:
        return self.losses.in_memory.rows(rows).hessian(outputs[rows])

    def _curvature(self, outputs: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the second derivatives (size, size) of losses and ridge, and their unit.

        They are formed in single precision, as a step needs few digits. Many rows are drawn by their curvature.
        """
        sizes = np.asarray(self._hessian(slice(None), outputs).diagonal).sum(axis=1)
        rows, weights = self._drawn(sizes)
        unit_of_rows = max(float(sizes.max()), math.ulp(0.0))
        length = max(each.longest for each in self.compressions)
        unit = unit_of_rows * length**4
        if not 0.0 < unit < math.inf:
            raise np.linalg.LinAlgError("the unit of the curvature is not a positive number")
        K = np.zeros((self.size, self.size), dtype=np.float32)
        step = max(1, FEATURES_AT_A_TIME // self.size)
        for first in range(0, len(rows), step):
            some = slice(first, first + step)
            self._add_curvature(K, rows[some], weights[some] / unit_of_rows, outputs, length)
        diagonal = np.diag_indices(self.size)
        K[diagonal] += self.ridge * self.of_square / unit + _LEAST_CURVATURE * K[diagonal].mean()
        mean = float(K[diagonal].mean())
        return K.astype(float) / mean, mean * unit

    def _add_curvature(
        self, K: np.ndarray, rows: np.ndarray, weights: np.ndarray, outputs: np.ndarray, length: float
    ) -> None:
        """Add the second derivatives of the losses of some rows, times their weights, where projections have a unit."""
        hessian = self._hessian(rows, outputs)
        features = [each.features(rows, length) for each in self.compressions]
        ends = [0, *self._ends, self.size]
        for i, one in enumerate(self.compressions):
            of_one = slice(ends[i], ends[i + 1])
            image = hessian.product(np.ones((len(rows), 1)) * one.outputs)
            for j, other in enumerate(self.compressions[: i + 1]):
                h = (weights * _along(image, other.outputs)).astype(np.float32)
                if i == j:
                    # The product of a matrix with its own transpose takes half of the time.
                    scaled = np.sqrt(h.clip(0.0)) * features[i]
                    K[of_one, of_one] += scaled @ scaled.T
                elif h.any():
                    of_other = slice(ends[j], ends[j + 1])
                    block = features[i] @ (h * features[j]).T
                    K[of_one, of_other] += block
                    K[of_other, of_one] += block.T

    def _drawn(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that the curvature is computed from, and their weights: all rows, or random ones.

        A row of larger second derivatives, whose sum is its size, is likelier.
        """
        n = len(sizes)
        most = max(_MOST_WORK / self.size**2, _LEAST_ROWS_PER_VARIABLE * self.size)
        if n <= most:
            return np.arange(n), np.ones(n)
        mean = max(float(sizes.mean()), math.ulp(0.0))
        probabilities = np.clip(most / n * np.maximum(sizes / mean, _LEAST_PROBABILITY), 0.0, 1.0)
        rows = np.flatnonzero(self.rng.random(n) < probabilities)
        return rows, 1.0 / probabilities[rows]


def _least_modulus(values: list[np.ndarray], strength: float) -> float:
    """Return the modulus that eigenvalues must exceed, so that there are not too many variables."""
    moduli = [np.sort(np.abs(each))[::-1] for each in values]
    # A vector that joins q - 1 others of an output adds q variables.
    joined = np.concatenate(moduli)
    added = np.concatenate([np.arange(1, len(each) + 1) for each in moduli])
    order = np.argsort(-joined, kind="stable")
    total = np.cumsum(added[order])
    beyond = joined[order][total > _MOST_VARIABLES]
    return max(_NEAR * strength, float(beyond[0]) if len(beyond) else 0.0)


def _with_directions(Q: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return orthonormal vectors Q (d, q), and more of them, which span other vectors (d, k) too."""
    for _ in range(2):  # twice is enough
        others = others - Q @ (Q.T @ others)
    left, sizes, _ = np.linalg.svd(others, full_matrices=False)
    return np.ascontiguousarray(np.hstack([Q, left[:, sizes > _INDEPENDENT]]))


def _along(G: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return the derivatives (n,) along a direction of the outputs, for each class that moves."""
    return G @ outputs / np.abs(outputs).sum()
