"""Estimators of one output that choose their strengths and their number of units on held-out samples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils.validation import column_or_1d

from mopn.core.losses import Loss
from mopn.estimators.docs import (
    BINARY_CLASSIFIER,
    FACTORIZATION_MACHINE,
    FACTORIZATION_MACHINE_CROSS_VALIDATED,
    FOLDS,
    POLYNOMIAL_NETWORK,
    SINGLE_OUTPUT,
    SINGLE_OUTPUT_CROSS_VALIDATED,
    SINGLE_OUTPUT_REGRESSOR,
    documented,
)
from mopn.estimators.fm import FactorizationMachine, FactorizationMachineClassifier, FactorizationMachineRegressor
from mopn.estimators.folds import SIZES, Candidate, CrossValidated, Fold, fitted_attributes, several
from mopn.estimators.parameters import N_JOBS
from mopn.estimators.pn import PolynomialNetwork, PolynomialNetworkClassifier, PolynomialNetworkRegressor
from mopn.estimators.single_output import (
    BinaryClassifier,
    SingleLossName,
    SingleOutputEstimator,
    SingleOutputRegressor,
    SolverName,
)
from mopn.estimators.targets import Targets
from mopn.regularization_path import check_series
from mopn.solvers import SGD, Solver
from mopn.solvers.checks import Rule, check_nonnegative
from mopn.solvers.progress import Verbose

__all__ = [
    "FactorizationMachineClassifierCV",
    "FactorizationMachineRegressorCV",
    "PolynomialNetworkClassifierCV",
    "PolynomialNetworkRegressorCV",
]

_STRENGTHS = (100.0, 10.0, 1.0, 0.1)
_ALPHAS = several(check_nonnegative, "a finite number >= 0 or several")


def _scoring(value: Any) -> Any:
    is_scorer = value in get_scorer_names() if isinstance(value, str) else callable(value)
    if not is_scorer or isinstance(value, type):
        raise ValueError
    return value


_SCORING = Rule("a name of sklearn.metrics.get_scorer_names(), callable as scoring(estimator, X, y)", _scoring)
_RULES = {"n_jobs": N_JOBS, "n_components": SIZES, "scoring": _SCORING.or_none()}


@dataclass(frozen=True)
class _EstimatorFold(Fold):
    """A fold whose fits are estimators; ``scorer`` is scikit-learn's."""

    scorer: Callable[..., float]

    def _path(self, candidates: Sequence[Candidate]) -> Iterator[SingleOutputEstimator]:
        """Yield warm-started estimators; the epochs of stochastic solvers would add up, so these start anew."""
        start = self._fitted(clone(self.single).set_params(max_iter=0), candidates[0])
        fit = clone(self.single).set_params(warm_start=not isinstance(self.single._solver(), SGD))
        for index, candidate in enumerate(candidates):
            fit = self._fitted(_revived(fit, start) if index else fit, candidate)
            yield fit

    def _pruned(
        self, fit: SingleOutputEstimator, candidate: Candidate, sizes: Sequence[int]
    ) -> Iterator[SingleOutputEstimator]:
        """Yield the estimator cut down to its largest units."""
        for size in sizes:
            if fit.n_components > size:
                fit = self._fitted(_cut(fit, size), candidate)
            yield fit

    def _fitted(self, estimator: SingleOutputEstimator, candidate: Candidate) -> SingleOutputEstimator:
        """Return a copy of an estimator that is fitted to the training samples."""
        strengths = {name: self.part * strength for name, strength in candidate.items()}
        X, targets = self.training
        with warnings.catch_warnings():
            # The fit to all samples warns.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return copy(estimator).set_params(**strengths, verbose=0).fit(X, targets.y, targets.sample_weight)

    def _score(self, estimator: SingleOutputEstimator) -> float:
        X, targets = self.held_out
        weights = {} if targets.sample_weight is None else {"sample_weight": targets.sample_weight}
        score = float(self.scorer(estimator, X, targets.y, **weights))
        if math.isnan(score):
            raise ValueError("scoring is NaN on the held-out part of a fold; give another score, or larger folds (cv)")
        return score

    def _attributes(self, estimator: SingleOutputEstimator) -> dict[str, Any]:
        return fitted_attributes(estimator)


def _revived(estimator: SingleOutputEstimator, start: SingleOutputEstimator) -> SingleOutputEstimator:
    """Return an estimator whose units are no smaller than those of a random start.

    Zero is a stationary point: units that a large strength has shrunk would not grow again at a smaller one.
    """
    revived, name = copy(estimator), _units_name(estimator)
    units, random = getattr(estimator, name), getattr(start, name)
    small = np.linalg.norm(units, axis=-1, keepdims=True) < np.linalg.norm(random, axis=-1, keepdims=True)
    setattr(revived, name, np.where(small, random, units))
    return revived


def _cut(estimator: SingleOutputEstimator, size: int) -> SingleOutputEstimator:
    """Return an estimator with its largest units alone."""
    smaller, name = copy(estimator).set_params(n_components=size), _units_name(estimator)
    units = getattr(estimator, name)
    lams = getattr(estimator, "lams_", np.ones(units.shape[1]))
    kept = np.argsort(-np.abs(lams) * np.sum(units**2, axis=(0, 2)), kind="stable")[:size]
    setattr(smaller, name, units[:, kept])
    if hasattr(estimator, "lams_"):
        smaller.lams_ = lams[kept]
    return smaller


def _units_name(estimator: SingleOutputEstimator) -> str:
    """Return the name of the fitted units (orders or factors, k, d)."""
    return "P_" if hasattr(estimator, "P_") else "U_"


class SingleOutputCV(CrossValidated, SingleOutputEstimator):
    """Base of the estimators of one output with cross-validation.

    scikit-learn's scorers and splitters are used, but not its GridSearchCV: that has neither warm starts nor strengths
    in proportion to the samples of a fold nor weights in its scores.
    """

    _size_name = "n_components"
    _own_parameters = frozenset({"strengths", "alpha", "n_components", "cv", "scoring", "n_jobs"})
    _searched: ClassVar[dict[str, str]] = {"alpha": "alpha", "beta": "strength"}
    strengths: Any
    scoring: Any

    def _samples(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        X, y, sample_weight, present = super()._samples(X, y, sample_weight, **options)
        return X, column_or_1d(y, warn=True), sample_weight, present

    def _targets(self, single: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        values = single._encode(y)
        form = "labels" if is_classifier(single) else "vector"
        return Targets(y, values, single._loss(values), form, sample_weight=sample_weight)

    def _grid(self, single: Any, X: Any, targets: Targets) -> dict[str, np.ndarray]:
        return {"beta": check_series(self.strengths, "strengths")}

    def _fold(self, single: Any, X: Any, targets: Targets, train: np.ndarray, test: np.ndarray) -> Fold:
        return _EstimatorFold.of(single, X, targets, train, test, scorer=check_scoring(single, self.scoring))


class FactorizationMachineCV(SingleOutputCV, FactorizationMachine):
    """Base of the factorization machines with cross-validation."""

    _rules = FactorizationMachine._rules | _RULES | {"alpha": _ALPHAS}

    def __init__(
        self,
        *,
        strengths: Any = _STRENGTHS,
        alpha: Any = 1.0,
        n_components: Any = 10,
        cv: Any = 3,
        scoring: Any = None,
        n_jobs: int | None = None,
        degree: int = 2,
        loss: SingleLossName | Loss | None = None,
        tol: float = 1e-3,
        fit_lower: Literal["explicit", "augment", "shared"] | None = "explicit",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        kernel: Literal["anova", "all-subsets", "homogeneous"] = "anova",
        solver: SolverName | Solver = "cd",
        init_lambdas: Literal["ones", "random_signs", "fit"] = "ones",
        max_iter: int | None = 1000,
        verbose: Verbose = 0,
        random_state: Any = None,
    ) -> None:
        self.strengths = strengths
        self.alpha = alpha
        self.n_components = n_components
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.degree = degree
        self.loss = loss
        self.tol = tol
        self.fit_lower = fit_lower
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.kernel = kernel
        self.solver = solver
        self.init_lambdas = init_lambdas
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state

    def _grid(self, single: Any, X: Any, targets: Targets) -> dict[str, np.ndarray]:
        return {"alpha": np.array(_ALPHAS(self.alpha, "alpha"))} | super()._grid(single, X, targets)


class PolynomialNetworkCV(SingleOutputCV, PolynomialNetwork):
    """Base of the polynomial networks with cross-validation."""

    _rules = PolynomialNetwork._rules | _RULES

    def __init__(
        self,
        *,
        strengths: Any = _STRENGTHS,
        n_components: Any = 10,
        cv: Any = 3,
        scoring: Any = None,
        n_jobs: int | None = None,
        degree: int = 2,
        loss: SingleLossName | Loss | None = None,
        tol: float = 1e-3,
        fit_lower: Literal["augment"] | None = "augment",
        fit_intercept: bool = True,
        solver: SolverName | Solver = "cd",
        max_iter: int | None = 1000,
        verbose: Verbose = 0,
        random_state: Any = None,
    ) -> None:
        self.strengths = strengths
        self.n_components = n_components
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.degree = degree
        self.loss = loss
        self.tol = tol
        self.fit_lower = fit_lower
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state


@documented(
    FACTORIZATION_MACHINE_CROSS_VALIDATED,
    SINGLE_OUTPUT_CROSS_VALIDATED,
    FOLDS,
    SINGLE_OUTPUT_REGRESSOR,
    FACTORIZATION_MACHINE,
    SINGLE_OUTPUT,
)
class FactorizationMachineRegressorCV(SingleOutputRegressor, FactorizationMachineCV):
    """:class:`FactorizationMachineRegressor` with strengths and the number of units chosen by cross-validation.

    Every fold follows the strengths from the largest down, each fit from the one before ("adagrad" and "sgd" start
    anew), and a factorization machine of the chosen strengths and size is fitted to all samples.

    See Also
    --------
    FactorizationMachineRegressor : For given strengths and a given size.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import FactorizationMachineRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 4))
    >>> y = X[:, 0] * X[:, 1] - X[:, 3] + 0.1 * rng.standard_normal(100)
    >>> regressor = FactorizationMachineRegressorCV(strengths=[10, 1, 0.1], alpha=[10, 0.1], random_state=0).fit(X, y)
    >>> regressor.strength_, regressor.alpha_, regressor.scores_.shape
    (0.1, 0.1, (3, 2, 3))
    """

    _single = FactorizationMachineRegressor


@documented(
    FACTORIZATION_MACHINE_CROSS_VALIDATED,
    SINGLE_OUTPUT_CROSS_VALIDATED,
    FOLDS,
    BINARY_CLASSIFIER,
    FACTORIZATION_MACHINE,
    SINGLE_OUTPUT,
)
class FactorizationMachineClassifierCV(BinaryClassifier, FactorizationMachineCV):
    """:class:`FactorizationMachineClassifier` with strengths and the number of units chosen by cross-validation.

    Every fold follows the strengths from the largest down, each fit from the one before ("adagrad" and "sgd" start
    anew), and a factorization machine of the chosen strengths and size is fitted to all samples.

    See Also
    --------
    FactorizationMachineClassifier : For given strengths and a given size.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import FactorizationMachineClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 3))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(100) > 0
    >>> classifier = FactorizationMachineClassifierCV(scoring="roc_auc", random_state=0).fit(X, y)
    >>> classifier.strengths_.tolist(), classifier.strength_ < 100, classifier.score(X, y) > 0.8
    ([100.0, 10.0, 1.0, 0.1], True, True)
    """

    _single = FactorizationMachineClassifier


@documented(SINGLE_OUTPUT_CROSS_VALIDATED, FOLDS, SINGLE_OUTPUT_REGRESSOR, POLYNOMIAL_NETWORK, SINGLE_OUTPUT)
class PolynomialNetworkRegressorCV(SingleOutputRegressor, PolynomialNetworkCV):
    """:class:`PolynomialNetworkRegressor` with the strength and the number of units chosen by cross-validation.

    Every fold follows the strengths from the largest down, each fit from the one before, and a network of the chosen
    strength and size is fitted to all samples.

    See Also
    --------
    PolynomialNetworkRegressor : For a given strength and size.

    Examples
    --------
    The last 20 samples are an evaluation set of one's own:

    >>> import numpy as np
    >>> from mopn.estimators import PolynomialNetworkRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 3))
    >>> y = X[:, 0] ** 2 - X[:, 1] + 0.1 * rng.standard_normal(100)
    >>> own = [(np.arange(80), np.arange(80, 100))]
    >>> regressor = PolynomialNetworkRegressorCV(n_components=(6, 2), cv=own, random_state=0).fit(X, y)
    >>> regressor.n_components_, regressor.scores_.shape, regressor.score(X, y) > 0.95
    (2, (1, 4), True)
    """

    _single = PolynomialNetworkRegressor


@documented(SINGLE_OUTPUT_CROSS_VALIDATED, FOLDS, BINARY_CLASSIFIER, POLYNOMIAL_NETWORK, SINGLE_OUTPUT)
class PolynomialNetworkClassifierCV(BinaryClassifier, PolynomialNetworkCV):
    """:class:`PolynomialNetworkClassifier` with the strength and the number of units chosen by cross-validation.

    Every fold follows the strengths from the largest down, each fit from the one before, and a network of the chosen
    strength and size is fitted to all samples.

    See Also
    --------
    PolynomialNetworkClassifier : For a given strength and size.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import PolynomialNetworkClassifierCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    >>> y = (X**2).sum(axis=1) > 0.6
    >>> PolynomialNetworkClassifierCV(random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    _single = PolynomialNetworkClassifier
