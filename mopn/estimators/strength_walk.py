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
# Cells of the grid of strengths between two that were tried, lest the last bits of losses move the choice.
_CELLS_BETWEEN = 32
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
    slight_rise: float = math.inf,
    clear_rise: float = math.inf,
    clear_rise_later: float = math.inf,
) -> Verdict:
    """Return the verdict that ends a walk ``patience`` strengths after the one of least loss.

    It ends it before at a loss that is larger than the least one by more than the part ``slight_rise``. It also ends it
    where the loss in the first of several folds is larger than the best strength's in the same folds by more than the
    part ``clear_rise``; after a rise by more than ``clear_rise_later``.
    """
    n_folds = len(trials[0])
    complete = [trial for trial in trials if len(trial) == n_folds]
    totals = [_total(trial) for trial in complete]
    best = int(np.argmin(totals))
    last = trials[-1]
    if len(last) < n_folds:
        least = _total(complete[best][: len(last)])
        part = clear_rise if best == len(complete) - 1 else clear_rise_later
        return Verdict(not _total(last) > least + part * abs(least), best)
    least = totals[best]
    rises = totals[-1] > least
    is_slight = totals[-1] <= least + slight_rise * abs(least)
    return Verdict(not rises or (is_slight and len(totals) - 1 - best < patience), best)


def while_surely_better(others: Trials, first: Sequence[RowLosses]) -> Verdict:
    """Return the verdict that a strength is better than the best one before by two standard errors, or not.

    The errors are of the paired differences of the losses, of groups of samples that may be copies. A strength whose
    gain in the first folds would not be sure with the same gain in the others, or that gains nothing at all, ends the
    walk. The losses ``first`` are of the strength before the walk, whose index is 0.
    """
    best = 0
    goes_on = True
    trials = [first, *others]
    for number, trial in enumerate(others, 1):
        gain, error = _gain(trial, trials[best])
        part_of_folds = len(trial) / len(first)
        is_sure = gain > math.sqrt(part_of_folds) * _STANDARD_ERRORS * error
        is_complete = len(trial) == len(first)
        if is_sure and is_complete:
            best = number
        goes_on = gain > 0.0 if is_complete else is_sure
    return Verdict(goes_on, best)


def _gain(trial: Sequence[RowLosses], other: Sequence[RowLosses]) -> tuple[float, float]:
    """Return the gain of a trial over another, the difference of their losses in its folds, and its standard error.

    The error is infinite for a single group of samples.
    """
    gains = np.concatenate([b.of_groups - a.of_groups for a, b in zip(trial, other, strict=False)])
    if len(gains) < 2:
        return float(gains.sum()), math.inf
    return float(gains.sum()), math.sqrt(len(gains) * gains.var(ddof=1))


def between(strengths: Sequence[float], trials: Trials, best: int) -> float:
    """Return the strength of least loss between the best one tried and its neighbours, by a parabola in logarithms.

    It is no further than half of the way to a neighbour, and the best one itself where a neighbour was not tried in all
    folds.
    """
    three = slice(max(best - 1, 0), best + 2)
    if len(trials[three]) < 3 or len({len(trial) for trial in trials[three]}) > 1:
        return strengths[best]
    left, middle, right = (math.log(strength) for strength in strengths[three])
    a, b, c = (_total(trial) for trial in trials[three])
    if not (b <= a and b <= c and b < max(a, c)):
        return strengths[best]
    # Slopes of the two chords, which the parabola has in the middle of each.
    first = (b - a) / (middle - left)
    second = (c - b) / (right - middle)
    start = (left + middle) / 2
    end = (middle + right) / 2
    part = round(first / (first - second) * _CELLS_BETWEEN) / _CELLS_BETWEEN
    return math.exp(start + part * (end - start))


def to_the_end(trials: Trials) -> Verdict:
    """Return the verdict that tries all strengths."""
    return Verdict(True, int(np.argmin([_total(trial) for trial in trials])))


def _total(losses: Iterable[RowLosses]) -> float:
    return sum(part.total for part in losses)
