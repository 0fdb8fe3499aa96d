"""Classifiers and ordinal regressors that choose their strength and their number of units on held-out samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mopn.core.coordinates import ScaleName
from mopn.core.losses import Loss, LossName
from mopn.core.norms import NormName
from mopn.estimators.base import NetworkEstimator, network_model
from mopn.estimators.classifiers import Classifier, MultiOutputFMClassifier, MultiOutputPNClassifier
from mopn.estimators.docs import CLASSIFIER, CROSS_VALIDATED, FOLDS, NETWORK, ORDINAL, documented
from mopn.estimators.folds import SIZES, Candidate, CrossValidated, Fold
from mopn.estimators.ordinal import OrdinalFMRegressor
from mopn.estimators.parameters import N_JOBS
from mopn.estimators.targets import Targets, merge_equal_samples
from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import check_series, path_solver, solutions
from mopn.solvers import ConditionalGradient, Result, Status, minimize
from mopn.solvers.checks import shown
from mopn.solvers.conditional_gradient import RefitName
from mopn.solvers.conditional_gradient.correction import Correction
from mopn.solvers.numerics.cached import cached_property
from mopn.solvers.progress import Verbose

__all__ = ["MultiOutputFMClassifierCV", "MultiOutputPNClassifierCV", "OrdinalFMRegressorCV"]


# Iterations of each refit on the folds, which start at the network of the strength or of the size before.
_REFIT_ITER = 15


class NetworkCV(CrossValidated, NetworkEstimator):  # type: ignore[misc]  # folds replace X_val
    """Base of the estimators of networks with cross-validation."""

    _own_parameters = frozenset({"shares", "strengths", "max_units", "cv", "n_jobs"})
    _size_name = "max_units"
    _searched: ClassVar[dict[str, str]] = {"strength": "strength"}
    shares: Any
    strengths: Any

    def _targets(self, single: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        return single._encode(y, sample_weight)

    def _grid(self, single: Any, X: Any, targets: Targets) -> dict[str, np.ndarray]:
        """Return the strengths for all samples, descending."""
        if self.strengths is not None:
            return {"strength": check_series(self.strengths, "strengths")}
        shares = check_series(self.shares, "shares")
        if shares[0] >= 1.0:
            raise ValueError(f"shares must be less than 1, for which the network is empty, got {shown(self.shares)}")
        return {"strength": shares * single._problem(*merge_equal_samples(X, targets)).strength_of_share(1.0)}

    def _fold(self, single: Any, X: Any, targets: Targets, train: np.ndarray, test: np.ndarray) -> Fold:
        return _NetworkFold.of(single, X, targets, train, test)


class ClassifierCV(NetworkCV, Classifier):  # type: ignore[misc]
    """Base of the classifiers with cross-validation."""

    _rules = Classifier._rules | {"n_jobs": N_JOBS, "max_units": SIZES}

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


class _NetworkFold(Fold):
    """A fold whose candidates are strengths: fits are networks."""

    @cached_property
    def problem(self) -> NetworkProblem:
        """The problem of the training samples; each process makes its own."""
        return self.single._problem(*merge_equal_samples(*self.training))

    def _path(self, candidates: Sequence[Candidate]) -> Iterator[Result]:
        strengths = self.part * np.array([candidate["strength"] for candidate in candidates])
        solver = self._solver(len(strengths))
        for _, result in solutions(self.problem, strengths, solver, tol=self.single.tol, max_iter=1):
            _raise_what_ended(result)
            yield result

    def _pruned(self, fit: Result, candidate: Candidate, sizes: Sequence[int]) -> Iterator[Result]:
        """Yield the network cut down to the units of largest weights."""
        problem = self.problem.with_strength(self.part * candidate["strength"])
        for size in sizes:
            if len(fit.basis) > size:
                kept = np.argsort(-np.linalg.norm(fit.weights, axis=1), kind="stable")[:size]
                start = fit.basis[kept], fit.weights[kept], fit.linear
                solver = replace(self._solver(1), max_units=size)
                fit = minimize(problem, solver, start=start, tol=self.single.tol, max_iter=1)
                _raise_what_ended(fit)
            yield fit

    def _solver(self, n_strengths: int) -> ConditionalGradient:
        single, precision = self.single, self.single._precision(self.problem)
        solver = path_solver(n_strengths, single.max_units, single.refit, _REFIT_ITER, precision)
        # All units enter at once if refits move them: the number of units is not to grow along the path.
        return replace(solver, atoms_per_round=None) if solver.correction.can_move_units else solver

    def _score(self, network: Result) -> float:
        X, targets = self.held_out
        return self.single._score(targets, network_model(self.problem, targets, network).predict(X))

    def _attributes(self, network: Result) -> dict[str, Any]:
        return self.single._attributes(self.problem, self.training[1], network)


def _raise_what_ended(result: Result) -> None:
    """Raise the interrupt or the error that ended a run."""
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.error is not None:
        raise result.error


@documented(CROSS_VALIDATED, FOLDS, CLASSIFIER, NETWORK)
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


@documented(CROSS_VALIDATED, FOLDS, CLASSIFIER, NETWORK)
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


@documented(CROSS_VALIDATED, FOLDS, ORDINAL, NETWORK)
class OrdinalFMRegressorCV(NetworkCV, OrdinalFMRegressor):  # type: ignore[misc]
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

    _rules = OrdinalFMRegressor._rules | {"n_jobs": N_JOBS, "max_units": SIZES}
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
