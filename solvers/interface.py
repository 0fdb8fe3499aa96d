"""What solvers ask of problems (the oracles), and what the driver asks of solvers.

A problem lists the oracles that it offers in ``problem.oracles``; a solver lists those that it needs in
``Solver.needs``. The protocols below say which methods each name stands for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from mopn.solvers.driver import Monitor

__all__ = [
    "Atomic",
    "Barred",
    "Blockwise",
    "Composite",
    "Dual",
    "Evaluation",
    "Measure",
    "Problem",
    "Sampled",
    "Smooth",
    "Solver",
]


class Evaluation(NamedTuple):
    """Value and gradient at a point, and the loss gradient (n, m) they came from (None where there is none)."""

    value: float
    gradient: np.ndarray
    residual: np.ndarray | None = None


class Measure(NamedTuple):
    """A point measured from scratch: its objective and its proven gap (inf where nothing is known)."""

    fun: float
    gap: float


class Problem(Protocol):
    """What every problem offers, whatever its oracles are."""

    @property
    def oracles(self) -> frozenset[str]:
        """Names of the oracles offered.

        They are "gradient", "composite", "lmo", "dual", "barrier", "blocks" and "batch_gradient".
        """
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


class Smooth(Problem, Protocol):
    """The oracle "gradient": the whole objective is smooth, perhaps within bounds."""

    bounds: Any

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        """Value and gradient of the whole objective."""
        ...


class Blockwise(Problem, Protocol):
    """The oracle "blocks": the objective can be minimised, or an upper bound of it, along each coordinate."""

    def blocks(self, x: np.ndarray, n_threads: int) -> Any:
        """Return coordinate descent from a point: its ``updates``, ``value()`` and ``point()``.

        Each update minimises along the coordinates of one block in turn; it never increases the objective, and
        returns the largest modulus of the derivatives that it found.
        """
        ...


class Sampled(Problem, Protocol):
    """The oracle "batch_gradient": steps along stochastic gradients, which are sparse."""

    def stochastic(self, x: np.ndarray, sums: np.ndarray | None = None) -> Any:
        """Return passes over ``n`` samples from a point: ``run(order, batch, step, adaptive=)``, and ``point()``.

        ``sums`` are sums of squared gradients to go on from, flat like the point; ``sums()`` returns them.
        """
        ...


class Composite(Problem, Protocol):
    """The oracle "composite": a smooth part plus a regulariser with a prox (or projection).

    The smooth part is a function of a linear image of the point (of the outputs Phi V, say, or of the point itself), so
    that solvers extrapolate images instead of computing them again.
    """

    curvature: float

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


class Dual(Problem, Protocol):
    """The oracle "dual": a proven lower bound of the minimum from an evaluation at any point."""

    def dual_bound(self, at: Evaluation) -> float:
        """Proven lower bound of the minimum."""
        ...


class Barred(Composite, Dual, Protocol):
    """The oracle "barrier": second derivatives, and the regulariser as a barrier function with multipliers.

    The matrices of Newton's method are those of the loss plus those of the barrier; see
    :class:`mopn.solvers.InteriorPoint`. Points have a ``shape`` (k, m).
    """

    shape: tuple[int, int]
    newton_size: float

    def hessian(self, image: np.ndarray) -> Any:
        """Return the second derivative of the smooth part: products, blocks column by column, ``shift_invariant``."""
        ...

    def barrier(self, V: np.ndarray, mu: float, gradient: np.ndarray) -> Any:
        """Return a state of the regulariser near V whose gap is about ``mu``."""
        ...

    def predicted_bound(self, at: Evaluation, hessian: Any, step: np.ndarray) -> float:
        """Proven lower bound of the minimum from the loss gradient predicted for a step of the image."""
        ...


class Atomic(Problem, Protocol):
    """The oracle "lmo": a convex problem over infinitely many units, whose points are networks.

    A network has ``n_units``, ``basis``, ``weights``, ``linear`` (the coefficients of a linear term, of size 0 without
    one), ``with_units``, ``with_layer``, ``drop_zero_units`` and ``without_features``; atoms have ``basis``, ``values``
    and a proven ``bound`` on all units. ``restrained`` says whether a regulariser restrains the weights, ``turns``
    whether refits of both layers can turn those of a unit in any direction.
    """

    restrained: bool
    turns: bool

    def residual(self, network: Any) -> Any:
        """Objective (``fun``) of a network, and the loss gradient at its outputs."""
        ...

    def lmo(self, residual: Any, oracle: Any, precision: float | None, patience: float) -> Any:
        """Return atoms: the best units for a gradient, and a bound on all of them.

        The bound should exceed the best value by ``precision`` at most, relative; ``patience`` is the
        seconds that it may cost, 0 for as little as a round is worth.
        """
        ...

    def useful_units(self, network: Any, residual: Any, atoms: Any, most: int, *, fill: bool = False) -> np.ndarray:
        """Return the atoms that are worth their cost, at most so many; ``fill`` up with others if there are fewer."""
        ...

    def gap(self, network: Any, residual: Any, bound: float) -> float:
        """Upper bound of the distance to the minimum, given a bound of the dual norm; proven if that is."""
        ...

    def output_layer(self, network: Any) -> Any:
        """Return the convex problem in the weights, the units fixed."""
        ...

    def joint(self, network: Any, oracle: str, *, single: bool = False) -> Any:
        """Return the non-convex problem in units and weights, in the form that offers an oracle."""
        ...

    def line(self, network: Any, residual: Any, units: np.ndarray, least: float, *, whole: bool = True) -> Any:
        """Return the segment of a plain conditional gradient step, of the ``whole`` point or of the units alone."""
        ...


class Solver(ABC):
    """Options of an algorithm and its loop; the driver owns time, limits, printing and the best point."""

    needs: ClassVar[frozenset[str]]

    @abstractmethod
    def run(self, problem: Any, start: Any, monitor: Monitor) -> None:
        """Loop for ever, calling ``monitor(point, fun=..., gap=...)`` once an iteration; the monitor ends the run."""

    def measure(self, problem: Any, point: Any) -> Measure:
        """Objective and proven gap of the final point, from scratch."""
        return problem.measure(point)
