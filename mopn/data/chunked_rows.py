"""Rows in chunks that are read in every pass: from files or callables here, and on the workers of a cluster.

A chunk is what is read at once: a block of the user's :class:`mopn.RowBlocks`, which messages call it, or rows of an
array of Dask's. It is computed in blocks of fewer rows, as data in memory are.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.checksums import checksum
from mopn.data.designs import AugmentedDesign, DenseDesign, Design, SparseDesign, stored_design
from mopn.data.feature_scaling import Coordinates
from mopn.data.loss_checks import check_own_loss
from mopn.data.losses_of_rows import Losses, OutputLoss
from mopn.data.row_arrays import RowArray, rows_of
from mopn.data.row_blocks import RawBlock, named
from mopn.data.rows import (
    ArrayRows,
    Block,
    Function,
    PassCounter,
    Rows,
    block_size,
    combined,
    cut,
    tree_of_blocks,
    tree_sum,
)
from mopn.data.validation import as_array, as_numbers, check_weights, distinct_labels, label_codes
from mopn.losses.losses import Loss, get_loss
from mopn.solvers.tools.blas_threads import single_threaded

__all__ = ["IN_MEMORY", "ChunkedRows", "Chunks", "LocalChunks", "chunked_rows", "stored_numbers"]

# Targets of the first chunk on which losses of the user's own are checked.
_CHECKED = 10
# Stored numbers of X (128 MiB) up to which rows of chunks are copied into the memory of this process, where passes need
# neither messages nor files.
IN_MEMORY = 1 << 24


class Chunks(ABC):
    """What computes a task for every chunk, and adds the terms up in a tree by the numbers of the chunks.

    Chunks without rows are left out, and those that are no longer what they were in the first pass are noticed.

    Attributes
    ----------
    classes : ndarray or None
        Sorted labels that y may have; None for those that it has.
    """

    classes: np.ndarray | None = None
    # The checksum of each chunk that has rows, by its number, once there was a pass.
    _checksums: dict[int, int] | None = None

    def reduce(self, task: Callable[[RawBlock], Any], combine: Function) -> Any:
        """Return the combined terms; the task and what it returns can be sent to other processes.

        Raises ``OSError`` if a chunk cannot be had, or has changed since the first pass; ``ValueError`` if none has a
        row.
        """
        try:
            total = self._reduce(partial(_term, task), partial(_added, combine))
        except (ValueError, TypeError):
            if self._checksums is not None:
                self._check_unchanged(self._reduce(partial(_term, _nothing), partial(_added, _nothing)).checksums)
            raise
        self._check_unchanged(total.checksums)
        return total.value

    def sample(self, fraction: float, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return X, the targets and the weights of a random sample of the rows of positive weight, in memory."""
        return self.reduce(partial(_drawn, fraction=fraction, seed=seed), _stacked)

    @abstractmethod
    def replaced(self, task: Callable[[RawBlock], RawBlock], classes: np.ndarray | None) -> Chunks:
        """Return what a task makes of each chunk, with the labels that y may have then."""

    @abstractmethod
    def _reduce(self, task: Callable[[RawBlock], Term], combine: Function) -> Term:
        """Return the combined terms of all chunks."""

    def _check_unchanged(self, found: dict[int, int]) -> None:
        if not found:
            raise ValueError("X is empty: its blocks have no rows")
        self._checksums = expected = self._checksums or found
        changed = sorted(number for number in expected.keys() | found if expected.get(number) != found.get(number))
        if changed:
            raise OSError(
                f"block {changed[0]} is not what it was in the first pass; a block must be the same whenever it is read"
            )


@dataclass(frozen=True)
class Term:
    """What a task returns for some chunks, and the checksums of those that have rows."""

    value: Any
    checksums: dict[int, int]


def _term(task: Callable[[RawBlock], Any], chunk: RawBlock) -> Term:
    if not np.shape(chunk.X)[0]:
        return Term(None, {})
    return Term(task(chunk), {chunk.number: checksum(chunk.X, chunk.y, chunk.sample_weight)})


def _added(combine: Function, a: Term, b: Term) -> Term:
    if not (a.checksums and b.checksums):
        return a if a.checksums else b
    return Term(combined(a.value, b.value, combine), a.checksums | b.checksums)


def _nothing(*_: Any) -> None:
    pass


class LocalChunks(Chunks):
    """Chunks that this process reads, one after the other; ``blocks`` yields the same in every pass."""

    def __init__(self, blocks: Iterable[RawBlock], classes: np.ndarray | None = None) -> None:
        self.blocks, self.classes = blocks, classes

    def replaced(self, task: Callable[[RawBlock], RawBlock], classes: np.ndarray | None) -> LocalChunks:
        return LocalChunks(_Replaced(self.blocks, task), classes)

    def _reduce(self, task: Callable[[RawBlock], Term], combine: Function) -> Term:
        return tree_sum(map(task, self.blocks), combine)


@dataclass(frozen=True)
class _Replaced:
    """What a task makes of blocks, anew in every pass."""

    blocks: Iterable[RawBlock]
    task: Callable[[RawBlock], RawBlock]

    def __iter__(self) -> Iterator[RawBlock]:
        return map(self.task, self.blocks)


@dataclass(frozen=True)
class ChunkView:
    """How a chunk becomes blocks: targets, coordinates and dummies, what is added to the outputs, and the precision."""

    losses: OutputLoss
    coordinates: Coordinates | None = None
    dummies: int = 0
    beside: Any = None
    single: bool = False

    def blocks(self, chunk: RawBlock) -> list[Block]:
        """Return the blocks of a chunk. Their rows are counted from its first one."""
        base = _design(chunk.X)
        design = self.design(base)
        losses = self.losses.with_targets(chunk.y, _weights(chunk))
        blocks = cut(design.single() if self.single else design, losses, block_size(design, losses.n_outputs))
        if self.beside is not None:
            for block in blocks:
                block.losses = block.losses.beside(rows_of(self.beside, block))
        return blocks

    def design(self, base: DenseDesign | SparseDesign) -> Design:
        """Return X of a chunk in the coordinates of the problem, after its dummies."""
        design = base if self.coordinates is None else self.coordinates.view(base)
        return AugmentedDesign(design, self.dummies) if self.dummies else design


class ChunkedRows(Rows):
    """Rows in chunks. Arrays of n rows are functions of the blocks, which every pass that needs them computes anew."""

    def __init__(self, chunks: Chunks, view: ChunkView, summary: Summary, passes: PassCounter) -> None:
        self.chunks, self.view, self.summary, self._passes = chunks, view, summary, passes
        self.losses, self.n_features = view.losses, summary.d
        self.shape = summary.n, summary.d + view.dummies
        empty = sparse.csr_array((1, summary.d)) if summary.sparse else np.zeros((1, summary.d))
        self.template = view.design(stored_design(empty))
        self.entries = self.template.entries

    @property
    def passes(self) -> int:
        return self._passes.count

    def reduce(
        self, function: Function, *arguments: Any, along: Sequence[Any] = (), combine: Function = operator.add
    ) -> Any:
        self._passes.count += 1
        return self.chunks.reduce(_Task(self.view, function, arguments, tuple(along), combine), combine)

    def map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> RowArray:
        return RowArray(function, along, arguments)

    def sum_and_map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> tuple[Any, RowArray]:
        total = self.reduce(_first, function, arguments, along=along)
        return total, RowArray(_second, along, (function, arguments), (self.shape[0], self.losses.n_outputs))

    def keep(self, function: Function, along: Sequence[Any] = ()) -> RowArray:
        return RowArray(function, along)

    def in_coordinates(self, coordinates: Coordinates | None, dummies: int) -> ChunkedRows:
        return self._with(coordinates=coordinates, dummies=dummies)

    def single(self) -> ChunkedRows:
        return self._with(single=True)

    def beside(self, outputs: Any) -> ChunkedRows:
        return self._with(beside=outputs)

    def sample(self, fraction: float, seed: int) -> ArrayRows:
        """Return a random sample of the rows, in memory."""
        self._passes.count += 1
        X, y, weights = self.chunks.sample(fraction, seed)
        losses = self.view.losses.with_targets(y, weights * (self.summary.weight / weights.sum()))
        return ArrayRows(self.view.design(stored_design(X)), losses)

    def _with(self, **changes: Any) -> ChunkedRows:
        return ChunkedRows(self.chunks, replace(self.view, **changes), self.summary, self._passes)


@dataclass(frozen=True)
class _Task:
    """The sum over the blocks of a chunk."""

    view: ChunkView
    function: Function
    arguments: tuple[Any, ...]
    along: tuple[Any, ...]
    combine: Function

    def __call__(self, chunk: RawBlock) -> Any:
        # The same bits, whether a chunk is one block or several, and whoever computes it.
        with single_threaded():
            return tree_of_blocks(self._term, named(chunk, self.view.blocks), self.combine)

    def _term(self, block: Block) -> Any:
        along = (rows_of(array, block) for array in self.along)
        return self.function(block, *along, *self.arguments)


def chunked_rows(chunks: Chunks, loss: str | Loss, offset: Any, target_weight: Any = None) -> ChunkedRows:
    """Look at all chunks once, and return their rows.

    Raises ``ValueError`` or ``TypeError`` for data that a problem in memory refuses, too, and for chunks that do not
    fit each other; the message names the chunk, as a block, and the row in it.
    """
    loss, passes = get_loss(loss), PassCounter()
    if loss.targets != "labels" and chunks.classes is not None:
        raise ValueError(f"classes are for multi-class losses; loss={loss.name!r} has none")
    passes.count += 1
    summary = chunks.reduce(partial(_summary, loss=loss, classes=chunks.classes), _merged)
    classes, m = summary.classes, summary.n_outputs
    if loss.targets == "labels":
        if len(classes) < 2:
            raise ValueError(f"y has one class only ({classes[0]}); classification needs at least 2")
        m = len(classes)
    if not summary.weight > 0:
        raise ValueError("sample_weight is zero for all samples; at least one must be positive")
    losses = OutputLoss.of_blocks(loss, m, classes, offset)
    first_y = losses.with_targets(summary.first_y, None).y
    check_own_loss(loss, first_y)
    return ChunkedRows(chunks, ChunkView(losses.by_target(target_weight, first_y)), summary, passes)


@dataclass(frozen=True)
class Summary:
    """What a first look at chunks finds, and at the first of them."""

    number: int
    n: int
    d: int
    sparse: bool
    weight: float
    n_outputs: int
    classes: Any
    first_y: np.ndarray


def _summary(chunk: RawBlock, loss: Loss, classes: np.ndarray | None) -> Summary:
    return named(chunk, partial(_looked_at, loss=loss, classes=classes))


def _looked_at(chunk: RawBlock, loss: Loss, classes: np.ndarray | None) -> Summary:
    X = chunk.X
    if not sparse.issparse(X):
        finite = np.isfinite(as_numbers(X, "X")).all(axis=tuple(range(1, np.ndim(X))))
        if not finite.all():
            raise ValueError(
                f"row {int(np.argmin(finite))} of X contains NaN or infinity; impute or drop such rows first"
            )
    design = stored_design(X)
    n, d = design.shape
    if chunk.y is None:
        raise ValueError("there is no y: give it for all blocks, or with every block")
    y = as_array(chunk.y, "y")
    if y.ndim == 0 or len(y) != n:
        raise ValueError(f"y must have one row per sample: X has {n} rows, y has shape {y.shape}")
    weights = _weights(chunk)
    if loss.targets == "labels":
        if y.ndim != 1:
            raise ValueError(f"loss={loss.name!r} takes labels of shape (n,), got y of shape {y.shape}")
        if classes is None:
            classes = distinct_labels(y)[0]
        else:
            label_codes(y, classes)
        m = 0
    else:
        m = Losses.of_data(loss, y, n).n_outputs
    weight = float(n if weights is None else weights.sum())
    return Summary(chunk.number, n, d, sparse.issparse(X), weight, m, classes, y[:_CHECKED])


def _design(X: Any) -> DenseDesign | SparseDesign:
    """Return the design of a chunk that the first look has found to be valid; sparse structure is checked again."""
    if sparse.issparse(X) or getattr(X, "dtype", None) not in (np.float32, np.float64):
        return stored_design(X)
    return DenseDesign(X)


def _weights(chunk: RawBlock) -> np.ndarray | None:
    """Return the weights of a chunk; all may be zero."""
    return check_weights(chunk.sample_weight, np.shape(chunk.X)[0])


def stored_numbers(X: Any) -> int:
    """Return how many numbers an array, a frame or a sparse matrix stores."""
    return int(X.nnz) if sparse.issparse(X) else int(np.prod(np.shape(X)))


def _drawn(chunk: RawBlock, fraction: float, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows of a chunk at random, of those with weight, and their targets and weights."""
    n, weights = np.shape(chunk.X)[0], _weights(chunk)
    weights = np.ones(n) if weights is None else weights
    rows = np.flatnonzero((np.random.default_rng((seed, chunk.number)).random(n) < fraction) & (weights > 0))
    X = chunk.X.tocsr() if sparse.issparse(chunk.X) else np.asarray(chunk.X)
    return X[rows], np.asarray(chunk.y)[rows], weights[rows]


def _stacked(a: Any, b: Any) -> Any:
    return sparse.vstack([a, b], format="csr") if sparse.issparse(a) else np.concatenate([a, b])


def _merged(a: Summary, b: Summary) -> Summary:
    if a.d != b.d:
        raise ValueError(f"block {b.number} has {b.d} features, and block {a.number} has {a.d}; all need the same")
    if a.sparse != b.sparse:
        raise TypeError(f"blocks {a.number} and {b.number} are dense and sparse; give all in the same form")
    if a.n_outputs != b.n_outputs:
        raise ValueError(f"block {b.number} has {b.n_outputs} targets a row, and block {a.number} has {a.n_outputs}")
    classes = None if a.classes is None else distinct_labels(np.concatenate([a.classes, b.classes]))[0]
    return replace(a, n=a.n + b.n, weight=a.weight + b.weight, classes=classes)


def _first(block: Block, *arguments: Any) -> Any:
    *along, function, others = arguments
    return function(block, *along, *others)[0]


def _second(block: Block, *arguments: Any) -> Any:
    *along, function, others = arguments
    return function(block, *along, *others)[1]
