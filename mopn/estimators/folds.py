"""The search that all estimators with cross-validation share: score every candidate on every fold, fit the best one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.parallel import Parallel, delayed

from mopn.core.row_blocks import RowBlocks
from mopn.core.validation import as_array
from mopn.estimators.base import ModelEstimator
from mopn.estimators.callbacks import Task, begin_fit, samples_of, with_callbacks
from mopn.estimators.targets import Targets
from mopn.solvers.checks import Rule, count, shown

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["SIZES", "Candidate", "CrossValidated", "Fold", "fitted_attributes", "several"]

# Values of parameters of the estimator that is validated.
Candidate = dict[str, float]


def several(rule: Rule, takes: str) -> Rule:
    """Return the rule for a value or several of them, which are put into descending order."""

    def convert(values: Any) -> list[Any]:
        distinct = {rule.convert(value) for value in (values if np.iterable(values) else [values])}
        if not distinct:
            raise ValueError
        return sorted(distinct, reverse=True)

    return Rule(takes, convert)


SIZES = several(count(), "an integer >= 1 or several")
_FOLDS = Rule("an integer >= 2, a splitter, folds of indices or None", count(2).or_none().convert)


@dataclass(frozen=True)
class Fold(ABC):
    """The training and the held-out samples of a fold.

    The losses are added up over the samples: the strengths of all samples are multiplied by ``part``, the fraction of
    their weight that is trained on.
    """

    single: Any
    training: tuple[Any, Targets]
    held_out: tuple[Any, Targets]
    part: float

    @classmethod
    def of(cls, single: Any, X: Any, targets: Targets, train: np.ndarray, test: np.ndarray, **fields: Any) -> Self:
        """Return the fold of some training and test samples."""
        training, held_out = targets.rows(train), targets.rows(test)
        missing = np.setdiff1d(targets.y, training.y) if training.form == "labels" else np.zeros(0)
        if len(missing):
            raise ValueError(f"a fold has no sample of the classes {missing} to train on; give fewer folds (cv)")
        # The score has the weights of the objective.
        held_out = replace(held_out, sample_weight=held_out.weights, class_factor=None)
        part = training.total_weight / targets.total_weight
        return cls(single, (X[train], training), (X[test], held_out), part, **fields)

    @property
    def samples(self) -> dict[str, Any]:
        """The training samples, for callbacks."""
        X, targets = self.training
        return samples_of(X, targets.y, targets.sample_weight)

    def path(self, candidates: Sequence[Candidate], task: Task) -> tuple[list[float], list[Any]]:
        """Return the scores of the candidates, and their fits; -inf for those that a callback leaves out."""
        task.begin()
        fits: list[Any] = []
        path = self._path(candidates)
        for _ in candidates:
            part = task.subtask("candidate").begin()
            fits.append(next(path))
            if part.end(partial(self._attributes, fits[-1])):
                break
        scores = [self._score(fit) for fit in fits]
        task.end()
        return scores + [-math.inf] * (len(candidates) - len(fits)), fits

    def prune(self, fit: Any, candidate: Candidate, sizes: Sequence[int], task: Task) -> list[float]:
        """Return the scores of the fit of a candidate cut down to sizes."""
        task.begin()
        scores = [self._score(smaller) for smaller in self._pruned(fit, candidate, sizes)]
        task.end()
        return scores

    @abstractmethod
    def _path(self, candidates: Sequence[Candidate]) -> Iterator[Any]:
        """Yield the fits of the candidates, each started from the one before where that helps."""

    @abstractmethod
    def _pruned(self, fit: Any, candidate: Candidate, sizes: Sequence[int]) -> Iterator[Any]:
        """Yield the fit of a candidate cut down to sizes, each from the one before."""

    @abstractmethod
    def _score(self, fit: Any) -> float:
        """Return the score of a fit on the held-out samples."""

    @abstractmethod
    def _attributes(self, fit: Any) -> dict[str, Any]:
        """Return the fitted attributes of an estimator with this fit."""


class CrossValidated(ModelEstimator):
    """Base of the estimators with cross-validation; ``_single`` is the estimator that is validated."""

    _single: ClassVar[type[ModelEstimator]]
    # The parameters of the search; all others are those of the single estimator.
    _own_parameters: ClassVar[frozenset[str]]
    # The single estimator's number of units.
    _size_name: ClassVar[str]
    # The single estimator's parameters that are searched, and the attributes that name their values.
    _searched: ClassVar[dict[str, str]]
    cv: Any
    n_jobs: int | None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Score all strengths and sizes on every fold, and fit the best ones to all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Training data, in memory.
        y : array-like of shape (n,) or (n, m)
            As for the estimator that is validated: labels, or numbers; an indicator matrix of 0 and 1 if it takes one.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 equals a repeated sample within its fold; weights count in the scores too.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter are invalid, or if a class is missing in the training part of a fold.
        """
        self._check_parameters()
        if isinstance(X, RowBlocks):
            raise TypeError("folds are drawn at random, which needs X in memory; give an array or a sparse matrix")
        sizes = SIZES(getattr(self, self._size_name), self._size_name)
        passed_on = {name: getattr(self, name) for name in set(self.get_params()) - self._own_parameters}
        single = self._single(**{self._size_name: sizes[0]}, **passed_on)
        X, y, sample_weight, present = self._samples(X, y, sample_weight)
        targets = self._targets(single, y, sample_weight)
        grid = self._grid(single, X, targets)
        parts = list(self._splitter(_among(self.cv, present), y).split(X, y))
        if not parts:
            raise ValueError("cv has no folds; give at least one pair of training and test samples")
        folds = [self._fold(single, X, targets, *part) for part in parts]
        self.fold_weights_ = np.array([fold.held_out[1].total_weight for fold in folds])
        # A path and smaller sizes for each fold, and the last fit.
        task = begin_fit(self, samples_of(X, y, sample_weight), 2 * len(folds) + 1)
        chosen = self._search(folds, grid, sizes, task)
        refit = task.subtask("refit")
        with refit.handed_on(single):
            refit.begin()
            single.set_params(**chosen).fit(X, y, sample_weight)
        self.__dict__.update(fitted_attributes(single))
        refit.end({})
        task.end({})
        return self

    @abstractmethod
    def _targets(self, single: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        """Validate y and return its targets."""

    @abstractmethod
    def _grid(self, single: Any, X: Any, targets: Targets) -> dict[str, np.ndarray]:
        """Return the values of each parameter that is searched, descending; paths are along the last one."""

    @abstractmethod
    def _fold(self, single: Any, X: Any, targets: Targets, train: np.ndarray, test: np.ndarray) -> Fold:
        """Return the fold of some training and test samples."""

    def _splitter(self, cv: Any, y: np.ndarray) -> Any:
        """Return the splitter for ``cv``; numbers of folds are stratified for labels, else shuffled."""
        classifier = is_classifier(self)
        folds = check_cv(cv, y, classifier=classifier)
        given = hasattr(cv, "split") or np.iterable(cv)
        return folds if given or classifier else KFold(folds.n_splits, shuffle=True, random_state=0)

    def _search(
        self, folds: Sequence[Fold], grid: dict[str, np.ndarray], sizes: list[int], task: Task
    ) -> dict[str, Any]:
        """Set the scores, and return the parameters of the best ones."""
        candidates = [dict(zip(grid, map(float, values), strict=True)) for values in product(*grid.values())]
        parallel = Parallel(n_jobs=self.n_jobs)
        # Other processes get copies of the tasks, so these are all there before the first one starts.
        tasks = [task.subtask("fold", len(candidates), fold.samples) for fold in folds]
        paths = parallel(delayed(fold.path)(candidates, part) for fold, part in zip(folds, tasks, strict=True))
        scores = np.array([scores for scores, _ in paths])
        best = int(np.argmax(self._mean(scores)))
        self.scores_ = scores.reshape(len(folds), *map(len, grid.values()))
        for name, values in grid.items():
            setattr(self, f"{self._searched[name]}s_", np.asarray(values))
            setattr(self, f"{self._searched[name]}_", candidates[best][name])

        fits = [fits[best] for _, fits in paths]
        tasks = [task.subtask("sizes", 0, fold.samples) for fold in folds]
        pruned = parallel(
            delayed(fold.prune)(fit, candidates[best], sizes, part)
            for fold, fit, part in zip(folds, fits, tasks, strict=True)
        )
        self.sizes_, self.size_scores_ = np.array(sizes), np.array(pruned)
        size = sizes[self._smallest(self.size_scores_)]
        setattr(self, f"{self._size_name}_", size)
        return {**candidates[best], self._size_name: size}

    def _mean(self, scores: np.ndarray) -> np.ndarray:
        """Return the mean over the folds, each with the weight of its held-out samples."""
        return np.average(scores, axis=0, weights=self.fold_weights_)

    def _smallest(self, scores: np.ndarray) -> int:
        """Return the index of the smallest size whose mean is within one standard error of the best."""
        mean = self._mean(scores)
        errors = np.sqrt(self._mean((scores - mean) ** 2) / max(len(scores) - 1, 1))
        best = np.argmax(mean)
        return int(np.flatnonzero(mean >= mean[best] - errors[best])[-1])


def fitted_attributes(single: ModelEstimator) -> dict[str, Any]:
    """Return the attributes of the estimator that is validated which the one that validates has too.

    Those of X are known since it was checked, and nothing was held out from the fit.
    """
    own = ("n_features_in_", "feature_names_in_", "validation_scores_")
    return {name: value for name, value in vars(single).items() if name.endswith("_") and name not in own}


def _among(cv: Any, present: np.ndarray) -> Any:
    """Turn folds that are given as indices of samples into indices of those present."""
    if isinstance(cv, str | bytes) or not (np.iterable(cv) or hasattr(cv, "split")):
        return _FOLDS(cv, "cv")
    if hasattr(cv, "split"):
        return cv
    return [tuple(np.searchsorted(present, part[np.isin(part, present)]) for part in _parts(fold)) for fold in cv]


def _parts(fold: Any) -> list[np.ndarray]:
    """Return the indices of the training and of the test samples of a fold."""
    parts = [as_array(part, "cv") for part in fold] if np.iterable(fold) else []
    if len(parts) != 2 or any(part.ndim != 1 or part.dtype.kind not in "iub" for part in parts):
        raise ValueError(f"cv must hold pairs of indices, of training and of test samples, got {shown(fold)}")
    return [np.flatnonzero(part) if part.dtype == bool else part for part in parts]
