"""The choice of the strength of a table's network: the path of least loss on held-out samples."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import IN_MEMORY, Chunks, LocalChunks, stored_numbers
from mopn.data.row_blocks import RawBlock, RowBlocks
from mopn.estimators.callbacks import print_progress
from mopn.estimators.folds import HeldOut, parts_held_out
from mopn.estimators.network_fit import NetworkFit
from mopn.estimators.strength_walk import RowLosses, until_losses_rise, walk
from mopn.estimators.targets import Targets, in_canonical_order, targets_of_problem
from mopn.models.multi_output import Model
from mopn.regularization_path import check_strengths
from mopn.solvers import Result, Status
from mopn.solvers.tools.budgets import Deadline

# The part of the time left that a choice by held-out samples may take; the last fit takes the rest.
SHARE_OF_CHOICE = 1 / 3
# Ratios to choose from.
RATIOS = tuple(map(Ratio, (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)))
# Relative increase of the loss in the first of several folds after which the others are not asked.
_CLEARLY = 0.05
# Iterations per refit. Losses differ long before the end, but six, without a metric, stopped networks of many classes
# so early that smaller strengths seemed to fit no noise (benchmarks/tables).
_ITERATIONS = 8


class Choice(NamedTuple):
    """The strength of a fit, the early end of its choice (by time or Ctrl-C), and a model of most of the samples."""

    strength: float | Ratio
    ended: Status | None = None
    model: Model | None = None

    def overrule(self, result: Result) -> None:
        """Give the result of the fit the status that ended the choice, unless its own says more."""
        if self.ended is not None and not result.status.broke_off:
            result.status, result.message, result.success = self.ended, self.ended.message, False


def choose_strength(fit: NetworkFit, X: Any, targets: Targets, deadline: Deadline) -> Choice:
    """Return the strength of least loss on held-out samples, scaled to all samples.

    The paths of all folds go on together, from the largest strength on, until the loss is larger than before: beyond,
    networks start to overfit, and take longer. Out of time, or after Ctrl-C, it is the best strength so far; the
    largest, whose fit is the shortest, if there was no time at all. Ctrl-C before the first model is raised.
    """
    print_progress(fit.options.verbose, f"choice of the strength among {len(RATIOS)}, by the loss on held-out samples")
    problem, _ = fit.problem_of_distinct_samples(X, targets)
    strengths = check_strengths(problem, RATIOS)
    weight = problem.losses.total_weight
    n_distinct = problem.losses.n
    del problem  # it has a copy of the samples
    folds: list[HeldOut] = []
    best = 0
    ended = None
    try:
        folds = _folds(fit, X, targets, weight, n_distinct, deadline)
        rule = partial(until_losses_rise, clearly=_CLEARLY)
        trials = walk(strengths, [fold.losses_at for fold in folds], rule, _ITERATIONS, deadline)
        for number, (losses, verdict) in enumerate(trials):
            best = verdict.best
            print_progress(fit.options.verbose, _words(number, losses, folds))
    except KeyboardInterrupt:
        if not (folds and folds[0].networks):
            raise
        ended = Status.INTERRUPTED
    if ended is None and (not folds or any(run.status == Status.MAX_TIME for fold in folds for run in fold.networks)):
        ended = Status.MAX_TIME
    model = None
    if folds and folds[0].networks:
        model = Model.from_result(folds[0].problem, folds[0].networks[best])
    return Choice(float(strengths[best]), ended, model)


def _words(number: int, losses: list[RowLosses], folds: list[HeldOut]) -> str:
    """Return a line on the strength of a number."""
    # Folds are left out where the loss in the first ones is clearly larger.
    asked_all = len(losses) == len(folds)
    words = f"{sum(part.total for part in losses):.6g}" if asked_all else "clearly larger"
    return f"  strength {number + 1}: {RATIOS[number]!r}, loss {words}, {len(folds[0].networks[number].basis)} units"


def _folds(
    fit: NetworkFit, X: Any, targets: Targets, weight: float, n_distinct: int, deadline: Deadline
) -> list[HeldOut]:
    """Return the folds, as far as there is time for their problems."""
    folds: list[HeldOut] = []
    if deadline.is_over:
        return folds
    if isinstance(X, RowBlocks | Chunks):
        X, targets = _sample_in_memory(X, targets)
        n_distinct = len(targets.y)
    X, targets, groups = in_canonical_order(X, targets)
    for train, test in parts_held_out(targets, groups, n_distinct):
        folds.append(HeldOut(fit, X, targets, weight, train, test, len(RATIOS)).prepared())
        if deadline.is_over:
            break
    if not folds:
        raise ValueError("y: strength='auto' holds out samples, but every class has a single one; give a number")
    return folds


def _sample_in_memory(X: RowBlocks | Chunks, targets: Targets) -> tuple[Any, Targets]:
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
