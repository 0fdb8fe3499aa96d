"""Arrays with a row for every sample that are never formed as a whole: sums compute the rows of the block they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

__all__ = ["RowArray", "rows_of"]


class RowArray(NDArrayOperatorsMixin):
    """An array of n rows as a function of the blocks of the data.

    Elementwise functions of NumPy and products with matrices from the right give such arrays again. Sums over the
    blocks go through ``Rows.sum``. The function takes a block, the rows in it of the arrays ``along``, then the
    ``arguments``; it must be importable, as other processes call it. The shape is given where somebody asks for it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        along: Sequence[Any] = (),
        arguments: Sequence[Any] = (),
        shape: tuple[int, int] | None = None,
    ) -> None:
        self.function, self.along, self.arguments = function, tuple(along), tuple(arguments)
        self.shape = shape

    def of(self, block: Any) -> np.ndarray:
        """Return the rows of a block; they are computed once for all that need them."""
        if id(self) not in block.computed:
            along = (rows_of(array, block) for array in self.along)
            block.computed[id(self)] = self.function(block, *along, *self.arguments)
        return block.computed[id(self)]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # In place, z += a binds z to the new array.
        if method != "__call__" or options.keys() - {"out"} or not _all_rows(options.get("out", ())):
            return NotImplemented
        along = [array for array in inputs if isinstance(array, RowArray)]
        others = [None if isinstance(array, RowArray) else array for array in inputs]
        return RowArray(_elementwise, along, (ufunc, others), along[0].shape if ufunc is not np.matmul else None)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("these rows are computed block by block, and never held as one array")


def _all_rows(arrays: Sequence[Any]) -> bool:
    return all(isinstance(array, RowArray) for array in arrays)


def rows_of(array: Any, block: Any) -> Any:
    """Return the rows of an array in a block."""
    return array.of(block) if isinstance(array, RowArray) else array[block.rows]


def _elementwise(block: Any, *arguments: Any) -> np.ndarray:
    """Call a ufunc; the places of its inputs that are not None hold what is the same for all blocks."""
    *along, ufunc, others = arguments
    rows = iter(along)
    return ufunc(*(next(rows) if other is None else other for other in others))
