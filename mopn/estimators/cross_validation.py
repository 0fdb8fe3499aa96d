"""Classifiers that choose their strength by cross-validation over regularisation paths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from mopn.core.losses import Loss
from mopn.core.validation import as_array
from mopn.estimators.base import network_model
from mopn.estimators.classifiers import Classifier, MultiOutputFMClassifier, MultiOutputPNClassifier
from mopn.estimators.docs import CLASSIFIER, CROSS_VALIDATED, NETWORK, documented
from mopn.estimators.parameters import N_JOBS
from mopn.estimators.targets import Targets, merge_equal_samples
from mopn.regularization_path import check_strengths, path, path_solver
from mopn.solvers import Status
from mopn.solvers.checks import Rule, count, shown
from mopn.solvers.conditional_gradient.correction import Correction

__all__ = ["MultiOutputFMClassifierCV", "MultiOutputPNClassifierCV"]


_FOLDS = Rule("an integer >= 2, a splitter, folds of indices or None", count(2).or_none().convert)


class ClassifierCV(Classifier):
    """Base of the classifiers with cross-validation; ``_single`` is the classifier that is validated."""

    _rules = Classifier._rules | {"n_jobs": N_JOBS}
    _single: ClassVar[type[Classifier]]

    def __init__(
        self,
        *,
        strengths: Any = 20,
        ratio: float = 1e-3,
        cv: Any = 5,
        n_jobs: int | None = None,
        loss: str | Loss = "logistic",
        norm: str = "l1/l2",
        max_units: int | None = 50,
        refit: str | Correction = "full",
        augment: bool = True,
        center: bool | None = None,
        scale: str | None = "features",
        alpha: float | None = None,
        tol: float = 1e-3,
        max_iter: int | None = 1000,
        class_weight: Any = None,
        verbose: int = 0,
    ) -> None:
        self.strengths = strengths
        self.ratio = ratio
        self.cv = cv
        self.n_jobs = n_jobs
        self.loss = loss
        self.norm = norm
        self.max_units = max_units
        self.refit = refit
        self.augment = augment
        self.center = center
        self.scale = scale
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Score all strengths on every fold, and fit a network of the best strength to all samples.

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
        names = set(self.get_params()) - {"strengths", "ratio", "cv", "n_jobs"}
        single = self._single(**{name: getattr(self, name) for name in names})
        X, y, sample_weight, present = self._samples(X, y, sample_weight)
        targets = single._encode(y, sample_weight)
        strengths = check_strengths(single._problem(*merge_equal_samples(X, targets)), self.strengths, self.ratio)
        folds = list(check_cv(_among(self.cv, present), y, classifier=True).split(X, y))
        if not folds:
            raise ValueError("cv has no folds; give at least one pair of training and test samples")
        self.scores_ = np.array(
            Parallel(n_jobs=self.n_jobs)(
                delayed(_fold_scores)(single, X, targets, train, test, strengths) for train, test in folds
            )
        )
        self.strengths_ = strengths
        self.strength_ = float(strengths[np.argmax(self.scores_.mean(axis=0))])
        best = single.set_params(strength=self.strength_).fit(X, y, sample_weight)
        own = ("n_features_in_", "feature_names_in_")
        self.__dict__.update({name: v for name, v in vars(best).items() if name.endswith("_") and name not in own})
        return self


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


def _fold_scores(
    single: Classifier, X: Any, targets: Targets, train: np.ndarray, test: np.ndarray, strengths: np.ndarray
) -> np.ndarray:
    """Return the scores of a path on the test part of a fold."""
    training, held_out = targets.rows(train), targets.rows(test)
    # The score has the weights of the objective.
    held_out = replace(held_out, sample_weight=held_out.weights, class_factor=None)
    missing = np.setdiff1d(targets.y, training.y) if training.form == "labels" else np.zeros(0)
    if len(missing):
        raise ValueError(f"a fold has no sample of the classes {missing} to train on; give fewer folds (cv)")
    merged, merged_targets = merge_equal_samples(X[train], training)
    problem = single._problem(merged, merged_targets)
    found = path(problem, strengths, path_solver(len(strengths), single.max_units, single.refit), tol=single.tol)
    last = found.results[-1]
    if last.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    if last.error is not None:
        raise last.error
    models = [network_model(problem, targets, result) for result in found.results]
    return np.array([single._score(held_out, model.predict(X[test])) for model in models])


@documented(CROSS_VALIDATED, CLASSIFIER, NETWORK)
class MultiOutputPNClassifierCV(ClassifierCV):
    """:class:`MultiOutputPNClassifier` with the strength of the best cross-validated accuracy.

    Every fold follows one path of warm-started fits from the largest strength down; then a network for the best
    strength is fitted to all samples.

    See Also
    --------
    MultiOutputPNClassifier : For a given strength.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import MultiOutputPNClassifierCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> classifier = MultiOutputPNClassifierCV(strengths=5, cv=3, max_units=5).fit(X, y)
    >>> classifier.scores_.shape, bool(classifier.strength_ < classifier.strengths_[0])
    ((3, 5), True)
    """

    _kernel = "homogeneous"
    _single = MultiOutputPNClassifier


@documented(CROSS_VALIDATED, CLASSIFIER, NETWORK)
class MultiOutputFMClassifierCV(ClassifierCV):
    """:class:`MultiOutputFMClassifier` with the strength of the best cross-validated accuracy.

    Every fold follows one path of warm-started fits from the largest strength down; then a network for the best
    strength is fitted to all samples.

    See Also
    --------
    MultiOutputFMClassifier : For a given strength.

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
