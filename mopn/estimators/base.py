"""Base classes of the estimators: parameters, the steps of ``fit``, and prediction."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_X_y

from mopn.core.gap import Dual
from mopn.core.kernels import KernelName
from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import Chunks
from mopn.data.feature_scaling import Coordinates, ScaleName
from mopn.data.relation_design import RelationBlocks
from mopn.data.row_blocks import RowBlocks
from mopn.data.targets import as_targets, distinct_labels, label_codes
from mopn.data.validation import (
    as_numbers,
    check_flag,
    check_input,
    check_sample_weight,
    check_weighted_classes,
    compressed,
    of_present,
)
from mopn.data.values import is_series, to_host
from mopn.estimators.callbacks import CallbackSupportMixin, Task, begin_fit, samples_of, say, with_callbacks
from mopn.estimators.parameters import COMMON, STRENGTH, readable, validated, warn_of_small_weights
from mopn.estimators.targets import (
    Targets,
    constant_outputs,
    encoded_chunks,
    merge_equal_samples,
    samples_of_chunks,
    targets_of_all_rows,
)
from mopn.losses.losses import Loss, LossName
from mopn.models.base import Fitted, Predictor, common_offset
from mopn.models.multi_output import Model
from mopn.network.maps import UserY
from mopn.network.model_starts import NetworkParts, unit_of_constants, with_constant
from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import EarlyStopping, path_solver
from mopn.solvers import ConditionalGradient, Result, Solver, Status, Trace, minimize
from mopn.solvers.conditional_gradient import Precision, RefitName, make_corrective_step
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.conditional_gradient.schedule import FEW_UNITS
from mopn.solvers.interface import Measure
from mopn.solvers.result import gap_in_words, relative
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.checks import Rule, check_nonnegative, count
from mopn.solvers.tools.decorators import quiet, warn_caller

# X, y and the weights, validated.
Samples = tuple[Any, np.ndarray, np.ndarray | None]

_FLOATS = (np.float64, np.float32)
_X_FORMAT: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": _FLOATS, "order": "C"}
# Deviations between the mean of a feature and 0 beyond which a model keeps fewer than half of its digits.
_FAR = 1e8
# A fit without proofs ends at the first one of these multiples of its tolerance: of the estimated gap, which overstates
# how far the objective is from its minimum, and of the decrease in a round; no refit is tighter than the last
# (benchmarks/tables).
_ESTIMATED, _LOWERED, _REFITTED = 20.0, 0.5, 0.1
# Products of rows, features and outputs up to which gaps are proven: beyond, fits would take minutes.
_PROVEN = 5e7


@dataclass(frozen=True)
class FitPolicy:
    """The choices of a fit that are no parameters of an estimator: one policy per family.

    Users who want to decide themselves give ``refit`` an object of :mod:`mopn.solvers`, which sets its own tolerances
    and precision, or call :func:`mopn.minimize`.

    With a number of ``max_units`` the aim is the best model of this size, with None a proof. The last refit of both
    layers ends at ``polish_tol`` if ``tol`` is larger, refits of the output layer alone at ``layer_tol``. In
    ``single_precision`` labels are as accurate, and numbers to the 1 % of tables; few units are refitted in double
    precision, as rounding errors would choose among their local minima. Validation stops after ``patience`` rounds
    without a better score. Without ``prove`` a fit ends where its estimated gap is at most twenty times ``tol``, or a
    round lowers the objective by at most half of ``tol``: it is then mostly as near to its minimum as ``tol`` says.
    """

    polish_tol: float = math.inf
    layer_tol: float = 1e-3
    single_precision: bool = False
    tol_at_zero: float = 5e-3
    max_rounds: int = 1000
    patience: int = 10
    validated_units: int = 5
    prove: bool | None = None
    within_budget: bool = False

    def for_problem(self, problem: NetworkProblem, max_units: int | None) -> Self:
        """Return the policy for a problem, where ``prove`` is None: large ones of a number of units have no proof."""
        small = max_units is None or math.prod(problem.rows.shape) * problem.losses.n_outputs <= _PROVEN
        return self if self.prove is not None else replace(self, prove=small)

    def solver(self, problem: NetworkProblem, estimator: Any, *, validates: bool) -> ConditionalGradient:
        """Return the solver of a fit with the parameters of an estimator."""
        tol, max_units = estimator.tol or self.tol_at_zero, estimator.max_units
        thorough = self.prove and not self.within_budget
        least_tol = 0.0 if thorough else _REFITTED * tol
        polish_tol, precision = min(tol, self.polish_tol), self._precision(problem, max_units)
        full = {"polish_tol": polish_tol, "least_tol": least_tol, "precision": precision}
        step = make_corrective_step(estimator.refit, full=full, tol=min(tol, self.layer_tol))
        return ConditionalGradient(
            refit=step,
            max_units=max_units,
            oracle=estimator.oracle,
            schedule="grow" if max_units is None else "fill",
            atoms_per_round=self.validated_units if validates and step.can_move_units else None,
            prove=bool(self.prove),
            ftol=0.0 if thorough else _LOWERED * estimator.tol,
            slack=1.0 if self.prove else _ESTIMATED,
        )

    def path_solver(
        self, problem: NetworkProblem, estimator: Any, n_strengths: int, max_units: int | None, iterations: int
    ) -> ConditionalGradient:
        """Return the solver of a path of strengths; see ``mopn.regularization_path.path_solver``."""
        precision = self._precision(problem, max_units)
        solver = path_solver(n_strengths, max_units, estimator.refit, iterations, precision)
        # All units enter at once if refits move them: the number of units is not to grow along the path.
        atoms = None if solver.corrective_step.can_move_units else solver.atoms_per_round
        return replace(solver, atoms_per_round=atoms, prove=False)

    def _precision(self, problem: NetworkProblem, max_units: int | None) -> Precision:
        many = max_units is None or max_units > FEW_UNITS
        return "single" if many and self.single_precision and problem.gains_by_single else "double"


class ModelEstimator(CallbackSupportMixin, Fitted, BaseEstimator):
    """Base of all estimators: validated samples, predictions by a model, and warnings at the end of a fit."""

    _numeric_y: ClassVar[bool]
    _rules: ClassVar[dict[str, Rule]] = COMMON

    # Of a Series or DataFrame y.
    _target_names: Sequence[str] = ()

    model_: Predictor
    """The model for predictions, which ``save`` writes."""
    loss_: Loss
    """The loss of the outputs, with its parameters."""
    objective_: float
    """The objective."""
    status_: Status
    """Why the solver stopped; ``status_.message`` is a sentence."""
    n_iter_: int
    """Number of iterations, at least 1; of networks, the rounds in which units entered."""
    trace_: Trace
    """A row per iteration: time, objective, gaps of networks."""
    n_features_in_: int
    """Number of features d."""
    feature_names_in_: np.ndarray
    """Names (d,) of the features, if all are strings."""

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n,) or (n, m), like the y of ``fit``.

        Parameters
        ----------
        X : as for ``fit``, but no RowBlocks: predict them block by block
        """
        X = self._checked(X)  # raises an error before the first fit
        return self.model_.predict(X)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importances (d,) without rows: deviations of the features in the fit, times mean slopes of the outputs.

        For degrees up to 2, such as for scikit-learn's ``RFE``. The slopes are root mean squares over independent
        normal features with the means and deviations of the fit, where it centers or scales X, or else 0 and 1.
        """
        check_is_fitted(self)
        from mopn.explain.margins import importances_without_rows

        return importances_without_rows(self.model_, getattr(self, "_coordinates", None))

    def _fitted_model(self) -> Predictor:
        check_is_fitted(self)
        return self.model_

    def _named(self, model: Any) -> Any:
        named = replace(model, feature_names=getattr(self, "feature_names_in_", None))
        return replace(named, output_names=self._names_of_outputs(named)) if isinstance(named, Model) else named

    def _names_of_outputs(self, model: Model) -> Any:
        """Return the names of the targets, if an output is for each; labels name their outputs themselves."""
        alike = model.target not in ("labels", "ordinal") and len(self._target_names) == model.weights.shape[1]
        return self._target_names if alike else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        for name, value in self.get_params(deep=False).items():
            if name in self._rules:
                self._rules[name](value, name)

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, least: int = 2, every_row: bool = False
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Validate at least ``least`` samples to fit; return the samples of positive weight, and their indices.

        With ``every_row`` X has the others, too.
        """
        if isinstance(X, Chunks):
            self._plain_targets(None, reset=reset)  # numbers without names
            return samples_of_chunks(self, X)
        if isinstance(X, RowBlocks):
            return self._samples_of_blocks(X.with_targets(y, sample_weight, self._plain_targets), reset)
        y, X = self._plain_targets(y, reset=reset), readable(compressed(to_host(X)), "X")
        checks = _X_FORMAT | {"multi_output": True, "y_numeric": self._numeric_y, "ensure_min_samples": least}
        if isinstance(X, RelationBlocks):
            if reset:
                self._set_features(X, X.shape[1])
            self._check_relations(X)
            y = check_X_y(X.design.places, y, estimator=self, **checks)[1]
        else:
            X, y = validated(self, X, y, reset=reset, **checks)
        y, sample_weight, present = self._weighted(y, sample_weight, least, reset)
        if len(present) < X.shape[0] and not every_row:
            X = X.tocsr()[present] if sparse.issparse(X) else X[present]
        return X, y, sample_weight, present

    def _weighted(
        self, y: Any, sample_weight: Any, least: int, reset: bool
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return the targets, validated weights and indices of the samples of positive weight."""
        y = y.toarray() if sparse.issparse(y) else y
        sample_weight = check_sample_weight(to_host(sample_weight), len(y))
        check_input(0.0 if sample_weight is None else sample_weight, "sample_weight")
        present = np.arange(len(y)) if sample_weight is None else np.flatnonzero(sample_weight)
        if len(present) < least:
            raise ValueError(f"at least {least} samples of positive weight are needed to fit, got {len(present)}")
        if not self._numeric_y and reset:
            check_weighted_classes(y, present)
        return y[present], None if sample_weight is None else sample_weight[present], present

    def _check_relations(self, X: RelationBlocks) -> None:
        if X.shape[1] != self.n_features_in_:
            name = type(self).__name__
            raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {self.n_features_in_} features")

    def _samples_of_blocks(
        self, X: RowBlocks, reset: bool
    ) -> tuple[RowBlocks, np.ndarray, np.ndarray | None, np.ndarray]:
        """Return blocks of X, and the targets and weights of all rows in memory, which the problem validates."""
        X, y, sample_weight = X.with_targets_in_memory()
        y = of_present(self._plain_targets(y, reset=False), sample_weight)
        return self._in_known_order(X, reset), y, sample_weight, np.arange(len(y))

    def _in_known_order(self, X: RowBlocks, reset: bool) -> RowBlocks:
        """Return blocks with named columns in the order of the fit before, if it is continued."""
        X = copy(X)
        if not reset:
            X.columns = list(getattr(self, "feature_names_in_", []))
        return X

    def _set_features(self, X: Any, number: int) -> None:
        """Set the number of features, and the names of columns that scikit-learn does not read."""
        self.n_features_in_ = number
        if isinstance(X, RowBlocks | RelationBlocks):
            self._set_names(X)

    def _set_names(self, X: Any) -> None:
        """Replace the feature names of the fit before by the columns of X, if all are strings."""
        self.__dict__.pop("feature_names_in_", None)
        names = getattr(X, "columns", [])
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, object)

    def _plain_targets(self, y: Any, *, reset: bool = True) -> Any:
        """Return y as an array of numbers or labels; None and sparse matrices stay."""
        if reset:
            names = [y.name] if is_series(y) else list(getattr(y, "columns", ()))
            self._target_names = names if all(isinstance(name, str) and name for name in names) else []
        y = compressed(y, "y")
        if y is None or sparse.issparse(y):
            return y
        return as_targets(y, numeric=self._numeric_y, advice=self._advice_of_texts())

    def _advice_of_texts(self) -> str:
        """Return what takes targets that are texts."""
        return (
            f"{type(self).__name__.replace('Regressor', 'Classifier')} takes them as classes, a regressor takes numbers"
        )

    def _checked(self, X: Any) -> Any:
        if hasattr(self, "model_") and self._is_plain(X):
            return X
        check_is_fitted(self)
        if isinstance(X, RelationBlocks):
            self._check_relations(X)
            return X
        return validated(self, readable(compressed(X), "X"), reset=False, **_X_FORMAT)

    def _is_plain(self, X: Any) -> bool:
        """Whether X is an array like the fit's; the model checks the rest, so that single rows take microseconds."""
        if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in _FLOATS:
            return False
        return len(X) > 0 and X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_")

    def _raise_interruption(self, result: Result) -> None:
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        if result.status == Status.CALLBACK_FAILED and result.error is not None:
            raise result.error

    def _warn(self, result: Result) -> None:
        if result.status.warns:
            reason = "" if result.error is None else f" ({result.error!r})"
            gap = f", the gap {gap_in_words(result)}" if math.isfinite(result.gap) else ""
            warn_caller(f"{result.message}{reason} The objective is {result.fun:.6g}{gap}.", ConvergenceWarning)


class Scored:
    """Mixin for ``score``, in front of scikit-learn's mixins, which compute it."""

    @quiet()
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of predicted labels, or the R² of predicted numbers: at most 1, the larger the better.

        X, y and the weights are as for ``predict`` and ``fit``.
        """
        estimator: Any = super()
        y = self._plain_targets(y, reset=False)  # type: ignore[attr-defined]
        return float(estimator.score(X, y, to_host(sample_weight)))


class NetworkAttributes(ModelEstimator):
    """Base of the estimators whose model is a network, and its fitted attributes."""

    basis_: np.ndarray
    """Units H (k, dummies + d) for X as given, of length 1; the leading columns belong to the dummies."""
    weights_: np.ndarray
    """Output weights V (k, m); m is 1 for two classes with a loss per output, and the levels minus 1."""
    linear_: np.ndarray | None
    """Coefficients (m, 1 + d) of the linear term, constants first; None if ``alpha`` is None."""
    strength_: float
    """Strength of the penalty, for the centered and scaled X."""
    gap_: float
    """Upper bound of the objective minus its minimum over all networks of any size.

    Under the group norms, beyond 26 features, the bound of a complete model may take half of the time of the fit: how
    tight it is depends on the clock, the model does not.
    """
    relative_gap_: float
    """The same relative to the objective: 0.01 is proven to be at most 1 % above the minimum."""
    estimated_gap_: float
    """Estimate of the gap, without a proof. Much smaller than ``gap_``: the bound is loose, try another ``oracle``."""
    dual_: Dual | None
    """The dual point that proves the lower bound ``objective_ - gap_``.

    ``dual_.point(model.problem(X, y))`` computes it, with a row for each row of X.
    """
    restricted_gap_: float
    """Bound on the suboptimality of the weights for the current units.

    Much smaller than ``gap_``: add units (raise ``max_units``), or the bound is loose. About equal: lower ``tol``.
    """
    proof_: str
    """Kind of the proof: "deterministic", "probability 1 - 1e-09" over random numbers, or "none"."""
    n_refit_iter_: int
    """Number of iterations of all refits, most of the work."""
    validation_scores_: np.ndarray | None
    """The score at every row of the trace, if samples were held out."""

    _classes_name: ClassVar[str] = "classes_"

    def _validation_samples(self, X_val: Any, y_val: Any, sample_weight_val: Any) -> Any:
        if X_val is None and y_val is None:
            return None
        for name, part in (("X_val", X_val), ("y_val", y_val)):
            if part is None:
                raise ValueError(f"{name} is missing: X_val and y_val go together; give both, or neither")
        if isinstance(X_val, RowBlocks):
            raise ValueError("X_val must be in memory, got RowBlocks; give an array, a sparse matrix or a frame")
        return self._samples(X_val, y_val, sample_weight_val, reset=False, least=1)


class NetworkEstimator(NetworkAttributes):
    """Base of the convex estimators; subclasses encode y and define the kernel."""

    # Center and scale of the features, and levels and units of the targets, set by fit.
    _coordinates: Coordinates | None
    _user_y: UserY | None

    _kernel: ClassVar[KernelName]
    _metric: ClassVar[Callable[..., float]]  # the score of predictions, as ``score`` computes it
    _rules = COMMON | {
        "strength": STRENGTH,
        "ridge": check_nonnegative,
        "max_units": count().or_none(),
        "fit_intercept": check_flag,
    }
    _policy = FitPolicy()

    def __init__(
        self,
        *,
        loss: LossName | Loss = "squared",
        norm: NormName = "l1",
        strength: float | Ratio = Ratio(0.002),
        max_units: int | None = 200,
        refit: RefitName | CorrectiveStep = "full",
        oracle: OracleName | BasisOracle = "auto",
        fit_intercept: bool = True,
        scale: ScaleName | None = "features",
        alpha: float | None = None,
        ridge: float = 0.0,
        tol: float = 5e-3,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.norm = norm
        self.strength = strength
        self.max_units = max_units
        self.refit = refit
        self.oracle = oracle
        self.fit_intercept = fit_intercept
        self.scale = scale
        self.alpha = alpha
        self.ridge = ridge
        self.tol = tol
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _warn(self, result: Result) -> None:
        """Warn of a fit that did not succeed, of a constant model, of lost digits, and of outputs without a unit."""
        super()._warn(result)
        if not result.status.warns and self._is_constant():
            self._warn_of_constant(result.status)
        coordinates = self._coordinates
        farthest = 0.0 if coordinates is None else coordinates.relative_center.max(initial=0.0)
        if farthest > _FAR and self.gap_ > max(result.gap, self.tol * abs(self.objective_)):
            warn_caller(
                f"X: features are up to {farthest:.1g} deviations from 0, so that rounding may change the objective of "
                f"the model by {self.gap_ - result.gap:.2g}; subtract numbers near their means"
            )
        used = np.array(result.weights.any(axis=0))
        # Outputs that are compared with each other need no unit in one of them.
        most, needed = self.max_units or math.inf, len(used) - (self.loss_.targets == "labels")
        if result.status == Status.MAX_UNITS and used.sum() < needed > most and self.alpha is None:
            warn_caller(
                f"max_units={most} is less than the {len(used)} outputs, and {len(used) - used.sum()} of them, such as "
                f"number {used.argmin()}, have no unit and so a constant value: with norm={self.norm!r} most units "
                "serve a single output. Raise max_units, take norm='l1/l2', or give alpha, for a linear term"
            )

    def _is_constant(self) -> bool:
        """Whether predictions do not depend on X: no unit has a feature, and there is no linear term."""
        linear = None if self.linear_ is None else self.linear_[:, 1:]
        dummies = self.basis_.shape[1] - cast(Model, self.model_).n_features
        return not self.basis_[:, dummies:].any() and (linear is None or not linear.any())

    def _warn_of_constant(self, status: Status) -> None:
        if status == Status.MAX_TIME:
            warn_caller(
                "max_time ended the fit before a unit had an effect of X, so that all predictions "
                "are the same; raise max_time",
                ConvergenceWarning,
            )
        elif status == Status.MAX_UNITS:
            warn_caller(f"max_units={self.max_units} leaves no unit for X: all predictions are the same; raise it")
        else:
            warn_caller(
                f"no unit has an effect of X at strength={self.strength_:.3g} and tol={self.tol:g}, so that all "
                "predictions are the same; lower the strength if y depends on X"
            )

    @quiet()
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the network.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), RelationBlocks or RowBlocks
            Training data, in memory, as tables that samples share (:class:`mopn.RelationBlocks`), or read in every pass
            (:class:`mopn.RowBlocks`). float32 is kept; sparse formats other than CSR and CSC are converted.
            Arrays of PyTorch and CuPy are taken to the host.
        y : array-like of shape (n,) or (n, m), optional
            None if the blocks bring it. Classifiers: labels, or an indicator matrix of 0 and 1. Regressors: numbers.
            Ordinal regressors: numbers or ordered categories, which become their positions.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 equals a repeated sample, and 0 a missing one: to the last bit for up to 2**20 entries of X,
            else up to rounding. A common factor changes nothing where ``strength`` is a :class:`mopn.Ratio`, and
            ``ridge`` and ``alpha`` are 0 or None; else a warning says so of weights below 0.1.
        X_val, y_val, sample_weight_val : array-like, optional
            Held-out samples, such as a later week, whose ``score`` after every round chooses the number of units. X_val
            is in memory; the weights may be left out.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter are invalid.
        OSError
            If blocks cannot be read or have changed, before the network has units. Later this ends the fit with the
            best network so far.
        KeyboardInterrupt
            After Ctrl-C. The estimator is then fitted to the best network so far; likewise if a callback raises.

        Warns
        -----
        ConvergenceWarning
            If a number overflowed, or the network was not found in a thousand rounds.
        UserWarning
            If outputs have neither a unit nor a linear term, as ``max_units`` is less than their number.

        References
        ----------
        Blondel, Niculae, Otsuka and Ueda: Multi-output Polynomial Networks and Factorization Machines. NIPS 2017.
        Algorithm 1 for problem (2), with a penalty in place of the constraint; section 6.5 for ordinal regression.
        """
        self._check_parameters()
        self._warn(self._fit(X, y, sample_weight, (X_val, y_val, sample_weight_val)))
        return self

    def problem(self, X: Any, y: Any = None, sample_weight: Any = None) -> NetworkProblem:
        """Return the problem whose objective ``fit`` minimises, for :func:`mopn.minimize` and :func:`mopn.certify`.

        Its rows are those of X, in the same order, whereas ``fit`` sorts its samples, merges equal ones and leaves out
        rows of weight 0: up to rounding the objective is the same. So ``dual_.point(problem)`` has a row for each row
        of X: equal samples share their slope in proportion to their weights, and rows of weight 0 have 0.

        Parameters
        ----------
        X, y, sample_weight : as for ``fit``
        """
        reader = clone(self)
        reader._check_parameters()
        X, y, weights, present = reader._samples(to_host(X), y, sample_weight, every_row=True)
        return reader._problem(X, targets_of_all_rows(reader._encode(y, weights), present, sample_weight))

    @with_callbacks
    def _fit(self, X: Any, y: Any, sample_weight: Any, validation: tuple[Any, Any, Any]) -> Result:
        deadline = Deadline(self.max_time)
        continued = self.warm_start and hasattr(self, "model_")
        say(self.verbose, "reading the samples")
        X, y, sample_weight, _ = self._samples(to_host(X), y, sample_weight, reset=not continued)
        task = begin_fit(self, samples_of(X, y, sample_weight), None)
        (X, targets), held_out = self._parts((X, y, sample_weight), self._validation_samples(*validation))
        problem, targets = self._problem_of_all(X, targets)
        if isinstance(X, RowBlocks | Chunks):
            self._set_features(X, problem.rows.n_features)
        del X  # the problem has its own arrays
        warn_of_small_weights(problem.rows, strength=self.strength, alpha=self.alpha, ridge=self.ridge)
        problem.strength  # noqa: B018 - a Ratio is resolved here, within max_time
        start = self._previous(problem, targets) if continued else None
        result = self._solve(task, problem, targets, held_out, start, deadline.left)
        self._raise_interruption(result)
        task.end({})
        return result

    def _parts(self, samples: Samples, given: Any) -> tuple[tuple[Any, Targets], tuple[Any, Targets] | None]:
        if given is not None:
            return self._with_validation(samples, given)
        X, y, sample_weight = samples
        return (X, self._encode(y, sample_weight)), None

    def _solve(
        self,
        task: Task,
        problem: NetworkProblem,
        targets: Targets,
        held_out: tuple[Any, Targets] | None,
        start: Any,
        max_time: float,
        shown: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> Result:
        """Fit the network of a problem, and set the fitted attributes; ``shown`` maps them for callbacks."""
        validation = validate = None
        policy = self._policy.for_problem(problem, self.max_units)
        if held_out is not None:
            validation = EarlyStopping(policy.patience)
            validate = self._validated(validation, problem, *held_out)
        solver = policy.solver(problem, self, validates=validation is not None)

        def reached(network: Result) -> dict[str, Any]:
            best = network if validation is None or validation.best is None else validation.best
            return shown(self._attributes(problem, targets, best))

        with task.iterations(reached, validate) as callback:
            result = minimize(
                problem,
                solver,
                start=start,
                tol=self.tol,
                max_iter=policy.max_rounds,
                max_time=max_time,
                callback=callback,
                verbose=self.verbose,
            )
        if result.status == Status.FAILED and isinstance(result.error, OSError) and not len(result.basis):
            raise result.error
        self._set_fitted(problem, solver, targets, result, validation)
        return result

    def _problem_of_all(self, X: Any, targets: Targets) -> tuple[NetworkProblem, Targets]:
        if not isinstance(X, RowBlocks | Chunks):
            X, targets = merge_equal_samples(X, targets)
        return self._problem(X, targets), targets

    @abstractmethod
    def _encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        """Validate y and return its targets."""

    def _with_validation(self, training: Samples, given: Any) -> tuple[tuple[Any, Targets], tuple[Any, Targets]]:
        (X, y, weight), (X_val, y_val, weight_val, _) = training, given
        if y_val.shape[1:] != y.shape[1:]:
            raise ValueError(f"y_val must be like y, of shape (n,) + {y.shape[1:]}, got {y_val.shape}")
        if not self._numeric_y and y.ndim == 1:
            classes = distinct_labels(y)[0]
            y_val = classes[label_codes(y_val, classes, "y_val")]
        weights = None
        if weight is not None or weight_val is not None:
            parts = (weight, y), (weight_val, y_val)
            weights = np.concatenate([np.ones(len(y)) if w is None else w for w, y in parts])
        targets = self._encode(np.concatenate([y, y_val]), weights)
        train, held_out = targets.rows(np.arange(len(y))), targets.rows(np.arange(len(y), len(targets.y)))
        unseen = np.setdiff1d(held_out.y, train.y) if targets.form == "ordinal" else np.zeros(0)
        if len(unseen):
            raise ValueError(f"y_val has levels that are not in y: {unseen}; remove these samples")
        return (X, train), (X_val, held_out)

    def _level_and_unit(self, targets: Targets) -> UserY | None:
        """Return the levels and units that a problem's targets are without, or None."""
        return None

    def _data(self, X: Any, targets: Targets, user_y: UserY | None = None) -> tuple[Any, Any, Any]:
        if isinstance(X, Chunks):
            return encoded_chunks(X, targets, user_y), None, None
        return X, targets.values if user_y is None else user_y.targets(targets.values), targets.weights

    def _problem(self, X: Any, targets: Targets) -> NetworkProblem:
        """Return the problem of samples, around the constant outputs of least loss.

        A network without units predicts these: the mean of y, or the frequencies of the classes.
        """
        user_y = self._level_and_unit(targets)
        offset = constant_outputs(X, targets) if user_y is None else None
        X, y, weights = self._data(X, targets, user_y)
        problem = NetworkProblem(
            X,
            y,
            loss=targets.loss,
            kernel=self._kernel,
            norm=self.norm,
            strength=self.strength,
            sample_weight=weights,
            offset=offset,
            augment=self.fit_intercept,
            alpha=self.alpha,
            center=self.fit_intercept and self._kernel == "homogeneous",
            scale=self.scale,
        )
        problem = problem.with_user_y(user_y)
        return problem.with_ridge(self._ridge_of(problem)) if self.ridge else problem

    def _ridge_of(self, problem: NetworkProblem) -> float:
        """Return the ridge for the mean squared length of the rows of a problem: 4 for most scales."""
        if self.scale in ("features", "data"):
            return self.ridge
        squares = problem.rows.squares[-problem.rows.n_features :]
        return self.ridge * (float(squares.sum()) / problem.losses.total_weight / 4.0) ** 2

    def _previous(self, problem: NetworkProblem, targets: Targets) -> tuple[Any, ...]:
        """Return the network of the previous fit, if this one can start from it."""
        names = ("basis_", "weights_")
        basis, weights = (as_numbers(getattr(self, name), f"warm_start=True: {name}") for name in names)
        if basis.ndim != 2 or weights.ndim != 2:
            raise ValueError(
                f"warm_start=True starts from basis_ (k, d) and weights_ (k, m), which have the shapes {basis.shape} "
                f"and {weights.shape}; set warm_start=False"
            )
        if not (np.isfinite(basis).all() and np.isfinite(weights).all()):
            raise ValueError("warm_start=True: basis_ or weights_ contains NaN or infinity; set warm_start=False")
        old, new = (basis.shape[1], weights.shape[1]), (problem.rows.shape[1], problem.losses.n_outputs)
        if old != new:
            raise ValueError(
                f"warm_start=True starts from a network of {old[0]} inputs (dummies included) and {old[1]} outputs, "
                f"but this fit has {new[0]} and {new[1]}; set warm_start=False"
            )
        known: Any = getattr(self, self._classes_name, None)
        if targets.classes is not None and not np.array_equal(known, targets.classes):
            raise ValueError(
                f"warm_start=True starts from a network for the {self._classes_name.strip('_')} {known}, but this fit "
                f"has {targets.classes}; set warm_start=False"
            )
        return self._moved(problem, basis, weights, self.linear_, cast(Model, self.model_).offset)

    def _moved(
        self,
        problem: NetworkProblem,
        basis: np.ndarray,
        weights: np.ndarray,
        linear: Any,
        offset: Any,
    ) -> NetworkParts:
        """Return a network for X and y as given in a problem's coordinates, the constant less the new offset."""
        linear = problem.linear_term.start(linear if self.alpha is not None else None, problem.losses.n_outputs)
        if problem.user_y is not None:
            weights, linear = problem.user_y.of_problem(weights, linear)
            offset = problem.user_y.offset_of_problem(offset)
        basis, linear = problem.user_X.of_problem(basis, linear)
        new = common_offset(problem.losses.offset)
        constant = offset - (0.0 if new is None else new)
        parts = NetworkParts(basis, weights, linear)
        dummies = problem.user_X.dummies
        is_full = self.max_units is not None and len(basis) >= self.max_units
        if is_full and not linear.size and unit_of_constants(basis, dummies) is None:
            return parts
        return with_constant(parts, constant, dummies) or parts

    def _validated(
        self, validation: EarlyStopping, problem: NetworkProblem, X: Any, targets: Targets
    ) -> Callable[[Result], None]:
        """Return the callback that scores every round's network on held-out samples (section 6.1 of the paper)."""

        @quiet()
        def validate(intermediate_result: Result) -> None:
            prediction = _model(problem, targets, intermediate_result).predict(X)
            score = self._metric(targets.y, prediction, sample_weight=targets.sample_weight)
            validation.add(intermediate_result, score)
            if validation.is_over:
                raise StopIteration

        return validate

    def _attributes(self, problem: NetworkProblem, targets: Targets, network: Result) -> dict[str, Any]:
        model = self._named(_model(problem, targets, network))
        classes = {} if targets.classes is None else {self._classes_name: targets.classes}
        return classes | {
            "loss_": targets.loss,
            "model_": model,
            "basis_": model.basis,
            "weights_": model.weights,
            "linear_": model.linear,
            "strength_": problem.strength,
            "_coordinates": problem.user_X.coordinates,
            "_user_y": problem.user_y,
        }

    def _set_fitted(
        self,
        problem: NetworkProblem,
        solver: Solver[Any],
        targets: Targets,
        result: Result,
        validation: EarlyStopping | None,
    ) -> None:
        network, measure = result, cast(Result | Measure, result)
        if validation is not None and validation.best is not None:
            network = validation.best
            # A lower bound of the minimum that any round proved holds in all of them.
            measure = solver.measure(problem, problem.start(network))._replace(lower=result.lower)
        # The units of the model are rounded once more where the center of the features is far away.
        try:
            rounding = problem.model_rounding(network)
        except OSError:  # a file or a cluster is lost: the model stays, without a proof
            rounding = math.inf
        gap = float(measure.gap) + rounding
        self.__dict__.update(self._attributes(problem, targets, network))
        self.objective_, self.gap_ = float(measure.fun), gap
        self.relative_gap_, self.proof_ = float(relative(gap, measure.fun, measure.rounding + rounding)), result.proof
        self.restricted_gap_ = float(min(network.restricted_gap + rounding, gap))
        self.estimated_gap_ = float(min(network.estimated_gap + rounding, gap))
        self.dual_ = result.dual
        result.status = self._status_of_model(result.status, validation)
        self.status_, self.trace_ = result.status, result.trace
        self.n_iter_, self.n_refit_iter_ = max(int(result.nit), 1), int(result.refit_nit)
        self.validation_scores_ = None if validation is None else np.array(validation.scores)

    def _status_of_model(self, ended: Status, validation: EarlyStopping | None) -> Status:
        """Return why the fit ended, true for the model that is kept: the run may have ended with another one."""
        if not ended.is_judged_by_gap and not (validation is not None and validation.is_over):
            return ended
        if self.relative_gap_ <= self.tol:
            return Status.CONVERGED
        if validation is not None:
            return Status.BEST_SCORE
        if not ended.claims_tolerance:
            return ended
        # Rounding errors of the model, for the user's X and y, may exceed the tolerance.
        estimated = self.estimated_gap_ <= self.tol * abs(self.objective_)
        return Status.ESTIMATED if estimated else Status.LEVELLED_OFF


def _model(problem: NetworkProblem, targets: Targets, result: Result) -> Model:
    classes = targets.classes if targets.form in ("labels", "ordinal") else None
    return Model.from_result(problem, result, classes=classes, target=targets.form)
