"""A linear minimisation oracle that a user writes: any function that selects units, with mopn's bound on all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.core.norms import Norm
from mopn.data.validation import finite_numbers
from mopn.network.oracles import BasisAtoms, BasisOracle, OracleRun, basis_oracle
from mopn.solvers.failure_budget import FailureBudget
from mopn.solvers.interface import UNLIMITED, Effort
from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.directions import distinct
from mopn.solvers.sphere.plan import DENSE_LIMIT
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.door import doors

__all__ = ["UserOracle", "user_oracle"]


@dataclass(frozen=True, repr=False)
class UserOracle(BasisOracle):
    """An oracle whose units come from a function, and whose bound is that of the method "auto".

    The function is given Gamma (m, d, d), the matrices of the gradient, and returns a unit (d,) or several (q, d), of
    any length, that make ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p`` large, of the negative entries alone for
    nonnegative weights. The bound is proven in any case: a poor choice makes a run slow, and never a certificate false.
    """

    function: Callable[[np.ndarray], Any] = np.asarray

    def begin(self, failure_budget: FailureBudget | None = None, seed: int = 0) -> OracleRun:
        """Return the oracle of one run."""
        return _UserRun(self, failure_budget or FailureBudget(), seed)


@doors
class _UserRun(OracleRun):
    """The units of a function, and the bounds of a run."""

    oracle: UserOracle

    @limited_threads()
    def __call__(self, gammas: Any, effort: Effort = UNLIMITED) -> BasisAtoms:
        """Return the function's units, best first, and the bound."""
        bound = self.bound(gammas, effort)
        stack = self.oracle.prepare(gammas)
        if not isinstance(stack, DenseStack):
            raise ValueError(f"an oracle of your own is for d <= {DENSE_LIMIT}, got d = {stack.shape[1]}; use 'refine'")
        H = finite_numbers(self.oracle.function(stack.matrices.copy()), "units of the oracle")
        H = H[None] if H.ndim == 1 else H
        if H.ndim != 2 or H.shape[1] != stack.shape[1] or not len(H) or not H.any(axis=1).all():
            raise ValueError(
                f"the oracle must return units of shape ({stack.shape[1]},) or (q, {stack.shape[1]}), not zero, "
                f"got shape {H.shape}"
            )
        H = H / np.abs(H).max(axis=1, keepdims=True)  # so that no square over- or underflows
        H = H / np.linalg.norm(H, axis=1, keepdims=True)
        H, values = distinct(H, self.oracle.norm.duals(stack.forms(H)))
        return BasisAtoms(H, values, max(bound, float(values[0])), certified=False, from_user=True)


def user_oracle(norm: Norm, function: Callable[[np.ndarray], Any]) -> UserOracle:
    """Return the oracle of a function, for a norm."""
    parts = basis_oracle(norm)
    return UserOracle(parts.norm, parts.method, parts.limits, parts.seed, function=function)
