"""The choice of strength and number of units by cross-validation, for every estimator of networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from mopn.core.gap import Dual
from mopn.core.regularizers import Ratio
from mopn.data.row_blocks import RowBlocks
from mopn.data.validation import as_array
from mopn.data.values import to_host
from mopn.estimators.callbacks import CallbackSupportMixin, Task, begin_fit, print_progress, samples_of, with_callbacks
from mopn.estimators.folds import HeldOut
from mopn.estimators.network_estimator import NetworkEstimator, fitted_copy, network_fit_of, samples_of_fit
from mopn.estimators.strength_choice import SHARE_OF_CHOICE
from mopn.estimators.strength_walk import RowLosses, to_the_end, walk
from mopn.estimators.targets import Targets
from mopn.models.base import Fitted, Predictor
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import check_strengths
from mopn.solvers import Result, Status, minimize
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.checks import Rule, count, shown
from mopn.solvers.tools.decorators import quiet


def _sizes(values: Any) -> list[int]:
    distinct = {count().convert(value) for value in (values if np.iterable(values) else [values])}
    if not distinct:
        raise ValueError
    return sorted(distinct, reverse=True)


_SIZES = Rule("an integer >= 1 or several", _sizes)
_FOLDS = Rule("an integer >= 2, a splitter, folds of indices or None", count(2).or_none().convert)


# The part of the time of the search that the paths of strengths may take; numbers of units have the rest.
_SHARE_OF_PATHS = 2 / 3
# Iterations per refit, which starts at the network of the strength or of the size before.
_ITERATIONS = 15


def _best_has(name: str) -> Callable[[PathCV], Any]:
    """Return the check whether the estimator has a method; its own error says why not."""
    return lambda search: getattr(getattr(search, "best_estimator_", search.estimator), name)


@dataclass(frozen=True, kw_only=True)
class ScoredFold(HeldOut):
    """A fold whose networks are scored as models of an estimator; the loss is the score, negative."""

    unfitted: Any
    scorer: Callable[..., float]

    def estimator(self, network: Result) -> Any:
        """Return the estimator, fitted with a network."""
        fitted = self.fit.fitted_attributes(self.problem, self.targets, network)
        return fitted_copy(self.unfitted, self.problem, fitted)

    def score(self, network: Result) -> float:
        """Return the score of a network on the held-out samples, with the weights of the objective."""
        targets = self.targets.rows(self.test)
        weights = {} if targets.weights is None else {"sample_weight": targets.weights}
        score = float(self.scorer(self.estimator(network), self.X[self.test], targets.y, **weights))
        if math.isnan(score):
            raise ValueError("scoring is NaN on the held-out part of a fold; give another score, or larger folds (cv)")
        return score

    def losses_of(self, network: Result) -> RowLosses:
        """Return the negative score, as the loss of a single row."""
        return RowLosses(np.array([-self.score(network)]), None)

    @property
    def scores(self) -> list[float]:
        """The scores of the strengths so far."""
        return [-losses.total for losses in self.losses]


class PathCV(CallbackSupportMixin, MetaEstimatorMixin, Fitted, BaseEstimator):
    """Choose the strength and the number of units of a network by cross-validation.

    Every fold follows one path of short, warm-started refits from the largest strength down. The networks of the best
    strength are cut down to fewer units and refitted, number by number. A network of the best strength and of the
    smallest size whose mean score is within one standard error of the best one is fitted to all samples.

    Parameters
    ----------
    estimator : estimator
        Any estimator of :mod:`mopn.estimators` except models of one output (take ``GridSearchCV``) and estimators of
        tables, which choose their strength themselves: of classes, numbers or ordered levels.
    strengths : array-like of shape (q,), default (Ratio(0.03), Ratio(0.006), Ratio(0.0015), Ratio(0.0003))
        Strengths to choose from: numbers, or :class:`mopn.Ratio` to the smallest one whose solution is zero. They are
        for all samples: as the losses are added up over the samples, each is multiplied by a fold's part of their
        weight.
    max_units : int, sequence of int or None, default None
        Largest numbers of units to choose from. Strengths are scored with the largest of them. None for the
        estimator's.
    cv : int, splitter or iterable, default 3
        Folds, as for ``sklearn.model_selection.cross_val_score``; a number of folds is stratified for labels, and
        shuffled for numbers and ordered levels. A pair of index arrays, ``[(train, test)]``, is an evaluation set.
    scoring : str, callable or None, default None
        The score of scikit-learn, the larger the better, such as "roc_auc_ovr". None for ``estimator.score``.
    n_jobs : int or None, default None
        Number of folds in parallel, each in its own process (joblib).

    Attributes
    ----------
    best_estimator_ : estimator
        The estimator, fitted to all samples with ``best_params_``.
    best_params_ : dict
        The chosen ``strength``, a number for all samples, and ``max_units``.
    best_score_ : float
        Their mean score over the folds, weighted by the held-out samples of every fold.
    best_index_ : int
        Their row of ``cv_results_``.
    cv_results_ : dict of ndarray
        A row for every strength with the largest ``max_units``, descending, then one for every smaller number of units
        with the best strength: "params", "param_strength", "param_max_units", "mean_test_score", "std_test_score",
        "rank_test_score" and "split0_test_score", "split1_test_score", ....
    scorer_ : callable
        The scorer.
    n_splits_ : int
        The number of folds.

    See Also
    --------
    mopn.path : A single path of strengths.

    Notes
    -----
    ``max_time`` of the estimator is for the whole call of ``fit``, a third of it at most for the search: strengths and
    numbers of units without time have the score -inf. After Ctrl-C ``best_estimator_`` is the best one so far, of the
    samples of a fold (with ``n_jobs=1``).

    Weights of samples and of classes count in the scores, too. Predictions, explanations, exports, ``classes_`` and
    ``model_`` are delegated to ``best_estimator_``.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import MultiOutputPNClassifier, PathCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> search = PathCV(MultiOutputPNClassifier(), max_units=(5, 2)).fit(X, y)
    >>> search.best_params_["max_units"], search.cv_results_["mean_test_score"].shape, search.score(X, y) > 0.9
    (2, (5,), True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        strengths: Any = (Ratio(0.03), Ratio(0.006), Ratio(0.0015), Ratio(0.0003)),
        max_units: Any = None,
        cv: Any = 3,
        scoring: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.strengths = strengths
        self.max_units = max_units
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs

    @with_callbacks
    @quiet()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Score all strengths and sizes on every fold, and fit the best ones to all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Training data, in memory.
        y : array-like of shape (n,) or (n, m)
            As for the estimator.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 equals a repeated sample within its fold.
        **params
            Arguments of the splitter ``cv``, such as ``groups``.

        Returns
        -------
        self
            The fitted search.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter are invalid, or if a class is missing in the training part of a fold.
        """
        self._check_arguments(X)
        deadline = Deadline(self.estimator.max_time)
        most = self.estimator.max_units if self.max_units is None else self.max_units
        sizes = None if isinstance(most, str) and most == "auto" else _SIZES(most, "max_units")
        unfitted = clone(self.estimator).set_params(max_units=most if sizes is None else sizes[0])
        fit = network_fit_of(unfitted)
        self.scorer_ = check_scoring(unfitted, self.scoring)
        print_progress(unfitted.verbose, "reading the samples")
        given = X, y, sample_weight
        X, y, sample_weight, present = samples_of_fit(unfitted, *given)
        vars(unfitted).pop("feature_names_in_", None)  # scikit-learn has checked the names
        targets = fit.encode(y, sample_weight)
        problem, _ = fit.problem_of_distinct_samples(X, targets)
        if sizes is None:
            fit = fit.sized(problem)
            sizes = [fit.options.max_units]
            unfitted.set_params(max_units=sizes[0])
        if not np.iterable(self.strengths) or isinstance(self.strengths, str):
            raise ValueError(f"strengths must be numbers > 0 or ratios, several of them, got {shown(self.strengths)}")
        strengths = check_strengths(problem, self.strengths)
        weight = problem.losses.total_weight
        del problem  # it has a copy of the samples
        # The number of all samples, with and without weight.
        n = len(y) if given[2] is None else len(as_array(to_host(given[2]), "sample_weight"))
        parts = self._splitter(y, present, n).split(X, y, **process_routing(self, "fit", **params).splitter.split)
        shared: dict[str, Any] = {"n_strengths": len(strengths), "unfitted": unfitted, "scorer": self.scorer_}
        folds = [
            ScoredFold(fit, X, targets, weight, train, test, **shared) for train, test in _checked_folds(parts, targets)
        ]
        self.n_splits_ = len(folds)
        # A path and smaller sizes for each fold, and the last fit.
        task = begin_fit(self, samples_of(X, y, sample_weight), 2 * len(folds) + 1)
        try:
            self._search(folds, strengths, sizes, deadline.share(SHARE_OF_CHOICE), task)
        except KeyboardInterrupt:
            self._keep_best(folds, strengths)
            raise
        return self._refitted(deadline, task, *given)

    def _check_arguments(self, X: Any) -> None:
        """Refuse parameters and blocks of rows that no search can take."""
        if not isinstance(self.estimator, NetworkEstimator):
            raise TypeError(
                "estimator must be a multi-output or ordinal estimator of mopn.estimators, got "
                f"{shown(self.estimator)}; for others there is sklearn.model_selection.GridSearchCV, and within a "
                "pipeline PathCV is the last step: make_pipeline(TableEncoder(), PathCV(MultiOutputPNClassifier()))"
            )
        if isinstance(X, RowBlocks):
            raise TypeError("folds are drawn at random, which needs X in memory; give an array or a sparse matrix")
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise TypeError(f"scoring must be the name of one score, a callable or None, got {shown(self.scoring)}")
        if not (self.n_jobs is None or isinstance(self.n_jobs, Integral)):
            raise TypeError(f"n_jobs must be an integer or None, got {shown(self.n_jobs)}")

    def _splitter(self, y: np.ndarray, present: np.ndarray, n: int) -> Any:
        """Return the splitter of the samples present; numbers of folds are stratified for labels, else shuffled."""
        if isinstance(self.cv, str | bytes) or not (hasattr(self.cv, "split") or np.iterable(self.cv)):
            n_folds = check_cv(_FOLDS(self.cv, "cv")).n_splits
            if is_classifier(self.estimator):
                return check_cv(n_folds, y, classifier=True)
            return KFold(n_folds, shuffle=True, random_state=0)
        return self.cv if hasattr(self.cv, "split") else check_cv([_among(fold, present, n) for fold in self.cv])

    def _keep_best(self, folds: Sequence[ScoredFold], strengths: np.ndarray) -> None:
        """Keep the network of the best score so far, of the samples of its fold; other processes take theirs along."""
        seen = [(score, fold, i) for fold in folds for i, score in enumerate(fold.scores)]
        if seen:
            _, fold, i = max(seen, key=lambda found: found[0])
            self.best_estimator_ = fold.estimator(fold.networks[i]).set_params(strength=float(strengths[i]))

    def _refitted(self, deadline: Deadline, task: Task, *samples: Any) -> Self:
        """Fit the best parameters in the time that is left, which ends the task of the search."""
        best = clone(self.estimator).set_params(**self.best_params_)
        refit = task.subtask("refit")
        best.max_time = deadline.left
        with refit.handed_on(best):
            refit.begin()
            try:
                best.fit(*samples)
            finally:
                best.max_time = self.estimator.max_time
                # After Ctrl-C the estimator is fitted to the best point so far.
                if hasattr(best, "model_"):
                    self.best_estimator_ = best
        refit.end({})
        task.end({})
        return self

    def _search(
        self, folds: Sequence[ScoredFold], strengths: np.ndarray, sizes: list[int], deadline: Deadline, task: Task
    ) -> None:
        parallel = Parallel(n_jobs=self.n_jobs)
        # Folds that wait for others have the same time.
        turns = math.ceil(len(folds) / effective_n_jobs(self.n_jobs))
        print_progress(self.estimator.verbose, f"{len(folds)} folds of {len(strengths)} strengths")
        # Other processes get copies of the tasks, so these are all there before the first one starts.
        tasks = [task.subtask("fold", len(strengths), _samples(fold)) for fold in folds]
        seconds = deadline.share(_SHARE_OF_PATHS).left / turns
        paths = parallel(
            delayed(_path)(fold, strengths, part, seconds) for fold, part in zip(folds, tasks, strict=True)
        )
        weights = np.array([fold.targets.rows(fold.test).total_weight for fold in folds])
        scores = np.array([scores for scores, _ in paths])
        best = int(np.argmax(np.average(scores, axis=0, weights=weights)))

        print_progress(self.estimator.verbose, f"{len(folds)} folds of {len(sizes)} numbers of units")
        seconds = deadline.left / turns
        tasks = [task.subtask("sizes", 0, _samples(fold)) for fold in folds]
        pruned = np.array(
            parallel(
                delayed(_prune)(fold, fits[best], strengths[best], sizes, part, seconds)
                for fold, (_, fits), part in zip(folds, paths, tasks, strict=True)
            )
        )
        smallest = _smallest(pruned, weights)
        rows = [{"strength": float(strength), "max_units": sizes[0]} for strength in strengths]
        rows += [{"strength": float(strengths[best]), "max_units": size} for size in sizes[1:]]
        self.cv_results_ = _table(rows, np.hstack([scores, pruned[:, 1:]]), weights)
        self.best_index_ = best if smallest == 0 else len(strengths) + smallest - 1
        self.best_params_ = rows[self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])

    @available_if(_best_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict y by the best estimator, for X as in its ``predict``."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the best estimator, for X as in ``predict``."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the outputs of the best estimator, for X as in ``predict``."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    def problem(self, X: Any, y: Any = None, sample_weight: Any = None) -> NetworkProblem:
        """Return the problem of ``best_estimator_``, or before ``fit`` of ``estimator`` with its own strength.

        It has the rows of X, as the estimator's ``problem``; X, y and the weights are as for its ``fit``.
        """
        estimator = getattr(self, "best_estimator_", self.estimator)
        return estimator.problem(X, y, sample_weight)

    def _fitted_model(self) -> Predictor:
        check_is_fitted(self)
        return self.best_estimator_.model_

    @property
    def dual_(self) -> Dual | None:
        """The dual point of the best estimator; ``dual_.point(search.problem(X, y))`` has a row for each row of X."""
        return self.best_estimator_.dual_

    @property
    def classes_(self) -> np.ndarray:
        """Labels of the best estimator, if it is a classifier."""
        return self.best_estimator_.classes_

    @property
    def model_(self) -> Predictor:
        """The model of the best estimator."""
        return self.best_estimator_.model_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if all are strings."""
        return self.best_estimator_.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)

    @quiet()
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the best estimator, by ``scoring``, for samples as in ``fit``."""
        check_is_fitted(self)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.scorer_(self.best_estimator_, X, y, **weights))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of ``fit``: the weights stay here, and the rest goes to the splitter."""
        to_split = MethodMapping().add(caller="fit", callee="split")
        return MetadataRouter(owner=self).add_self_request(self).add(splitter=self.cv, method_mapping=to_split)


@quiet()
def _path(fold: ScoredFold, strengths: np.ndarray, task: Task, seconds: float) -> tuple[np.ndarray, list[Result]]:
    """Return the scores of the strengths, -inf where a callback or time left one out, and their networks."""
    task.begin()
    deadline = Deadline(seconds)
    trials = walk(strengths, [fold.losses_at], to_the_end, _ITERATIONS, deadline)
    for strength in strengths:
        candidate = task.subtask("candidate").begin()
        next(trials)
        network = fold.networks[-1]
        if network.error is not None:
            raise network.error
        stop = candidate.end(lambda network=network: {"best_estimator_": fold.estimator(network)})
        words = f"  strength {strength:.6g}: score {fold.scores[-1]:.6g}, {len(network.basis)} units"
        print_progress(fold.fit.options.verbose, words)
        if stop or deadline.is_over:
            break
    task.end()
    return _with_missing(fold.scores, len(strengths)), fold.networks


@quiet()
def _prune(
    fold: ScoredFold, network: Result, strength: float, sizes: Sequence[int], task: Task, seconds: float
) -> np.ndarray:
    """Return the scores of the network of a strength cut down to sizes; -inf where time has run out."""
    task.begin()
    scores: list[float] = []
    deadline = Deadline(seconds)
    for size, smaller in zip(sizes, _pruned(fold, network, strength, sizes, deadline), strict=False):
        scores.append(fold.score(smaller))
        print_progress(fold.fit.options.verbose, f"  at most {size} units: score {scores[-1]:.6g}")
    task.end()
    return _with_missing(scores, len(sizes))


def _with_missing(scores: list[float], n: int) -> np.ndarray:
    """Return n scores, the missing ones as -inf."""
    found = np.full(n, -math.inf)
    found[: len(scores)] = scores
    return found


def _pruned(
    fold: ScoredFold, network: Result, strength: float, sizes: Sequence[int], deadline: Deadline
) -> Iterator[Result]:
    """Yield the network cut down to the units of largest weights, size by size, while there is time."""
    problem = fold.problem.with_strength(fold.part * strength)
    for size in sizes:
        if len(network.basis) > size:
            if deadline.is_over:
                return
            kept = np.argsort(-np.linalg.norm(network.weights, axis=1), kind="stable")[:size]
            start = network.basis[kept], network.weights[kept], network.linear
            limits: Any = {"tol": fold.fit.options.tol, "max_iter": 1, "max_time": deadline.left}
            network = minimize(problem, fold.solver(1, size, _ITERATIONS), start=start, **limits)
            if network.status == Status.INTERRUPTED:
                raise KeyboardInterrupt
            if network.error is not None:
                raise network.error
        yield network


def _samples(fold: ScoredFold) -> dict[str, Any]:
    targets = fold.targets.rows(fold.train)
    return samples_of(fold.X[fold.train], targets.y, targets.sample_weight)


def _checked_folds(parts: Iterable[Any], targets: Targets) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds of a splitter, each with samples to train on and to hold out, and with all classes to train."""
    folds = list(parts)
    if not folds:
        raise ValueError("cv has no folds; give at least one pair of training and test samples")
    for train, test in folds:
        if not (len(train) and len(test)):
            raise ValueError("cv has a fold with no sample of positive weight to train on, or none to hold out")
    for train, _ in folds:
        missing = np.setdiff1d(targets.y, targets.y[train]) if targets.form == "labels" else np.zeros(0)
        if len(missing):
            raise ValueError(f"a fold has no sample of the classes {missing} to train on; give fewer folds (cv)")
    return folds


def _among(fold: Any, present: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    """Turn a fold that is given as indices of n samples, or as flags, into indices of the samples present."""
    parts = [as_array(part, "cv") for part in fold] if np.iterable(fold) else []
    if len(parts) != 2 or any(part.ndim != 1 or part.dtype.kind not in "iub" for part in parts):
        raise ValueError(f"cv must hold pairs of indices, of training and of test samples, got {shown(fold)}")
    if any(len(part) != n if part.dtype == bool else ((part < 0) | (part >= n)).any() for part in parts):
        raise ValueError(f"cv must hold indices of the {n} samples, from 0, or {n} flags, got {shown(fold)}")
    indices = [np.flatnonzero(part) if part.dtype == bool else part for part in parts]
    return tuple(np.searchsorted(present, part[np.isin(part, present)]) for part in indices)


def _moments(scores: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and deviations over the folds, each with the weight of its held-out samples."""
    mean = np.average(scores, axis=0, weights=weights)
    with np.errstate(invalid="ignore"):  # of strengths that a callback left out
        return mean, np.sqrt(np.average((scores - mean) ** 2, axis=0, weights=weights))


def _smallest(scores: np.ndarray, weights: np.ndarray) -> int:
    """Return the index of the smallest size whose mean is within one standard error of the best."""
    mean, deviation = _moments(scores, weights)
    best = np.argmax(mean)
    return int(np.flatnonzero(mean >= mean[best] - deviation[best] / math.sqrt(max(len(scores) - 1, 1)))[-1])


def _table(rows: list[dict[str, Any]], scores: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    mean, deviation = _moments(scores, weights)
    columns = {f"param_{name}": np.array([row[name] for row in rows]) for name in rows[0]}
    splits = {f"split{fold}_test_score": part for fold, part in enumerate(scores)}
    ranks = rankdata(-mean, method="min").astype(np.int32)
    moments = {"mean_test_score": mean, "std_test_score": deviation, "rank_test_score": ranks}
    return columns | {"params": rows} | splits | moments
