"""Folds: samples to train on and samples held out, and networks of one strength after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from mopn.estimators.network_fit import NetworkFit
from mopn.estimators.strength_walk import RowLosses
from mopn.estimators.targets import Targets
from mopn.models.multi_output import Model
from mopn.network.problem import NetworkProblem
from mopn.solvers import ConditionalGradient, Result, Status, minimize
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.decorators import cached_property

# Parts of the samples; each is held out once.
PARTS = 3
# Number of distinct samples above which only the first part is held out.
MANY_SAMPLES = 1000
# Held-out rows that are copied at once.
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class HeldOut:
    """Training and held-out samples by ``train`` and ``test``; the networks and losses so far, in this process.

    ``weight`` is the weight of all samples: strengths are for all samples, and multiplied by a fold's part of it. Each
    of ``n_strengths`` networks starts at the one before.
    """

    fit: NetworkFit
    X: Any
    targets: Targets
    weight: float
    train: np.ndarray
    test: np.ndarray
    n_strengths: int
    networks: list[Result] = field(default_factory=list)
    losses: list[RowLosses] = field(default_factory=list)
    # The group (n,) of each sample: samples of a group may be copies of each other. None if there are no copies.
    groups: np.ndarray | None = None

    @cached_property
    def problem(self) -> NetworkProblem:
        """The problem of the training samples; each process makes its own."""
        return self.fit.problem_of_distinct_samples(self.X[self.train], self.targets.rows(self.train))[0]

    def prepared(self) -> HeldOut:
        """Return the fold after its problem was made, which takes time."""
        assert self.problem is not None
        return self

    def from_the_first(self) -> HeldOut:
        """Return the same fold for another walk that starts at the first network."""
        again = replace(self, networks=self.networks[:1], losses=self.losses[:1])
        vars(again)["problem"] = self.problem
        return again

    @property
    def part(self) -> float:
        """The part of the weight of all samples that is trained on."""
        return self.problem.losses.total_weight / self.weight

    def losses_at(self, strength: float, iterations: int, deadline: Deadline) -> RowLosses | None:
        """Return the losses of the network of a strength; None after the end of the path, raise after Ctrl-C."""
        before = self.networks[-1] if self.networks else None
        if before is not None and before.status.ends_path:
            return None
        solver = self.solver(self.n_strengths, self.fit.max_units(self.problem), iterations)
        problem = self.problem.with_strength(float(self.part * strength))
        tol = self.fit.options.tol
        network = minimize(problem, solver, start=before, tol=tol, max_iter=1, max_time=deadline.left)
        self.networks.append(network)
        self.losses.append(self.losses_of(network))
        if network.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self.losses[-1]

    def losses_of(self, network: Result) -> RowLosses:
        """Return the losses of a network on the held-out rows."""
        # Outputs for targets in the problem's units, so that each weighs as in the fit.
        model = Model.from_result(self.problem.with_user_y(None), network)
        return self._losses_at(lambda rows: model.outputs(self.X[rows]))

    def losses_of_constant(self) -> RowLosses:
        """Return the losses of the network without units."""
        losses = self.problem.losses
        constant = np.zeros(losses.n_outputs)
        if losses.offset is not None:
            constant = constant + losses.offset[0]
        return self._losses_at(lambda rows: np.tile(constant, (len(rows), 1)))

    def _losses_at(self, outputs: Callable[[np.ndarray], np.ndarray]) -> RowLosses:
        """Return the losses of outputs, which are asked for few held-out rows at a time."""
        problem = self.problem
        values = []
        for first in range(0, len(self.test), _ROWS_AT_ONCE):
            rows = self.test[first : first + _ROWS_AT_ONCE]
            y = self.targets.rows(rows).values
            if problem.user_y is not None:
                y = problem.user_y.targets(y)
            values.append(problem.losses.loss.value(y, outputs(rows)))
        groups = None if self.groups is None else np.unique(self.groups[self.test], return_inverse=True)[1]
        return RowLosses(np.concatenate(values), self.targets.rows(self.test).weights, groups)

    def solver(self, n_strengths: int, max_units: int | None, iterations: int) -> ConditionalGradient:
        """Return the solver of a path."""
        return self.fit.path_solver(self.problem, n_strengths, max_units, iterations)


def parts_held_out(targets: Targets, groups: np.ndarray, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices of training and of held-out samples, for each part or, if there are ``n`` many, for the first."""
    return islice(splits(targets, PARTS, groups), PARTS if n <= MANY_SAMPLES else 1)


def splits(targets: Targets, n_parts: int, groups: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices of training and of held-out samples, equal parts of each class; an only sample is trained on.

    Samples of one group (n,) are in one part, and have one target. Where every class has a single group, so that none
    could be held out, rows repeat by nature, and each sample is a group.
    """
    parts = _part_of_each_sample(targets, n_parts, groups)
    if parts.max() < 0:
        parts = _part_of_each_sample(targets, n_parts, np.arange(len(groups)))
    for part in range(n_parts):
        test = parts == part
        if test.any():
            yield np.flatnonzero(~test), np.flatnonzero(test)


def _part_of_each_sample(targets: Targets, n_parts: int, groups: np.ndarray) -> np.ndarray:
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
