"""The metric of joint refits of relation blocks: the curvature in the outputs of the rows of tables.

All samples of a user share a row, for which a unit, or an output of the linear term, has one number. The losses curve
nearly independently in these numbers, but not in the coefficients of ids and other columns, which are collinear:
without this metric L-BFGS takes several times as many iterations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mopn.core.kernels import Kernel
from mopn.data.relation_design import RelationDesign
from mopn.data.row_ids import RowIds
from mopn.data.rows import Block, Rows
from mopn.network.curvature import LEAST_RIDGE, JointMetric, second_order
from mopn.network.linear_term import LinearTerm


class RelationSums(NamedTuple):
    """The curvature of the losses at a network of k units, and what they earn by the outputs.

    ``rows`` (rows of all tables, k + m): in the outputs of these rows; ``dummies`` (k, q) and ``constants`` (m,): in
    what no table has.
    """

    rows: np.ndarray
    dummies: np.ndarray
    constants: np.ndarray
    directions: np.ndarray
    earned: float


class RelationCurvature:
    """The curvature of a network of k units at any point, for rows of a :class:`RelationDesign`."""

    # Of refits for which it pays.
    largest_tol = 1e-3

    def __init__(self, rows: Rows, kernel: Kernel, linear_term: LinearTerm) -> None:
        self.rows, self.kernel, self.linear_term = rows, kernel, linear_term
        design = rows.template.without_dummies
        assert isinstance(design, RelationDesign)
        self.ids = design.ids

    @staticmethod
    def pays(rows: Rows) -> bool:
        """Whether the rows are those of tables."""
        return isinstance(rows.template.without_dummies, RelationDesign)

    def __call__(self, A: np.ndarray, E: np.ndarray, W: np.ndarray) -> RelationSums:
        """Return that of F for units A (k, d), directions E (k, m) and linear term W."""
        return RelationSums(*self.rows.sum(_table_blocks, self.kernel, A, E, W))

    def metric(self, blocks: RelationSums, costs: np.ndarray, directions: np.ndarray | None) -> RelationPreconditioner:
        """Return the metric where the squares of units have the ``costs`` (k,)."""
        k, alphas = len(blocks.dummies), self.linear_term.alphas
        ridge = np.zeros(blocks.rows.shape[1])
        ridge[:k] = np.maximum(2.0 * costs, LEAST_RIDGE * blocks.rows[:, :k].mean(axis=0))
        ridge[:k] += ridge[:k] == 0.0
        ridge[k:] = alphas[1:2]
        of_dummies = 1.0 / (blocks.dummies + ridge[:k, None])
        of_constants = 1.0 / (blocks.constants[:, None] + alphas[:1])
        scales = self.ids.inverse_scales(blocks.rows, ridge)
        return RelationPreconditioner(self.ids, scales, of_dummies, of_constants, directions)


def _table_blocks(block: Block, kernel: Kernel, A: np.ndarray, E: np.ndarray, W: np.ndarray) -> tuple[Any, ...]:
    design = block.design.without_dummies
    assert isinstance(design, RelationDesign)
    (k, m), dummies = E.shape, A.shape[1] - design.shape[1]
    P, features, hessian, earned = second_order(block, kernel, A, E, W)
    own = design.tables.project(A[:, dummies:])
    of_rows = np.empty((len(own), k + m if W.shape[1] else k))
    of_dummies, directions = np.empty((k, dummies)), np.empty((k, m, m))
    for r in range(k):
        along, p = hessian.along(E[r : r + 1])[:, 0], P[:, r]
        # K(a, x) has the slope p in a row's number that is not in its own product, 2 p with squares.
        sums = design.by_table_row(np.stack([along * p * p, along * p, along], axis=1))
        if kernel.distinct:
            of_rows[:, r] = np.maximum(sums[:, 0] - own[:, r] * (2.0 * sums[:, 1] - own[:, r] * sums[:, 2]), 0.0)
        else:
            of_rows[:, r] = 4.0 * sums[:, 0]
        of_dummies[r] = (2.0 * kernel.of_square) ** 2 * float(along @ (p * p))
        directions[r] = hessian.total(features[:, r] ** 2)
    if W.shape[1]:
        of_rows[:, k:] = design.by_table_row(hessian.diagonal)
    return of_rows, of_dummies, hessian.diagonal.sum(axis=0), directions, earned


class RelationPreconditioner(JointMetric):
    """The inverse of the curvature in the rows of tables, for units and linear term; diagonal beside the tables."""

    def __init__(
        self,
        ids: RowIds,
        scales: tuple[np.ndarray, np.ndarray],
        of_dummies: np.ndarray,
        of_constants: np.ndarray,
        directions: np.ndarray | None,
    ) -> None:
        super().__init__(directions)
        self.ids, self.scales, self.of_dummies, self.of_constants = ids, scales, of_dummies, of_constants

    @property
    def _other_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        (k, dummies), (m, constants) = self.of_dummies.shape, self.of_constants.shape
        d = len(self.ids.ids) + len(self.ids.others)
        return (k, dummies + d), (m, constants * (1 + d))

    def _others(self, of_units: np.ndarray, of_rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (k, dummies), constants = self.of_dummies.shape, self.of_constants.shape[1]
        of_linear = of_rest[:, constants:] if constants else np.zeros((0, of_units.shape[1] - dummies))
        of_tables = np.vstack([of_units[:, dummies:], of_linear])
        solved = self.ids.solve(np.ascontiguousarray(of_tables.T), *self.scales).T
        units = np.hstack([self.of_dummies * of_units[:, :dummies], solved[:k]])
        return units, np.hstack([self.of_constants * of_rest[:, :constants], solved[k:]]) if constants else of_rest
