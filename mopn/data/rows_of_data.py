"""The rows of the data that a user gives: arrays in memory, or blocks that are read in every pass."""

from __future__ import annotations

from typing import Any

from mopn.data.chunked_rows import Chunks, LocalChunks, chunked_rows
from mopn.data.input_size import check_input
from mopn.data.losses_of_rows import Losses
from mopn.data.relation_blocks import design_of
from mopn.data.row_blocks import RowBlocks
from mopn.data.rows import ArrayRows, Rows
from mopn.losses.losses import Loss

__all__ = ["rows_of_data"]


def rows_of_data(X: Any, y: Any, loss: str | Loss, sample_weight: Any, offset: Any, target_weight: Any = None) -> Rows:
    """Validate the data of a problem, and return their rows."""
    if isinstance(X, Chunks):
        return chunked_rows(X, loss, offset, target_weight)
    if isinstance(X, RowBlocks):
        return chunked_rows(LocalChunks(X.with_targets(y, sample_weight)), loss, offset, target_weight)
    if y is None:
        raise TypeError("y is missing; only blocks of rows (mopn.RowBlocks) can bring their targets")
    design = design_of(X)
    check_input(design.largest, "X")
    losses = Losses.of_data(loss, y, design.shape[0], sample_weight, offset, target_weight)
    if losses.weights is not None:
        check_input(losses.weights, "sample_weight")
    return ArrayRows(design, losses)
