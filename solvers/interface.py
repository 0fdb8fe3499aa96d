"""The interface between problems and solvers (the oracles), and between solvers and the driver.

A problem lists the oracles that it offers in ``problem.oracles``; a solver lists those that it needs in
``Solver.needs``. The protocols below define the members of each oracle:

================ ==================== ==================================================
"gradient"       :class:`Smooth`      L-BFGS
"composite"      :class:`Composite`   FISTA
"barrier"        :class:`WithBarrier` interior point
"blocks"         :class:`Blockwise`   coordinate descent
"passes"         :class:`WithPasses`  SGD, AdaGrad
"alternating"    :class:`Alternating` alternating least squares
"atomic"         :class:`Atomic`      conditional gradient by plain steps
"corrective"     :class:`Corrective`  conditional gradient with refits
================ ==================== ==================================================

A problem of your own inherits from the protocols of its oracles, which have defaults for all that a solver can do
without. Data may be attributes of the object or its class, or properties; type checkers want attributes declared.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, NoReturn, Protocol, Self, TypeVar

import numpy as np

from mopn.solvers.measure import Measure
from mopn.solvers.result import Result, Status
from mopn.solvers.tools.budgets import FailureBudget
from mopn.solvers.tools.checks import check_flag, check_options, number, shown
from mopn.solvers.tools.members import data_member

Bounds = tuple[np.ndarray, np.ndarray]

# The solvers of each oracle, for messages.
SERVED_BY = {
    "gradient": "LBFGS()",
    "composite": "FISTA()",
    "barrier": "InteriorPoint()",
    "blocks": "CoordinateDescent()",
    "passes": "SGD(), AdaGrad()",
    "alternating": "AlternatingLeastSquares()",
    "atomic": "ConditionalGradient(refit='none')",
    "corrective": "ConditionalGradient()",
}


class Evaluation(NamedTuple):
    """Value and gradient at a point, and the loss gradient G (n, m) behind them, at an image; None if there is none."""

    value: float
    gradient: np.ndarray
    G: np.ndarray | None = None
    image: np.ndarray | None = None


class WorkingSet(NamedTuple):
    """A problem of the coordinates ``kept`` of a flat point, others being 0, and a lower bound over all of them."""

    problem: Any
    kept: np.ndarray
    lower: float


# -- problems ---------------------------------------------------------------------------------------------------------


class Problem(Protocol):
    """The members of every problem, whatever its oracles; subclasses inherit the defaults.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> sorted(problem.oracles), sorted(mopn.solvers.ConditionalGradient().needs)
    (['atomic', 'corrective'], ['corrective'])
    """

    @data_member
    def oracles(self) -> frozenset[str]:
        """Names of the oracles offered, from the table above."""

    @data_member
    def reasons(self) -> Mapping[str, str]:
        """Why some oracles are not offered, by name; for messages."""
        return {}

    @data_member
    def starts_at_random(self) -> bool:
        """Whether the default start is random; then a generator may be given as start."""
        return False

    def start(self, start: Any = None) -> Any:
        """Turn the user's start (None for the default) into a feasible point of its own."""

    def measure(self, point: Any) -> Measure:
        """Objective of a point and a proven lower bound of the minimum, from scratch."""

    def unpack(self, point: Any) -> dict[str, Any]:
        """Named views of a point for the result; "x" is the flat array."""

    def dual_bound(self, at: Evaluation) -> float:
        """Proven lower bound of the minimum from an evaluation at any point; -inf if no bound is known."""
        return -math.inf

    def working_set(self, x: np.ndarray, least: int) -> WorkingSet | None:
        """Return the problem of the coordinates of x and of few others that would lower the objective, if it pays."""
        return None

    def default_solver(self) -> Solver[Any]:
        """Return the solver that ``minimize(problem)`` takes."""
        raise TypeError(f"{type(self).__name__} names no solver of its own; give minimize one")


class Metric(Protocol):
    """An approximation of the inverse of a Hessian, positive definite."""

    def solve(self, gradient: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return the inverse over the variables not ``held``, times a flat vector; the result is zero at ``held``."""


class Smooth(Problem, Protocol):
    """The oracle "gradient": the whole objective is smooth; the variables may have bounds."""

    resolution: float = 0.0
    """The relative decrease that rounding errors hide, besides the errors of double precision."""

    @data_member
    def bounds(self) -> Bounds | None:
        """Lower and upper bounds on the flat point, or None."""

    @data_member
    def scales(self) -> np.ndarray | None:
        """Diagonal scaling: a typical step along each variable of the flat point, or None for 1."""

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        """Value and gradient of the whole objective."""

    def metric(self, x: np.ndarray, tol: float = 0.0) -> Metric | None:
        """Return a metric near x, or None where it does not pay in a run to this tolerance."""
        return None


class Composite(Problem, Protocol):
    """The oracle "composite": a smooth function of a linear image of the point, plus a regulariser with a prox."""

    @data_member
    def curvature(self) -> float:
        """Lipschitz constant of the gradient of the smooth part, or an estimate of it."""

    def image(self, x: np.ndarray) -> np.ndarray:
        """Linear image of a point, through which the smooth part is evaluated."""

    def smooth(self, image: np.ndarray) -> Evaluation:
        """Value of the smooth part at an image, and its gradient with respect to the point."""

    def smooth_value(self, image: np.ndarray) -> float:
        """Value of the smooth part alone."""

    def regularizer_value(self, x: np.ndarray) -> float:
        """Value of the regulariser at a point that ``prox`` returned."""

    def prox(self, x: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``regulariser(u) + ||u - x||^2 / (2 step)`` over u."""


class BarrierHessian(NamedTuple):
    """The part of a barrier in the Newton matrix over (k, m): diag(diagonal) - sum_r e_r e_r' + z z', three arrays."""

    diagonal: np.ndarray
    rows: np.ndarray | None
    common: np.ndarray | None

    def product(self, D: np.ndarray) -> np.ndarray:
        """Return the product with a direction D (k, m)."""
        image = self.diagonal * D
        if self.rows is not None:
            image -= self.rows * np.sum(self.rows * D, axis=1, keepdims=True)
        if self.common is not None:
            image += self.common * float(np.vdot(self.common, D))
        return image


class Barrier(Protocol):
    """A smoothed regulariser with multipliers, at strictly feasible weights."""

    @data_member
    def degree(self) -> int:
        """``degree * mu`` is the gap on the central path."""

    @data_member
    def V(self) -> np.ndarray:
        """The present weights (k, m)."""

    @data_member
    def complementarity(self) -> float:
        """The present mean of the products of distances and multipliers."""

    def linearize(self, mu: float) -> tuple[BarrierHessian, np.ndarray]:
        """Set the level mu; return the barrier's part of the Newton matrix and its gradient (k, m)."""

    def value(self, V: np.ndarray) -> float:
        """Return the smoothed regulariser at the present level; inf outside its domain."""

    def advance(self, D: np.ndarray, step: float) -> float:
        """Move V by a step along D, and the multipliers by their own step; return the smaller of the two steps."""

    def sparsified(self) -> np.ndarray:
        """Return V with exact zeros for the weights whose bounds are not active."""


class LayerHessian(Protocol):
    """The second derivative of a smooth part with respect to the point (k, m)."""

    @data_member
    def shift_invariant(self) -> bool:
        """Whether a common shift of all outputs of a sample changes nothing."""

    def product(self, D: np.ndarray) -> np.ndarray:
        """Return the product with a direction D (k, m)."""

    def blocks(self) -> np.ndarray:
        """Return its diagonal blocks, column by column (m, k, k)."""


class WithBarrier(Composite, Protocol):
    """The oracle "barrier": second derivatives, and the regulariser as a barrier, for points of shape (k, m)."""

    @data_member
    def shape(self) -> tuple[int, int]:
        """Shape (k, m) of the point as a matrix."""

    @data_member
    def newton_size(self) -> float:
        """Size of the matrices of Newton's method relative to the data; above 1 a first-order method is cheaper."""

    def hessian(self, image: np.ndarray) -> LayerHessian:
        """Return the second derivative of the smooth part."""

    def barrier(self, V: np.ndarray, mu: float, gradient: np.ndarray) -> Barrier:
        """Return a state of the regulariser near V whose gap is about ``mu``."""

    def predicted_bound(self, at: Evaluation, hessian: Any, step: np.ndarray) -> float:
        """Proven lower bound of the minimum from the loss gradient predicted for a step of the image."""


class Blockwise(Problem, Protocol):
    """The oracle "blocks": the objective can be minimised, or an upper bound of it, along each coordinate."""

    def blocks(self, x: np.ndarray, n_threads: int) -> Any:
        """Return the state of coordinate descent at a point: its ``updates``, ``value()`` and ``point()``.

        An update minimises along the coordinates of a block, and returns the largest product of a derivative and its
        step.
        """


class Passes(Protocol):
    """The state of stochastic gradient descent over ``n`` samples."""

    n: int

    def run(self, order: np.ndarray, batch: int, step: float, *, adaptive: bool) -> None:
        """Take steps along mean gradients of batches of ``order``, ``adaptive`` or not, as AdaGrad is."""

    def point(self) -> np.ndarray:
        """Return the flat point."""


class WithPasses(Problem, Protocol):
    """The oracle "passes": compiled passes of stochastic gradient descent and AdaGrad."""

    def passes(self, x: np.ndarray) -> Passes:
        """Return the state of passes at a point, which is not changed."""


class Estimate(NamedTuple):
    """A lower bound without a proof, units to add, the best first, and the directions in which they were sought."""

    lower: float
    units: Any
    probes: np.ndarray


class Alternating(Problem, Protocol):
    """The oracle "alternating": two factors; over each alone the objective is a sum of least squares."""

    @data_member
    def allows_single(self) -> bool:
        """Whether sweeps may begin in single precision."""

    def evaluate(self, point: Any) -> Any:
        """Return an object with the objective at a point as ``value``, for ``estimate`` and ``dual``."""

    def sweep(self, point: Any, *, single: bool) -> Any:
        """Improve one factor, then the other; units that became zero leave."""

    def estimate(self, point: Any, at: Any, probes: Any, least: float, seed: int) -> Estimate:
        """Estimate the gap, and find units that would each lower it by more than ``least``, by some directions."""

    def with_units(self, point: Any, new: Any, most: int) -> Any:
        """Return a point with the first ``most`` of some new units."""

    def dual(self, point: Any, at: Any, goal: float, failure_budget: FailureBudget) -> Any:
        """Return a dual point with its bound ``lower``, made for a gap ``goal``, and directions ``vectors``."""

    def rounding(self, point: Any, at: Any) -> float:
        """Upper bound of the exact objective of the point minus the computed one."""


# -- problems over infinitely many units ------------------------------------------------------------------------------


_LIMIT = number("a number >= 0", lambda x: x >= 0.0, finite=False)
_PRECISION = _LIMIT.or_none()
_SECONDS = number("a number", finite=False)


@dataclass(frozen=True)
class Effort:
    """Budget of a proof, and the precision of its bound; the limits of the oracle itself apply as well.

    Parameters
    ----------
    precision : float, optional
        How far the bound may exceed the best value found, relative; default set by the oracle.
    work : float, default inf
        Approximate number of floating-point operations; a node of branch and bound counts 4,400.
    seconds : float, default inf
        Number of seconds. Results under a time limit may differ from run to run; limit the work to avoid this.
    thorough : bool, default False
        Whether units are refined as by the method "refine", also where the oracle's own method leaves that out.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> oracle = mopn.oracles.basis_oracle("l1", "eigh")
    >>> float(oracle(np.array([np.diag([1.0, 3.0])]), mopn.solvers.interface.Effort(work=1e6)).values[0])
    3.0
    """

    precision: float | None = None
    work: float = math.inf
    seconds: float = math.inf
    thorough: bool = False

    def __post_init__(self) -> None:
        check_options(self, precision=_PRECISION, work=_LIMIT, seconds=_SECONDS, thorough=check_flag)


# The oracle's own precision, within its own limits.
UNLIMITED = Effort()


class AtOutputs(Protocol):
    """An objective, and the loss gradient computed with it, which only the problem uses."""

    @data_member
    def value(self) -> float:
        """The objective."""


class Atoms(Protocol):
    """Units that an oracle selected for a gradient, and its bound on all units."""

    @data_member
    def basis(self) -> Sequence[Any] | np.ndarray:
        """The units, best first."""

    @data_member
    def values(self) -> np.ndarray:
        """The value of each unit: lower bounds of the dual norm."""

    @data_member
    def bound(self) -> float:
        """Proven upper bound of the dual norm."""

    @data_member
    def bound_is_best(self) -> bool:
        """Whether the oracle has no tighter bound, whatever the effort."""


class AtomicPoint(Protocol):
    """A combination of units."""

    @data_member
    def n_units(self) -> int:
        """Number of units."""

    def compact(self) -> Self:
        """Return a copy without cached arrays."""

    def drop_zero_units(self) -> Self:
        """Return the point without the units whose weights are all zero."""


class Segment(Protocol):
    """The points U(gamma), 0 <= gamma <= limit, along a descent direction, for line searches."""

    limit: float
    gap: float  # minus the derivative of the objective along the segment at gamma = 0
    curvature: float  # smoothness constant of the objective along the segment, per ``squared_length``
    squared_length: float  # of the segment from gamma = 0 to 1

    def value(self, gamma: float) -> float:
        """Objective at U(gamma), or an upper bound of it."""

    def point(self, gamma: float) -> Any:
        """Return U(gamma)."""


class ActiveUnits(NamedTuple):
    """A point as a convex combination of vertices, 0 last: coefficients and slopes towards each, (q,)."""

    coefficients: np.ndarray
    slopes: np.ndarray


class Atomic(Problem, Protocol):
    """The oracle "atomic": a convex problem over infinitely many units, for plain, away and pairwise steps."""

    @data_member
    def passes(self) -> int | None:
        """The number of sums over the data so far, for the trace; None if they are not counted."""
        return None

    def output_gradient(self, point: Any) -> AtOutputs:
        """Objective at a point, and the loss gradient G at its outputs."""

    def oracle(self, spec: Any, failure_budget: FailureBudget, seed: int) -> Any:
        """Return the oracle that the user specified, for ``lmo`` and ``bound`` in one run; it may keep a state."""

    def lmo(self, at: Any, oracle: Any, effort: Effort) -> Atoms:
        """Select units for a gradient, with a proven bound on every unit: the linear minimisation oracle."""

    def bound(self, at: Any, oracle: Any, effort: Effort) -> float:
        """Return only the proven bound on every unit."""

    def lower(self, at: Any, bound: float) -> float:
        """Lower bound of the minimum, given a bound of the dual norm; proven if that is. -inf if none is known."""

    def dual(self, point: Any, at: Any, bound: float) -> Any:
        """Return the dual point behind ``lower``, small enough to be kept; None if it is not to be had."""
        return None

    def better_dual(self, point: Any, at: Any, gap: float, seed: int = 0) -> Any | None:
        """Return a point near one of relative gap ``gap``, at which the gradient has a smaller dual norm, or None."""
        return None

    def dual_step_price(self, point: Any) -> float:
        """Return the time of ``better_dual`` and of the bound there, in evaluations of the objective at a point."""
        return 0.0

    def restricted_lower(self, point: Any, at: Any) -> float:
        """Proven lower bound of the minimum over the weights alone, with the units of the point as they are."""
        return -math.inf

    def rounding(self, point: Any, at: Any) -> float:
        """Upper bound of the exact objective of a point minus ``at.value``; 0 leaves it out of gaps."""
        return 0.0

    def segment(
        self, point: Any, at: Any, units: Any, *, least: float = math.inf, whole: bool = True, away: int | None = None
    ) -> Segment:
        """Return the segment from a point towards the vertices of some units.

        ``least`` is an objective already reached, which bounds the norm of minimisers. Unless ``whole``, only units
        move. With ``away`` the direction is away from that vertex of ``active_units``: U - Delta_away for
        ``units=None``, else the pairwise one.
        """

    def active_units(self, point: Any, at: Any, *, least: float = math.inf) -> ActiveUnits:
        """Return the point as a combination of the vertices of ``segment``, for away steps."""


class CorrectivePoint(AtomicPoint, Protocol):
    """A combination of units; the weights and the units can be refitted."""

    @data_member
    def extra_size(self) -> int:
        """Number of coefficients besides the units and their weights, such as a linear term."""

    def drop_zero_units(self, fraction: float = 0.0) -> Self:
        """Return the point without the units whose weights are all zero."""

    def without_smallest_unit(self) -> Self:
        """Return the point without the unit whose weights are the smallest."""

    def without_unit(self, unit: int) -> Self:
        """Return the point without the unit of this number."""

    def with_units(self, units: Any) -> Self:
        """Return the point with more units, with weights of zero."""

    def with_layer(self, refit: Result) -> Self:
        """Return the point with the weights of a refit of the output layer."""

    def with_layers(self, refit: Result) -> Self:
        """Return the point of a refit of both layers."""

    def merge_parallel_units(self) -> Self:
        """Return the point with nearly parallel units merged into one."""


class Form(NamedTuple):
    """A form of the refit of both layers: of ``oracle``, with features in ``single`` precision or double.

    The losses of ``sample_fraction`` of the samples, drawn by ``seed``, stand for all. With ``rest`` only the
    coefficients besides the units are refitted, of a point with an ``extra_size``.
    """

    oracle: Literal["gradient", "composite"] = "gradient"
    single: bool = False
    sample_fraction: float = 1.0
    rest: bool = False
    seed: int = 0


SMOOTH = Form("gradient")
REST = Form("gradient", rest=True)


class Corrective(Atomic, Protocol):
    """The oracle "corrective": subproblems in the weights, or in units and weights, that other solvers refit."""

    @data_member
    def regularized(self) -> bool:
        """Whether the weights are regularized; if not, no certificate exists."""

    @data_member
    def can_rotate_units(self) -> bool:
        """Whether refits of both layers can rotate the weights of a unit in any direction."""

    @data_member
    def joint_refits_get_stuck(self) -> bool:
        """Whether refits of both layers end at saddle points that only new units lead away from."""
        return False

    @data_member
    def minima_are_far_apart(self) -> bool:
        """Whether refits of both layers of few units end in local minima, some much worse than others."""
        return True

    @data_member
    def gap_is_of_second_order(self) -> bool:
        """Whether gaps fall as the objective does near the minimum, and not as the square root of its error."""
        return False

    def sample_fractions(self, point: Any) -> Sequence[float]:
        """Return ascending fractions of the samples on which a refit of both layers pays before one on all."""
        return ()

    def sample_for(self, n_units: int, seed: int) -> Corrective | None:
        """Return the problem on a sample of the rows that tells the units of a model; None where that is most rows."""
        return None

    def sample_to_start(self, seed: int) -> Corrective | None:
        """Return the problem on a sample of the rows that tells where to start; None where all rows take little."""
        return None

    def select_units(self, point: Any, at: Any, atoms: Any, most: int, *, fill: bool = False, seed: int = 0) -> Any:
        """Return at most ``most`` atoms whose dual value exceeds the strength; with ``fill`` others up to ``most``."""

    def limited(self, point: Any, most: int, *, jointly: bool) -> Any:
        """Return the point with its ``most`` largest units, counted as joint refits do with ``jointly``."""
        while point.n_units > most:
            point = point.without_smallest_unit()
        return point

    def thinned(self, point: Any, at: Any, most: float) -> tuple[Any, Any]:
        """Return a point of fewer units whose objective is at most ``most``, and its gradient, or the same point."""
        return point, at

    def output_layer(self, point: Any) -> Composite:
        """Return the convex problem in the weights, with the units fixed."""

    def joint(self, point: Any, form: Form) -> Smooth | Composite:
        """Return the non-convex problem in units and weights."""


# -- solvers and the driver -------------------------------------------------------------------------------------------

P = TypeVar("P", contravariant=True, bound=Problem)


class Monitor(Protocol):
    """The state of a run, which a solver calls in every iteration; it ends the run by ``StopIteration``."""

    tol: float
    """The tolerance; with 0 only the limits end the run."""
    max_iter: int
    """The largest number of iterations."""
    nit: int
    """The number of the last iteration recorded; -1 before the first."""
    seed: int
    """The seed of all random numbers except the starts of random proofs; each use makes a generator of its own."""
    failure_budget: FailureBudget
    """The budget of failure of the run, for oracles."""

    @data_member
    def elapsed(self) -> float:
        """Seconds since the start, without callbacks and printing."""

    @data_member
    def left(self) -> float:
        """Seconds until the time limit; none once the run is to end."""

    def __call__(
        self,
        point: Any,
        fun: float,
        lower: float = -math.inf,
        *,
        rounding: float = 0.0,
        restricted_lower: float = -math.inf,
        dual: Any = None,
        **columns: float,
    ) -> None:
        """Record one iteration, of the values of :class:`Measure` and further ``columns`` of the trace."""

    def check_finite(self, fun: float) -> None:
        """End the run if an objective is infinite or NaN, before anything is computed from it."""

    def set_least(self, point: Any, fun: float, status: Status) -> None:
        """Set a point that is the result if no later one is better; a run that ends by itself then has this status."""

    def stop(self, status: Status) -> NoReturn:
        """End the run with a status."""

    def solve(
        self,
        problem: Any,
        solver: Solver[Any],
        *,
        start: Any,
        tol: float,
        max_iter: int,
        as_point: Callable[[Result], Any] | None = None,
    ) -> Result:
        """Run a solver on a subproblem within the time left.

        ``as_point`` makes a point of the result, which counts if an error ends the run before it is recorded.
        """


class Solver(ABC, Generic[P]):
    """The options of an algorithm and its loop; the driver handles time, limits, printing and the best point.

    Examples
    --------
    Steepest descent with a fixed step:

    >>> import mopn, numpy as np
    >>> class Steepest(mopn.solvers.Solver):
    ...     needs = frozenset({"gradient"})
    ...     def run(self, problem, start, monitor):
    ...         x = start
    ...         while True:
    ...             at = problem.value_gradient(x)
    ...             monitor(x, fun=at.value, lower=problem.dual_bound(at))
    ...             x = x - 0.05 * at.gradient
    >>> features = np.random.default_rng(0).uniform(0, 1, (60, 4))
    >>> problem = mopn.OutputLayerProblem(features, features[:, 0] > 0.5, norm="squared-l2", strength=0.1)
    >>> mopn.minimize(problem, Steepest(), tol=1e-3).success
    True
    """

    # A run ends at gaps of this multiple of its tolerance; the status of the result is by the tolerance itself.
    slack: float = 1.0

    @property
    @abstractmethod
    def needs(self) -> frozenset[str]:
        """Names of the oracles that a problem must offer; they may depend on the options."""

    @abstractmethod
    def run(self, problem: P, start: Any, monitor: Monitor) -> None:
        """Iterate, calling ``monitor(point, fun=..., lower=...)`` each time, until the monitor ends the run."""

    def measure(self, problem: P, point: Any) -> Measure:
        """Objective and proven lower bound of the final point, from scratch; the driver keeps the bounds of the run."""
        return problem.measure(point)


def check_needs(solver: Any, name: str = "solver") -> Set[str]:
    """Return the names of the oracles that a solver needs; raise ``TypeError`` if it is no solver."""
    if isinstance(solver, type) and issubclass(solver, Solver):
        raise TypeError(f"{name} must be a Solver instance, got the class {solver.__name__}; use {solver.__name__}()")
    if not isinstance(solver, Solver):
        if taken_by := getattr(solver, "taken_by", None):
            part = f"{solver.__name__}()" if isinstance(solver, type) else shown(solver)
            raise TypeError(f"{name} must be a Solver, got {part}, which is a part of one: give {taken_by}({part})")
        known = ", ".join(dict.fromkeys(SERVED_BY.values()))
        raise TypeError(f"{name} must be a Solver, one of mopn.solvers ({known}), got {shown(solver)}")
    if not isinstance(solver.needs, Set):
        kind = type(solver).__name__
        raise TypeError(f"{kind}.needs must be a set of names, frozenset({{'gradient'}}) say, got {solver.needs!r}")
    return solver.needs
