"""Base of the estimators of one output: the steps of ``fit``, regressors, and classifiers of two classes."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mopn.data.row_blocks import RowBlocks
from mopn.data.validation import as_numbers, check_flag, check_nonnegative, distinct_labels
from mopn.estimators.base import ModelEstimator, Scored, check_parameters, raise_interruption
from mopn.estimators.callbacks import begin_fit, print_progress, samples_of, with_callbacks
from mopn.estimators.fit_warnings import warn_of_failure
from mopn.estimators.folds import parts_held_out
from mopn.estimators.parameters import COMMON, warn_of_small_weights
from mopn.estimators.strength_walk import RowLosses, until_losses_rise, walk
from mopn.estimators.targets import Targets, in_canonical_order, regression_loss
from mopn.losses.losses import LOSSES, Loss
from mopn.models.single_output import FactorizationModel
from mopn.solvers import LBFGS, SGD, AdaGrad, CoordinateDescent, Result, Solver, Status, minimize
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.checks import Rule, choice, count, shown
from mopn.solvers.tools.decorators import quiet

SolverName = Literal["cd", "lbfgs", "adagrad", "sgd"]
SingleLossName = Literal[
    "squared", "huber", "quantile", "poisson",
    "squared-hinge", "squared_hinge", "logistic", "binary-squared-hinge", "binary-logistic",
]  # fmt: skip

_SOLVERS: dict[str, type[Solver]] = {"cd": CoordinateDescent, "lbfgs": LBFGS, "adagrad": AdaGrad, "sgd": SGD}
# Drawn seeds are below the largest int32, a bound that legacy generators take on every platform.
_SEEDS = 2**31 - 1
# Strengths to choose from, in the unit of the problem: at 0.25 most units vanish (benchmarks/recommender).
_RATIOS = 0.5 ** np.arange(2, 11)
# Strengths that are tried beyond the best one (benchmarks/recommender).
_PATIENCE = 3
# Iterations of each fit that tries a strength (benchmarks/recommender).
_ITERATIONS = 40
# The deviation of the entries of units at the start, for targets of mean deviation 1.
_START_SIZE = 0.1
STRENGTH = check_nonnegative.or_auto()
_SOLVER = Rule(f"{choice(_SOLVERS).takes} or a Solver", choice(_SOLVERS).convert)


class SingleOutputEstimator(ModelEstimator):
    """Base of the estimators of one output: the steps of ``fit``."""

    intercept_: float
    """The constant; 0 if there is none."""

    beta_: float
    """The strength of the units."""

    _rules = COMMON | {"n_components": count(), "fit_intercept": check_flag, "beta": STRENGTH}
    beta: float | Literal["auto"]
    alpha_: float
    loss: SingleLossName | Loss | None
    # The loss with its parameters; passes over parts of the samples keep the loss of the first part.
    loss_: Loss
    # The names of the losses, the default first.
    _losses: ClassVar[tuple[str, ...]]
    solver: SolverName | Solver
    tol: float
    max_iter: int | None
    max_time: float | None
    warm_start: bool
    verbose: int
    random_state: Any
    # AdaGrad's sums of squared gradients, between passes over parts of the samples.
    _sums: np.ndarray | None = None
    # The fitted parameters, and their names in the problem.
    _fitted: ClassVar[dict[str, str]] = {f"{name}_": name for name in ("w", "intercept", "lams", "theta", "P", "U")}

    @quiet()
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), RelationBlocks or RowBlocks
            Training data. :class:`mopn.RelationBlocks` are summed by the rows of their tables for factorization
            machines of degree 2 with the squared loss, by "cd" and "lbfgs"; all else forms the plain matrix.
            :class:`mopn.RowBlocks` need the solver "lbfgs", or ``partial_fit`` for stochastic passes.
        y : array-like of shape (n,), optional
            None if the blocks bring it. Classifiers: labels of two classes. Regressors: numbers.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 equals a repeated sample, and a weight of 0 a missing one, up to rounding; but "sgd" and
            "adagrad" take one step for a weighted sample, and two for a repeated one. A common factor changes nothing
            where strengths are "auto"; where they are numbers, a warning says so of weights below 0.1.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter are invalid.
        KeyboardInterrupt
            After Ctrl-C. The estimator is then fitted to the best parameters so far; likewise if a callback raises.

        Warns
        -----
        UserWarning
            If the weights are far below 1, and a strength is a number.
        ConvergenceWarning
            If ``max_iter`` iterations of "cd" or "lbfgs" were not enough, if a number overflowed, or if no pass of
            "sgd" or "adagrad" was better than zeros, which are the model then.
        """
        check_parameters(self)
        solver = self._solver()
        deadline = Deadline(self.max_time)
        self._sums = None
        print_progress(self.verbose, "reading the samples")
        X, y, sample_weight, _ = self._samples(X, y, sample_weight)
        task = begin_fit(self, samples_of(X, y, sample_weight), self.max_iter)
        y = self._encode(column_or_1d(y, warn=True))
        self.loss_ = self._loss(y, sample_weight)
        seed = self._seed()
        continued = self.warm_start and hasattr(self, "beta_")
        interrupted = self._set_strengths(solver, (X, y, sample_weight), seed, deadline)
        problem = self._problem(X, y, sample_weight, seed)
        self._set_features(X, problem.rows.n_features)
        held_out = self.beta == "auto" and not isinstance(X, RowBlocks)
        strengths = (self._alpha, self.beta) if held_out or continued else (self.alpha_, self.beta_)
        warn_of_small_weights(problem.rows, alpha=strengths[0], beta=strengths[1])
        with task.iterations(partial(self._attributes, problem)) as callback:
            start = self._constant(y, sample_weight) | (self._start(problem) if self.warm_start else {})
            limits: Any = {
                "tol": self.tol,
                "max_iter": self.max_iter,
                "max_time": 0.0 if interrupted else deadline.left,
            }
            result = minimize(problem, solver, start=start, rng=seed, callback=callback, verbose=self.verbose, **limits)
        result.status = Status.INTERRUPTED if interrupted else result.status
        self.__dict__.update(self._attributes(problem, result))
        self.objective_, self.status_, self.trace_ = float(result.fun), result.status, result.trace
        self.n_iter_ = max(int(result.nit), 1)
        raise_interruption(result)
        task.end({})
        # A stochastic method that finishes all its passes has not failed.
        if not (isinstance(solver, SGD) and result.status == Status.MAX_ITER):
            warn_of_failure(result)
        return self

    def _set_strengths(self, solver: Solver, samples: tuple[Any, Any, Any], seed: int, deadline: Deadline) -> bool:
        """Set the strengths, "auto" by the loss on held-out samples; return whether Ctrl-C ended it."""
        X, y, sample_weight = samples
        if self.warm_start and hasattr(self, "beta_"):
            self.alpha_, self.beta_ = self._given_strengths(self.alpha_, self.beta_)
            return False
        self.alpha_, self.beta_ = self._given_strengths(1.0, 1.0)
        if isinstance(X, RowBlocks) or "auto" not in (self._alpha, self.beta):
            return False
        problem = self._problem(X, y, sample_weight, seed)
        if self._alpha == "auto":
            self.alpha_ = problem.mean_squared_length
        units = problem.strength_units(self._constant(y, sample_weight).get("intercept", 0.0))
        if self.beta != "auto" or not units[1]:
            return False
        return self._choose_strengths(solver, samples, units, seed, deadline)

    def _choose_strengths(
        self,
        solver: Solver,
        samples: tuple[Any, Any, Any],
        units: tuple[float, float],
        seed: int,
        deadline: Deadline,
    ) -> bool:
        """Set the strengths of least loss on held-out samples; return whether Ctrl-C ended the choice."""
        X, y, sample_weight = samples
        form = "labels" if isinstance(self, ClassifierMixin) else "vector"
        X, targets, groups = in_canonical_order(X, Targets(y, y, self.loss_, form, sample_weight=sample_weight))
        given = {"solver": solver, "seed": seed, "units": units, "X": X, "targets": targets}
        parts = parts_held_out(targets, groups, len(y))
        folds = [partial(self._held_out_losses, fold=fold, **given) for fold in parts]
        rule = partial(until_losses_rise, patience=_PATIENCE)
        iterations = _ITERATIONS if self.max_iter is None else min(self.max_iter, _ITERATIONS)
        best = None
        interrupted = False
        try:
            trials = walk(_RATIOS, folds, rule, iterations, deadline)
            for ratio, (losses, verdict) in zip(_RATIOS, trials, strict=False):
                best = verdict.best
                loss = sum(part.total for part in losses)
                print_progress(self.verbose, f"beta {ratio * units[1]:.3g}: loss {loss:.6g} on held-out samples")
                if deadline.is_over:
                    break
        except KeyboardInterrupt:
            interrupted = True
        if best is not None:
            self._take_strengths(float(_RATIOS[best]), units)
        return interrupted

    def _take_strengths(self, ratio: float, units: tuple[float, float]) -> None:
        """Set the strengths that are "auto" to the same multiple of their units."""
        if self._alpha == "auto":
            self.alpha_ = ratio * units[0]
        self.beta_ = ratio * units[1]

    @property
    def _alpha(self) -> float | Literal["auto"]:
        """The parameter ``alpha``; 0 of estimators without a linear term."""
        return getattr(self, "alpha", 0.0)

    def _given_strengths(self, alpha: float = 1.0, beta: float = 1.0) -> tuple[float, float]:
        return alpha if self._alpha == "auto" else self._alpha, beta if self.beta == "auto" else self.beta

    def _held_out_losses(
        self,
        ratio: float,
        iterations: int,
        deadline: Deadline,
        solver: Solver,
        seed: int,
        units: tuple[float, float],
        X: Any,
        targets: Targets,
        fold: tuple[np.ndarray, np.ndarray],
    ) -> RowLosses:
        """Return the losses on the second part of a fold after a short fit to the first, by its share of the weight."""
        train, test = fold
        part = targets.rows(train)
        held = targets.rows(test)
        self._take_strengths(ratio * part.total_weight / targets.total_weight, units)
        problem = self._problem(X[train], part.y, part.weights, seed)
        limits: Any = {"tol": self.tol, "max_iter": iterations, "max_time": deadline.left}
        result = minimize(problem, solver, start=self._constant(part.y, part.weights), rng=seed, **limits)
        raise_interruption(result)
        outputs = self._attributes(problem, result)["model_"].outputs(X[test])
        return RowLosses(self.loss_.value(held.y[:, None], outputs), held.weights)

    def _constant(self, y: np.ndarray, sample_weight: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return the constant to start from, if it is fitted; the units start at random."""
        return {}

    def _start_size(self, y: np.ndarray, sample_weight: np.ndarray | None) -> float:
        """Return the deviation of the entries of the units at the start."""
        return _START_SIZE

    @abstractmethod
    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Validate y and return it as numbers."""

    @abstractmethod
    def _problem(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, seed: int) -> Any:
        """Return the problem."""

    def _solver(self) -> Solver:
        return self.solver if isinstance(self.solver, Solver) else _SOLVERS[_SOLVER(self.solver, "solver")]()

    def _seed(self) -> int:
        if self.random_state is None:
            return int(np.random.default_rng().integers(_SEEDS))
        return int(check_random_state(self.random_state).randint(_SEEDS))

    def _start(self, problem: Any) -> dict[str, np.ndarray]:
        """Return the fitted parameters that the problem has; raise ``ValueError`` if they are of other shapes."""
        start: dict[str, np.ndarray] = {}
        new = problem.unpack(np.zeros(problem.size))
        for attribute, name in self._fitted.items():
            if name in problem.parameters and hasattr(self, attribute):
                start[name] = np.atleast_1d(as_numbers(getattr(self, attribute), f"warm_start: {attribute}"))
                if start[name].shape != new[name].shape:
                    raise ValueError(
                        f"the fit before cannot be continued: its {attribute} has shape {start[name].shape}, but X, "
                        f"n_components={self.n_components}, degree={self.degree} and fit_lower={self.fit_lower!r} ask "
                        f"for {new[name].shape}; set the parameters of that fit, or fit anew with warm_start=False"
                    )
        return start

    def _loss(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Loss:
        """Return the loss for numbers y (n,); names may have underscores, as in polylearn, and lack "binary-"."""
        if isinstance(self.loss, Loss):
            return self.loss
        given = self.loss.replace("_", "-") if isinstance(self.loss, str) else self.loss
        name = choice(self._losses).or_none()(given, "loss") or self._losses[0]
        return LOSSES[f"binary-{name}" if f"binary-{name}" in LOSSES else name]

    def _attributes(self, problem: Any, result: Result) -> dict[str, Any]:
        found = {name: result[name] for name in problem.parameters}
        model = FactorizationModel.from_result(problem, found, classes=getattr(self, "classes_", None))
        arrays = {attribute: np.array(found[name]) for attribute, name in self._fitted.items() if name in found}
        intercept = float(found["intercept"][0]) if "intercept" in found else 0.0
        return {"model_": self._named(model)} | arrays | {"intercept_": intercept}


class SingleOutputRegressor(Scored, RegressorMixin):
    """Base of the regressors of one output."""

    _numeric_y = True
    _losses: ClassVar[tuple[str, ...]] = ("squared", "huber", "quantile", "poisson")
    loss: SingleLossName | Loss | None
    loss_: Loss
    degree: Any
    fit_intercept: bool

    def _encode(self, y: np.ndarray) -> np.ndarray:
        return y.astype(np.float64, copy=False)

    def _loss(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Loss:
        loss = self.loss if isinstance(self.loss, Loss) else choice(self._losses).or_none()(self.loss, "loss")
        return regression_loss(loss or self._losses[0], y, sample_weight)

    def _constant(self, y: np.ndarray, sample_weight: np.ndarray | None) -> dict[str, np.ndarray]:
        return {"intercept": self.loss_.constant(y[:, None], sample_weight)} if self.fit_intercept else {}

    def _start_size(self, y: np.ndarray, sample_weight: np.ndarray | None) -> float:
        """Return the size for outputs in the unit of y: they are products of ``degree`` entries of units."""
        if self.loss_.targets != "numbers" or self.degree is None:
            return _START_SIZE
        spread = np.average(np.abs(y - np.average(y, weights=sample_weight)), weights=sample_weight)
        return _START_SIZE * float(spread or 1.0) ** (1.0 / self.degree)


def _is_logistic(classifier: Any) -> bool:
    loss = classifier.loss
    link = loss.link if isinstance(loss, Loss) else str(loss).replace("_", "-").removeprefix("binary-")
    if link != "logistic":
        raise AttributeError(f"loss={shown(loss)} is not a probability model; for predict_proba use 'logistic'")
    return True


class BinaryClassifier(Scored, ClassifierMixin):
    """Base of the classifiers of one output, for two classes."""

    classes_: np.ndarray
    """Sorted labels (2,); positive outputs mean the second one."""

    _numeric_y = False
    _losses: ClassVar[tuple[str, ...]] = (
        "squared-hinge", "logistic", "squared", "binary-squared-hinge", "binary-logistic",
    )  # fmt: skip
    model_: Any
    # The classes given to partial_fit, as a part of the samples may not contain both.
    _classes: np.ndarray | None = None

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs (n,) for X as for ``predict``, positive for ``classes_[1]``."""
        X = self._checked(X)  # raises an error before the first fit
        return self.model_.outputs(X)[:, 0]

    @available_if(_is_logistic)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities (n, 2) of the classes for X as for ``predict``, for the loss "logistic" only."""
        X = self._checked(X)  # raises an error before the first fit
        return self.model_.predict_proba(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _encode(self, y: np.ndarray) -> np.ndarray:
        labels, _ = distinct_labels(y)
        check_classification_targets(y)
        classes = self._two_classes(labels) if self._classes is None else self._classes
        unknown = [label for label in labels if label not in classes]
        if unknown:
            raise ValueError(f"y has labels {shown(unknown)} that are not among the classes {classes}")
        self.classes_ = classes
        return np.where(y == classes[1], 1.0, -1.0)

    def _two_classes(self, classes: np.ndarray, name: str = "y") -> np.ndarray:
        if len(classes) < 2:
            raise ValueError(f"{name} has one class only ({', '.join(map(str, classes))}); give 2 classes")
        if len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: {name} has "
                f"{len(classes)} classes; mopn.estimators.MultiOutputFMClassifier and MultiOutputPNClassifier take "
                "them all at once"
            )
        return classes
