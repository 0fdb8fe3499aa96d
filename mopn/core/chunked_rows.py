"""Rows in chunks that are read in every pass: from files or callables here, and on the workers of a cluster."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mopn.core.coordinates import Coordinates
from mopn.core.datafit import DataFit
from mopn.core.designs import AugmentedDesign, DenseDesign, Design, SparseDesign, stored_design
from mopn.core.loss_checks import check_own_loss
from mopn.core.losses import Loss, get_loss
from mopn.core.row_arrays import RowArray, rows_of
from mopn.core.row_blocks import RawBlock, RowBlocks
from mopn.core.rows import ArrayRows, Block, Function, Passes, Rows, block_size, cut, tree_of_blocks, tree_sum
from mopn.core.validation import as_array, check_weights, distinct_labels, label_codes

__all__ = ["ChunkedRows", "Chunks", "LocalChunks", "chunked_rows", "named"]

# Targets of the first chunk on which losses of the user's own are checked.
_CHECKED = 10


class Chunks(ABC):
    """What computes a task for every chunk, and adds the terms up in a tree by the numbers of the chunks.

    Attributes
    ----------
    classes : ndarray or None
        Sorted labels that y may have; None for those that it has.
    """

    classes: np.ndarray | None = None

    @abstractmethod
    def reduce(self, task: Callable[[RawBlock], Any], combine: Function) -> Any:
        """Return the combined terms; the task and what it returns can be sent to other processes."""


class LocalChunks(Chunks):
    """Chunks that this process reads, one after the other."""

    def __init__(self, blocks: RowBlocks) -> None:
        self.blocks = blocks

    def reduce(self, task: Callable[[RawBlock], Any], combine: Function) -> Any:
        return tree_sum(map(task, self.blocks), combine)


@dataclass(frozen=True)
class View:
    """How a chunk becomes blocks: targets, coordinates and dummies, what is added to the outputs, and the precision."""

    fit: DataFit
    coordinates: Coordinates | None = None
    dummies: int = 0
    beside: Any = None
    single: bool = False

    def blocks(self, chunk: RawBlock) -> list[Block]:
        """Return the blocks of a chunk. Their rows are counted from its first one."""
        base = _design(chunk.X)
        design = self.design(base)
        fit = self.fit.of(chunk.y, _weights(chunk))
        blocks = cut(design.single() if self.single else design, fit, block_size(design, fit.n_outputs))
        if self.beside is not None:
            for block in blocks:
                block.fit = block.fit.beside(rows_of(self.beside, block))
        return blocks

    def design(self, base: DenseDesign | SparseDesign) -> Design:
        """Return X of a chunk in the coordinates of the problem, after its dummies."""
        design = base if self.coordinates is None else self.coordinates.view(base)
        return AugmentedDesign(design, self.dummies) if self.dummies else design


class ChunkedRows(Rows):
    """Rows in chunks. Arrays of n rows are functions of the blocks, which every pass that needs them computes anew."""

    def __init__(self, chunks: Chunks, view: View, survey: Survey, passes: Passes) -> None:
        self.chunks, self.view, self.survey, self._passes = chunks, view, survey, passes
        self.fit, self.n_features = view.fit, survey.d
        self.shape = survey.n, survey.d + view.dummies
        empty = sparse.csr_array((1, survey.d)) if survey.sparse else np.zeros((1, survey.d))
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
        return total, RowArray(_second, along, (function, arguments), (self.shape[0], self.fit.n_outputs))

    def keep(self, function: Function, along: Sequence[Any] = ()) -> RowArray:
        return RowArray(function, along)

    def in_coordinates(self, coordinates: Coordinates | None, dummies: int) -> ChunkedRows:
        return self._with(coordinates=coordinates, dummies=dummies)

    def single(self) -> ChunkedRows:
        return self._with(single=True)

    def beside(self, outputs: Any) -> ChunkedRows:
        return self._with(beside=outputs)

    def part(self, share: float) -> ArrayRows:
        """Return a random share of the rows, in memory."""
        self._passes.count += 1
        X, y, weights = self.chunks.reduce(partial(_drawn, share=share), _stacked)
        fit = self.view.fit.of(y, weights * (self.survey.weight / weights.sum()))
        return ArrayRows(self.view.design(stored_design(X)), fit, passes=self._passes)

    def _with(self, **changes: Any) -> ChunkedRows:
        return ChunkedRows(self.chunks, replace(self.view, **changes), self.survey, self._passes)


@dataclass(frozen=True)
class _Task:
    """The sum over the blocks of a chunk."""

    view: View
    function: Function
    arguments: tuple[Any, ...]
    along: tuple[Any, ...]
    combine: Function

    def __call__(self, chunk: RawBlock) -> Any:
        return tree_of_blocks(self._term, named(chunk, self.view.blocks), self.combine)

    def _term(self, block: Block) -> Any:
        along = (rows_of(array, block) for array in self.along)
        return self.function(block, *along, *self.arguments)


def chunked_rows(chunks: Chunks, loss: str | Loss, offset: Any) -> ChunkedRows:
    """Look at all chunks once, and return their rows.

    Raises
    ------
    ValueError, TypeError
        For what a problem in memory refuses, too, and for chunks that do not fit each other; the message names the
        chunk, as a block, and the row in it.
    """
    loss, passes = get_loss(loss), Passes()
    if loss.targets != "labels" and chunks.classes is not None:
        raise ValueError(f"classes are for multi-class losses; loss={loss.name!r} has none")
    passes.count += 1
    survey = chunks.reduce(partial(_survey, loss=loss, classes=chunks.classes), _merged)
    classes, m = survey.classes, survey.n_outputs
    if loss.targets == "labels":
        if len(classes) < 2:
            raise ValueError(f"y has one class only ({classes[0]!r}); classification needs at least 2")
        m = len(classes)
    if not survey.weight > 0:
        raise ValueError("sample_weight is zero for all samples; at least one must be positive")
    fit = DataFit.template(loss, m, classes, offset)
    check_own_loss(loss, fit.of(survey.first_y, None).y)
    return ChunkedRows(chunks, View(fit), survey, passes)


@dataclass(frozen=True)
class Survey:
    """What a first look at chunks finds, and at the first of them."""

    number: int
    n: int
    d: int
    sparse: bool
    weight: float
    n_outputs: int
    classes: Any
    first_y: np.ndarray


def _survey(chunk: RawBlock, loss: Loss, classes: np.ndarray | None) -> Survey:
    return named(chunk, partial(_looked_at, loss=loss, classes=classes))


def _looked_at(chunk: RawBlock, loss: Loss, classes: np.ndarray | None) -> Survey:
    X = chunk.X
    if not sparse.issparse(X):
        finite = np.isfinite(as_array(X, "X")).all(axis=tuple(range(1, np.ndim(X))))
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
        m = DataFit(loss, y, n).n_outputs
    weight = float(n if weights is None else weights.sum())
    return Survey(chunk.number, n, d, sparse.issparse(X), weight, m, classes, y[:_CHECKED])


def _design(X: Any) -> DenseDesign | SparseDesign:
    """Return the design of a chunk that the first look has found to be valid; sparse structure is checked again."""
    if sparse.issparse(X) or getattr(X, "dtype", None) not in (np.float32, np.float64):
        return stored_design(X)
    return DenseDesign(X)


def _weights(chunk: RawBlock) -> np.ndarray | None:
    """Return the weights of a chunk; all may be zero."""
    return check_weights(chunk.sample_weight, np.shape(chunk.X)[0])


def _drawn(chunk: RawBlock, share: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows of a chunk at random, of those with weight, and their targets and weights."""
    n, weights = np.shape(chunk.X)[0], _weights(chunk)
    weights = np.ones(n) if weights is None else weights
    rows = np.flatnonzero((np.random.default_rng((0, chunk.number)).random(n) < share) & (weights > 0))
    X = chunk.X.tocsr() if sparse.issparse(chunk.X) else np.asarray(chunk.X)
    return X[rows], np.asarray(chunk.y)[rows], weights[rows]


def _stacked(a: Any, b: Any) -> Any:
    return sparse.vstack([a, b], format="csr") if sparse.issparse(a) else np.concatenate([a, b])


def _merged(a: Survey, b: Survey) -> Survey:
    if a.d != b.d:
        raise ValueError(f"block {b.number} has {b.d} features, and block {a.number} has {a.d}; all need the same")
    if a.sparse != b.sparse:
        raise TypeError(f"blocks {a.number} and {b.number} are dense and sparse; give all in the same form")
    if a.n_outputs != b.n_outputs:
        raise ValueError(f"block {b.number} has {b.n_outputs} targets a row, and block {a.number} has {a.n_outputs}")
    classes = None if a.classes is None else distinct_labels(np.concatenate([a.classes, b.classes]))[0]
    return replace(a, n=a.n + b.n, weight=a.weight + b.weight, classes=classes)


def named(chunk: RawBlock, function: Callable[[RawBlock], Any]) -> Any:
    """Call a function of a chunk; its errors name the block."""
    try:
        return function(chunk)
    except (ValueError, TypeError) as error:
        raise type(error)(f"block {chunk.number}: {error}") from error


def _first(block: Block, *arguments: Any) -> Any:
    *along, function, others = arguments
    return function(block, *along, *others)[0]


def _second(block: Block, *arguments: Any) -> Any:
    *along, function, others = arguments
    return function(block, *along, *others)[1]
