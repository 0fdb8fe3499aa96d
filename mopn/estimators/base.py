"""Base classes of the estimators: parameters, the steps of ``fit``, and prediction."""

from __future__ import annotations

import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted, validate_data

from mopn.core.chunked_rows import Chunks
from mopn.core.coordinates import ScaleName
from mopn.core.kernels import KernelName
from mopn.core.losses import Loss, LossName
from mopn.core.magnitudes import check_input
from mopn.core.namespaces import is_device_array, is_on_accelerator, to_host
from mopn.core.norms import NormName
from mopn.core.regularizers import Penalty
from mopn.core.row_blocks import RowBlocks
from mopn.core.sparse_structure import compressed
from mopn.core.validation import as_array, as_numbers, check_flag, check_sample_weight, present_rows
from mopn.estimators.callbacks import CallbackSupportMixin, begin_fit, samples_of, with_callbacks
from mopn.estimators.parameters import COMMON, UNIT_INTERVAL, readable
from mopn.estimators.targets import Targets, merge_equal_samples
from mopn.models.base import Predictor
from mopn.models.multi_output import Model
from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import EarlyStopping
from mopn.solvers import ConditionalGradient, Result, Solver, Status, minimize
from mopn.solvers.checks import Rule, check_callback, check_fraction, count
from mopn.solvers.conditional_gradient import Precision, RefitName, make_correction
from mopn.solvers.conditional_gradient.correction import Correction
from mopn.solvers.progress import Verbose
from mopn.solvers.result import gap_in_words, proof_in_words, relative

if TYPE_CHECKING:
    import onnx
    from typing_extensions import Self

__all__ = ["Callback", "ModelEstimator", "NetworkEstimator", "network_model"]

Callback = Callable[..., Any]

_X_FORMAT: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32), "order": "C"}
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# The other statuses are success, or limits that the user sets.
_WARN_ON = (Status.MAX_ITER, Status.NONFINITE, Status.FAILED)
# The tolerance of the last refit if tol is 0.
_REFIT_TOL = 1e-3
# Units added per round where validation chooses their number.
_UNITS_PER_ROUND = 5


class ModelEstimator(CallbackSupportMixin, ABC, BaseEstimator):
    """Base of all estimators: validated samples, predictions by a model, and warnings at the end of a fit."""

    _numeric_y: ClassVar[bool]
    # What the parameters take.
    _rules: ClassVar[dict[str, Rule]] = COMMON
    model_: Predictor

    def predict(self, X: Any) -> np.ndarray:
        """Predict y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray of shape (n,) or (n, m)
            Like the y of ``fit``.
        """
        X = self._checked(X)
        return self.model_.predict(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a plain ``.npz`` file for :func:`mopn.load`, which needs no scikit-learn.

        Parameters
        ----------
        path : str or path
            Name of the file, without any change; an existing file is overwritten.
        """
        check_is_fitted(self)
        self.model_.save(path)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON; see :meth:`mopn.Model.to_json`.

        Parameters
        ----------
        path : str or path
        """
        check_is_fitted(self)
        self.model_.to_json(path)

    def to_onnx(self, *, dtype: str = "float32") -> onnx.ModelProto:
        """Return the model as an ONNX graph; see :meth:`mopn.Model.to_onnx`.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default "float32"
        """
        check_is_fitted(self)
        return self.model_.to_onnx(dtype=dtype)

    def to_c(self, path: str | os.PathLike[str], *, name: str = "model", dtype: str = "float32") -> None:
        """Write the model as a C99 header; see :meth:`mopn.Model.to_c`.

        Parameters
        ----------
        path : str or path
        name : str, default "model"
        dtype : {"float32", "float64", "int16"}, default "float32"
        """
        check_is_fitted(self)
        self.model_.to_c(path, name=name, dtype=dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Validate the parameters that problem and solver do not validate, or know by other names."""
        for name, value in self.get_params(deep=False).items():
            if name in self._rules:
                self._rules[name](value, name)

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, least: int = 2
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Validate the samples to fit, ``least`` of them; return those of positive weight, and their indices."""
        if isinstance(X, RowBlocks):
            return self._samples_of_blocks(X.with_targets(y, sample_weight))
        X, y, sample_weight = to_host(X), to_host(y), to_host(sample_weight)
        X, y = readable(compressed(X), "X"), readable(compressed(y, "y"), "y", numeric=self._numeric_y)
        checks = _X_FORMAT | {"multi_output": True, "y_numeric": self._numeric_y, "ensure_min_samples": least}
        X, y = validate_data(self, X, y, reset=reset, **checks)
        y = y.toarray() if sparse.issparse(y) else y
        sample_weight = check_sample_weight(sample_weight, X.shape[0])
        check_input(0.0 if sample_weight is None else sample_weight, "sample_weight")
        (X, indices), y, sample_weight, _ = present_rows((X, np.arange(X.shape[0])), y, sample_weight, None)
        if len(indices) < least:
            raise ValueError(f"at least {least} samples of positive weight are needed to fit, got {len(indices)}")
        return X, y, sample_weight, indices

    def _samples_of_blocks(self, X: RowBlocks) -> tuple[RowBlocks, np.ndarray, np.ndarray | None, np.ndarray]:
        """Return blocks of X, and the targets and weights of all rows in memory; the problem validates them."""
        X, y, sample_weight = X.with_targets_in_memory()
        return X, self._plain_targets(y), sample_weight, np.arange(len(y))

    def _plain_targets(self, y: Any) -> np.ndarray:
        """Return y as an array, of numbers if they are to be numbers."""
        return as_numbers(y, "y").astype(np.float64) if self._numeric_y else as_array(y, "y")

    def _checked(self, X: Any) -> Any:
        """Validate X for a prediction."""
        if hasattr(self, "model_") and self._is_plain(X):
            return X
        check_is_fitted(self)
        return validate_data(self, readable(compressed(to_host(X)), "X"), reset=False, **_X_FORMAT)

    def _is_plain(self, X: Any) -> bool:
        """Whether X is an array like that of the fit, of which the model checks the rest: single rows are soon done."""
        if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in _FLOATS:
            return False
        return len(X) > 0 and X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_")

    def _raise_interruption(self, result: Result) -> None:
        """Raise what interrupted the fit."""
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        if result.status == Status.CALLBACK_FAILED and result.error is not None:
            raise result.error

    def _warn(self, result: Result) -> None:
        """Warn the caller of ``fit`` if it did not succeed."""
        if result.status in _WARN_ON:
            reason = "" if result.error is None else f" ({result.error!r})"
            gap = f", the gap {gap_in_words(result)}" if math.isfinite(result.gap) else ""
            text = f"{result.message}{reason} The objective is {result.fun:.6g}{gap}."
            warnings.warn(text, ConvergenceWarning, stacklevel=3)


class NetworkEstimator(ModelEstimator):
    """Base of the convex estimators; subclasses encode y and define the kernel."""

    _kernel: ClassVar[KernelName]
    _rules = COMMON | {
        "max_units": count().or_none(),
        "augment": check_flag,
        "share": check_fraction,
        "validation_fraction": UNIT_INTERVAL,
        "n_iter_no_change": count(),
    }
    # The tolerance of the last refit of both layers, relative to tol: labels are as accurate long before the minimum.
    _polish: ClassVar[float] = 5.0
    # Whether refits of both layers are in single precision where that is faster: labels are as accurate, numbers not.
    _single_precision: ClassVar[bool] = False
    # The fitted attribute of Model.classes.
    _classes_name: ClassVar[str] = "classes_"

    def __init__(
        self,
        *,
        loss: LossName | Loss = "squared",
        norm: NormName = "l1/l2",
        strength: float | None = None,
        radius: float | None = None,
        share: float = 0.002,
        max_units: int | None = 50,
        refit: RefitName | Correction = "full",
        oracle: OracleName | BasisOracle = "auto",
        augment: bool = True,
        center: bool | None = None,
        scale: ScaleName | None = "features",
        alpha: float | None = None,
        tol: float = 1e-3,
        max_iter: int | None = 1000,
        max_time: float | None = None,
        n_threads: int | None = None,
        validation_fraction: float = 0.0,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        verbose: Verbose = 0,
        callback: Callback | None = None,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.norm = norm
        self.strength = strength
        self.radius = radius
        self.share = share
        self.max_units = max_units
        self.refit = refit
        self.oracle = oracle
        self.augment = augment
        self.center = center
        self.scale = scale
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_threads = n_threads
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

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
        X : array-like or sparse matrix of shape (n, d), or RowBlocks
            Training data, in memory or (:class:`mopn.RowBlocks`) read in every pass; see ``center`` and ``scale``.
            float32 is kept; sparse formats other than CSR and CSC are converted. A dense array of PyTorch or CuPy on
            an accelerator stays there, and what reads it is computed there; other arrays of theirs are converted.
        y : array-like of shape (n,) or (n, m), optional
            None if the blocks bring it. Classifiers: labels, or an indicator matrix of 0 and 1. Regressors: numbers.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 equals a repeated sample, and a weight of 0 a missing one.
        X_val, y_val, sample_weight_val : array-like, optional
            Samples of your own to validate on, in place of ``validation_fraction``: those of a later week, say. X_val
            is in memory; the weights may be left out.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter are invalid.
        KeyboardInterrupt
            After Ctrl-C. The estimator is then fitted to the best network so far; likewise if ``callback`` raises.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` rounds were not enough, or a number overflowed.
        """
        self._check_parameters()
        self._warn(self._fit(X, y, sample_weight, (X_val, y_val, sample_weight_val)))
        return self

    @with_callbacks
    def _fit(self, X: Any, y: Any, sample_weight: Any, own: tuple[Any, Any, Any]) -> Result:
        """Fit the network; ``own`` are the user's samples to validate on."""
        continued = self.warm_start and hasattr(self, "model_")
        samples = self._samples_on_device if is_on_accelerator(X) else self._samples
        X, y, sample_weight, _ = samples(X, y, sample_weight, reset=not continued)
        # Rounds end by the gap or the number of units, long before max_iter.
        task = begin_fit(self, samples_of(X, y, sample_weight), None)
        if own[0] is None and own[1] is None:
            training, held_out = self._split(X, self._encode(y, sample_weight))
        else:
            training, held_out = self._with_own((X, y, sample_weight), own)
        X, targets = merge_equal_samples(*training) if _is_in_numpy(X) else training

        # As in the driver: Ctrl-C leaves NumPy as it was.
        with np.errstate():
            problem = self._problem(X, targets)
        if not _is_in_numpy(X):
            self.n_features_in_ = problem.rows.n_features
        validation = None if held_out is None else self._validation(problem, *held_out)
        solver = ConditionalGradient(
            refit=self._correction(problem),
            max_units=self.max_units,
            oracle=self.oracle,
            # With max_units the aim is the best model of that size, without it a proof.
            schedule="grow" if self.max_units is None else "fill",
            # Validation chooses the number of units between rounds.
            atoms_per_round=_UNITS_PER_ROUND if validation is not None and self.refit == "full" else None,
        )

        def reached(network: Result) -> dict[str, Any]:
            best = network if validation is None or validation.best is None else validation.best
            return self._attributes(problem, targets, best)

        with task.iterations(reached, validation or self.callback) as callback:
            result = minimize(
                problem,
                solver,
                start=self._previous(problem, targets) if continued else None,
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=self.max_time,
                n_threads=self.n_threads,
                callback=callback,
                verbose=self.verbose,
            )
        self._set_fitted(problem, solver, targets, result, validation)
        self._raise_interruption(result)
        task.end({})
        return result

    def _correction(self, problem: NetworkProblem) -> Correction:
        """Return the correction that ``refit`` stands for."""
        tol = self.tol if self.tol > 0 else _REFIT_TOL
        full = {"polish_tol": self._polish * tol, "precision": self._precision(problem)}
        return make_correction(self.refit, full=full, tol=tol)

    def _precision(self, problem: NetworkProblem) -> Precision:
        """Return the precision of the features in refits of both layers."""
        return "single" if self._single_precision and problem.gains_by_single else "double"

    # -- the meaning of y -------------------------------------------------------------------------------------------

    @abstractmethod
    def _encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        """Validate y and return its targets."""

    @abstractmethod
    def _score(self, targets: Targets, prediction: np.ndarray) -> float:
        """Return the score of a prediction, as ``score`` does."""

    def _samples_on_device(
        self, X: Any, y: Any, sample_weight: Any, **_: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Return X as it is, and the rest in NumPy; the problem validates X."""
        y = self._plain_targets(to_host(y))
        sample_weight = check_sample_weight(to_host(sample_weight), len(y))
        return X, y, sample_weight, np.arange(len(y))

    # -- the steps of fit -------------------------------------------------------------------------------------------

    def _split(self, X: Any, targets: Targets) -> tuple[tuple[Any, Targets], tuple[Any, Targets] | None]:
        """Return the training samples, and the held-out samples or None."""
        if not self.validation_fraction:
            return (X, targets), None
        if not _is_in_numpy(X):
            raise ValueError(
                "validation_fraction takes samples at random, which needs X in memory; set it to 0, and give X_val"
            )
        n = len(targets.y)
        count = math.ceil(self.validation_fraction * n)
        if min(count, n - count) < 2:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} splits {n} samples into {n - count} to train on and "
                f"{count} to validate on; each part needs at least 2"
            )
        strata = targets.y if targets.form == "labels" else None
        train, held_out = train_test_split(
            np.arange(n), test_size=count, random_state=self.random_state, stratify=strata
        )
        if strata is not None and len(np.unique(strata[train])) < len(np.unique(strata)):
            raise ValueError(
                f"validation_fraction={self.validation_fraction} leaves no sample of some class to train on; lower it"
            )
        return (X[train], targets.rows(train)), (X[held_out], targets.rows(held_out))

    def _with_own(
        self, training: tuple[Any, np.ndarray, np.ndarray | None], held_out: tuple[Any, Any, Any]
    ) -> tuple[tuple[Any, Targets], tuple[Any, Targets]]:
        """Return the training samples and the user's own samples to validate on, their targets encoded together."""
        if self.validation_fraction:
            raise ValueError("validation_fraction is for fits without X_val; set it to 0, or leave X_val out")
        if held_out[0] is None or held_out[1] is None or isinstance(held_out[0], RowBlocks):
            raise ValueError("X_val and y_val go together, in memory; give both, or neither")
        (X, y, weight), own = training, self._samples(*held_out, reset=False, least=1)
        if own[1].shape[1:] != y.shape[1:]:
            raise ValueError(f"y_val must be like y, of shape (n,) + {y.shape[1:]}, got {own[1].shape}")
        weights = None
        if weight is not None or own[2] is not None:
            weights = np.concatenate([np.ones(len(y)) if w is None else w for w, y in ((weight, y), (own[2], own[1]))])
        targets = self._encode(np.concatenate([y, own[1]]), weights)
        parts = targets.rows(np.arange(len(y))), targets.rows(np.arange(len(y), len(targets.y)))
        unseen = np.setdiff1d(parts[1].y, parts[0].y) if targets.form in ("labels", "ordinal") else np.zeros(0)
        if len(unseen):
            raise ValueError(f"y_val has labels that y has not: {unseen}; leave these samples out")
        return (X, parts[0]), (own[0], parts[1])

    def _offset(self, targets: Targets) -> np.ndarray | None:
        """Return the constants (m,) that are added to the outputs, or None."""
        if not self._numeric_y:
            return None
        return targets.loss.constant(targets.values.reshape(len(targets.values), -1), targets.weights)

    def _data(self, X: Any, targets: Targets) -> tuple[Any, Any, Any]:
        """Return X, the targets and the weights of the problem."""
        return X, targets.values, targets.weights

    def _problem(self, X: Any, targets: Targets) -> NetworkProblem:
        by_share = self.strength is None and self.radius is None
        X, y, weights = self._data(X, targets)
        problem = NetworkProblem(
            X,
            y,
            loss=targets.loss,
            kernel=self._kernel,
            norm=self.norm,
            strength=0.0 if by_share else self.strength,
            radius=self.radius,
            sample_weight=weights,
            offset=self._offset(targets),
            augment=self.augment,
            alpha=self.alpha,
            center=self._kernel == "homogeneous" and self.augment if self.center is None else self.center,
            scale=self.scale,
        )
        return problem.with_strength(problem.strength_of_share(self.share)) if by_share else problem

    def _previous(self, problem: NetworkProblem, targets: Targets) -> tuple[Any, ...]:
        """Return the network of the previous fit, if this one can start from it."""
        basis, weights = (
            as_numbers(getattr(self, name), f"warm_start=True: {name}") for name in ("basis_", "weights_")
        )
        if basis.ndim != 2 or weights.ndim != 2:
            raise ValueError(
                f"warm_start=True starts from basis_ (k, d) and weights_ (k, m), which have the shapes {basis.shape} "
                f"and {weights.shape}; set warm_start=False"
            )
        if not (np.isfinite(basis).all() and np.isfinite(weights).all()):
            raise ValueError("warm_start=True: basis_ or weights_ contains NaN or infinity; set warm_start=False")
        old = basis.shape[1], weights.shape[1]
        new = problem.rows.shape[1], problem.fit.n_outputs
        if old != new:
            raise ValueError(
                f"warm_start=True starts from a network of {old[0]} inputs (dummies included) and {old[1]} outputs, "
                f"but this fit has {new[0]} and {new[1]}; set warm_start=False"
            )
        if targets.classes is not None and not np.array_equal(getattr(self, self._classes_name), targets.classes):
            name = self._classes_name.strip("_")
            raise ValueError(
                f"warm_start=True starts from a network for the {name} {getattr(self, self._classes_name)}, but this "
                f"fit has {targets.classes}; set warm_start=False"
            )
        basis, linear = problem.of_original(basis, self.linear_ if self.alpha is not None else None)
        return basis, weights, linear

    def _validation(self, problem: NetworkProblem, X: Any, targets: Targets) -> Validation:
        def score(result: Result) -> float:
            return self._score(targets, network_model(problem, targets, result).predict(X))

        return Validation(score, self.n_iter_no_change, check_callback(self.callback, "callback"))

    def _attributes(self, problem: NetworkProblem, targets: Targets, network: Result) -> dict[str, Any]:
        """Return the fitted attributes that depend on the network alone, not on the run."""
        model, penalty = network_model(problem, targets, network), problem.regularizer
        strength = float(penalty.strength) if isinstance(penalty, Penalty) else None
        classes = {} if targets.classes is None else {self._classes_name: targets.classes}
        return classes | {
            "loss_": targets.loss,
            "model_": model,
            "basis_": model.basis,
            "weights_": model.weights,
            "linear_": model.linear,
            "strength_": strength,
        }

    def _set_fitted(
        self,
        problem: NetworkProblem,
        solver: Solver,
        targets: Targets,
        result: Result,
        validation: Validation | None,
    ) -> None:
        """Set the fitted attributes."""
        network, fun, gap, restricted_gap = result, result.fun, result.gap, result.restricted_gap
        lower, estimated_gap, failure = fun - gap, result.estimated_gap, solver.failure(problem)
        if validation is not None and validation.best is not None:
            network = validation.best
            fun, gap, restricted_gap, _ = solver.measure(problem, problem.start(network))
            # A lower bound of the minimum that was proven in any round is valid in all of them.
            gap = min(gap, max(fun - lower, 0.0))
            estimated_gap = network.estimated_gap
        self.__dict__.update(self._attributes(problem, targets, network))
        self.objective_, self.gap_, self.certified_ = float(fun), float(gap), math.isfinite(gap)
        self.relative_gap_, self.proof_ = float(relative(gap, fun)), proof_in_words(gap, failure)
        self.restricted_gap_, self.estimated_gap_ = float(min(restricted_gap, gap)), float(min(estimated_gap, gap))
        self.status_, self.trace_ = result.status, result.trace
        self.n_iter_, self.n_refit_iter_ = max(int(result.nit), 1), int(result.refit_nit)
        self.validation_scores_ = None if validation is None else np.array(validation.scores)


def _is_in_numpy(X: Any) -> bool:
    """Whether X is neither in blocks nor on a device."""
    return not isinstance(X, RowBlocks | Chunks) and not is_device_array(X)


class Validation(EarlyStopping):
    """A callback that scores the network of every round on held-out samples and keeps the best one.

    The fit stops after ``patience`` rounds without a better score: this is the inner loop of the model validation in
    section 6.1 of the paper.
    """

    def __init__(self, score: Callable[[Result], float], patience: int, callback: Callback | None) -> None:
        super().__init__(patience)
        self.score, self.callback = score, callback

    def __call__(self, intermediate_result: Result) -> None:
        self.add(intermediate_result, self.score(intermediate_result))
        if self.callback is not None:
            self.callback(intermediate_result=intermediate_result)
        if self.is_over:
            raise StopIteration


def network_model(problem: NetworkProblem, targets: Targets, result: Result) -> Model:
    """Return the model of a fit, whose predictions have the form of the targets."""
    classes = targets.classes if targets.form in ("labels", "ordinal") else None
    return Model.from_result(problem, result, classes=classes, target=targets.form)
