"""A column of numbers that are mostly zero: its nonzero entries and their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["SparseColumn"]


@dataclass(frozen=True, eq=False)
class SparseColumn:
    """A column (n,) of float64, of which some rows are stored and all others are zero.

    NumPy reads it as a dense array.

    Attributes
    ----------
    rows : ndarray of int, shape (q,)
        Ascending.
    values : ndarray of shape (q,)
        NaN where numbers are missing.
    n : int
    """

    rows: np.ndarray
    values: np.ndarray
    n: int

    dtype = np.dtype(np.float64)

    @classmethod
    def full(cls, x: Any) -> SparseColumn:
        """Return a column whose rows are all stored."""
        values = np.asarray(x)
        return cls(np.arange(len(values)), values, len(values))

    def __len__(self) -> int:
        return self.n

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        dense = np.zeros(self.n)
        dense[self.rows] = self.values
        return dense.astype(self.dtype if dtype is None else dtype, copy=False)

    def __getitem__(self, rows: np.ndarray) -> SparseColumn:
        """Return some rows."""
        dense = np.asarray(self)[rows]
        stored = np.flatnonzero(dense)
        return SparseColumn(stored, dense[stored], len(dense))

    def weighted(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored numbers and their weights, given those of all rows, and one zero for all other rows."""
        others = np.ones(self.n, bool)
        others[self.rows] = False
        if not others.any():
            return self.values, weights[self.rows]
        return np.append(self.values, 0.0), np.append(weights[self.rows], weights[others].sum())
