"""The choice of the strength by the loss on held-out samples, along a warm path."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import IN_MEMORY, Chunks, LocalChunks, stored_numbers
from mopn.data.row_blocks import RawBlock, RowBlocks
from mopn.estimators.callbacks import say
from mopn.estimators.targets import Targets, in_canonical_order, merge_equal_samples
from mopn.losses.losses import Loss
from mopn.models.multi_output import Model
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import check_strengths, solutions
from mopn.solvers import Result, Status
from mopn.solvers.tools.deadline import Deadline

__all__ = ["Choice", "choose_strength", "splits"]

# Ratios to choose from.
_RATIOS = tuple(map(Ratio, (0.1, 0.03, 0.01, 0.003, 0.001)))
# Every sample is held out once, or, of more samples than this, those of the first part alone.
_PARTS, _FEW = 3, 1000
# Held-out rows that are copied at once.
_ROWS = 4096
# Of each refit, which starts at the network of the strength before: scores differ long before the end, but with half of
# them networks of many classes stop so early that smaller strengths seem to fit no noise.
_ITERATIONS = 12


class Choice(NamedTuple):
    """The strength of a fit, given or that of least loss on held-out samples.

    Attributes
    ----------
    strength : float or Ratio
    ended : Status or None
        What ended the choice before its end: ``MAX_TIME`` or ``INTERRUPTED``.
    model : Model or None
        The model of this strength of most of the samples, if there is one.
    """

    strength: float | Ratio
    ended: Status | None = None
    model: Model | None = None

    def time_left(self, deadline: Deadline) -> float:
        """Return the seconds for the fit: none after Ctrl-C."""
        return 0.0 if self.ended == Status.INTERRUPTED else deadline.left

    def overrule(self, result: Result) -> None:
        """Give the result of the fit the status that ended the choice, unless its own says more."""
        if self.ended is not None and result.status not in _INTERRUPTIONS:
            result.status, result.message, result.success = self.ended, self.ended.message, False


def choose_strength(estimator: Any, X: Any, targets: Targets, deadline: Deadline) -> Choice:
    """Return the strength of least loss on held-out samples, for all samples.

    The paths of all parts go on together, from the largest strength on, until the loss is larger than before: beyond,
    networks fit ever more of what the samples have by chance, and take longer. Out of time, or after Ctrl-C, it is the
    best strength so far; the largest, whose fit is the shortest, if there was no time at all.

    Parameters
    ----------
    estimator : NetworkEstimator
        Whose problems are solved.
    X : array or sparse matrix of shape (n, d), RowBlocks or Chunks
    targets : Targets
    deadline : Deadline
        Of the choice.

    Raises
    ------
    ValueError
        If there is no sample to hold out.
    KeyboardInterrupt
        After Ctrl-C, if there is no model yet.
    """
    say(estimator.verbose, f"choice of the strength among {len(_RATIOS)}, by the loss on held-out samples")
    strengths, weight, n = _of_all(estimator._problem_of_all(X, targets)[0])
    losses: list[float] = []
    seen: list[_Seen] = []
    ended = None
    try:
        for of_parts in zip(*_paths(estimator, X, targets, strengths, weight, n, deadline, seen), strict=False):
            losses.append(sum(of_parts))
            _report(estimator.verbose, len(losses), losses[-1], seen)
            if losses[-1] > min(losses):
                break
    except KeyboardInterrupt:
        if not (seen and seen[0]):
            raise
        ended = Status.INTERRUPTED
    if ended is None and (not seen or any(status == Status.MAX_TIME for part in seen for _, status in part)):
        ended = Status.MAX_TIME
    best = int(np.argmin(losses)) if losses else 0
    return Choice(float(strengths[best]), ended, seen[0][best][0] if seen and seen[0] else None)


def _paths(
    estimator: Any,
    X: Any,
    targets: Targets,
    strengths: np.ndarray,
    weight: float,
    n: int,
    deadline: Deadline,
    seen: list[_Seen],
) -> list[Iterator[float]]:
    """Return the losses along the path of each part, as far as there is time for their problems."""
    policy = replace(estimator._policy, path_iter=_ITERATIONS)
    parts = _parts_of_blocks if isinstance(X, RowBlocks | Chunks) else _parts
    paths: list[Iterator[float]] = []
    if deadline.is_over:
        return paths
    for problem, loss in parts(estimator, X, targets, n):
        solver = policy.path_solver(problem, len(strengths), refit=estimator.refit, max_units=estimator.max_units)
        share = problem.losses.total_weight / weight
        networks = solutions(problem, share * strengths, solver, deadline, tol=estimator.tol, max_iter=1)
        seen.append([])
        paths.append(_losses(networks, loss, seen[-1]))
        if deadline.is_over:
            break
    if not paths:
        raise ValueError("strength='auto' holds out samples, but y has only one of every class; give a number")
    return paths


def _losses(
    networks: Iterator[tuple[NetworkProblem, Result]], loss: Callable[[Model], float], seen: _Seen
) -> Iterator[float]:
    """Yield the losses of the networks of a path, which are computed as they are asked for."""
    for problem, network in networks:
        seen.append((Model.from_result(problem, network), network.status))
        if network.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        yield loss(seen[-1][0])


def _report(verbose: int, number: int, loss: float, seen: list[_Seen]) -> None:
    """Print what is known of a strength, in a line."""
    units = f", {len(seen[0][-1][0].basis)} units" if seen[0] else ""
    say(verbose, f"  strength {number}: {_RATIOS[number - 1]!r}, loss {loss:.6g}{units}")


def _of_all(problem: NetworkProblem) -> tuple[np.ndarray, float, int]:
    """Return the strengths, the weight and the number of all samples, of whose problem nothing else is kept."""
    return check_strengths(problem, _RATIOS), problem.losses.total_weight, problem.losses.n


# What ended a fit says more than what ended the choice before it.
_INTERRUPTIONS = (Status.INTERRUPTED, Status.CALLBACK_FAILED, Status.FAILED, Status.NONFINITE)
# The models of a path, and the statuses of their runs.
_Seen = list[tuple[Model, Status]]
# A problem of training samples, and the loss of a model on held-out ones.
_Part = tuple[NetworkProblem, Callable[[Model], float]]


def _parts(estimator: Any, X: Any, targets: Targets, n: int) -> Iterator[_Part]:
    X, targets, units = in_canonical_order(X, targets)
    for train, test in islice(splits(targets, _PARTS, units), _PARTS if n <= _FEW else 1):
        problem = estimator._problem(*merge_equal_samples(X[train], targets.rows(train)))
        yield problem, partial(_loss_of_rows, X, targets, test, problem.losses.loss)


def _loss_of_rows(X: Any, targets: Targets, rows: np.ndarray, loss: Loss, model: Model) -> float:
    """Return the loss of some rows, of which few are copied at a time."""
    total = 0.0
    for first in range(0, len(rows), _ROWS):
        some = rows[first : first + _ROWS]
        part = targets.rows(some)
        total += _loss_of_block(RawBlock(0, X[some], part.values, part.weights), model, loss)
    return total


def _loss_of_block(block: RawBlock, model: Model, loss: Loss) -> float:
    outputs = model.outputs(block.X)
    y = block.y if loss.targets == "labels" else np.reshape(block.y, outputs.shape)
    values = loss.value(y, outputs)
    return float(values.sum() if block.sample_weight is None else block.sample_weight @ values)


def splits(targets: Targets, n_parts: int, units: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices of training and of held-out samples, equal parts of each class; an only unit is trained on.

    Samples of one unit (n,) are in one part, and have one target. Units are numbered as they come.
    """
    first = np.unique(units, return_index=True)[1]
    rng, n = np.random.default_rng(0), len(first)
    labels = targets.y[first] if targets.form in ("labels", "ordinal") else np.zeros(n)
    # Levels that are all different are those of a regression.
    if targets.form == "ordinal" and len(np.unique(labels)) == n:
        labels = np.zeros(n)
    parts = np.full(n, -1)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        if len(members) > 1:
            parts[members] = (np.arange(len(members)) + rng.integers(n_parts)) % n_parts
    parts = parts[units]
    for part in range(n_parts):
        test = parts == part
        if test.any():
            yield np.flatnonzero(~test), np.flatnonzero(test)


def _parts_of_blocks(estimator: Any, X: RowBlocks | Chunks, targets: Targets, n: int) -> Iterator[_Part]:
    """Yield the parts of a random sample of the rows, of as many as there is memory for; mostly all of them."""
    X, y, weights = estimator._data(X, targets)
    chunks = LocalChunks(X.with_targets(y, weights)) if isinstance(X, RowBlocks) else X
    stored = chunks.reduce(_stored_numbers, operator.add)
    X, values, weights = chunks.sample(min(1.0, IN_MEMORY / max(stored, 1)), 0)
    y = values
    if targets.form in ("labels", "ordinal"):
        y = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    weights = None if (weights == 1.0).all() else weights
    sample = replace(targets, y=y, values=values, sample_weight=weights, class_factor=None)
    yield from _parts(estimator, X, sample, len(y))


def _stored_numbers(block: RawBlock) -> int:
    return stored_numbers(block.X)
