"""The fit of a network: its kernel, its options, the encoding of its targets, its problem and its run."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from mopn.core.kernels import KernelName
from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import Chunks
from mopn.data.feature_scaling import ScaleName
from mopn.data.row_blocks import RowBlocks
from mopn.data.targets import distinct_labels
from mopn.data.validation import label_codes
from mopn.estimators.encodings import Encoding
from mopn.estimators.fit_policy import FitPolicy
from mopn.estimators.targets import Targets, constant_outputs, merge_equal_samples, targets_of_problem
from mopn.models.base import common_offset
from mopn.models.multi_output import Model
from mopn.network.model_starts import NetworkParts, unit_of_constants, with_constant
from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import EarlyStopping
from mopn.solvers import ConditionalGradient, Result, Status
from mopn.solvers.conditional_gradient import RefitName
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.interface import Measure
from mopn.solvers.result import relative
from mopn.solvers.tools.decorators import quiet

# Units of max_units="auto": as many as most data need (benchmarks/tables),
_LEAST_AUTO_UNITS = 200
# and this number for each output, where outputs have units of their own (letters).
_AUTO_UNITS_PER_OUTPUT = 10


class Samples(NamedTuple):
    """Validated samples: X, y, and their weights or None."""

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None


class EncodedSamples(NamedTuple):
    """Samples whose targets are encoded."""

    X: Any
    targets: Targets


@dataclass(frozen=True)
class NetworkOptions:
    """The parameters of an estimator on which the fit of its network depends."""

    norm: NormName
    max_units: int | Literal["auto"] | None
    scale: ScaleName | None
    tol: float
    verbose: int
    strength: float | Ratio = Ratio(0.002)
    refit: RefitName | CorrectiveStep = "full"
    oracle: OracleName | BasisOracle = "auto"
    fit_intercept: bool = True
    alpha: float | None = None
    ridge: float = 0.0

    @classmethod
    def of(cls, estimator: Any) -> NetworkOptions:
        """Return the options of an estimator whose parameters have the same names."""
        return cls(**{field.name: getattr(estimator, field.name) for field in fields(cls)})


@dataclass(frozen=True)
class NetworkFit:
    """The fit of a network: all that it needs besides the samples."""

    kernel: KernelName
    encoding: Encoding
    options: NetworkOptions
    policy: FitPolicy

    def with_options(self, **changes: Any) -> NetworkFit:
        """Return the fit with other options."""
        return replace(self, options=replace(self.options, **changes))

    def max_units(self, problem: NetworkProblem) -> int | None:
        """Return the limit on the units, for the outputs of a problem where it is "auto"."""
        given = self.options.max_units
        if given != "auto":
            return given
        has_own_units = problem.norm.exponent == math.inf
        own = _AUTO_UNITS_PER_OUTPUT * problem.losses.n_outputs if has_own_units else 0
        return max(_LEAST_AUTO_UNITS, own)

    def sized(self, problem: NetworkProblem) -> NetworkFit:
        """Return the fit with a number of units, or None, in place of "auto"."""
        return self.with_options(max_units=self.max_units(problem))

    def encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        """Validate y and return its targets."""
        return self.encoding.encode(y, sample_weight)

    def encode_with_validation(self, training: Samples, validation: Samples) -> tuple[Targets, Targets]:
        """Return the targets of training samples and of samples to validate on, which are encoded alike."""
        _, y, weight = training
        _, y_val, weight_val = validation
        if y_val.shape[1:] != y.shape[1:]:
            raise ValueError(f"y_val must be like y, of shape (n,) + {y.shape[1:]}, got {y_val.shape}")
        if self.encoding.kind == "labels" and y.ndim == 1:
            classes = distinct_labels(y)[0]
            y_val = classes[label_codes(y_val, classes, "y_val")]
        weights = None
        if weight is not None or weight_val is not None:
            parts = (weight, y), (weight_val, y_val)
            weights = np.concatenate([np.ones(len(y)) if w is None else w for w, y in parts])
        targets = self.encode(np.concatenate([y, y_val]), weights)
        train = targets.rows(np.arange(len(y)))
        held_out = targets.rows(np.arange(len(y), len(targets.y)))
        unseen = np.setdiff1d(held_out.y, train.y) if targets.form == "ordinal" else np.zeros(0)
        if len(unseen):
            raise ValueError(f"y_val has levels that are not in y: {unseen}; remove these samples")
        return train, held_out

    def problem(self, X: Any, targets: Targets) -> NetworkProblem:
        """Return the problem of samples, around the constant outputs of least loss.

        A network without units predicts these: the mean of y, or the frequencies of the classes.
        """
        options = self.options
        user_y = self.encoding.level_and_unit(targets)
        offset = constant_outputs(X, targets) if user_y is None else None
        X, y, weights = targets_of_problem(X, targets, user_y)
        problem = NetworkProblem(
            X,
            y,
            loss=targets.loss,
            kernel=self.kernel,
            norm=options.norm,
            strength=options.strength,
            sample_weight=weights,
            offset=offset,
            augment=options.fit_intercept,
            alpha=options.alpha,
            center=options.fit_intercept and self.kernel == "homogeneous",
            scale=options.scale,
        )
        problem = problem.with_user_y(user_y)
        if options.ridge:
            problem = problem.with_ridge(self._ridge_of(problem))
        # A function of the user's that selects units knows the features alone.
        by_function = callable(getattr(options.oracle, "function", options.oracle))
        return problem if by_function else problem.in_row_span()

    def problem_of_distinct_samples(self, X: Any, targets: Targets) -> tuple[NetworkProblem, Targets]:
        """Return the problem, in which equal samples in memory are merged, and the targets of its rows."""
        if not isinstance(X, RowBlocks | Chunks):
            X, targets = merge_equal_samples(X, targets)
        return self.problem(X, targets), targets

    def _ridge_of(self, problem: NetworkProblem) -> float:
        """Return the ridge for the mean squared length of the rows of a problem: 4 for most scales."""
        ridge = self.options.ridge
        if self.options.scale in ("features", "data"):
            return ridge
        squares = problem.rows.squares[-problem.rows.n_features :]
        return ridge * (float(squares.sum()) / problem.losses.total_weight / 4.0) ** 2

    def start_from(
        self, problem: NetworkProblem, basis: np.ndarray, weights: np.ndarray, linear: Any, offset: Any
    ) -> NetworkParts:
        """Return a network for X and y as given in a problem's coordinates, the constant less the new offset."""
        options = self.options
        linear = None if options.alpha is None else linear
        linear = problem.given_linear_term.start(linear, problem.losses.n_outputs)
        if problem.user_y is not None:
            weights, linear = problem.user_y.of_problem(weights, linear)
            offset = problem.user_y.offset_of_problem(offset)
        basis, linear = problem.user_X.of_problem(basis, linear)
        new = common_offset(problem.losses.offset)
        constant = offset - (0.0 if new is None else new)
        parts = NetworkParts(basis, weights, linear)
        dummies = problem.user_X.dummies
        most = self.max_units(problem)
        is_full = most is not None and len(basis) >= most
        if is_full and not linear.size and unit_of_constants(basis, dummies) is None:
            return parts
        return with_constant(parts, constant, dummies) or parts

    def path_solver(
        self, problem: NetworkProblem, n_strengths: int, max_units: int | None, iterations: int
    ) -> ConditionalGradient:
        """Return the solver of a path of strengths, whose refits take at most ``iterations``."""
        return self.policy.path_solver(problem, self.options, n_strengths, max_units, iterations)

    def run(self, problem: NetworkProblem, targets: Targets, held_out: EncodedSamples | None = None) -> NetworkRun:
        """Return the run that fits the network of a problem; a ``Ratio`` of its strength is resolved here."""
        strength = problem.strength
        fit = self.sized(problem)
        policy = self.policy.for_problem(problem, fit.options)
        return NetworkRun(
            fit=replace(fit, policy=policy),
            problem=problem,
            strength=strength,
            targets=targets,
            solver=policy.solver(problem, fit.options, validates=held_out is not None),
            held_out=held_out,
            stopping=EarlyStopping(policy.patience),
        )

    def fitted_attributes(self, problem: NetworkProblem, targets: Targets, network: Result) -> dict[str, Any]:
        """Return the fitted attributes that follow from a network alone."""
        model = model_of(problem, targets, network)
        classes = {} if targets.classes is None else {self.encoding.classes_name: targets.classes}
        return classes | {
            "loss_": targets.loss,
            "model_": model,
            "basis_": model.basis,
            "weights_": model.weights,
            "linear_": model.linear,
            "strength_": problem.strength,
        }


@dataclass(frozen=True)
class NetworkRun:
    """A run of the solver that fits a network, and chooses its size by held-out samples if there are some."""

    fit: NetworkFit
    problem: NetworkProblem
    strength: float | None
    targets: Targets
    solver: ConditionalGradient
    held_out: EncodedSamples | None
    stopping: EarlyStopping

    @property
    def limits(self) -> dict[str, Any]:
        """The options of :func:`mopn.minimize` that say when the run ends, and what it prints."""
        options = self.fit.options
        return {"tol": options.tol, "max_iter": self.fit.policy.max_rounds, "verbose": options.verbose}

    @property
    def validate(self) -> Any:
        """The callback that scores each network on the held-out samples (section 6.1 of the paper), or None."""
        return None if self.held_out is None else self._validate

    @quiet()
    def _validate(self, intermediate_result: Result) -> None:
        assert self.held_out is not None
        X, targets = self.held_out
        prediction = model_of(self.problem, self.targets, intermediate_result).predict(X)
        score = self.fit.encoding.score(targets.y, prediction, targets.sample_weight)
        self.stopping.add(intermediate_result, score)
        if self.stopping.is_over:
            raise StopIteration

    def fitted_so_far(self, network: Result) -> dict[str, Any]:
        """Return the fitted attributes of the network that would be kept if the run ended at this one."""
        best = network if self.stopping.best is None else self.stopping.best
        return self.fit.fitted_attributes(self.problem, self.targets, best)

    def fitted(self, result: Result) -> dict[str, Any]:
        """Return all fitted attributes; the result takes over the status of the network that is kept."""
        best = self.stopping.best
        network = result
        measure = cast(Result | Measure, result)
        if best is not None:
            network = best
            # A lower bound of the minimum that any round proved holds in all of them.
            measure = self.solver.measure(self.problem, self.problem.start(network))._replace(lower=result.lower)
        # The units of the model are rounded once more where the center of the features is far away.
        try:
            rounding = self.problem.model_rounding(network)
        except OSError:  # a file or a cluster is lost: the model stays, without a proof
            rounding = math.inf
        gap = float(measure.gap) + rounding
        attributes = self.fit.fitted_attributes(self.problem, self.targets, network) | {
            "objective_": float(measure.fun),
            "gap_": gap,
            "relative_gap_": float(relative(gap, measure.fun, measure.rounding + rounding)),
            "proof_": result.proof,
            "restricted_gap_": float(min(network.restricted_gap + rounding, gap)),
            "estimated_gap_": float(min(network.estimated_gap + rounding, gap)),
            "dual_": result.dual,
            "trace_": result.trace,
            "n_iter_": max(int(result.nit), 1),
            "n_refit_iter_": int(result.refit_nit),
            "validation_scores_": None if self.held_out is None else np.array(self.stopping.scores),
        }
        result.status = self._status_of_model(result.status, attributes)
        return attributes | {"status_": result.status}

    def _status_of_model(self, ended: Status, attributes: dict[str, Any]) -> Status:
        """Return why the fit ended, true for the model that is kept: the run may have ended with another one."""
        tol = self.fit.options.tol
        if not ended.is_judged_by_gap and not (self.held_out is not None and self.stopping.is_over):
            return ended
        if attributes["relative_gap_"] <= tol:
            return Status.CONVERGED
        if self.held_out is not None:
            return Status.BEST_SCORE
        if not ended.claims_tolerance:
            return ended
        # Rounding errors of the model, for the user's X and y, may exceed the tolerance.
        estimated = attributes["estimated_gap_"] <= tol * abs(attributes["objective_"])
        return Status.ESTIMATED if estimated else Status.LEVELLED_OFF


def model_of(problem: NetworkProblem, targets: Targets, network: Result) -> Model:
    """Return the model of a network, for X and y as given."""
    classes = targets.classes if targets.form in ("labels", "ordinal") else None
    return Model.from_result(problem, network, classes=classes, target=targets.form)
