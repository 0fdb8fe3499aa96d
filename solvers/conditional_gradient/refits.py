"""Corrections of conditional gradient by refits of the output layer, or of both layers; their tolerances and limits."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field
from typing import Any, Literal, cast, get_args

import numpy as np

from mopn.solvers.conditional_gradient.corrective_step import CorrectiveRun, CorrectiveStep
from mopn.solvers.conditional_gradient.proofs import Selection
from mopn.solvers.conditional_gradient.schedule import FEW_UNITS, Exchange, Schedule
from mopn.solvers.conditional_gradient.steps import line_search
from mopn.solvers.fista import FISTA
from mopn.solvers.interface import (
    REST,
    AtOutputs,
    Corrective,
    CorrectivePoint,
    Form,
    Monitor,
    Solver,
    WithBarrier,
    check_needs,
)
from mopn.solvers.interior_point import InteriorPoint
from mopn.solvers.lbfgs import LBFGS, CoarseLBFGS
from mopn.solvers.tools.checks import check_nonnegative, check_options, check_positive, choice, count

Precision = Literal["double", "single"]
# Oracles of output-layer problems.
_LAYER_ORACLES = frozenset({"composite", "barrier", "gradient"})
# Tolerances of joint refits are relative decreases of the objective in ten iterations.

# Fraction of the present gap at which refits of the output layer between rounds stop: more accuracy would be wasted.
_LAYER_TOL = 0.01
# Multiple of the tolerance up to which the target gap is near the end: refits of the output layer prove their gap.
_NEAR_TOL_MULTIPLE = 10.0
# Factor by which the target gap falls at least from refit to refit; 1 where longer refits gain nothing.
_FALL_FACTOR = 0.7
# Factor by which it falls when a round changed nothing.
_FALL_FACTOR_WHEN_STUCK = 0.1
# The least target gap with tol = 0.
_LEAST_TARGET_GAP = 1e-6
# Tolerance of a joint refit, in units of the square of the target gap: loose while the gap is large, and tight enough
# near the end, where L-BFGS converges slowly. If the gap is of second order, the unit is the target gap itself
# (benchmarks/ablation, "A ridge").
_JOINT_TOL = 3e-3
# Fraction of the target gap above which a refit left most of the gap.
_MOST_OF_GAP_FRACTION = 0.9
# Factor by which such refits, from the second one on, tighten the tolerance where the gap is of second order.
_TIGHTENING_FACTOR = 0.1
# The same for the least tolerance, where the objective has levelled off before the gap is proven.
_TIGHTER_FOR_PROOF = 0.1
# Tolerance of the fit of the linear term before units enter, relative to the polish of the output layer.
_START_TOL = 1e-3
# The same in a run for a model, relative to the polish of both layers, which continues this fit.
_START_TOL_OF_MODEL = 0.1
# Units whose weights are together less than this times the target gap, relative, are dropped between rounds: refits
# would shrink superfluous units for ever.
_NEGLIGIBLE_WEIGHT = 1e-4
# They stay if the objective would rise by more than this share of the target gap: outputs may be differences of much
# larger terms, to which small weights matter.
_MAX_RISE_FRACTION = 0.1
# Tolerance of refits on a fraction of the samples, which are a start for others.
_SAMPLE_TOL = 5e-3
# Tolerance of refits of more units than a model may have: the units that leave again are known early.
_SURPLUS_TOL = 5e-2
# Tolerance of the fit of the linear term after joint refits.
_REST_TOL = 1e-13
# The same in a run for a model, relative to the tolerance of the polish.
_REST_TOL_OF_MODEL = 1e-4
# Relative tolerance of the step by which units enter before a refit: every trial reads the data.
_STEP_TOL = 1e-2
# Least tolerance in single precision, or on a grid: the decrease in ten iterations that exceeds the rounding errors.
_COARSE_TOL = 1e-6
_COUNT = count()
_PRECISION = choice(get_args(Precision))


@dataclass(frozen=True)
class _Refit(CorrectiveStep):
    """Options that all refits share."""

    needs = frozenset({"corrective"})

    tol: float = 1e-3
    max_iter: int = 100
    polish_iter: int = 500

    def __post_init__(self) -> None:
        check_options(self, tol=check_positive, max_iter=_COUNT, polish_iter=_COUNT)


@dataclass(frozen=True)
class OutputRefit(_Refit):
    """The convex refit of all weights, with the units fixed.

    Parameters
    ----------
    tol : float, default 1e-3
        Relative duality gap of the polish, the last refit when ``max_units`` is reached. Refits between rounds stop at
        a hundredth of the present gap, which is estimated from the oracle's best value.
    max_iter : int, default 100
        Largest number of iterations of a refit between rounds. Each starts at the result of the one before.
    polish_iter : int, default 500
        Largest number of iterations of the polish.
    solver : Solver, optional
        Default ``InteriorPoint()``, or ``FISTA()`` if the problem offers no barrier (e.g. without a regulariser, or
        with a linear term) or if the matrices of Newton's method are larger than the data.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> refit = mopn.solvers.OutputRefit(solver=mopn.solvers.FISTA(), max_iter=50)
    >>> mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit), tol=1e-2).success
    True
    """

    solver: Solver[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_layer_solver("solver", self.solver)

    def begin(self, problem: Corrective, monitor: Monitor, schedule: Schedule) -> CorrectiveRun:
        """Return the refits of one run."""
        return _OutputRefits(self, self.solver, problem, monitor, schedule)


@dataclass(frozen=True)
class FullRefit(_Refit):
    """The non-convex refit of units and weights together.

    Parameters
    ----------
    tol : float, default 1e-3
        Refits by FISTA stop when an iteration decreases the objective by less than this, relative, as in appendix D of
        the paper; refits of the output layer as for :class:`OutputRefit`. Refits by L-BFGS between rounds stop when ten
        iterations decrease the objective by less than ``0.003 min(gap, 1)**2``, relative, for the estimated gap;
        ``0.003 min(gap, 1)`` with a ridge under l1, as the gap falls like the objective there.
    max_iter : int, default 100
        Largest number of iterations of a refit between rounds, or after units were merged. With L-BFGS and
        ``schedule="grow"``, or after two refits that left most of the gap, it is ``polish_iter`` instead, except under
        l1/linf.
    polish_iter : int, default 500
        Largest number of iterations of the polish. The last units enter in the polish if it is by L-BFGS.
    solver : Solver, default LBFGS()
        ``LBFGS()`` on the smooth form, or ``FISTA()`` on the form of the paper. A refit of the output layer comes
        before each refit by FISTA, and before refits by L-BFGS near the end of a run.
    polish_tol : float, default 1e-6
        The polish by L-BFGS stops when ten iterations decrease the objective by less than this, relative. Predictions
        are often as good with 5e-3.
    least_tol : float, default 0
        Refits by L-BFGS between rounds never continue for smaller decreases than this, however small the gap. For the
        units alone, without a proof, 1e-3 is often enough.
    precision : {"double", "single"}, default "double"
        Precision of the features in refits by L-BFGS to tolerances of 1e-6 or more. Single is up to twice as fast, and
        sufficient for predictions. All else is in double precision: losses, sums over blocks of samples, gaps.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> refit = mopn.solvers.FullRefit(max_iter=50)
    >>> mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit), tol=1e-4).success
    True
    """

    solver: Solver[Any] = field(default_factory=LBFGS)
    polish_tol: float = 1e-6
    least_tol: float = 0.0
    precision: Precision = "double"

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_needs(self.solver) not in (frozenset({"gradient"}), frozenset({"composite"})):
            raise ValueError(
                "solver must be one for the refit of both layers, LBFGS() or FISTA(): the problem offers the oracle "
                f"'gradient' or 'composite'; got {self.solver!r}, which needs {', '.join(sorted(self.solver.needs))}"
            )
        check_options(self, polish_tol=check_positive, least_tol=check_nonnegative, precision=_PRECISION)
        if self.precision == "single" and not self.can_move_units:
            raise ValueError("precision='single' is for refits by LBFGS(); leave it out for FISTA()")

    @property
    def can_move_units(self) -> bool:
        """Whether the refits solve the smooth form; in the paper's form FISTA hardly moves units."""
        return "gradient" in self.solver.needs

    def begin(self, problem: Corrective, monitor: Monitor, schedule: Schedule) -> CorrectiveRun:
        """Return the refits of one run."""
        return _FullRefits(self, problem, monitor, schedule)


def _check_layer_solver(name: str, solver: Solver[Any] | None) -> None:
    if solver is not None and not check_needs(solver, name) <= _LAYER_ORACLES:
        raise ValueError(
            f"{name} must be one for the refit of the output layer, InteriorPoint() or FISTA(), got {solver!r}, which "
            f"needs {', '.join(sorted(solver.needs))}"
        )


class _OutputRefits(CorrectiveRun):
    """Refits of the output layer in one run."""

    def __init__(
        self, options: _Refit, solver: Solver[Any] | None, problem: Corrective, monitor: Monitor, schedule: Schedule
    ) -> None:
        if monitor.tol > 0 and not problem.regularized:
            raise ValueError(
                f"nothing is regularized (a strength of 0), so no certificate exists and tol={monitor.tol} can never "
                "be reached; give a strength > 0, or tol=0 and a limit such as max_units or max_time"
            )
        super().__init__(problem, monitor)
        self.options, self.layer_solver = options, solver
        self.start_tol = _START_TOL * options.tol
        self.start_iter = options.polish_iter
        self.max_iter, self.max_units = options.max_iter, schedule.max_units
        self.target = math.inf
        self.least_target = monitor.tol or _LEAST_TARGET_GAP
        self.fall = _FALL_FACTOR
        self.near = False
        self.estimate = math.inf

    def start(self, point: Any) -> Any:
        """Fit the linear term of an empty point; keep the largest units of a point beyond the limit."""
        return self._limited(super().start(point))

    def _limited(self, point: Any) -> Any:
        """Return the point with its largest units, up to ``max_units``."""
        if self.max_units is None:
            return point
        return self.problem.limited(point, self.max_units, jointly=self.options.can_move_units)

    def set_target(self, selection: Selection) -> None:
        """Set the target gap: the estimated one, but usually at most 0.7 times the last, and at least the tolerance.

        If the last round changed nothing, the point met the target without the new units. The target then falls faster,
        and maybe below the tolerance, so that the run is not stuck.
        """
        fall = self.fall
        if selection.estimate == self.estimate:
            fall = _FALL_FACTOR_WHEN_STUCK
            self.least_target *= _FALL_FACTOR_WHEN_STUCK
        self.estimate = selection.estimate
        self.target = max(min(selection.estimate, fall * self.target), self.least_target)
        self.near = self.target <= _NEAR_TOL_MULTIPLE * self.monitor.tol

    def insert(self, point: CorrectivePoint, at: AtOutputs, units: Any) -> CorrectivePoint:
        """Add the units with weights of zero; the refit finds their weights."""
        return point.with_units(units)

    def improve(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit the output layer, to a fraction of the target gap."""
        return self._refit_layer(point, _LAYER_TOL * self._finite_target(), self.max_iter, prove=self.near)

    def polish(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit the output layer of the full model to ``tol``."""
        return self._refit_layer(point, self.options.tol, self.options.polish_iter, prove=True)

    def _finite_target(self) -> float:
        """Return the target gap; without a regulariser, a gap for which refits stop at ``tol``."""
        return self.target if math.isfinite(self.target) else self.options.tol / _LAYER_TOL

    def _refit_layer(self, point: CorrectivePoint, tol: float, max_iter: int, *, prove: bool) -> CorrectivePoint:
        """Refit the output layer, and drop units without weights."""
        problem = self.problem.output_layer(point)
        solver = self.layer_solver
        if solver is None:
            newton = InteriorPoint.needs <= problem.oracles and cast(WithBarrier, problem).newton_size <= 1.0
            solver = InteriorPoint(prove=prove) if newton else FISTA()
        layer = self.monitor.solve(problem, solver, start=point, tol=tol, max_iter=max_iter, as_point=point.with_layer)
        return point.with_layer(layer).drop_zero_units()


class _FullRefits(_OutputRefits):
    """Refits of both layers in one run."""

    options: FullRefit

    def __init__(self, options: FullRefit, problem: Corrective, monitor: Monitor, schedule: Schedule) -> None:
        super().__init__(options, None, problem, monitor, schedule)
        self.schedule, self.smooth = schedule, options.can_move_units
        # Without a penalty of units no line search can give new units a weight; the refit of the output layer does so.
        self.inserts_by_line_search = self.smooth and problem.regularized and "atomic" in problem.oracles
        self.fits_a_model = self.inserts_by_line_search and schedule.fits_a_model
        if self.fits_a_model:
            self.start_tol = max(self.start_tol, _START_TOL_OF_MODEL * options.polish_tol)
        # Refits in a row that left most of the gap, and the factor of the tolerance that follows.
        self.misses = 0
        self.tightness = 1.0
        self.least_tol = options.least_tol

        far_apart = self.fits_a_model and problem.minima_are_far_apart
        self._exchange = Exchange(problem, monitor) if far_apart else None
        few = far_apart and schedule.max_units is not None and schedule.max_units <= FEW_UNITS
        self._coarse = CoarseLBFGS(*astuple(options.solver)) if few and type(options.solver) is LBFGS else None
        if problem.joint_refits_get_stuck:
            # More rounds are needed, and many short refits soon leave the saddles that a long one would approach.
            self.fall = 1.0
        elif self.smooth and not schedule.fits_a_model:
            self.max_iter = options.polish_iter  # as no polish follows

    def set_target(self, selection: Selection) -> None:
        self.misses = self.misses + 1 if selection.estimate > _MOST_OF_GAP_FRACTION * self.target else 0
        # Many losses may outweigh a ridge: a loose refit then leaves most of the gap that it should close.
        if self.misses >= 2:
            self.tightness *= _TIGHTENING_FACTOR
        super().set_target(selection)
        # Near the end, a refit of the output layer that proves its gap comes first, as the gap over all units depends
        # on it. A joint refit in the smooth form needs none if the oracle has no tighter bound.
        self.near = self.near and not (self.smooth and selection.atoms.bound_is_best)

    def tighten(self) -> None:
        self.least_tol *= _TIGHTER_FOR_PROOF

    def insert(self, point: CorrectivePoint, at: AtOutputs, units: Any) -> CorrectivePoint:
        """Add the units: by a line search if a joint refit follows at once, as it cannot move units of zero weight."""
        full = self.schedule.is_full(point.n_units + len(units), polished=False)
        if not self.inserts_by_line_search or (self.near and not full):
            return super().insert(point, at, units)
        segment = self.problem.segment(point, at, units, least=at.value, whole=False)
        # Compact, as the joint refit does not use the stored features, and needs their memory.
        return segment.point(line_search(segment, _STEP_TOL)).compact()

    def exchange(self, point: CorrectivePoint, at: AtOutputs, selection: Selection) -> CorrectivePoint:
        """Exchange units of a full model, if the schedule fits a model and units can enter with weight."""
        if self._exchange is None:
            return super().exchange(point, at, selection)
        return self.insert(*self._exchange(point, at, selection.atoms, selection.estimate))

    def settle(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit both layers to ``polish_tol``; the units were exchanged on the sample."""
        self._exchange = None
        return self._with_linear_term(self._both_layers(point, self.options.polish_tol, self.options.polish_iter))

    def improve(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit both layers to a tolerance for the target gap; near the end the output layer first."""
        if not self.inserts_by_line_search or self.near:
            point = super().improve(point)
        target = min(self._finite_target(), 1.0)
        factor = max(self.tightness, target) if self.problem.gap_is_of_second_order else target
        tol = _JOINT_TOL * factor * target
        # Many short refits would leave most of the gap again, but leave saddles sooner.
        patient = self.misses >= 2 and not self.problem.joint_refits_get_stuck
        max_iter = self.options.polish_iter if patient else self.max_iter
        point = self._both_layers(point, max(tol, self.least_tol), max_iter)
        return self._without_negligible(self._with_linear_term(point), target)

    def _without_negligible(self, point: CorrectivePoint, target: float) -> CorrectivePoint:
        """Return the point without units that hardly matter, for a relative target gap."""
        point = point.drop_zero_units()
        rest = point.drop_zero_units(_NEGLIGIBLE_WEIGHT * target)
        if rest.n_units == point.n_units:
            return point
        fun = self.problem.output_gradient(point).value
        of_rest = self.problem.output_gradient(rest).value
        return rest if of_rest <= fun + _MAX_RISE_FRACTION * target * abs(fun) else point

    def polish(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit both layers of the full model to ``polish_tol``, first on fractions of the samples if there are many.

        Units beyond ``max_units`` leave before. L-BFGS starts from a random point nearby: the model is nearly
        stationary, and some stationary points are saddles due to symmetries of data and units, which refits keep.
        """
        tol, max_iter = self.options.polish_tol, self.options.polish_iter
        start = np.random.default_rng(self.monitor.seed) if self.smooth else None
        if not self.inserts_by_line_search:
            return self._both_layers(super().polish(point), tol, max_iter, start)
        point = self._without_surplus(point.compact())
        for fraction in self.problem.sample_fractions(point):
            point, _ = self._joint(point.drop_zero_units(), max(tol, _SAMPLE_TOL), max_iter, start, fraction)
            start = None
        return self._with_linear_term(self._both_layers(point, tol, max_iter, start))

    def _without_surplus(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit both layers of a model of too many units, loosely, and remove the units that serve least."""
        if self.max_units is None or point.n_units <= self.max_units:
            return point
        point = point.drop_zero_units()
        fraction = next(iter(self.problem.sample_fractions(point)), 1.0)
        max_iter = self.options.max_iter
        point, _ = self._joint(point, _SURPLUS_TOL, max_iter, sample_fraction=fraction, within_limits=False)
        self.problem.output_layer(point)  # computes the features that all networks below share
        while point.n_units > self.max_units:
            rests = map(point.without_unit, range(point.n_units))
            point = min(rests, key=lambda rest: self.problem.output_gradient(rest).value)
        return point.compact()

    def _with_linear_term(self, point: CorrectivePoint) -> CorrectivePoint:
        """Refit the linear term alone: small errors in it make large gaps, and this is cheap."""
        if not point.extra_size or not self.smooth:
            return point
        least = _REST_TOL_OF_MODEL * self.options.polish_tol if self.fits_a_model else 0.0
        return self._refit(point, REST, LBFGS(gtol=0.0), max(least, _REST_TOL), self.options.polish_iter)

    def _both_layers(
        self, point: CorrectivePoint, tol: float, max_iter: int, start: np.random.Generator | None = None
    ) -> CorrectivePoint:
        """Refit both layers, merge the units that nearly coincide, and refit again if any were merged."""
        tol = tol if self.smooth else self.options.tol  # by FISTA as in appendix D of the paper
        point, fun = self._joint(point.drop_zero_units(), tol, max_iter, start)
        merged = point.merge_parallel_units()
        if merged.n_units < point.n_units:
            merged, merged_fun = self._joint(merged, tol, self.max_iter)
            # Merging changes the outputs a little; it is kept if the refit makes up for that.
            if merged_fun <= fun + tol * abs(fun):
                return merged
        return point

    def _joint(
        self,
        point: CorrectivePoint,
        tol: float,
        max_iter: int,
        start: np.random.Generator | None = None,
        sample_fraction: float = 1.0,
        *,
        within_limits: bool = True,
    ) -> tuple[CorrectivePoint, float]:
        """Refit both layers; return the point and its objective.

        Without ``within_limits`` the point may have more than ``max_units`` units, and is no result of the run.
        """
        if not (point.n_units or point.extra_size):
            return point, math.inf
        if within_limits:
            point = self._limited(point)
        single = self.options.precision == "single" and tol >= _COARSE_TOL
        form = Form("gradient" if self.smooth else "composite", single, sample_fraction, seed=self.monitor.seed)
        solver = self.options.solver
        if self._coarse is not None and tol >= _COARSE_TOL:
            solver = self._coarse
        elif self._coarse is not None:
            # Rounding errors would choose the local minimum. They do no harm once a coarse refit has chosen it.
            point, _ = self._joint(point, _COARSE_TOL, max_iter, start, sample_fraction, within_limits=within_limits)
            start = None
        problem = self.problem.joint(point, form)
        # The objective on a fraction of the samples is another one.
        as_point = point.with_layers if within_limits and sample_fraction == 1.0 else None
        joint = self.monitor.solve(problem, solver, start=start, tol=tol, max_iter=max_iter, as_point=as_point)
        return point.with_layers(joint), joint.fun
