"""What solvers ask of problems (the oracles), and what solvers and the driver ask of each other.

A problem lists the oracles that it offers in ``problem.oracles``; a solver lists those that it needs in
``Solver.needs``. The protocols below say which members each name stands for:

================ ==================== ==================================================
"gradient"       :class:`Smooth`      L-BFGS
"composite"      :class:`Composite`   FISTA
"barrier"        :class:`WithBarrier` interior point
"blocks"         :class:`Blockwise`   coordinate descent
"passes"         :class:`WithPasses`  SGD, AdaGrad
"batch_gradient" :class:`Sampled`     stochastic gradient methods of one's own
"atomic"         :class:`Atomic`      conditional gradient by plain steps
"corrective"     :class:`Corrective`  conditional gradient with refits, GECO
================ ==================== ==================================================

Members that are data are read-only here: attributes and properties serve alike.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, NoReturn, Protocol, TypeVar

import numpy as np

from mopn.solvers.result import Result, Status

__all__ = [
    "SMOOTH",
    "UNLIMITED",
    "ActiveUnits",
    "AtOutputs",
    "Atomic",
    "AtomicPoint",
    "Atoms",
    "Barrier",
    "Blockwise",
    "Composite",
    "Corrective",
    "CorrectivePoint",
    "Effort",
    "Evaluation",
    "Form",
    "LayerHessian",
    "Measure",
    "Monitor",
    "Passes",
    "Problem",
    "Quadratic",
    "Sampled",
    "Segment",
    "Smooth",
    "Solver",
    "WithBarrier",
    "WithPasses",
]

Bounds = tuple[np.ndarray, np.ndarray]


class Evaluation(NamedTuple):
    """Value and gradient at a point, and the loss gradient G (n, m) they came from (None where there is none)."""

    value: float
    gradient: np.ndarray
    G: np.ndarray | None = None


class Measure(NamedTuple):
    """A point measured from scratch: its objective and its proven gap (inf where nothing is known)."""

    fun: float
    gap: float


# -- problems ---------------------------------------------------------------------------------------------------------


class Problem(Protocol):
    """What every problem offers, whatever its oracles are. To inherit from it gives the default of ``dual_bound``."""

    @property
    def oracles(self) -> frozenset[str]:
        """Names of the oracles offered, among those of the table above."""
        ...

    def start(self, start: Any = None) -> Any:
        """Turn what the user gave as a start (None: the default one) into a feasible point of its own."""
        ...

    def measure(self, point: Any) -> Measure:
        """Objective and proven gap of a point, from scratch."""
        ...

    def unpack(self, point: Any) -> dict[str, Any]:
        """Named views of a point for the result; "x" is the flat array."""
        ...

    def dual_bound(self, at: Evaluation) -> float:
        """Proven lower bound of the minimum from an evaluation at any point; -inf where nothing is known."""
        return -math.inf


class Smooth(Problem, Protocol):
    """The oracle "gradient": the whole objective is smooth, perhaps within bounds."""

    @property
    def bounds(self) -> Bounds | None:
        """Lower and upper bounds on the flat point, or None."""
        ...

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        """Value and gradient of the whole objective."""
        ...


class Composite(Problem, Protocol):
    """The oracle "composite": a smooth part plus a regulariser with a prox (or projection).

    The smooth part is a function of a linear image of the point (of the outputs Phi V, say, or of the point itself), so
    that solvers extrapolate images instead of computing them again.
    """

    @property
    def curvature(self) -> float:
        """Lipschitz constant of the smooth part's gradient, or a guess of it."""
        ...

    def image(self, x: np.ndarray) -> np.ndarray:
        """Linear image of a point, through which the smooth part is evaluated."""
        ...

    def smooth(self, image: np.ndarray) -> Evaluation:
        """Value of the smooth part at an image, and its gradient with respect to the point."""
        ...

    def smooth_value(self, image: np.ndarray) -> float:
        """Value of the smooth part alone."""
        ...

    def regularizer_value(self, x: np.ndarray) -> float:
        """Value of the regulariser at a point that ``prox`` returned."""
        ...

    def prox(self, x: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``regulariser(u) + ||u - x||^2 / (2 step)`` over u."""
        ...


class Quadratic(Protocol):
    """A barrier's part of the Newton matrix over (k, m): diag(diagonal) - sum_r e_r e_r' + z z', as three arrays."""

    @property
    def diagonal(self) -> np.ndarray:
        """Positive, (k, m)."""
        ...

    @property
    def rows(self) -> np.ndarray | None:
        """The vectors e_r, one within each row, (k, m)."""
        ...

    @property
    def common(self) -> np.ndarray | None:
        """The vector z, (k, m)."""
        ...

    def product(self, D: np.ndarray) -> np.ndarray:
        """Return the product with a direction D (k, m)."""
        ...


class Barrier(Protocol):
    """A smoothed regulariser with multipliers, at strictly feasible weights."""

    @property
    def degree(self) -> int:
        """``degree * mu`` is the gap on the central path; 0 if no barrier is needed."""
        ...

    @property
    def V(self) -> np.ndarray:
        """The present weights (k, m)."""
        ...

    @property
    def complementarity(self) -> float:
        """The present mean of the products of distances and multipliers."""
        ...

    def linearize(self, mu: float) -> tuple[Quadratic, np.ndarray]:
        """Set the level mu; return the barrier's part of the Newton matrix and its gradient (k, m)."""
        ...

    def value(self, V: np.ndarray) -> float:
        """Return the smoothed regulariser at the present level; inf where it is not defined."""
        ...

    def advance(self, D: np.ndarray, step: float) -> float:
        """Move V by a step along D, and the multipliers by their own; return the smaller of the two steps."""
        ...

    def sparsified(self) -> np.ndarray:
        """Return V with exact zeros for the weights whose bounds are not active."""
        ...


class LayerHessian(Protocol):
    """The second derivative of a smooth part with respect to the point (k, m)."""

    @property
    def shift_invariant(self) -> bool:
        """Whether it is constant when all outputs of a sample shift."""
        ...

    def product(self, D: np.ndarray) -> np.ndarray:
        """Return the product with a direction D (k, m)."""
        ...

    def blocks(self) -> np.ndarray:
        """Return its diagonal blocks, column by column (m, k, k)."""
        ...


class WithBarrier(Composite, Protocol):
    """The oracle "barrier": second derivatives, and the regulariser as a barrier function with multipliers.

    The matrices of Newton's method are those of the loss plus those of the barrier; see
    :class:`mopn.solvers.InteriorPoint`. Points have a ``shape`` (k, m), and ``dual_bound`` is finite.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (k, m) of the point as a matrix."""
        ...

    @property
    def newton_size(self) -> float:
        """Size of the matrices of Newton's method over that of the data: beyond 1 a first-order method is cheaper."""
        ...

    def hessian(self, image: np.ndarray) -> LayerHessian:
        """Return the second derivative of the smooth part."""
        ...

    def barrier(self, V: np.ndarray, mu: float, gradient: np.ndarray) -> Barrier:
        """Return a state of the regulariser near V whose gap is about ``mu``."""
        ...

    def predicted_bound(self, at: Evaluation, hessian: Any, step: np.ndarray) -> float:
        """Proven lower bound of the minimum from the loss gradient predicted for a step of the image."""
        ...


class Blockwise(Problem, Protocol):
    """The oracle "blocks": the objective can be minimised, or an upper bound of it, along each coordinate."""

    def blocks(self, x: np.ndarray, n_threads: int) -> Any:
        """Return coordinate descent from a point: its ``updates``, ``value()`` and ``point()``.

        Each update minimises along the coordinates of one block in turn; it never increases the objective, and
        returns the largest modulus of the derivatives that it found.
        """
        ...


class Passes(Protocol):
    """Stochastic gradient descent on the way, over ``n`` samples."""

    @property
    def n(self) -> int:
        """Number of samples."""
        ...

    def run(self, order: np.ndarray, batch: int, step: float, *, adaptive: bool) -> None:
        """Take a step along the mean gradient of every ``batch`` of the samples in ``order``.

        If ``adaptive``, each parameter's step is divided by the root of the sum of its squared gradients so far.
        """
        ...

    def point(self) -> np.ndarray:
        """Return the flat point."""
        ...


class WithPasses(Problem, Protocol):
    """The oracle "passes": compiled passes of stochastic gradient descent and AdaGrad."""

    def passes(self, x: np.ndarray) -> Passes:
        """Return passes from a point, which is left as it is."""
        ...


class Sampled(Problem, Protocol):
    """The oracle "batch_gradient": the objective is a sum over samples, whose gradients can be had one by one."""

    def batch_gradient(self, x: np.ndarray, rows: Any) -> np.ndarray:
        """Return the gradient (size,) of the losses of some samples, and ``len(rows) / n`` of that of the penalties.

        Those of the parts of a partition add up to the gradient of the objective.
        """
        ...


# -- problems over infinitely many units ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effort:
    """What a proof may cost, and how tight a bound is asked for; an oracle's own limits hold as well.

    Parameters
    ----------
    precision : float, optional
        How far the bound may exceed the best value found, relative; default as tight as the oracle goes.
    work : float, default inf
        Floating-point operations, about.
    nodes : float, default inf
        Nodes of branch and bound.
    seconds : float, default inf
        Seconds. What a clock cuts short does not repeat: where results must, work and nodes are the limits to give.
    """

    precision: float | None = None
    work: float = math.inf
    nodes: float = math.inf
    seconds: float = math.inf


# As tight as the oracle goes, within its own limits.
UNLIMITED = Effort()


class AtOutputs(Protocol):
    """An objective, and the loss gradient it came with, which only the problem looks at."""

    @property
    def value(self) -> float:
        """The objective."""
        ...


class Atoms(Protocol):
    """Units that an oracle selected for a gradient, and its bound on all units."""

    @property
    def basis(self) -> Sequence[Any] | np.ndarray:
        """The units, best first."""
        ...

    @property
    def values(self) -> np.ndarray:
        """What each of them attains: lower bounds of the dual norm."""
        ...

    @property
    def bound(self) -> float:
        """Proven upper bound of the dual norm."""
        ...

    @property
    def bound_is_best(self) -> bool:
        """Whether the oracle has no tighter bound, whatever the effort."""
        ...


class AtomicPoint(Protocol):
    """A combination of units."""

    @property
    def n_units(self) -> int:
        """Number of units."""
        ...

    def compact(self) -> AtomicPoint:
        """Return the point as something to keep: without what can be computed again."""
        ...

    def drop_zero_units(self) -> AtomicPoint:
        """Return the point without the units whose weights are all zero."""
        ...


class Segment(Protocol):
    """The points U(gamma) on the way to a better one, 0 <= gamma <= limit, for line searches."""

    @property
    def limit(self) -> float:
        """The largest gamma."""
        ...

    @property
    def gap(self) -> float:
        """Minus the derivative of the objective along the segment at gamma = 0."""
        ...

    @property
    def curvature(self) -> float:
        """Smoothness constant of the objective along the segment, per ``squared_length``."""
        ...

    @property
    def squared_length(self) -> float:
        """Squared length of the segment from gamma = 0 to 1."""
        ...

    def value(self, gamma: float) -> float:
        """Objective at U(gamma), or an upper bound of it."""
        ...

    def point(self, gamma: float) -> Any:
        """Return U(gamma)."""
        ...


class ActiveUnits(NamedTuple):
    """The convex combination that a point is: coefficients (k,), and the slope <G, Delta_r> of every vertex (k,)."""

    coefficients: np.ndarray
    slopes: np.ndarray


class Atomic(Problem, Protocol):
    """The oracle "atomic": a convex problem over infinitely many units; what plain, away and pairwise steps need."""

    def output_gradient(self, point: Any) -> AtOutputs:
        """Objective at a point, and the loss gradient G at its outputs."""
        ...

    def oracle(self, spec: Any) -> Any:
        """Return the oracle that a user named, to be passed to ``lmo`` and ``bound``."""
        ...

    def lmo(self, at: Any, oracle: Any, effort: Effort) -> Atoms:
        """Select units for a gradient, with a proven bound on every unit: the linear minimisation oracle."""
        ...

    def bound(self, at: Any, oracle: Any, effort: Effort) -> float:
        """Return the proven bound on every unit alone."""
        ...

    def gap(self, point: Any, at: Any, bound: float) -> float:
        """Upper bound of the distance to the minimum, given a bound of the dual norm; proven if that is."""
        ...

    def segment(
        self, point: Any, at: Any, units: Any, *, least: float = math.inf, whole: bool = True, away: int | None = None
    ) -> Segment:
        """Return the segment from a point towards the vertices of some units.

        ``least`` is an objective value already reached, from which problems with a penalty bound their minimisers.
        Unless the point moves as a ``whole``, what it has besides units stays. With ``away`` the segment leaves the
        vertex of that unit of the point: for ``units=None`` along U - Delta_away, otherwise along the pairwise
        direction.
        """
        ...

    def active_units(self, point: Any, at: Any) -> ActiveUnits:
        """Return the point as a combination of vertices, for away steps."""
        ...


class CorrectivePoint(AtomicPoint, Protocol):
    """A combination of units whose weights, and which itself, can be refitted."""

    @property
    def extra_size(self) -> int:
        """Number of coefficients beside the units and their weights: those of a linear term, say."""
        ...

    def compact(self) -> CorrectivePoint:
        """Return the point as something to keep: without what can be computed again."""
        ...

    def drop_zero_units(self) -> CorrectivePoint:
        """Return the point without the units whose weights are all zero."""
        ...

    def with_units(self, units: Any) -> CorrectivePoint:
        """Return the point with more units, whose weights are zero."""
        ...

    def with_layer(self, refit: Result) -> CorrectivePoint:
        """Return the point with the weights that a refit of the output layer found."""
        ...

    def with_layers(self, refit: Result) -> CorrectivePoint:
        """Return the point that a refit of both layers found."""
        ...

    def merge_parallel_units(self) -> CorrectivePoint:
        """Return the point with units that nearly coincide made one."""
        ...


class Form(NamedTuple):
    """A form of the refit of both layers: the oracle that it offers, and whether features are in single precision."""

    oracle: Literal["gradient", "composite"] = "gradient"
    single: bool = False


SMOOTH = Form("gradient")


class Corrective(Atomic, Protocol):
    """The oracle "corrective": weights, and units with them, can be refitted by solvers of their own."""

    @property
    def regularized(self) -> bool:
        """Whether anything restrains the weights; if not, no certificate exists."""
        ...

    @property
    def can_rotate_units(self) -> bool:
        """Whether refits of both layers can rotate the weights of a unit in any direction."""
        ...

    def select_units(self, point: Any, at: Any, atoms: Any, most: int, *, fill: bool = False) -> Any:
        """Return the atoms whose dual value exceeds what weight costs, at most so many and at least the best one.

        ``fill`` up with other units of that kind if there are fewer.
        """
        ...

    def output_layer(self, point: Any) -> Composite:
        """Return the convex problem in the weights, the units fixed."""
        ...

    def joint(self, point: Any, form: Form) -> Smooth | Composite:
        """Return the non-convex problem in units and weights."""
        ...


# -- solvers and the driver -------------------------------------------------------------------------------------------

P = TypeVar("P", contravariant=True, bound=Problem)


class Monitor(Protocol):
    """What a solver calls once an iteration, and asks about its run; the driver implements it."""

    @property
    def tol(self) -> float:
        """The tolerance asked for; 0 leaves the end to the limits."""
        ...

    @property
    def nit(self) -> int:
        """The number of the last iteration recorded; -1 before the first."""
        ...

    @property
    def elapsed(self) -> float:
        """Seconds since the start, without callbacks and printing."""
        ...

    @property
    def left(self) -> float:
        """Seconds until the time limit; none once the run is to end."""
        ...

    def __call__(self, point: Any, fun: float, gap: float = math.inf, **columns: float) -> None:
        """Record one iteration; raises ``StopIteration`` when the run is over."""
        ...

    def check_finite(self, fun: float) -> None:
        """End the run if an objective is infinite or NaN: before more is computed from it."""
        ...

    def stop(self, status: Status) -> NoReturn:
        """End the run for a reason of the solver's own."""
        ...

    def solve(self, problem: Any, solver: Solver[Any], *, start: Any, tol: float, max_iter: int) -> Result:
        """Run a solver on a subproblem within this run's time."""
        ...


class Solver(ABC, Generic[P]):
    """Options of an algorithm and its loop; the driver owns time, limits, printing and the best point."""

    @property
    @abstractmethod
    def needs(self) -> frozenset[str]:
        """Names of the oracles that a problem must offer; they may depend on the options."""

    @abstractmethod
    def run(self, problem: P, start: Any, monitor: Monitor) -> None:
        """Loop for ever, calling ``monitor(point, fun=..., gap=...)`` once an iteration; the monitor ends the run."""

    def measure(self, problem: P, point: Any) -> Measure:
        """Objective and proven gap of the final point, from scratch."""
        return problem.measure(point)
