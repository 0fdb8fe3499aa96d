"""Base classes of the estimators whose model is a network: its fitted attributes, and the steps of ``fit``."""

from abc import abstractmethod
from contextlib import AbstractContextManager
from copy import copy
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone

from mopn.core.gap import Dual
from mopn.core.kernels import KernelName
from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import Chunks
from mopn.data.feature_scaling import Coordinates, ScaleName
from mopn.data.row_blocks import RowBlocks
from mopn.data.validation import check_flag
from mopn.data.values import to_host
from mopn.estimators.base import ModelEstimator, check_parameters, raise_interruption
from mopn.estimators.callbacks import Task, begin_fit, print_progress, samples_of, with_callbacks
from mopn.estimators.encodings import Encoding
from mopn.estimators.fit_policy import FitPolicy
from mopn.estimators.fit_warnings import FittedNetwork, warn_of_network
from mopn.estimators.network_fit import EncodedSamples, NetworkFit, NetworkOptions, NetworkRun, Samples
from mopn.estimators.parameters import COMMON, MAX_UNITS, STRENGTH, warn_of_small_weights
from mopn.estimators.targets import Targets, samples_of_chunks, targets_of_all_rows
from mopn.estimators.warm_start import previous_network
from mopn.losses.losses import Loss, LossName
from mopn.network.maps import UserY
from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.problem import NetworkProblem
from mopn.solvers import Result, Status, minimize
from mopn.solvers.conditional_gradient import RefitName
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.checks import check_nonnegative
from mopn.solvers.tools.decorators import quiet


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

    _policy: ClassVar[FitPolicy]

    @abstractmethod
    def _encoding(self) -> Encoding:
        """Return how y is encoded."""

    @abstractmethod
    def _network_fit(self) -> NetworkFit:
        """Return the fit of a network with the parameters."""

    @abstractmethod
    def _presented(self, problem: NetworkProblem, fitted: dict[str, Any]) -> dict[str, Any]:
        """Return the fitted attributes of a network as users see them, with the names of features and outputs."""

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, least: int = 2, every_row: bool = False
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Return validated samples; chunks with targets and weights as ``samples_of_chunks`` does."""
        if isinstance(X, Chunks):
            self._plain_targets(None, reset=reset)  # numbers without names
            return samples_of_chunks(self._encoding(), X)
        return super()._samples(X, y, sample_weight, reset=reset, least=least, every_row=every_row)

    def _encoded(
        self, fit: NetworkFit, samples: Samples, given: tuple[Any, Any, Any]
    ) -> tuple[Targets, EncodedSamples | None]:
        """Return the targets of samples, and the encoded samples to validate on, if some are given."""
        validation = self._validation_samples(*given)
        if validation is None:
            return fit.encode(samples.y, samples.sample_weight), None
        targets, held_out = fit.encode_with_validation(samples, validation)
        return targets, EncodedSamples(validation.X, held_out)

    def _watched(self, task: Task, run: NetworkRun) -> AbstractContextManager[Any]:
        """Return the context of the minimisation of a run, with its callback."""

        def reached(network: Result) -> dict[str, Any]:
            return self._presented(run.problem, run.fitted_so_far(network))

        return task.iterations(reached, run.validate)

    def _keep(self, run: NetworkRun, result: Result) -> FittedNetwork:
        """Set the fitted attributes that a run has found."""
        if result.status == Status.FAILED and isinstance(result.error, OSError) and not len(result.basis):
            raise result.error
        attributes = run.fitted(result)
        self.__dict__.update(self._presented(run.problem, attributes))
        return FittedNetwork(run.fit.options, run.problem, result, attributes)

    def _validation_samples(self, X_val: Any, y_val: Any, sample_weight_val: Any) -> Samples | None:
        if X_val is None and y_val is None:
            return None
        for name, part in (("X_val", X_val), ("y_val", y_val)):
            if part is None:
                raise ValueError(f"{name} is missing: X_val and y_val go together; give both, or neither")
        if isinstance(X_val, RowBlocks):
            raise ValueError("X_val must be in memory, got RowBlocks; give an array, a sparse matrix or a frame")
        X, y, weights, _ = self._samples(X_val, y_val, sample_weight_val, reset=False, least=1)
        return Samples(X, y, weights)


class NetworkEstimator(NetworkAttributes):
    """Base of the convex estimators; subclasses define the encoding of y and the kernel."""

    # Center and scale of the features, and levels and units of the targets, set by fit.
    _coordinates: Coordinates | None
    _user_y: UserY | None

    _kernel: ClassVar[KernelName]
    _rules = COMMON | {
        "strength": STRENGTH,
        "ridge": check_nonnegative,
        "max_units": MAX_UNITS,
        "fit_intercept": check_flag,
    }
    _policy = FitPolicy()

    def __init__(
        self,
        *,
        loss: LossName | Loss = "squared",
        norm: NormName = "l1",
        strength: float | Ratio = Ratio(0.002),
        max_units: int | Literal["auto"] | None = "auto",
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

    @quiet()
    @with_callbacks
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
        check_parameters(self)
        deadline = Deadline(self.max_time)
        fit = self._network_fit()
        continued = self.warm_start and hasattr(self, "model_")
        print_progress(self.verbose, "reading the samples")
        X, y, sample_weight, _ = self._samples(to_host(X), y, sample_weight, reset=not continued)
        task = begin_fit(self, samples_of(X, y, sample_weight), None)
        targets, held_out = self._encoded(fit, Samples(X, y, sample_weight), (X_val, y_val, sample_weight_val))
        problem, targets = fit.problem_of_distinct_samples(X, targets)
        if isinstance(X, RowBlocks | Chunks):
            self._set_features(X, problem.rows.n_features)
        del X  # the problem has its own arrays
        warn_of_small_weights(problem.rows, strength=self.strength, alpha=self.alpha, ridge=self.ridge)
        run = fit.run(problem, targets, held_out)
        start = previous_network(self, fit, problem, targets) if continued else None
        with self._watched(task, run) as callback:
            left = deadline.left
            result = minimize(run.problem, run.solver, start=start, max_time=left, callback=callback, **run.limits)
        fitted = self._keep(run, result)
        raise_interruption(fitted.result)
        task.end({})
        warn_of_network(fitted)
        return self

    def problem(self, X: Any, y: Any = None, sample_weight: Any = None) -> NetworkProblem:
        """Return the problem whose objective ``fit`` minimises, for :func:`mopn.minimize` and :func:`mopn.certify`.

        It has the rows of X, in the same order, whereas ``fit`` sorts its samples, merges equal ones and leaves out
        rows of weight 0: up to rounding the objective is the same. So ``dual_.point(problem)`` has a row for each row
        of X: equal samples share their slope in proportion to their weights, and rows of weight 0 have 0.

        Parameters
        ----------
        X, y, sample_weight : as for ``fit``
        """
        reader = clone(self)
        check_parameters(reader)
        X, y, weights, present = reader._samples(to_host(X), y, sample_weight, every_row=True)
        fit = reader._network_fit()
        return fit.problem(X, targets_of_all_rows(fit.encode(y, weights), present, sample_weight))

    def _network_fit(self) -> NetworkFit:
        return NetworkFit(self._kernel, self._encoding(), NetworkOptions.of(self), self._policy)

    def _presented(self, problem: NetworkProblem, fitted: dict[str, Any]) -> dict[str, Any]:
        own = {
            "model_": self._named(fitted["model_"]),
            "_coordinates": problem.user_X.coordinates,
            "_user_y": problem.user_y,
        }
        return fitted | own


def network_fit_of(estimator: NetworkAttributes) -> NetworkFit:
    """Return the fit of a network with the parameters of an estimator, after checks of these."""
    check_parameters(estimator)
    return estimator._network_fit()


def samples_of_fit(
    estimator: ModelEstimator, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
    """Return the samples of positive weight that an estimator fits, and their indices."""
    return estimator._samples(X, y, sample_weight)


def fitted_copy(estimator: NetworkAttributes, problem: NetworkProblem, fitted: dict[str, Any]) -> Any:
    """Return an estimator with the fitted attributes of a network."""
    found = copy(estimator)
    found.__dict__.update(estimator._presented(problem, fitted))
    return found
