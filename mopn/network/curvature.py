"""The metric of joint refits by L-BFGS: an approximate curvature of the objective in every unit, and in its direction.

Features are nearly collinear, and units and features differ in size by orders of magnitude. L-BFGS then takes several
times as many iterations as with the inverse of these blocks as its first approximation of the Hessian. The blocks are
Gauss-Newton blocks, without the curvature of the outputs: sum_i s_i x_i x_i' in a unit, with the curvature s_i of the
loss along its product. Each is replaced by a multiple of the Gram matrix X'X of the same trace, so that all units share
eigenvectors; between sparse columns, such as indicators of categories, and all others it counts as zero.

For relation blocks the metric is the curvature in the outputs of the rows of tables. All samples of a user share a row,
for which a unit has one number. The losses curve nearly independently in these numbers, but not in the coefficients of
ids and other columns, which are collinear.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from mopn.core.kernels import Kernel
from mopn.data.relation_design import RelationDesign, RowIds
from mopn.data.rows import Block, Rows
from mopn.losses.hessians import Diagonal, Hessian
from mopn.network.linear_term import LinearTerm
from mopn.network.point import joined, split
from mopn.network.two_layers import layer_outputs
from mopn.solvers.tools.decorators import cached_property

# Random rows that the curvatures are computed from, at least.
_LEAST_ROWS = 1000
# Rows for each column, or output if these are more, where that is more than the least number.
_ROWS_PER_COLUMN = 3
# A metric pays where it takes at most the time of this number of evaluations of the objective.
MAX_EVALUATIONS = 15
# Time of all eigenvectors of a square matrix, in products of square matrices.
PRODUCTS_FOR_EIGENVECTORS = 10
# The least curvature in any direction, relative to the mean curvature of the largest block.
LEAST_RIDGE = 1e-3


class Blocks(NamedTuple):
    """The curvature of the losses in units, as multiples (k,) of X'X, and in directions (k, m, m).

    ``earned`` is the first-order gain of the units: minus the product of their outputs and the loss gradient.
    """

    units: np.ndarray
    directions: np.ndarray
    earned: float


class Axes(NamedTuple):
    """Eigenvalues and eigenvectors (p, p) of X'X in the ``columns`` that are not sparse; in others its diagonal alone.

    The ``values`` (d,) are the eigenvalues in these columns and the diagonal in the others.
    """

    values: np.ndarray
    vectors: np.ndarray
    columns: np.ndarray | slice

    def scaled(self, A: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Return the rows of A (k, d), whose coordinates along the axes are multiplied by ``factors`` (k, d)."""
        scaled = factors * A
        along = A[:, self.columns] @ self.vectors
        scaled[:, self.columns] = (along * factors[:, self.columns]) @ self.vectors.T
        return scaled


class Curvature:
    """The blocks of a network of k units at any point, from a sample of the rows."""

    # Whether a metric takes little of the time of a refit of few iterations.
    is_cheap = True

    def __init__(self, rows: Rows, kernel: Kernel, linear_term: LinearTerm, seed: int = 0) -> None:
        wanted = _sample_size(*rows.shape, rows.losses.n_outputs)
        if wanted < rows.shape[0]:
            rows = rows.sample(wanted / rows.shape[0], seed)
            linear_term = linear_term.on(rows)
        self.rows, self.kernel = rows, kernel
        self.inverse_linear = linear_term.scales(rows.losses.smoothness) ** 2

    @staticmethod
    def pays(rows: Rows, n_units: int) -> bool:
        """Whether the metric takes little time, and at most twice the memory of dense data and outputs."""
        n, d = rows.shape
        n_outputs = rows.losses.n_outputs
        full, _ = rows.template.full_part
        p = full.shape[1]
        price = (_sample_size(n, d, n_outputs) + PRODUCTS_FOR_EIGENVECTORS * p) * p
        is_quick = price <= 4 * MAX_EVALUATIONS * n * n_units
        is_small = p * p + n_units * n_outputs**2 <= 2 * n * (p + n_outputs)
        return is_quick and is_small

    @cached_property
    def axes(self) -> Axes:
        """The axes of X'X with the weights of the samples."""
        _, columns = self.rows.template.full_part
        gram, values = self.rows.sum(_gram_and_squares)
        values[columns], vectors = np.linalg.eigh(gram)
        return Axes(np.maximum(values, 0.0), vectors, columns)

    def __call__(self, A: np.ndarray, E: np.ndarray, W: np.ndarray) -> Blocks:
        """Return the blocks of F for units A (k, d), directions E (k, m) and linear term W."""
        traces, directions, earned = self.rows.sum(_blocks, self.kernel, A, E, W)
        return Blocks(traces / (self.axes.values.sum() or 1.0), directions, earned)

    def metric(self, blocks: Blocks, costs: np.ndarray, directions: np.ndarray | None) -> BlockMetric:
        """Return the inverse of the blocks, where the squares of units have the ``costs`` (k,)."""
        values = self.axes.values
        ridge = np.maximum(2.0 * costs, LEAST_RIDGE * values.mean() * blocks.units.max(initial=0.0))
        units = 1.0 / (np.outer(blocks.units, values) + np.where(ridge > 0, ridge, 1.0)[:, None])
        rest = np.tile(self.inverse_linear, self.rows.losses.n_outputs)
        return BlockMetric(units, self.axes, directions, rest)


def _gram_and_squares(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return X'X of the columns that are not sparse, and the sums of the squares (d,) of all."""
    weights = np.ascontiguousarray(block.losses.sample_weights)
    full, _ = block.design.full_part
    return full.gram(weights), block.design.adjoint_squares(weights[:, None])[0]


def _sample_size(n: int, d: int, n_outputs: int) -> int:
    return min(n, max(_LEAST_ROWS, _ROWS_PER_COLUMN * max(d, n_outputs)))


class SecondDerivatives(NamedTuple):
    """Projections and features (n, k) of units, the Hessian of the losses at their outputs, and their gain.

    ``earned`` is the first-order gain of the units, as in :class:`Blocks`.
    """

    projections: np.ndarray
    features: np.ndarray
    hessian: Hessian
    earned: float


def second_order(block: Block, kernel: Kernel, A: np.ndarray, E: np.ndarray, W: np.ndarray) -> SecondDerivatives:
    """Return projections, features, Hessian and gain of a block."""
    P = block.design.project(A)
    features = kernel.features_of(block.design, A, P * P)
    of_units = layer_outputs(features, E)
    outputs = of_units + block.linear.project(W) if W.size else of_units
    losses = block.losses
    earned = -float(np.vdot(losses.value_gradient(outputs)[1], of_units))
    if losses.loss.has_hessian:
        return SecondDerivatives(P, features, losses.hessian(outputs), earned)
    # The smoothness bounds the Hessian of other losses.
    bound = Diagonal(np.outer(losses.sample_weights, np.full(outputs.shape[1], losses.smoothness)))
    return SecondDerivatives(P, features, bound, earned)


def _blocks(
    block: Block, kernel: Kernel, A: np.ndarray, E: np.ndarray, W: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the traces (k,) of the curvature in units, the curvature in directions (k, m, m), and the gain."""
    P, features, hessian, earned = second_order(block, kernel, A, E, W)
    # The slope of the kernel along x, as if it had squares of single features.
    slopes = (2.0 * kernel.of_square * P) ** 2 * hessian.along(E)
    units = block.design.squared_norms @ slopes
    directions = np.stack([hessian.total(feature**2) for feature in features.T])
    return units, directions, earned


class JointMetric(ABC):
    """An approximation of the inverse Hessian in units (k, d), directions (k, m), and the linear term after them.

    ``units`` and ``rest`` are the shapes of the units, and of the linear term.
    """

    def __init__(self, units: tuple[int, ...], directions: np.ndarray | None, rest: tuple[int, ...]) -> None:
        self.directions = directions
        self._shapes = [units, (0, 0) if directions is None else directions.shape[:2], rest]

    def solve(self, gradient: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return the product with the inverse for the variables that are not held; only directions may be."""
        of_units, of_directions, of_rest = split(gradient, self._shapes)
        units, rest = self._others(of_units, of_rest)
        if self.directions is None:
            return joined(units, rest)
        free = np.ones(gradient.size)
        free[held] = 0.0
        _, free_directions, _ = split(free, self._shapes)
        directions = _solve_free(self.directions, of_directions, free_directions)
        return joined(units, directions, rest)

    @abstractmethod
    def _others(self, of_units: np.ndarray, of_rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the products with the inverse for units and linear term."""


class BlockMetric(JointMetric):
    """The inverse of the blocks of units and of directions (k, m, m), then a diagonal ``rest`` for the linear term.

    All blocks of units share their axes; block r is the inverse of a matrix with the eigenvalues ``1 / units[r]``.
    """

    def __init__(self, units: np.ndarray, axes: Axes, directions: np.ndarray | None, rest: np.ndarray) -> None:
        super().__init__(units.shape, directions, rest.shape)
        self.units, self.axes, self.rest = units, axes, rest

    def _others(self, of_units: np.ndarray, of_rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.axes.scaled(of_units, self.units), self.rest * of_rest


def regular(blocks: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Add a multiple of the identity to every block (k, p, p), at least ``least`` (k,): they become regular."""
    i = np.arange(blocks.shape[1])
    sizes = blocks[:, i, i].mean(axis=1)
    ridge = np.maximum(least, LEAST_RIDGE * float(sizes.max(initial=0.0)))
    blocks[:, i, i] += np.where(ridge > 0, ridge, 1.0)[:, None]
    return blocks


def _solve_free(blocks: np.ndarray, right: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Solve with the blocks (k, m, m) of the free variables alone; the others, zero in ``right``, are zero."""
    free_blocks = blocks * free[:, :, None] * free[:, None, :]
    i = np.arange(right.shape[1])
    free_blocks[:, i, i] += 1.0 - free
    return np.linalg.solve(free_blocks, right[:, :, None])[:, :, 0]


class RelationSums(NamedTuple):
    """The curvature of the losses in the ``rows`` of tables, in ``dummies`` and in ``constants``.

    ``earned`` is the first-order gain of the units, as in :class:`Blocks`.
    """

    rows: np.ndarray
    dummies: np.ndarray
    constants: np.ndarray
    directions: np.ndarray
    earned: float


class RelationCurvature:
    """The curvature of a network of k units at any point, for rows of a :class:`RelationDesign`."""

    is_cheap = False

    def __init__(self, rows: Rows, kernel: Kernel, linear_term: LinearTerm) -> None:
        self.rows, self.kernel, self.linear_term = rows, kernel, linear_term
        design = rows.template.without_dummies
        assert isinstance(design, RelationDesign)
        self.ids = design.ids

    @staticmethod
    def pays(rows: Rows) -> bool:
        """Whether the rows are made of tables."""
        return isinstance(rows.template.without_dummies, RelationDesign)

    def __call__(self, A: np.ndarray, E: np.ndarray, W: np.ndarray) -> RelationSums:
        """Return the curvature of F for units A (k, d), directions E (k, m) and linear term W."""
        return RelationSums(*self.rows.sum(_table_blocks, self.kernel, A, E, W))

    def metric(self, blocks: RelationSums, costs: np.ndarray, directions: np.ndarray | None) -> RelationPreconditioner:
        """Return the inverse of the curvature, where the squares of units have the ``costs`` (k,)."""
        k = len(blocks.dummies)
        alphas = self.linear_term.alphas
        ridge = np.zeros(blocks.rows.shape[1])
        ridge[:k] = np.maximum(2.0 * costs, LEAST_RIDGE * blocks.rows[:, :k].mean(axis=0))
        ridge[:k] += ridge[:k] == 0.0
        ridge[k:] = alphas[1:2]
        of_dummies = 1.0 / (blocks.dummies + ridge[:k, None])
        of_constants = 1.0 / (blocks.constants[:, None] + alphas[:1])
        scales = self.ids.inverse_scales(blocks.rows, ridge)
        return RelationPreconditioner(self.ids, scales, of_dummies, of_constants, directions)


def _table_blocks(block: Block, kernel: Kernel, A: np.ndarray, E: np.ndarray, W: np.ndarray) -> tuple[Any, ...]:
    """Return the fields of :class:`RelationSums` for a block of samples."""
    design = block.design.without_dummies
    assert isinstance(design, RelationDesign)
    k, m = E.shape
    dummies = A.shape[1] - design.shape[1]
    P, features, hessian, earned = second_order(block, kernel, A, E, W)
    own = design.tables.project(A[:, dummies:])
    of_rows = np.empty((len(own), k + m if W.shape[1] else k))
    of_dummies = np.empty((k, dummies))
    directions = np.empty((k, m, m))
    for r in range(k):
        along = hessian.along(E[r : r + 1])[:, 0]
        p = P[:, r]
        # Along the number of a table's row, K(a, x) has the slope 2 p with squares; without squares it has the slope p
        # minus the row's own number.
        sums = design.by_table_row(np.stack([along * p * p, along * p, along], axis=1))
        if kernel.distinct:
            squared_slopes = sums[:, 0] - own[:, r] * (2.0 * sums[:, 1] - own[:, r] * sums[:, 2])
            of_rows[:, r] = np.maximum(squared_slopes, 0.0)
        else:
            of_rows[:, r] = 4.0 * sums[:, 0]
        of_dummies[r] = (2.0 * kernel.of_square) ** 2 * float(along @ (p * p))
        directions[r] = hessian.total(features[:, r] ** 2)
    if W.shape[1]:
        of_rows[:, k:] = design.by_table_row(hessian.diagonal)
    return of_rows, of_dummies, hessian.diagonal.sum(axis=0), directions, earned


class RelationPreconditioner(JointMetric):
    """The inverse of the curvature in the rows of tables, for units and linear term; diagonal apart from the tables."""

    def __init__(
        self,
        ids: RowIds,
        scales: tuple[np.ndarray, np.ndarray],
        of_dummies: np.ndarray,
        of_constants: np.ndarray,
        directions: np.ndarray | None,
    ) -> None:
        k, dummies = of_dummies.shape
        m, constants = of_constants.shape
        d = len(ids.ids) + len(ids.others)
        super().__init__((k, dummies + d), directions, (m, constants * (1 + d)))
        self.ids, self.scales, self.of_dummies, self.of_constants = ids, scales, of_dummies, of_constants

    def _others(self, of_units: np.ndarray, of_rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k, dummies = self.of_dummies.shape
        constants = self.of_constants.shape[1]
        of_linear = of_rest[:, constants:] if constants else np.zeros((0, of_units.shape[1] - dummies))
        of_tables = np.vstack([of_units[:, dummies:], of_linear])
        solved = self.ids.solve(np.ascontiguousarray(of_tables.T), *self.scales).T
        units = np.hstack([self.of_dummies * of_units[:, :dummies], solved[:k]])
        if not constants:
            return units, of_rest
        return units, np.hstack([self.of_constants * of_rest[:, :constants], solved[k:]])
