"""Checks of the estimators' parameters and data, and what estimators of networks decide for their users.

Users who want to decide themselves give ``refit`` an object of :mod:`mopn.solvers`, which sets its own tolerances and
precision, or call :func:`mopn.minimize`.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mopn.core.regularizers import Ratio
from mopn.data.validation import as_array, as_numbers
from mopn.data.values import is_series
from mopn.network.problem import NetworkProblem
from mopn.regularization_path import path_solver
from mopn.solvers import ConditionalGradient
from mopn.solvers.conditional_gradient import Precision, make_corrective_step
from mopn.solvers.conditional_gradient.schedule import FEW_UNITS
from mopn.solvers.tools.checks import Rule, check_flag, check_nonnegative, check_seconds, check_verbose, count

# A fit without proofs ends at the first one of these multiples of its tolerance: of the estimated gap, which overstates
# how far the objective is from its minimum, and of what a round lowers the objective by (benchmarks/tables).
_ESTIMATED, _LOWERED = 20.0, 0.1
# Products of rows, features and outputs up to which gaps are proven: beyond, fits would take minutes.
_PROVEN = 5e7
# Who takes categories and missing values.
_TABLES = "TableClassifier and TableRegressor"
_MISSING = (
    f"Input X contains NaN; {_TABLES} take missing values as they are; or impute them, for example by "
    "sklearn.impute.SimpleImputer in a pipeline"
)

# The parameters that all estimators share. Parameters that have no rule are checked where they are used.
COMMON = {
    "tol": check_nonnegative,
    "max_iter": count(0).or_none(),
    "max_time": check_seconds.or_none(),
    "warm_start": check_flag,
    "verbose": check_verbose,
    "random_state": Rule("an integer from 0 to 2**32 - 1, a RandomState or None", check_random_state),
}
STRENGTH = Rule(
    "a finite number >= 0 or a mopn.Ratio",
    lambda value: value if isinstance(value, Ratio) else check_nonnegative.convert(value),
)


def readable(values: Any, name: str) -> Any:
    """Return X for scikit-learn's checks; masked entries, and what is not numeric, are refused.

    scikit-learn drops masks and reads dates as numbers without a word. It refuses complex numbers itself.
    """
    if values is None:  # scikit-learn knows whether it may be
        return values
    if is_series(values):
        raise ValueError(
            f"{name} must be two-dimensional, got a Series: for a column give frame[['name']], for a row "
            "frame.iloc[[0]]. Reshape your data"
        )
    if getattr(getattr(values, "dtype", None), "names", None):
        values = _of_records(values, name)
    if isinstance(values, np.ma.MaskedArray) or not (hasattr(values, "shape") or hasattr(values, "__array__")):
        values = as_array(values, name)
    dtypes = getattr(values, "dtypes", getattr(values, "dtype", None))
    if sparse.issparse(values) and values.ndim == 1:
        raise ValueError(f"{name} must have two axes, (n, d), got a sparse array of shape {values.shape}")
    if dtypes is None or sparse.issparse(values):
        return values
    kinds = {getattr(dtype, "kind", "O") for dtype in (dtypes if np.iterable(dtypes) else [dtypes])}
    if kinds <= set("fiubc"):
        return values
    try:
        numbers = as_numbers(values, name)
    except TypeError as error:
        advice = f"; {_TABLES} take strings, categories and dates" if name == "X" else ""
        raise TypeError(f"{error}{advice}") from None
    if np.isnan(numbers).any():
        raise ValueError(_MISSING)
    return values if hasattr(values, "columns") else numbers


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """Return X, or X and y, as scikit-learn's checks do, which would recommend another model for missing values."""
    try:
        return validate_data(estimator, *data, **options)
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN"):
            raise
        raise ValueError(_MISSING) from None


def _of_records(records: Any, name: str) -> Any:
    try:
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise ImportError(f"{name} holds records, which need pandas: pip install pandas; or give an array") from None
    return pd.DataFrame({field: np.atleast_1d(records[field]) for field in records.dtype.names})


@dataclass(frozen=True)
class FitPolicy:
    """The choices of a fit that are no parameters of an estimator: one policy per family.

    With a number of ``max_units`` the aim is the best model of this size, with None a proof. The last refit of both
    layers ends at ``polish_tol`` if ``tol`` is larger, refits of the output layer alone at ``layer_tol``. In
    ``single_precision`` labels are as accurate, numbers are not; few units are refitted in double precision, as
    rounding errors would choose among their local minima. Validation stops after ``patience`` rounds without a better
    score. Without ``prove`` a fit ends where its estimated gap is at most twenty times ``tol``, or a round lowers the
    objective by at most a tenth of ``tol``: it is then as near to its minimum as ``tol`` says.
    """

    polish_tol: float = math.inf
    layer_tol: float = 1e-3
    single_precision: bool = False
    tol_at_zero: float = 5e-3
    max_rounds: int = 1000
    patience: int = 10
    validated_units: int = 5
    prove: bool | None = None

    def for_problem(self, problem: NetworkProblem, max_units: int | None) -> Self:
        """Return the policy for a problem, where ``prove`` is None: large ones of a number of units have no proof."""
        small = max_units is None or math.prod(problem.rows.shape) * problem.losses.n_outputs <= _PROVEN
        return self if self.prove is not None else replace(self, prove=small)

    def gap_tol(self, tol: float) -> float:
        return tol if self.prove else _ESTIMATED * tol

    def solver(self, problem: NetworkProblem, estimator: Any, *, validates: bool) -> ConditionalGradient:
        """Return the solver of a fit with the parameters of an estimator."""
        tol, max_units = estimator.tol or self.tol_at_zero, estimator.max_units
        full = {"polish_tol": min(tol, self.polish_tol), "precision": self._precision(problem, max_units)}
        step = make_corrective_step(estimator.refit, full=full, tol=min(tol, self.layer_tol))
        return ConditionalGradient(
            refit=step,
            max_units=max_units,
            oracle=estimator.oracle,
            schedule="grow" if max_units is None else "fill",
            atoms_per_round=self.validated_units if validates and step.can_move_units else None,
            prove=bool(self.prove),
            ftol=0.0 if self.prove else _LOWERED * estimator.tol,
        )

    def path_solver(
        self, problem: NetworkProblem, estimator: Any, n_strengths: int, max_units: int | None, iterations: int
    ) -> ConditionalGradient:
        precision = self._precision(problem, max_units)
        solver = path_solver(n_strengths, max_units, estimator.refit, iterations, precision)
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
