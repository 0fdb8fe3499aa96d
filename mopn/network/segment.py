"""The segment of a conditional gradient step: towards a vertex, away from one, or from one to another.

Also bounds on how rounding errors in the outputs of a network change its losses: docs/mathematics.md, section 5.4.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from mopn.core.regularizers import NormRegularizer
from mopn.data.rows import Block, Rows, SumOfLosses
from mopn.network.linear_term import LinearTerm
from mopn.network.point import Network
from mopn.network.ridge import Ridge, RidgeSegment
from mopn.solvers.interface import ActiveUnits
from mopn.solvers.numerics.precision import EPS, NULL
from mopn.solvers.tools.decorators import cached_property


class Vertex(NamedTuple):
    """An extreme point Delta, a network of units (q, d) with weights (q, m), and its penalty.

    Under a penalty the step is taken in the epigraph {(U, omega): Omega(U) <= omega <= radius} (Harchaoui, Juditsky and
    Nemirovski, 2015). No minimiser exceeds the radius ``least / strength``, as losses are nonnegative. The extreme
    points are that multiple of an atom, if it is worth its penalty, and 0.
    """

    network: Network
    penalty: float


class ActiveVertex(NamedTuple):
    """The vertex that a segment leaves, the row of its unit in the network (none for 0), and its coefficient."""

    rows: list[int]
    vertex: Vertex
    coefficient: float


def best_vertex(network: Network, q: np.ndarray, regularizer: NormRegularizer, least: float) -> Vertex:
    """Return the extreme point on a unit with the values q (1, m) of the forms; the mean of these for several units."""
    directions = regularizer.norm.steepest(q) / network.n_units
    size, strength = regularizer.vertex(least, -float(np.vdot(directions, q)))
    return Vertex(network.with_weights(size * directions), strength * size)


def active_units(network: Network, crossed: np.ndarray, regularizer: NormRegularizer, least: float) -> ActiveUnits:
    """Return the network as a combination of extreme points, 0 last, for the forms q (k, m) at the units."""
    coefficients = regularizer.shares(network.weights, least)
    penalties = np.array([regularizer.value(row[None]) for row in network.weights])
    slopes = np.einsum("km,km->k", crossed, network.weights) + penalties
    slopes /= np.where(coefficients > 0, coefficients, 1.0)
    rest = _share_of_zero(coefficients)
    if not rest:
        return ActiveUnits(coefficients, slopes)
    return ActiveUnits(np.append(coefficients, rest), np.append(slopes, 0.0))


def active_vertex(network: Network, regularizer: NormRegularizer, r: int, least: float) -> ActiveVertex:
    """Return the extreme point in the direction of a unit's weights, which is 0 if these are zero; 0 if r is k."""
    rows = [r] if r < network.n_units else []
    weights = network.weights[rows]
    shares = regularizer.shares(network.weights, least)
    coefficient = float(shares[r]) if rows else _share_of_zero(shares)
    size = max(coefficient, math.ulp(0.0))
    vertex = Vertex(network.of_units(rows).with_weights(weights / size), regularizer.value(weights) / size)
    return ActiveVertex(rows, vertex, coefficient)


def _share_of_zero(coefficients: np.ndarray) -> float:
    """Return 1 minus the sum of the coefficients, without rounding errors."""
    rest = 1.0 - float(coefficients.sum())
    return rest if rest > NULL else 0.0


class NetworkSegment:
    """U(gamma) = U + gamma D, 0 <= gamma <= limit: D is Delta - U, U - Delta_r (away) or Delta - Delta_r (pairwise).

    With ``linear_moves`` the linear term moves towards the minimiser -G' [1, X] / alpha of its linearised objective, as
    in the generalised conditional gradient method of Bredies, Lorenz and Maass (2009); otherwise it is fixed. Away from
    the vertex 0, U grows.
    """

    def __init__(
        self,
        network: Network,
        G: Any,
        losses: SumOfLosses,
        regularizer: NormRegularizer,
        linear_term: LinearTerm,
        ridge: Ridge,
        *,
        towards: Vertex | None = None,
        away: ActiveVertex | None = None,
        linear_moves: bool = False,
    ) -> None:
        self.network, self.losses, self.linear_term = network, losses, linear_term
        self.towards, self.away, self.nonnegative = towards, away, regularizer.norm.nonnegative
        # ``own`` is the coefficient of U in D.
        if away is None:
            self.own = -1.0
            self.limit = 1.0
        else:
            self.own = 1.0 if towards is None else 0.0
            self.limit = _largest_step(away.coefficient, pairwise=towards is not None)

        of_units = network.unit_outputs
        self.outputs = of_units + network.linear_outputs if network.linear.size else of_units
        self.step = self.own * of_units
        if towards is not None:
            self.step = towards.network.unit_outputs + self.step
        if away is not None:
            self.step = self.step - away.vertex.network.unit_outputs

        self.linear = network.linear
        self.linear_step = linear_term.minimizer(G) - self.linear if linear_moves else np.zeros_like(self.linear)
        if self.linear_step.any():
            self.step += linear_term.outputs(self.linear_step)

        self.penalty = regularizer.value(network.weights)
        self.vertex_penalty = 0.0 if towards is None else towards.penalty
        if away is not None:
            self.vertex_penalty -= away.vertex.penalty
        fall = linear_term.value(self.linear) - linear_term.value(self.linear + self.linear_step)
        self.gap = -self.own * self.penalty - self.vertex_penalty + fall - losses.rows.inner(G, self.step)
        self.curvature = losses.smoothness
        self.squared_length = losses.squared_length(self.step)
        self.ridge = self._ridge_along(ridge) if ridge.active else None
        if self.ridge is not None:
            self.gap -= self.ridge.slope
            self.squared_length += self.ridge.curvature / self.curvature

    def _ridge_along(self, ridge: Ridge) -> RidgeSegment:
        """Return the ridge along the segment; D is a network, too."""
        units = [self.network.basis]
        weights = [self.own * self.network.weights]
        if self.towards is not None:
            vertex = self.towards.network
            units.append(vertex.basis)
            weights.append(vertex.weights)
        if self.away is not None:
            vertex = self.away.vertex.network
            units.append(vertex.basis)
            weights.append(-vertex.weights)
        return ridge.segment(self.network.basis, self.network.weights, np.vstack(units), np.vstack(weights))

    def value(self, gamma: float) -> float:
        """Objective at U(gamma), with the penalty's upper bound (1 - gamma) Omega(U) + gamma Omega(Delta)."""
        penalty = (1.0 + self.own * gamma) * self.penalty + gamma * self.vertex_penalty
        penalty += self.linear_term.value(self.linear + gamma * self.linear_step)
        if self.ridge is not None:
            penalty += self.ridge(gamma)
        return self.losses.value(self.outputs + gamma * self.step) + penalty

    def point(self, gamma: float) -> Network:
        weights = (1.0 + self.own * gamma) * self.network.weights
        if self.away is not None:
            rest = weights[self.away.rows] - gamma * self.away.vertex.network.weights
            if self.nonnegative:
                rest = np.maximum(rest, 0.0)
            # At the limit the unit's weights are exactly 0, without rounding errors.
            weights[self.away.rows] = 0.0 if gamma == self.limit > 0 else rest
        network = self.network.with_weights(weights)
        if self.towards is not None:
            vertex = self.towards.network
            network = network.plus(vertex.with_weights(gamma * vertex.weights))
        if not self.linear_step.any():
            return network
        return network.with_linear(self.linear + gamma * self.linear_step)


def _largest_step(coefficient: float, *, pairwise: bool) -> float:
    """Return the largest gamma of a step away from a vertex with this coefficient."""
    if pairwise:
        return coefficient
    return coefficient / (1.0 - coefficient) if 1.0 - coefficient > NULL else 0.0


class OutputRounding:
    """Bounds of F(O) - F(O'), for the exact outputs O of a network and the outputs O' that were computed.

    |O - O'|_ic <= a_c ||x_i||^2 + b_c ||[1, x_i]|| + eps |offset_ic|. To first order the losses change by <G, O - O'>,
    where G is their gradient at O'; the rest is at most sum_i w_i L/2 ||O_i - O'_i||^2 for a loss of smoothness L.
    ``of_span`` is the error of a :class:`mopn.network.row_span.RowSpan`; the network of a result has it too.
    """

    def __init__(self, rows: Rows, linear_term: LinearTerm, of_span: float = 0.0) -> None:
        self.rows, self.linear_term, self.of_span = rows, linear_term, of_span

    def __call__(self, network: Network, G: Any, sizes: np.ndarray) -> float:
        """Return the bound, for the gradient G (n, m) and the sums (m,) of |G_ic| ||x_i||^2."""
        k, d = network.basis.shape
        W = network.linear
        of_units = (k + 2 * d + 4) * EPS * np.abs(network.weights).sum(axis=0)
        of_linear = (W.shape[1] + 4) * EPS * np.linalg.norm(W, axis=1)
        return self.of_errors(network, G, sizes, of_units, of_linear)

    def of_errors(
        self, network: Network, G: Any, sizes: np.ndarray, of_units: np.ndarray, of_linear: np.ndarray
    ) -> float:
        """Return the bound for given errors of the outputs: a (m,) of the units and b (m,) of the linear term."""
        of_units = of_units + self.of_span * (2.0 + self.of_span) * np.abs(network.weights).sum(axis=0)
        of_linear = of_linear + self.of_span * np.linalg.norm(network.linear, axis=1)
        first = float(sizes @ of_units) + self.linear_term.rounding_error(of_linear, G)
        errors = np.array([np.linalg.norm(of_units), np.linalg.norm(of_linear), EPS])
        constant = self.rows.losses.loss.smoothness(self.rows.losses.n_outputs)
        if math.isfinite(constant):
            return first + 0.5 * constant * float(errors @ self._total_sizes) ** 2
        return first + self.rows.sum(_without_constant, errors, along=(network.outputs,))

    def of_linear_term(self, G: Any, most: float) -> float:
        """Bound the change of <G, [1, X] W'>, relative to ``of_span``, for penalties of W of at most ``most``."""
        term = self.linear_term
        if term.alpha is None:
            return 0.0
        sizes = term.rounding_error(np.ones(G.shape[1]), G)
        return math.sqrt(2.0 * most / term.alpha) * sizes

    @cached_property
    def _total_sizes(self) -> np.ndarray:
        """The roots (3,) of the sums of w_i ||x_i||^4, w_i ||[1, x_i]||^2 and w_i ||offset_i||^2, rounded up."""
        squares = self.rows.sum(_weighted_squared_sizes)
        return np.sqrt(squares) * (1.0 + self.rows.shape[0] * EPS)


def _weighted_squared_sizes(block: Block) -> tuple[Any, ...]:
    return tuple([block.losses.sample_weights @ squares for squares in _squared_sizes(block)])


def _squared_sizes(block: Block) -> tuple[Any, Any, Any]:
    """Return the squared sizes (n,) to which the errors of a row are relative: of x, [1, x] and the offset."""
    sizes = block.design.squared_sizes
    offset = block.losses.offset
    offsets = 0.0 * sizes if offset is None else np.sum(offset * offset, axis=1)
    return sizes * sizes, block.linear.squared_sizes, offsets


def _without_constant(block: Block, outputs: np.ndarray, errors: np.ndarray) -> float:
    """Return the sum of w_i ||O_i - O'_i||^2 times the trace of the second derivative; inf for errors above 1.

    For errors up to 1 the second derivative is assumed to grow by a factor of e at most, as Poisson's does. The
    remainder is then at most e - 2 < 1 times this sum.
    """
    lengths = np.sqrt(np.stack(_squared_sizes(block), axis=1)) @ errors
    if lengths.max(initial=0.0) > 1.0:
        return math.inf
    return float(block.losses.hessian(outputs).diagonal.sum(axis=1) @ lengths**2)
