"""A walk over strengths: each is tried on held-out samples, and a rule says when to stop and which is best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mopn.solvers.tools.budgets import Deadline


class RowLosses(NamedTuple):
    """The losses (n,) on held-out samples, and the weights (n,) of these, or None if all are 1."""

    values: np.ndarray
    weights: np.ndarray | None

    @property
    def total(self) -> float:
        """The weighted sum."""
        return float(self.values.sum() if self.weights is None else self.weights @ self.values)


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


def until_losses_rise(trials: Trials, patience: int = 1, clearly: float = math.inf) -> Verdict:
    """Return the verdict that ends a walk ``patience`` strengths after the one of least loss.

    It also ends it where the loss in the first of several folds is larger than the best strength's in the same folds by
    more than the part ``clearly``.
    """
    n_folds = len(trials[0])
    complete = [trial for trial in trials if len(trial) == n_folds]
    totals = [_total(trial) for trial in complete]
    best = int(np.argmin(totals))
    last = trials[-1]
    if len(last) < n_folds:
        least = _total(complete[best][: len(last)])
        return Verdict(not _total(last) > least + clearly * abs(least), best)
    rises = totals[-1] > totals[best]
    return Verdict(not rises or len(totals) - 1 - best < patience, best)


def to_the_end(trials: Trials) -> Verdict:
    """Return the verdict that tries all strengths."""
    return Verdict(True, int(np.argmin([_total(trial) for trial in trials])))


def _total(losses: Iterable[RowLosses]) -> float:
    return sum(part.total for part in losses)
