"""How targets are encoded for a network: labels and indicators, numbers, or ordered levels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from mopn.data.rounding import one_number, rounded_levels, written
from mopn.data.targets import as_targets
from mopn.data.validation import check_input, distinct_labels, finite_numbers
from mopn.estimators.targets import (
    Targets,
    classification_loss,
    encoded_codes,
    indicator_values,
    level_and_unit,
    regression_loss,
)
from mopn.losses.losses import LOSSES, Loss, get_loss
from mopn.network.maps import UserY
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import warn_caller

# The binary forms of multi-class losses, for indicator matrices.
_BINARY_FORMS = {LOSSES["logistic"]: LOSSES["binary-logistic"], LOSSES["squared-hinge"]: LOSSES["binary-squared-hinge"]}
# Each level but the last has an output.
_MAX_LEVELS = 256
# More are hardly levels of a scale: ratings have 5 to 20, grades and scores of questionnaires up to 30.
_MANY_LEVELS = 30
LEVELS_FROM_TEXTS = (
    "levels are numbers, or categories with an order, such as pandas.Categorical(y, categories=[...], "
    "ordered=True); in blocks that bring y their positions, such as y.cat.codes"
)


@dataclass(frozen=True)
class Encoding(ABC):
    """How the targets of a fit are encoded for its problem, and how predictions of them are scored."""

    loss: str | Loss

    # "labels", "levels" or "numbers".
    kind: ClassVar[str]
    # The fitted attribute that has the distinct targets.
    classes_name: ClassVar[str] = "classes_"

    @abstractmethod
    def encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        """Validate y and return its targets."""

    def level_and_unit(self, targets: Targets) -> UserY | None:
        """Return the levels and units that a problem's targets are without, or None."""
        return None

    def score(self, y: np.ndarray, prediction: np.ndarray, sample_weight: np.ndarray | None) -> float:
        """Return the score of predictions, the larger the better."""
        return r2_score(y, prediction, sample_weight=sample_weight)


@dataclass(frozen=True)
class LabelEncoding(Encoding):
    """Labels, or an indicator matrix of 0 and 1."""

    class_weight: Any = None

    kind = "labels"

    def encode(self, y: Any, sample_weight: np.ndarray | None) -> Targets:
        """Validate labels or indicators and return their targets."""
        loss = classification_loss(self.loss)
        if y.dtype == object:
            distinct_labels(y)  # scikit-learn's checks need labels that can be compared
        check_classification_targets(y)
        if type_of_target(y) == "multilabel-indicator":
            return self._encode_indicator(y, loss, sample_weight)
        if y.ndim == 2 and y.shape[1] > 1:
            raise ValueError(f"y must be labels (n,) or an indicator matrix of 0 and 1 (n, m), got shape {y.shape}")
        y = column_or_1d(y, warn=True)
        classes, codes = distinct_labels(y)
        if len(classes) < 2:
            raise ValueError(f"y has one class only ({classes[0]}); classification needs at least 2 classes")
        values = encoded_codes(codes, len(classes), loss)
        factors = self._class_factors(codes, classes, sample_weight)
        return Targets(y, values, loss, "labels", classes, sample_weight, factors)

    def score(self, y: np.ndarray, prediction: np.ndarray, sample_weight: np.ndarray | None) -> float:
        """Return the accuracy."""
        return accuracy_score(y, prediction, sample_weight=sample_weight)

    def _encode_indicator(self, y: np.ndarray, loss: Loss, sample_weight: np.ndarray | None) -> Targets:
        if not takes_indicators(loss):
            raise ValueError(
                f"loss={loss.name!r} compares classes with each other, so it cannot take an indicator matrix y; "
                f"use {', '.join(repr(form.name) for form in _BINARY_FORMS)} or a loss for each output"
            )
        if self.class_weight is not None:
            raise ValueError("class_weight is for labels; for an indicator matrix y give sample_weight to fit instead")
        loss = _BINARY_FORMS.get(loss, loss)
        return Targets(y, indicator_values(y), loss, "indicator", np.arange(y.shape[1]), sample_weight)

    def _class_factors(
        self, codes: np.ndarray, classes: np.ndarray, sample_weight: np.ndarray | None
    ) -> np.ndarray | None:
        """Return the factor (n,) of each sample's weight by its class, or None."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, Mapping):
            try:
                factors = compute_class_weight(self.class_weight, classes=classes, y=classes)
            except (TypeError, ValueError, OverflowError) as error:
                raise ValueError(f"class_weight must hold a number for each class: {error}") from None
            if not (np.isfinite(factors).all() and (factors >= 0).all() and factors.any()):
                raise ValueError(f"class_weight must hold finite weights >= 0, not all 0, got {self.class_weight!r}")
        elif isinstance(self.class_weight, str) and self.class_weight == "balanced":
            counts = np.bincount(codes, weights=sample_weight)
            factors = counts.sum() / (len(classes) * counts)
        else:
            raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {shown(self.class_weight)}")
        return factors[codes]


def takes_indicators(loss: Loss) -> bool:
    """Whether a loss, or its binary form, is for indicator matrices."""
    return loss.targets != "labels" or loss in _BINARY_FORMS


class NumberEncoding(Encoding):
    """Numbers: fits are around the best constants, with targets in units of their own spreads."""

    kind = "numbers"

    def encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        """Validate numbers and return their targets."""
        values = y.astype(np.float64, copy=False).reshape(len(y), -1)
        check_input(values, "y")
        loss = regression_loss(self.loss, values, sample_weight)
        return Targets(y, values, loss, "vector" if y.ndim == 1 else "outputs", sample_weight=sample_weight)

    def level_and_unit(self, targets: Targets) -> UserY | None:
        """Return the levels and units of the targets, for losses of residuals alone."""
        return level_and_unit(targets, named=isinstance(self.loss, str))


@dataclass(frozen=True)
class LevelEncoding(Encoding):
    """Ordered levels; ``for_numbers`` is the estimator to take for numbers that are hardly levels."""

    for_numbers: str

    kind = "levels"
    classes_name = "levels_"

    def encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        """Validate levels and return their targets."""
        loss = get_loss(self.loss)
        if loss.targets == "labels" or loss.link != "logistic":
            raise ValueError(f"loss={loss.name!r} gives no probability of each level; use 'binary-logistic'")
        y = column_or_1d(y, warn=True)
        given, codes = distinct_labels(y)
        # Numbers that are equal up to rounding are one level.
        numbers = finite_numbers(as_targets(given, numeric=True, advice=LEVELS_FROM_TEXTS), "y")
        if given.dtype.kind in "iu":
            warn_of_merged_levels(given, numbers)
        levels, level = rounded_levels(numbers)
        codes = level[codes]
        self._check_number(levels)
        y = y if len(levels) == len(given) else levels[codes]
        values = encoded_codes(codes, len(levels), loss, ordinal=True)
        return Targets(y, values, loss, "ordinal", levels, sample_weight)

    def _check_number(self, levels: np.ndarray) -> None:
        """Refuse a single level and far too many; warn of many."""
        if len(levels) < 2:
            raise ValueError(f"y has a single level, {levels[0]}: there is nothing to learn; give at least two")
        if len(levels) > _MAX_LEVELS:
            raise ValueError(
                f"y has {len(levels)} levels, and each needs an output; at most {_MAX_LEVELS} are supported: "
                "round y, or use MultiOutputFMRegressor or MultiOutputPNRegressor"
            )
        if len(levels) > _MANY_LEVELS:
            warn_caller(
                f"y has {len(levels)} levels, from {levels[0]:g} to {levels[-1]:g}, and each gets an output: for "
                f"numbers take {self.for_numbers}, or round y"
            )


def warn_of_merged_levels(exact: np.ndarray, numbers: np.ndarray) -> None:
    """Warn of large integers, and of decimals, that are the same number in floating point."""
    pair = one_number(written(exact, numbers))
    if pair is not None:
        warn_caller(
            f"y has different values that are the same number, {pair[0]} and {pair[1]}: they are one level; give ranks "
            "of them, or categories with an order"
        )
