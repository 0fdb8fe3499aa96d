"""Factorization machines and polynomial networks of one output and any degree: the direct problem, and its passes."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from mopn.compiled.codes import SQUARED
from mopn.compiled.jit import WIDTH
from mopn.compiled.kernels import pack, unpack
from mopn.compiled.stochastic import count_entries, stochastic_pass
from mopn.compiled.storage import constant
from mopn.core.factor_kernels import AnovaFactors, FactorKernel, RelatedPairs, make_factor_kernel
from mopn.core.magnitudes import check_products
from mopn.data.chunked_rows import rows_of_data
from mopn.data.losses_of_rows import Losses
from mopn.data.relation_design import RelationBlocks, RelationDesign
from mopn.data.row_blocks import RowBlocks
from mopn.data.validation import check_count, check_flag, check_nonnegative, finite_numbers, present_rows
from mopn.factorization.single_output import (
    SingleOutputProblem,
    affine_terms,
    check_single_output_loss,
    direct_to_network,
)
from mopn.factorization.sweep_state import SweepState
from mopn.factorization.terms import KernelTerm, Linear
from mopn.factorization.terms.base import Layout
from mopn.factorization.terms.factors import FittedKernelTerm, SharedKernelTerm
from mopn.losses.losses import Loss, LossName
from mopn.solvers.tools.checks import choice, make_generator, shown

# Fits of lambda to the units of the start, at most, until it is 0 for none: each rotates the units of lambda 0.
_MAX_STARTING_ROUNDS = 20
_LOWER = choice(("explicit", "augment", "shared")).or_none()
_PENALTY = choice(("weighted", "frobenius"))

PenaltyName = Literal["weighted", "frobenius"]


class FactorizationProblem(SingleOutputProblem):
    r"""Minimise :math:`\sum_i w_i \ell(y_i, o_i + \mathrm{offset}_i) + \frac{\alpha}{2} \|w\|^2` + penalty of P.

    The outputs are :math:`o_i = b + \langle w, x_i\rangle + \sum_s \lambda_s K(p_s, x_i)`. Sums over samples, not
    means. Sources: equations 4 and 13 of Blondel et al., Polynomial Networks and Factorization Machines (ICML 2016);
    equations 4 and 10 of Blondel et al., Higher-Order Factorization Machines (NIPS 2016).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or RelationBlocks
        :class:`mopn.RelationBlocks` are summed by the rows of their tables for ``degree`` 2 with ``kernel="anova"`` and
        the squared loss, without ``theta`` and dummies. All else, and stochastic solvers, form the plain matrix.
    y : array-like of shape (n,)
        Numbers, or -1 and +1 for the binary losses.
    degree : int, default 2
        The order m of the interactions, between 2 and the number of features; not used for all-subsets.
    n_components : int, default 30
        Number k of units, for each degree if there are several.
    kernel : {"anova", "all-subsets", "homogeneous"}, default "anova"
        Products of m distinct features; of any number of distinct features; :math:`\langle p, x\rangle^m`, which is
        not convex in each coordinate, so only L-BFGS fits it; :class:`mopn.LiftedProblem` has coordinate descent.
    loss : str or Loss, default "squared"
        "squared", "huber", "quantile", "poisson", "binary-logistic", "binary-squared-hinge", or a :class:`mopn.Loss`
        per output. Coordinate descent takes all of these but "poisson".
    alpha : float, default 1.0
        Strength for w.
    beta : float, default 1.0
        Strength for P.
    penalty : {"weighted", "frobenius"}, default "weighted"
        :math:`\beta \sum_s |\lambda_s| \|p_s\|^2` (equation 13), or :math:`\frac{\beta}{2} \|P\|^2`.
    fit_lower : {None, "explicit", "augment", "shared"}, default None
        The degrees 2 to m - 1. "explicit": each has its own units (HOFM). "augment": by m - 1 dummies, columns of ones
        in front of X, or m - 2 with ``fit_linear`` (HOFM-shared-augmented); one for the homogeneous kernel. "shared":
        the same units, weighted by theta on the simplex for the degrees 1 to m (HOFM-shared-simplex).
    fit_linear : bool, default False
    fit_intercept : bool, default False
    lams : {"ones", "signs", "fit"} or array-like of shape (k,), default "ones"
        lambda: 1, random signs, given numbers, or fitted, which needs one degree and the weighted penalty.
    theta : array-like of shape (m,), optional
        Fixed weights of the degrees 1 to m: inhomogeneous ANOVA.
    sample_weight : array-like of shape (n,), optional
        A weight of 2 equals a repeated row.
    offset : array-like of shape (n,), optional
        Added to the outputs.
    init_scale : float, default 0.1
        Standard deviation of the entries of P at the default start.
    rng : Generator, int or None, default 0
        For the default start, and for random signs. With a seed every default start is the same; a Generator
        continues from call to call.

    Raises
    ------
    ValueError, TypeError
        If the data or an option are invalid.

    Notes
    -----
    Results have ``P`` (orders, k, dummies + d), degree m first, then m - 1, ..., 2 if explicit; ``lams`` (k,); ``w``
    (d,) and ``intercept`` (1,) where they are fitted; ``theta`` (m,) if shared.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 5))
    >>> y = X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3]
    >>> problem = mopn.FactorizationProblem(X, y, degree=3, n_components=4, beta=0.01, alpha=0.01, fit_linear=True)
    >>> result = mopn.minimize(problem, mopn.solvers.CoordinateDescent(), tol=1e-3)
    >>> result.success, bool(result.fun < 0.2)
    (True, True)
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        degree: int = 2,
        n_components: int = 30,
        kernel: Literal["anova", "all-subsets", "homogeneous"] = "anova",
        loss: LossName | Loss = "squared",
        alpha: float = 1.0,
        beta: float = 1.0,
        penalty: PenaltyName = "weighted",
        fit_lower: Literal["explicit", "augment", "shared"] | None = None,
        fit_linear: bool = False,
        fit_intercept: bool = False,
        lams: Any = "ones",
        theta: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        init_scale: float = 0.1,
        rng: np.random.Generator | int | None = 0,
    ) -> None:
        loss = check_single_output_loss(loss)
        kernel = choice(("anova", "all-subsets", "homogeneous"))(kernel, "kernel")
        self.degree = check_count(degree, "degree", 2 if kernel != "all-subsets" else 1)
        self.n_components = check_count(n_components, "n_components")
        self.alpha = check_nonnegative(alpha, "alpha")
        self.beta = check_nonnegative(beta, "beta")
        self.fit_linear = check_flag(fit_linear, "fit_linear")
        self.fit_intercept = check_flag(fit_intercept, "fit_intercept")
        fit_lower = _LOWER(fit_lower, "fit_lower")
        self.penalty_name = _PENALTY(penalty, "penalty")
        self.fit_lower = fit_lower
        self.fitted_lams = isinstance(lams, str) and lams == "fit"
        self.kernel_name = kernel
        self.theta = theta
        self._check_options(kernel, fit_lower, theta)
        self.dummies = self._number_of_dummies()
        # Such problems are summed by the rows of tables; others take the plain matrix.
        pairs = kernel == "anova" and self.degree == 2 and theta is None and fit_lower in (None, "explicit")
        if isinstance(X, RelationBlocks) and not (pairs and loss.code == SQUARED):
            X = X.tocsr()
        if not isinstance(X, RowBlocks):
            (X,), y, sample_weight, offset = present_rows((X,), y, sample_weight, offset)
        rows = rows_of_data(X, y, loss, sample_weight, offset).in_coordinates(None, self.dummies)
        self.design = rows.template
        if kernel == "anova" and self.degree > self.design.shape[1]:
            raise ValueError(
                f"degree={self.degree} takes products of as many distinct features, but X has n_features="
                f"{self.design.shape[1] - self.dummies}; lower the degree"
            )
        # Products of all features have no degree; mostly their factors are near 1.
        n_factors = 2 if kernel == "all-subsets" else self.degree
        factors = [rows.largest for _ in range(n_factors)]
        scale = check_nonnegative(init_scale, "init_scale")
        check_products(rows, factors, alpha=self.alpha, beta=self.beta, init_scale=scale)
        self.lams = self._make_lams(lams, rng)
        self.kernel_terms = self._make_kernel_terms(kernel, theta, scale)
        terms = affine_terms(
            self.design, self.alpha, linear=self.fit_linear, intercept=self.fit_intercept, degree=self._linear_degree()
        )
        names = [term.name for term in self.kernel_terms]
        super().__init__(rows, [*terms, *self.kernel_terms], rng, ("P", names))

    def _number_of_dummies(self) -> int:
        if self.fit_lower != "augment":
            return 0
        if self.kernel_name == "homogeneous":
            return 1  # enough for all lower degrees
        return self.degree - (2 if self.fit_linear else 1)

    def _check_options(self, kernel: str, fit_lower: str | None, theta: Any) -> None:
        if kernel == "all-subsets" and fit_lower is not None:
            raise ValueError(f"kernel='all-subsets' has all degrees in it; set fit_lower=None, not {fit_lower!r}")
        if kernel == "homogeneous" and fit_lower == "shared":
            raise ValueError("fit_lower='shared' weighs the degrees of kernel='anova' only")
        if theta is not None and fit_lower is not None:
            raise ValueError("theta fixes the weights of the lower degrees; set fit_lower=None")
        if self.fitted_lams and (self.penalty_name != "weighted" or fit_lower in ("explicit", "shared")):
            raise ValueError(
                "lams='fit' needs penalty='weighted', without which lambda is not penalised, and a single degree "
                "(fit_lower None or 'augment')"
            )

    def _make_lams(self, lams: Any, rng: Any) -> np.ndarray:
        k = self.n_components
        if isinstance(lams, str) and lams in ("ones", "fit"):
            return np.ones(k)
        if isinstance(lams, str) and lams == "signs":
            return make_generator(rng).choice([-1.0, 1.0], size=k)
        numbers = None if isinstance(lams, str) else finite_numbers(lams, "lams")
        if numbers is None or numbers.shape != (k,):
            raise ValueError(f"lams must be 'ones', 'signs', 'fit' or {k} finite numbers, got {shown(lams)}")
        return numbers

    def _make_kernel_terms(self, kernel: str, theta: Any, scale: float) -> list[KernelTerm]:
        ridge = 2.0 * self.beta * np.abs(self.lams)
        if self.penalty_name == "frobenius":
            ridge = np.full(len(self.lams), self.beta)
        if self.fit_lower == "shared":
            return [SharedKernelTerm(self.design, self.degree, self.lams, ridge, scale)]
        related = isinstance(self.design, RelationDesign)
        main: FactorKernel = RelatedPairs() if related else make_factor_kernel(kernel, self.degree, theta)
        if self.fitted_lams:
            return [FittedKernelTerm(self.design, main, self.n_components, self.beta, scale)]
        kernels = {"P": main}
        if self.fit_lower == "explicit":
            for degree in range(self.degree - 1, 1, -1):
                kernels[f"P{degree}"] = make_factor_kernel(kernel, degree)
        return [KernelTerm(self.design, each, self.lams, ridge, scale, name) for name, each in kernels.items()]

    def _linear_degree(self) -> int:
        """Return the least degree of a kernel whose sweeps the linear term can share, or 1."""
        # The rows of tables have a sweep of their own for the linear term.
        if self.dummies or isinstance(self.design, RelationDesign):
            return 1
        kernels = [term.kernel for term in self.kernel_terms]
        return min((len(kernel.theta) for kernel in kernels if isinstance(kernel, AnovaFactors)), default=1)

    @property
    def oracles(self) -> frozenset[str]:
        """Names of the oracles offered: ``passes`` too, if lambda and theta are fixed and the loss has ``code``."""
        fixed = not self.fitted_lams and all(term.smooth and term.multiconvex for term in self.kernel_terms)
        stochastic = fixed and self.rows.design is not None and self.losses.loss.code is not None
        return super().oracles | ({"passes"} if stochastic else frozenset())

    def passes(self, x: np.ndarray) -> StochasticPasses:
        """Return passes of stochastic gradient methods from a point, which is not changed.

        Penalised parameters of features that no sample has start from zero, as no step would change them.
        """
        x = x.copy()
        for term, at in zip(self.terms, self.views(x), strict=True):
            if isinstance(term, KernelTerm):
                absent = count_entries(term.design.row_lines) == 0
                at[term.name][np.ix_(term.ridge > 0, absent)] = 0.0
            elif isinstance(term, Linear) and term.alpha > 0:
                at["w"][count_entries(term.design.row_lines) == 0] = 0.0
        return self.passes_over_part(x)

    def passes_over_part(self, x: np.ndarray, sums: np.ndarray | None = None) -> StochasticPasses:
        """Return passes over some of the samples, with the sums of squared gradients of earlier passes."""
        return StochasticPasses(self.losses.in_memory, self._layout, x, sums)

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        """Named views of a point; see the class."""
        return {"lams": self.lams} | super().unpack(x)

    def start(self, start: Any = None) -> np.ndarray:
        """Return a point; see :meth:`SingleOutputProblem.start`. ``P`` has the shape that results have."""
        x = super().start(start)
        term = self.kernel_terms[0]
        given = isinstance(start, np.ndarray) or (isinstance(start, dict) and "lams" in start)
        if isinstance(term, FittedKernelTerm) and self._has_sweeps and self.rows.design is not None and not given:
            # Section 9.1 of the ICML paper: lambda is fitted before P. Units are rotated until no lambda is 0.
            at = self.views(x)[-1]
            state = SweepState(self.losses, self.outputs(x))
            for _ in range(_MAX_STARTING_ROUNDS):
                term.fit_lams(at, state)
                if np.all(at["lams_plus"] != at["lams_minus"]):
                    break
        return x

    def network(self, at: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return a result as a network of one output: unit vectors (k, d) and weights (k, 1), of degree 2.

        With fitted lambda and no linear term, ``mopn.certify(network_problem, *problem.network(result))`` certifies it
        for ``network_problem = mopn.NetworkProblem(..., norm="l1", strength=beta)`` (Theorem 2 of the ICML paper).
        """
        if self.degree != 2 or self.kernel_name == "all-subsets":
            raise ValueError("networks are of degree 2; this problem is not")
        return direct_to_network(at["lams"], at["P"][0])


class StochasticPasses:
    """Passes of mini-batches over the rows from a flat point x, and ``sums`` of squared gradients so far."""

    def __init__(self, losses: Losses, layout: Layout, x: np.ndarray, sums: np.ndarray | None = None) -> None:
        self._layout = layout
        self._kernels = [term for term in layout.terms if isinstance(term, KernelTerm)]
        self._linear = next((term for term in layout.terms if isinstance(term, Linear)), None)
        self._fit_intercept = any("intercept" in term.shapes for term in layout.terms)
        self._rows = self._kernels[0].design.row_lines
        self._dummies = 0 if self._linear is None else self._rows.length - self._linear.design.shape[1]
        self.n = len(losses.y)
        offset = np.zeros(self.n) if losses.offset is None else losses.offset[:, 0]
        self._losses = losses.loss.compiled, *map(constant, (losses.y[:, 0], offset, losses.sample_weights))
        self._counts = count_entries(self._rows)
        self._panels, self._w, self._intercept = self._packed(x)
        self._sums = self._packed(np.zeros_like(x) if sums is None else sums)
        self._lams = self._for_all_panels(self._kernels[0].lams)
        self._ridges = self._for_all_panels(self._kernels[0].ridge)

        panels_per_kernel = len(self._panels) // len(self._kernels)
        thetas = [term.kernel.theta for term in self._kernels]
        longest = max(len(theta) for theta in thetas)
        # Coefficients of lower degrees are padded with zeros to the highest degree.
        padded = [np.pad(theta, (0, longest - len(theta))) for theta in thetas]
        self._thetas = np.repeat(padded, panels_per_kernel, axis=0)

    def _for_all_panels(self, values: np.ndarray) -> np.ndarray:
        """Return a value for each unit (k,) in panels of eight, repeated for all degrees, (c, 8)."""
        return np.tile(pack(values[:, None])[:, 0], (len(self._kernels), 1))

    def run(self, order: np.ndarray, batch: int, step: float, *, adaptive: bool) -> None:
        panel_sums, w_sums, intercept_sum = self._sums
        intercept = np.array([self._intercept[0], intercept_sum[0]])
        kind = self._kernels[0].kernel.kind
        alpha = 0.0 if self._linear is None else self._linear.alpha
        has_linear = self._linear is not None
        stochastic_pass(
            kind, self._thetas, self._rows, *self._losses, order, batch, step, adaptive, self._counts,
            self._panels, panel_sums, self._lams, self._ridges, self._w, w_sums, has_linear, alpha, self._dummies,
            intercept, self._fit_intercept,
        )  # fmt: skip
        self._intercept[0], intercept_sum[0] = intercept

    def point(self) -> np.ndarray:
        return self._as_point(self._panels, self._w, self._intercept)

    def sums(self) -> np.ndarray:
        """Return the sums of squared gradients, flat like the point."""
        return self._as_point(*self._sums)

    def _packed(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the panels of all degrees (c, d, 8), w with zeros for the dummies (d,) and the intercept (1,)."""
        parts = {name: value for view in self._layout.views(x) for name, value in view.items()}
        panels = np.concatenate([pack(parts[term.name]) for term in self._kernels])
        w = np.zeros(self._rows.length)
        if "w" in parts:
            w[self._dummies :] = parts["w"]
        return panels, w, parts.get("intercept", np.zeros(1)).copy()

    def _as_point(self, panels: np.ndarray, w: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        x = np.empty(self._layout.size)
        k = len(self._kernels[0].lams)
        panels_per_kernel = math.ceil(k / WIDTH)
        parts = {"w": w[self._dummies :], "intercept": intercept}
        for place, term in enumerate(self._kernels):
            first = place * panels_per_kernel
            parts[term.name] = unpack(panels[first : first + panels_per_kernel], k)
        for view in self._layout.views(x):
            for name, value in view.items():
                value[:] = parts[name]
        return x
