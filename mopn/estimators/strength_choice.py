"""The choice of the strength of a table's network: the path of least loss on held-out samples."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import IN_MEMORY, Chunks, LocalChunks, stored_numbers
from mopn.data.row_blocks import RawBlock, RowBlocks
from mopn.estimators.callbacks import print_progress
from mopn.estimators.folds import HeldOut, parts_held_out
from mopn.estimators.network_fit import NetworkFit
from mopn.estimators.strength_walk import RowLosses, between, until_losses_rise, walk, while_surely_better
from mopn.estimators.targets import Targets, in_canonical_order, targets_of_problem
from mopn.models.multi_output import Model
from mopn.network.problem import NetworkProblem
from mopn.solvers import Result, Status
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.decorators import warn_caller

# The part of the time left that a choice by held-out samples may take; the last fit takes the rest.
SHARE_OF_CHOICE = 1 / 3
# Ratios to choose from, the largest first.
RATIOS = tuple(map(Ratio, (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)))
# Larger ratios, which are tried where the largest of these is the best.
_LARGER_RATIOS = tuple(map(Ratio, (0.3, 0.6)))
# The ratio of the network without units.
_RATIO_OF_CONSTANT = Ratio(math.nextafter(1.0, 0.0))
# The ratio of the fit where time ends the choice before a loss has risen: of all, the one that costs least where it is
# not the best (benchmarks/tables).
_TYPICAL_RATIO = Ratio(0.01)
# Strengths that are tried after the best one,
_PATIENCE = 2
# while losses exceed the least one by at most this, relative: they are noisy.
_SLIGHT_RISE = 0.02
# Rise of the loss in the first of several folds, relative, after which the others are not asked.
_CLEAR_RISE = 0.05
# The same after a rise: a strength that is no better in the first folds ends the choice.
_CLEAR_RISE_LATER = 0.0
# Refits of the choice end when ten iterations lower the objective by less than this, relative: if they are cut short,
# small strengths seem to fit no noise (benchmarks/tables).
_LEAST_DECREASE = 5e-3
# Iterations of a refit, at most.
_ITERATIONS = 100


class Choice(NamedTuple):
    """The strength of a fit, the early end of its choice (by time or Ctrl-C), and a model of most of the samples.

    ``n_tried`` strengths were tried.
    """

    strength: float | Ratio
    ended: Status | None = None
    model: Model | None = None
    n_tried: int = len(RATIOS)

    def overrule(self, result: Result) -> None:
        """Give the result of the fit the status that ended the choice, unless its own says more."""
        if self.ended is not None and not result.status.broke_off:
            result.status = self.ended

    def warn(self) -> None:
        """Warn of a choice among fewer than half of the strengths, for want of time."""
        if self.ended == Status.MAX_TIME and 2 * self.n_tried < len(RATIOS):
            warn_caller(
                f"max_time ended the choice of the strength after {self.n_tried} of {len(RATIOS)}, so that the network "
                f"has strength={self.strength:.3g}, a usual one; raise max_time, or give the strength",
                ConvergenceWarning,
            )


def choose_strength(
    strength: float | Ratio | str, fit: NetworkFit, X: Any, targets: Targets, deadline: Deadline
) -> Choice:
    """Return a given strength; for "auto" the one of least loss on held-out samples, scaled to all samples.

    The paths of all folds go on together, from a ratio of 0.1 on, until losses are larger than before: beyond, networks
    start to overfit, and take longer. Where 0.1 is the best, larger ones follow, up to the network without units: one
    of them is taken if its loss is smaller by two standard errors. The strength is then moved to the lowest point of a
    parabola through the losses of the best one and its neighbours. Out of time before a loss has risen, it is the best
    strength so far or the ratio 0.01, the smaller one. After Ctrl-C it is the best one so far; Ctrl-C before the first
    model is raised.
    """
    if not isinstance(strength, str):
        return Choice(strength)
    print_progress(fit.options.verbose, f"choice of the strength among {len(RATIOS)}, by the loss on held-out samples")
    fit = replace(fit, policy=replace(fit.policy, path_decrease=_LEAST_DECREASE))
    problem, _ = fit.problem_of_distinct_samples(X, targets)
    fit = fit.sized(problem)
    search = _Search(problem, fit.options.verbose, deadline)
    weight = problem.losses.total_weight
    n_distinct = problem.losses.n
    del problem  # it has a copy of the samples
    try:
        search.folds = _folds(fit, X, targets, weight, n_distinct, deadline)
        search.go_down()
        search.go_up()
    except KeyboardInterrupt:
        if not search.has_network:
            raise
        return search.choice(Status.INTERRUPTED)
    return search.choice(Status.MAX_TIME if search.is_out_of_time else None)


class _Search:
    """The strengths tried so far, and the best one."""

    def __init__(self, problem: NetworkProblem, verbose: int, deadline: Deadline) -> None:
        ratios = (*RATIOS, *_LARGER_RATIOS, _RATIO_OF_CONSTANT)
        self.strengths = {ratio: cast(float, problem.with_strength(ratio).strength) for ratio in ratios}
        self.verbose, self.deadline = verbose, deadline
        self.folds: list[HeldOut] = []
        # The losses of the strengths tried, by strength and fold.
        self.losses: dict[Ratio, list[RowLosses]] = {}
        self.best = RATIOS[0]
        self.model: Model | None = None
        self.n_tried = 0
        # Whether the walk ended as losses rose, or at the smallest strength.
        self.is_complete = False
        self.is_out_of_time = False

    def go_down(self) -> None:
        """Try smaller strengths until the losses rise."""
        rule = partial(
            until_losses_rise,
            patience=_PATIENCE,
            slight_rise=_SLIGHT_RISE,
            clear_rise=_CLEAR_RISE,
            clear_rise_later=_CLEAR_RISE_LATER,
        )
        for losses, verdict in self._walk(RATIOS, self.folds, rule):
            self._print_trial(RATIOS[self.n_tried], losses, len(self.folds[0].networks[self.n_tried].basis))
            self.losses[RATIOS[self.n_tried]] = losses
            self.n_tried += 1
            self.is_complete = not verdict.goes_on or self.n_tried == len(RATIOS)
            self._take(RATIOS[verdict.best], self.folds, verdict.best)
        # The networks are there where Ctrl-C came before their losses.
        self.is_out_of_time = not self.folds or any(
            run.status == Status.MAX_TIME for fold in self.folds for run in fold.networks
        )

    def go_up(self) -> None:
        """Try larger strengths, and no units, where the largest one so far is the best."""
        first_losses = self.losses.get(RATIOS[0], [])
        if self.is_out_of_time or self.best != RATIOS[0] or len(first_losses) < len(self.folds):
            return
        folds = [fold.from_the_first() for fold in self.folds]
        ratios = (RATIOS[0], *_LARGER_RATIOS)
        rule = partial(while_surely_better, first=first_losses)
        for number, (losses, verdict) in enumerate(self._walk(_LARGER_RATIOS, folds, rule), 1):
            self._print_trial(ratios[number], losses, len(folds[0].networks[number].basis))
            self.losses[ratios[number]] = losses
            if verdict.best:
                self._take(ratios[verdict.best], folds, verdict.best)
        constant = [fold.losses_of_constant() for fold in self.folds]
        if while_surely_better([constant], self.losses[self.best]).best:
            self._print_trial(_RATIO_OF_CONSTANT, constant, 0)
            self.best = _RATIO_OF_CONSTANT
            self.model = None

    def _walk(self, ratios: Sequence[Ratio], folds: list[HeldOut], rule: Any) -> Any:
        strengths = [self.strengths[ratio] for ratio in ratios]
        return walk(strengths, [fold.losses_at for fold in folds], rule, _ITERATIONS, self.deadline)

    def _take(self, ratio: Ratio, folds: list[HeldOut], number: int) -> None:
        if ratio != self.best or self.model is None:
            self.model = Model.from_result(folds[0].problem, folds[0].networks[number])
        self.best = ratio

    def _print_trial(self, ratio: Ratio, losses: list[RowLosses], n_units: int) -> None:
        # Folds are left out where the loss in the first ones is clearly larger.
        asked_all = len(losses) == len(self.folds)
        words = f"{sum(part.total for part in losses):.6g}" if asked_all else "clearly larger"
        print_progress(self.verbose, f"  {ratio!r}: loss {words}, {n_units} units")

    @property
    def has_network(self) -> bool:
        """Whether there is a network at all; its losses may be missing."""
        return bool(self.folds and self.folds[0].networks)

    def _strength_of_least_loss(self) -> float:
        """Return the strength of least loss, also between those tried."""
        if self.best not in self.losses:
            return self.strengths[self.best]
        ratios = sorted(self.losses, key=lambda ratio: -ratio.value)
        strengths = [self.strengths[ratio] for ratio in ratios]
        return between(strengths, [self.losses[ratio] for ratio in ratios], ratios.index(self.best))

    def choice(self, ended: Status | None) -> Choice:
        """Return the best strength, or a weaker one if time ended the search early."""
        if self.model is None and self.has_network and self.best != _RATIO_OF_CONSTANT:
            self._take(self.best, self.folds, 0)
        strength = self._strength_of_least_loss()
        if ended == Status.MAX_TIME and not self.is_complete:
            strength = min(self.strengths[self.best], self.strengths[_TYPICAL_RATIO])
        return Choice(strength, ended, self.model, self.n_tried)


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
        folds.append(HeldOut(fit, X, targets, weight, train, test, len(RATIOS), groups=groups).prepared())
        if deadline.is_over:
            break
    if not folds:
        raise ValueError("y: strength='auto' holds out samples, but every class has a single one; give a number")
    return folds


def _sample_in_memory(X: RowBlocks | Chunks, targets: Targets) -> tuple[Any, Targets]:
    """Return a random sample of rows that fits into memory; usually all of them."""
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
