"""A fold of cross-validation: the paths of its training samples, and the scores of its held-out ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mopn.estimators.callbacks import Task, samples_of, say
from mopn.estimators.targets import Targets, merge_equal_samples
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import solutions
from mopn.solvers import ConditionalGradient, Result, Status, minimize
from mopn.solvers.tools.cached import cached_property
from mopn.solvers.tools.deadline import Deadline
from mopn.solvers.tools.door import door

__all__ = ["Fold", "ended_well"]


@dataclass(frozen=True)
class Fold:
    """The training and the held-out samples of a fold.

    The losses are added up over the samples: the strengths of all samples are multiplied by ``part``, the fraction of
    their weight that is trained on. ``seen`` are the scores, the strengths and the networks so far, in this process.
    """

    single: Any
    scorer: Callable[..., float]
    training: tuple[Any, Targets]
    held_out: tuple[Any, Targets]
    part: float
    seen: list[tuple[float, float, Result]] = field(default_factory=list)

    @classmethod
    def of(cls, single: Any, scorer: Any, X: Any, targets: Targets, train: np.ndarray, test: np.ndarray) -> Fold:
        """Return the fold of some training and test samples."""
        training, held_out = targets.rows(train), targets.rows(test)
        missing = np.setdiff1d(targets.y, training.y) if training.form == "labels" else np.zeros(0)
        if len(missing):
            raise ValueError(f"a fold has no sample of the classes {missing} to train on; give fewer folds (cv)")
        part = training.total_weight / targets.total_weight
        return cls(single, scorer, (X[train], training), (X[test], held_out), part)

    @property
    def samples(self) -> dict[str, Any]:
        """The training samples, for callbacks."""
        X, targets = self.training
        return samples_of(X, targets.y, targets.sample_weight)

    @cached_property
    def problem(self) -> NetworkProblem:
        """The problem of the training samples; each process makes its own."""
        return self.single._problem(*merge_equal_samples(*self.training))

    @door
    def path(self, strengths: np.ndarray, task: Task, seconds: float) -> tuple[list[float], list[Result]]:
        """Return the scores of the strengths, and their networks; -inf for those that a callback or time leaves out."""
        task.begin()
        deadline = Deadline(seconds)
        fits: list[Result] = []
        scores: list[float] = []
        solver = self._solver(len(strengths), self.single.max_units)
        path = solutions(self.problem, self.part * strengths, solver, deadline, tol=self.single.tol, max_iter=1)
        for strength in strengths:
            part = task.subtask("candidate").begin()
            _, network = next(path)
            fits.append(network if network.status == Status.INTERRUPTED else ended_well(network))
            stop = part.end(lambda network=network: {"best_estimator_": self.estimator(network)})
            scores.append(self._score(network))
            self.seen.append((scores[-1], float(strength), network))
            ended_well(network)  # after Ctrl-C, as its network is kept now
            say(self.single.verbose, f"  strength {strength:.6g}: score {scores[-1]:.6g}, {len(network.basis)} units")
            if stop or deadline.is_over:
                break
        task.end()
        return scores + [-math.inf] * (len(strengths) - len(fits)), fits

    @door
    def prune(self, network: Result, strength: float, sizes: Sequence[int], task: Task, seconds: float) -> list[float]:
        """Return the scores of the network of a strength cut down to sizes; -inf for those without time."""
        task.begin()
        deadline, scores = Deadline(seconds), []
        for size, smaller in zip(sizes, self._pruned(network, strength, sizes, deadline), strict=False):
            scores.append(self._score(smaller))
            say(self.single.verbose, f"  at most {size} units: score {scores[-1]:.6g}")
        task.end()
        return scores + [-math.inf] * (len(sizes) - len(scores))

    def _pruned(self, network: Result, strength: float, sizes: Sequence[int], deadline: Deadline) -> Iterator[Result]:
        """Yield the network cut down to the units of largest weights, each time from the one before, while time is."""
        problem = self.problem.with_strength(self.part * strength)
        for size in sizes:
            if len(network.basis) > size:
                if deadline.is_over:
                    return
                kept = np.argsort(-np.linalg.norm(network.weights, axis=1), kind="stable")[:size]
                start = network.basis[kept], network.weights[kept], network.linear
                limits = {"tol": self.single.tol, "max_iter": 1, "max_time": deadline.left}
                network = ended_well(minimize(problem, self._solver(1, size), start=start, **limits))
            yield network

    def _solver(self, n_strengths: int, max_units: int) -> ConditionalGradient:
        return self.single._policy.path_solver(self.problem, n_strengths, refit=self.single.refit, max_units=max_units)

    def estimator(self, network: Result) -> Any:
        """Return the estimator, fitted with a network."""
        estimator = copy(self.single)
        vars(estimator).update(estimator._attributes(self.problem, self.training[1], network))
        return estimator

    def _score(self, network: Result) -> float:
        X, targets = self.held_out
        # The score has the weights of the objective.
        weights = {} if targets.weights is None else {"sample_weight": targets.weights}
        score = float(self.scorer(self.estimator(network), X, targets.y, **weights))
        if math.isnan(score):
            raise ValueError("scoring is NaN on the held-out part of a fold; give another score, or larger folds (cv)")
        return score


def ended_well(result: Result) -> Result:
    """Return a result; raise the interrupt or the error that ended its run, if one did."""
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.error is not None:
        raise result.error
    return result
