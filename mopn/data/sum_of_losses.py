"""F(O) over all rows of some data, and its conjugate, by sums over blocks of the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mopn.data.losses_of_rows import Losses
from mopn.data.rows import Block, Rows
from mopn.losses.losses import dual_of


class SumOfLosses:
    """The sum of the losses of all rows, as a function of outputs O (n, m); bounds trust built-in conjugates alone."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        of = rows.losses
        self.loss, self.n_outputs, self.classes, self.offset = of.loss, of.n_outputs, of.classes, of.offset
        self.smoothness, self.is_built_in = of.smoothness, dual_of(of.loss) is not None

    @property
    def in_memory(self) -> Losses:
        """The losses of all rows, with targets, weights and offset; ``TypeError`` for data in blocks."""
        if not isinstance(self.rows.losses, Losses):
            raise TypeError("data in blocks is not held in memory; sums over its rows read it")
        return self.rows.losses

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.rows.shape[0]

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return self.rows.target_sums[1]

    @property
    def output_unit(self) -> float:
        """The size of outputs: the loss's scale or, if larger, the root mean square of targets that are numbers."""
        size = 0.0
        if self.loss.targets == "numbers":
            squares, weight, _ = self.rows.target_sums
            size = math.sqrt(squares / (weight * self.n_outputs))
        return max(size, self.loss.output_scale) or 1.0

    # Sums of the methods of ``Losses``.

    def value(self, O: Any) -> float:  # noqa: E741
        return self.rows.sum(_call, "value", along=(O,))

    def value_gradient(self, O: Any) -> tuple[float, Any]:  # noqa: E741
        return self.rows.sum_and_map(_call, "value_gradient", along=(O,))

    def conjugates_and_sizes(self, G: Any, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.rows.sum(_call, scales, "conjugates_and_sizes", along=(G,))

    def conjugate_bounds_and_sizes(self, G: Any, O: Any, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        return self.rows.sum(_call, scales, "conjugate_bounds_and_sizes", along=(G, O))

    def slope_size(self, G: Any) -> float:
        return self.rows.sum(_call, "slope_size", along=(G,))

    def squared_length(self, D: Any) -> float:
        return self.rows.sum(_call, "squared_length", along=(D,))

    def max_scale(self, G: Any) -> float:
        """Return the largest s with F* finite at s * G, for a gradient G (n, m); 1 for a user's loss."""
        return self.rows.reduce(_call, "max_scale", along=(G,), combine=min) if self.is_built_in else 1.0


def _call(block: Block, *arguments: Any) -> Any:
    """Call a method of the losses of a block, whose name comes last, after its arguments."""
    *given, method = arguments
    return getattr(block.losses, method)(*given)
