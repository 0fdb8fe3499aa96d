"""Folds: networks of descending strengths, fitted to some samples and scored on others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mopn.estimators.network_fit import NetworkFit
from mopn.estimators.targets import Targets
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import solutions
from mopn.solvers import ConditionalGradient, Result, Status
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.decorators import cached_property


@dataclass(frozen=True)
class Fold:
    """Training and held-out samples by ``train`` and ``test``; its networks and scores so far, in this process.

    ``weight`` is the weight of all samples: a fold has their strength times its part of the weight. ``score(fold,
    network)`` is the score, or loss, on held-out samples; refits take at most so many ``iterations``.
    """

    fit: NetworkFit
    X: Any
    targets: Targets
    weight: float
    train: np.ndarray
    test: np.ndarray
    score: Callable[[Fold, Result], float]
    iterations: int
    networks: list[Result] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    @cached_property
    def problem(self) -> NetworkProblem:
        """The problem of the training samples; each process makes its own."""
        return self.fit.problem_of_distinct_samples(self.X[self.train], self.targets.rows(self.train))[0]

    @property
    def part(self) -> float:
        """The part of the weight of all samples that is trained on."""
        return self.problem.losses.total_weight / self.weight

    def walk(self, strengths: np.ndarray, deadline: Deadline) -> Iterator[tuple[Result, float]]:
        """Yield the networks of strengths and their scores while there is time; after Ctrl-C the last is kept."""
        solver = self.solver(len(strengths), self.fit.options.max_units)
        options: dict[str, Any] = {"tol": self.fit.options.tol, "max_iter": 1}
        for _, network in solutions(self.problem, self.part * strengths, solver, deadline, **options):
            self.networks.append(network)
            self.scores.append(self.score(self, network))
            if network.status == Status.INTERRUPTED:
                raise KeyboardInterrupt
            yield network, self.scores[-1]

    def solver(self, n_strengths: int, max_units: int) -> ConditionalGradient:
        """Return the solver of a path."""
        return self.fit.path_solver(self.problem, n_strengths, max_units, self.iterations)
