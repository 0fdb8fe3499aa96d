"""Better dual points under l1: the gradient of the losses at a nearby network, along whose units it is smaller.

Where refits end, the eigenvalues of Gamma above the strength belong to directions of high curvature, which refits leave
for the end: each is worth little of the objective, but the gap is of first order in it. Let Q_c (d, q_c) be the
eigenvectors of Gamma_c whose moduli exceed about the strength. The convex problem

    min over symmetric T_c (q_c, q_c) of F(O + outputs of Q_c T_c Q_c') + target * sum_c ||T_c||_*

has few variables. Its dual is the projection of G onto the points for which every ||Q_c' Gamma_c Q_c|| is at most
``target``, in the metric of the losses. Its solution, added to the network, is a network, so that the gradient there is
an ordinary dual point, whose bounds hold for reasons of their own, whatever the accuracy of the solution
(docs/mathematics.md, 5.8).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mopn.core.kernels import Kernel
from mopn.data.designs import Design
from mopn.losses.hessians import Hessian
from mopn.network.point import Network
from mopn.network.trace_norm_model import TraceNormModel

# Modulus of an eigenvalue, relative to the strength, above which its eigenvector may move: a slightly smaller one would
# exceed it after the step.
_NEAR = 0.8
# Variables of the problem, at most: beyond, a larger modulus is asked for.
_MOST_VARIABLES = 1000
# Multiplications that form the curvature, at most: beyond, it is computed from random rows.
_MOST_WORK = 2e10
# Derivatives of outputs that are in memory at once, 2 MiB.
_FEATURES_AT_A_TIME = 1 << 18
# Random rows for each variable, at least: with 20 a step leaves about a fifth of what the slopes exceed the target by.
_LEAST_ROWS_PER_VARIABLE = 20
# The probability of a row, relative to the mean one, at least.
_LEAST_PROBABILITY = 1e-3
# The target is below the strength by this fraction of the relative gap,
_BELOW = 0.1
# and by at most this fraction of the strength.
_MOST_BELOW = 0.01
# Newton steps, at most: more change less than the directions that are left out.
_MOST_STEPS = 4
# Part of the mean curvature that is added to each variable, so that the curvature is positive definite.
_LEAST_CURVATURE = 1e-6
# Moduli of eigenvalues of T, relative to the largest, that make no unit.
_NEGLIGIBLE = 1e-12


class Compression:
    """The symmetric matrices Q T Q' of one direction of the outputs, for vectors Q (d, q), and their values at rows.

    A point is the upper triangle of T as a vector of the same length. ``outputs`` (m,) is the change of all outputs by
    a step of 1 along the direction.
    """

    def __init__(self, Q: np.ndarray, values: np.ndarray, outputs: np.ndarray, kernel: Kernel, design: Design) -> None:
        self.Q, self.outputs, self.kernel, self.design = Q, outputs, kernel, design
        self.projections = design.project(Q.T)  # (n, q)
        self.rows, self.columns = np.triu_indices(Q.shape[1])
        self.factors = np.where(self.rows == self.columns, 1.0, math.sqrt(2.0))
        self.size = len(self.factors)
        # The slopes at T = 0.
        self.first_slopes = self.vector(np.diag(values))

    def vector(self, T: np.ndarray) -> np.ndarray:
        return T[self.rows, self.columns] * self.factors

    def matrix(self, x: np.ndarray) -> np.ndarray:
        q = self.Q.shape[1]
        T = np.zeros((q, q))
        T[self.rows, self.columns] = x / self.factors
        T[self.columns, self.rows] = T[self.rows, self.columns]
        return T

    @property
    def longest(self) -> float:
        """The largest modulus of a projection."""
        return max(float(np.abs(self.projections).max()), math.ulp(0.0))

    def features(self, rows: np.ndarray, length: float) -> np.ndarray:
        """Return the derivatives (size, rows) of the output in single precision, where projections have a unit."""
        Z = np.ascontiguousarray(self.projections[rows].T / length, dtype=np.float32)
        products = np.empty((self.size, len(rows)), dtype=np.float32)
        first = 0
        for k in range(len(Z)):
            np.multiply(Z[k], Z[k:], out=products[first : first + len(Z) - k])
            first += len(Z) - k
        if self.kernel.distinct:
            of_pairs = self.Q[:, self.rows] * self.Q[:, self.columns] / length**2
            products -= self.design.rows(rows).project_squares(of_pairs.T).T.astype(np.float32)
        products *= (self.kernel.of_square * self.factors).astype(np.float32)[:, None]
        return products

    def _blocks(self) -> list[np.ndarray]:
        """Return the projections in blocks of rows, as products with each take as much memory."""
        step = max(1, _FEATURES_AT_A_TIME // self.Q.shape[1])
        return [self.projections[first : first + step] for first in range(0, len(self.projections), step)]

    def output(self, x: np.ndarray) -> np.ndarray:
        """Return the output (n,)."""
        T = self.matrix(x)
        output = np.concatenate([np.einsum("iq,iq->i", Z @ T, Z) for Z in self._blocks()])
        if self.kernel.distinct:
            output -= self.design.project_squares(self._diagonal(T)[None])[:, 0]
        return self.kernel.of_square * output

    def slopes(self, g: np.ndarray) -> np.ndarray:
        """Return the derivatives (size,) of a sum over the rows with derivatives g (n,) in the output."""
        q = self.Q.shape[1]
        S = np.zeros((q, q))
        first = 0
        for Z in self._blocks():
            S += Z.T @ (Z * g[first : first + len(Z), None])
            first += len(Z)
        if self.kernel.distinct:
            S -= (self.Q.T * self.design.adjoint_squares(g[:, None])) @ self.Q
        return self.kernel.of_square * self.vector(S)

    def ridge_slopes(self, x: np.ndarray) -> np.ndarray:
        """Return the derivatives (size,) of half the squared length of the output as a function."""
        T = self.matrix(x)
        if self.kernel.distinct:
            T = T - (self.Q.T * self._diagonal(T)) @ self.Q
        return self.kernel.of_square * self.vector(T)

    def _diagonal(self, T: np.ndarray) -> np.ndarray:
        """Return the diagonal (d,) of Q T Q'."""
        return np.einsum("dq,dq->d", self.Q @ T, self.Q)

    def shrunk(self, x: np.ndarray, by: float) -> np.ndarray:
        """Return the point whose eigenvalues have moduli smaller by a number, or are 0: the nuclear norm's prox."""
        values, vectors = np.linalg.eigh(self.matrix(x))
        values = np.sign(values) * np.maximum(np.abs(values) - by, 0.0)
        return self.vector((vectors * values) @ vectors.T)

    def largest(self, x: np.ndarray) -> float:
        """Return the largest modulus of an eigenvalue."""
        return float(np.abs(np.linalg.eigvalsh(self.matrix(x))).max())

    def units(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Q T Q' as units (k, d) and their weights (k, m)."""
        values, vectors = np.linalg.eigh(self.matrix(x))
        kept = np.abs(values) > _NEGLIGIBLE * np.abs(values).max()
        basis = (self.Q @ vectors[:, kept]).T
        return basis, values[kept, None] * self.outputs


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
        found = []
        for c, outputs in directions.items():
            near = np.abs(values[c]) > least
            if near.any():
                Q = np.ascontiguousarray(vectors[c][:, near])
                found.append(Compression(Q, values[c][near], outputs, problem.kernel, problem.rows.design))
        return found

    def solve(self) -> Network | None:
        """Return the network of the better dual point; None where no slope exceeds the target, or no step lowers it."""
        if not self.size:
            return None
        outputs = self.outputs
        slopes = np.concatenate([each.first_slopes for each in self.compressions])
        largest = self._largest(slopes)
        if largest <= self.target:
            return None
        # The slopes of the network's ridge.
        others = slopes - self._slopes_of_losses(outputs)
        best = x = np.zeros(self.size)
        try:
            K, unit = self._curvature(outputs)
            model = TraceNormModel(K, self._shrunk, self._largest)
        except np.linalg.LinAlgError:  # numbers so large or small that the curvature has lost its digits
            return None
        # The unit of points in which the norm of the model has weight 1.
        length = self.target / unit
        for _ in range(_MOST_STEPS):
            try:
                new = length * model.minimiser(slopes / self.target, x / length)
            except np.linalg.LinAlgError:
                break
            outputs = outputs + self._outputs(new - x)
            x = new
            slopes = others + self._slopes_of_losses(outputs)
            if self.ridge:
                slopes += self.ridge * np.concatenate([each.ridge_slopes(part) for each, part in self._parts(x)])
            before = largest
            largest = self._largest(slopes) if np.isfinite(slopes).all() else math.inf
            if not largest < before:  # too far for a Newton step
                break
            best = x
            if largest <= self.strength:
                break
        return self._moved(best)

    def _moved(self, x: np.ndarray) -> Network | None:
        if not x.any():
            return None
        parts = [each.units(part) for each, part in self._parts(x) if part.any()]
        basis, weights = zip(*parts, strict=True)
        # All units enter at once, as the features of a network are copied.
        return self.network.with_more(np.vstack(basis), np.vstack(weights))

    # Sums and joins over the compressions.

    def _parts(self, x: np.ndarray) -> list[tuple[Compression, np.ndarray]]:
        """Return each compression and its part of a point."""
        return list(zip(self.compressions, np.split(x, self._ends), strict=True))

    def _shrunk(self, x: np.ndarray, by: float) -> np.ndarray:
        return np.concatenate([each.shrunk(part, by) for each, part in self._parts(x)])

    def _largest(self, x: np.ndarray) -> float:
        return max([each.largest(part) for each, part in self._parts(x)])

    def _outputs(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, m) of a point."""
        outputs = np.zeros_like(self.outputs)
        for each, part in self._parts(x):
            outputs += each.output(part)[:, None] * each.outputs
        return outputs

    def _slopes_of_losses(self, outputs: np.ndarray) -> np.ndarray:
        """Return the slopes of the losses, for each class that moves along."""
        _, G = self.losses.value_gradient(outputs)
        G = np.asarray(G)
        return np.concatenate([each.slopes(_along(G, each.outputs)) for each in self.compressions])

    def _hessian(self, rows: slice | np.ndarray, outputs: np.ndarray) -> Hessian:
        return self.losses.in_memory.rows(rows).hessian(outputs[rows])

    def _curvature(self, outputs: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the second derivatives (size, size) of losses and ridge in single precision, and their unit.

        They serve all steps. Many rows are drawn by their curvature.
        """
        sizes = np.asarray(self._hessian(slice(None), outputs).diagonal).sum(axis=1)
        rows, weights = self._drawn(sizes)
        unit_of_rows = max(float(sizes.max()), math.ulp(0.0))
        length = max(each.longest for each in self.compressions)
        unit = unit_of_rows * length**4
        if not 0.0 < unit < math.inf:
            raise np.linalg.LinAlgError("the unit of the curvature is not a positive number")
        K = np.zeros((self.size, self.size), dtype=np.float32)
        step = max(1, _FEATURES_AT_A_TIME // self.size)
        for first in range(0, len(rows), step):
            some = slice(first, first + step)
            self._add_curvature(K, rows[some], weights[some] / unit_of_rows, outputs, length)
        diagonal = np.diag_indices(self.size)
        K[diagonal] += self.ridge * self.of_square / unit + _LEAST_CURVATURE * K[diagonal].mean()
        mean = float(K[diagonal].mean())
        K /= mean
        return K, mean * unit

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


def _along(G: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return the derivatives (n,) along a direction of the outputs, for each class that moves."""
    return G @ outputs / np.abs(outputs).sum()
