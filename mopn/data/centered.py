"""Designs in other coordinates: X - 1 c' for sparse X, and (X - 1 c') / s for dense X, without a copy of X."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mopn.data.designs import DenseDesign, Design, Entries, SparseDesign, as_slice
from mopn.solvers.tools.decorators import cached_property

if TYPE_CHECKING:
    from mopn.compiled.storage import Lines


def uncentered(H: np.ndarray, center: np.ndarray | None, dummies: int) -> np.ndarray:
    """Return the coefficients (k, q + d) of [1, x] from coefficients of [1, x - c]; the first dummy takes up c."""
    if center is None:
        return H
    H = H.copy()
    H[:, 0] -= H[:, dummies:] @ center
    return H


class CenteredDesign(Design):
    """X - 1 c' for sparse X (n, d) and a center c (d,): products with X and a correction of rank one."""

    def __init__(self, base: SparseDesign, center: np.ndarray) -> None:
        self.base, self.center = base, center
        self.shape = base.shape

    @cached_property
    def squares(self) -> CenteredDesign:
        """(X - 1 c')^2 = (X^2 - 2 X diag(c)) - 1 (-c^2)'."""
        data = self.base.X.data.astype(np.float64, copy=False)
        changed = data * (data - 2.0 * self.center[self.base.stored_columns])
        return CenteredDesign(self.base._with_data(changed), -self.center * self.center)

    def project(self, H: np.ndarray) -> np.ndarray:
        return self.base.project(H) - (H @ self.center.astype(H.dtype, copy=False))

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        return self.base.adjoint(R) - np.outer(R.sum(axis=0), self.center.astype(R.dtype, copy=False))

    def gram(self, g: np.ndarray) -> np.ndarray:
        # X' D X - s c' - c s' + <g, 1> c c' for s = X' g.
        half = np.outer(self.base.adjoint(g[:, None])[0] - 0.5 * g.sum() * self.center, self.center)
        return self.base.gram(g) - half - half.T

    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        # Entries of a feature with a center are hardly ever zero.
        return np.where(self.center != 0, weights.sum(), self.base.occurrences(weights))

    def inner_products(self, unit: float) -> np.ndarray:
        base, center = SparseDesign(self.base.X / unit), self.center / unit
        along = self.base.project(center[None])[:, 0] / unit
        return base.inner_products(1.0) - along[:, None] - along + center @ center

    @cached_property
    def squared_sizes(self) -> np.ndarray:
        return self.absolute.squared_norms

    @property
    def squared_column_sizes(self) -> np.ndarray:
        return self.absolute.adjoint_squares(np.ones((self.shape[0], 1)))[0]

    @cached_property
    def largest(self) -> float:
        """The larger bound of stored and of other entries."""
        stored = np.abs(self.base.X.data - self.center[self.base.stored_columns]).max(initial=0.0)
        return float(max(stored, np.abs(self.center).max()))

    @cached_property
    def absolute(self) -> CenteredDesign:
        """|x| + |c|, at least |x - c|."""
        return CenteredDesign(self.base.absolute, -np.abs(self.center))

    def matrix(self) -> np.ndarray:
        return self.base.matrix().toarray() - self.center

    @property
    def entries(self) -> Entries:
        return Entries(0, self.center)

    @property
    def stored_lines(self) -> Lines:
        return self.base.row_lines

    def rows(self, rows: slice | np.ndarray) -> CenteredDesign:
        return CenteredDesign(self.base.rows(rows), self.center)

    def _of_columns(self, features: np.ndarray) -> CenteredDesign:
        return CenteredDesign(SparseDesign(self.base.X[:, features]), self.center[features])

    def single(self) -> CenteredDesign:
        return CenteredDesign(self.base.single(), self.center)


class MappedDesign(DenseDesign):
    """(X - 1 c') / s for dense data X (n, d), a center c and a scale s, each of shape (d,) or a number.

    It is computed block by block in double precision, so that equal numbers in single and in double precision are the
    same data.
    """

    def __init__(self, X: np.ndarray, center: np.ndarray | float, scale: np.ndarray | float) -> None:
        super().__init__(X)
        self.center, self.scale = center, scale

    def _block(self, rows: slice) -> np.ndarray:
        mapped = self.X[rows].astype(np.float64)
        mapped -= self.center
        mapped /= self.scale
        return mapped

    @cached_property
    def largest(self) -> float:
        return max(float(np.abs(block).max()) for _, block in self._blocks(temporary=True))

    @cached_property
    def absolute(self) -> DenseDesign:
        return DenseDesign(np.abs(self.matrix()))

    def matrix(self) -> np.ndarray:
        return self._block(slice(None))

    def rows(self, rows: slice | np.ndarray) -> MappedDesign:
        return MappedDesign(self.X[rows], self.center, self.scale)

    def _of_columns(self, features: np.ndarray) -> MappedDesign:
        center, scale = (np.broadcast_to(a, self.shape[1:])[features] for a in (self.center, self.scale))
        return MappedDesign(self.X[:, as_slice(features)], center, scale)

    def stored(self) -> DenseDesign:
        """Return the mapped data in memory, in the precision of X."""
        mapped = np.empty_like(self.X)
        for rows, block in self._blocks(temporary=True):
            mapped[rows] = block
        return DenseDesign(mapped)

    def single(self) -> DenseDesign:
        return self.stored().single()
