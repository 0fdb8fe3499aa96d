"""The joint refit of both layers in a smooth form, for every norm.

K(a, x) = ||a||^2 K(h, x) for a = ||a|| h, so the length of a unit can carry the norm of its weights:

    outputs  o = sum_r K(a_r, x) e_r,   norm(V) <= ||A||_F^2,   directions e_r in the unit ball of a row's norm.

The penalty is then strength * ||A||_F^2, which is smooth; in a ball, A is B scaled into ||A||_F^2 <= radius. The
directions are e = z / ||z|| for l1/l2, e = z in the box -1 <= z <= 1 for l1/linf, and fixed signed unit vectors for l1,
where every unit has one output. Each point maps back to unit vectors and weights with the same outputs and an objective
that is not larger.
"""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mopn.core.kernels import Kernel, eigen_units
from mopn.core.norms import Norm
from mopn.core.regularizers import NormRegularizer
from mopn.data.rows import Rows, SumOfLosses
from mopn.data.validation import check_start
from mopn.network.curvature import Curvature, JointMetric, RelationCurvature, regular
from mopn.network.linear_term import LinearTerm
from mopn.network.point import Network, joined, split
from mopn.network.ridge import Ridge
from mopn.network.two_layers import two_layers
from mopn.solvers import LBFGS
from mopn.solvers.interface import Evaluation, Measure, Problem
from mopn.solvers.numerics.precision import NULL
from mopn.solvers.tools.display import Displayed

# Largest tolerance of refits in which a metric pays; cheap metrics for units alone pay at any tolerance.
_LARGEST_TOL_OF_METRIC = 1e-3
# Smallest relative decrease that sums over rows of products in single precision can show.
_RESOLUTION_OF_SINGLE = 1e-8
# Distance of random starts from the network, relative to the length of units and directions.
_DISTANCE_OF_STARTS = 0.1


class JointProblem(Displayed, Problem):
    """Minimise F + R over units, weights and linear term together; ``NetworkProblem.joint`` makes it.

    The point is (B, Z, W) flat: free variables of the units A and of their directions E, and the coefficients W. A unit
    of length zero is stationary, so new units must start with nonzero weights. Not convex, without a certificate;
    oracle: ``gradient``.
    """

    oracles = frozenset({"gradient"})

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        regularizer: NormRegularizer,
        linear_term: LinearTerm,
        network: Network,
        ridge: Ridge,
        *,
        single: bool = False,
        seed: int = 0,
    ) -> None:
        self.regularizer, self.linear_term, self.ridge = regularizer, linear_term, ridge
        self.directions = _DIRECTIONS[regularizer.norm.exponent](network.weights, regularizer.norm)
        self.layers = two_layers(rows, kernel, single=single)
        self.resolution = _RESOLUTION_OF_SINGLE if single else 0.0
        self.curvature = self._make_curvature(rows, kernel, seed)
        # Units are as long as the norms of their weights ask.
        units = network.basis[self.directions.rows] * np.sqrt(self.directions.sizes)[:, None]
        parts = [units, self.directions.start.ravel(), network.linear]
        self._shapes = [part.shape for part in parts]
        self.scales = joined(*map(np.broadcast_to, _scales(rows, linear_term), self._shapes))
        self._start = joined(*parts)

    def _make_curvature(self, rows: Rows, kernel: Kernel, seed: int) -> Curvature | RelationCurvature | None:
        """Return the curvatures that make up a metric, where it pays."""
        if not (self.regularizer.active or self.ridge.active):
            return None
        k = len(self.directions.rows)
        if k and Curvature.pays(rows, k):
            return Curvature(rows, kernel, self.linear_term, seed)
        if RelationCurvature.pays(rows):
            return RelationCurvature(rows, kernel, self.linear_term)
        return None

    def _entries(self) -> dict[str, str]:
        units, _, _ = self._shapes
        return {"units": str(units)} | dict([self.regularizer.words.split("=")])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        if self.directions.box is None:
            return None
        upper = np.full(self._start.size, np.inf)
        _, box, _ = split(upper, self._shapes)
        box[:] = self.directions.box
        return -upper, upper

    def start(self, start: Any = None) -> np.ndarray:
        """Return the own network as a point, one at random near it for a Generator, or a copy of a flat point."""
        if isinstance(start, np.random.Generator):
            return self._nearby(start)
        return self._start.copy() if start is None else check_start(start, self._start.size)

    def _nearby(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random point near the network."""
        x = self._start.copy()
        B, Z, _ = split(x, self._shapes)
        for part in (B, Z.reshape(-1, self.directions.shape[1])):
            lengths = np.linalg.norm(part, axis=1, keepdims=True)
            part += _DISTANCE_OF_STARTS * lengths / np.sqrt(part.shape[1]) * rng.standard_normal(part.shape)
        return x if self.bounds is None else np.clip(x, *self.bounds)

    def default_solver(self) -> LBFGS:
        return LBFGS()

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        """Named views of the point: unit vectors ``basis``, ``weights`` and ``linear``."""
        B, Z, W = split(x, self._shapes)
        A = self.regularizer.scaled_units(B)
        E = self.directions.map(Z)
        sizes = np.einsum("rd,rd->r", A, A)
        alive = sizes > NULL * sizes.max(initial=0.0)
        basis = A[alive] / np.sqrt(sizes[alive])[:, None]
        basis, weights = self.directions.merge(basis, sizes[alive][:, None] * E[alive])
        return {"x": x, "basis": basis, "weights": weights, "linear": W}

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        B, Z, W = split(x, self._shapes)
        A = self.regularizer.scaled_units(B)
        E = self.directions.map(Z)
        value, gradient_A, gradient_E, gradient_W = self.layers.value_gradient(A, E, W)
        if self.ridge.active and len(A):
            of_ridge, of_units, of_directions = self.ridge.value_gradient(A, E)
            value = value + of_ridge
            gradient_A = gradient_A + of_units
            gradient_E = gradient_E + of_directions
        if not math.isfinite(value):
            # A step of a line search that is too long for single precision; it needs no gradient.
            return Evaluation(math.inf, np.zeros_like(x))
        value = value + self.linear_term.value(W)
        gradient_W = gradient_W + self.linear_term.gradient(W)
        penalty, gradient_B = self.regularizer.units_value_gradient(B, A, gradient_A)
        gradient = joined(gradient_B, self.directions.pull_back(Z, gradient_E), gradient_W)
        return Evaluation(value + penalty, gradient)

    def metric(self, x: np.ndarray, tol: float = 0.0) -> JointMetric | None:
        """Return the inverse of the curvature in every unit and direction alone; None where it does not pay."""
        if self.curvature is None:
            return None
        if tol > _LARGEST_TOL_OF_METRIC and not (self.curvature.is_cheap and self.directions.is_fixed):
            return None
        B, Z, W = split(x, self._shapes)
        A = self.regularizer.scaled_units(B)
        E = self.directions.map(Z)
        blocks: Any = self.curvature(A, E, W)
        # The penalty is strength * ||A||_F^2; in a ball, the gain of a unit of norm takes the place of the strength.
        cost = max(self.regularizer.weight_cost(earned=lambda: blocks.earned), 0.0)
        costs = np.full(len(A), cost)
        if self.ridge.active:
            costs += self.ridge.curvature(A, E)
        directions = self.directions.curvature(Z, blocks.directions, costs * np.einsum("rd,rd->r", A, A))
        return self.curvature.metric(blocks, costs, directions)

    def measure(self, x: np.ndarray) -> Measure:
        return Measure(self.value_gradient(x).value)


class RestProblem(JointProblem):
    """The problem with units and weights fixed: the convex fit of the linear term after the outputs of the units."""

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        regularizer: NormRegularizer,
        linear_term: LinearTerm,
        network: Network,
        ridge: Ridge,
    ) -> None:
        self.network = network
        empty = network.without_units()
        super().__init__(rows.plus(network.unit_outputs), kernel, regularizer, linear_term, empty, ridge)

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        """Named views of the point, with the units as they are."""
        return super().unpack(x) | {"basis": self.network.basis, "weights": self.network.weights}


def _scales(rows: Rows, linear_term: LinearTerm) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return steps in B, Z and W, entry by entry, that change outputs by about their own size.

    Outputs are K(a, x) e, of degree two in a and X. Steps in W have the curvature that a step in B has for the
    square of the mean feature: small features of many samples hardly curve the objective.
    """
    losses = SumOfLosses(rows)
    unit = losses.output_unit
    # Squares of the smallest numbers are zero.
    squares = (np.sqrt(rows.squares.mean()) / (rows.largest or 1.0)) ** 2 or losses.total_weight
    curvature = unit**2 * losses.smoothness * squares
    of_units = np.sqrt(unit) * rows.scales
    of_linear = np.sqrt(curvature) * linear_term.scales(losses.smoothness)
    return of_units, np.ones(1), of_linear


class _Directions(ABC):
    """The map from free Z to directions E (k, m) in the unit ball of a row's norm, for ``rows`` of the network."""

    box: float | None = None
    # Whether there are no variables Z.
    is_fixed = False

    def __init__(self, weights: np.ndarray, norm: Norm) -> None:
        self.sizes = np.array([norm.value(row[None]) for row in weights])
        self.rows = np.flatnonzero(self.sizes)
        self.sizes = self.sizes[self.rows]
        self.start = weights[self.rows] / self.sizes[:, None]
        self.shape = self.start.shape

    @abstractmethod
    def map(self, Z: np.ndarray) -> np.ndarray:
        """Return E for the flat Z."""

    @abstractmethod
    def pull_back(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to Z from the gradient with respect to E."""

    @abstractmethod
    def curvature(self, Z: np.ndarray, blocks: np.ndarray, costs: np.ndarray) -> np.ndarray | None:
        """Return the curvature (k, m, m) in Z from the curvature in E and the cost of the units; None if E is fixed."""

    def merge(self, basis: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return an equal network of smaller norm or fewer units."""
        return basis, weights


class _Sphere(_Directions):
    """l1/l2: E = Z / ||Z||, row by row."""

    def map(self, Z: np.ndarray) -> np.ndarray:
        Z = Z.reshape(self.shape)
        return Z / self._sizes(Z)

    def pull_back(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        E = self.map(Z)
        along = np.einsum("rc,rc->r", gradient, E)[:, None]
        return (gradient - along * E) / self._sizes(Z.reshape(self.shape))

    def curvature(self, Z: np.ndarray, blocks: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """Return the curvature along the sphere; losses fall by the cost along E, which the sphere's curvature adds."""
        E = self.map(Z)
        sizes = self._sizes(Z.reshape(self.shape))[:, :, None]
        across = np.eye(E.shape[1]) - E[:, :, None] * E[:, None, :]
        return regular(across @ blocks @ across, costs) / sizes**2

    def _sizes(self, Z: np.ndarray) -> np.ndarray:
        """Return the lengths (k, 1) of the rows, or 1 for rows of zeros, which a start may have: E is zero there."""
        sizes = np.linalg.norm(Z, axis=1, keepdims=True)
        return np.where(sizes > 0, sizes, 1.0)


class _BoxDirections(_Directions):
    """l1/linf: E = Z in the box."""

    box = 1.0

    def map(self, Z: np.ndarray) -> np.ndarray:
        return Z.reshape(self.shape)

    def pull_back(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient

    def curvature(self, Z: np.ndarray, blocks: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """Return the curvature of the losses; where these are flat, the units' cost, as steps have no other unit."""
        return regular(blocks, np.zeros_like(costs) if blocks.any() else costs)


class _Signs(_Directions):
    """l1: each unit has one output and one sign, both fixed; W_c = sum_r +-a_r a_r'."""

    is_fixed = True

    def __init__(self, weights: np.ndarray, norm: Norm) -> None:
        self.norm = norm
        self.rows, outputs = np.nonzero(weights)
        entries = weights[self.rows, outputs]
        self.sizes = np.abs(entries)
        self.shape = len(entries), weights.shape[1]
        self.start = np.zeros(0)
        self._E = np.zeros(self.shape)
        self._E[np.arange(len(entries)), outputs] = np.sign(entries)

    def map(self, Z: np.ndarray) -> np.ndarray:
        return self._E

    def pull_back(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return Z

    def curvature(self, Z: np.ndarray, blocks: np.ndarray, costs: np.ndarray) -> None:
        return None

    def merge(self, basis: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvectors of every W_c: its nuclear norm, and at most d units (Proposition 1 of the paper)."""
        units = [np.zeros((0, basis.shape[1]))]
        entries = [np.zeros((0, weights.shape[1]))]
        for c, column in enumerate(weights.T):
            alive = column != 0
            values, vectors = eigen_units(column[alive], basis[alive])
            units.append(vectors)
            # For nonnegative weights, eigenvalues below 0 are rounding errors, which a prox removes.
            entries.append(self.norm.prox(np.outer(values, np.eye(weights.shape[1])[c]), 0.0))
        return np.vstack(units), np.vstack(entries)


# The map of each norm, by its exponent.
_DIRECTIONS: dict[float, type[_Directions]] = {math.inf: _Signs, 2.0: _Sphere, 1.0: _BoxDirections}
