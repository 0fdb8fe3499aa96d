"""Basis selection (4) of Blondel et al. (NIPS 2017): the best unit for a gradient, and a bound on every unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from mopn.core.norms import Norm, NormName, get_norm
from mopn.core.validation import as_numbers
from mopn.network.dense_oracle import DenseSearch
from mopn.network.gradient_forms import GradientForms
from mopn.network.matrix_free_oracle import MatrixFreeSearch
from mopn.network.search import PROVING, Limits, Search, distinct
from mopn.solvers.checks import check_fraction, choice, count, number
from mopn.solvers.interface import UNLIMITED, Effort
from mopn.solvers.numerics.threads import limited_threads
from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.cholesky import MAX_SIGNED
from mopn.solvers.sphere.nested import Parts
from mopn.solvers.sphere.probable import Chance

__all__ = ["METHODS", "Atoms", "BasisOracle", "OracleName", "basis_oracle"]

OracleName = Literal["auto", "power", "eigh", "refine", "enumerate", "exact", "lanczos"]
METHODS = get_args(OracleName)

# The largest probability that any bound of one random oracle is false, over all of its calls.
FAILURE = 1e-9

# Stacks of d x d matrices are formed up to this d. For larger d, and for method "power", oracles are matrix-free.
DENSE_LIMIT = 500
# ... and up to this d, and these entries, for proofs on principal directions, where Cholesky factors prove little.
COMPRESSED_LIMIT, _LARGEST_STACK = 1000, 1 << 26
# Single d x d matrices are formed, and factorised for a proof, up to this d.
CHOLESKY_LIMIT = 3000
# method "auto" is "exact" up to this d, and for l1/linf if all sign vectors together take no more work than this.
_AUTO_EXACT, _AUTO_WORK = 26, 1e8
# Value and bound agree to this, relative, when a unit is certified; it leaves room for rounding errors in the bound.
_CERTIFIED_TOL = 1e-6
_SECONDS = number("a number of seconds > 0", lambda x: x > 0.0, finite=False)


@dataclass(frozen=True)
class Atoms:
    """What an oracle returns.

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
    work : int
        Work of the proof: nodes of branch and bound, or decompositions of the sums of squares; 0 for other bounds.
    bound_is_best : bool
        Whether the method has no tighter bound, whatever the effort.
    parts : Parts or None
        For l1/l2 beyond 26 features, what the bound exceeds the best value by: the relaxation on so many principal
        directions, and what the others may add, in the unit of ``bound``. The larger one is what limits the proof.

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
    work: int = 0
    bound_is_best: bool = False
    parts: Parts | None = None


@dataclass(frozen=True)
class BasisOracle:
    """Oracle made by :func:`basis_oracle`; call it on a stack Gamma (m, d, d).

    It keeps the multiplier of its last sum-of-squares proof as the start of the next one, since gradients change little
    from round to round.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> oracle = mopn.oracles.basis_oracle("l1/l2", "exact")
    >>> oracle(np.array([np.diag([1.0, 3.0]), np.diag([0.0, 4.0])])).values.round(6)[0]
    np.float64(5.0)
    """

    norm: Norm
    method: str
    limits: Limits
    seed: int = 0
    _memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def failure(self) -> float:
        """The largest probability that any of its bounds is false; 0 for the methods whose bounds are proven."""
        return FAILURE if self.method == "lanczos" else 0.0

    @limited_threads()
    def __call__(self, gammas: np.ndarray | DenseStack | GradientForms, effort: Effort = UNLIMITED) -> Atoms:
        """Select units for symmetric matrices Gamma (m, d, d), or for the forms of a gradient.

        Parameters
        ----------
        gammas : ndarray of shape (m, d, d), DenseStack or GradientForms
        effort : Effort, optional
            Budget of the proof, within the limits of the oracle, and its precision: how far the bound may exceed the
            best value, relative. Default precision 1e-4 for l1/l2, the oracle's ``tol`` otherwise; no other limits.

        Returns
        -------
        Atoms
        """
        stack, scale = self._prepare(gammas).scaled()
        search = self._search(stack, effort)
        found = search.maximise()
        H, values = distinct(found.H, found.values)
        certified = bool(found.bound <= values[0] * (1.0 + _CERTIFIED_TOL))
        best = search.method not in PROVING
        return Atoms(H, values * scale, found.bound * scale, certified, found.work, best, _scaled(found.parts, scale))

    @limited_threads()
    def bound(self, gammas: np.ndarray | DenseStack | GradientForms, effort: Effort = UNLIMITED) -> float:
        """Return only the bound of a call; units are selected only if the proof starts from them."""
        stack, scale = self._prepare(gammas).scaled()
        return self._search(stack, effort).bound() * scale

    def _search(self, stack: DenseStack | GradientForms, effort: Effort) -> Search:
        p, method = self.norm.exponent, self._resolve(stack)
        if isinstance(stack, DenseStack):
            return DenseSearch(stack, p, method, self.limits, effort, self._memory)
        return MatrixFreeSearch(stack, p, method, self.limits, effort, self._chance())

    def _chance(self) -> Chance:
        """Return the share of the probability of failure for the next call, whose sum over all calls is FAILURE."""
        call = self._memory["calls"] = self._memory.get("calls", 0) + 1
        return Chance(FAILURE * 6.0 / (math.pi * call) ** 2, np.random.default_rng((self.seed, call)))

    def _prepare(self, gammas: Any) -> DenseStack | GradientForms:
        """Return the stack in the form that the method needs, dense or matrix-free."""
        if isinstance(gammas, DenseStack):
            return gammas
        if not isinstance(gammas, GradientForms):
            return DenseStack(check_stack(gammas))
        d = gammas.shape[1]
        limit = CHOLESKY_LIMIT if self.method == "exact" else DENSE_LIMIT
        if self.method in ("eigh", "enumerate", "exact") and d > limit:
            raise ValueError(
                f"the oracle {self.method!r} forms d x d matrices and is meant for d <= {limit}, got d = {d}; use "
                "'power' (l1) or 'refine'"
            )
        return gammas.dense() if self._is_dense(*gammas.shape) else gammas

    def _is_dense(self, m: int, d: int) -> bool:
        """Whether the search is on d x d matrices."""
        if self.method in ("power", "lanczos") or d > COMPRESSED_LIMIT:
            return False
        # For so few outputs Cholesky factors are tight.
        few = MAX_SIGNED if self.norm.exponent == 1 else 2 if self.norm.exponent == 2 else m
        compressed = self.method == "exact" and m > few and m * d * d <= _LARGEST_STACK
        return compressed or d <= DENSE_LIMIT

    def _resolve(self, stack: DenseStack | GradientForms) -> str:
        """Turn "auto" into the method for this stack; matrices that are there need no random bounds."""
        if self.method == "lanczos" and isinstance(stack, DenseStack):
            return "exact"
        if self.method != "auto":
            return self.method
        (m, d), single = stack.shape, self.norm.exponent == math.inf or stack.shape[0] == 1
        if not isinstance(stack, DenseStack):
            return "exact" if d <= CHOLESKY_LIMIT and (single or m == 2) else "power" if single else "refine"
        if single:
            return "eigh"
        few_signs = self.norm.exponent == 1 and 2.0 ** min(m, 64) * d**3 <= _AUTO_WORK
        return "exact" if d <= _AUTO_EXACT or few_signs else "refine"


def basis_oracle(
    norm: NormName | Norm,
    method: OracleName = "auto",
    tol: float = 1e-6,
    max_nodes: int = 1_500_000,
    max_time: float = math.inf,
    seed: int = 0,
) -> BasisOracle:
    """Return an oracle for max over unit h of ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p``.

    Parameters
    ----------
    norm : {"l1", "l1/l2", "l1/linf"}
        The norm of the weights; p is inf, 2 and 1, respectively.
    method : {"auto", "power", "eigh", "refine", "enumerate", "exact", "lanczos"}
        ``"power"`` and ``"eigh"`` return the dominant eigenvector of every Gamma_c, optimal for l1: by Lanczos
        (matrix-free; values are lower bounds; some further eigenvectors too) or by a dense eigen-solver. ``"refine"``
        improves many starts by block ascent; its bound may be loose. ``"enumerate"`` is exact for l1/linf, in 2^(m-1)
        eigenvalue problems, up to m = 20. ``"exact"`` refines and then tightens the bound: by branch and bound for
        l1/linf, and by sums of squares for l1/l2: on parts of the sphere or, beyond d = 26, on more and more of the
        principal directions of the matrices, to a per cent or so, up to d = 1000.
        For d from 501 to 3000, matrix-free, it is by Cholesky factors for l1, for l1/linf with at most 6 outputs, and
        for l1/l2 with two outputs; and beyond d = 1000 for l1/l2 with more, where it is rarely tight.
        ``"lanczos"`` bounds matrices of any order by Lanczos from random starts, by products with the data alone: for
        l1, for l1/linf with at most 6 outputs, and for l1/l2 with at most 8. All of its bounds together hold with a
        probability of at least 1 - 1e-9, over its random starts.
        ``"auto"`` is ``"exact"`` up to d = 26, for l1 and for two outputs up to d = 3000, and for l1/linf with few
        outputs; else ``"refine"``.
    tol : float, default 1e-6
        The tolerance epsilon of power and refinement iterations, relative.
    max_nodes : int, default 1_500_000
        Largest number of nodes of branch and bound in one call; at the limit the best bound so far is returned.
    max_time : float, default no limit
        Largest number of seconds of branch and bound and of sums of squares in one call; Cholesky factors are computed
        only if they are expected to take less. Sums of squares are also limited by a fixed amount of work, so that
        results repeat.
    seed : int, default 0
        Of the random starts of ``"lanczos"``.

    Returns
    -------
    BasisOracle
        Callable on Gamma (m, d, d); it returns :class:`Atoms`.

    Raises
    ------
    ValueError
        For an unknown norm or method, ``"enumerate"`` with another norm than l1/linf, ``tol`` not in (0, 1),
        or limits that are not positive.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = basis_oracle("l1/linf", method="enumerate")
    >>> atoms = oracle(np.array([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -3.0]]]))
    >>> print(round(float(atoms.values[0]), 6), atoms.certified)
    4.0 True
    """
    norm = get_norm(norm)
    method = choice(METHODS)(method, "method")
    if method == "enumerate" and norm.exponent != 1:
        raise ValueError(f"the oracle 'enumerate' is for the norm 'l1/linf' only, got norm={norm.name!r}")
    limits = Limits(check_fraction(tol, "tol"), count()(max_nodes, "max_nodes"), _SECONDS(max_time, "max_time"))
    return BasisOracle(norm, method, limits, count(least=0)(seed, "seed"))


def _scaled(parts: Parts | None, scale: float) -> Parts | None:
    return None if parts is None else Parts(parts.directions, parts.relaxation * scale, parts.compression * scale)


def check_stack(gammas: Any) -> np.ndarray:
    """Return Gamma (m, d, d) as floats; raise ``ValueError`` if it is not a stack of symmetric matrices."""
    gammas = as_numbers(gammas, "Gamma").astype(np.float64, copy=False)
    if gammas.ndim != 3 or gammas.shape[1] != gammas.shape[2] or 0 in gammas.shape:
        raise ValueError(f"Gamma must have shape (m, d, d) with m, d >= 1, got {gammas.shape}")
    if not np.isfinite(gammas).all():
        raise ValueError("Gamma contains NaN or infinity")
    if not np.allclose(gammas, gammas.transpose(0, 2, 1), rtol=1e-8, atol=1e-8 * float(np.abs(gammas).max())):
        raise ValueError("Gamma must be symmetric in its last two axes; symmetrise it as (G + G') / 2 first")
    return gammas
