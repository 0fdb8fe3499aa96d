"""F(O) over all rows, by sums over blocks of them: the same functions that ``DataFit`` offers for a block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mopn.core.datafit import DataFit
from mopn.core.namespaces import any_namespace
from mopn.core.rows import Block, Rows

__all__ = ["WholeFit"]


class WholeFit(DataFit):
    """The sum of losses over all rows of some data, as a function of outputs O: an array of n rows and m columns.

    Parameters
    ----------
    rows : Rows
    """

    def __init__(self, rows: Rows) -> None:
        vars(self).update(vars(rows.fit))
        self.of_rows = rows

    def rows(self, rows: slice | np.ndarray) -> DataFit:
        return self.of_rows.fit.rows(rows)

    def sample(self, share: float) -> tuple[np.ndarray, DataFit]:
        return self.of_rows.fit.sample(share)

    def beside(self, O: np.ndarray) -> DataFit:  # noqa: E741
        return self.of_rows.fit.beside(O)

    def value(self, O: Any) -> float:  # noqa: E741
        return self.of_rows.sum(_value, along=(O,))

    def value_gradient(self, O: Any) -> tuple[float, Any]:  # noqa: E741
        return self.of_rows.sum_and_map(_value_gradient, along=(O,))

    def dual_point(self, G: Any) -> Any:
        return self.of_rows.map(_dual_point, along=(G,))

    def conjugates_and_sizes(self, G: Any, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.of_rows.sum(_conjugates_and_sizes, scales, along=(G,))

    def max_scale(self, G: Any) -> float:
        return self.of_rows.reduce(_max_scale, along=(G,), combine=min)

    def slope_size(self, G: Any) -> float:
        return self.of_rows.sum(_slope_size, along=(G,))

    def squared_length(self, D: Any) -> float:
        return self.of_rows.sum(_squared_length, along=(D,))

    @property
    def n(self) -> int:
        return self.of_rows.shape[0]

    @property
    def total_weight(self) -> float:
        return self.of_rows.target_sums[1]

    @property
    def output_unit(self) -> float:
        """The size of outputs: the loss's own unit or, if larger, the root mean square of targets that are numbers."""
        if self.loss.targets != "numbers":
            return self.loss.own_unit or 1.0
        squares, weight = self.of_rows.target_sums
        size = math.sqrt(squares / (weight * self.n_outputs))
        return max(size, self.loss.own_unit) or 1.0


@any_namespace
def _value(block: Block, O: np.ndarray) -> float:  # noqa: E741
    return block.fit.value(O)


@any_namespace
def _value_gradient(block: Block, O: np.ndarray) -> tuple[float, np.ndarray]:  # noqa: E741
    return block.fit.value_gradient(O)


def _dual_point(block: Block, G: np.ndarray) -> np.ndarray:
    return block.fit.dual_point(G)


@any_namespace
def _conjugates_and_sizes(block: Block, G: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return block.fit.conjugates_and_sizes(G, scales)


@any_namespace
def _max_scale(block: Block, G: np.ndarray) -> float:
    return block.fit.max_scale(G)


@any_namespace
def _slope_size(block: Block, G: np.ndarray) -> float:
    return block.fit.slope_size(G)


@any_namespace
def _squared_length(block: Block, D: np.ndarray) -> float:
    return block.fit.squared_length(D)
