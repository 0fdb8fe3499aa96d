"""The search of an oracle on a stack, starts, refinement and proof; and its plan, for all methods."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from mopn.solvers.interface import Effort
from mopn.solvers.sphere.cholesky import MAX_SIGNED
from mopn.solvers.tools.budgets import Budget

# Stacks of d x d matrices are formed up to this d. For larger d oracles are matrix-free.
DENSE_LIMIT = 500
# The method "power" forms them up to this d if the maximum is an eigenvector: decompositions then take less time than
# steps of Lanczos (benchmarks/tables).
FEW_FEATURES = 64
# The method "exact" forms them up to this d for biquadratic forms, where Cholesky factors prove little, ...
COMPRESSED_LIMIT = 1000
# ... up to this number of entries, 512 MiB.
_MAX_STACK_ENTRIES = 1 << 26
# Single d x d matrices are formed, and factorised for a proof, up to this d.
CHOLESKY_LIMIT = 3000
# Sums of squares work on matrices of order d (d + 1) / 2 first, up to this d, and biquadratic forms on (m + 1) d.
MOST_SQUARED = 40
# Outputs up to which eigenvalues of some of their combinations are the proof for l1/l2.
_FEW_OUTPUTS = 4
# Features up to which proofs by the method "auto" have no limit of their own.
_AUTO_FEATURES = 26
# Operations of a proof by the method "auto" beyond these features: some seconds.
_AUTO_WORK = 3e10
# Outputs from which on signs alone are not the proof for l1/linf.
_MANY_SIGNED = 13
# Operations for all vectors of signs up to which signs alone are the proof, if the method "auto" limits the work.
_AUTO_SIGNS_WORK = 1e9
# The same without such a limit: biquadratic forms take more.
_MAX_SIGNS_WORK = 1e11
# Outputs from which on plans do not depend on their number.
_MANY = 20


class Proof(Enum):
    """The kind of the proof."""

    CHEAP = "cheap bounds"
    EIGENVALUES = "eigenvalues"
    ALL_SIGNS = "eigenvalues of all signed sums"
    SIGNS = "branch and bound on signs"
    CONES = "eigenvalues on cones of outputs"
    SQUARES = "sums of squares"
    BIQUADRATIC = "biquadratic forms on principal directions"
    BIQUADRATIC_SIGNS = "branch and bound on signs by biquadratic forms"
    CHOLESKY = "Cholesky factors"
    RANDOM = "polynomials of random starts"


def most_features(method: str) -> float:
    """Return the largest d for a method, as it forms matrices."""
    return {"eigh": DENSE_LIMIT, "enumerate": DENSE_LIMIT, "exact": CHOLESKY_LIMIT}.get(method, math.inf)


class Plan(NamedTuple):
    """Whether matrices are formed and many starts refined, the proof, and its largest number of operations."""

    formed: bool
    refines: bool
    proof: Proof
    work: float = math.inf
    one_sided: bool = False

    @property
    def is_cheap(self) -> bool:
        """Whether the bound takes milliseconds, so that no effort makes it tighter."""
        return self.proof in (Proof.CHEAP, Proof.EIGENVALUES)


class _Case(NamedTuple):
    """A search to be planned: p, m outputs, d features, and the method, which is not "auto".

    ``single`` says whether the maximum is an eigenvector of one matrix, ``formed`` whether matrices are formed, and
    ``work`` limits the operations of relaxations.
    """

    p: float
    m: int
    d: int
    method: str
    single: bool
    formed: bool
    work: float

    @property
    def has_factors(self) -> bool:
        """Whether Cholesky factors bound all combinations."""
        return self.p != 1 or self.m <= MAX_SIGNED

    @property
    def has_few_signs(self) -> bool:
        """Whether signs alone are likely to prove l1/linf."""
        most = _MAX_SIGNS_WORK if math.isinf(self.work) else _AUTO_SIGNS_WORK
        return self.m < _MANY_SIGNED and 2.0**self.m * self.d**3 <= most

    @property
    def is_squared(self) -> bool:
        """Whether the matrices of sums of squares are smaller than biquadratic forms."""
        return self.d <= MOST_SQUARED and self.d + 1 < 2 * (self.m + 1)


class _Rule(NamedTuple):
    """The proof of the cases for which a condition holds, and the section of docs/mathematics.md that has it."""

    holds: Callable[[_Case], bool]
    proof: Proof
    section: str
    has_limit: bool = False


# The first rule that holds decides.
RULES = (
    _Rule(lambda case: case.method == "lanczos" and not case.formed, Proof.RANDOM, "6.7"),
    _Rule(lambda case: case.method == "enumerate", Proof.ALL_SIGNS, "6.2"),
    _Rule(lambda case: case.formed and case.single, Proof.EIGENVALUES, "6.1"),
    _Rule(lambda case: case.method in ("power", "eigh", "refine"), Proof.CHEAP, "6.2, 6.3, 6.6"),
    _Rule(lambda case: not case.formed and case.has_factors, Proof.CHOLESKY, "6.1"),
    _Rule(lambda case: not case.formed, Proof.CHEAP, "6.6"),
    _Rule(lambda case: case.p == 1 and case.has_few_signs, Proof.SIGNS, "6.2", has_limit=True),
    _Rule(lambda case: case.p == 1, Proof.BIQUADRATIC_SIGNS, "6.5", has_limit=True),
    _Rule(lambda case: case.m <= _FEW_OUTPUTS, Proof.CONES, "6.3", has_limit=True),
    _Rule(lambda case: case.is_squared, Proof.SQUARES, "6.4", has_limit=True),
    _Rule(lambda case: True, Proof.BIQUADRATIC, "6.5", has_limit=True),
)


def plan(p: float, m: int, d: int, method: str = "auto", *, formed: bool | None = None) -> Plan:
    """Return the plan of a method for m matrices of order d; ``formed`` says that they are given, or not."""
    single = p == math.inf or m == 1
    if formed is None:
        formed = _forms_matrices(p, m, d, method, single)
    work = _AUTO_WORK if method == "auto" and d > _AUTO_FEATURES else math.inf
    if method == "auto":
        method = _automatic_method(m, d, single, formed)
    case = _Case(p, m, d, method, single, formed, work)
    rule = next(rule for rule in RULES if rule.holds(case))
    refines = method in ("refine", "exact", "lanczos") and not single
    return Plan(formed, refines, rule.proof, work if rule.has_limit else math.inf)


def _forms_matrices(p: float, m: int, d: int, method: str, single: bool) -> bool:
    """Whether a method forms the d x d matrices."""
    if method == "power":
        return single and d <= FEW_FEATURES
    if method == "lanczos" or d > COMPRESSED_LIMIT:
        return False
    if d <= DENSE_LIMIT:
        return True
    # Cholesky factors are tight for p = inf, and for few outputs.
    few = MAX_SIGNED if p == 1 else 2
    return method == "exact" and p != math.inf and m > few and m * d * d <= _MAX_STACK_ENTRIES


def _automatic_method(m: int, d: int, single: bool, formed: bool) -> str:
    """Return the method that "auto" stands for."""
    if formed or (d <= CHOLESKY_LIMIT and (single or m == 2)):
        return "exact"
    return "power" if single else "refine"


def is_rough(p: float, m: int, method: str) -> bool:
    """Whether the search of a method refines no units, and so may miss the best one by far."""
    return method in ("power", "eigh") and p != math.inf and m > 1


@cache
def proofs_in_words(p: float, method: str) -> str:
    """Return the proofs that are tried, a line for each number of outputs."""
    rows: dict[str, list[int]] = {}
    for m in range(1, _MANY + 1):
        rows.setdefault(_by_features(p, m, method), []).append(m)
    return "\n".join(f"    {_outputs(ms)}: {words}" for words, ms in rows.items())


def _by_features(p: float, m: int, method: str) -> str:
    """Return the proofs for m outputs, each with the largest number of features."""
    beyond = CHOLESKY_LIMIT + 1
    words = []
    sizes = range(1, int(min(most_features(method), beyond)) + 1)
    for proof, run in groupby(sizes, lambda d: plan(p, m, d, method).proof):
        *_, largest = run
        words.append(f"{proof.value} (d <= {largest})" if largest < beyond else proof.value)
    return ", ".join(words)


def _outputs(ms: list[int]) -> str:
    """Return a range of numbers of outputs in words."""
    if ms[-1] == _MANY:
        return "any outputs" if ms[0] == 1 else f"{ms[0]} or more outputs"
    if len(ms) > 1:
        return f"{ms[0]} to {ms[-1]} outputs"
    return "1 output" if ms[0] == 1 else f"{ms[0]} outputs"


# The precision for p = 2 of calls without one, as relaxations converge slowly near their limit.
_DEFAULT_FOR_TWO = 1e-4


class SearchResult(NamedTuple):
    """Unit vectors (k, d), their values ``||q(h_r)||_p`` (k,), a proven bound, and the work of its proof."""

    H: np.ndarray
    values: np.ndarray
    bound: float
    work: float = 0.0


class Proven(NamedTuple):
    """Unit vectors (k, d) found during the proof, the bound, and the work."""

    H: np.ndarray
    bound: float
    work: float = 0.0


class SphereSearch(ABC):
    """Maximises ``||q(h)||_p`` over unit h, with a subclass for each kind of stack."""

    def __init__(self, stack: Any, p: float, plan: Plan, limits: Effort, effort: Effort) -> None:
        self.stack = stack
        self.p = p
        self.plan = plan
        self.limits = limits
        self.effort = effort
        self.tol = limits.precision or 0.0
        default = _DEFAULT_FOR_TWO if p == 2 else 0.0
        precision = default if effort.precision is None else min(effort.precision, 1.0)
        self.precision = max(self.tol, precision)
        self._began = time.perf_counter()
        # Bound of the error in ``||q(h)||_p`` from forming the stack.
        self.rounding = 0.0

    @property
    def left(self) -> float:
        return self.effort.seconds - (time.perf_counter() - self._began)

    def budget(self, most: float = math.inf) -> Budget:
        work = min(self.limits.work, self.effort.work, most)
        return Budget(work, min(self.limits.seconds, self.left))

    def maximise(self) -> SearchResult:
        """Return unit vectors, their values and a proven bound; out of time, the starts."""
        bound = self.cheap_bound()
        H = self.starts()
        values = self.values(H)
        if self.plan.refines and self.left > 0:
            H, values = self.refine(H, values)
        best = float(values.max())
        tight = bound <= max(best * (1.0 + self.precision), best + 2.0 * self.rounding)
        if self.plan.is_cheap or self.left <= 0 or tight:
            return SearchResult(H, values, bound)
        proof = self.prove(H, values)
        H = np.vstack([H, proof.H])
        return SearchResult(H, self.values(H), min(bound, proof.bound), proof.work)

    def values(self, H: np.ndarray) -> np.ndarray:
        """Return ``||q(h_r)||_p`` for the rows of H; if one-sided, from the negative values alone."""
        forms = self.stack.forms(H)
        if self.plan.one_sided:
            forms = np.minimum(forms, 0.0)
        return np.linalg.norm(forms, self.p, axis=1)

    @abstractmethod
    def bound(self) -> float:
        """Return only the bound of ``maximise``, with a search only if the proof starts from units."""

    @abstractmethod
    def cheap_bound(self) -> float:
        """Return the least of the bounds that take milliseconds."""

    @abstractmethod
    def starts(self) -> np.ndarray:
        """Return start vectors (k, d): dominant eigenvectors of the Gamma_c, and more for refinement."""

    @abstractmethod
    def refine(self, H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Improve the best distinct starts; return the vectors to keep, with their values."""

    @abstractmethod
    def prove(self, H: np.ndarray, values: np.ndarray) -> Proven:
        """Tighten the bound towards the best value, within the limits and the effort."""
