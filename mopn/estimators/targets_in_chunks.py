"""Targets of chunks on workers, encoded there, so that no process holds all of them."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mopn.data.chunked_rows import Chunks
from mopn.data.row_blocks import RawBlock, named
from mopn.data.validation import check_weights, distinct_labels, finite_numbers, label_codes, of_present
from mopn.data.values import as_targets
from mopn.estimators.targets import Targets
from mopn.solvers.tools.checks import shown

_INDICATORS = np.arange(2)


def has_labels(estimator: Any) -> bool:
    """Whether y has few distinct values, labels or levels, which are encoded chunk by chunk."""
    return not estimator._numeric_y or estimator._classes_name == "levels_"


def samples_of_chunks(estimator: Any, X: Chunks) -> tuple[Chunks, np.ndarray, np.ndarray | None, Any]:
    """Return the chunks, and y and the weights: of one row per label, or of all rows if y is numbers."""
    if not has_labels(estimator):
        return X, *X.reduce(partial(named, function=_numbers), _joined), None
    found = X.reduce(partial(named, function=partial(_counted, classes=X.classes)), operator.add)
    if found.columns:
        return X, np.repeat(_INDICATORS[:, None], found.columns, axis=1), None, None
    labels, weights = found.labels, found.weights
    if X.classes is None:  # as in memory, labels of rows of weight 0 alone are none
        labels, weights = labels[weights > 0.0], weights[weights > 0.0]
    if getattr(estimator, "class_weight", None) == "balanced" and not weights.all():
        missing = shown(labels[weights == 0][0])
        raise ValueError(f"class_weight='balanced' needs rows of each class, and {missing} has none")
    return X, labels, weights, None


def encoded_chunks(X: Chunks, targets: Targets) -> Chunks:
    """Return chunks with targets and weights for a problem, given the targets of the labels."""
    if targets.form in ("vector", "outputs"):
        return X
    labels = _INDICATORS if targets.form == "indicator" else targets.y
    code = partial(_encoded, labels=labels, values=targets.values, factors=targets.class_factor)
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


def _counted(chunk: RawBlock, classes: np.ndarray | None) -> LabelWeights:
    y = as_targets(chunk.y, numeric=False)
    columns = y.shape[1] if y.ndim > 1 else 0
    if columns:
        classes = _INDICATORS
    labels, codes = distinct_labels(y) if classes is None else (classes, label_codes(y, classes))
    weights = None if columns else check_weights(chunk.sample_weight, len(y))
    return LabelWeights(labels, np.bincount(codes.ravel(), weights, minlength=len(labels)), columns)


def _encoded(chunk: RawBlock, labels: np.ndarray, values: np.ndarray, factors: np.ndarray | None) -> RawBlock:
    y, weights = as_targets(chunk.y, numeric=False), chunk.sample_weight
    codes = label_codes(of_present(y, weights, labels[0]) if y.ndim == 1 else y, labels)
    if factors is not None:
        weights = factors[codes] if weights is None else weights * factors[codes]
    y = values[codes] if codes.ndim == 1 else np.take_along_axis(values, codes, 0)
    return RawBlock(chunk.number, chunk.X, y, weights)


def _numbers(chunk: RawBlock) -> tuple[np.ndarray, np.ndarray | None]:
    y = finite_numbers(chunk.y, "y")
    return y, check_weights(chunk.sample_weight, len(y))


def _joined(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    return None if a is None or b is None else np.concatenate([a, b])
