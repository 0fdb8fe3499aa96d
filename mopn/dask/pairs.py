"""Observed pairs of users and items that workers hold, once by blocks of users and once by blocks of items."""

from __future__ import annotations

import operator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mopn.dask.blocks import DaskBlocks
from mopn.data.interactions import checked_interactions
from mopn.data.row_blocks import RawBlock, named
from mopn.implicit.pairs import Lines, Pairs
from mopn.solvers.tools.decorators import cached_property


class DaskPairs(Pairs):
    """Pairs on workers: factors go there and come back, numbers of the pairs stay there in both orders.

    Each row of a factor or product is computed as in memory; sums over all pairs are added in another order.
    """

    def __init__(self, blocks: DaskBlocks, n_items: int, alpha: float) -> None:
        counts = blocks.replaced(partial(_checked, n_items=n_items), None)
        sizes = dict(counts.reduce(lambda block: [(block.number, block.X.shape[0])], operator.add))
        of_items = counts.reduce(lambda block: np.bincount(block.X.indices, minlength=n_items), operator.add)
        n_users = sum(sizes.values())
        self.n_ids = n_users, n_items
        self.shape = n_users, n_items
        self.number = int(of_items.sum())
        # Interactions of all users, for the model.
        self.liked: sparse.csr_array = _matrix(counts, lambda block: block.X)
        blocks = counts.replaced(partial(_with_confidences, alpha=alpha), None)
        n_blocks = len(blocks.groups)
        # Blocks of items have about as many pairs each.
        cuts = np.searchsorted(np.cumsum(of_items), np.linspace(0, self.number, n_blocks + 1)[1:-1])
        ends = np.concatenate([[0], cuts, [n_items]])
        items = blocks.exchanged(partial(_by_items, ends=ends), _joined_users, n_blocks)
        users_before = {number: sum(sizes[other] for other in sizes if other < number) for number in sizes}
        self._sides = {False: (blocks, users_before), True: (items, dict(enumerate(ends[:-1].tolist())))}

    @cached_property
    def totals(self) -> tuple[float, float, float]:
        """The least, the largest and the sum of the confidences."""
        of_blocks = self._sides[False][0].reduce(lambda block: [_lines(block).totals()], operator.add)
        least, most, total = np.transpose(of_blocks)
        return float(least.min()), float(most.max()), float(total.sum())

    def matrix(self, values: _Numbers) -> sparse.csr_array:
        """Return the sparse matrix (n_users, n_items) of numbers, in this process."""
        return _matrix(values.blocks(by_items=False), _with_numbers)

    def residuals(self, P: np.ndarray, Q: np.ndarray) -> _Numbers:
        """Return c (1 - <p, q>) of all pairs, on the workers."""
        return _Numbers(self._sides, P, Q, 1.0)

    def scaled(self, r: _Numbers, scale: float) -> _Numbers:
        """Return multiples of numbers of the pairs."""
        return _Numbers(self._sides, r.P, r.Q, scale * r.scale)

    def moments(self, r: _Numbers) -> np.ndarray:
        """Return the sums of r, of r^2 / (2 c), of the moduli of r, and of r^2 over the pairs."""
        return r.blocks(by_items=False).reduce(lambda block: _lines(block).moments(block.y), operator.add)

    def rounding(self, r: _Numbers, users: np.ndarray, items: np.ndarray, relative: float) -> float:
        """Bound the rounding errors of the losses, given the lengths of the factors' rows."""
        before = self._sides[False][1]
        task = partial(_rounding, before=before, users=users, items=items, relative=relative)
        return r.blocks(by_items=False).reduce(task, operator.add)

    def times(self, r: _Numbers, X: np.ndarray, *, by_items: bool) -> np.ndarray:
        """Return the product of the matrix of r and X (n_items, q), or of its transpose and X (n_users, q)."""
        return np.concatenate(r.blocks(by_items=by_items).reduce(partial(_times, X=X), operator.add))

    def gram(self, r: _Numbers, *, by_items: bool) -> np.ndarray:
        """Return the lower triangle of G'G for the matrix G of r by users, or by items."""
        n = self.shape[0] if by_items else self.shape[1]
        return r.blocks(by_items=by_items).reduce(lambda block: _lines(block).gram(block.y, n), operator.add)

    def improved(
        self,
        start: np.ndarray,
        other: np.ndarray,
        offsets: np.ndarray | None = None,
        *,
        by_items: bool,
    ) -> np.ndarray:
        """Return better rows of users, or of items; see :meth:`mopn.implicit.pairs.Lines.improved`."""
        blocks, before = self._sides[by_items]
        task = partial(_improved, before=before, start=start, other=other, offsets=offsets)
        return np.concatenate(blocks.reduce(task, operator.add))


class _Numbers:
    """The residuals c (1 - <p, q>) times a scale; workers compute and hold them in the orders that are asked for."""

    def __init__(self, sides: Any, P: np.ndarray, Q: np.ndarray, scale: float) -> None:
        self.sides = sides
        self.P = P
        self.Q = Q
        self.scale = scale
        self._blocks: dict[bool, DaskBlocks] = {}

    def blocks(self, *, by_items: bool) -> DaskBlocks:
        """Return the blocks of users, or of items, whose y are the numbers."""
        if by_items not in self._blocks:
            blocks, before = self.sides[by_items]
            A = self.Q if by_items else self.P
            B = self.P if by_items else self.Q
            self._blocks[by_items] = blocks.replaced(
                partial(_residuals, before=before, A=A, B=B, scale=self.scale), None
            )
        return self._blocks[by_items]


# -- tasks of workers -------------------------------------------------------------------------------------------------


def _checked(block: RawBlock, n_items: int) -> RawBlock:
    """Return a block of users with its interactions as floats, in CSR."""
    if not block.X.shape[0]:
        return block._replace(X=sparse.csr_array((0, n_items)))

    def checked(block: RawBlock) -> RawBlock:
        liked = checked_interactions(block.X, "interactions")
        if liked.shape[1] != n_items:
            raise ValueError(f"interactions has {liked.shape[1]} items, and the array has {n_items}")
        return block._replace(X=liked)

    return named(block, checked)


def _with_confidences(block: RawBlock, alpha: float) -> RawBlock:
    X = block.X
    return block._replace(X=sparse.csr_array((1.0 + alpha * X.data, X.indices, X.indptr), shape=X.shape))


def _by_items(block: RawBlock, ends: np.ndarray) -> list[sparse.csr_array]:
    """Return the parts (items of a block, users) of a block of users."""
    by_items = sparse.csr_array(block.X.T)
    return [by_items[first:end] for first, end in pairwise(ends)]


def _joined_users(parts: list[sparse.csr_array]) -> RawBlock:
    return RawBlock(-1, sparse.hstack(parts, format="csr"), None, None)


def _lines(block: RawBlock) -> Lines:
    return Lines(block.X.indptr, block.X.indices, block.X.data)


def _rows(block: RawBlock, before: dict[int, int], A: np.ndarray) -> np.ndarray:
    """Return the rows of a factor for the lines of a block."""
    first = before.get(block.number, 0)
    return A[first : first + block.X.shape[0]]


def _residuals(block: RawBlock, before: dict[int, int], A: np.ndarray, B: np.ndarray, scale: float) -> RawBlock:
    return block._replace(y=scale * _lines(block).residuals(_rows(block, before, A), B))


def _rounding(block: RawBlock, before: dict[int, int], users: np.ndarray, items: np.ndarray, relative: float) -> float:
    return _lines(block).rounding(block.y, _rows(block, before, users), items, relative)


def _times(block: RawBlock, X: np.ndarray) -> list[np.ndarray]:
    return [_lines(block).times(block.y, X)]


def _improved(
    block: RawBlock, before: dict[int, int], start: np.ndarray, other: np.ndarray, offsets: np.ndarray | None
) -> list[np.ndarray]:
    own_offsets = None if offsets is None else _rows(block, before, offsets)
    return [_lines(block).improved(_rows(block, before, start), other, own_offsets)]


def _with_numbers(block: RawBlock) -> sparse.csr_array:
    return sparse.csr_array((block.y, block.X.indices, block.X.indptr), shape=block.X.shape)


def _matrix(blocks: DaskBlocks, of_block: Any) -> sparse.csr_array:
    """Return the matrices of all blocks as one, in this process."""
    return sparse.vstack(blocks.reduce(lambda block: [of_block(block)], operator.add), format="csr")
