"""The design X - 1 c' for sparse X: no array of n rows and d columns is formed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mopn.data.designs import Design, Entries, SparseDesign
from mopn.solvers.tools.cached import cached_property

if TYPE_CHECKING:
    from mopn.compiled.storage import Lines

__all__ = ["CenteredDesign", "uncentered"]


def uncentered(H: np.ndarray, center: np.ndarray | None, dummies: int) -> np.ndarray:
    """Return the coefficients (k, q + d) of [1, x] from coefficients of [1, x - c]; the first dummy takes up c."""
    if center is None:
        return H
    H = H.copy()
    H[:, 0] -= H[:, dummies:] @ center
    return H


class CenteredDesign(Design):
    """X - 1 c', for sparse data X (n, d) and a center c (d,).

    Entries that are not stored are -c_j. Products are those of X and a correction of rank one, so their rounding
    errors are relative to |x| + |c|, of which ``absolute`` is the design.
    """

    def __init__(self, base: SparseDesign, center: np.ndarray) -> None:
        self.base, self.center = base, center
        self.shape = base.shape

    @cached_property
    def _squares(self) -> CenteredDesign:
        """(X - 1 c')^2 = (X^2 - 2 X diag(c)) - 1 (-c^2)'."""
        X, data = self.base.X, self.base.X.data.astype(np.float64, copy=False)
        parts = (data * (data - 2.0 * self.center[self.base.stored_columns]), X.indices, X.indptr)
        return CenteredDesign(SparseDesign(type(X)(parts, shape=X.shape)), -self.center * self.center)

    def project(self, H: np.ndarray) -> np.ndarray:
        return self.base.project(H) - (H @ self.center.astype(H.dtype, copy=False))

    def project_squares(self, H: np.ndarray) -> np.ndarray:
        return self._squares.project(H)

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        return self.base.adjoint(R) - np.outer(R.sum(axis=0), self.center.astype(R.dtype, copy=False))

    def adjoint_squares(self, R: np.ndarray) -> np.ndarray:
        return self._squares.adjoint(R)

    def gram(self, g: np.ndarray) -> np.ndarray:
        # X' D X - s c' - c s' + <g, 1> c c' for s = X' g.
        half = np.outer(self.base.adjoint(g[:, None])[0] - 0.5 * g.sum() * self.center, self.center)
        return self.base.gram(g) - half - half.T

    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        # Of a feature with a center other than zero, an entry is zero by chance only.
        return np.where(self.center != 0, weights.sum(), self.base.occurrences(weights))

    def inner_products(self, power: int, unit: float) -> np.ndarray:
        design = self if power == 1 else self._squares
        scale, center = unit**power, design.center / unit**power
        along = design.base.project(center[None])[:, 0] / scale
        return SparseDesign(design.base.X / scale).inner_products(1, 1.0) - along[:, None] - along + center @ center

    @cached_property
    def squared_sizes(self) -> np.ndarray:
        return self.absolute.squared_norms

    @property
    def squared_column_sizes(self) -> np.ndarray:
        return self.absolute.adjoint_squares(np.ones((self.shape[0], 1)))[0]

    @cached_property
    def largest(self) -> float:
        """A bound: of the moduli of stored entries, and of those that are not stored."""
        return float(
            max(
                np.abs(self.base.X.data - self.center[self.base.stored_columns]).max(initial=0.0),
                np.abs(self.center).max(),
            )
        )

    @cached_property
    def absolute(self) -> CenteredDesign:
        """|x| + |c|, which is no smaller than |x - c|."""
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
