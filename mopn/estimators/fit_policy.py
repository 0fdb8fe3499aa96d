"""The choices of a fit that are no parameters of an estimator, and the solvers that follow from them."""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

from mopn.network.problem import NetworkProblem
from mopn.regularization_path import path_solver
from mopn.solvers import ConditionalGradient
from mopn.solvers.conditional_gradient import Precision, make_corrective_step
from mopn.solvers.conditional_gradient.schedule import FEW_UNITS

# Without a proof a fit ends at this multiple of its tolerance: the estimated gap overstates how far the objective is
# from its minimum (benchmarks/tables).
_MAX_ESTIMATED_GAP = 20.0
# Likewise at this multiple, for the decrease in a round (benchmarks/tables).
_LEAST_DECREASE = 0.5
# No refit without a proof is tighter than this multiple of the tolerance (benchmarks/tables).
_LEAST_REFIT_TOL = 0.1


@dataclass(frozen=True)
class FitPolicy:
    """The choices of a fit that are no parameters of an estimator: one policy per family.

    Users who want to decide themselves give ``refit`` an object of :mod:`mopn.solvers`, which sets its own tolerances
    and precision, or call :func:`mopn.minimize`.

    With a number of ``max_units`` the aim is the best model of this size, with None a proof. The last refit of both
    layers ends at ``polish_tol`` if ``tol`` is larger, refits of the output layer alone at ``layer_tol``. In
    ``single_precision`` labels are as accurate, and numbers to the 1 % of tables; few units are refitted in double
    precision, as rounding errors would choose among their local minima. Validation stops after ``patience`` rounds
    without a better score. Refits along a path end when ten iterations lower the objective by less than
    ``path_decrease``, relative.

    With ``prove=None`` gaps are proven ``within_budget`` where steps to better dual points are known, as under l1: a
    fit ends when three rounds have each lowered the objective by at most half of ``tol``, proven or not. Under other
    norms they are proven up to ``max_proven_size`` rows times features times outputs: beyond, fits would take minutes.
    Without ``prove`` a fit ends where its estimated gap is at most twenty times ``tol``, or a round lowers the
    objective by at most half of ``tol``: the objective is then usually within ``tol`` of the minimum.
    """

    polish_tol: float = math.inf
    layer_tol: float = 1e-3
    single_precision: bool = False
    tol_at_zero: float = 5e-3
    max_rounds: int = 1000
    patience: int = 10
    validated_units: int = 5
    path_decrease: float = 1e-3
    prove: bool | None = None
    within_budget: bool = False
    max_proven_size: float = 5e7

    def for_problem(self, problem: NetworkProblem, options: Any) -> Self:
        """Return the policy for a problem, where ``prove`` is None."""
        if self.prove is not None:
            return self
        if options.max_units is None:
            return replace(self, prove=True)
        if problem.offers_better_duals and make_corrective_step(options.refit).can_move_units:
            return replace(self, prove=True, within_budget=True)
        size = math.prod(problem.rows.shape) * problem.losses.n_outputs
        return replace(self, prove=size <= self.max_proven_size)

    def solver(self, problem: NetworkProblem, options: Any, *, validates: bool) -> ConditionalGradient:
        """Return the solver of a fit with these ``NetworkOptions``."""
        tol = options.tol or self.tol_at_zero
        is_thorough = bool(self.prove) and not self.within_budget
        full = {
            "polish_tol": min(tol, self.polish_tol),
            "least_tol": 0.0 if is_thorough else _LEAST_REFIT_TOL * tol,
            "precision": self._precision(problem, options.max_units),
        }
        step = make_corrective_step(options.refit, full=full, tol=min(tol, self.layer_tol))
        return ConditionalGradient(
            refit=step,
            max_units=options.max_units,
            oracle=options.oracle,
            schedule="grow" if options.max_units is None else "fill",
            atoms_per_round=self.validated_units if validates and step.can_move_units else None,
            prove=bool(self.prove),
            ftol=0.0 if is_thorough else _LEAST_DECREASE * options.tol,
            slack=1.0 if self.prove else _MAX_ESTIMATED_GAP,
        )

    def path_solver(
        self, problem: NetworkProblem, options: Any, n_strengths: int, max_units: int | None, iterations: int
    ) -> ConditionalGradient:
        """Return the solver of a path of strengths; see ``mopn.regularization_path.path_solver``."""
        precision = self._precision(problem, max_units)
        solver = path_solver(n_strengths, max_units, options.refit, iterations, precision, self.path_decrease)
        # All units enter at once if refits move them: the number of units is not to grow along the path.
        atoms = None if solver.corrective_step.can_move_units else solver.atoms_per_round
        return replace(solver, atoms_per_round=atoms, prove=False)

    def _precision(self, problem: NetworkProblem, max_units: int | None) -> Precision:
        many = max_units is None or max_units > FEW_UNITS
        return "single" if many and self.single_precision and problem.gains_by_single else "double"
