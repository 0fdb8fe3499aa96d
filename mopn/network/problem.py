"""The convex problem over infinitely many units: (2) of Blondel et al. (NIPS 2017), as a penalty or in a ball.

A linear term beside the units has a penalty of its own; the paper has it in units alone, through 1-features.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from mopn.core.datafit import DataFit
from mopn.core.designs import make_design
from mopn.core.flat import joined
from mopn.core.gap import gap
from mopn.core.kernels import get_kernel
from mopn.core.losses import Loss
from mopn.core.norms import Norm
from mopn.core.regularizers import Ball, Penalty, make_regularizer
from mopn.core.validation import check_strength
from mopn.network.gradient_forms import GradientForms
from mopn.network.joint import JointProblem
from mopn.network.linear_term import Ridge
from mopn.network.oracles import Atoms, BasisOracle, basis_oracle
from mopn.network.output_layer import OutputLayerProblem
from mopn.network.point import Network
from mopn.network.segment import Line
from mopn.network.unit_ball import UnitBallProblem
from mopn.solvers import LBFGS, Status, minimize
from mopn.solvers.interface import Measure

__all__ = ["NetworkProblem"]

_EPS = float(np.finfo(float).eps)
# Entries of K(X, H) that are computed at once.
_FEATURES = 1 << 22
# Of the linear term, for the largest strength.
_LINEAR_ITER = 1000


class Residual(NamedTuple):
    """A network's objective, and the loss gradient G = dF/dO (n, m) at its outputs."""

    fun: float
    gradient: np.ndarray


class NetworkProblem:
    """Minimise F(U) + strength * Omega(U), or F(U) s.t. Omega(U) <= radius, over all units of the unit sphere.

    F(U) = sum_i w_i l(y_i, o_i + offset_i) with outputs o_i = sum_r K(h_r, x_i) v_r, and a linear term
    if ``alpha`` is given: sums over samples, not means.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Data; dense float64/float32, CSR and CSC are used without a copy. Scale features to [-1, 1], say.
    y : array-like
        Labels (n,) of any type for the multi-class losses, targets (n,) or (n, m) for losses per output.
    loss : str or Loss, default "logistic"
        Multi-class: "logistic", "smoothed-hinge", "squared-hinge". Per output: "squared", "binary-logistic",
        "binary-squared-hinge" (targets -1 and +1).
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
        Added to the outputs.
    augment : bool, default False
        Put 1-features in front of X (one for ``homogeneous``, two for ``anova``), which give the model its linear and
        constant terms; they are not stored.
    alpha : float, optional
        Add a linear term X W' and constants b to the outputs, and alpha / 2 (||W||^2 + ||b||^2 / 100) to the objective:
        each coefficient is shrunk by itself, where units that stand for a linear term through 1-features are shrunk as
        a whole. Default none.

    Notes
    -----
    The point is a :class:`mopn.network.point.Network`; results have ``basis`` (k, d), unit vectors, ``weights``
    (k, m) and ``linear`` (m, 1 + d), the constants first, or (m, 0) without ``alpha``.
    Oracle: ``lmo``, which carries a proven bound over all units and so a certificate.

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

    oracles = frozenset({"lmo"})

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: str | Loss = "logistic",
        kernel: str = "homogeneous",
        norm: str = "l1/l2",
        strength: float | None = None,
        radius: float | None = None,
        sample_weight: Any = None,
        offset: Any = None,
        augment: bool = False,
        alpha: float | None = None,
    ) -> None:
        self.kernel = get_kernel(kernel)
        regularizer = make_regularizer(norm, strength, radius)
        if not isinstance(regularizer, Ball | Penalty):
            raise ValueError(f"norm={norm!r} makes no unit zero; a NetworkProblem takes 'l1', 'l1/l2' or 'l1/linf'")
        self.regularizer = regularizer
        self.augment = bool(augment)
        self.design = make_design(X, ones=self.kernel.ones if augment else 0)
        self.ridge = Ridge(self.design, alpha)
        self.fit = DataFit(loss, y, self.design.shape[0], sample_weight, offset)

    @property
    def norm(self) -> Norm:
        """Omega."""
        return self.regularizer.norm

    @property
    def restrained(self) -> bool:
        """Whether the weights are restrained at all: not with a strength of 0."""
        return self.regularizer.active

    @property
    def turns(self) -> bool:
        """Whether a joint refit can turn a unit's weights: not under l1, nor, but for a sign, with one or two outputs.

        The rows of a loss gradient of two classes are multiples of (1, -1).
        """
        return self.norm.exponent != math.inf and self.fit.n_outputs > 2

    @property
    def classes(self) -> np.ndarray | None:
        """Sorted distinct labels, for the multi-class losses."""
        return self.fit.classes

    def with_strength(self, strength: float) -> NetworkProblem:
        """Return the same problem with another strength (in place of a radius, too); the data are shared."""
        other = copy(self)
        other.regularizer = Penalty(self.norm, check_strength(strength, "strength"))
        return other

    def features(self, H: np.ndarray) -> np.ndarray:
        """K(X, H), shape (n, k), column-major, computed a few columns at a time."""
        features = np.empty((len(H), self.design.shape[0])).T
        step = max(1, _FEATURES // len(features))
        for first in range(0, len(H), step):
            features[:, first : first + step] = self.kernel.features(self.design, H[first : first + step])
        return features

    def linear_outputs(self, W: np.ndarray) -> np.ndarray:
        """[1, X] W', shape (n, m)."""
        return self.ridge.outputs(W)

    def network(self, basis: np.ndarray, weights: np.ndarray, linear: np.ndarray | None = None) -> Network:
        """Return a point: unit vectors (k, d), weights (k, m) and the coefficients W of the linear term, if any."""
        linear = np.zeros(self.ridge.shape(self.fit.n_outputs)) if linear is None else linear
        return Network(self, basis, weights, linear)

    def start(self, start: Any = None) -> Network:
        """Return the empty network, or that of an earlier result, or of (basis, weights) or (basis, weights, linear).

        Units are scaled to length 1, with the same outputs, and weights are moved into the ball where there is one.
        """
        if start is None:
            return self.network(np.zeros((0, self.design.shape[1])), np.zeros((0, self.fit.n_outputs)))
        if hasattr(start, "basis"):
            start = start.basis, start.weights, getattr(start, "linear", None)
        if not (isinstance(start, tuple | list) and 2 <= len(start) <= 3):
            raise TypeError(f"start must be an earlier Result or (basis, weights), got {type(start).__name__}")
        basis, weights = self.unit_length(*start[:2])
        return self.network(basis, self.regularizer.prox(weights, 0.0), self._checked_linear(*start[2:]))

    def _checked_linear(self, linear: Any = None) -> np.ndarray | None:
        """Check coefficients of the linear term; None stands for zero, and so do those of a problem without it."""
        if linear is None or np.shape(linear)[1:] == (0,):
            return None
        linear, shape = np.array(linear, dtype=np.float64), self.ridge.shape(self.fit.n_outputs)
        if linear.shape != shape:
            raise ValueError(f"start must have linear of shape {shape}, got {linear.shape}; alpha makes a linear term")
        if not np.isfinite(linear).all():
            raise ValueError("start contains NaN or infinity")
        return linear

    def unit_length(self, basis: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check units of any length and their weights; return units of length 1 and weights of the same outputs."""
        d, m = self.design.shape[1], self.fit.n_outputs
        basis, weights = np.array(basis, dtype=np.float64), np.array(weights, dtype=np.float64)
        if basis.ndim != 2 or basis.shape[1] != d or weights.shape != (len(basis), m):
            raise ValueError(
                f"start must have basis (k, {d}) and weights (k, {m}), got shapes {basis.shape} and {weights.shape}"
            )
        if not (np.isfinite(basis).all() and np.isfinite(weights).all()):
            raise ValueError("start contains NaN or infinity")
        lengths = np.linalg.norm(basis, axis=1, keepdims=True)
        alive = lengths[:, 0] > 0
        return basis[alive] / lengths[alive], weights[alive] * lengths[alive] ** 2

    def unpack(self, network: Network) -> dict[str, Any]:
        """Named views of the point."""
        parts = network.basis, network.weights, network.linear
        return {"x": joined(*parts)} | dict(zip(("basis", "weights", "linear"), parts, strict=True))

    # -- the oracle "lmo" -------------------------------------------------------------------------------------------

    def residual(self, network: Network) -> Residual:
        """Objective of a network, and G = dF/dO (n, m)."""
        loss, G = self.fit.value_gradient(network.outputs)
        return Residual(loss + self.regularizer.value(network.weights) + self.ridge.value(network.linear), G)

    def oracle(self, oracle: str | BasisOracle) -> BasisOracle:
        """Return the oracle of a method's name, for this problem's norm; an oracle is returned as it is."""
        if isinstance(oracle, str):
            return basis_oracle(self.norm, method=oracle)
        if not isinstance(oracle, BasisOracle):
            raise TypeError(f"oracle must be a method's name or come from basis_oracle, got {oracle!r}")
        if oracle.norm.exponent != self.norm.exponent and self.fit.n_outputs > 1:
            raise ValueError(
                f"the oracle is for the norm {oracle.norm.name!r}, whose bound proves nothing for this problem's "
                f"{self.norm.name!r}; make one by basis_oracle({self.norm.name!r})"
            )
        return oracle

    def lmo(
        self,
        residual: Residual,
        oracle: str | BasisOracle = "auto",
        precision: float | None = None,
        patience: float = math.inf,
    ) -> Atoms:
        """Select units for a gradient, with a proven bound on every unit.

        ``precision`` says how far, relative, the bound may exceed what is found; tight bounds cost more.
        ``patience`` is how many seconds the proof may take; 0 for as little as a round of a fit is worth.
        """
        return self.oracle(oracle)(self._forms(residual), precision, patience)

    def bound(
        self,
        residual: Residual,
        oracle: str | BasisOracle = "auto",
        precision: float | None = None,
        patience: float = math.inf,
    ) -> float:
        """Return the proven bound on every unit that ``lmo`` gives, alone."""
        return self.oracle(oracle).bound(self._forms(residual), precision, patience)

    def _forms(self, residual: Residual) -> GradientForms:
        return GradientForms(self.kernel, self.design, residual.gradient)

    def useful_units(
        self, network: Network, residual: Residual, atoms: Atoms, most: int, *, fill: bool = False
    ) -> np.ndarray:
        """Return units that are worth what they cost, at most so many; at least the best atom.

        They are the best of the atoms and, to ``fill`` up the rest, random ones. Weight costs the strength or, in a
        ball, what the weights there are earn.
        """
        if isinstance(self.regularizer, Penalty):
            cost = self.regularizer.strength
        else:
            cost = -float(np.vdot(residual.gradient, network.unit_outputs)) / max(
                self.regularizer.radius, math.ulp(0.0)
            )
        units = atoms.basis[: max(1, min(most, int(np.sum(atoms.values > cost))))]
        if not fill or len(units) >= most:
            return units
        H = np.random.default_rng(0).standard_normal((most - len(units), units.shape[1]))
        H /= np.linalg.norm(H, axis=1, keepdims=True)
        values = np.linalg.norm(self._forms(residual).forms(H), self.norm.exponent, axis=1)
        return np.vstack([units, H[values > cost]])

    def gap(self, network: Network, residual: Residual, bound: float) -> float:
        """Upper bound of ``residual.fun`` minus the minimum, given a bound of the dual norm; proven if the bound is.

        See :mod:`mopn.core.gap`. Rounding errors in the outputs at which the objective was evaluated are added.
        """
        G = residual.gradient
        k, d = network.basis.shape
        sizes = np.abs(G) @ np.abs(network.weights).sum(axis=0)
        outputs = (k + 2 * d + 4) * _EPS * float(self.design.squared_norms @ sizes)
        outputs += self.ridge.rounding(network.linear, G)
        return gap(self.fit, self.regularizer, residual.fun, G, bound, self.ridge.conjugate(G)) + outputs

    def measure(
        self,
        network: Network,
        oracle: str | BasisOracle = "auto",
        precision: float | None = None,
        patience: float = math.inf,
    ) -> Measure:
        """Objective and proven gap, from scratch."""
        fresh = network.without_features()
        residual = self.residual(fresh)
        return Measure(residual.fun, self.gap(fresh, residual, self.bound(residual, oracle, precision, patience)))

    def check_certificate(self, tol: float) -> None:
        """Raise if a run is to stop on a gap and none can be known."""
        if tol > 0 and not self.restrained:
            raise ValueError(
                f"with strength=0 no certificate exists, so tol={tol} can never be reached; "
                "give a positive strength or a radius, or tol=0 and limits (max_iter, max_units, max_time)"
            )

    def check_unregularized(self) -> None:
        """Raise unless nothing restrains the weights."""
        if self.restrained:
            raise ValueError("GECO minimises the loss alone: give strength=0, or use ConditionalGradient")

    # -- refits and steps -------------------------------------------------------------------------------------------

    def output_layer(self, network: Network) -> OutputLayerProblem:
        """Return the convex refit of the weights with the units fixed."""
        return OutputLayerProblem.from_parts(network.features, self.fit, self.regularizer, self.ridge)

    def joint(
        self, network: Network, oracle: str = "gradient", *, single: bool = False
    ) -> JointProblem | UnitBallProblem:
        """Return the non-convex refit of units and weights, in the form that offers an oracle.

        "gradient": the smooth form, for L-BFGS, with features in ``single`` precision if asked for. "composite": the
        paper's, for FISTA.
        """
        if oracle == "gradient":
            return JointProblem(
                self.design, self.kernel, self.fit, self.regularizer, self.ridge, network, single=single
            )
        return UnitBallProblem(self.design, self.kernel, self.fit, self.regularizer, self.ridge, network)

    def line(
        self, network: Network, residual: Residual, units: np.ndarray, least: float, *, whole: bool = True
    ) -> Line:
        """Return the segment of a plain step towards units (q, d); ``least`` is an objective value already reached.

        Unless the point moves as a ``whole``, the linear term stays as it is.
        """
        return Line(self, network, residual, units, least, whole)

    # -- strengths --------------------------------------------------------------------------------------------------

    def strength_max(self, oracle: str | BasisOracle = "auto") -> float:
        """Proven upper bound of the smallest strength whose solution is zero: the dual norm of the gradient at 0.

        With a linear term, at its best coefficients as L-BFGS finds them: then it is no more exact than those.
        Exact (up to rounding) where the oracle is: l1 with d <= 3000, l1/linf by ``"enumerate"`` or ``"exact"``; within
        1e-4 for l1/l2 by ``"exact"``.
        """
        network = self.start()
        if self.ridge.active:
            fitted = minimize(self.joint(network), LBFGS(gtol=0.0), tol=_EPS, max_iter=_LINEAR_ITER)
            if fitted.status == Status.INTERRUPTED:
                raise KeyboardInterrupt
            if fitted.error is not None:
                raise fitted.error
            network = network.with_linear(fitted.linear)
        return self.bound(self.residual(network), oracle)
