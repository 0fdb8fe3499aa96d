"""Classifiers and ordinal regressors that choose their strength and their number of units on held-out samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.parallel import Parallel, delayed

from mopn.core.coordinates import ScaleName
from mopn.core.losses import Loss, LossName
from mopn.core.norms import NormName
from mopn.core.row_blocks import RowBlocks
from mopn.core.validation import as_array
from mopn.estimators.base import NetworkEstimator, network_model
from mopn.estimators.classifiers import Classifier, MultiOutputFMClassifier, MultiOutputPNClassifier
from mopn.estimators.docs import CLASSIFIER, CROSS_VALIDATED, NETWORK, ORDINAL, documented
from mopn.estimators.ordinal import OrdinalFMRegressor
from mopn.estimators.parameters import N_JOBS
from mopn.estimators.targets import Targets, merge_equal_samples
from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import check_series, path, path_solver
from mopn.solvers import ConditionalGradient, Result, Status, minimize
from mopn.solvers.checks import Rule, count, shown
from mopn.solvers.conditional_gradient import RefitName
from mopn.solvers.conditional_gradient.correction import Correction
from mopn.solvers.numerics.cached import cached_property
from mopn.solvers.progress import Verbose

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MultiOutputFMClassifierCV", "MultiOutputPNClassifierCV", "OrdinalFMRegressorCV"]


# Iterations of each refit on the folds, which start at the network of the strength or of the size before.
_REFIT_ITER = 15


def _sizes(value: Any) -> list[int]:
    sizes = {count().convert(size) for size in (value if np.iterable(value) else [value])}
    if not sizes:
        raise ValueError
    return sorted(sizes, reverse=True)


_SIZES = Rule("an integer >= 1 or several", _sizes)
_FOLDS = Rule("an integer >= 2, a splitter, folds of indices or None", count(2).or_none().convert)


class CrossValidated(NetworkEstimator):
    """Base of the estimators with cross-validation; ``_single`` is the estimator that is validated."""

    _single: ClassVar[type[NetworkEstimator]]
    # The parameters of the search; all others are those of the single estimator.
    _own_parameters: ClassVar[frozenset[str]] = frozenset({"shares", "strengths", "max_units", "cv", "n_jobs"})
    shares: Any
    strengths: Any
    cv: Any
    n_jobs: int | None

    # Folds take the place of samples of one's own to validate on.
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Score all strengths and sizes on every fold, and fit a network of the best ones to all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Training data; see ``center`` and ``scale``.
        y : array-like of shape (n,) or (n, m)
            Labels, or an indicator matrix of 0 and 1.
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
        sizes = _SIZES(self.max_units, "max_units")
        names = set(self.get_params()) - self._own_parameters
        single = self._single(max_units=sizes[0], **{name: getattr(self, name) for name in names})
        X, y, sample_weight, present = self._samples(X, y, sample_weight)
        targets = single._encode(y, sample_weight)
        strengths = self._series(single, X, targets)
        parts = list(self._splitter(_among(self.cv, present), y).split(X, y))
        if not parts:
            raise ValueError("cv has no folds; give at least one pair of training and test samples")
        folds = [_Fold.of(single, X, targets, train, test) for train, test in parts]
        self.fold_weights_ = np.array([fold.held_out[1].total_weight for fold in folds])
        parallel = Parallel(n_jobs=self.n_jobs)

        paths = parallel(delayed(fold.path)(strengths) for fold in folds)
        self.strengths_, self.scores_ = strengths, np.array([scores for scores, _ in paths])
        best = int(np.argmax(self._mean(self.scores_)))
        self.strength_ = float(strengths[best])

        networks = [results[best] for _, results in paths]
        pruned = parallel(
            delayed(_Fold.prune)(*each, self.strength_, sizes) for each in zip(folds, networks, strict=True)
        )
        self.sizes_, self.size_scores_ = np.array(sizes), np.array(pruned)
        self.max_units_ = sizes[self._smallest(self.size_scores_)]

        single.set_params(strength=self.strength_, max_units=self.max_units_).fit(X, y, sample_weight)
        # The first two are known since X was checked, and nothing was held out from this fit.
        own = ("n_features_in_", "feature_names_in_", "validation_scores_")
        self.__dict__.update({name: v for name, v in vars(single).items() if name.endswith("_") and name not in own})
        return self

    def _splitter(self, cv: Any, y: np.ndarray) -> Any:
        """Return the splitter for ``cv``."""
        return check_cv(cv, y, classifier=True)

    def _series(self, single: NetworkEstimator, X: Any, targets: Targets) -> np.ndarray:
        """Return the strengths for all samples, descending."""
        if self.strengths is not None:
            return check_series(self.strengths, "strengths")
        shares = check_series(self.shares, "shares")
        if shares[0] >= 1.0:
            raise ValueError(f"shares must be less than 1, for which the network is empty, got {shown(self.shares)}")
        return shares * single._problem(*merge_equal_samples(X, targets)).strength_of_share(1.0)

    def _mean(self, scores: np.ndarray) -> np.ndarray:
        """Return the mean over the folds, each with the weight of its held-out samples."""
        return np.average(scores, axis=0, weights=self.fold_weights_)

    def _smallest(self, scores: np.ndarray) -> int:
        """Return the index of the smallest size whose mean is within one standard error of the best."""
        mean = self._mean(scores)
        errors = np.sqrt(self._mean((scores - mean) ** 2) / max(len(scores) - 1, 1))
        best = np.argmax(mean)
        return int(np.flatnonzero(mean >= mean[best] - errors[best])[-1])


class ClassifierCV(CrossValidated, Classifier):
    """Base of the classifiers with cross-validation."""

    _rules = Classifier._rules | {"n_jobs": N_JOBS, "max_units": _SIZES}

    def __init__(
        self,
        *,
        shares: Any = (0.03, 0.006, 0.0015, 0.0003),
        strengths: Any = None,
        max_units: Any = (50, 20),
        cv: Any = 3,
        n_jobs: int | None = None,
        loss: LossName | Loss = "logistic",
        norm: NormName = "l1/l2",
        refit: RefitName | Correction = "full",
        oracle: OracleName | BasisOracle = "auto",
        augment: bool = True,
        center: bool | None = None,
        scale: ScaleName | None = "features",
        alpha: float | None = None,
        tol: float = 1e-3,
        max_iter: int | None = 1000,
        class_weight: Any = None,
        verbose: Verbose = 0,
    ) -> None:
        self.shares = shares
        self.strengths = strengths
        self.max_units = max_units
        self.cv = cv
        self.n_jobs = n_jobs
        self.loss = loss
        self.norm = norm
        self.refit = refit
        self.oracle = oracle
        self.augment = augment
        self.center = center
        self.scale = scale
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.verbose = verbose


@dataclass(frozen=True)
class _Fold:
    """The training and the held-out samples of a fold.

    The losses are added up over the samples: the strengths of all samples are multiplied by ``part``, the fraction of
    their weight that is trained on.
    """

    single: NetworkEstimator
    training: tuple[Any, Targets]
    held_out: tuple[Any, Targets]
    part: float

    @classmethod
    def of(cls, single: NetworkEstimator, X: Any, targets: Targets, train: np.ndarray, test: np.ndarray) -> _Fold:
        """Return the fold of some training and test samples."""
        training, held_out = targets.rows(train), targets.rows(test)
        missing = np.setdiff1d(targets.y, training.y) if training.form == "labels" else np.zeros(0)
        if len(missing):
            raise ValueError(f"a fold has no sample of the classes {missing} to train on; give fewer folds (cv)")
        # The score has the weights of the objective.
        held_out = replace(held_out, sample_weight=held_out.weights, class_factor=None)
        part = training.total_weight / targets.total_weight
        return cls(single, merge_equal_samples(X[train], training), (X[test], held_out), part)

    @cached_property
    def problem(self) -> NetworkProblem:
        """The problem of the training samples; each process makes its own."""
        return self.single._problem(*self.training)

    def path(self, strengths: np.ndarray) -> tuple[list[float], list[Result]]:
        """Return the scores of a path of warm-started networks, and the networks."""
        results = path(self.problem, self.part * strengths, self._solver(len(strengths)), tol=self.single.tol).results
        _raise_what_ended(results[-1])
        return [self._score(result) for result in results], results

    def prune(self, network: Result, strength: float, sizes: list[int]) -> list[float]:
        """Return the scores of a network cut down to sizes, each from the one before."""
        problem, solver, scores = self.problem.with_strength(self.part * strength), self._solver(1), []
        for size in sizes:
            if len(network.basis) > size:
                kept = np.argsort(-np.linalg.norm(network.weights, axis=1), kind="stable")[:size]
                start = network.basis[kept], network.weights[kept], network.linear
                network = minimize(
                    problem, replace(solver, max_units=size), start=start, tol=self.single.tol, max_iter=1
                )
                _raise_what_ended(network)
            scores.append(self._score(network))
        return scores

    def _solver(self, n_strengths: int) -> ConditionalGradient:
        single, precision = self.single, self.single._precision(self.problem)
        solver = path_solver(n_strengths, single.max_units, single.refit, _REFIT_ITER, precision)
        # All units enter at once if refits move them: the number of units is not to grow along the path.
        return replace(solver, atoms_per_round=None) if solver.correction.can_move_units else solver

    def _score(self, network: Result) -> float:
        X, targets = self.held_out
        return self.single._score(targets, network_model(self.problem, targets, network).predict(X))


def _raise_what_ended(result: Result) -> None:
    """Raise the interrupt or the error that ended a run."""
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.error is not None:
        raise result.error


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


@documented(CROSS_VALIDATED, CLASSIFIER, NETWORK)
class MultiOutputPNClassifierCV(ClassifierCV):
    """:class:`MultiOutputPNClassifier` with the strength and the number of units chosen by cross-validation.

    Every fold follows one path of short, warm-started refits from the largest strength down. The networks of the best
    strength are cut down to fewer units, and a network of the chosen strength and size is fitted to all samples. With
    the defaults this is mostly three to four times the work of a fit.

    See Also
    --------
    MultiOutputPNClassifier : For a given strength and size.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import MultiOutputPNClassifierCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> classifier = MultiOutputPNClassifierCV(max_units=(5, 2)).fit(X, y)
    >>> classifier.scores_.shape, classifier.max_units_
    ((3, 4), 2)
    """

    _kernel = "homogeneous"
    _single = MultiOutputPNClassifier


@documented(CROSS_VALIDATED, CLASSIFIER, NETWORK)
class MultiOutputFMClassifierCV(ClassifierCV):
    """:class:`MultiOutputFMClassifier` with the strength and the number of units chosen by cross-validation.

    Every fold follows one path of short, warm-started refits from the largest strength down. The networks of the best
    strength are cut down to fewer units, and a network of the chosen strength and size is fitted to all samples. With
    the defaults this is mostly three to four times the work of a fit.

    See Also
    --------
    MultiOutputFMClassifier : For a given strength and size.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import MultiOutputFMClassifierCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> MultiOutputFMClassifierCV(strengths=[0.1, 1.0, 10.0], cv=3, max_units=5).fit(X, y).score(X, y) > 0.9
    True
    """

    _kernel = "anova"
    _single = MultiOutputFMClassifier


@documented(CROSS_VALIDATED, ORDINAL, NETWORK)
class OrdinalFMRegressorCV(CrossValidated, OrdinalFMRegressor):
    """:class:`OrdinalFMRegressor` with the strength and the number of units chosen by cross-validation.

    The search is that of :class:`MultiOutputFMClassifierCV`, by R^2. A number of folds means folds of rows that are
    shuffled, always alike: ratings mostly come in the order of their users, and a fold of whole users would ask for
    another thing, how well new users are served.

    See Also
    --------
    OrdinalFMRegressor : For a given strength and size.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import OrdinalFMRegressorCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> y = np.digitize(X[:, 0] * X[:, 1], [-0.2, 0.2])
    >>> OrdinalFMRegressorCV(strengths=[0.1, 1.0, 10.0], max_units=5).fit(X, y).strength_
    0.1
    """

    _rules = OrdinalFMRegressor._rules | {"n_jobs": N_JOBS, "max_units": _SIZES}
    _single = OrdinalFMRegressor

    def __init__(
        self,
        *,
        shares: Any = None,
        strengths: Any = (7.0, 5.0, 3.5, 2.5),
        max_units: Any = (50, 20),
        cv: Any = 3,
        n_jobs: int | None = None,
        loss: LossName | Loss = "binary-logistic",
        norm: NormName = "l1/l2",
        refit: RefitName | Correction = "full",
        augment: bool = False,
        center: bool | None = None,
        scale: ScaleName | None = None,
        alpha: float | None = 0.7,
        tol: float = 5e-3,
        max_iter: int | None = 1000,
        verbose: Verbose = 0,
    ) -> None:
        self.shares = shares
        self.strengths = strengths
        self.max_units = max_units
        self.cv = cv
        self.n_jobs = n_jobs
        self.loss = loss
        self.norm = norm
        self.refit = refit
        self.augment = augment
        self.center = center
        self.scale = scale
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _splitter(self, cv: Any, y: np.ndarray) -> Any:
        """Return the splitter for ``cv``; numbers of folds are shuffled."""
        folds = check_cv(cv)
        given = hasattr(cv, "split") or np.iterable(cv)
        return folds if given else KFold(folds.n_splits, shuffle=True, random_state=0)
