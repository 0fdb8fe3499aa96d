"""Basis selection (4) of Blondel et al. (NIPS 2017): the best unit for a gradient, and a bound on every unit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from mopn.core.norms import Norm, NormName, get_norm
from mopn.data.validation import as_numbers, finite_numbers
from mopn.network.gradient_forms import GradientForms
from mopn.solvers.interface import UNLIMITED, Effort
from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.cholesky import OPERATIONS_A_SECOND, expected_work, proven_bound
from mopn.solvers.sphere.dense_search import REFINED_STARTS, REFINEMENT_STEPS, ROUGH_TOL, DenseSearch
from mopn.solvers.sphere.probable import expected_products, probable_bound
from mopn.solvers.sphere.refinement import distinct, ritz_starts
from mopn.solvers.sphere.search import (
    CHOLESKY_LIMIT,
    DENSE_LIMIT,
    Plan,
    Proof,
    Proven,
    SphereSearch,
    is_rough,
    most_features,
    plan,
    proofs_in_words,
)
from mopn.solvers.sphere.stack import MatrixFreeStack, symmetric_matrices
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.budgets import FailureBudget
from mopn.solvers.tools.checks import check_fraction, choice, count, number, shown
from mopn.solvers.tools.decorators import quiet

# Tolerance of the values, relative to the precision of the bound.
_RELATIVE_TOL_OF_VALUES = 0.01
# Relative precision of random bounds, unless a finer one is asked for.
_PRECISION_OF_RANDOM = 1e-2
# The same for p = 2 and several outputs, where a bound costs a covering of a sphere.
_PRECISION_OF_RANDOM_FOR_TWO = 5e-2
# The finest relative precision of random bounds; finer ones would take too many products.
_FINEST_PRECISION_OF_RANDOM = 1e-4


class MatrixFreeSearch(SphereSearch):
    """The search on a :class:`MatrixFreeStack`; random proofs spend failure probability."""

    def __init__(
        self,
        stack: MatrixFreeStack,
        p: float,
        plan: Plan,
        limits: Effort,
        effort: Effort,
        failure_budget: FailureBudget,
        seed: int | None,
    ) -> None:
        super().__init__(stack, p, plan, limits, effort)
        self.failure_budget, self.seed = failure_budget, seed
        # Without a proof the bound is loose in any case, so the values may have the largest tolerance.
        exact = plan.proof is Proof.CHOLESKY or math.isinf(effort.work)
        precision = self.precision if exact else 1.0
        self.tol = max(self.tol, min(ROUGH_TOL, _RELATIVE_TOL_OF_VALUES * precision))

    def bound(self) -> float:
        """Return the bound of ``maximise`` or a smaller one: the proof needs no vectors to start from."""
        if not self.effort.work:
            return self.stack.collatz_bound(self.p)
        cheap = self.cheap_bound()
        if self.plan.is_cheap:
            return cheap
        return min(cheap, self._proof().bound)

    def cheap_bound(self) -> float:
        """Return the bound of the stack, by products with the data; none without work to spend."""
        return self.stack.bound(self.p) if self.effort.work else math.inf

    def starts(self) -> np.ndarray:
        plan = self.plan
        # Out of time no unit enters any more.
        tol = self.tol if self.left > 0.0 else 1.0
        return ritz_starts(self.stack, self.p, tol, combined=plan.refines, one_sided=plan.one_sided)

    def refine(self, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Refine the best distinct starts; keep the starts."""
        rough, _ = distinct(H, values)
        steps = min(REFINEMENT_STEPS, int(_RELATIVE_TOL_OF_VALUES / self.tol))
        best, best_values = refine(self.stack, rough[:REFINED_STARTS], self.p, self.tol, steps, self.left)
        return np.vstack([best, H]), np.concatenate([best_values, values])

    def prove(self, H: np.ndarray, values: np.ndarray) -> Proven:
        return self._proof(float(values.max()))

    def _proof(self, best: float = 0.0) -> Proven:
        """Return the proof; none if it is expected to exceed the work or the time allowed."""
        stack = self.stack
        p = self.p
        budget = self.budget()
        failure = self.failure_budget.next
        precision = _PRECISION_OF_RANDOM_FOR_TWO if p == 2 and stack.shape[0] > 1 else _PRECISION_OF_RANDOM
        if self.effort.precision is not None:
            precision = min(max(self.effort.precision, _FINEST_PRECISION_OF_RANDOM), precision)

        by_cholesky = self.plan.proof is Proof.CHOLESKY
        if by_cholesky:
            work = expected_work(stack, p)
        else:
            work = stack.work[0] * expected_products(stack, p, precision, failure)
        if not budget.affords(work) or work / OPERATIONS_A_SECOND > budget.seconds:
            return Proven(np.zeros((0, stack.shape[1])), math.inf)

        if by_cholesky:
            return Proven(*proven_bound(stack, p, self.precision, budget, one_sided=self.plan.one_sided))
        rng = self.failure_budget.draw(self.seed)
        return Proven(*probable_bound(stack, p, precision, failure, rng, budget, best))


OracleName = Literal["auto", "power", "eigh", "refine", "enumerate", "exact", "lanczos"]
METHODS = get_args(OracleName)
_METHOD = choice(METHODS)
_SEED = count(least=0).or_none()

# Value and bound agree to this, relative, when a unit is certified; it leaves room for rounding errors in the bound.
_CERTIFIED_TOL = 1e-6
_check_work = number("a number > 0", lambda x: x > 0.0, finite=False)
_check_proof_seconds = number("a number of seconds > 0", lambda x: x > 0.0, finite=False)


@dataclass(frozen=True)
class BasisAtoms:
    """Units that an oracle selected, and its bound.

    Attributes
    ----------
    basis : ndarray of shape (q, d)
        Distinct unit vectors, best first.
    values : ndarray of shape (q,)
        ``||q(h_r)||_p`` of each: lower bounds of the dual norm.
    bound : float
        Proven upper bound of the dual norm max_h ``||q(h)||_p``, rounding errors included; possibly loose.
    certified : bool
        Whether the best value and the bound agree (to 1e-6, relative): the unit is proven optimal.
    work : float
        Operations of branch and bound, sums of squares or biquadratic forms; 0 for other bounds.
    bound_is_best : bool
        Whether the method has no tighter bound, whatever the effort.
    from_user : bool
        Whether a user's function selected the units: the best value is then no estimate of the dual norm.
    rough : bool
        Whether units were not refined, by the methods "power" and "eigh" under l1/l2 and l1/linf: the best value may
        be far below the dual norm.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> atoms = mopn.oracles.basis_oracle("l1")(np.array([np.diag([1.0, 3.0])]))
    >>> float(atoms.values[0]), bool(atoms.bound >= 3.0), atoms.certified
    (3.0, True, True)
    """

    basis: np.ndarray
    values: np.ndarray
    bound: float
    certified: bool
    work: float = 0.0
    bound_is_best: bool = False
    from_user: bool = False
    rough: bool = False


@dataclass(frozen=True, repr=False)
class BasisOracle:
    """Options of an oracle, made by :func:`basis_oracle`; call it on a stack Gamma (m, d, d).

    Runs may share it: it remembers nothing, and ``begin`` returns the :class:`OracleRun` of one run.

    Examples
    --------
    >>> import mopn
    >>> mopn.oracles.basis_oracle("l1", "exact")
    BasisOracle('l1', 'exact'), which proves by
        any outputs: eigenvalues (d <= 500), Cholesky factors (d <= 3000)
    """

    norm: Norm
    method: str
    limits: Effort
    seed: int | None = None
    # Selects units in place of the method, from Gamma.
    function: Callable[[np.ndarray], Any] | None = None

    def begin(self, failure_budget: FailureBudget | None = None, seed: int = 0) -> OracleRun:
        """Return the oracle of one run; its proofs draw on the failure budget, other random numbers on the seed."""
        return OracleRun(self, failure_budget or FailureBudget(), seed)

    def __call__(self, gammas: np.ndarray | DenseStack | GradientForms, effort: Effort = UNLIMITED) -> BasisAtoms:
        """Select units as the only call of a run: see :meth:`OracleRun.__call__`."""
        return self.begin()(gammas, effort)

    def bound(self, gammas: np.ndarray | DenseStack | GradientForms, effort: Effort = UNLIMITED) -> float:
        """Return the bound as the only call of a run: see :meth:`OracleRun.bound`."""
        return self.begin().bound(gammas, effort)

    def method_for(self, n_outputs: int, effort: Effort) -> str:
        """Return the method; a thorough search refines units where it would not."""
        is_too_rough = effort.thorough and is_rough(self.norm.exponent, n_outputs, self.method)
        return "refine" if is_too_rough else self.method

    def prepare(self, gammas: Any, effort: Effort) -> DenseStack | GradientForms:
        """Return the stack in the form that the method needs, dense or matrix-free."""
        if isinstance(gammas, DenseStack):
            return gammas
        if not isinstance(gammas, GradientForms):
            return DenseStack(symmetric_matrices(as_numbers(gammas, "Gamma"), "Gamma"))
        m, d = gammas.shape
        limit = most_features(self.method)
        if d > limit:
            raise ValueError(
                f"the oracle {self.method!r} forms d x d matrices and is meant for d <= {limit}, got d = {d}; use "
                "'power' (l1) or 'refine'"
            )
        p = self.norm.exponent
        # A thorough search for single eigenvectors decomposes the matrices.
        decomposes = effort.thorough and p == math.inf and self.method == "auto" and d <= CHOLESKY_LIMIT
        is_formed = decomposes or plan(p, m, d, self.method_for(m, effort)).formed
        return gammas.dense if is_formed else gammas

    def __repr__(self) -> str:
        proofs = proofs_in_words(self.norm.exponent, self.method)
        return f"{type(self).__name__}({self.norm.name!r}, {self.method!r}), which proves by\n{proofs}"


class OracleRun:
    """An oracle in one run. Each proof starts at the multipliers of the last one, as gradients change little."""

    def __init__(self, oracle: BasisOracle, failure_budget: FailureBudget, seed: int) -> None:
        self.oracle, self.failure_budget, self.seed = oracle, failure_budget, seed
        self._multipliers: dict[tuple[type, bool], Any] = {}

    @limited_threads()
    @quiet()
    def __call__(self, gammas: np.ndarray | DenseStack | GradientForms, effort: Effort = UNLIMITED) -> BasisAtoms:
        """Select units for symmetric matrices Gamma (m, d, d), or for the forms of a gradient.

        ``effort`` limits the proof, within the limits of the oracle, and sets its precision: how far the bound may
        exceed the best value, relative. Default precision 1e-4 for l1/l2, the oracle's ``tol`` otherwise.
        """
        if self.oracle.function is not None:
            return self._user_atoms(self.oracle.function, gammas, effort)
        search, scale = self._search(self.oracle.prepare(gammas, effort), effort)
        found = search.maximise()
        H, values = distinct(found.H, found.values)
        certified = bool(found.bound <= values[0] * (1.0 + _CERTIFIED_TOL))
        cheap = search.plan.is_cheap
        rough = not effort.thorough and is_rough(search.p, search.stack.shape[0], self.oracle.method)
        return BasisAtoms(H, values * scale, found.bound * scale, certified, found.work, cheap, rough=rough)

    @limited_threads()
    @quiet()
    def bound(self, gammas: np.ndarray | DenseStack | GradientForms, effort: Effort = UNLIMITED) -> float:
        """Return only the bound of a call; units are selected only if the proof starts from them."""
        search, scale = self._search(self.oracle.prepare(gammas, effort), effort)
        return search.bound() * scale

    def _user_atoms(self, function: Callable[[np.ndarray], Any], gammas: Any, effort: Effort) -> BasisAtoms:
        """Return the units that a user's function selects, with a proven bound."""
        bound = self.bound(gammas, effort)
        stack = self.oracle.prepare(gammas, effort)
        d = stack.shape[1]
        if not isinstance(stack, DenseStack):
            raise ValueError(f"an oracle of your own is for d <= {DENSE_LIMIT}, got d = {d}; use 'refine'")
        H = finite_numbers(function(stack.matrices.copy()), "units of the oracle")
        H = H[None] if H.ndim == 1 else H
        if H.ndim != 2 or H.shape[1] != d or not len(H) or not H.any(axis=1).all():
            raise ValueError(f"the oracle must return units of shape ({d},) or (q, {d}), not zero, got shape {H.shape}")
        H = H / np.abs(H).max(axis=1, keepdims=True)  # so that no square over- or underflows
        H = H / np.linalg.norm(H, axis=1, keepdims=True)
        H, values = distinct(H, self.oracle.norm.duals(stack.forms(H)))
        return BasisAtoms(H, values, max(bound, float(values[0])), certified=False, from_user=True)

    def _search(self, prepared: DenseStack | GradientForms, effort: Effort) -> tuple[SphereSearch, float]:
        """Return the search on the matrices in units of a scale, and the scale."""
        oracle = self.oracle
        p = oracle.norm.exponent
        stack, scale = prepared.scaled()
        m, d = stack.shape
        search_plan = plan(p, m, d, oracle.method_for(m, effort), formed=isinstance(stack, DenseStack))
        search_plan = search_plan._replace(one_sided=oracle.norm.nonnegative)
        common = (p, search_plan, oracle.limits, effort)
        if isinstance(stack, DenseStack):
            return DenseSearch(stack, *common, self._multipliers), scale
        return MatrixFreeSearch(stack, *common, self.failure_budget, oracle.seed), scale


def basis_oracle(
    norm: NormName | Norm,
    method: OracleName = "auto",
    tol: float = 1e-6,
    max_work: float = math.inf,
    max_time: float = math.inf,
    seed: int | None = None,
) -> BasisOracle:
    """Return an oracle for max over unit h of ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p``.

    Parameters
    ----------
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}
        The norm of the weights; p is inf, 2, 1 and inf, respectively. For nonnegative weights the maximum is over
        ``-h' Gamma_c h`` of all units and outputs, and 0.
    method : {"auto", "power", "eigh", "refine", "enumerate", "exact", "lanczos"}
        ``"power"`` and ``"eigh"`` return the dominant eigenvector of every Gamma_c, optimal for l1, and some further
        ones: by Lanczos (matrix-free; values are lower bounds) or by a dense eigen-solver, as ``"power"`` too has under
        l1, or with one output, up to 64 features. ``"refine"``
        improves many starts by block ascent; its bound may be loose. ``"enumerate"`` is exact for l1/linf, in 2^(m-1)
        eigenvalue problems, up to m = 20. ``"exact"`` refines and then tightens the bound, up to d = 3000.
        ``"lanczos"`` bounds matrices of any order, by products with the data, for l1, for l1/linf with at most 6
        outputs, and for l1/l2 with at most 8. All bounds of a run, and of runs that it continues, together hold with a
        probability of at least 1 - 1e-9, over random starts.
        ``"auto"`` is ``"exact"`` up to d = 500, but with at most 3e10 operations (some seconds) a proof beyond d = 26,
        and where Cholesky factors are tight (l1, two outputs); else ``"power"`` for l1, or ``"refine"``. Printing an
        oracle shows which proofs it tries.
    tol : float, default 1e-6
        The tolerance epsilon of power and refinement iterations, relative.
    max_work : float, default no limit
        Largest number of floating-point operations of a proof, roughly, within limits of its own that take minutes; at
        the limit the best bound so far is returned. A node of branch and bound counts 4,400.
    max_time : float, default no limit
        Largest number of seconds of the proofs of one call; Cholesky factors are computed only if they are expected to
        take less. Proofs are also limited by a fixed amount of work, so that results repeat.
    seed : int, optional
        The seed of the random starts of ``"lanczos"``, for runs that repeat to the last bit. You then promise that
        nobody who chose the data, or saw a proof with this seed, made use of it; results say so in ``proof``. Default:
        new starts from the entropy of the operating system for every proof, so that neither bounds nor runs repeat
        exactly.

    Returns
    -------
    BasisOracle
        Callable on Gamma (m, d, d); it returns :class:`BasisAtoms`.

    Raises
    ------
    ValueError
        For an unknown norm or method, ``"enumerate"`` with another norm than l1/linf, ``"lanczos"`` with nonnegative
        weights, ``tol`` not in (0, 1), or limits that are not positive.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = basis_oracle("l1/linf", method="enumerate")
    >>> atoms = oracle(np.array([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -3.0]]]))
    >>> print(round(float(atoms.values[0]), 6), atoms.certified)
    4.0 True
    """
    norm = get_norm(norm)
    method = _METHOD(method, "method")
    if method == "enumerate" and norm.exponent != 1:
        raise ValueError(f"the oracle 'enumerate' is for the norm 'l1/linf' only, got norm={norm.name!r}")
    if method == "lanczos" and norm.nonnegative:
        raise ValueError(
            f"the oracle 'lanczos' bounds moduli, got norm={norm.name!r}; take 'exact', which proves up to "
            "3,000 features"
        )
    tol = check_fraction(tol, "tol")
    work = _check_work(max_work, "max_work")
    seconds = _check_proof_seconds(max_time, "max_time")
    seed = _SEED(seed, "seed")
    return BasisOracle(norm, method, Effort(tol, work, seconds), seed)


def user_oracle(norm: Norm, function: Callable[[np.ndarray], Any]) -> BasisOracle:
    """Return an oracle whose units come from a user's function, and whose bound comes from the method "auto".

    The function is given Gamma (m, d, d), the matrices of the gradient, and returns a unit (d,) or several (q, d), of
    any length, that make ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p`` large, of the negative entries alone for
    nonnegative weights. The bound is proven in any case: a poor choice makes a run slow, and never a certificate false.
    """
    return replace(basis_oracle(norm), function=function)


def oracle_for(norm: Norm, oracle: Any, n_outputs: int) -> BasisOracle:
    """Return the oracle of a problem with a norm: of a method's name, of a user's function, or an oracle as it is.

    Raises ``TypeError`` for anything else, and ``ValueError`` for an oracle of another norm.
    """
    if isinstance(oracle, str):
        return basis_oracle(norm, method=_METHOD(oracle, "oracle"))
    if callable(oracle) and not isinstance(oracle, (BasisOracle, type)):
        return user_oracle(norm, oracle)
    if not isinstance(oracle, BasisOracle):
        raise TypeError(
            "oracle must be a method's name, a function of Gamma (m, d, d), or come from basis_oracle, got "
            f"{shown(oracle)}"
        )
    same_sides = oracle.norm.nonnegative == norm.nonnegative
    if not same_sides or (oracle.norm.exponent != norm.exponent and n_outputs > 1):
        raise ValueError(
            f"the oracle is for the norm {oracle.norm.name!r}, whose bound proves nothing for this problem's "
            f"{norm.name!r}; make one by basis_oracle({norm.name!r})"
        )
    return oracle
