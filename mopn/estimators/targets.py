"""The targets of an estimator, encoded for a problem and a model; the order of samples, and merging equal ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.chunked_rows import Chunks
from mopn.data.relation_design import RelationBlocks
from mopn.data.row_blocks import RawBlock, named
from mopn.data.targets import as_targets, level_codes
from mopn.data.validation import check_weights, distinct_labels, filled_targets, finite_numbers, label_codes
from mopn.losses.losses import LOSSES, Clipped, Loss, Squared, get_loss
from mopn.models.base import cumulative_targets
from mopn.network.maps import UserY
from mopn.solvers.tools.checks import shown
from mopn.tables.quantiles import Quantiles

# Finds the index of the label, or level, of every sample.
_CodesOf = Callable[[np.ndarray, np.ndarray], np.ndarray]
_INDICATORS = np.arange(2)
# Names of the losses that regressors and classifiers take.
_OF_NUMBERS = ("squared", "huber", "quantile", "poisson")
_OF_CLASSES = tuple(name for name in LOSSES if name not in _OF_NUMBERS or name == "squared")
# Largest number of entries of X for which equal samples are merged and samples sorted: this takes up to a tenth of a
# second and a copy of X. Of larger data nobody asks for the last bits.
MERGE_LIMIT = 1 << 20
# Spread of a target relative to its level, up to which it is a rounding error of the level.
_ROUNDING = 1e-14
# Samples per distinct row from which on rows repeat by nature, as in a table of a few categories.
_SAMPLES_OF_REPEATED_ROW = 10


@dataclass(frozen=True)
class Targets:
    """The targets and weights of n samples."""

    y: np.ndarray  # (n, ...), in the form of predictions
    values: np.ndarray  # y for a ``NetworkProblem``: codes (n,) for a multi-class loss, else numbers (n, m)
    loss: Loss
    form: str  # ``Model.target``
    classes: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    class_factor: np.ndarray | None = None  # the weights (n,) of the samples' classes

    @property
    def weights(self) -> np.ndarray | None:
        """Sample weights times class weights; None if all are 1."""
        given = [part for part in (self.sample_weight, self.class_factor) if part is not None]
        return np.prod(given, axis=0) if given else None

    @property
    def total_weight(self) -> float:
        return float(len(self.y) if self.weights is None else self.weights.sum())

    def sum(self, values: np.ndarray) -> float:
        return float(values.sum() if self.weights is None else self.weights @ values)

    def rows(self, rows: np.ndarray) -> Targets:
        names = ("y", "values", "sample_weight", "class_factor")
        return replace(self, **{name: part[rows] for name in names if (part := getattr(self, name)) is not None})


def encoded_codes(codes: np.ndarray, number: int, loss: Loss, *, ordinal: bool = False) -> np.ndarray:
    """Return the targets of a loss for the codes (n,) of a ``number`` of labels or, if ``ordinal``, of levels.

    A multi-class loss takes the codes. Other losses take -1 and 1: for two labels (n, 1), for each of more labels
    (n, number), or for "at most this level" for each level but the last.
    """
    if loss.targets == "labels":
        return codes
    if ordinal:
        return cumulative_targets(codes, number)
    return np.where(codes[:, None] == (np.arange(number) if number > 2 else [1]), 1.0, -1.0)


def indicator_values(y: np.ndarray) -> np.ndarray:
    if not np.isin(y, (0, 1)).all():
        raise ValueError(f"an indicator matrix y must hold 0 and 1 only, got {np.unique(y)}")
    return 2.0 * y - 1.0


def level_and_unit(targets: Targets, *, named: bool) -> UserY | None:
    """Return the level and the unit of each target, for losses that depend on residuals alone.

    A unit is the spread of the target relative to the mean of all spreads, so that targets weigh alike, and a single
    one keeps its unit. A loss with parameters in the unit of y, which the user did not just name, leaves all units at
    1. Spreads that are rounding errors count as none.
    """
    loss = targets.loss
    if not isinstance(loss, Squared | Clipped):
        return None
    level = _level(loss, targets.values, targets.weights)
    unit = np.ones(len(level))
    if len(unit) > 1 and (named or isinstance(loss, Squared)):
        of_one = _deviation if isinstance(loss, Squared) else _robust_deviation
        spreads = np.array([of_one(residuals, targets.weights) for residuals in (targets.values - level).T])
        varies = spreads > _ROUNDING * np.abs(level)
        if varies.any():
            unit[varies] = spreads[varies] / spreads[varies].mean()
        if isinstance(loss, Clipped):
            # The loss is for targets in these units.
            level = unit * _level(loss, targets.values / unit, targets.weights)
    return UserY(level, unit)


def _level(loss: Loss, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
    """Return the constants (m,) of least loss; for equal targets exactly these, without the rounding of a mean."""
    least = y.min(axis=0)
    return np.where(least == y.max(axis=0), least, loss.constant(y, sample_weight))


def _deviation(y: np.ndarray, sample_weight: np.ndarray | None) -> float:
    """Return the deviation of numbers (n,) of mean 0; their squares may overflow."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * float(np.sqrt(np.average((y / largest) ** 2, weights=sample_weight)))


def classification_loss(loss: str | Loss) -> Loss:
    found = get_loss(loss, _OF_CLASSES)
    of_numbers = [type(LOSSES[name]) for name in _OF_NUMBERS if name not in _OF_CLASSES]
    if type(found) in of_numbers:
        takes = ", ".join(map(repr, _OF_CLASSES))
        raise ValueError(f"loss={found.name!r} is for regressors; a classifier takes one of {takes} or a Loss of yours")
    return found


def regression_loss(loss: str | Loss, y: np.ndarray, sample_weight: np.ndarray | None) -> Loss:
    """Return the loss for targets y (n,) or (n, m), with the robust deviation of y as its unit if it is named."""
    found = get_loss(loss, _OF_NUMBERS)
    if found.targets not in ("numbers", "counts"):
        takes = ", ".join(map(repr, _OF_NUMBERS))
        raise ValueError(f"loss={found.name!r} is for classifiers; a regressor takes one of {takes} or a Loss of yours")
    return found.scaled(_robust_deviation(y, sample_weight)) if isinstance(loss, str) else found


def _robust_deviation(y: np.ndarray, sample_weight: np.ndarray | None) -> float:
    """Return the mean over the columns of their interquartile ranges / 1.349; where it is 0, of deviations, or 1."""
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    if not weights.any():
        return 1.0
    present = weights > 0.0
    columns = [Quantiles.of(column[present], weights[present]) for column in y.reshape(len(y), -1).T]
    ranges = [high - low for low, high in (column.at([0.25, 0.75]) for column in columns)]
    # The interquartile range of a normal distribution of deviation 1 is 1.349.
    return float(np.mean(ranges)) / 1.349 or float(np.mean([column.deviation for column in columns])) or 1.0


def merge_equal_samples(X: Any, targets: Targets) -> tuple[Any, Targets]:
    """Return the distinct samples in a canonical order, with the sums of their weights: the objective is the same.

    Rounding errors depend on the order of the rows, and accumulate during a fit. After this step fits are the same to
    the last bit for every order of the rows, and whether samples are repeated or weighted. Large data are not changed.
    """
    if _is_large(X):
        return X, targets
    _, first, group = np.unique(_codes_of_samples(_codes(X), targets), return_index=True, return_inverse=True)
    weights = np.bincount(group.reshape(-1), weights=targets.sample_weight).astype(np.float64, copy=False)
    merged = replace(targets.rows(first), sample_weight=None if np.all(weights == 1.0) else weights)
    return X[first], merged


def targets_of_all_rows(targets: Targets, present: np.ndarray | None, sample_weight: Any) -> Targets:
    """Return the targets of samples of positive weight at their places among all rows as given.

    Rows of weight 0, which may have no valid target, get the first sample's: no sum over the samples changes.
    """
    n = 0 if sample_weight is None else len(sample_weight)
    if present is None or len(present) >= n:
        return targets
    place = np.zeros(n, np.intp)
    place[present] = np.arange(len(present))
    weights = np.zeros(n)
    weights[present] = targets.sample_weight
    return replace(targets.rows(place), sample_weight=weights)


def in_canonical_order(X: Any, targets: Targets) -> tuple[Any, Targets, np.ndarray]:
    """Return the samples in an order that does not depend on the given one, and the group (n,) of each.

    Equal samples with equal targets form a group that is held out together if they may be copies, where rows seldom
    repeat; else each sample is a group. Large data are not changed.
    """
    n = len(targets.y)
    if _is_large(X):
        return X, targets, np.arange(n)
    rows = _codes(X)
    codes, weights = _codes_of_samples(rows, targets), targets.sample_weight
    order = np.argsort(codes, kind="stable") if weights is None else np.lexsort((weights, codes))
    changes = np.append(True, np.diff(codes[order]) != 0)
    kinds, row = np.unique(rows[order], return_inverse=True)
    copies = np.zeros(n, bool)
    if n < _SAMPLES_OF_REPEATED_ROW * len(kinds):
        copies = np.bincount(row, changes)[row] == 1  # rows with a single target
    return X[order], targets.rows(order), np.cumsum(changes | ~copies) - 1


def _is_large(X: Any) -> bool:
    sized: Any = X.design.places if isinstance(X, RelationBlocks) else X
    return (sized.nnz if sparse.issparse(sized) else sized.size) > MERGE_LIMIT


def _codes_of_samples(rows: np.ndarray, targets: Targets) -> np.ndarray:
    """Return a number for each sample, equal for equal rows with equal targets, from numbers of the rows."""
    # Values of y (n,) take longer to compare than y. Rows of objects cannot be sorted, labels can.
    y = targets.values if targets.y.ndim > 1 else targets.y
    kinds = np.unique(y, axis=0 if y.ndim > 1 else None, return_inverse=True)[1].reshape(-1)
    if targets.form == "labels":
        kinds = _ranks_of_classes(kinds, rows)[kinds]
    return rows * (kinds.max() + 1) + kinds


def _ranks_of_classes(kinds: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the ranks of classes by their rows, so that the order of samples does not depend on the labels."""
    members = [np.unique(rows[kinds == kind]).tolist() for kind in range(kinds.max() + 1)]
    ranks = np.empty(len(members), dtype=np.intp)
    ranks[sorted(range(len(members)), key=members.__getitem__)] = np.arange(len(members))
    return ranks


def _codes(X: Any) -> np.ndarray:
    """Return a number for each row, equal for equal rows.

    Rows are in the order of their entries in single precision, the first feature first, and then of the entries
    themselves: it is the same for every storage, and for features in other units.
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded = _codes_of_numbers(X, np.float32)
    return _numbered(np.column_stack([rounded, _codes_of_numbers(X, np.float64)]))


def _codes_of_numbers(X: Any, dtype: type) -> np.ndarray:
    """Return the places (n,) of the distinct rows in the lexicographic order of their entries."""
    if isinstance(X, RelationBlocks):
        tables = _codes_of_numbers(X.design.tables.X, dtype)
        return _numbered(tables[X.design.places])
    if sparse.issparse(X):
        return _sparse_codes(X.astype(dtype).tocsr())
    return _codes_of_bytes(_ordered_bytes(X.astype(dtype)))


def _ordered_bytes(numbers: np.ndarray) -> np.ndarray:
    """Return unsigned integers, the largest byte first, whose bytes are in the order of numbers."""
    numbers = np.ascontiguousarray(numbers) + numbers.dtype.type(0.0)  # -0.0 becomes 0.0
    bits = numbers.view(f"u{numbers.itemsize}")
    sign = bits.dtype.type(1 << (8 * numbers.itemsize - 1))
    return np.where(bits & sign, ~bits, bits | sign).astype(f">u{numbers.itemsize}")


def _codes_of_bytes(table: np.ndarray) -> np.ndarray:
    rows = np.ascontiguousarray(table).view(np.dtype((np.void, table.shape[1] * table.itemsize)))
    return np.unique(rows.reshape(-1), return_inverse=True)[1].reshape(-1)


def _sparse_codes(X: Any) -> np.ndarray:
    """Return the codes of dense rows: an entry that is not stored is 0, above negative and below positive ones."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if not X.data.all():
        X = X.copy()
        X.eliminate_zeros()
    # A row comes before another if it has the first negative entry, or lacks the first positive one.
    places = np.sign(X.data) * (X.shape[1] - X.indices.astype(np.float64))
    counts = np.diff(X.indptr)
    if counts[0] > 0 and np.all(counts == counts[0]):
        columns = [places] if np.all(X.data == 1.0) else [places, X.data]
        return _numbered(np.stack(columns, axis=1).reshape(len(counts), -1))
    entries = _ordered_bytes(np.stack([places, X.data.astype(np.float64)], axis=1))
    end = _ordered_bytes(np.zeros(2)).tobytes()
    rows = np.empty(X.shape[0], dtype=object)
    for i, (first, last) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
        rows[i] = entries[first:last].tobytes() + end
    return np.unique(rows, return_inverse=True)[1].reshape(-1)


def _numbered(table: np.ndarray) -> np.ndarray:
    """Return the places (n,) of the distinct rows of numbers in their lexicographic order."""
    order = np.lexsort(table.T[::-1])
    ordered = table[order]
    codes = np.empty(len(table), dtype=np.intp)
    codes[order] = np.concatenate([[0], np.cumsum(np.any(ordered[1:] != ordered[:-1], axis=1))])
    return codes


def samples_of_chunks(encoding: Any, X: Chunks) -> tuple[Chunks, np.ndarray, np.ndarray | None, Any]:
    """Return the chunks, and y and the weights: of one row per label or level, or of all rows if y is numbers."""
    if encoding.kind == "numbers":
        return X, *X.reduce(partial(named, function=_numbers), _joined), None
    codes_of = level_codes if encoding.kind == "levels" else label_codes
    count = partial(_counted, classes=X.classes, codes_of=codes_of)
    found = X.reduce(partial(named, function=count), operator.add)
    if found.columns:
        return X, np.repeat(_INDICATORS[:, None], found.columns, axis=1), None, None
    labels, weights = found.labels, found.weights
    if X.classes is None:  # as in memory, labels of rows of weight 0 alone are none
        present = weights > 0.0
        labels = labels[present]
        weights = weights[present]
    if getattr(encoding, "class_weight", None) == "balanced" and not weights.all():
        missing = shown(labels[weights == 0][0])
        raise ValueError(f"class_weight='balanced' needs rows of each class, and {missing} has none")
    return X, labels, weights, None


def targets_of_problem(X: Any, targets: Targets, user_y: UserY | None = None) -> tuple[Any, Any, Any]:
    """Return X, and y and the weights, for a ``NetworkProblem``; chunks bring their targets and weights."""
    if isinstance(X, Chunks):
        return encoded_chunks(X, targets, user_y), None, None
    return X, targets.values if user_y is None else user_y.targets(targets.values), targets.weights


def encoded_chunks(X: Chunks, targets: Targets, user_y: UserY | None = None) -> Chunks:
    """Return chunks with targets and weights for a problem, given the targets of the labels."""
    if targets.form in ("vector", "outputs"):
        return X if user_y is None else X.replaced(partial(_in_units, user_y=user_y), None)
    labels = _INDICATORS if targets.form == "indicator" else targets.y
    codes_of = level_codes if targets.form == "ordinal" else label_codes
    code = partial(_encoded, labels=labels, values=targets.values, factors=targets.class_factor, codes_of=codes_of)
    return X.replaced(code, np.arange(len(labels)) if targets.loss.targets == "labels" else None)


@dataclass(frozen=True)
class LabelWeights:
    """Sorted distinct labels with the sums of their weights; the columns of an indicator matrix, or 0."""

    labels: np.ndarray
    weights: np.ndarray
    columns: int

    def __add__(self, other: LabelWeights) -> LabelWeights:
        labels, codes = distinct_labels(np.concatenate([self.labels, other.labels]))
        weights = np.bincount(codes, np.concatenate([self.weights, other.weights]))
        return LabelWeights(labels, weights, self.columns)


def _counted(chunk: RawBlock, classes: np.ndarray | None, codes_of: _CodesOf) -> LabelWeights:
    y = as_targets(chunk.y, numeric=False)
    columns = y.shape[1] if y.ndim > 1 else 0
    if columns:
        classes = _INDICATORS
    labels, codes = distinct_labels(y) if classes is None else (classes, codes_of(y, classes))
    weights = None if columns else check_weights(chunk.sample_weight, len(y))
    return LabelWeights(labels, np.bincount(codes.ravel(), weights, minlength=len(labels)), columns)


def _encoded(
    chunk: RawBlock,
    labels: np.ndarray,
    values: np.ndarray,
    factors: np.ndarray | None,
    codes_of: _CodesOf,
) -> RawBlock:
    y, weights = as_targets(chunk.y, numeric=False), chunk.sample_weight
    codes = codes_of(filled_targets(y, weights, labels[0]) if y.ndim == 1 else y, labels)
    if factors is not None:
        weights = factors[codes] if weights is None else weights * factors[codes]
    y = values[codes] if codes.ndim == 1 else np.take_along_axis(values, codes, 0)
    return RawBlock(chunk.number, chunk.X, y, weights)


def constant_outputs(X: Any, targets: Targets) -> np.ndarray:
    """Return the constant outputs (m,) of least loss on samples, which may be in chunks.

    Outputs for labels are rounded to single precision: their last bits depend on the order in which weights are added
    up.
    """
    loss = targets.loss
    if isinstance(X, Chunks) and targets.form == "indicator":
        # The targets are one row of 0 and one of 1, and the chunks know how often each column has them.
        signs = targets.values[:, :1]
        weights_of_columns = X.reduce(_column_weights, operator.add).T
        constant = np.concatenate([loss.constant(signs, weights) for weights in weights_of_columns])
    else:
        constant = loss.constant(targets.values, targets.weights)
    return constant.astype(np.float32).astype(np.float64) if loss.targets in ("labels", "signs") else constant


def _column_weights(chunk: RawBlock) -> np.ndarray:
    """Return the weights (2, m) of the rows with 0 and with 1 in each column of indicators."""
    y = as_targets(chunk.y, numeric=False)
    weights = check_weights(chunk.sample_weight, len(y))
    weights = np.ones(len(y)) if weights is None else weights
    ones = weights @ (y == 1)
    return np.stack([weights.sum() - ones, ones])


def _in_units(chunk: RawBlock, user_y: UserY) -> RawBlock:
    y = finite_numbers(chunk.y, "y")
    return chunk._replace(y=user_y.targets(y if y.ndim == 2 else y[:, None]))


def _numbers(chunk: RawBlock) -> tuple[np.ndarray, np.ndarray | None]:
    y = finite_numbers(as_targets(chunk.y, numeric=True), "y")
    return y, check_weights(chunk.sample_weight, len(y))


def _joined(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    return None if a is None or b is None else np.concatenate([a, b])
