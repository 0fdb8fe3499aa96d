"""The convex problem over infinitely many units: (2) of Blondel et al. (NIPS 2017), as a penalty or in a ball.

A linear term may be added to the units, with its own penalty; in the paper the units contain it, through dummies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, cast

import numpy as np

from mopn.core.coordinates import SCALES, ScaleName, make_coordinates
from mopn.core.data import rows_of_data
from mopn.core.designs import Design
from mopn.core.flat import joined
from mopn.core.gap import DualPoint, gap
from mopn.core.kernels import Kernel, KernelName, get_kernel
from mopn.core.losses import Loss, LossName
from mopn.core.magnitudes import (
    check_regularizer,
    check_single,
    check_start_size,
    fits_single,
    scales_at_zero,
)
from mopn.core.namespaces import any_namespace
from mopn.core.norms import Norm, NormName
from mopn.core.regularizers import make_norm_regularizer
from mopn.core.rows import Block
from mopn.core.validation import as_numbers, check_flag
from mopn.core.whole_fit import WholeFit
from mopn.network.gradient_forms import GradientForms
from mopn.network.joint import JointProblem, RestProblem
from mopn.network.linear_term import LinearTerm
from mopn.network.oracles import METHODS, Atoms, BasisOracle, OracleName, basis_oracle
from mopn.network.output_layer import OutputLayerProblem
from mopn.network.own_oracle import own_oracle
from mopn.network.point import Network
from mopn.network.segment import Segment, active_units, active_vertex, best_vertex
from mopn.network.two_layers import layer_outputs
from mopn.network.unit_ball import UnitBallProblem
from mopn.solvers import LBFGS, Status, minimize
from mopn.solvers.checks import choice, shown
from mopn.solvers.display import Displayed
from mopn.solvers.interface import SMOOTH, UNLIMITED, ActiveUnits, Effort, Form, Measure, Problem, Smooth
from mopn.solvers.numerics.cached import cached_property
from mopn.solvers.numerics.threads import limited_threads

__all__ = ["NetworkProblem"]

_EPS = float(np.finfo(float).eps)
# A network is filled at once up to a number of units between these: more cost time and memory, and few are needed.
_LEAST_FILL, _LARGEST_FILL = 50, 200
# Lengths of random units, relative to those whose outputs are of the size of the targets.
_SMALL = 0.1
_SCALE = choice(SCALES).or_none()
# Joint refits start on these shares of the samples, each with as many rows for every parameter.
_SHARES, _ROWS_PER_PARAMETER = (1 / 16, 1 / 4), 10
# The largest number of entries of a share of data in blocks.
_SHARE_ENTRIES = 1 << 25
# Iterations of the fit of the linear term, for the largest strength.
_LINEAR_ITER = 1000


class OutputGradient:
    """A network's objective, and the loss gradient G = dF/dO (n, m) at its outputs.

    What gaps need of G and of the data alone is computed once.
    """

    def __init__(self, value: float, G: Any, fit: WholeFit, linear_term: LinearTerm) -> None:
        self.value, self.G, self.dual, self._rows = value, G, DualPoint(fit, G), fit.of_rows
        self._linear_term = linear_term

    @cached_property
    def sizes(self) -> np.ndarray:
        """The sums (m,) of |G_ic| times the squared length of the row, to which rounding errors are relative."""
        return self._rows.sum(_sizes, along=(self.G,))

    @cached_property
    def ridge(self) -> float:
        """The conjugate of the penalty of the linear term."""
        return self._linear_term.conjugate(self.G)


class NetworkProblem(Displayed, Problem):
    """Minimise F(U) + strength * Omega(U), or F(U) s.t. Omega(U) <= radius, over all units of the unit sphere.

    F(U) = sum_i w_i l(y_i, o_i + offset_i) with outputs o_i = sum_r K(h_r, x_i) v_r, and a linear term
    if ``alpha`` is given: sums over samples, not means.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or RowBlocks
        Data; dense float64/float32, CSR and CSC are used without a copy. Scale the features, to [-1, 1] for example.
        :class:`mopn.RowBlocks` is data that need not fit into memory.
        A dense float64/float32 array of PyTorch or CuPy stays on its device, where sums over the rows are computed.
    y : array-like
        Labels (n,) of any type for the multi-class losses, targets (n,) or (n, m) for losses per output.
    loss : str or Loss, default "logistic"
        Multi-class: "logistic", "smoothed-hinge", "squared-hinge". Per output: "squared", "huber", "quantile",
        "poisson" (counts), "binary-logistic", "binary-squared-hinge" (targets -1 and +1). :class:`mopn.Huber` and
        :class:`mopn.Quantile` have parameters.
    kernel : {"homogeneous", "anova"}, default "homogeneous"
        K(h, x) = <h, x>^2 (polynomial networks), or sum_{i<j} h_i x_i h_j x_j (factorization machines).
    norm : {"l1", "l1/l2", "l1/linf"}, default "l1/l2"
        Omega. l1 gives every output its own units; the others share units between outputs.
    strength : float, optional
        Strength of the penalty; give this or ``radius``. See ``strength_max``.
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
    scale : {"features", "data"}, optional
        Divide every feature by a number of its own, or all features by the same one, so that the mean squared length of
        a row is 4; the penalty then does not depend on the units of the features. ``"features"`` gives all of them the
        same deviation (the same mean square, without ``center``) but those that are constant, which become 0. Default:
        X as it is.

    Notes
    -----
    With ``center`` or ``scale``, ``strength``, units and certificates are those of the problem for the centered and
    scaled X. :meth:`mopn.Model.from_result` returns the network for the user's X.
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
    >>> result.success, result.certified, result.basis.shape[1], result.weights.shape[1]
    (True, True, 5, 2)
    """

    oracles = frozenset({"atomic", "corrective"})
    # What serves solvers for other oracles.
    reasons: ClassVar[dict[str, str]] = {
        "composite": "FISTA serves problem.output_layer(problem.start(result)), the weights of a network alone",
        "barrier": "InteriorPoint serves problem.output_layer(problem.start(result)), the weights of a network alone",
        "gradient": "LBFGS serves problem.joint(problem.start(result)), units and weights of a network",
    }

    def __init__(
        self,
        X: Any,
        y: Any = None,
        loss: LossName | Loss = "logistic",
        kernel: KernelName = "homogeneous",
        norm: NormName = "l1/l2",
        strength: float | None = None,
        radius: float | None = None,
        sample_weight: Any = None,
        offset: Any = None,
        augment: bool = False,
        alpha: float | None = None,
        center: bool = False,
        scale: ScaleName | None = None,
    ) -> None:
        self.kernel = get_kernel(kernel)
        self.regularizer = make_norm_regularizer(norm, strength, radius)
        self.augment = check_flag(augment, "augment")
        base = rows_of_data(X, y, loss, sample_weight, offset)
        centered, scaled = self._check_coordinates(center, scale)
        self.coordinates = make_coordinates(base, center=centered, scale=scaled)
        self.rows = base.in_coordinates(self.coordinates, self._n_dummies)
        self.fit = WholeFit(self.rows)
        self.linear_term = LinearTerm(self.rows, alpha)
        self._scales = scales_at_zero(self.rows, "X", _largest_features)
        check_regularizer(self.regularizer, self._scales)

    def _entries(self) -> dict[str, str]:
        entries = {"X": str(self.rows.shape), "outputs": str(self.fit.n_outputs), "loss": repr(self.fit.loss.name)}
        entries |= {"kernel": repr(self.kernel.name), "norm": repr(self.norm.name)}
        return entries | dict([self.regularizer.words.split("=")])

    def _check_coordinates(self, center: Any, scale: Any) -> tuple[bool, str | None]:
        center, scale = check_flag(center, "center"), _SCALE(scale, "scale")
        if center and (self.kernel.distinct or not self.augment):
            raise ValueError(
                "center=True is for kernel='homogeneous' with augment=True, whose 1-feature takes up the center; got "
                f"kernel={self.kernel.name!r} and augment={self.augment}"
            )
        return center, scale

    @property
    def design(self) -> Design:
        """X in the problem's coordinates, after its dummies, of data in memory."""
        if self.rows.design is None:
            raise ValueError("data in blocks is not held in memory; problem.rows reads it")
        return self.rows.design

    @property
    def passes(self) -> int:
        """How many sums over the rows were computed so far; data in blocks is read as often."""
        return self.rows.passes

    @property
    def norm(self) -> Norm:
        """Omega."""
        return self.regularizer.norm

    @property
    def regularized(self) -> bool:
        """Whether the weights are penalised or constrained: False for a strength of 0."""
        return self.regularizer.active

    @property
    def can_rotate_units(self) -> bool:
        """Whether a joint refit can rotate a unit's weights: not under l1, and not with one or two outputs.

        With two classes the rows of a loss gradient are multiples of (1, -1), so only the signs can change.
        """
        return self.norm.exponent != math.inf and self.fit.n_outputs > 2

    @property
    def units_must_split(self) -> bool:
        """Whether a joint refit ends at saddles that only new units lead away from: under l1/linf.

        Where one of the q_c(h) of a unit is 0, the dual norm sum_c |q_c(h)| grows on both sides: a unit with a weight
        inside the box has to become two, on either side.
        """
        return self.norm.exponent == 1

    @property
    def gains_by_single(self) -> bool:
        """Whether single precision holds the data and makes joint refits faster: those by products of dense data."""
        return self.rows.entries is None and fits_single(self.rows.largest, self._scales)

    @property
    def classes(self) -> np.ndarray | None:
        """Sorted distinct labels, for the multi-class losses."""
        return self.fit.classes

    def with_strength(self, strength: float) -> NetworkProblem:
        """Return the same problem with another strength, which also replaces a radius; the data are shared."""
        other = copy(self)
        other.regularizer = self.regularizer.with_strength(strength)
        check_regularizer(other.regularizer, self._scales)
        return other

    def features(self, H: np.ndarray) -> np.ndarray:
        """K(X, H), shape (n, k), column-major."""
        return self.rows.map(_features, self.kernel, H)

    def unit_outputs(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the product (n, m) of features and weights, column-major."""
        return self.rows.map(_unit_outputs, weights, along=(features,))

    def linear_outputs(self, W: np.ndarray) -> np.ndarray:
        """[1, X] W', shape (n, m)."""
        return self.linear_term.outputs(W)

    def network(self, basis: np.ndarray, weights: np.ndarray, linear: np.ndarray | None = None) -> Network:
        """Return a point: unit vectors (k, d), weights (k, m) and the coefficients W of the linear term, if any."""
        linear = self.linear_term.start(None, self.fit.n_outputs) if linear is None else linear
        return Network(self, basis, weights, linear)

    def start(self, start: Any = None) -> Network:
        """Return the empty network, or that of an earlier result, or of (basis, weights) or (basis, weights, linear).

        Units are scaled to length 1, with the same outputs, and weights are moved into the ball where there is one.
        """
        if start is None:
            return self.network(np.zeros((0, self.rows.shape[1])), np.zeros((0, self.fit.n_outputs)))
        if hasattr(start, "basis"):
            start = start.basis, start.weights, getattr(start, "linear", None)
        if not (isinstance(start, tuple | list) and 2 <= len(start) <= 3):
            raise TypeError(
                "start must be an earlier Result of a network problem, (basis, weights) or (basis, weights, linear), "
                f"got {shown(start)}"
            )
        basis, weights = self.unit_length(*start[:2])
        linear = self.linear_term.start(start[2] if len(start) == 3 else None, self.fit.n_outputs)
        return self.network(basis, self.regularizer.prox(weights, 0.0), linear)

    def unit_length(self, basis: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check units of any length and their weights; return units of length 1 and weights of the same outputs."""
        d, m = self.rows.shape[1], self.fit.n_outputs
        basis, weights = (
            as_numbers(part, f"start: {name}").astype(np.float64)
            for part, name in ((basis, "basis"), (weights, "weights"))
        )
        if basis.ndim != 2 or basis.shape[1] != d or weights.shape != (len(basis), m):
            raise ValueError(
                f"start must have basis (k, {d}) and weights (k, {m}), got shapes {basis.shape} and {weights.shape}"
            )
        if not (np.isfinite(basis).all() and np.isfinite(weights).all()):
            raise ValueError("start contains NaN or infinity")
        check_start_size(basis, "start: basis")
        check_start_size(weights, "start: weights")
        lengths = np.linalg.norm(basis, axis=1, keepdims=True)
        alive = lengths[:, 0] > 0
        return basis[alive] / lengths[alive], weights[alive] * lengths[alive] ** 2

    def original(
        self, basis: np.ndarray, weights: np.ndarray, linear: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return copies of unit vectors, weights and linear term (None without one) for the user's X."""
        linear = None if linear is None or not linear.size else np.array(linear)
        if self.coordinates is None:
            return np.array(basis), np.array(weights), linear
        basis = self.coordinates.original(basis, self._n_dummies)
        lengths = np.linalg.norm(basis, axis=1, keepdims=True)
        linear = None if linear is None else self.coordinates.original(linear, 1)
        return basis / lengths, weights * lengths**2, linear

    def of_original(self, basis: np.ndarray, linear: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return units of any length and the linear term for this problem from those for the user's X."""
        linear = self.linear_term.start(linear, self.fit.n_outputs)
        if self.coordinates is None:
            return basis, linear
        linear = self.coordinates.of_original(linear, 1) if linear.size else linear
        return self.coordinates.of_original(basis, self._n_dummies), linear

    @property
    def _n_dummies(self) -> int:
        return self.kernel.dummies if self.augment else 0

    def unpack(self, network: Network) -> dict[str, Any]:
        """Named views of the point."""
        parts = network.basis, network.weights, network.linear
        return {"x": joined(*parts)} | dict(zip(("basis", "weights", "linear"), parts, strict=True))

    # -- the oracle "atomic" ----------------------------------------------------------------------------------------

    def output_gradient(self, network: Network) -> OutputGradient:
        """Objective of a network, and G = dF/dO (n, m)."""
        loss, G = self.fit.value_gradient(network.outputs)
        value = loss + self.regularizer.value(network.weights) + self.linear_term.value(network.linear)
        return OutputGradient(value, G, self.fit, self.linear_term)

    def oracle(self, oracle: OracleName | BasisOracle | Callable[[np.ndarray], Any]) -> BasisOracle:
        """Return the oracle of a method's name or of a function, for this problem's norm; an oracle as it is."""
        if isinstance(oracle, str):
            return basis_oracle(self.norm, method=choice(METHODS)(oracle, "oracle"))
        if callable(oracle) and not isinstance(oracle, (BasisOracle, type)):
            return own_oracle(self.norm, oracle)
        if not isinstance(oracle, BasisOracle):
            raise TypeError(
                "oracle must be a method's name, a function of Gamma (m, d, d), or come from basis_oracle, got "
                f"{shown(oracle)}"
            )
        if oracle.norm.exponent != self.norm.exponent and self.fit.n_outputs > 1:
            raise ValueError(
                f"the oracle is for the norm {oracle.norm.name!r}, whose bound proves nothing for this problem's "
                f"{self.norm.name!r}; make one by basis_oracle({self.norm.name!r})"
            )
        return oracle

    def lmo(self, at: OutputGradient, oracle: OracleName | BasisOracle = "auto", effort: Effort = UNLIMITED) -> Atoms:
        """Select units for a gradient, with a proven bound on every unit, as tight as the effort allows."""
        return self.oracle(oracle)(self._forms(at), effort)

    def bound(self, at: OutputGradient, oracle: OracleName | BasisOracle = "auto", effort: Effort = UNLIMITED) -> float:
        """Return only the proven bound on every unit of ``lmo``."""
        return self.oracle(oracle).bound(self._forms(at), effort)

    def dual_rounding(self, at: OutputGradient) -> float:
        """Bound the effect of rounding on the dual norm of a gradient: a smaller norm may well be 0."""
        return self._forms(at).rounding(self.norm.exponent)

    def _forms(self, at: OutputGradient) -> GradientForms:
        return GradientForms(self.kernel, self.rows, at.G)

    def gap(self, network: Network, at: OutputGradient, bound: float) -> float:
        """Upper bound of ``at.value`` minus the minimum, given a bound of the dual norm; proven if the bound is.

        See :mod:`mopn.core.gap`. Rounding errors in the outputs at which the objective was evaluated are added.
        """
        k, d = network.basis.shape
        sizes = at.sizes @ np.abs(network.weights).sum(axis=0)
        outputs = (k + 2 * d + 4) * _EPS * float(sizes)
        outputs += self.linear_term.rounding_error(network.linear, at.G)
        return gap(at.dual, self.regularizer, at.value, bound, at.ridge) + outputs

    def restricted_gap(self, network: Network, at: OutputGradient) -> float:
        """Proven upper bound of ``at.value`` minus the minimum over weights and linear term, the units fixed.

        It is :meth:`gap` with the maximum over the network's own units as the dual norm.
        """
        # Each feature errs by 2 d eps ||x||^2, and the sums over the samples as those in the dual norm of all units.
        errors = 2 * network.basis.shape[1] * _EPS * at.sizes
        bound = (
            self.norm.dual(self.rows.crossed(network.features, at.G))
            + self.norm.dual(errors[None])
            + self.dual_rounding(at)
        )
        return self.gap(network, at, bound)

    def measure(
        self, network: Network, oracle: OracleName | BasisOracle = "auto", effort: Effort = UNLIMITED
    ) -> Measure:
        """Objective and proven gaps, from scratch."""
        network = network.compact()
        at = self.output_gradient(network)
        oracle = self.oracle(oracle)
        gap = self.gap(network, at, self.bound(at, oracle, effort))
        return Measure(at.value, gap, min(self.restricted_gap(network, at), gap), oracle.failure)

    def segment(
        self,
        network: Network,
        at: OutputGradient,
        units: np.ndarray | None,
        *,
        least: float = math.inf,
        whole: bool = True,
        away: int | None = None,
    ) -> Segment:
        """Return the segment towards the vertex of units (q, d), or away from an active one, or both.

        ``away`` is the number of a unit of the network; the number of its units stands for the vertex 0. Under a
        penalty the other vertices lie where the penalty alone equals an objective value already reached, as no
        minimiser has a larger one: the smaller of ``least`` and ``at.value``, so by default that of the network. The
        linear term moves only towards units, if the point moves as a ``whole``.
        """
        parts = network, at.G, self.fit, self.regularizer, self.linear_term
        least = min(least, at.value)
        towards = left = None
        if units is not None:
            features = self.features(units)
            q = self.rows.crossed(features, at.G)
            towards = best_vertex(units, features, q, self.regularizer, least)
        if away is not None:
            left = active_vertex(network, self.features, self.regularizer, away, least)
        return Segment(*parts, towards=towards, away=left, linear_moves=whole and units is not None)

    def active_units(self, network: Network, at: OutputGradient, *, least: float = math.inf) -> ActiveUnits:
        """Return the network as a combination of vertices, and their slopes, for away steps.

        The vertices are those of ``segment`` with the same ``least``, one for every unit; the last one is 0 if the
        network has a share of it.
        """
        crossed = self.rows.crossed(network.features, at.G)
        return active_units(network, crossed, self.regularizer, min(least, at.value))

    # -- the oracle "corrective" ------------------------------------------------------------------------------------

    def select_units(
        self, network: Network, at: OutputGradient, atoms: Atoms, most: int, *, fill: bool = False
    ) -> np.ndarray:
        """Return the best atoms whose dual value exceeds the cost of weight: at least one, and at most ``most``.

        With ``fill``, random units that also exceed it are added up to ``most``, or up to as many as a refit of both
        layers can use if that is fewer; a network that has these is at most doubled. The cost is the strength or, in a
        ball, the decrease of the losses per unit of norm of the present weights.
        """
        if fill:
            most = min(most, max(self._useful_units - network.n_units, network.n_units))
        cost = self.regularizer.weight_cost(earned=lambda: -self.rows.inner(at.G, network.unit_outputs))
        units = atoms.basis[: max(1, min(most, int(np.sum(atoms.values > cost))))]
        if not fill or len(units) >= most:
            return units
        H = np.random.default_rng(0).standard_normal((most - len(units), units.shape[1]))
        H /= np.linalg.norm(H, axis=1, keepdims=True)
        values = np.linalg.norm(self._forms(at).forms(H), self.norm.exponent, axis=1)
        return np.vstack([units, H[values > cost]])

    def with_random_units(self, network: Network, n_units: int, rng: np.random.Generator) -> Network:
        """Return the network with more units of random directions and small weights, a start for ``joint``.

        Under l1 each unit serves one output, in turn. In a ball ``joint`` scales all weights into it.
        """
        d, m = self.rows.shape[1], self.fit.n_outputs
        length = _SMALL * math.sqrt(self.fit.output_unit / d)
        H = length * self.rows.scales * rng.standard_normal((n_units, d))
        V = rng.standard_normal((n_units, m))
        if self.norm.exponent == math.inf:
            V *= np.eye(m)[np.arange(n_units) % m]
        basis, weights = self.unit_length(H, V / np.linalg.norm(V, axis=1, keepdims=True))
        linear = network.linear
        return self.network(np.vstack([network.basis, basis]), np.vstack([network.weights, weights]), linear)

    @property
    def _useful_units(self) -> int:
        """How many units a network is filled up to at once: one for every eigenvector of the m matrices Gamma_c."""
        rank = self.fit.n_outputs * min(self.rows.shape)
        return min(max(rank, _LEAST_FILL), _LARGEST_FILL)

    def output_layer(self, network: Network) -> OutputLayerProblem:
        """Return the convex refit of the weights with the units fixed."""
        parts = self.rows, self.regularizer, self.linear_term
        return OutputLayerProblem.from_parts(network.features, network.n_units, *parts)

    def sample_shares(self, network: Network) -> list[float]:
        """Return the shares of the samples on which to refit both layers before all: those with rows for every unit.

        With few rows for every parameter the refit ends near a worse local minimum of the whole problem.
        """
        n, parameters = self.rows.shape[0], network.n_units * (self.rows.shape[1] + self.fit.n_outputs)
        shares = [share for share in _SHARES if share * n >= _ROWS_PER_PARAMETER * parameters]
        if self.rows.design is None:
            # A share of data in blocks is held in memory.
            shares = [share for share in shares if share * n * self.rows.shape[1] <= _SHARE_ENTRIES]
        return shares

    def joint(self, network: Network, form: Form = SMOOTH) -> JointProblem | UnitBallProblem:
        """Return the non-convex refit of units and weights, in the form that offers an oracle.

        "gradient": the smooth form, for L-BFGS, optionally with features in single precision. "composite": the form
        of the paper, for FISTA. Either on all samples or on a share of them. With ``rest`` only the linear term moves.
        """
        if form.single:
            check_single(self.rows.largest, self._scales)
        rows, linear_term = self.rows, self.linear_term
        if form.share < 1.0:
            rows = rows.part(form.share)
            linear_term = linear_term.on(rows)
        parts = rows, self.kernel, self.regularizer, linear_term, network
        if form.rest:
            return RestProblem(*parts)
        if form.oracle == "gradient":
            return JointProblem(*parts, single=form.single)
        return UnitBallProblem(*parts)

    # -- strengths --------------------------------------------------------------------------------------------------

    @limited_threads()
    def strength_max(self, oracle: OracleName | BasisOracle = "auto") -> float:
        """Proven upper bound of the smallest strength whose solution is zero: the dual norm of the gradient at 0.

        With a linear term the gradient is taken at its best coefficients, and is as accurate as L-BFGS finds these.
        The bound is exact (up to rounding) where the oracle is: for l1 with d <= 3000, and for l1/linf by
        ``"enumerate"`` or ``"exact"``. For l1/l2 ``"exact"`` is within 1e-4.
        """
        return self.bound(self.gradient_at_zero(), oracle)

    @limited_threads()
    def strength_of_share(self, share: float) -> float:
        """Return the strength that is a share of the largest one whose solution is not zero, as far as it was found.

        Where even that is no more than rounding, every strength returned has the solution zero.
        """
        at = self.gradient_at_zero()
        largest = float(self.lmo(at, "refine").values[0])
        rounding = 2.0 * self.dual_rounding(at)
        return max(share * largest, rounding) or 1.0

    def gradient_at_zero(self) -> OutputGradient:
        """Objective and loss gradient of the network without units, at its best linear term if it has one."""
        network = self.start()
        if self.linear_term.active:
            fitted = minimize(cast(Smooth, self.joint(network)), LBFGS(gtol=0.0), tol=_EPS, max_iter=_LINEAR_ITER)
            if fitted.status == Status.INTERRUPTED:
                raise KeyboardInterrupt
            if fitted.error is not None:
                raise fitted.error
            network = network.with_linear(fitted.linear)
        return self.output_gradient(network)


def _largest_features(block: Block) -> np.ndarray:
    """Return a bound of the features: |K(h, x)| <= ||x||^2."""
    return block.design.squared_norms


@any_namespace
def _features(block: Block, kernel: Kernel, H: np.ndarray) -> np.ndarray:
    return kernel.features(block.design, H)


@any_namespace
def _unit_outputs(block: Block, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return layer_outputs(features, weights)


@any_namespace
def _sizes(block: Block, G: np.ndarray) -> np.ndarray:
    """Return the sums (m,) of |G_ic| and the squared length of the row, to which rounding errors are relative."""
    return block.design.squared_sizes @ abs(G)
