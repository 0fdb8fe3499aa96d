"""The design (X - 1 c') / s for dense X: mapped block by block, in double precision."""

from __future__ import annotations

import numpy as np

from mopn.data.designs import DenseDesign, as_slice
from mopn.solvers.tools.cached import cached_property

__all__ = ["MappedDesign"]


class MappedDesign(DenseDesign):
    """(X - 1 c') / s for dense data X (n, d), a center c and a scale s, each of shape (d,) or a number.

    Nothing of the size of X is kept, and nothing is rounded to the precision of X, so that the same numbers in single
    and in double precision are the same data.
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

    def inner_products(self, power: int, unit: float) -> np.ndarray:
        return DenseDesign(self.matrix()).inner_products(power, unit)

    def matrix(self) -> np.ndarray:
        return self._block(slice(None))

    def rows(self, rows: slice | np.ndarray) -> MappedDesign:
        return MappedDesign(self.X[rows], self.center, self.scale)

    def _of_columns(self, features: np.ndarray) -> MappedDesign:
        center, scale = (np.broadcast_to(a, self.shape[1:])[features] for a in (self.center, self.scale))
        return MappedDesign(self.X[:, as_slice(features)], center, scale)

    def stored(self) -> DenseDesign:
        """Return the mapped data themselves, in the precision of X."""
        mapped = np.empty_like(self.X)
        for rows, block in self._blocks(temporary=True):
            mapped[rows] = block
        return DenseDesign(mapped)

    def single(self) -> DenseDesign:
        return self.stored().single()
