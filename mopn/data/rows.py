"""The one primitive that reads data: sums over blocks of rows, and arrays with a row for every sample.

Objectives, gradients, the matrices Gamma and their products, Hessian products and dual values are sums over rows. They
all go through ``Rows.sum``: a function is called for every block, and its terms are added up in float64, in a tree that
the numbers of the blocks determine. So the result is the same to the last bit, whichever thread computes which term.
``SumOfLosses`` has the sums of the losses of all rows.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mopn.data.designs import (
    AugmentedDesign,
    DenseDesign,
    Design,
    Entries,
    crossed,
    ridge_scales,
    rows_at_once,
)
from mopn.data.losses_of_rows import Losses, OutputLoss, inner
from mopn.losses.losses import dual_of
from mopn.solvers.tools.blas_threads import in_threads, limited_threads, n_workers, single_threaded
from mopn.solvers.tools.decorators import cached_property

if TYPE_CHECKING:
    from mopn.compiled.storage import Lines

Function = Callable[..., Any]

# Units of a network for which blocks are sized: larger blocks leave the cache, and in smaller ones threads wait for
# the interpreter between two operations of NumPy.
TYPICAL_COLUMNS = 16
# Least rows of a block per feature: sums of shape (k, d) are then small in comparison.
_ROWS_PER_FEATURE = 4
# Branches of the tree of blocks for each thread: several, so that threads end at about the same time.
_BRANCHES_A_THREAD = 4
# Least rows of a block of sparse data: the sums of each block are (d, k).
_LEAST_SPARSE_ROWS = 8192
# Largest number of blocks of sparse data.
_MOST_SPARSE_BLOCKS = 8


class Block:
    """The data X of a slice of the rows as a design, with their losses."""

    def __init__(self, design: Design, losses: Losses, rows: slice) -> None:
        self.design = design
        self.losses = losses
        self.rows = rows
        # The computed rows of each RowArray, by its id.
        self.computed: dict[int, Any] = {}

    @cached_property
    def linear(self) -> Design:
        """[1, X], the design of a linear term."""
        return AugmentedDesign(self.design.without_dummies, 1)

    @property
    def lines(self) -> Lines:
        return self.design.stored_lines


class PassCounter:
    """The number of passes over the rows, common to all views of them."""

    count = 0


class RowArray(NDArrayOperatorsMixin):
    """An array of n rows that is never formed: an importable function computes the rows of a block.

    Elementwise functions of NumPy and products with matrices from the right give such arrays again.
    """

    def __init__(
        self,
        function: Function,
        along: Sequence[Any] = (),
        arguments: Sequence[Any] = (),
        shape: tuple[int, int] | None = None,
    ) -> None:
        self.function = function
        self.along = tuple(along)
        self.arguments = tuple(arguments)
        self.shape = shape

    def of(self, block: Block) -> np.ndarray:
        """Return the rows of a block, computed once."""
        if id(self) not in block.computed:
            block.computed[id(self)] = on_block(self.function, self.along, self.arguments, block)
        return block.computed[id(self)]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # In place, z += a binds z to the new array.
        if method != "__call__" or options.keys() - {"out"}:
            return NotImplemented
        if not all(isinstance(array, RowArray) for array in options.get("out", ())):
            return NotImplemented
        along = [array for array in inputs if isinstance(array, RowArray)]
        others = [None if isinstance(array, RowArray) else array for array in inputs]
        shape = along[0].shape if ufunc is not np.matmul else None
        return RowArray(_elementwise, along, (ufunc, others), shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("these rows are computed block by block, and never held as one array")


def _elementwise(block: Block, *arguments: Any) -> np.ndarray:
    """Call a ufunc, with the rows in place of the inputs that are None."""
    *along, ufunc, others = arguments
    rows = iter(along)
    return ufunc(*(next(rows) if other is None else other for other in others))


def rows_of(array: Any, block: Block) -> Any:
    return array.of(block) if isinstance(array, RowArray) else array[block.rows]


class KeptBlocks(dict[int, Any]):
    """Objects by the first rows of their blocks; a slice of rows has the object of its block."""

    def __getitem__(self, rows: int | slice) -> Any:
        return super().__getitem__(rows.start if isinstance(rows, slice) else rows)


class Rows(ABC):
    """The data of a problem, X and the losses of its samples, as blocks for ``function(block, *along, *arguments)``."""

    shape: tuple[int, int]
    """n, and d with the dummies."""
    n_features: int
    entries: Entries | None
    """The parts of sparse data that are not stored; None for dense data."""
    losses: OutputLoss
    """The loss of all rows; in memory ``Losses``."""
    design: Design | None = None
    """X in memory."""
    template: Design
    """X in memory, or else a row of zeros with the same features."""
    _passes: PassCounter

    @abstractmethod
    def sum(
        self, function: Function, *arguments: Any, along: Sequence[Any] = (), combine: Function = operator.add
    ) -> Any:
        """Return the sum of the terms of all blocks, numbers, arrays or tuples of them, in a fixed tree.

        They may be combined by another function of two terms than the sum.
        """

    @property
    def passes(self) -> int:
        return self._passes.count

    def inner(self, A: Any, B: Any) -> float:
        """Return <A, B> of two arrays of n rows."""
        return self.sum(_inner, along=(A, B))

    def crossed(self, A: Any, B: Any) -> np.ndarray:
        """Return A' B of two arrays of n rows."""
        return self.sum(_crossed, along=(A, B))

    @abstractmethod
    def map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> Any:
        """Return the array of n rows, with contiguous columns, from a function that returns a block's rows."""

    @abstractmethod
    def keep(self, function: Function, along: Sequence[Any] = ()) -> Any:
        """Return a function's object of any kind for each block, to pass along."""

    @abstractmethod
    def sum_and_map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> tuple[Any, Any]:
        """Return the summed terms and the stacked rows of a function that returns (term, rows) for a block."""

    @cached_property
    def largest(self) -> float:
        """The largest modulus of an entry of X."""
        return self.sum(_largest, combine=max)

    @cached_property
    def largest_square(self) -> float:
        return self.sum(_largest_square, combine=max)

    @cached_property
    def work(self) -> tuple[float, float]:
        """The cost of a product with a vector and of a Gram matrix, in multiplications of matrix products."""
        if self.design is not None:
            return self.design.work
        if self.entries is None:
            n, d = self.shape
            return float(n * d), float(n * d * d)
        return self.sum(_work)

    @cached_property
    def scales(self) -> np.ndarray:
        """Steps (d,) in coefficients of the features that matter equally."""
        return ridge_scales(self.sum(_occurrences), self.largest)

    @cached_property
    def squares(self) -> np.ndarray:
        """The weighted sum (d,) of the squares of each feature."""
        return self.sum(_squares)

    @cached_property
    def target_sums(self) -> tuple[float, float, float]:
        """Weighted sum of the squares of targets that are numbers, and the sums of the weights and their squares."""
        return self.sum(_target_sums)

    @property
    def effective_size(self) -> float:
        """Number of rows of equal weights that would estimate sums as well (Kish, Survey Sampling, 1965)."""
        _, weight, squares = self.target_sums
        return weight**2 / squares

    @abstractmethod
    def in_coordinates(self, coordinates: Any, dummies: int) -> Rows:
        """Return the rows in ``Coordinates``, or in the user's own for None, with dummies in front."""

    @abstractmethod
    def plus(self, outputs: Any) -> Rows:
        """Return the same rows with fixed outputs (n, m), which are added to the model's."""

    @abstractmethod
    def single(self) -> Rows:
        """Return the data in float32, whose products with float32 arrays are computed in float32."""

    @abstractmethod
    def sample(self, fraction: float, seed: int) -> Rows:
        """Return a random sample of the rows, with weights that estimate the losses of all."""


class ArrayRows(Rows):
    """Rows of arrays in memory. Threads of the call compute the terms of the blocks."""

    def __init__(
        self, design: Design, losses: Losses, size: int | None = None, passes: PassCounter | None = None
    ) -> None:
        self.design: Design = design
        self.template = design
        self._passes = passes or PassCounter()
        self.losses: Losses = losses
        self.shape = design.shape
        self.n_features = design.without_dummies.shape[1]
        self.entries = design.entries
        self.blocks = cut(design, losses, size or block_size(design, losses.n_outputs))

    def sum(
        self, function: Function, *arguments: Any, along: Sequence[Any] = (), combine: Function = operator.add
    ) -> Any:
        self._passes.count += 1
        if len(self.blocks) > 1:
            return tree_of_blocks(partial(on_block, function, along, arguments), self.blocks, combine)
        given = arguments_for(self.blocks[0], along, arguments)
        with limited_threads():
            return function(*given)

    def map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> np.ndarray:
        if len(self.blocks) == 1:
            return np.asfortranarray(self.sum(function, *arguments, along=along))
        return self._joined(self.sum(partial(_in_list, function), *arguments, along=along))

    def keep(self, function: Function, along: Sequence[Any] = ()) -> KeptBlocks:
        starts = (block.rows.start for block in self.blocks)
        return KeptBlocks(zip(starts, self.sum(partial(_in_list, function), along=along), strict=True))

    def sum_and_map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> tuple[Any, np.ndarray]:
        if len(self.blocks) == 1:
            term, part = self.sum(function, *arguments, along=along)
            return term, np.asfortranarray(part)
        terms, parts = zip(*self.sum(partial(_in_list, function), *arguments, along=along), strict=True)
        return tree_sum(terms), self._joined(parts)

    def in_coordinates(self, coordinates: Any, dummies: int) -> ArrayRows:
        design = self.design if coordinates is None else coordinates.design(self.design)
        if dummies:
            design = AugmentedDesign(design, dummies)
        return ArrayRows(design, self.losses, passes=self._passes)

    def with_features(self, X: np.ndarray) -> ArrayRows:
        """Return rows of other features (n, d), after the same dummies."""
        design: Design = DenseDesign(X)
        dummies = self.shape[1] - self.n_features
        if dummies:
            design = AugmentedDesign(design, dummies)
        return ArrayRows(design, self.losses, passes=self._passes)

    def single(self) -> ArrayRows:
        return self._in_same_blocks(self.design.single(), self.losses)

    def sample(self, fraction: float, seed: int) -> ArrayRows:
        rows, losses = self.losses.sample(fraction, seed)
        return ArrayRows(self.design.rows(rows), losses)

    def plus(self, outputs: np.ndarray) -> ArrayRows:
        return self._in_same_blocks(self.design, self.losses.plus(outputs))

    def _in_same_blocks(self, design: Design, losses: Losses) -> ArrayRows:
        """Return other data in the same blocks."""
        first = self.blocks[0].rows
        return ArrayRows(design, losses, first.stop - first.start, self._passes)

    def _joined(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Return the rows of several blocks as one array with contiguous columns."""
        array = np.empty(0)
        for block, part in zip(self.blocks, parts, strict=True):
            if block.rows.start == 0:
                array = np.empty((*part.shape[1:], self.shape[0]), part.dtype).T
            array[block.rows] = part
        return array


def block_size(design: Design, n_outputs: int) -> int:
    """Return the number of rows of a block, for networks of any number of units."""
    n, d = design.shape
    if design.entries is not None:
        return max(_LEAST_SPARSE_ROWS, _ROWS_PER_FEATURE * d, -(-n // _MOST_SPARSE_BLOCKS))
    return max(rows_at_once(d + n_outputs + TYPICAL_COLUMNS), _ROWS_PER_FEATURE * d)


def tree_sum(terms: Iterable[Any], combine: Function = operator.add) -> Any:
    """Combine terms in a binary tree by their order, with few of them in memory; the last ones from the right."""
    partial: list[tuple[int, Any]] = []
    for term in terms:
        size = 1
        while partial and partial[-1][0] == size:
            left = partial.pop()[1]
            term = combined(left, term, combine)
            size = 2 * size
        partial.append((size, term))
    total = partial.pop()[1]
    while partial:
        total = combined(partial.pop()[1], total, combine)
    return total


def _inner(block: Block, A: Any, B: Any) -> float:
    return inner(A, B)


def _crossed(block: Block, A: Any, B: Any) -> Any:
    return crossed(A, B)


def _largest(block: Block) -> float:
    return block.design.largest


def _largest_square(block: Block) -> float:
    return float(block.design.squared_norms.max())


def _work(block: Block) -> tuple[float, float]:
    return block.design.work


def _occurrences(block: Block) -> np.ndarray:
    return block.design.occurrences(block.losses.sample_weights)


def _squares(block: Block) -> np.ndarray:
    return block.design.adjoint_squares(block.losses.sample_weights[:, None])[0, :]


def _target_sums(block: Block) -> tuple[float, float, float]:
    losses = block.losses
    squares = 0.0
    if losses.loss.targets == "numbers":
        squares = losses.squared_length(losses.y if losses.offset is None else losses.y - losses.offset)
    return squares, losses.total_weight, float(np.sum(losses.sample_weights**2))


def combined(a: Any, b: Any, combine: Function) -> Any:
    """Return two terms as one; tuples are combined entry by entry."""
    return tuple(map(combine, a, b)) if isinstance(a, tuple) else combine(a, b)


def tree_of_blocks(term: Callable[[Block], Any], blocks: Sequence[Block], combine: Function) -> Any:
    """Return the ``tree_sum`` of the terms of blocks; threads compute whole branches."""
    # A branch of the tree has a power of two of blocks. Few branches keep threads from waiting for the interpreter.
    size = 1
    while 2 * size * _BRANCHES_A_THREAD * n_workers() <= len(blocks):
        size *= 2
    branches = [blocks[first : first + size] for first in range(0, len(blocks), size)]
    with limited_threads(), single_threaded():
        sums = in_threads(lambda branch: tree_sum(map(term, branch), combine), branches)
        return tree_sum(sums, combine)


def on_block(function: Function, along: Sequence[Any], arguments: Sequence[Any], block: Block) -> Any:
    """Call a function with a block, its rows of the arrays ``along``, and other arguments."""
    given = arguments_for(block, along, arguments)
    return function(*given)


def arguments_for(block: Block, along: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    rows = [rows_of(array, block) for array in along]
    return [block, *rows, *arguments]


def _in_list(function: Function, *arguments: Any) -> list[Any]:
    """Return a term so that the sum is the list of the terms of all blocks, in their order."""
    return [function(*arguments)]


def cut(design: Design, losses: Losses, size: int) -> list[Block]:
    """Return the data in blocks of ``size`` rows."""
    n = design.shape[0]
    if size >= n:
        return [Block(design, losses, slice(0, n))]
    return [Block(block, losses.rows(rows), rows) for rows, block in design.blocks(size)]


class SumOfLosses:
    """The sum of the losses of all rows, as a function of outputs O (n, m); bounds trust built-in conjugates alone."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        losses = rows.losses
        self.loss = losses.loss
        self.n_outputs = losses.n_outputs
        self.classes = losses.classes
        self.offset = losses.offset
        self.smoothness = losses.smoothness
        self.is_built_in = dual_of(losses.loss) is not None

    @property
    def in_memory(self) -> Losses:
        """The losses of all rows, with targets, weights and offset; ``TypeError`` for data in blocks."""
        if not isinstance(self.rows.losses, Losses):
            raise TypeError("data in blocks is not held in memory; sums over its rows read it")
        return self.rows.losses

    @property
    def n(self) -> int:
        return self.rows.shape[0]

    @property
    def total_weight(self) -> float:
        return self.rows.target_sums[1]

    @cached_property
    def is_shift_invariant(self) -> bool:
        """Whether the losses stay the same where all outputs of a row change by the same number, as a hessian says."""
        return self.loss.has_hessian and self.rows.sum(_is_shift_invariant, combine=min)

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
        return self.rows.sum(partial(_of_losses, Losses.value), along=(O,))

    def value_gradient(self, O: Any) -> tuple[float, Any]:  # noqa: E741
        return self.rows.sum_and_map(partial(_of_losses, Losses.value_gradient), along=(O,))

    def conjugates_and_sizes(self, G: Any, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.rows.sum(partial(_of_losses, Losses.conjugates_and_sizes), scales, along=(G,))

    def conjugate_bounds_and_sizes(self, G: Any, O: Any, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
        return self.rows.sum(partial(_of_losses, Losses.conjugate_bounds_and_sizes), scales, along=(G, O))

    def slope_size(self, G: Any) -> float:
        return self.rows.sum(partial(_of_losses, Losses.slope_size), along=(G,))

    def squared_length(self, D: Any) -> float:
        return self.rows.sum(partial(_of_losses, Losses.squared_length), along=(D,))

    def max_scale(self, G: Any) -> float:
        """Return the largest s with F* finite at s * G, for a gradient G (n, m); 1 for a user's loss."""
        if not self.is_built_in:
            return 1.0
        return self.rows.sum(partial(_of_losses, Losses.max_scale), along=(G,), combine=min)


def _is_shift_invariant(block: Block) -> bool:
    losses = block.losses
    return losses.hessian(np.zeros((losses.n, losses.n_outputs))).shift_invariant


def _of_losses(method: Function, block: Block, *arguments: Any) -> Any:
    """Call a method of the losses of a block."""
    given = [block.losses, *arguments]
    return method(*given)
