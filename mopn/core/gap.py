"""The gap: proven lower bounds of the minimum by weak duality, and the rounding errors of the objective.

The problem is to minimise F(O) + R(V) + Q(W) over weights V and coefficients W, with outputs O = Phi V + X W', the
losses F, a regulariser R and a ridge Q. For every dual point D (n, m), Fenchel's inequality for each of the three gives

    F(O) + R(V) + Q(W) >= -F*(D) - R*(-Phi' D) - Q*(-D' X),

and where Phi has a column for every unit, R* follows from the dual norm of Phi' D, which an oracle bounds. The dual
point is s G, the scaled gradient G = dF/dO. At the minimum both sides are equal for s = 1 (Rockafellar, Convex
Analysis, section 31); elsewhere the best s in [0, ``max_scale``] is searched, as the right-hand side is concave in s.
For losses of one's own it is at most 1, and F* is bounded by its chord; see ``conjugate_bounds_and_sizes``.
Under a penalty s is at most strength / dual norm; in a ball R* is radius times s times the dual norm.

The conjugates are evaluated at the array s G itself, so errors in G do not matter. The rounding errors of the two sums
do: their terms may be larger than the sums. They are bounded by the sum of the moduli of all terms, with the sample
weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mopn.data.rows import SumOfLosses
from mopn.solvers.numerics.precision import EPS, proven_lower, proven_upper
from mopn.solvers.sphere.sum_of_squares import square_multipliers
from mopn.solvers.tools.decorators import cached_property, quiet
from mopn.solvers.tools.display import Displayed

# Largest scale of the dual point that is tried.
_MAX_SCALE = 4.0
# Relative distance of two scales at which a better one begins a search, and to which the search finds the best.
_NEARBY = 1e-3
# Scales that the first pass of a search evaluates: one pass over the rows takes all of them.
_FIRST_SCALES = 4
# Passes over the rows, at most; each after the first evaluates three scales.
_MAX_PASSES = 7
# Distance of the three scales around a parabola's vertex, as a fraction of the interval.
_SPACING = 0.05
# Rounding error of an entry of s G, in eps, apart from a sum over the outputs; see ``dual_error``.
_DUAL_ERROR = 8
# Relative error of a term of the sums, in eps: up to 36.7 = -log(eps) for logarithms of rounded masses near 1.
_TERM_ERROR = 64
# Features up to which multipliers are returned: they take 6 MB.
_MAX_MULTIPLIED_FEATURES = 30
# Excess of the bound by multipliers over the proven one, relative.
_MULTIPLIER_EXCESS = 1e-5


class Conjugate(Protocol):
    """The members of R that a bound needs, such as a :class:`mopn.core.regularizers.Regularizer`."""

    @property
    def active(self) -> bool:
        """Whether R* is finite anywhere but at 0."""

    def conjugate(self, dual: float) -> float:
        """Return an upper bound of R* at a point of dual norm ``dual``."""

    def max_scale(self, dual: float) -> float:
        """Return the largest s with ``conjugate(s * dual)`` finite."""


class DualPoint:
    """A gradient G of the losses F, whose multiples are dual points.

    Quantities that do not depend on the norm's bound are cached.

    The gradient is at ``outputs``; a point near a gradient has none, and proves nothing for losses of one's own.
    """

    def __init__(self, losses: SumOfLosses, G: Any, outputs: Any = None) -> None:
        self.losses, self.G, self.outputs = losses, G, outputs

    @cached_property
    def max_scale(self) -> float:
        return self.losses.max_scale(self.G)

    def conjugates_and_sizes(self, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of F* at several s G, and the magnitudes that scale their rounding errors."""
        if self.losses.is_built_in:
            return self.losses.conjugates_and_sizes(self.G, scales)
        if self.outputs is None:
            return np.full_like(scales, np.inf), scales
        return self.losses.conjugate_bounds_and_sizes(self.G, self.outputs, scales)

    @cached_property
    def slope_size(self) -> float:
        """Bound of the terms of F and F*; see ``SumOfLosses.slope_size``."""
        return self.losses.slope_size(self.G)


def dual_error(m: int) -> int:
    """Return how far s G is from a point where F* is finite, in units of rounding, relative to each entry.

    Gradients of m classes add up to 0 up to rounding only, and at the largest scale masses may exceed 1 by it. F* is
    evaluated at a point near s G, and the proof goes on with the dual norm there.
    """
    return m + _DUAL_ERROR


def lower_bound(
    point: DualPoint, regularizer: Conjugate, dual: float, ridge: float = 0.0, *, search: bool = True
) -> float:
    return bound_and_scale(point, regularizer, dual, ridge, search=search)[0]


def bound_and_scale(
    point: DualPoint, regularizer: Conjugate, dual: float, ridge: float = 0.0, *, search: bool = True
) -> tuple[float, float]:
    """Return a proven lower bound -F*(s G) - R*(s G) - s^2 ``ridge`` of the minimum, rounded down, and s.

    ``dual`` bounds the dual norm of G pulled back to the weights, ``ridge`` the conjugate of the ridge at G. Without
    ``search`` s is 1, or the largest admissible scale below 1. Without a certificate the bound is -inf and s is 0.
    """
    if not regularizer.active or not math.isfinite(dual):
        return -math.inf, 0.0
    losses = point.losses
    slopes = point.slope_size
    limit = min(point.max_scale, regularizer.max_scale(dual))

    def negative_duals(scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the dual objective at several scales, and a bound of its rounding error, by one pass."""
        of_fit, sizes = point.conjugates_and_sizes(scales)
        of_rest = np.array([regularizer.conjugate(s * dual) + s * s * ridge for s in scales])
        errors = [sum_rounding(losses, size, s * slopes) for s, size in zip(scales, sizes + of_rest, strict=True)]
        return proven_upper(of_fit + of_rest), proven_upper(errors)

    start = min(1.0, limit)
    upper = min(limit, _MAX_SCALE)
    if not search:
        (value,), (error,) = negative_duals(np.array([start]))
        return float(proven_lower(-(value + error))), start
    least, scale = _least_value(negative_duals, start, upper)
    return float(proven_lower(-least)), scale


def _least_value(
    negative_duals: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], start: float, upper: float
) -> tuple[float, float]:
    """Return about the least value in [0, upper] of a convex function, plus its rounding, and its scale."""
    near = np.array([start, (1.0 - _NEARBY) * start, min((1.0 + _NEARBY) * start, upper)])
    values, errors = negative_duals(near)
    if values[1] >= values[0] and values[2] >= values[0]:
        return float(values[0] + errors[0]), start

    low, high = (0.0, start) if values[1] < values[0] else (start, upper)
    new = np.linspace(low, high, _FIRST_SCALES)
    table = np.empty((3, 0))
    width = math.inf
    for _ in range(_MAX_PASSES):
        table = np.hstack([table, [new, *negative_duals(new)]])
        scales, values, errors = table = table[:, np.argsort(table[0])]
        least = int(np.argmin(values))
        # The neighbours of the least value bracket the minimum.
        around = scales[max(least - 1, 0) : least + 2]
        low = float(around[0])
        high = float(around[-1])
        previous_width = width
        width = high - low
        vertex = _vertex(scales, values, min(max(least, 1), len(scales) - 2))
        vertex_is_known = abs(vertex - scales[least]) <= _NEARBY * scales[least]
        if width <= (_SPACING if vertex_is_known else _NEARBY) * high:
            break
        if low < vertex < high and width <= 0.5 * previous_width:
            center = vertex
            spacing = _SPACING
        else:
            center = 0.5 * (low + high)
            spacing = 0.25
        new = np.clip(center + spacing * width * np.array([-1.0, 0.0, 1.0]), low, high)
    least = int(np.argmin(values + errors))
    return float(values[least] + errors[least]), float(scales[least])


def _vertex(x: np.ndarray, values: np.ndarray, i: int) -> float:
    """Return where the parabola through three neighbours, with i in the middle, is least; NaN if it has no minimum."""
    a, b, c = x[i - 1 : i + 2].tolist()
    of_a, of_b, of_c = values[i - 1 : i + 2].tolist()
    left = (of_b - of_a) * (c - b)
    right = (of_c - of_b) * (b - a)
    if not right > left:
        return math.nan
    return 0.5 * (a + b - left * (c - a) / (right - left))


def sum_rounding(losses: SumOfLosses, values: float, slopes: float) -> float:
    """Bound the rounding error of F or F*, given the sum of the moduli of its rows, and ``slope_size``.

    The terms of a row may be larger than its value, by at most 2 (u + |y| + |offset|) |g|, with the loss's own unit u:
    conjugates are squares or negative entropies of g minus multiples of g by u or y, and F depends on differences of
    outputs and u or y. For the squared loss u = 0, as both are quadratic in targets and outputs together.
    """
    n = losses.n
    m = losses.n_outputs
    return (n + _TERM_ERROR) * m * EPS * (values + 2.0 * slopes)


@dataclass(frozen=True, repr=False)
class Dual(Displayed):
    """The dual point that proves a lower bound of a network problem: ``result.dual``, ``measure.dual``, ``dual_``.

    It is D = ``scale`` * G (n, m), where G = dF/dO is the gradient of the losses, with all weights, at the outputs of
    one network: of the round with the largest lower bound, mostly not the best network of the run. By
    Fenchel's inequality the objective of every network is at least

    * -F*(D) under a penalty, where ``bound`` is at most the strength, up to rounding;
    * -F*(D) - radius * ``bound`` in a ball;

    minus sum_j ||D' x_j||^2 / (2 alpha_j) with a linear term: over the columns x_j of [1, X], with alpha / 100 for the
    constants and alpha for the others. F* is the convex conjugate of the losses. For losses of your own mopn bounds it.

    With a ridge it is at least -F*(D) minus the least ||Gamma - Y||^2 / (2 ridge) over all Y whose dual norm is at most
    the strength, less the same for a linear term; ``bound`` then bounds the dual norm of Gamma plus
    ``scale * ridge`` times the W of the network, which need not be below the strength: docs/mathematics.md, 5.7.

    Attributes
    ----------
    lower : float
        The lower bound, rounding errors included.
    bound : float
        Proven upper bound of the dual norm of D, the maximum of ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p`` over unit
        vectors h, where Gamma_c = sum_i D_ic x_i x_i' for ``kernel="homogeneous"``, and half of it without its diagonal
        for ``"anova"``. With nonnegative weights the maximum is over -h' Gamma_c h, and 0. It is as
        certain as the ``proof`` of the result says.
    scale : float
    basis : ndarray of shape (k, d)
    weights : ndarray of shape (k, m)
    linear : ndarray of shape (m, 1 + d) or (m, 0)
        The network of the gradient. It is kept in place of D, as it is small whatever the number of samples.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> dual = mopn.minimize(problem).dual
    >>> D = dual.point(problem)
    >>> norm = max(np.abs(np.linalg.eigvalsh(X.T * D[:, c] @ X)).max() for c in range(2))
    >>> D.shape, bool(norm <= dual.bound)
    ((60, 2), True)
    """

    lower: float
    bound: float
    scale: float
    basis: np.ndarray = field(compare=False)
    weights: np.ndarray = field(compare=False)
    linear: np.ndarray = field(compare=False)

    @quiet()
    def point(self, problem: Any) -> np.ndarray:
        """Compute D (n, m), by one pass over the data.

        Parameters
        ----------
        problem : NetworkProblem
            The problem of the run, or one of the same data and options; of an estimator
            ``estimator.problem(X, y, sample_weight)``. With other data the bounds do not hold.

        Returns
        -------
        ndarray of shape (n, m)
            In the order of the rows of X as given, of data in blocks too, with 0 for rows of weight 0; columns in the
            order of ``problem.classes`` or of the targets.

        Raises
        ------
        ValueError
            If the problem has another number of features or outputs.
        """
        G = self._gradient(problem).G
        return self.scale * np.concatenate(problem.rows.sum(lambda block, rows: [rows], along=(G,)))

    def _gradient(self, problem: Any) -> Any:
        """Return the objective and the loss gradient of a problem at the network."""
        outputs, d = problem.losses.n_outputs, problem.n_inputs
        if self.basis.shape[1] != d or self.linear.shape != problem.given_linear_term.shape(outputs):
            raise ValueError(
                f"problem must be of {self.basis.shape[1]} features and {len(self.linear)} outputs as the dual point, "
                f"got {d} and {outputs}; give the problem of the run"
            )
        basis, linear = problem.inside(self.basis, self.linear)
        return problem.output_gradient(problem.network(basis, self.weights, linear))

    @quiet()
    def multipliers(self, problem: Any) -> np.ndarray:
        """Compute N (d^2, d^2), which proves a bound of the dual norm of D for "l1/l2" by a sum of squares.

        It is symmetric, and (h x h)' N (h x h) = 0 for every h: the means of N[i, j, k, l] over all orders of the four
        indices are 0. So the square of the dual norm is at most the largest eigenvalue of
        sum_c vec(Gamma_c) vec(Gamma_c)' + N, mostly to within 1e-4: docs/mathematics.md, 6.4.

        Parameters
        ----------
        problem : NetworkProblem
            As for ``point``, of at most 30 features, dummies included, and without a ridge.

        Raises
        ------
        ValueError
            For more features, or with a ridge: ``bound`` is then of another norm.
        """
        d = problem.n_inputs
        if problem.ridge or d > _MAX_MULTIPLIED_FEATURES:
            raise ValueError(
                f"problem must have at most {_MAX_MULTIPLIED_FEATURES} features, dummies included, and no ridge, got "
                f"{d} features and ridge={problem.ridge:g}"
            )
        problem = problem.in_given_coordinates()
        forms = self._gradient(problem).forms(problem.kernel).dense
        return square_multipliers(self.scale * forms.matrices, (1.0 + _MULTIPLIER_EXCESS) * self.bound)

    def _entries(self) -> dict[str, str]:
        return {name: f"{getattr(self, name):.6g}" for name in ("lower", "bound", "scale")}


def make_dual(lower: float, bound: float, scale: float, *network: Any) -> Dual:
    """Return the dual point of a network's parts, which cannot be written to."""
    views = [part.view() for part in network]
    for view in views:
        view.flags.writeable = False
    return Dual(lower, scale * bound, scale, *views)
