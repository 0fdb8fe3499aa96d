"""The choice of the strength by the loss on held-out samples, along a warm path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mopn.core.regularizers import Ratio
from mopn.estimators.targets import Targets, merge_equal_samples
from mopn.models.multi_output import Model
from mopn.regularization_path import check_strengths, solutions

__all__ = ["choose_strength"]

# Ratios to choose from.
_RATIOS = tuple(map(Ratio, (0.03, 0.01, 0.003, 0.001)))
# Every sample is held out once, or, of more samples than this, those of the first part alone.
_PARTS, _FEW = 3, 1000
# Of each refit, which starts at the network of the strength before: scores differ long before the end.
_ITERATIONS = 6


def choose_strength(estimator: Any, X: Any, targets: Targets) -> float:
    """Return the strength of least loss on held-out samples, for all samples.

    Parameters
    ----------
    estimator : NetworkEstimator
        Whose problems are solved.
    X : array or sparse matrix of shape (n, d)
    targets : Targets
    """
    policy = replace(estimator._policy, path_iter=_ITERATIONS)
    strengths = check_strengths(estimator._problem(X, targets), _RATIOS)
    losses = np.zeros(len(strengths))
    for train, test in _splits(targets):
        training, held_out = targets.rows(train), targets.rows(test)
        problem = estimator._problem(*merge_equal_samples(X[train], training))
        units = estimator.max_units
        solver = policy.path_solver(problem, len(strengths), refit=estimator.refit, max_units=units)
        part = training.total_weight / targets.total_weight
        path = solutions(problem, part * strengths, solver, tol=estimator.tol, max_iter=1)
        for i, (_, network) in enumerate(path):
            outputs = Model.from_result(problem, network).outputs(X[test])
            values = held_out.values if targets.loss.targets == "labels" else held_out.values.reshape(outputs.shape)
            weights = np.ones(len(test)) if held_out.weights is None else held_out.weights
            losses[i] += weights @ problem.losses.loss.value(values, outputs)
    return float(strengths[np.argmin(losses)])


def _splits(targets: Targets) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices of training and of held-out samples, equal parts of each class; an only sample is trained on."""
    rng, n = np.random.default_rng(0), len(targets.y)
    labels = targets.y if targets.form == "labels" else np.zeros(n)
    parts = np.full(n, -1)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        if len(members) > 1:
            parts[members] = (np.arange(len(members)) + rng.integers(_PARTS)) % _PARTS
    for part in range(_PARTS if n <= _FEW else 1):
        test = parts == part
        if test.any():
            yield np.flatnonzero(~test), np.flatnonzero(test)
