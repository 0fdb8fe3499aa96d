"""The choice of the strength of a table's network: the path of least loss on held-out samples."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import IN_MEMORY, Chunks, LocalChunks, stored_numbers
from mopn.data.row_blocks import RawBlock, RowBlocks
from mopn.estimators.callbacks import say
from mopn.estimators.folds import Fold
from mopn.estimators.network_fit import NetworkFit
from mopn.estimators.targets import Targets, in_canonical_order, targets_of_problem
from mopn.models.multi_output import Model
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import check_strengths
from mopn.solvers import Result, Status
from mopn.solvers.tools.budgets import Deadline

# Of the time left, a choice by held-out samples takes at most this part, and the last fit the rest.
SHARE_OF_CHOICE = 1 / 3
# Ratios to choose from.
RATIOS = tuple(map(Ratio, (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)))
# Every sample is held out once, or, of more samples than this, only the first part.
PARTS, FEW = 3, 1000
# Relative increase of the loss in the first of several folds after which the others are not asked.
_CLEARLY = 0.05
# Held-out rows that are copied at once.
_ROWS = 4096
# Of each refit: scores differ long before the end, but of six, without a metric, networks of many classes stopped so
# early that smaller strengths seemed to fit no noise.
_ITERATIONS = 8
# The end of a fit by one of these says more than the end of the choice before it.
_INTERRUPTIONS = (Status.INTERRUPTED, Status.CALLBACK_FAILED, Status.FAILED, Status.NONFINITE)


class Choice(NamedTuple):
    """The strength of a fit, the early end of its choice (by time or Ctrl-C), and a model of most of the samples."""

    strength: float | Ratio
    ended: Status | None = None
    model: Model | None = None

    def overrule(self, result: Result) -> None:
        """Give the result of the fit the status that ended the choice, unless its own says more."""
        if self.ended is not None and result.status not in _INTERRUPTIONS:
            result.status, result.message, result.success = self.ended, self.ended.message, False


def choose_strength(fit: NetworkFit, X: Any, targets: Targets, deadline: Deadline) -> Choice:
    """Return the strength of least loss on held-out samples, scaled to all samples.

    The paths of all folds go on together, from the largest strength on, until the loss is larger than before: beyond,
    networks start to overfit, and take longer. Out of time, or after Ctrl-C, it is the best strength so far; the
    largest, whose fit is the shortest, if there was no time at all. Ctrl-C before the first model is raised.
    """
    say(fit.options.verbose, f"choice of the strength among {len(RATIOS)}, by the loss on held-out samples")
    strengths, weight, n = _of_all(fit.problem_of_distinct_samples(X, targets)[0])
    losses: list[float] = []
    folds: list[Fold] = []
    ended = None
    try:
        folds = _folds(fit, X, targets, weight, n, deadline)
        for loss in _losses([fold.walk(strengths, deadline) for fold in folds]):
            losses.append(loss)
            units = len(folds[0].networks[len(losses) - 1].basis)
            ratio = RATIOS[len(losses) - 1]
            words = f"{loss:.6g}" if math.isfinite(loss) else "clearly larger"
            say(fit.options.verbose, f"  strength {len(losses)}: {ratio!r}, loss {words}, {units} units")
    except KeyboardInterrupt:
        if not (folds and folds[0].networks):
            raise
        ended = Status.INTERRUPTED
    if ended is None and (not folds or any(run.status == Status.MAX_TIME for fold in folds for run in fold.networks)):
        ended = Status.MAX_TIME
    best = int(np.argmin(losses)) if losses else 0
    found = folds[0].networks if folds else []
    return Choice(float(strengths[best]), ended, Model.from_result(folds[0].problem, found[best]) if found else None)


def _losses(walks: list[Iterator[tuple[Result, float]]]) -> Iterator[float]:
    """Yield the loss on held-out samples of all folds, strength by strength, until it is larger than before.

    Where it is clearly so in the first folds, the others are left out: it then is yielded as infinite.
    """
    least = np.full(len(walks), np.inf)
    while walks:  # none out of time
        sums = np.zeros(len(walks))
        for j, walk in enumerate(walks):
            step = next(walk, None)
            if step is None:  # likewise
                return
            sums[j:] += step[1]
            if j + 1 < len(walks) and sums[j] > least[j] + _CLEARLY * abs(least[j]):
                yield math.inf
                return
        yield sums[-1]
        if sums[-1] > least[-1]:
            return
        least = sums


def _of_all(problem: NetworkProblem) -> tuple[np.ndarray, float, int]:
    """Return the strengths, the weight and the number of all samples, of whose problem nothing else is kept."""
    return check_strengths(problem, RATIOS), problem.losses.total_weight, problem.losses.n


def _folds(fit: NetworkFit, X: Any, targets: Targets, weight: float, n: int, deadline: Deadline) -> list[Fold]:
    """Return the folds, as far as there is time for their problems."""
    folds: list[Fold] = []
    if deadline.is_over:
        return folds
    if isinstance(X, RowBlocks | Chunks):
        X, targets = _sample(X, targets)
        n = len(targets.y)
    X, targets, groups = in_canonical_order(X, targets)
    for train, test in islice(splits(targets, PARTS, groups), PARTS if n <= FEW else 1):
        folds.append(Fold(fit, X, targets, weight, train, test, _held_out_loss, _ITERATIONS))
        _ = folds[-1].problem  # which takes time
        if deadline.is_over:
            break
    if not folds:
        raise ValueError("y: strength='auto' holds out samples, but every class has a single one; give a number")
    return folds


def _held_out_loss(fold: Fold, network: Result) -> float:
    """Return the loss of a network on held-out rows, copying few at a time."""
    # Outputs for targets in the problem's units, so that each weighs as in the fit.
    problem = fold.problem
    model = Model.from_result(problem.with_user_y(None), network)
    loss = problem.losses.loss
    total = 0.0
    for first in range(0, len(fold.test), _ROWS):
        rows = fold.test[first : first + _ROWS]
        part, outputs = fold.targets.rows(rows), model.outputs(fold.X[rows])
        y = part.values if problem.user_y is None else problem.user_y.targets(part.values)
        total += part.sum(loss.value(y, outputs))
    return total


def splits(targets: Targets, n_parts: int, groups: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices of training and of held-out samples, equal parts of each class; an only sample is trained on.

    Samples of one group (n,) are in one part, and have one target. Where every class has a single group, so that none
    could be held out, rows repeat by nature, and each sample is a group.
    """
    parts = _parts(targets, n_parts, groups)
    if parts.max() < 0:
        parts = _parts(targets, n_parts, np.arange(len(groups)))
    for part in range(n_parts):
        test = parts == part
        if test.any():
            yield np.flatnonzero(~test), np.flatnonzero(test)


def _parts(targets: Targets, n_parts: int, groups: np.ndarray) -> np.ndarray:
    """Return the part (n,) that holds out each sample, -1 for none."""
    rng = np.random.default_rng(0)
    labels = targets.y if targets.form in ("labels", "ordinal") else np.zeros(len(groups))
    # Levels that are all different make a regression.
    if targets.form == "ordinal" and len(np.unique(labels)) == len(np.unique(groups)):
        labels = np.zeros(len(groups))
    parts = np.full(len(groups), -1)
    firsts = np.unique(labels, return_index=True)[1]
    for label in labels[np.sort(firsts)]:  # as they come, whatever their names
        rows = np.flatnonzero(labels == label)
        found, group = np.unique(groups[rows], return_inverse=True)
        number = len(found)
        if number > 1:
            part = np.empty(number, dtype=int)
            part[rng.permutation(number)] = (np.arange(number) + rng.integers(n_parts)) % n_parts
            parts[rows] = part[group]
    return parts


def _sample(X: RowBlocks | Chunks, targets: Targets) -> tuple[Any, Targets]:
    """Return a random sample of the rows, of as many as there is memory for; mostly all of them."""
    X, y, weights = targets_of_problem(X, targets)
    chunks = LocalChunks(X.with_targets(y, weights)) if isinstance(X, RowBlocks) else X
    stored = chunks.reduce(_stored_numbers, operator.add)
    X, values, weights = chunks.sample(min(1.0, IN_MEMORY / max(stored, 1)), 0)
    y = values
    if targets.form in ("labels", "ordinal"):
        y = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    weights = None if (weights == 1.0).all() else weights
    return X, replace(targets, y=y, values=values, sample_weight=weights, class_factor=None)


def _stored_numbers(block: RawBlock) -> int:
    return stored_numbers(block.X)
