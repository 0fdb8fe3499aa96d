"""Problems of a single output: F(sum of terms) plus the penalties of the terms.

Models of degree 2 have three forms: direct (lambda, P), lifted (U, V) and the network of one output (H, v). Each is a
symmetric matrix W of low rank: P' diag(lambda) P, the symmetric part of U' V, and H' diag(v) H.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from mopn.core.kernels import eigen_units
from mopn.data.designs import Design
from mopn.data.rows import Block, Rows, SumOfLosses
from mopn.data.validation import check_start, check_start_size, finite_numbers
from mopn.factorization.sweep_state import SweepState
from mopn.factorization.terms import Intercept, Linear, Term
from mopn.factorization.terms.base import Layout, Parameters
from mopn.losses.losses import Loss, get_loss
from mopn.solvers import LBFGS, CoordinateDescent
from mopn.solvers.interface import Evaluation, Measure, Smooth
from mopn.solvers.result import Result
from mopn.solvers.tools.checks import make_generator
from mopn.solvers.tools.decorators import cached_property
from mopn.solvers.tools.display import Displayed


class SingleOutputProblem(Displayed, Smooth):
    """Minimise sum_i w_i l(y_i, o_i + offset_i) + penalties, where the outputs o are a sum of terms.

    The point is the terms' parameters one after the other, flat. Oracles: ``gradient`` unless a term has
    parameters on a simplex; ``blocks`` (coordinate descent) if the objective is convex along each coordinate
    and the loss has compiled ``code``. The objective is not convex, so there is no certificate.

    ``rng`` is for the default start. ``units`` are the name of the units in results, and the names of their parts in
    the terms.
    """

    degree: int
    kernel_name: str
    starts_at_random = True
    # Whether every factor has its own X.
    several = False
    # Columns of ones in front of X.
    dummies = 0

    def __init__(self, rows: Rows, terms: Sequence[Term], rng: Any, units: tuple[str, Sequence[str]]) -> None:
        losses = SumOfLosses(rows)
        if losses.n_outputs != 1:
            raise ValueError(
                f"y has {losses.n_outputs} outputs, but this problem has one; mopn.NetworkProblem takes several"
            )
        make_generator(rng)
        self.rows = rows
        self.losses = losses
        self.rng = rng
        self._layout = Layout(terms)
        self.terms = self._layout.terms
        self.size = self._layout.size
        self._units_name, self._part_names = units

    def _entries(self) -> dict[str, str]:
        return {
            "degree": str(self.degree), "kernel": repr(self.kernel_name), "n": str(self.rows.shape[0]),
            "loss": repr(self.losses.loss.name), "terms": str(len(self.terms)), "parameters": str(self.size),
        }  # fmt: skip

    @property
    def mean_squared_length(self) -> float:
        """The weighted mean of the squared lengths of rows."""
        return float(self.rows.squares[self.dummies :].sum() / self.losses.total_weight)

    def strength_units(self, constant: np.ndarray | float = 0.0) -> tuple[float, float]:
        """Return units of alpha and beta, in proportion to the sum of the weights, from the slopes at a constant.

        They are the mean sum of squares of a feature, times the curvature of the losses: mean slopes by mean residuals;
        or times the deviation of the slopes, and the power of the residuals with which units of products of ``degree``
        numbers are the same in any unit of y. They have nine digits, which no order of additions changes.
        """
        losses = self.losses.in_memory
        weights, squares = losses.sample_weights, float(np.mean(self.rows.squares))
        outputs = np.full((losses.n, 1), constant)
        slopes = self.losses.value_gradient(outputs)[1][:, 0] / weights
        spread = slopes - np.average(slopes, weights=weights)
        size = math.sqrt(np.average(spread**2, weights=weights))
        residual = float(np.average(np.abs(outputs - losses.y)[:, 0], weights=weights))
        curvature = float(np.average(np.abs(slopes), weights=weights)) / (residual or 1.0)
        size *= residual ** (1.0 - 2.0 / self.degree)
        return float(f"{curvature * squares:.9g}"), float(f"{size * squares:.9g}")

    @property
    def oracles(self) -> frozenset[str]:
        """Names of the oracles offered."""
        names = set()
        if all(term.smooth for term in self.terms):
            names.add("gradient")
        if self.rows.design is not None and self._has_sweeps and all(term.multiconvex for term in self.terms):
            names.add("blocks")
        return frozenset(names)

    @property
    def _has_sweeps(self) -> bool:
        """Whether there are compiled sweeps for the loss, whose steps rest on a bound of its curvature."""
        return self.losses.loss.code is not None and math.isfinite(self.losses.loss.smoothness(1))

    def default_solver(self) -> CoordinateDescent | LBFGS:
        """Return the solver that :func:`mopn.minimize` takes by default: L-BFGS where there are no compiled sweeps."""
        return CoordinateDescent() if "blocks" in self.oracles else LBFGS()

    @property
    def reasons(self) -> dict[str, str]:
        """The reasons for oracles that are not offered, if it is the loss or the form of the data."""
        if self.rows.design is None:
            reason = "for data in blocks there is LBFGS(), and partial_fit of the estimators for stochastic passes"
            return dict.fromkeys(("blocks", "passes"), reason)
        if self._has_sweeps:
            return {}
        if self.losses.loss.code is not None:
            return {"blocks": f"the curvature of the loss {self.losses.loss.name!r} has no bound"}
        return dict.fromkeys(("blocks", "passes"), f"the loss {self.losses.loss.name!r} declares no code")

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Lower and upper bounds on the flat point, or None."""
        lower = np.full(self.size, -np.inf)
        for term, at in zip(self.terms, self.views(lower), strict=True):
            for name, bound in term.lower.items():
                at[name][:] = bound
        return None if np.isinf(lower).all() else (lower, np.full(self.size, np.inf))

    @cached_property
    def scales(self) -> np.ndarray:
        """Steps along each parameter that change the objective by about the same amount."""
        scales = np.ones(self.size)
        for term, at in zip(self.terms, self.views(scales), strict=True):
            for name, scale in term.scales(self.rows).items():
                at[name][:] = scale
        return scales

    def start(self, start: Any = None) -> np.ndarray:
        """Return a point.

        Parameters
        ----------
        start : optional
            None for random units (``rng``), a seed or a Generator for others, a flat point, an earlier result, or a
            dictionary with some of the parameters, under the names of ``unpack``; the default start has the others.

        Raises
        ------
        TypeError, ValueError
            For anything else, other shapes, or NaN or infinity.
        """
        named = isinstance(start, dict)
        seeded = isinstance(start, Integral | np.random.Generator) and not isinstance(start, bool)
        if not (start is None or named or seeded):
            return check_start(start, self.size)
        given = self._with_parts_of_units(self._known_parameters(start)) if named else {}
        rng = make_generator(start, "start") if seeded else make_generator(self.rng)
        x = np.empty(self.size)
        for term, at in zip(self.terms, self.views(x), strict=True):
            parameters = term.start(rng) | term.absorb(given)
            for name, value in parameters.items():
                label = f"start: {self._name_in_results(name)}"
                value = finite_numbers(value, label)
                if value.shape != at[name].shape:
                    raise ValueError(f"{label} must have shape {at[name].shape}, got {value.shape}")
                check_start_size(value, label)
                at[name][:] = value
        return x

    def _name_in_results(self, name: str) -> str:
        return f"{self._units_name}[{self._part_names.index(name)}]" if name in self._part_names else name

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Names of the parameters in results."""
        return frozenset(self.unpack(np.zeros(self.size))) - {"x"}

    def _known_parameters(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a start; raise ``ValueError`` for other names, and for results of other problems."""
        names = ", ".join(map(repr, sorted(self.parameters)))
        if isinstance(given, Result):
            if self._units_name not in given:
                raise ValueError(
                    f"start is a result without {self._units_name!r}, so of another problem; this has {names}"
                )
            return {name: given[name] for name in self.parameters if name in given}
        unknown = sorted(map(repr, given.keys() - self.parameters))
        if unknown:
            raise ValueError(f"start has unknown parameters {', '.join(unknown)}; this problem has {names}")
        return given

    def _with_parts_of_units(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, with the units under the names of their parts in the terms."""
        if self._units_name not in given:
            return given
        units = given[self._units_name]
        units = list(units) if np.iterable(units) else [units]
        if len(units) != len(self._part_names):
            raise ValueError(f"start: {self._units_name} must have length {len(self._part_names)}, got {len(units)}")
        return {**given, **dict(zip(self._part_names, units, strict=True))}

    def views(self, x: np.ndarray) -> list[Parameters]:
        """Return the parameters of each term, as views of a point."""
        return self._layout.views(x)

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        """Named views of a point; see the class."""
        x = self._as_in_results(x)
        parts: dict[str, Any] = {"x": x}
        for term, at in zip(self.terms, self.views(x), strict=True):
            parts |= term.present(at)
        units = [parts.pop(name) for name in self._part_names]
        parts[self._units_name] = units if self.several else np.stack(units)
        return parts

    def _as_in_results(self, x: np.ndarray) -> np.ndarray:
        """Return the point for the parameters in results, where one of the two parts of a lambda is zero."""
        if self.bounds is None:
            return x
        presented = x.copy()
        for term, at in zip(self.terms, self.views(presented), strict=True):
            for name, value in term.absorb(term.present(at)).items():
                at[name][:] = value
        return presented

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n,), without the offset."""
        return _outputs(self.terms, self.views(x), self.rows.shape[0])[:, 0]

    def penalty(self, x: np.ndarray) -> float:
        """Return the sum of the penalties."""
        return sum(term.penalty(at) for term, at in zip(self.terms, self.views(x), strict=True))

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        """Value and gradient of the whole objective."""
        value, gradient = self.rows.sum(_value_gradient, x, self._layout, self.rows.shape[0], along=(self._by_block,))
        return Evaluation(value + self.penalty(x), gradient)

    @cached_property
    def _by_block(self) -> Any:
        """The terms on the rows of every block."""
        return self.rows.keep(partial(_on_block, terms=self.terms))

    def measure(self, x: np.ndarray) -> Measure:
        """Return the objective of the parameters in results; no gap is known."""
        x = self._as_in_results(x)
        value = self.rows.sum(_value, self.views(x), along=(self._by_block,))
        return Measure(value + self.penalty(x))

    def blocks(self, x: np.ndarray, n_threads: int = 1) -> CoordinateBlocks:
        """Return coordinate descent from a point, which is not changed."""
        return CoordinateBlocks(self, x.copy(), n_threads)


def _on_block(block: Block, terms: Sequence[Term]) -> list[Term]:
    return [term.on(block) for term in terms]


def _outputs(terms: Sequence[Term], views: Sequence[Parameters], n: int) -> np.ndarray:
    """Return the sum of the terms' outputs, (n, 1)."""
    outputs = np.zeros(n)
    for term, at in zip(terms, views, strict=True):
        outputs = outputs + term.outputs(at)
    return outputs[:, None]


def _value(block: Block, terms: Sequence[Term], views: Sequence[Parameters]) -> float:
    return block.losses.value(_outputs(terms, views, block.losses.n))


def _value_gradient(
    block: Block, terms: Sequence[Term], x: np.ndarray, layout: Layout, n: int
) -> tuple[float, np.ndarray]:
    """Return the losses of a block, and the gradient of these and of its share of the penalties."""
    views = layout.views(x)
    share = block.losses.n / n
    value, G = block.losses.value_gradient(_outputs(terms, views, block.losses.n))
    # The terms' gradients are affine in the slopes: divided here and multiplied below, only penalties get the share.
    slopes = np.ascontiguousarray(G[:, 0]) / share
    gradient = np.empty(layout.size)
    for term, at, parts in zip(terms, views, layout.views(gradient), strict=True):
        for name, part in term.gradient(at, slopes).items():
            parts[name][:] = part
    gradient *= share
    return value, gradient


class CoordinateBlocks:
    """A run of coordinate descent; an update returns the largest product of a derivative and its step."""

    def __init__(self, problem: SingleOutputProblem, x: np.ndarray, n_threads: int) -> None:
        self._problem = problem
        self._x = x
        designs = {id(design): design for term in problem.terms for design in term.designs}
        # Dummies are in none of these designs. Their sums are over all samples, whose order must stay then.
        if problem.rows.shape[1] > max(design.shape[1] for design in designs.values()):
            designs = {}
        self._state = SweepState(problem.losses, problem.outputs(x), designs.values(), n_threads)
        self.updates: list[Callable[[], float]] = []
        for term, at in zip(problem.terms, problem.views(x), strict=True):
            self.updates.extend(term.updates(at, self._state))

    def value(self) -> float:
        return self._state.value() + self._problem.penalty(self._x)

    def point(self) -> np.ndarray:
        return self._x.copy()


def check_single_output_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name; raise ``ValueError`` for multi-class losses."""
    loss = get_loss(loss)
    if loss.targets == "labels":
        raise ValueError(
            f"loss={loss.name!r} is for several classes; a single output takes 'squared', 'huber', 'quantile', "
            "'poisson', 'binary-logistic' or 'binary-squared-hinge' (targets -1 and +1); for several classes use "
            "mopn.NetworkProblem"
        )
    return loss


def affine_terms(design: Design, alpha: float, *, linear: bool, intercept: bool, degree: int = 1) -> list[Term]:
    """Return the terms b and <w, x>, where they are fitted; see ``Linear`` for the degree."""
    terms: list[Term] = []
    if intercept:
        terms.append(Intercept(design.shape[0]))
    if linear:
        terms.append(Linear(design, alpha, degree))
    return terms


def lifted_to_direct(U: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return lambda (k,) and unit vectors P (k, d) of the factors U (2, r, d): section 5.2 of the ICML paper."""
    first, second = (np.asarray(factor, dtype=np.float64) for factor in U)
    # u v' + v u' = ((u + v)(u + v)' - (u - v)(u - v)') / 2
    r = len(first)
    signs = np.concatenate([np.full(r, 0.25), np.full(r, -0.25)])
    return eigen_units(signs, np.vstack([first + second, first - second]))


def direct_to_network(lams: Any, P: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (k, d) and weights (k, 1) of the network of one output with units p_s / ||p_s||."""
    lams = np.asarray(lams, dtype=np.float64)
    P = np.asarray(P, dtype=np.float64)
    squares = np.einsum("sj,sj->s", P, P)
    alive = (squares > 0) & (lams != 0)
    units = P[alive] / np.sqrt(squares[alive])[:, None]
    return units, (lams * squares)[alive, None]
