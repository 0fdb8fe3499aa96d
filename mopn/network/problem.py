"""The convex problem over infinitely many units: (2) of Blondel et al. (NIPS 2017), as a penalty or in a ball.

A linear term may be added to the units, with its own penalty; in the paper the units contain it, through dummies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, cast

import numpy as np

from mopn.core.gap import Dual, make_dual
from mopn.core.kernels import KernelName, get_kernel
from mopn.core.magnitudes import check_regularizer, check_single, scales_at_zero
from mopn.core.norms import Norm, NormName
from mopn.core.regularizers import NormRegularizer, Penalty, Ratio, make_norm_regularizer
from mopn.data.chunked_rows import rows_of_data
from mopn.data.designs import Design
from mopn.data.feature_scaling import SCALES, ScaleName, make_coordinates
from mopn.data.rows import Rows, SumOfLosses
from mopn.data.validation import LARGEST, check_flag, check_input, check_nonnegative
from mopn.losses.losses import Loss, LossName
from mopn.network.curvature import PRODUCTS_FOR_EIGENVECTORS
from mopn.network.dual_projection import DualProjection
from mopn.network.joint import JointProblem, RestProblem
from mopn.network.linear_term import LinearTerm
from mopn.network.maps import Maps, UserX, UserY
from mopn.network.model_rounding import ModelRounding
from mopn.network.model_starts import NetworkParts, parts_of_model, parts_of_start
from mopn.network.oracles import BasisAtoms, BasisOracle, OracleName, OracleRun, oracle_for
from mopn.network.output_gradient import OutputGradient
from mopn.network.output_layer import OutputLayerProblem
from mopn.network.point import Network, joined, unit_length
from mopn.network.refit_hints import RefitHints
from mopn.network.ridge import LayerRidge, Ridge
from mopn.network.ridge_bounds import is_exact
from mopn.network.row_span import InRowSpan
from mopn.network.segment import NetworkSegment, OutputRounding, active_units, active_vertex, best_vertex
from mopn.network.thinning import thinned
from mopn.network.unit_ball import UnitBallProblem
from mopn.solvers import LBFGS, ConditionalGradient, Status, minimize
from mopn.solvers.conditional_gradient.dual_steps import MAX_PRICE_OF_LAST_STEPS
from mopn.solvers.interface import SMOOTH, UNLIMITED, ActiveUnits, Corrective, Effort, Form, Measure, Smooth
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere.search import CHOLESKY_LIMIT
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.budgets import FailureBudget
from mopn.solvers.tools.checks import choice
from mopn.solvers.tools.decorators import cached_property, quiet
from mopn.solvers.tools.display import Displayed

# Lengths of random units, relative to units whose outputs are of the size of the targets.
_RELATIVE_LENGTH_OF_RANDOM_UNITS = 0.1
_SCALE = choice(SCALES).or_none()
# Iterations of the fit of the linear term, for the largest strength.
_MAX_LINEAR_ITERATIONS = 1000
# Products of the data with a vector, for each unit, that the objective and its gradient take.
_PRODUCTS_OF_EVALUATION = 2
# Multiplications that are added to an evaluation: on small data steps pay whatever they take, as that is milliseconds.
_OVERHEAD_OF_EVALUATION = 2e7


class NetworkProblem(Displayed, InRowSpan, ModelRounding, RefitHints, Corrective):
    r"""Minimise :math:`F(U) + \mathrm{strength} \cdot \Omega(U)`, or :math:`F(U)` in a ball, over all units.

    :math:`F(U) = \sum_i w_i \ell(y_i, o_i + \mathrm{offset}_i)` with outputs :math:`o_i = \sum_r K(h_r, x_i) v_r` for
    units of length 1, and a linear term if ``alpha`` is given: sums over samples, not means. In the ball
    :math:`\Omega(U)` is at most the radius.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), RelationBlocks or RowBlocks
        Data; dense float64/float32, CSR and CSC are used without a copy. Scale the features, to [-1, 1] for example.
        :class:`mopn.RelationBlocks` are tables that samples have in common; ``center`` does not take them.
        :class:`mopn.RowBlocks` is data that need not fit into memory.
        Arrays of PyTorch and CuPy are taken to the host.
    y : array-like
        Labels (n,) of any type for the multi-class losses, targets (n,) or (n, m) for losses per output.
    loss : str or Loss, default "logistic"
        Multi-class: "logistic", "smoothed-hinge", "squared-hinge". Per output: "squared", "huber", "quantile",
        "poisson" (counts), "binary-logistic", "binary-squared-hinge" (targets -1 and +1). :class:`mopn.Huber` and
        :class:`mopn.Quantile` have parameters.
    kernel : {"homogeneous", "anova"}, default "homogeneous"
        :math:`K(h, x) = \langle h, x\rangle^2` (polynomial networks), or :math:`\sum_{i<j} h_i x_i h_j x_j`
        (factorization machines).
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1/l2"
        Omega. l1 gives every output its own units; l1/l2 and l1/linf share units between outputs. "nonnegative-l1" is
        l1 with weights >= 0: units only add to outputs.
    strength : float or Ratio, optional
        Strength of the penalty, or a :class:`mopn.Ratio` to the smallest one whose solution is zero. Give this or
        ``radius``.
    radius : float, optional
        Radius of the ball.
    sample_weight : array-like of shape (n,), optional
        A weight of 2 equals a repeated row.
    offset : array-like of shape (n, m) or (m,), optional
        Added to the outputs; with ``RowBlocks`` (m,).
    augment : bool, default False
        Put dummies, columns of ones, in front of X (one for ``homogeneous``, two for ``anova``). They give the model
        its linear and constant terms, and are not stored.
    alpha : float, optional
        Add a linear term X W' and constants b to the outputs, and alpha / 2 (||W||^2 + ||b||^2 / 100) to the objective.
        This penalty shrinks each coefficient separately, whereas dummies make the linear term a part of the units,
        which are shrunk as a whole. Default: no linear term.
    center : bool, default False
        Solve the problem for X minus the mean of its rows, with ``kernel="homogeneous"`` and ``augment`` only. The same
        models are possible, but the penalty no longer depends on the origin of the features. Sparse X stays sparse.
        Features whose deviation is below 1e-12 of their size (1e-6 in sparse X) count as constant, with a warning.
    scale : {"features", "data", "large"}, optional
        Divide every feature by a number of its own, or all features by the same one, so that the mean squared length of
        a row is 4; the penalty then does not depend on the units of the features. ``"features"`` gives all of them the
        same deviation (the same mean square, without ``center``); constant ones become 0. ``"large"``, for one-hot
        rows, leaves the smallest features that make up a mean squared length of 2, such as users and items, and divides
        the larger ones, such as a gender, so that their mean squares are the largest of these. Default: X as it is.
    ridge : float, default 0
        With a penalty, also add ridge / 2 * sum_rs <v_r, v_s> K(h_r, h_s): the squared length of the outputs as
        functions, as in a kernel machine. With ``strength=0`` the problem is that machine; a larger strength makes
        the network smaller. For ``homogeneous`` it is ridge / 2 times the sum of all ||W_c||_F^2,
        W_c = sum_r v_rc h_r h_r'; for ``anova`` half of that without the diagonals.

    Notes
    -----
    With ``center`` or ``scale``, ``strength``, units and certificates belong to the problem of the
    centered and scaled X. :meth:`mopn.Model.from_result` returns the network for the user's X, and :meth:`start_of`
    takes it back.
    The point is a :class:`mopn.network.point.Network`; results have ``basis`` (k, d), unit vectors, ``weights``
    (k, m) and ``linear`` (m, 1 + d), the constants first, or (m, 0) without ``alpha``.
    Oracles: ``atomic`` and ``corrective``; the bound over all units is proven, so every gap is a certificate. So is
    ``restricted_gap``, which compares a network with others of the same units.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 5))
    >>> y = np.sign(X[:, 0] * X[:, 1]).astype(int)
    >>> problem = mopn.NetworkProblem(X, y, norm="l1", strength=1.0)
    >>> result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-2)
    >>> result.success, result.gap_is_proven, result.basis.shape[1], result.weights.shape[1]
    (True, True, 5, 2)
    """

    # Problems that serve solvers for other oracles.
    reasons: ClassVar[dict[str, str]] = {
        "atomic": "with strength=0 nothing bounds a step: give a radius or a positive strength, or use refit='output'",
        "composite": "FISTA serves problem.output_layer(problem.start(result)), the weights of a network alone",
        "barrier": "InteriorPoint serves problem.output_layer(problem.start(result)), the weights of a network alone",
        "gradient": "LBFGS serves problem.joint(problem.start(result)), units and weights of a network",
    }

    @quiet()
    def __init__(
        self,
        X: Any,
        y: Any = None,
        loss: LossName | Loss = "logistic",
        kernel: KernelName = "homogeneous",
        norm: NormName = "l1/l2",
        strength: float | Ratio | None = None,
        radius: float | None = None,
        sample_weight: Any = None,
        offset: Any = None,
        augment: bool = False,
        alpha: float | None = None,
        center: bool = False,
        scale: ScaleName | None = None,
        ridge: float = 0.0,
    ) -> None:
        self.kernel = get_kernel(kernel)
        self._ratio = strength if isinstance(strength, Ratio) and radius is None else None
        self._regularizer = make_norm_regularizer(norm, 0.0 if self._ratio else strength, radius)
        self.augment = check_flag(augment, "augment")
        base = rows_of_data(X, y, loss, sample_weight, offset)
        centered, scaled = self._check_coordinates(center, scale)
        dummies = self.kernel.dummies if self.augment else 0
        self.user_X = UserX(make_coordinates(base, center=centered, scale=scaled), dummies)
        rows = base.in_coordinates(self.user_X.coordinates, dummies)
        self.ridge = self._check_ridge(ridge)
        self._take(rows, LinearTerm(rows, alpha))
        # |K(h, x)| <= ||x||^2.
        self._scales = scales_at_zero(rows, "X", lambda block: block.design.squared_norms)
        check_regularizer(self._regularizer, self._scales)

    def _check_ridge(self, ridge: Any) -> float:
        ridge = check_nonnegative(ridge, "ridge")
        check_input(ridge, "ridge", LARGEST**2)
        if ridge > 0 and self._regularizer.constrained:
            raise ValueError(f"ridge={ridge:g} needs a penalty: give strength, which may be 0, in place of radius")
        return ridge

    def _take(self, rows: Rows, linear_term: LinearTerm) -> None:
        """Take rows, in the problem's coordinates, and their linear term."""
        self.rows = rows
        self.losses = SumOfLosses(rows)
        self.linear_term = linear_term
        if self.span is None:
            self.given_rows = rows
            self.given_linear_term = linear_term
        self.maps = Maps(rows, self.kernel, linear_term)
        error = 0.0 if self.span is None else self.span.error
        self._output_rounding = OutputRounding(rows, linear_term, error)

    def _entries(self) -> dict[str, str]:
        entries = {
            "X": str(self.given_rows.shape),
            "outputs": str(self.losses.n_outputs),
            "loss": repr(self.losses.loss.name),
        }
        entries |= {"kernel": repr(self.kernel.name), "norm": repr(self.norm.name)}
        words = f"strength={self._ratio}" if self._ratio else self._regularizer.words
        name, value = words.split("=")
        entries[name] = value
        if self.ridge:
            entries["ridge"] = f"{self.ridge:g}"
        return entries

    def _check_coordinates(self, center: Any, scale: Any) -> tuple[bool, str | None]:
        center = check_flag(center, "center")
        scale = _SCALE(scale, "scale")
        if center and (self.kernel.distinct or not self.augment):
            raise ValueError(
                "center=True needs kernel='homogeneous' and augment=True, as the dummy takes up the shift; got "
                f"kernel={self.kernel.name!r} and augment={self.augment}"
            )
        return center, scale

    @property
    def design(self) -> Design:
        """X in the problem's coordinates, after its dummies, of data in memory."""
        if self.given_rows.design is None:
            raise ValueError("data in blocks is not held in memory; problem.rows reads it")
        return self.given_rows.design

    @property
    def passes(self) -> int:
        """Number of sums over the rows so far; data in blocks is read once for each."""
        return self.rows.passes

    @property
    def norm(self) -> Norm:  # type: ignore[override]
        """Omega."""
        return self._regularizer.norm

    @property
    def regularizer(self) -> NormRegularizer:
        """The penalty or ball; a :class:`mopn.Ratio` becomes a strength at the first use."""
        if self._ratio is not None:
            self._regularizer = self.with_strength(self._ratio)._regularizer
            self._ratio = None
        return self._regularizer

    @property
    def regularized(self) -> bool:
        """Whether the weights are penalised or constrained: False for a strength of 0 without a ridge."""
        return self.regularizer.active or self.ridge > 0

    @property
    def _ridge(self) -> Ridge:
        return Ridge(self.kernel, self.ridge)

    @property
    def classes(self) -> np.ndarray | None:
        """Sorted distinct labels, for the multi-class losses."""
        return self.losses.classes

    @property
    def strength(self) -> float | None:
        """The strength of the penalty, as a number; None in a ball."""
        return self.regularizer.strength if isinstance(self.regularizer, Penalty) else None

    @property
    def oracles(self) -> frozenset[str]:
        """Names of the oracles offered."""
        return frozenset({"corrective", "atomic"} if self.regularizer.active else {"corrective"})

    def default_solver(self) -> ConditionalGradient:
        """Return the solver that :func:`mopn.minimize` takes by default."""
        return ConditionalGradient()

    def with_strength(self, strength: float | Ratio) -> NetworkProblem:
        """Return the same problem with another strength, which also replaces a radius; the data are shared."""
        other = copy(self)
        other._ratio = None
        if isinstance(strength, Ratio):
            # At least the rounding error; 1 if the gradient at zero vanishes.
            smallest, rounding = self._smallest_of_zero
            strength = max(strength(smallest), rounding) or 1.0
        other._regularizer = self._regularizer.with_strength(strength)
        check_regularizer(other._regularizer, self._scales)
        return other

    def with_ridge(self, ridge: float) -> NetworkProblem:
        """Return the same problem with another ridge; the data are shared."""
        other = copy(self)
        other.ridge = self._check_ridge(ridge)
        return other

    def with_user_y(self, user_y: UserY | None) -> NetworkProblem:
        """Return the same problem, whose models predict the user's y."""
        other = copy(self)
        other.user_y = user_y
        return other

    def network(self, basis: np.ndarray, weights: np.ndarray, linear: np.ndarray | None = None) -> Network:
        """Return a point: unit vectors (k, d), weights (k, m) and the coefficients W of the linear term, if any."""
        linear = self.linear_term.start(None, self.losses.n_outputs) if linear is None else linear
        return Network(self.maps, basis, weights, linear)

    def start(self, start: Any = None) -> Network:
        """Return a network: empty, or of a result, a model, a fitted estimator or (basis, weights[, linear]).

        Models, also loaded ones, and estimators are converted by :meth:`start_of`. Results and arrays
        are in the problem's coordinates. Units are scaled to length 1, with the same outputs. Weights are moved into
        the ball where there is one, and negative ones of arrays are set to 0 where the norm allows none.
        """
        if start is None:
            return self.network(np.zeros((0, self.rows.shape[1])), np.zeros((0, self.losses.n_outputs)))
        basis, weights, linear = parts_of_start(self, start)
        m = self.losses.n_outputs
        basis, weights = unit_length(basis, weights, self.n_inputs, m, dummies=self.dummies)
        linear = self.given_linear_term.start(linear, m)
        if self.span is not None:
            basis, linear = self.inside(basis, linear)
            basis, weights = unit_length(basis, weights, self.rows.shape[1], m)
        return self.network(basis, self.regularizer.prox(weights, 0.0), linear)

    def start_of(self, model: Any) -> NetworkParts:
        """Return (basis, weights, linear) of a model or fitted estimator, which are for X as given, in the coordinates.

        The outputs stay the same, whatever ``center``, ``scale``, ``augment`` and constant ``offset``; an offset that
        differs between samples is added to them. ``ValueError`` if the problem has no such network.
        """
        return parts_of_model(self, model)

    def unpack(self, network: Network) -> dict[str, Any]:
        """Named views of the point."""
        basis, weights, linear = self.parts(network)
        return {"x": joined(basis, weights, linear), "basis": basis, "weights": weights, "linear": linear}

    # -- the oracle "atomic" ----------------------------------------------------------------------------------------

    @quiet()
    def output_gradient(self, network: Network) -> OutputGradient:
        """Objective of a network, and G = dF/dO (n, m)."""
        loss, G = self.losses.value_gradient(network.outputs)
        value = loss + self.regularizer.value(network.weights) + self.linear_term.value(network.linear)
        if not self.ridge:
            return OutputGradient(value, G, self.losses, network, self._output_rounding)
        value += self._ridge.value(network.basis, network.weights)
        return OutputGradient(value, G, self.losses, network, self._output_rounding, self._ridge)

    def oracle(
        self,
        oracle: OracleName | BasisOracle | Callable[[np.ndarray], Any],
        failure_budget: FailureBudget | None = None,
        seed: int = 0,
    ) -> OracleRun:
        """Return the oracle of one run for this problem's norm: of a method's name, of an oracle or of a function.

        Its random proofs draw on the failure budget (``monitor.failure_budget`` in a solver; default a new one), and
        its searches start from the random numbers of the seed.
        """
        return oracle_for(self.norm, oracle, self.losses.n_outputs).begin(failure_budget, seed)

    def lmo(
        self, at: OutputGradient, oracle: OracleName | BasisOracle | OracleRun = "auto", effort: Effort = UNLIMITED
    ) -> BasisAtoms:
        """Select units for a gradient, with a proven bound on every unit, as tight as the effort allows."""
        run = oracle if isinstance(oracle, OracleRun) else self.oracle(oracle)
        return run(at.forms(self.kernel, run.seed), effort)

    def bound(
        self, at: OutputGradient, oracle: OracleName | BasisOracle | OracleRun = "auto", effort: Effort = UNLIMITED
    ) -> float:
        """Return only the proven bound on every unit of ``lmo``."""
        run = oracle if isinstance(oracle, OracleRun) else self.oracle(oracle)
        return run.bound(at.forms(self.kernel, run.seed), effort)

    def dual_rounding(self, at: OutputGradient) -> float:
        """Bound the effect of rounding on the dual norm of a gradient: a smaller norm may well be 0."""
        return at.forms(self.kernel).rounding(self.norm.exponent)

    def lower(self, at: OutputGradient, bound: float) -> float:
        """Lower bound of the minimum, given a bound of the dual norm; proven if that is. See :mod:`mopn.core.gap`."""
        return at.lower_and_scale(self.regularizer, bound)[0]

    def dual(self, network: Network, at: OutputGradient, bound: float) -> Dual | None:
        """Return the dual point behind ``lower``; None where that is -inf."""
        lower, scale = at.lower_and_scale(self.regularizer, bound)
        if not math.isfinite(lower):
            return None
        return make_dual(lower, bound + at.outside_of_span(self.norm), scale, *self.parts(network))

    def rounding(self, network: Network, at: OutputGradient) -> float:
        """Upper bound of the exact objective of a network minus ``at.value``."""
        return at.rounding

    def restricted_lower(self, network: Network, at: OutputGradient) -> float:
        """Proven lower bound of the minimum over weights and linear term, the units fixed."""
        slopes = self._own_slopes(network, at)
        bound = self._dual_of_slopes(network, at, slopes)
        errors = self._feature_errors(network, at) + at.forms(self.kernel).rounding(math.inf)
        return at.restricted_lower(self.regularizer, bound, slopes, errors)

    def restricted_dual(self, network: Network, at: OutputGradient) -> float:
        """Proven bound of the dual norm of a gradient over the network's own units."""
        return self._dual_of_slopes(network, at, self._own_slopes(network, at))

    def _dual_of_slopes(self, network: Network, at: OutputGradient, slopes: np.ndarray) -> float:
        """Return a bound of the dual norm of slopes (k, m) of the network's own units, errors included."""
        of_features = float(np.linalg.norm(self._feature_errors(network, at), self.norm.exponent))
        return self.norm.dual(slopes) + of_features + self.dual_rounding(at)

    def _feature_errors(self, network: Network, at: OutputGradient) -> np.ndarray:
        """Bound the errors (m,) of own slopes, apart from errors of sums over the samples."""
        # Each feature errs by 2 d eps ||x||^2; the dual norm of all units bounds the errors of the sums.
        errors = 2 * network.basis.shape[1] * EPS * at.sizes
        if self.ridge:
            errors += self._ridge.slope_errors(network.basis, network.weights)
        return errors

    def _own_slopes(self, network: Network, at: OutputGradient) -> np.ndarray:
        """Return the derivatives (k, m) of losses and ridge along the units of the network."""
        return self._with_ridge(network.forms(at.G), network, network.basis)

    def _with_ridge(self, slopes: np.ndarray, network: Network, units: np.ndarray) -> np.ndarray:
        """Add the derivatives (q, m) of the ridge along units (q, d)."""
        return slopes + self._ridge.slopes(network.basis, network.weights, units) if self.ridge else slopes

    @quiet()
    def measure(
        self,
        network: Network,
        oracle: OracleName | BasisOracle = "auto",
        effort: Effort = UNLIMITED,
        *,
        dual_steps: int = 0,
    ) -> Measure:
        """Objective and proven bounds, from scratch: by the gradient, and after steps to better dual points."""
        network = network.compact()
        at = self.output_gradient(network)
        rounding = self.rounding(network, at)
        failure_budget = FailureBudget()
        basis_oracle = self.oracle(oracle, failure_budget)
        bound = self.bound(at, basis_oracle, effort)
        lower = self.lower(at, bound)
        dual = self.dual(network, at, bound)

        point, at_point = network, at
        if self.dual_step_price(network) > MAX_PRICE_OF_LAST_STEPS:
            dual_steps = 0
        for _ in range(dual_steps):
            gap = Measure(at.value, lower, rounding).relative_gap
            moved = self.better_dual(point, at_point, min(gap, 1.0))
            if moved is None:
                break
            point = moved
            at_point = self.output_gradient(point)
            bound = self.bound(at_point, basis_oracle, effort)
            after = self.lower(at_point, bound)
            if not after > lower:
                break
            lower = after
            dual = self.dual(point, at_point, bound)

        return Measure(
            at.value,
            lower=lower,
            rounding=rounding,
            restricted_lower=self.restricted_lower(network, at),
            failure=failure_budget.failure,
            seed=failure_budget.seed,
            dual=dual,
        )

    def measure_of(self, start: Any, oracle: OracleName | BasisOracle = "auto", dual_steps: int = 0) -> Measure:
        """Return the measure of a network as given, which may have units outside of the span of the rows."""
        measure = self.measure(self.start(start), oracle, dual_steps=dual_steps)
        if self.span is None:
            return measure
        given = self.in_given_coordinates()
        at = given.output_gradient(given.start(start))
        return measure._replace(fun=at.value, rounding=at.rounding)

    def segment(
        self,
        network: Network,
        at: OutputGradient,
        units: np.ndarray | None,
        *,
        least: float = math.inf,
        whole: bool = True,
        away: int | None = None,
    ) -> NetworkSegment:
        """Return the segment towards the vertex of units (q, d), or away from an active one, or both.

        ``away`` is the number of a unit of the network; the number of its units stands for the vertex 0. Under a
        penalty the other vertices lie where the penalty alone equals an objective value already reached, as no
        minimiser has a larger one: the smaller of ``least`` and ``at.value``, so by default ``at.value``. The
        linear term moves only towards units, if the point moves as a ``whole``.
        """
        parts = network, at.G, self.losses, self.regularizer, self.linear_term, self._ridge
        least = min(least, at.value)
        towards = left = None
        if units is not None:
            vertex = network.without_units().with_units(units)
            towards = best_vertex(vertex, self._with_ridge(vertex.forms(at.G), network, units), self.regularizer, least)
        if away is not None:
            left = active_vertex(network, self.regularizer, away, least)
        return NetworkSegment(*parts, towards=towards, away=left, linear_moves=whole and units is not None)

    def active_units(self, network: Network, at: OutputGradient, *, least: float = math.inf) -> ActiveUnits:
        """Return the network as a combination of vertices, and their slopes, for away steps.

        The vertices are as in ``segment`` with the same ``least``, one for every unit; the last one is 0 if the
        network has a share of it.
        """
        slopes = self._own_slopes(network, at)
        return active_units(network, slopes, self.regularizer, min(least, at.value))

    # -- the oracle "corrective" ------------------------------------------------------------------------------------

    def select_units(
        self, network: Network, at: OutputGradient, atoms: BasisAtoms, most: int, *, fill: bool = False, seed: int = 0
    ) -> np.ndarray:
        """Return the best atoms whose dual value exceeds the cost of weight: at least one, and at most ``most``.

        With ``fill``, random units that also exceed it are added: up to ``most``, and not more than a refit of both
        layers can use. A network that already has these is at most doubled. The cost is the strength or, in a ball,
        the decrease of the losses per unit of norm of the present weights.
        """
        if fill:
            most = min(most, max(self._useful_units - network.n_units, network.n_units))
        cost = self.regularizer.weight_cost(earned=lambda: -self.rows.inner(at.G, network.unit_outputs))
        units = atoms.basis[: max(1, min(most, int(np.sum(atoms.values > cost))))]
        if not fill or len(units) >= most:
            return units
        H = np.random.default_rng(seed).standard_normal((most - len(units), units.shape[1]))
        H /= np.linalg.norm(H, axis=1, keepdims=True)
        values = self.norm.duals(at.forms(self.kernel).forms(H))
        return np.vstack([units, H[values > cost]])

    def with_random_units(self, network: Network, n_units: int, rng: np.random.Generator) -> Network:
        """Return the network with more units of random directions and small weights, a start for ``joint``.

        Under l1 each unit serves one output, in turn. In a ball ``joint`` scales all weights into it. A joint refit
        keeps signs, so nonnegative weights are nonnegative from the start.
        """
        d, m = self.rows.shape[1], self.losses.n_outputs
        length = _RELATIVE_LENGTH_OF_RANDOM_UNITS * math.sqrt(self.losses.output_unit / d)
        H = length * self.rows.scales * rng.standard_normal((n_units, d))
        V = rng.standard_normal((n_units, m))
        if self.norm.exponent == math.inf:
            V *= np.eye(m)[np.arange(n_units) % m]
        if self.norm.nonnegative:
            V = np.abs(V)
        basis, weights = unit_length(H, V / np.linalg.norm(V, axis=1, keepdims=True), d, m)
        basis = np.vstack([network.basis, basis])
        weights = np.vstack([network.weights, weights])
        return self.network(basis, weights, network.linear)

    @property
    def gap_is_of_second_order(self) -> bool:
        """Whether the gap is of second order in the error of the network: with a ridge and its exact conjugate."""
        return self.ridge > 0 and is_exact(self._ridge, self.norm, (self.losses.n_outputs, self.rows.shape[1]))

    @property
    def depends_on_difference(self) -> bool:
        """Whether the objective depends on the difference of two outputs alone, as for two classes without a ridge."""
        return self.losses.n_outputs == 2 and not self.ridge and self.losses.is_shift_invariant

    @property
    def offers_better_duals(self) -> bool:
        """Whether a step to a better dual point is known.

        Not for other norms than l1, in a ball, for more than 3,000 features, data in blocks, or a loss without
        ``hessian``.
        """
        return (
            self.norm.name == "l1"
            and bool(self.strength)
            and self.rows.design is not None
            and self.rows.shape[1] <= CHOLESKY_LIMIT
            and self.losses.loss.has_hessian
        )

    def better_dual(self, network: Network, at: OutputGradient, gap: float, seed: int = 0) -> Network | None:
        """Return a network near one of relative gap ``gap``, at which the gradient has a smaller dual norm.

        See :mod:`mopn.network.dual_projection`. None where there is none, or no step is known.
        """
        return DualProjection(self, network, at, gap, seed).solve() if self.offers_better_duals else None

    def dual_step_price(self, network: Network) -> float:
        """Return the time of a step to a better dual point, in evaluations of the objective; 0 if no step is known."""
        if not self.offers_better_duals:
            return 0.0
        n_matrices = 1 if self.depends_on_difference else self.losses.n_outputs
        product, gram = self.rows.work
        decomposition = PRODUCTS_FOR_EIGENVECTORS * self.rows.shape[1] ** 3
        evaluation = _PRODUCTS_OF_EVALUATION * product * network.n_units + _OVERHEAD_OF_EVALUATION
        return n_matrices * (gram + decomposition) / evaluation

    def thinned(self, network: Network, at: OutputGradient, most: float) -> tuple[Network, OutputGradient]:
        """Return a network of fewer units whose objective is at most ``most``, and its gradient, or the same network.

        Under l1; see :mod:`mopn.network.thinning`.
        """
        if self.norm.name != "l1" or not network.n_units:
            return network, at
        return thinned(self, network, at, most)

    def output_layer(self, network: Network) -> OutputLayerProblem:
        """Return the convex refit of the weights with the units fixed."""
        parts = self.rows, self.regularizer, self.linear_term
        ridge = LayerRidge(self._ridge, network.basis) if self.ridge else None
        return OutputLayerProblem.from_parts(network.features, network.n_units, *parts, ridge)

    def sample_for(self, n_units: int, seed: int) -> NetworkProblem | None:
        """Return the problem on a sample of rows that suffices to choose units; None if most rows are needed."""
        return self._on_sample(self._fraction_for_model(n_units), seed)

    def sample_to_start(self, seed: int) -> NetworkProblem | None:
        """Return the problem on a sample of rows, for a start; None if all rows take little time."""
        return self._on_sample(self._fraction_to_start, seed)

    def _on_sample(self, fraction: float | None, seed: int) -> NetworkProblem | None:
        if fraction is None:
            return None
        other = copy(self)
        rows = self.rows.sample(fraction, seed)
        other._take(rows, self.linear_term.on(rows))
        return other

    def joint(self, network: Network, form: Form = SMOOTH) -> JointProblem | UnitBallProblem:
        """Return the non-convex refit of units and weights, in the form that offers an oracle.

        "gradient": the smooth form, for L-BFGS, optionally with features in single precision. "composite": the form
        of the paper, for FISTA. Either on all samples or on a fraction of them. With ``rest`` only the linear term
        moves.
        """
        if form.single:
            check_single(self.rows.largest, self._scales)
        rows, linear_term = self.rows, self.linear_term
        if form.sample_fraction < 1.0:
            rows = rows.sample(form.sample_fraction, form.seed)
            linear_term = linear_term.on(rows)
        parts = rows, self.kernel, self.regularizer, linear_term, network, self._ridge
        if form.rest:
            return RestProblem(*parts)
        if form.oracle == "gradient":
            return JointProblem(*parts, single=form.single, seed=form.seed)
        return UnitBallProblem(*parts)

    # -- strengths --------------------------------------------------------------------------------------------------

    @limited_threads()
    @quiet()
    def strength_max(self, oracle: OracleName | BasisOracle = "auto") -> float:
        """Proven upper bound of the smallest strength whose solution is zero: the dual norm of the gradient at 0.

        With a linear term the gradient is taken at its best coefficients, and is as accurate as L-BFGS finds these.
        The bound is exact, up to rounding, where the oracle is exact: for l1 with d <= 3000, and for l1/linf with
        ``"enumerate"``. With ``"exact"`` it is exact for l1/linf, and within 1e-4 for l1/l2, unless the oracle ends at
        its limit of work.
        """
        at = self.gradient_at_zero()
        return self.bound(at, oracle) + at.outside_of_span(self.norm)

    @cached_property
    @limited_threads()
    @quiet()
    def _smallest_of_zero(self) -> tuple[float, float]:
        """The smallest strength whose solution is zero, as found without a proof, and its rounding error."""
        resolved = copy(self)
        resolved._ratio = None
        at = resolved.gradient_at_zero()
        return float(resolved.lmo(at, "refine").values[0]), 2.0 * resolved.dual_rounding(at)

    def gradient_at_zero(self) -> OutputGradient:
        """Objective and loss gradient of the network without units, at its best linear term if it has one."""
        network = self.start()
        if self.linear_term.active:
            only_linear = cast(Smooth, self.joint(network))
            fitted = minimize(only_linear, LBFGS(gtol=0.0), tol=EPS, max_iter=_MAX_LINEAR_ITERATIONS)
            if fitted.status == Status.INTERRUPTED:
                raise KeyboardInterrupt
            if fitted.error is not None:
                raise fitted.error
            network = network.with_linear(fitted.linear)
        return self.output_gradient(network)
