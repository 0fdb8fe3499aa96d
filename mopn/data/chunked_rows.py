"""The rows of a problem's data: arrays in memory, or chunks that are read in every pass, here or on a cluster.

A chunk is read at once: a block of the user's :class:`mopn.RowBlocks`, as messages call it, or rows of a Dask array. It
is computed in blocks of fewer rows, as data in memory are.
"""

from __future__ import annotations

import operator
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.designs import AugmentedDesign, DenseDesign, Design, SparseDesign, stored_design
from mopn.data.feature_scaling import Coordinates
from mopn.data.loss_checks import check_user_loss
from mopn.data.losses_of_rows import Losses, OutputLoss
from mopn.data.relation_design import RelationBlocks
from mopn.data.row_blocks import RawBlock, RowBlocks, named
from mopn.data.rows import (
    ArrayRows,
    Block,
    Function,
    PassCounter,
    RowArray,
    Rows,
    block_size,
    combined,
    cut,
    on_block,
    rows_of,
    tree_of_blocks,
    tree_sum,
)
from mopn.data.validation import as_array, as_numbers, check_input, check_weights, distinct_labels, label_codes
from mopn.losses.losses import Loss, dual_of, get_loss
from mopn.solvers.tools.blas_threads import single_threaded

# Targets of the first chunk on which a user's loss is checked.
_CHECKED_TARGETS = 10
# Stored numbers of X (128 MiB) up to which rows of chunks are copied into the memory of this process, so that passes
# need neither messages nor files.
IN_MEMORY = 1 << 24


def rows_of_data(X: Any, y: Any, loss: str | Loss, sample_weight: Any, offset: Any) -> Rows:
    """Validate the data of a problem, and return their rows."""
    if isinstance(X, RowBlocks):
        X = LocalChunks(X.with_targets(y, sample_weight))
    if isinstance(X, Chunks):
        return chunked_rows(X, loss, offset)
    if y is None:
        raise TypeError("y is missing; only blocks of rows (mopn.RowBlocks) can bring their targets")
    design = X.design if isinstance(X, RelationBlocks) else stored_design(X)
    check_input(design.largest, "X")
    losses = Losses.of_data(loss, y, design.shape[0], sample_weight, offset)
    if losses.weights is not None:
        check_input(losses.weights, "sample_weight")
    return ArrayRows(design, losses)


class Chunks(ABC):
    """Sums over chunks in a tree by their numbers. Chunks without rows are left out; changed chunks are errors."""

    # Sorted labels that y may have; None for the labels found.
    classes: np.ndarray | None = None
    # The checksums of the chunks that have rows, by number, from the first pass on.
    _checksums: dict[int, int] | None = None

    def reduce(self, task: Callable[[RawBlock], Any], combine: Function) -> Any:
        """Return the combined terms; ``OSError`` for a chunk that cannot be read, or has changed."""
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
        """Return the chunks that a task makes of these, with the labels of their y."""

    @abstractmethod
    def _reduce(self, task: Callable[[RawBlock], ChunkTerm], combine: Function) -> ChunkTerm:
        """Return the combined terms of all chunks."""

    def _check_unchanged(self, found: dict[int, int]) -> None:
        if not found:
            raise ValueError("X is empty: its blocks have no rows")
        self._checksums = expected = self._checksums or found
        changed = sorted(number for number in expected.keys() | found if expected.get(number) != found.get(number))
        if changed:
            raise OSError(
                f"block {changed[0]} has changed since the first pass; a block must be the same whenever it is read"
            )


@dataclass(frozen=True)
class ChunkTerm:
    """The value of a task for some chunks, and the checksums of chunks that have rows."""

    value: Any
    checksums: dict[int, int]


def _term(task: Callable[[RawBlock], Any], chunk: RawBlock) -> ChunkTerm:
    """Return the value of a task for a chunk, and its checksum; neither for a chunk without rows."""
    if not np.shape(chunk.X)[0]:
        return ChunkTerm(None, {})
    return ChunkTerm(task(chunk), {chunk.number: checksum(chunk.X, chunk.y, chunk.sample_weight)})


def _added(combine: Function, a: ChunkTerm, b: ChunkTerm) -> ChunkTerm:
    """Return the combined terms of two parts; a part without rows adds nothing."""
    if not (a.checksums and b.checksums):
        return a if a.checksums else b
    return ChunkTerm(combined(a.value, b.value, combine), a.checksums | b.checksums)


def _nothing(*_: Any) -> None:
    """Stand in for a task or a combination whose value is not needed."""
    pass


class LocalChunks(Chunks):
    """Chunks that this process reads, one after the other; ``blocks`` yields the same in every pass."""

    def __init__(self, blocks: Iterable[RawBlock], classes: np.ndarray | None = None, replacements: Any = ()) -> None:
        self.blocks = blocks
        self.classes = classes
        self._replacements = replacements

    def replaced(self, task: Callable[[RawBlock], RawBlock], classes: np.ndarray | None) -> LocalChunks:
        return LocalChunks(self.blocks, classes, (*self._replacements, task))

    def _reduce(self, task: Callable[[RawBlock], ChunkTerm], combine: Function) -> ChunkTerm:
        blocks = self.blocks
        for replacement in self._replacements:
            blocks = map(replacement, blocks)
        return tree_sum(map(task, blocks), combine)


@dataclass(frozen=True)
class ChunkView:
    """How a chunk becomes blocks: targets, coordinates and dummies, added outputs, and the precision."""

    losses: OutputLoss
    coordinates: Coordinates | None = None
    dummies: int = 0
    added: Any = None
    single: bool = False

    def blocks(self, chunk: RawBlock) -> list[Block]:
        base = _design(chunk.X)
        design = self.design(base)
        losses = self.losses.with_targets(chunk.y, _weights(chunk))
        blocks = cut(design.single() if self.single else design, losses, block_size(design, losses.n_outputs))
        if self.added is not None:
            for block in blocks:
                block.losses = block.losses.plus(rows_of(self.added, block))
        return blocks

    def design(self, base: DenseDesign | SparseDesign) -> Design:
        """Return X of a chunk in the coordinates of the problem, after its dummies."""
        design = base if self.coordinates is None else self.coordinates.view(base)
        return AugmentedDesign(design, self.dummies) if self.dummies else design


class ChunkedRows(Rows):
    """Rows in chunks. Arrays of n rows are functions of the blocks, computed in every pass that needs them."""

    def __init__(self, chunks: Chunks, view: ChunkView, summary: Summary, passes: PassCounter) -> None:
        self.chunks = chunks
        self.view = view
        self.summary = summary
        self._passes = passes
        self.losses = view.losses
        self.n_features = summary.d
        self.shape = summary.n, summary.d + view.dummies
        empty = sparse.csr_array((1, summary.d)) if summary.sparse else np.zeros((1, summary.d))
        self.template = view.design(stored_design(empty))
        self.entries = self.template.entries

    def sum(
        self, function: Function, *arguments: Any, along: Sequence[Any] = (), combine: Function = operator.add
    ) -> Any:
        self._passes.count += 1
        return self.chunks.reduce(partial(_sum_of_blocks, self.view, function, arguments, along, combine), combine)

    def map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> RowArray:
        return RowArray(function, along, arguments)

    def sum_and_map(self, function: Function, *arguments: Any, along: Sequence[Any] = ()) -> tuple[Any, RowArray]:
        total = self.sum(_part, function, arguments, 0, along=along)
        return total, RowArray(_part, along, (function, arguments, 1), (self.shape[0], self.losses.n_outputs))

    def keep(self, function: Function, along: Sequence[Any] = ()) -> RowArray:
        return RowArray(function, along)

    def in_coordinates(self, coordinates: Coordinates | None, dummies: int) -> ChunkedRows:
        return self._with(coordinates=coordinates, dummies=dummies)

    def single(self) -> ChunkedRows:
        return self._with(single=True)

    def plus(self, outputs: Any) -> ChunkedRows:
        return self._with(added=outputs)

    def sample(self, fraction: float, seed: int) -> ArrayRows:
        self._passes.count += 1
        X, y, weights = self.chunks.sample(fraction, seed)
        losses = self.view.losses.with_targets(y, weights * (self.summary.weight / weights.sum()))
        return ArrayRows(self.view.design(stored_design(X)), losses)

    def _with(self, **changes: Any) -> ChunkedRows:
        return ChunkedRows(self.chunks, replace(self.view, **changes), self.summary, self._passes)


def _sum_of_blocks(
    view: ChunkView, function: Function, arguments: Any, along: Sequence[Any], combine: Function, chunk: RawBlock
) -> Any:
    """Return the combined terms of the blocks of a chunk: the same bits for one block or several."""
    with single_threaded():
        return tree_of_blocks(partial(on_block, function, along, arguments), named(chunk, view.blocks), combine)


def _part(block: Block, *arguments: Any) -> Any:
    """Return one part of the result of a function; the last three arguments are it, its own arguments and the part."""
    *along, function, own_arguments, part = arguments
    given = [*along, *own_arguments]
    return function(block, *given)[part]


def chunked_rows(chunks: Chunks, loss: str | Loss, offset: Any) -> ChunkedRows:
    """Validate all chunks in one pass, and return their rows; messages name the block and the row in it."""
    loss = get_loss(loss)
    if loss.targets != "labels" and chunks.classes is not None:
        raise ValueError(f"classes are for multi-class losses; loss={loss.name!r} has none")
    passes = PassCounter()
    passes.count += 1
    validated = partial(_validated, loss=loss, classes=chunks.classes)
    summary = chunks.reduce(partial(named, function=validated), _merged)
    classes = summary.classes
    m = summary.n_outputs
    if loss.targets == "labels":
        if len(classes) < 2:
            raise ValueError(f"y has one class only ({classes[0]}); classification needs at least 2")
        m = len(classes)
    if not summary.weight > 0:
        raise ValueError("sample_weight is zero for all samples; at least one must be positive")
    losses = OutputLoss.of_blocks(loss, m, classes, offset)
    if dual_of(loss) is None:
        check_user_loss(loss, losses.with_targets(summary.first_y, None).y)
    return ChunkedRows(chunks, ChunkView(losses), summary, passes)


@dataclass(frozen=True)
class Summary:
    """Summary of the first pass over chunks; ``number``, ``sparse`` and ``first_y`` belong to the first of them."""

    number: int
    n: int
    d: int
    sparse: bool
    weight: float
    n_outputs: int
    classes: Any
    first_y: np.ndarray


def _validated(chunk: RawBlock, loss: Loss, classes: np.ndarray | None) -> Summary:
    """Check a chunk, and return its summary."""
    X = chunk.X
    if not sparse.issparse(X):
        finite = np.isfinite(as_numbers(X, "X")).all(axis=tuple(range(1, np.ndim(X))))
        if not finite.all():
            row = int(np.argmin(finite))
            raise ValueError(f"row {row} of X contains NaN or infinity; impute or drop such rows first")
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
    return Summary(chunk.number, n, d, sparse.issparse(X), weight, m, classes, y[:_CHECKED_TARGETS])


def _design(X: Any) -> DenseDesign | SparseDesign:
    """Return the design of a chunk that was validated; only sparse structure is checked again."""
    if sparse.issparse(X) or getattr(X, "dtype", None) not in (np.float32, np.float64):
        return stored_design(X)
    return DenseDesign(X)


def _weights(chunk: RawBlock) -> np.ndarray | None:
    """Return the checked weights of a chunk, or None."""
    return check_weights(chunk.sample_weight, np.shape(chunk.X)[0])


def stored_numbers(X: Any) -> int:
    """Return the number of values that an array, a frame or a sparse matrix stores."""
    return int(X.nnz) if sparse.issparse(X) else int(np.prod(np.shape(X)))


def _drawn(chunk: RawBlock, fraction: float, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return X, y and weights of a random sample of the rows of positive weight of a chunk."""
    n = np.shape(chunk.X)[0]
    weights = _weights(chunk)
    if weights is None:
        weights = np.ones(n)
    rng = np.random.default_rng((seed, chunk.number))
    rows = np.flatnonzero((rng.random(n) < fraction) & (weights > 0))
    X = chunk.X.tocsr() if sparse.issparse(chunk.X) else np.asarray(chunk.X)
    return X[rows], np.asarray(chunk.y)[rows], weights[rows]


def _stacked(a: Any, b: Any) -> Any:
    """Return the rows of two parts as one array."""
    return sparse.vstack([a, b], format="csr") if sparse.issparse(a) else np.concatenate([a, b])


def _merged(a: Summary, b: Summary) -> Summary:
    """Return the summary of two parts; an error names the blocks that do not fit each other."""
    if a.d != b.d:
        raise ValueError(f"block {b.number} has {b.d} features, and block {a.number} has {a.d}; all need the same")
    if a.sparse != b.sparse:
        raise TypeError(f"blocks {a.number} and {b.number} are dense and sparse; give all in the same form")
    if a.n_outputs != b.n_outputs:
        raise ValueError(f"block {b.number} has {b.n_outputs} targets a row, and block {a.number} has {a.n_outputs}")
    classes = None if a.classes is None else distinct_labels(np.concatenate([a.classes, b.classes]))[0]
    return replace(a, n=a.n + b.n, weight=a.weight + b.weight, classes=classes)


def checksum(*parts: Any) -> int:
    """Return a CRC-32 of all bytes of arrays, sparse matrices and tables, which depends on the order of the rows."""
    total = 0
    for part in parts:
        total = zlib.crc32(repr(np.shape(part)).encode(), total)
        for array in _stored_arrays(part):
            total = _checksum_with(np.asarray(array), total)
    return total


def _stored_arrays(part: Any) -> Sequence[Any]:
    if sparse.issparse(part):
        rows = part.tocsr()
        return rows.indptr, rows.indices, rows.data
    return getattr(part, "stored_arrays", (part,))  # tables have the attribute


def _checksum_with(array: np.ndarray, before: int) -> int:
    """Return the CRC-32 of an array after other bytes, whose CRC-32 is ``before``."""
    if array.dtype.hasobject:
        array = np.frombuffer("\0".join(map(str, array.flat)).encode(errors="surrogatepass"), np.uint8)
    # 0.24 s/GB (zlib 1.2.13), less than reading takes. Sums of 8-byte words take 0.03, but miss exchanges within a sum;
    # words times odd numbers 0.11, but miss exchanges of doubles such as 1.0 and 2.0, whose words end in zeros.
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, before)
