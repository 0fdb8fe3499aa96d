"""Corrections of conditional gradient by refits: of the output layer, or of both layers; how loosely, and how long."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, cast

from mopn.solvers.conditional_gradient.correction import Correction, Corrector
from mopn.solvers.conditional_gradient.proofs import Selection
from mopn.solvers.conditional_gradient.schedule import Schedule
from mopn.solvers.conditional_gradient.steps import line_search
from mopn.solvers.fista import FISTA
from mopn.solvers.interface import AtOutputs, Composite, Corrective, CorrectivePoint, Form, Monitor, Solver, WithBarrier
from mopn.solvers.interior_point import InteriorPoint
from mopn.solvers.lbfgs import LBFGS

__all__ = ["FullRefit", "OutputRefit"]

PRECISIONS = ("double", "single")
# What problems of the output layer may offer.
_OF_A_LAYER = frozenset({"composite", "barrier", "gradient"})
# Refits between rounds stop at this fraction of the gap that is left: more accuracy is wasted.
_LOOSENESS = 0.01
# Refits of the output layer prove their gaps once this times the tolerance is aimed at.
_NEAR = 10.0
# Every refit aims at a gap that is smaller by this, at least, than the last one aimed at.
_FALL = 0.7
# By this the least aim falls when a round changed nothing.
_STUCK = 0.1
# Nothing smaller is aimed at if no gap is asked for.
_SMALLEST = 1e-6
# A joint refit ends when ten iterations gain less than this, times the square of the relative gap aimed at: it may
# be loose while the gap is wide, and must outrun the creeping end of L-BFGS when it is not.
_JOINT_TOL = 1e-3


@dataclass(frozen=True)
class _Refit(Correction):
    """Options of all refits."""

    tol: float = 1e-3
    max_iter: int = 100
    polish_iter: int = 500

    def __post_init__(self) -> None:
        if not self.tol > 0:
            raise ValueError(f"tol of a refit must be > 0, got {self.tol!r}")
        for name, number in (("max_iter", self.max_iter), ("polish_iter", self.polish_iter)):
            if not (isinstance(number, Integral) and number >= 1):
                raise ValueError(f"{name} of a refit must be an integer >= 1, got {number!r}")

    @property
    def needs(self) -> frozenset[str]:
        """Problems whose weights can be refitted."""
        return frozenset({"corrective"})


@dataclass(frozen=True)
class OutputRefit(_Refit):
    """The convex refit of all weights, the units fixed.

    Parameters
    ----------
    tol : float, default 1e-3
        The last refit, when ``max_units`` ends the run, stops at this relative duality gap. Between rounds, refits stop
        at a hundredth of the gap that is left, which the oracle's value estimates.
    max_iter : int, default 100
        Largest number of iterations of a refit between rounds. Each starts where the one before ended, so that they
        converge together.
    polish_iter : int, default 500
        Largest number of iterations of the last refit.
    solver : Solver, optional
        Default ``InteriorPoint()``, or ``FISTA()`` where the problem has no barrier to offer (nothing is regularized,
        or there is a linear term, say) or the matrices of Newton's method outgrow the data.
    """

    solver: Solver[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_layer_solver("solver", self.solver)

    @property
    def can_move_units(self) -> bool:
        """Units stay where they are."""
        return False

    def begin(self, problem: Corrective, monitor: Monitor, schedule: Schedule) -> Corrector:
        """Return the refits of one run."""
        return _OutputRefits(self, self.solver, problem, monitor, schedule)


@dataclass(frozen=True)
class FullRefit(_Refit):
    """The non-convex refit of units and weights together.

    Parameters
    ----------
    tol : float, default 1e-3
        The last refit, when ``max_units`` ends the run, stops where ten iterations gain less than a thousandth of this
        (by FISTA less than all of it, as in appendix D of the paper). Between rounds, refits stop at a fraction of the
        square of the gap that is left, which the oracle's value estimates.
    max_iter : int, default 100
        Largest number of iterations of a refit between rounds under ``schedule="fill"``, and of the one after units
        were merged.
    polish_iter : int, default 500
        Largest number of iterations of the last refit, in which the last units enter if it is by L-BFGS. Of all refits
        under ``schedule="grow"``.
    solver : Solver, default LBFGS()
        L-BFGS on the smooth form, or FISTA on the paper's, each after a refit of the output layer.
    output_solver : Solver, optional
        The solver of those; see :class:`OutputRefit`.
    precision : {"double", "single"}, default "double"
        Of the features in refits by L-BFGS. Single is nearly twice as fast, and exact enough for accuracy; losses, sums
        over blocks of samples, gaps and output-layer refits are in double all the same.
    """

    solver: Solver[Any] = field(default_factory=LBFGS)
    output_solver: Solver[Any] | None = None
    precision: str = "double"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_solver("solver", self.solver)
        if self.solver.needs not in (frozenset({"gradient"}), frozenset({"composite"})):
            raise ValueError(
                "solver must be one for the refit of both layers, LBFGS() or FISTA(), as that offers the oracle "
                f"'gradient' or 'composite'; got {self.solver!r}, which needs {', '.join(sorted(self.solver.needs))}"
            )
        _check_layer_solver("output_solver", self.output_solver)
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(map(repr, PRECISIONS))}, got {self.precision!r}")
        if self.precision == "single" and not self.is_smooth:
            raise ValueError("precision='single' is for refits by LBFGS(); leave it out for FISTA()")

    @property
    def is_smooth(self) -> bool:
        """Whether both layers are refitted in the smooth form, which needs no refit of the output layer before."""
        return "gradient" in self.solver.needs

    @property
    def can_move_units(self) -> bool:
        """In the smooth form units are optimised as weights are; FISTA hardly moves them."""
        return self.is_smooth

    def begin(self, problem: Corrective, monitor: Monitor, schedule: Schedule) -> Corrector:
        """Return the refits of one run."""
        return _FullRefits(self, problem, monitor, schedule)


def _check_solver(name: str, solver: Solver[Any]) -> None:
    if not isinstance(solver, Solver):
        raise TypeError(f"{name} must be a Solver, such as FISTA(), got {solver!r}")


def _check_layer_solver(name: str, solver: Solver[Any] | None) -> None:
    if solver is None:
        return
    _check_solver(name, solver)
    if not solver.needs <= _OF_A_LAYER:
        raise ValueError(
            f"{name} must be one for the refit of the output layer, InteriorPoint() or FISTA(), got {solver!r}, which "
            f"needs {', '.join(sorted(solver.needs))}"
        )


class _OutputRefits(Corrector):
    """Refits of the output layer in one run."""

    def __init__(
        self, options: _Refit, solver: Solver[Any] | None, problem: Corrective, monitor: Monitor, schedule: Schedule
    ) -> None:
        _check_certificate(problem, monitor.tol)
        super().__init__(problem, monitor)
        self.options, self.layer_solver = options, solver
        self.start_tol, self.start_iter = _JOINT_TOL * options.tol, options.polish_iter
        self.max_iter = schedule.refit_iterations(options.max_iter, options.polish_iter)
        self.aim, self.near, self.estimate = math.inf, False, math.inf
        self.least_aim = monitor.tol or _SMALLEST

    def aim_at(self, selection: Selection) -> None:
        """Aim at the gap that is left, and lower where the last refit did not make it fall.

        The aim need not be below the tolerance, unless the last round changed nothing: its refit was content with the
        point as it was, without the new units, and would be so for ever.
        """
        if selection.estimate == self.estimate:
            self.least_aim *= _STUCK
        self.estimate = selection.estimate
        self.aim = max(min(selection.estimate, _FALL * self.aim), self.least_aim)
        self.near = self.aim <= _NEAR * self.monitor.tol

    def insert(self, point: CorrectivePoint, at: AtOutputs, units: Any) -> CorrectivePoint:
        """Add the units with no weight: the refit finds it."""
        return point.with_units(units)

    def improve(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit as loosely as the relative gap aimed at allows."""
        return self._output_layer(point, _LOOSENESS * self._finite_aim(), self.max_iter, prove=self.near)

    def polish(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit to ``tol``, once all units are there."""
        return self._output_layer(point, self.options.tol, self.options.polish_iter, prove=True)

    def _finite_aim(self) -> float:
        """Return the gap aimed at; without a regulariser there is none."""
        return self.aim if math.isfinite(self.aim) else self.options.tol / _LOOSENESS

    def _output_layer(self, point: CorrectivePoint, tol: float, max_iter: int, *, prove: bool) -> CorrectivePoint:
        layer_problem = self.problem.output_layer(point)
        solver = self.layer_solver or _default_layer_solver(layer_problem, prove=prove)
        layer = self.monitor.solve(layer_problem, solver, start=point, tol=tol, max_iter=max_iter)
        return point.with_layer(layer).drop_zero_units()


class _FullRefits(_OutputRefits):
    """Refits of both layers in one run."""

    def __init__(self, options: FullRefit, problem: Corrective, monitor: Monitor, schedule: Schedule) -> None:
        super().__init__(options, options.output_solver, problem, monitor, schedule)
        self.full, self.schedule = options, schedule
        self.form = Form("gradient" if options.is_smooth else "composite", single=options.precision == "single")
        # Without a regulariser there is no step that gives new units some weight: the refit of the output layer does.
        self.inserts_by_line_search = options.is_smooth and problem.regularized

    def aim_at(self, selection: Selection) -> None:
        """Aim at the gap that is left.

        Near the end the gap over all units waits for the proof of the output layer's refit. But a refit of both layers
        has no such proof, and is not held up by one where the oracle's bound stays loose either.
        """
        super().aim_at(selection)
        self.near = self.near and not (self.full.is_smooth and selection.atoms.bound_is_best)

    def insert(self, point: CorrectivePoint, at: AtOutputs, units: Any) -> CorrectivePoint:
        """Add the units, by a line search where they need some weight to move."""
        full = self.schedule.is_full(point.n_units + len(units), polished=False)
        if not self.inserts_by_line_search or (self.near and not full):
            return super().insert(point, at, units)
        segment = self.problem.segment(point, at, units, least=at.value, whole=False)
        # A refit of both layers has no use for the features, and needs the memory.
        return segment.point(line_search(segment)).compact()

    def improve(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit as loosely as the relative gap aimed at allows."""
        tol = _joint_tol(self._finite_aim())
        if not self.inserts_by_line_search or self.near:
            point, tol = super().improve(point), self._joint_tol_after_layer(tol)
        return self._both_layers(point, tol, self.max_iter).drop_zero_units()

    def polish(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit to ``tol``, once all units are there."""
        tol, max_iter = _JOINT_TOL * self.options.tol, self.options.polish_iter
        if self.inserts_by_line_search:
            return self._both_layers(point.compact(), tol, max_iter)
        return self._both_layers(super().polish(point), self._joint_tol_after_layer(tol), max_iter)

    def _joint_tol_after_layer(self, tol: float) -> float:
        """Return when the joint refit ends; FISTA goes as far as in the paper's appendix D."""
        return tol if self.full.is_smooth else self.options.tol

    def _both_layers(self, point: CorrectivePoint, tol: float, max_iter: int) -> CorrectivePoint:
        """Refit both layers, merge the units that came to lie together and refit again."""
        point, fun = self._joint(point.drop_zero_units(), tol, max_iter)
        merged = point.merge_parallel_units()
        if merged.n_units < point.n_units:
            again = self.schedule.refit_iterations(self.options.max_iter, self.options.polish_iter)
            merged, merged_fun = self._joint(merged, tol, again)
            # Merging changes the outputs a little: it is kept if the refit mends that.
            if merged_fun <= fun + tol * abs(fun):
                return merged
        return point

    def _joint(self, point: CorrectivePoint, tol: float, max_iter: int) -> tuple[CorrectivePoint, float]:
        if not (point.n_units or point.extra_size):
            return point, math.inf
        problem, solver = self.problem.joint(point, self.form), self.full.solver
        joint = self.monitor.solve(problem, solver, start=None, tol=tol, max_iter=max_iter)
        return point.with_layers(joint), joint.fun


def _default_layer_solver(problem: Composite, *, prove: bool) -> Solver[Any]:
    """Return the default solver of the output layer."""
    if InteriorPoint.needs <= problem.oracles and cast(WithBarrier, problem).newton_size <= 1.0:
        return InteriorPoint(prove=prove)
    return FISTA()


def _joint_tol(aim: float) -> float:
    """Return the relative decrease over ten iterations at which a joint refit ends."""
    return _JOINT_TOL * min(aim, 1.0) ** 2


def _check_certificate(problem: Corrective, tol: float) -> None:
    """Raise if a run is to stop on a gap and none can be known."""
    if tol > 0 and not problem.regularized:
        raise ValueError(
            f"nothing is regularized (a strength of 0), so no certificate exists and tol={tol} can never be reached; "
            "regularize the problem, or give tol=0 and limits (max_iter, max_units, max_time)"
        )
