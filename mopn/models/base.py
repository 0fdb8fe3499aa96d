"""The common base of fitted models and of estimators that have one: fields, files, predictions, probabilities.

Ordinal regression is McRank as in section 6.5 of Blondel et al. (NIPS 2017), by several binary problems. Levels
r_1 < ... < r_{m+1} have m outputs, output c for the event y <= r_c; the paper has one more, for y <= r_{m+1}, which is
certain. The probabilities of a sample need not increase with c: if they cross, they are sorted (Chernozhukov,
Fernández-Val and Galichon, Econometrica, 2010), which increases no convex loss with respect to the true probabilities,
and does not change their sum, hence not the expectation of equally spaced levels.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from mopn.data.designs import Design, stored_design
from mopn.data.relation_design import RelationBlocks
from mopn.data.validation import finite_numbers
from mopn.losses.loss import LINKS, check_link
from mopn.models.files import write
from mopn.models.formula import Formula, dense_rows
from mopn.solvers.tools.checks import choice
from mopn.solvers.tools.decorators import quiet
from mopn.solvers.tools.display import Displayed
from mopn.tables.encoding import TableEncoding

_TARGET = choice(("outputs", "vector", "labels", "indicator", "ordinal"))
# Logistic probabilities of outputs below this are proportional to exp(output), and far from underflow.
_MAX_DEEP_OUTPUT = -500.0
# Entries up to which arrays are shown.
_MAX_SHOWN_ENTRIES = 3


class Fitted(ABC):
    """A model, or an estimator that has one."""

    @abstractmethod
    def _fitted_model(self) -> Any:
        """Return the model."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a plain ``.npz`` file, which :func:`mopn.load` reads without pickle.

        Parameters
        ----------
        path : str or path
            Name of the file. An older file is replaced in a single step, when the new one is complete.

        Raises
        ------
        OSError, TypeError
            If no file can be written in this folder; if the classes are not texts, numbers or dates, of one type.
        """
        write(path, self._fitted_model()._fields())


class Predictor(Displayed, Fitted):
    """A dataclass that turns outputs into predictions; ``encoding`` is of a table, whose columns become features."""

    link: str | None
    classes: np.ndarray | None
    target: str | None
    feature_names: np.ndarray | None
    encoding: TableEncoding | None = None

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns that X must have."""

    @abstractmethod
    def outputs_of_design(self, design: Design) -> np.ndarray:
        """Return the outputs (n, m) for a design (n, d) without dummies; overflow is not checked."""

    @abstractmethod
    def formula(self) -> Formula:
        """Return the outputs as a formula in the features, for exports and explanations.

        The features of a model of a table are the columns' encoded features.
        """

    def _fitted_model(self) -> Predictor:
        return self

    def _entries(self) -> dict[str, str]:
        """Return the shapes of long arrays and the values of other fields; fields that are None are left out."""
        found = {}
        for name, value in self._fields().items():
            if isinstance(value, np.ndarray):
                found[name] = str(value.tolist()) if value.size <= _MAX_SHOWN_ENTRIES else f"array{value.shape}"
            elif value is not None:
                found[name] = repr(value)
        return found

    @quiet()
    def outputs(self, X: Any) -> np.ndarray:
        """Return the outputs, the values of the polynomials, shape (n, m).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Raises
        ------
        TypeError
            If X is not numeric.
        ValueError
            If X has another number of columns than in training, or NaN or infinity, or numbers so large that outputs
            overflow.
        """
        design = self.design(X)
        outputs = self.outputs_of_design(design)
        finite = np.isfinite(outputs)
        if not finite.all():
            row = int(np.argmin(finite.all(axis=1)))
            raise ValueError(
                f"the outputs of row {row} of X overflow, as its numbers are too large; scale X as in training"
            )
        return outputs

    @property
    def has_probabilities(self) -> bool:
        """Whether the model has a link from outputs to probabilities."""
        return self.link not in (None, "log")

    @property
    def predicts_means(self) -> bool:
        """Whether predictions are means, whose logarithms are the outputs."""
        return self.link == "log" and self.target in ("outputs", "vector")

    @quiet()
    def predict(self, X: Any) -> np.ndarray:
        """Return labels or expected levels (n,), outputs (n, m) or (n,), or indicators (n, m), depending on ``target``.

        With the link ``"log"`` they are means, the exponentials of outputs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        return self.predictions_of(self.outputs(X))

    def predictions_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the predictions for outputs (n, m), of the shapes that ``predict`` returns."""
        if self.target == "labels":
            assert self.classes is not None
            codes = np.argmax(outputs, axis=1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).astype(np.intp)
            return self.classes[codes]
        if self.target == "ordinal":
            assert self.classes is not None
            return expected_level(self._probabilities(outputs), self.classes)
        if self.target == "indicator":
            return (outputs > 0).astype(np.int64)
        if self.predicts_means:
            outputs = LINKS["log"](outputs)
        return outputs[:, 0] if self.target == "vector" else outputs

    @quiet()
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes or levels (n, c), or that each output is positive (n, m).

        Probabilities of one-against-rest outputs are normalised to add up to 1.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Raises
        ------
        TypeError
            If the model has no link from outputs to probabilities.
        """
        return self.probabilities_of(self.outputs(X))

    def answers_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the numbers (n, c) that stand behind predictions, for outputs (n, m), which may be overwritten.

        These are probabilities, of two classes the second's alone, or predicted numbers; outputs of classes without
        probabilities.
        """
        if not self.has_probabilities:
            return LINKS["log"](outputs) if self.predicts_means else outputs
        P = self.probabilities_of(outputs)
        return P[:, 1:] if self.target == "labels" and P.shape[1] == 2 else P

    def probabilities_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities of ``predict_proba`` for outputs (n, m), which may be overwritten.

        Raises ``TypeError`` if the model has no link from outputs to probabilities.
        """
        if self.target == "ordinal":
            return level_probabilities(self._probabilities(outputs))
        if self.target != "labels" or self.link == "softmax":
            return self._probabilities(outputs)
        if outputs.shape[1] == 1:
            return self._probabilities(np.hstack([-outputs, outputs]))
        outputs += np.maximum(_MAX_DEEP_OUTPUT - outputs.max(axis=1, keepdims=True), 0.0)
        P = self._probabilities(outputs)
        return P / P.sum(axis=1, keepdims=True)

    def design(self, X: Any, name: str = "X") -> Design:
        """Return rows X as a design (n, d) of features, without dummies; ``name`` stands for X in messages.

        Raises ``ValueError`` for another number of columns than in training, or names in another order.
        """
        design = X.design if isinstance(X, RelationBlocks) else stored_design(X, name)
        if design.shape[1] != self.n_features:
            raise ValueError(f"{name} has {design.shape[1]} features, but the model was trained with {self.n_features}")
        if self.feature_names is not None:
            for column, feature in zip(getattr(X, "columns", ()), self.feature_names, strict=False):
                if column != feature:
                    raise ValueError(f"{name} has the column {column!r} in the place of {str(feature)!r}; reorder them")
        return design

    def cells(self, X: Any) -> np.ndarray:
        """Return the values in the rows and columns of X, for plots."""
        return dense_rows(self.design(X))

    def _probabilities(self, outputs: np.ndarray) -> np.ndarray:
        if not self.has_probabilities:
            raise TypeError(
                "the model has no link from outputs to probabilities, as the loss that it was trained with is not a "
                "probability model; use loss='logistic' or 'binary-logistic', or a Loss that declares a link"
            )
        return LINKS[str(self.link)](outputs)

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _set(self, **values: Any) -> None:
        """Set fields of the frozen dataclass, when it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_target(self, m: int) -> None:
        self._set(feature_names=check_names(self.feature_names, self.n_features, "feature_names"))
        check_link(self.link)
        classes = check_labels(self.classes)
        if self.target is None:
            self._set(target="outputs" if classes is None else "labels")
        _TARGET(self.target, "target")
        got = None if classes is None else classes.shape
        if self.target == "vector" and m != 1:
            raise ValueError(f"target='vector' is for a single output, got {m} outputs")
        if self.target == "ordinal":
            if classes is None or classes.shape != (m + 1,):
                raise ValueError(f"{m} outputs of ordered levels need classes of shape ({m + 1},), got {got}")
            if classes.dtype.kind not in "iuf" or not np.all(classes[:-1] < classes[1:]):
                raise ValueError(f"classes of ordered levels must be ascending numbers, got {classes!r}")
        count = 2 if m == 1 else m
        if self.target == "labels" and (classes is None or classes.shape != (count,)):
            raise ValueError(f"labels from {m} outputs need classes of shape ({count},), got {got}")


def fitted_model(value: Any) -> Any:
    """Return a model as it is, or the model of a fitted estimator; ``TypeError`` for anything else."""
    if not isinstance(value, Fitted):
        advice = "; give its last step, pipeline[-1]" if hasattr(value, "steps") else ""
        raise TypeError(
            f"model must be a Model, a FactorizationModel or a fitted estimator, got {type(value).__name__}{advice}"
        )
    return value._fitted_model()


def common_offset(offset: np.ndarray | None) -> np.ndarray | None:
    """Return the offset (m,) that all samples share, or None; ``ValueError`` if it differs between samples."""
    if offset is None:
        return None
    if not np.all(offset == offset[0]):
        raise ValueError("the problem's offset differs between samples, so it cannot be part of a model")
    return np.array(offset[0])


def check_scale(value: Any, d: int, name: str = "scale") -> np.ndarray:
    """Return the sizes (d,) of the features."""
    scale = finite_numbers(value, name)
    if scale.shape != (d,):
        raise ValueError(f"{name} must hold one number per feature, {d} in all, got shape {scale.shape}")
    return scale


def check_names(names: Any, count: int, name: str) -> np.ndarray | None:
    if names is None:
        return None
    labels = list(names) if np.iterable(names) and not isinstance(names, str) else []
    if len(labels) != count:
        got = f"{len(labels)} names" if labels else repr(names)
        raise ValueError(f"{name} must be a sequence of {count} names, got {got}")
    if not all(isinstance(label, str) for label in labels):
        raise TypeError(f"{name} must be strings, got {next(x for x in labels if not isinstance(x, str))!r}")
    return np.array(labels, dtype=np.str_)


def check_labels(classes: Any) -> np.ndarray | None:
    if classes is None:
        return None
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        got = f"shape {classes.shape}" if isinstance(classes, np.ndarray) else type(classes).__name__
        raise ValueError(f"classes must be an array of labels of shape (m,), got {got}")
    if classes.dtype.kind in "fM" and not np.isfinite(classes).all():
        raise ValueError("classes contains NaN or infinity")
    return classes


def feature_groups(groups: Any, labels: Sequence[str] | np.ndarray | None, d: int, name: str) -> list[tuple[int, ...]]:
    """Return groups of features, which are given by index or by name, as tuples of indices."""
    given = list(groups) if np.iterable(groups) else [groups]
    wanted = f"{name} must be tuples of distinct indices below {d}, or of names"
    return [feature_indices(group, labels, d, wanted) for group in given]


def feature_indices(group: Any, labels: Sequence[str] | np.ndarray | None, d: int, wanted: str) -> tuple[int, ...]:
    """Return features, which are given by index or by name, as indices; at least one."""
    names = [] if labels is None else list(map(str, labels))
    numbers: dict[Any, int] = {label: j for j, label in enumerate(names)}
    if len(numbers) < len(names):
        raise ValueError("names must be distinct, so that features can be found by them")
    try:
        indices = tuple(numbers.get(j, j) for j in group)
        right = all(isinstance(j, (int, np.integer)) and type(j) is not bool and 0 <= j < d for j in indices)
    except TypeError:  # no group, or of objects that cannot be names
        right = False
    if not right or not indices or len(set(indices)) < len(indices):
        raise ValueError(f"{wanted}; got {group!r}")
    return indices


def cumulative_targets(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """Return Y (n, n_levels - 1): 1 where the code (n,) of the level is at most the column's index, else -1."""
    return np.where(codes[:, None] <= np.arange(n_levels - 1), 1.0, -1.0)


def level_probabilities(cumulative: np.ndarray) -> np.ndarray:
    """Return the probabilities of the levels (n, m + 1) from the probabilities of y <= r_c (n, m), which may cross."""
    ordered = np.sort(cumulative, axis=1)
    n = len(ordered)
    return np.diff(ordered, axis=1, prepend=np.zeros((n, 1)), append=np.ones((n, 1)))


def expected_level(cumulative: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return sum_c r_c p(y = r_c), the expectation of y (n,)."""
    with np.errstate(over="ignore"):
        gaps = np.diff(levels)
    if np.isfinite(gaps[0]) and np.all(gaps == gaps[0]):
        # By parts: the sum of the probabilities is enough, in any order, and quick.
        return levels[-1] - cumulative @ gaps
    return level_probabilities(cumulative) @ levels
