"""Conditional gradient over infinitely many units (Algorithm 1 of Blondel et al., NIPS 2017), and GECO."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

from scipy.optimize import minimize_scalar

from mopn.solvers.driver import Monitor
from mopn.solvers.fista import FISTA
from mopn.solvers.interface import Measure, Solver
from mopn.solvers.interior_point import InteriorPoint
from mopn.solvers.lbfgs import LBFGS
from mopn.solvers.result import Status

__all__ = ["GECO", "ConditionalGradient"]

REFITS = ("none", "output", "full")
STEPS = ("open-loop", "line-search", "short")
PRECISIONS = ("double", "single")
# Refits between rounds stop at this fraction of the outer gap: nothing is gained by solving them more exactly.
_LOOSENESS = 0.01
# The last measurement need not be tighter than what the run has proven already.
_FINAL_PRECISION = 1e-2
# Units added a round, by default: this many where their number is free, and this part of those that are there.
_ATOMS, _GROWTH = 5, 0.1
# Where weights cannot turn, this part of max_units.
_CHOSEN = 0.25
# Refits of both layers make this many turn where they are wanted; more would slow them down.
_MOST = 50
# A run may try so many times max_units units in all; it goes on after a polish that leaves this part of them at most.
_TRIED, _ROOM = 2, 0.5
# Refits of the output layer prove their gaps once this times the tolerance is aimed at.
_NEAR = 10.0
# Every refit aims at a gap that is smaller by this, at least, than the last one aimed at.
_FALL = 0.7
# Nothing smaller is aimed at if no gap is asked for.
_SMALLEST = 1e-6
# How tight the bound of that proof may have to be, relative to the gap that is asked for.
_LOOSEST, _TIGHTEST = 8.0, 0.01
# A tight bound is overdue when the estimated gap is this part of that at the last one; such bounds may take this share
# of the time.
_OVERDUE, _OVERHEAD = 0.3, 0.2
# A joint refit ends when ten iterations gain less than this, times the square of the relative gap aimed at: it may
# be loose while the gap is wide, and must outrun the creeping end of L-BFGS when it is not.
_JOINT_TOL = 1e-3


@dataclass(frozen=True)
class _UnitByUnit(Solver):
    """The part that conditional gradient and GECO share: select units, improve, drop what became zero."""

    max_units: int | None = None
    oracle: Any = "auto"
    refit_tol: float = 1e-3
    refit_iter: int = 100
    needs: ClassVar[frozenset[str]] = frozenset({"lmo"})

    def __post_init__(self) -> None:
        if self.max_units is not None and not (isinstance(self.max_units, Integral) and self.max_units >= 1):
            raise ValueError(f"max_units must be an integer >= 1 or None, got {self.max_units!r}")
        if not self.refit_tol > 0:
            raise ValueError(f"refit_tol must be > 0, got {self.refit_tol!r}")
        if not self.refit_iter >= 1:
            raise ValueError(f"refit_iter must be >= 1, got {self.refit_iter!r}")

    def measure(self, problem: Any, point: Any) -> Measure:
        """Objective and proven gap, by this solver's own oracle; tighter bounds of the run itself stay valid."""
        return problem.measure(point, self.oracle, _FINAL_PRECISION, patience=0.0)


@dataclass(frozen=True)
class ConditionalGradient(_UnitByUnit):
    """Conditional gradient with corrective refits: Algorithm 1 of Blondel et al. (NIPS 2017).

    Parameters
    ----------
    max_units : int, optional
        Largest number of units k, unless the start has more; the run also ends when twice as many have been tried.
        Default no limit.
    oracle : str or oracle, default "auto"
        How units are selected: a method of :func:`mopn.oracles.basis_oracle`, or an oracle that it returned.
    refit_tol : float, default 1e-3
        The last refit, when ``max_units`` ends the run, stops at this relative duality gap (output layer), or where
        ten iterations gain less than a thousandth of it (both layers, by L-BFGS; by FISTA, less than all of it, as in
        appendix D of the paper). Between rounds, refits of the output layer stop at a hundredth of the gap that is
        left, which the oracle's value estimates; those of both layers at a fraction of its square.
    refit_iter : int, default 100
        Largest number of iterations of a refit between rounds, and of the one after units were merged. Each starts
        where the one before ended, so that they converge together.
    polish_iter : int, default 500
        Largest number of iterations of the last refit; with refits of both layers by L-BFGS the last units enter in it.
        Also of all those if ``max_units`` is None.
    joint_precision : {"double", "single"}, default "double"
        Of the features in refits of both layers by L-BFGS. Single is nearly twice as fast, and exact enough for
        accuracy; losses, sums over blocks of samples, gaps and output-layer refits are in double all the same.
    refit : {"output", "full", "none"}, default "output"
        After each new unit, solve the convex problem in the output layer; or also the non-convex one in both
        layers; or take a plain conditional gradient step.
    step : {"line-search", "open-loop", "short"}, default "line-search"
        Plain steps only: exact line search, 2 / (t + 2), or the short step with an adaptive smoothness constant
        (Pedregosa et al., 2020). The open loop forgets where it starts: its first step goes all the way.
    output_solver : Solver, optional
        The solver of the output-layer refit; default ``InteriorPoint()``, or ``FISTA()`` where the problem has no
        barrier to offer (a strength of 0 or a linear term, say) or the matrices of Newton's method outgrow the data.
    joint_solver : Solver, default LBFGS()
        The solver of the refit of both layers: L-BFGS on its smooth form, or FISTA on the paper's.
    atoms_per_round : int, optional
        Units added a round, the oracle's best distinct ones. The default depends on whether they can still move. With
        refits of both layers by L-BFGS a round adds as many as there are already, 5 to 50. Where ``max_units``
        limits them it adds all at once, random ones among them; a quarter where weights cannot turn (l1, or one or
        two outputs). With other refits it adds a tenth, at least 5, or at least 1 where ``max_units`` makes every unit
        count. Plain steps add one.
    """

    refit: str = "output"
    step: str = "line-search"
    output_solver: Solver | None = None
    joint_solver: Solver = field(default_factory=LBFGS)
    atoms_per_round: int | None = None
    polish_iter: int = 500
    joint_precision: str = "double"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.refit not in REFITS:
            raise ValueError(f"refit must be one of {', '.join(map(repr, REFITS))}, got {self.refit!r}")
        if self.step not in STEPS:
            raise ValueError(f"step must be one of {', '.join(map(repr, STEPS))}, got {self.step!r}")
        if self.atoms_per_round is not None and not self.atoms_per_round >= 1:
            raise ValueError(f"atoms_per_round must be >= 1 or None, got {self.atoms_per_round!r}")
        if not self.polish_iter >= 1:
            raise ValueError(f"polish_iter must be >= 1, got {self.polish_iter!r}")
        if self.joint_precision not in PRECISIONS:
            raise ValueError(
                f"joint_precision must be one of {', '.join(map(repr, PRECISIONS))}, got {self.joint_precision!r}"
            )

    def run(self, problem: Any, start: Any, monitor: Monitor) -> None:
        """Select units, record the gap, refit or step; until the monitor ends the run."""
        problem.check_certificate(monitor.tol)
        network, aim, tried, polished = self._with_linear_term(problem, start, monitor), math.inf, 0, False
        select = _Selector(problem, problem.oracle(self.oracle), monitor, limited=self.max_units is not None)
        improve = self._plain_step() if self.refit == "none" else self._refit
        while True:
            residual = problem.residual(network)  # G = dF/dO
            monitor.check_finite(residual.fun)
            # New units, and a proven bound on all units.
            selection = select(network, residual)
            self._record(problem, network, residual, selection, monitor)
            # The next refit aims at the gap that is left, and lower where the last one did not make it fall.
            aim = max(min(selection.estimate, _FALL * aim), monitor.tol or _SMALLEST)
            if self._is_full(network.n_units, tried, polished):
                if polished or self.refit == "none":
                    monitor.stop(Status.MAX_UNITS)
                # A refit of both layers alone has no use for the features, and needs the memory.
                network = network.without_features() if self._enters_at_once(problem) else network
                network, polished = self._polish(problem, network, monitor), True
                continue
            units = problem.useful_units(network, residual, selection.atoms, **self._wanted(problem, network))
            tried += len(units)
            polished = self._enters_at_once(problem) and self._is_full(network.n_units + len(units), tried, False)
            if polished:
                # One long refit instead of a short one and a long one.
                network = _entered(problem, network, residual, units)
                del residual  # it needs the memory
                network = self._polish(problem, network, monitor)
            else:
                # Near the end the gap over all units waits for the refit's own proof: but a refit of both layers has
                # none, and is not held up by one of the output layer where the oracle's bound stays loose either.
                near = aim <= _NEAR * monitor.tol and not (self._smooth_refit and selection.atoms.final)
                network = improve(problem, network, residual, units, monitor, aim, near).drop_zero_units()
                del residual

    def _with_linear_term(self, problem: Any, network: Any, monitor: Monitor) -> Any:
        """Fit the linear term of an empty network, if the problem has one: units then find what it leaves."""
        if network.n_units or not network.linear.size:
            return network
        return self._solve_joint(problem, network, monitor, _JOINT_TOL * self.refit_tol, self.polish_iter)[0]

    def _is_full(self, n_units: int, tried: int, polished: bool) -> bool:
        """Whether no more units may be added; a polish that drops many makes room."""
        if self.max_units is None:
            return False
        return n_units >= (_ROOM if polished else 1.0) * self.max_units or tried >= _TRIED * self.max_units

    @property
    def _smooth_refit(self) -> bool:
        """Whether both layers are refitted in the smooth form, which needs no output-layer refit before."""
        return self.refit == "full" and "gradient" in self.joint_solver.needs

    def _wanted(self, problem: Any, network: Any) -> dict[str, Any]:
        """Return how many units to add, and whether random ones may be among them."""
        k = network.n_units
        if self.refit == "none":
            return {"most": 1}
        if self.max_units is None:
            default = min(max(_ATOMS, k), _MOST) if self._smooth_refit else max(_ATOMS, int(_GROWTH * k))
            return {"most": self.atoms_per_round or default}
        room = self.max_units - k
        if self.atoms_per_round is not None:
            return {"most": min(self.atoms_per_round, room)}
        if self._smooth_refit and problem.turns:
            return {"most": room, "fill": True}
        # Directions that cannot turn must be chosen as the fit goes on.
        default = math.ceil(_CHOSEN * self.max_units) if self._smooth_refit else max(1, int(_GROWTH * k))
        return {"most": min(default, room)}

    def _record(self, problem: Any, network: Any, residual: Any, selection: _Selection, monitor: Monitor) -> None:
        """Report the round; stop if only a proof is missing that the oracle cannot give."""
        atoms = selection.atoms
        gap = problem.gap(network, residual, atoms.bound)
        values = {"n_units": network.n_units, "value": atoms.values[0], "bound": atoms.bound}
        monitor(network.without_features(), fun=residual.fun, gap=gap, **values)
        if selection.final:
            monitor.stop(Status.ESTIMATED)

    def _refit(
        self, problem: Any, network: Any, residual: Any, units: Any, monitor: Monitor, aim: float, near: bool
    ) -> Any:
        """Add units and refit, as loosely as the relative gap aimed at allows."""
        # Where units are limited the polish follows soon.
        max_iter = self.polish_iter if self._smooth_refit and self.max_units is None else self.refit_iter
        if self._enters_at_once(problem) and not near:
            network = _entered(problem, network, residual, units)
            return self._refit_joint(problem, network, monitor, _joint_tol(aim), max_iter)
        # Without a regulariser there is no gap.
        aim = aim if math.isfinite(aim) else self.refit_tol / _LOOSENESS
        tols = _LOOSENESS * aim, _joint_tol(aim)
        return self._refit_layers(problem, network.with_units(units), monitor, *tols, max_iter, prove=near)

    def _polish(self, problem: Any, network: Any, monitor: Monitor) -> Any:
        """Refit to ``refit_tol``, once all units are there."""
        joint_tol = _JOINT_TOL * self.refit_tol
        if self._enters_at_once(problem):
            return self._refit_joint(problem, network, monitor, joint_tol, self.polish_iter)
        return self._refit_layers(problem, network, monitor, self.refit_tol, joint_tol, self.polish_iter, prove=True)

    def _enters_at_once(self, problem: Any) -> bool:
        """Whether new units get some weight by a line search, and then a refit of both layers.

        Without a regulariser there is no such step; otherwise the refit of the output layer finds the weights.
        """
        return self._smooth_refit and problem.restrained

    def _refit_layers(
        self, problem: Any, network: Any, monitor: Monitor, tol: float, joint_tol: float, max_iter: int, *, prove: bool
    ) -> Any:
        """Refit the output layer and, if asked, both layers."""
        layer_problem = problem.output_layer(network)
        solver = self.output_solver or _output_solver(layer_problem, prove=prove)
        layer = monitor.solve(layer_problem, solver, start=network, tol=tol, max_iter=max_iter)
        network = network.with_layer(layer).drop_zero_units()
        if self.refit == "full":
            # FISTA goes as far as in the paper's appendix D.
            joint_tol = joint_tol if self._smooth_refit else self.refit_tol
            return self._refit_joint(problem, network, monitor, joint_tol, max_iter)
        return network

    def _refit_joint(self, problem: Any, network: Any, monitor: Monitor, tol: float, max_iter: int) -> Any:
        """Refit both layers, merge the units that came to lie together and refit again."""
        network, fun = self._solve_joint(problem, network.drop_zero_units(), monitor, tol, max_iter)
        merged = network.merge_parallel_units()
        if merged.n_units < network.n_units:
            again = self.polish_iter if self.max_units is None else self.refit_iter
            merged, merged_fun = self._solve_joint(problem, merged, monitor, tol, again)
            # Merging changes the outputs a little: it is kept if the refit mends that.
            if merged_fun <= fun + tol * abs(fun):
                return merged
        return network

    def _solve_joint(
        self, problem: Any, network: Any, monitor: Monitor, tol: float, max_iter: int
    ) -> tuple[Any, float]:
        if not (network.n_units or network.linear.size):
            return network, math.inf
        (form,) = self.joint_solver.needs
        joint_problem = problem.joint(network, form, single=self.joint_precision == "single")
        joint = monitor.solve(joint_problem, self.joint_solver, start=None, tol=tol, max_iter=max_iter)
        return problem.network(joint.basis, joint.weights, joint.linear), joint.fun

    def _plain_step(self) -> Callable[..., Any]:
        """Return U <- (1 - gamma) U + gamma Delta as a function that remembers t and what it estimated.

        Those are the smoothness, and the least objective so far, which bounds the norm of a minimiser.
        """
        t, curvature, least = 0, math.nan, math.inf

        def step(problem: Any, network: Any, residual: Any, units: Any, *_: Any) -> Any:
            nonlocal t, curvature, least
            least = min(least, residual.fun)
            line = problem.line(network, residual, units, least)
            if self.step == "open-loop":
                gamma = 2.0 / (t + 2.0)
            elif self.step == "line-search":
                gamma = _line_search(line)
            else:
                gamma, curvature = _short_step(line, curvature)
            t += 1
            return line.point(gamma)

        return step


@dataclass(frozen=True)
class GECO(_UnitByUnit):
    """Greedy efficient component optimisation (Shalev-Shwartz, Gonen and Shamir, ICML 2011): a baseline.

    Like conditional gradient with output-layer refits, but nothing bounds the weights: the problem must have
    ``strength=0``, and there is no certificate.

    Parameters
    ----------
    max_units, oracle, refit_tol, refit_iter
        As for :class:`ConditionalGradient`; refits are by L-BFGS and stop at a projected gradient of ``refit_tol``.
    """

    def run(self, problem: Any, start: Any, monitor: Monitor) -> None:
        """Select a unit, refit all weights without a regulariser; until the monitor ends the run."""
        problem.check_unregularized()
        problem.check_certificate(monitor.tol)
        network = start
        while True:
            residual = problem.residual(network)
            atoms = problem.lmo(residual, self.oracle)
            monitor(network, fun=residual.fun, n_units=network.n_units, value=atoms.values[0], bound=atoms.bound)
            if self.max_units is not None and monitor.nit >= self.max_units:
                monitor.stop(Status.MAX_UNITS)
            network = network.with_units(atoms.basis[:1])
            layer = monitor.solve(
                problem.output_layer(network),
                LBFGS(gtol=self.refit_tol),
                start=network,
                tol=0.0,
                max_iter=self.refit_iter,
            )
            network = network.with_layer(layer).drop_zero_units()


class _Selection(NamedTuple):
    """Atoms, the relative gap as their best value estimates it, and whether all was spent to prove it."""

    atoms: Any
    estimate: float
    final: bool


class _Selector:
    """Selects units, and decides what to pay for the bound on all units.

    While the gap is wide a bound costs little, and little more than the gap of the round before makes worth while. Once
    the estimated gap has fallen well below that of the last tight bound, another is paid for, within a share of the
    time of the run. All of the oracle's limits may be spent once nothing but the proof is missing: the estimate is well
    below ``tol``, or below it and no longer falling fast. Where units are ``limited``, a run is after a model: then the
    proof may cost what the model did.
    """

    def __init__(self, problem: Any, oracle: Any, monitor: Monitor, *, limited: bool) -> None:
        self.problem, self.oracle, self.monitor, self.limited = problem, oracle, monitor, limited
        self.estimate, self.tight, self.spent = math.inf, 1.0, 0.0

    def __call__(self, network: Any, residual: Any) -> _Selection:
        """Return the best units for a gradient."""
        tol, before = self.monitor.tol, self.estimate
        gap = partial(_relative_gap, self.problem, network, residual)
        atoms = self.problem.lmo(residual, self.oracle, precision=max(before, tol), patience=0.0)
        self.estimate = gap(atoms.values[0])
        if gap(atoms.bound) <= tol:
            return _Selection(atoms, self.estimate, False)
        if self.estimate <= 0.5 * tol or 0.5 * before < self.estimate <= tol:
            if atoms.final:
                return _Selection(atoms, self.estimate, True)
            precision = _deciding_precision(gap, atoms.values[0], tol)
            patience = min(self.monitor.left, self.monitor.elapsed) if self.limited else self.monitor.left
            proof = self.problem.lmo(residual, self.oracle, precision=precision, patience=patience)
            # What a clock may have cut short must not change the model.
            atoms = replace(atoms, bound=min(atoms.bound, proof.bound)) if self.limited else proof
            self.estimate = gap(atoms.values[0])
            return _Selection(atoms, self.estimate, self.estimate <= tol)
        wide = gap(atoms.bound) > 2.0 * self.estimate
        if self.estimate <= _OVERDUE * self.tight and wide and not atoms.final:
            atoms = self._tightened(residual, atoms)
        return _Selection(atoms, self.estimate, False)

    def _tightened(self, residual: Any, atoms: Any) -> Any:
        """Return the same atoms with a tighter bound: what depends on the clock must not change the run."""
        patience = min(_OVERHEAD * self.monitor.elapsed - self.spent, self.monitor.left)
        if patience <= 0:
            return atoms
        began = self.monitor.elapsed
        bound = self.problem.bound(residual, self.oracle, precision=self.estimate, patience=patience)
        self.spent += self.monitor.elapsed - began
        if bound < atoms.bound:
            self.tight = self.estimate
        return replace(atoms, bound=min(bound, atoms.bound))


def _deciding_precision(gap: Callable[[float], float], value: float, tol: float) -> float:
    """Return how tight a bound proves the gap ``tol``: a power of 2 times it."""
    precision = _LOOSEST * tol
    while precision > _TIGHTEST * tol and gap(value * (1.0 + precision)) > tol:
        precision *= 0.5
    return precision


def _relative_gap(problem: Any, network: Any, residual: Any, bound: float) -> float:
    """Return the gap over the objective, for a bound on all units, or for a value as if it were one."""
    return problem.gap(network, residual, bound) / max(abs(residual.fun), math.ulp(0.0))


def _output_solver(problem: Any, *, prove: bool) -> Solver:
    """Return the default solver of the output layer."""
    if InteriorPoint.needs <= problem.oracles and problem.newton_size <= 1.0:
        return InteriorPoint(prove=prove)
    return FISTA()


def _entered(problem: Any, network: Any, residual: Any, units: Any) -> Any:
    """Return the network with new units of some weight; without features, which a refit of both layers has no use for.

    They would take the memory that the refit needs.
    """
    line = problem.line(network, residual, units, residual.fun, whole=False)
    return line.point(_line_search(line)).without_features()


def _joint_tol(aim: float) -> float:
    """Return the relative decrease over ten iterations at which a joint refit ends."""
    return _JOINT_TOL * min(aim, 1.0) ** 2


def _line_search(line: Any) -> float:
    """Exact line search on [0, 1]; never worse than not moving."""
    # The best step may be tiny, if the vertex is far: the interval grows from what the smoothness promises.
    upper = min(1.0, 10.0 * line.gap / max(line.curvature * line.squared_length, math.ulp(0.0)))
    if not upper > 0:
        return 0.0
    while True:
        found = minimize_scalar(line.value, bounds=(0.0, upper), method="bounded", options={"xatol": 1e-10 * upper})
        if upper == 1.0 or found.x < 0.9 * upper:
            return min((0.0, float(found.x), upper), key=line.value)
        upper = min(1.0, 10.0 * upper)


def _short_step(line: Any, curvature: float) -> tuple[float, float]:
    """Take the step min(1, gap / (L ||D||^2)) with L backtracked until the quadratic model lies above the objective."""
    curvature = line.curvature if math.isnan(curvature) else 0.5 * curvature
    # An approximate oracle may return a vertex that is worse than the point itself.
    if not line.gap > 0:
        return 0.0, curvature
    start = line.value(0.0)
    while True:
        gamma = min(1.0, line.gap / max(curvature * line.squared_length, math.ulp(0.0)))
        model = start - gamma * line.gap + 0.5 * gamma**2 * curvature * line.squared_length
        if line.value(gamma) <= model + 1e-14 * abs(start) or gamma * line.gap <= 1e-16 * abs(start):
            return gamma, curvature
        curvature *= 2.0
