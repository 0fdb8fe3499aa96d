"""The choice of a scale for every field by the loss on held-out samples, each fit going on from the best before it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import column_or_1d

from mopn.core.regularizers import Ratio
from mopn.data.relation_blocks import RelationBlocks, design_of, multiplied
from mopn.estimators.base import NetworkEstimator
from mopn.estimators.folds import ended_well
from mopn.estimators.single_output import SingleOutputEstimator
from mopn.estimators.strength_choice import splits
from mopn.estimators.targets import Targets, in_canonical_order, merge_equal_samples
from mopn.models.fields import feature_groups
from mopn.solvers import minimize
from mopn.solvers.tools.checks import count, shown

__all__ = ["FieldSearch", "Trial", "field_of_features", "in_one_order", "readied", "strength_of_ones"]

# A step halves or doubles the penalty of a field: penalties are squares.
_STEP = math.sqrt(2.0)
_MOST_STEPS = 6
# A tenth of the samples is held out, or a third of few.
_PARTS, _PARTS_OF_FEW, _FEW = 10, 3, 1000
# Iterations of a refit of networks: of the first fit, and of those that go on from it.
_FIRST_ITER, _ITER = 100, 20
# The largest number of units of networks that are to grow until they are proven.
_UNITS = 50


def field_of_features(fields: Any, X: Any, d: int, names: Any = ()) -> np.ndarray:
    """Return the number (d,) of every feature's field.

    Parameters
    ----------
    fields : sequence of int, mapping of name to columns, or None
        Sizes of fields that follow each other; or the columns of each field, by index or name. None for the tables of
        relation blocks, and for a single field of all features of other X.
    X : array, sparse matrix or RelationBlocks
    d : int
        Number of features.
    names : sequence of str, optional
        Names of the features, if they have some.

    Raises
    ------
    TypeError, ValueError
        If they do not hold every feature once.
    """
    if fields is None:
        fields = np.diff(X.design.cuts) if isinstance(X, RelationBlocks) else [d]
    if isinstance(fields, Mapping):
        return _of_columns(list(fields.values()), d, names)
    if not np.iterable(fields) or isinstance(fields, str | bytes):
        raise TypeError(f"fields must be sizes of fields, or a mapping from names to columns, got {shown(fields)}")
    sizes = [count()(size, "fields: a size") for size in fields]
    if sum(sizes) != d:
        raise ValueError(f"fields must be sizes that add up to the {d} features, got {shown(fields)}: {sum(sizes)}")
    return np.repeat(np.arange(len(sizes)), sizes)


def _of_columns(fields: list[Any], d: int, names: Any) -> np.ndarray:
    groups = feature_groups(fields, names, d, "fields")
    found = np.concatenate([np.zeros(0, np.intp), *map(np.array, groups)]).astype(np.intp)
    if not np.array_equal(np.sort(found), np.arange(d)):
        raise ValueError(f"fields must hold each of the {d} features once, got {len(found)} in {len(groups)} fields")
    numbers = np.empty(d, np.intp)
    numbers[found] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return numbers


def readied(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets]:
    """Return validated samples of an estimator, and their targets."""
    X, y, sample_weight, _ = estimator._samples(X, y, sample_weight)
    if isinstance(estimator, NetworkEstimator):
        return X, estimator._encode(y, sample_weight)
    y = column_or_1d(y, warn=True)
    values = estimator._encode(y)
    estimator.loss_ = estimator._loss(values)
    form = "labels" if is_classifier(estimator) else "vector"
    return X, Targets(y, values, estimator.loss_, form, sample_weight=sample_weight)


def strength_of_ones(estimator: Any, X: Any, targets: Targets) -> dict[str, float | None]:
    """Return the strength with scales of ones as a parameter, if it is a ratio, else no parameter.

    The smallest strength whose solution is zero grows with the scales, so a ratio to it would undo them.
    """
    if not isinstance(getattr(estimator, "strength", None), Ratio):
        return {}
    return {"strength": estimator._problem(*merge_equal_samples(X, targets)).strength}


def in_one_order(X: Any, targets: Targets) -> tuple[Any, Targets, np.ndarray]:
    """Return the samples in an order that neither theirs nor the form of X changes, and the number of each unit."""
    design, direction = design_of(X), np.random.default_rng(0).normal(size=(1, X.shape[1]))
    # Numbers that overflow here are refused by the fits.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        sizes = np.sqrt(design.adjoint_squares(np.ones((X.shape[0], 1))))
        projected = design.project(direction / np.where(sizes > 0.0, sizes, 1.0))[:, 0]
        # The last digits depend on the form of X.
        projected = (projected / (np.abs(projected).max(initial=0.0) or 1.0)).round(9)
    return in_canonical_order(X, targets, np.unique(projected, return_inverse=True)[1])


def _go_on(estimator: Any, X: Any, targets: Targets) -> None:
    """Fit an estimator to samples, from where it is if it is fitted, without proofs."""
    fit = _fit_network if isinstance(estimator, NetworkEstimator) else _fit_one_output
    vars(estimator).update(fit(estimator, X, targets, hasattr(estimator, "model_")))


def _fit_network(estimator: NetworkEstimator, X: Any, targets: Targets, fitted: bool) -> dict[str, Any]:
    problem = estimator._problem(X, targets)
    policy = replace(estimator._policy, path_iter=_ITER if fitted else _FIRST_ITER)
    solver = policy.path_solver(problem, 1, refit=estimator.refit, max_units=estimator.max_units or _UNITS)
    start = estimator._previous(problem, targets) if fitted else None
    network = minimize(problem, solver, start=start, tol=estimator.tol, max_iter=1, max_time=estimator.max_time)
    return estimator._attributes(problem, targets, ended_well(network))


def _fit_one_output(estimator: SingleOutputEstimator, X: Any, targets: Targets, fitted: bool) -> dict[str, Any]:
    seed = estimator._seed()
    problem = estimator._problem(multiplied(X, estimator._lengths), targets.values, targets.weights, seed)
    start = estimator._start(problem) if fitted else None
    result = estimator._solve(problem, estimator._solver(), start, seed, max_time=estimator.max_time)
    return estimator._attributes(problem, ended_well(result))


@dataclass(frozen=True)
class Trial:
    """A fit with some scales.

    Attributes
    ----------
    scales : ndarray of shape (F,)
    fitted : estimator
    losses : ndarray of shape (n,)
        Of the held-out units, times their weights.
    """

    scales: np.ndarray
    fitted: Any
    losses: np.ndarray

    def is_better_than(self, other: Trial) -> bool:
        """Whether the loss is smaller by more than a standard error of the difference, which several units have."""
        gains = other.losses - self.losses
        return len(gains) > 1 and bool(gains.sum() > math.sqrt(len(gains)) * gains.std(ddof=1))


class FieldSearch:
    """Fits with several scales of the fields, of which those are kept that are better on held-out samples.

    Parameters
    ----------
    estimator : estimator
        It is not fitted, and its parameters are valid.
    X, targets
        As of ``readied``.
    fields : ndarray of shape (d,)
        As of ``field_of_features``.

    Attributes
    ----------
    ones, best : Trial
        That of ones, and the one that is chosen.
    scales : list of ndarray of shape (F,)
        What was tried: ones first, and the choice last if it is another.
    losses : list of float
        Mean losses of held-out samples with these.
    """

    def __init__(self, estimator: Any, X: Any, targets: Targets, fields: np.ndarray) -> None:
        X, targets, units = in_one_order(X, targets)
        parts = _PARTS_OF_FEW if units[-1] < _FEW else _PARTS
        part = next(splits(targets, parts, units), None)
        if part is None:
            raise ValueError(f"too few samples to hold some out: {len(targets.y)}; give more of each class")
        train, test = part
        self._fields = fields
        self._training = merge_equal_samples(X[train], targets.rows(train))
        self._held_out = X[test], targets.rows(test)
        self._units = np.unique(units[test], return_inverse=True)[1]
        self.scales: list[np.ndarray] = []
        self.losses: list[float] = []
        F = int(fields.max()) + 1
        self.best = self.ones = self._trial(estimator, np.ones(F))
        # All together first, which is the choice of the strength, then one after the other.
        for direction in np.unique([np.ones(F), *np.eye(F)], axis=0)[::-1]:
            self._search(_STEP**direction)
        # Fits that go on may end in better minima, or further from one, than the last fit to all samples.
        if self.best is not self.ones:
            anew = self._trial(estimator, self.best.scales)
            self.best = anew if anew.losses.sum() < self.ones.losses.sum() else self.ones

    def _search(self, step: np.ndarray) -> None:
        """Multiply the scales by a step, or divide them by it, as long as this is better."""
        start = self.best
        for factor in (step, 1.0 / step):
            for _ in range(_MOST_STEPS):
                trial = self._trial(self.best.fitted, self.best.scales * factor)
                if not trial.is_better_than(self.best):
                    break
                self.best = trial
            if self.best is not start:
                break

    def _trial(self, estimator: Any, scales: np.ndarray) -> Trial:
        """Return the fit of an estimator, or what it becomes where it is fitted, with some scales."""
        fitted = copy(estimator)
        fitted._lengths = scales[self._fields]
        _go_on(fitted, *self._training)
        X, targets = self._held_out
        outputs, loss = fitted.model_.outputs(X), targets.loss
        y = targets.values if loss.targets == "labels" else targets.values.reshape(outputs.shape)
        losses = loss.value(y, outputs)
        losses = losses if targets.weights is None else targets.weights * losses
        trial = Trial(scales, fitted, np.bincount(self._units, losses))
        self.scales.append(scales)
        self.losses.append(float(trial.losses.sum() / targets.total_weight))
        return trial
