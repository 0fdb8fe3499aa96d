"""A walk over strengths: each is tried on held-out samples, and a rule says when to stop and which is best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mopn.solvers.tools.budgets import Deadline


class RowLosses(NamedTuple):
    """The losses (n,) on held-out samples, and the weights (n,) of these, or None if all are 1.

    ``groups`` (n,) numbers the samples that may be copies of each other, or None if none are.
    """

    values: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray | None = None

    @property
    def total(self) -> float:
        """The weighted sum."""
        return float(self.values.sum() if self.weights is None else self.weights @ self.values)

    @property
    def of_groups(self) -> np.ndarray:
        """The weighted sums of all groups."""
        weighted = self.values if self.weights is None else self.weights * self.values
        return weighted if self.groups is None else np.bincount(self.groups, weighted)


# Standard errors by which the loss of a larger strength must be smaller.
_STANDARD_ERRORS = 2.0
# The losses of each strength so far, by fold. The last strength may have been tried in the first folds alone.
Trials = Sequence[Sequence[RowLosses]]


class Verdict(NamedTuple):
    """Whether a walk goes on to the next fold or strength, and the index of the best strength so far."""

    goes_on: bool
    best: int


# Returns the losses on a fold's held-out samples after a fit with a strength, of a number of iterations and within a
# deadline; None without time.
LossesAt = Callable[[float, int, Deadline], RowLosses | None]


def walk(
    strengths: Iterable[float],
    folds: Sequence[LossesAt],
    rule: Callable[[Trials], Verdict],
    iterations: int,
    deadline: Deadline,
) -> Iterator[tuple[list[RowLosses], Verdict]]:
    """Yield the losses of one strength after the other, by fold, and the verdict of the rule on all so far.

    The rule is asked after every fold: if it ends the walk there, other folds of this strength are left out.
    """
    if not folds:
        return
    trials: list[list[RowLosses]] = []
    for strength in strengths:
        trial: list[RowLosses] = []
        trials.append(trial)
        for losses_at in folds:
            losses = losses_at(strength, iterations, deadline)
            if losses is None:
                return
            trial.append(losses)
            verdict = rule(trials)
            if not verdict.goes_on:
                break
        yield trial, verdict
        if not verdict.goes_on:
            return


def until_losses_rise(
    trials: Trials,
    patience: int = 1,
    slightly: float = math.inf,
    clearly: float = math.inf,
    clearly_later: float = math.inf,
) -> Verdict:
    """Return the verdict that ends a walk ``patience`` strengths after the one of least loss.

    It ends it before at a loss that is larger than the least one by more than the part ``slightly``. It also ends it
    where the loss in the first of several folds is larger than the best strength's in the same folds by more than the
    part ``clearly``; after a rise by more than ``clearly_later``.
    """
    n_folds = len(trials[0])
    complete = [trial for trial in trials if len(trial) == n_folds]
    totals = [_total(trial) for trial in complete]
    best = int(np.argmin(totals))
    last = trials[-1]
    if len(last) < n_folds:
        least = _total(complete[best][: len(last)])
        part = clearly if best == len(complete) - 1 else clearly_later
        return Verdict(not _total(last) > least + part * abs(least), best)
    least = totals[best]
    rises = totals[-1] > least
    is_slight = totals[-1] <= least + slightly * abs(least)
    return Verdict(not rises or (is_slight and len(totals) - 1 - best < patience), best)


def while_surely_better(others: Trials, first: Sequence[RowLosses]) -> Verdict:
    """Return the verdict that a strength is better than the best one before by two standard errors, or not.

    The errors are of the paired differences of the losses, of groups of samples that may be copies. A strength whose
    loss in the first folds is no smaller than the least one there ends the walk. The losses ``first`` are of the
    strength before the walk, whose index is 0.
    """
    trials = [first, *others]
    n_folds = len(first)
    best = 0
    least = _total(first[: len(trials[-1])])
    for number, trial in enumerate(trials[1:], 1):
        if len(trial) == n_folds and _is_surely_better(trial, trials[best]):
            best = number
        if number < len(trials) - 1:
            least = min(least, _total(trial[: len(trials[-1])]))
    goes_on = len(trials[-1]) == n_folds or _total(trials[-1]) < least
    return Verdict(goes_on, best)


def _is_surely_better(trial: Sequence[RowLosses], other: Sequence[RowLosses]) -> bool:
    gains = np.concatenate([b.of_groups - a.of_groups for a, b in zip(trial, other, strict=True)])
    if len(gains) < 2:
        return False
    error = math.sqrt(len(gains) * gains.var(ddof=1))
    return bool(gains.sum() > _STANDARD_ERRORS * error)


def to_the_end(trials: Trials) -> Verdict:
    """Return the verdict that tries all strengths."""
    return Verdict(True, int(np.argmin([_total(trial) for trial in trials])))


def _total(losses: Iterable[RowLosses]) -> float:
    return sum(part.total for part in losses)
