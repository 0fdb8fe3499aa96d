"""The search of an oracle on a stack, starts, refinement and proof; and its plan, for all methods."""

import math
import time
from abc import ABC, abstractmethod
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
_FEW_FEATURES = 64
# ... and up to this d, and these entries, for biquadratic forms, where Cholesky factors prove little.
COMPRESSED_LIMIT, _LARGEST_STACK = 1000, 1 << 26
# Single d x d matrices are formed, and factorised for a proof, up to this d.
CHOLESKY_LIMIT = 3000
# Sums of squares work on matrices of order d (d + 1) / 2 first, up to this d, and biquadratic forms on (m + 1) d.
MOST_SQUARED = 40
# Outputs up to which eigenvalues of some of their combinations are the proof for l1/l2.
_FEW_OUTPUTS = 4
# Operations of a proof by the method "auto" beyond these features: some seconds.
_AUTO_FEATURES, _AUTO_WORK = 26, 3e10
# Signs alone are the proof for l1/linf with fewer outputs than this, and up to this work for all vectors of signs: by
# the method "auto", and by "exact".
_MANY_SIGNED, _FEW_SIGNS, _FEWER_THAN_FORMS = 13, 1e9, 1e11
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


def plan(p: float, m: int, d: int, method: str = "auto", *, formed: bool | None = None) -> Plan:
    # The maximum is an eigenvector of one matrix.
    single = p == math.inf or m == 1
    if formed is None:
        # For so few outputs Cholesky factors are tight.
        few = MAX_SIGNED if p == 1 else 2 if p == 2 else m
        compressed = method == "exact" and m > few and m * d * d <= _LARGEST_STACK
        formed = method != "lanczos" and d <= COMPRESSED_LIMIT and (d <= DENSE_LIMIT or compressed)
        if method == "power":
            formed = single and d <= _FEW_FEATURES
    work = _AUTO_WORK if method == "auto" and d > _AUTO_FEATURES else math.inf
    if method == "auto":
        factorised = not formed and d <= CHOLESKY_LIMIT and (single or m == 2)
        method = "exact" if formed or factorised else "power" if single else "refine"
    refines = method in ("refine", "exact", "lanczos") and not single
    if method == "lanczos" and not formed:
        return Plan(formed, refines, Proof.RANDOM)
    if method == "enumerate":
        return Plan(formed, refines, Proof.ALL_SIGNS)
    if formed and single:
        return Plan(formed, refines, Proof.EIGENVALUES)
    if method in ("power", "eigh", "refine"):
        return Plan(formed, refines, Proof.CHEAP)
    if not formed:
        return Plan(formed, refines, Proof.CHOLESKY if p != 1 or m <= MAX_SIGNED else Proof.CHEAP)
    if p == 1:
        most = _FEWER_THAN_FORMS if math.isinf(work) else _FEW_SIGNS
        few = m < _MANY_SIGNED and 2.0**m * d**3 <= most
        return Plan(formed, refines, Proof.SIGNS if few else Proof.BIQUADRATIC_SIGNS, work)
    if m <= _FEW_OUTPUTS:
        return Plan(formed, refines, Proof.CONES, work)
    squared = d <= MOST_SQUARED and d + 1 < 2 * (m + 1)
    return Plan(formed, refines, Proof.SQUARES if squared else Proof.BIQUADRATIC, work)


@cache
def proofs_in_words(p: float, method: str) -> str:
    """Return the proofs that are tried, a line for each number of outputs."""
    rows: dict[str, list[int]] = {}
    for m in range(1, _MANY + 1):
        rows.setdefault(_by_features(p, m, method), []).append(m)
    return "\n".join(f"    {_outputs(ms)}: {words}" for words, ms in rows.items())


def _by_features(p: float, m: int, method: str) -> str:
    beyond = CHOLESKY_LIMIT + 1
    words = []
    sizes = range(1, int(min(most_features(method), beyond)) + 1)
    for proof, run in groupby(sizes, lambda d: plan(p, m, d, method).proof):
        *_, largest = run
        words.append(f"{proof.value}" + (f" (d <= {largest})" if largest < beyond else ""))
    return ", ".join(words)


def _outputs(ms: list[int]) -> str:
    if ms[-1] == _MANY:
        return "any outputs" if ms[0] == 1 else f"{ms[0]} or more outputs"
    return f"{ms[0]} output" + "s" * (ms[0] > 1) if len(ms) == 1 else f"{ms[0]} to {ms[-1]} outputs"


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
        default = _DEFAULT_FOR_TWO if p == 2 else 0.0
        self.tol = limits.precision or 0.0
        self.precision = max(self.tol, default if effort.precision is None else min(effort.precision, 1.0))
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
        """Return ``||q(h_r)||_p`` for the rows of H, one-sided of negative values alone."""
        forms = self.stack.forms(H)
        return np.linalg.norm(np.minimum(forms, 0.0) if self.plan.one_sided else forms, self.p, axis=1)

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
