"""What the estimators of networks decide for their users: one policy per family, used by every fit.

Users who want to decide themselves give ``refit`` an object of :mod:`mopn.solvers`, which sets its own tolerances and
precision, or call :func:`mopn.minimize`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mopn.network.oracles import BasisOracle, OracleName
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import path_solver
from mopn.solvers import ConditionalGradient
from mopn.solvers.conditional_gradient import Precision, RefitName, make_corrective_step
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.conditional_gradient.schedule import FEW_UNITS

# A fit without proofs ends at the first one of these multiples of its tolerance: of the estimated gap, which overstates
# how far the objective is from its minimum, and of what a round lowers the objective by (benchmarks/tables).
_ESTIMATED, _LOWERED = 20.0, 0.1


@dataclass(frozen=True)
class FitPolicy:
    """The choices of a fit that are no parameters of an estimator.

    The schedule follows from ``max_units``: with a number the aim is the best model of this size
    (``schedule="fill"``), with None it is a proof (``schedule="grow"``).

    Attributes
    ----------
    polish_tol : float, default inf
        The last refit of both layers ends at this tolerance if ``tol`` is larger.
    layer_tol : float, default 1e-3
        Refits of the output layer alone, which are convex and cheap, end at this relative gap if ``tol`` is larger.
    single_precision : bool, default False
        Whether refits of both layers are in single precision where that is faster: labels are as accurate, numbers are
        not. Few units are refitted in double precision, as rounding errors would choose among their local minima.
    tol_at_zero : float, default 5e-3
        The tolerance of the last refit if ``tol`` is 0, where only limits stop a fit.
    max_rounds : int, default 1000
        Largest number of rounds. They mostly end by the gap or the number of units, long before.
    patience : int, default 10
        With validation: stop after this number of rounds without a better score.
    validated_units : int, default 5
        Units added per round where validation chooses their number between rounds, and refits move units.
    prove : bool, default True
        Whether time is spent on proofs. Without, a fit ends where its estimated gap is at most twenty times ``tol``, or
        a round lowers the objective by at most a tenth of ``tol``: it is then as near to its minimum as ``tol`` says.
    """

    polish_tol: float = math.inf
    layer_tol: float = 1e-3
    single_precision: bool = False
    tol_at_zero: float = 5e-3
    max_rounds: int = 1000
    patience: int = 10
    validated_units: int = 5
    prove: bool = True

    def gap_tol(self, tol: float) -> float:
        """Return the relative gap at which a fit ends."""
        return tol if self.prove else _ESTIMATED * tol

    def solver(
        self,
        problem: NetworkProblem,
        *,
        refit: RefitName | CorrectiveStep,
        max_units: int | None,
        oracle: OracleName | BasisOracle,
        tol: float,
        validates: bool,
    ) -> ConditionalGradient:
        """Return the solver of a fit with these parameters of an estimator."""
        tol = tol or self.tol_at_zero
        full = {"polish_tol": min(tol, self.polish_tol), "precision": self._precision(problem, max_units)}
        step = make_corrective_step(refit, full=full, tol=min(tol, self.layer_tol))
        return ConditionalGradient(
            refit=step,
            max_units=max_units,
            oracle=oracle,
            schedule="grow" if max_units is None else "fill",
            atoms_per_round=self.validated_units if validates and step.can_move_units else None,
            prove=self.prove,
            ftol=0.0 if self.prove else _LOWERED * tol,
        )

    def path_solver(
        self,
        problem: NetworkProblem,
        n_strengths: int,
        *,
        refit: RefitName | CorrectiveStep,
        max_units: int | None,
        iterations: int,
    ) -> ConditionalGradient:
        """Return the solver of a path that chooses a strength."""
        solver = path_solver(n_strengths, max_units, refit, iterations, self._precision(problem, max_units))
        # All units enter at once if refits move them: the number of units is not to grow along the path.
        atoms = None if solver.corrective_step.can_move_units else solver.atoms_per_round
        return replace(solver, atoms_per_round=atoms, prove=False)

    def _precision(self, problem: NetworkProblem, max_units: int | None) -> Precision:
        many = max_units is None or max_units > FEW_UNITS
        return "single" if many and self.single_precision and problem.gains_by_single else "double"


CLASSIFIERS = FitPolicy(single_precision=True)
REGRESSORS = FitPolicy()
# The expected level gains from the last refit for longer than labels do.
ORDINAL = FitPolicy(polish_tol=3e-4)
