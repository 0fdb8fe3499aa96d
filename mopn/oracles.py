"""Basis selection (4) of Blondel et al. (NIPS 2017): the best unit for a gradient, and a bound on every unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mopn.kernels import GradientForms
from mopn.norms import Norm, get_norm
from mopn.solvers.sphere import DenseStack, enumerate_signs, refine
from mopn.solvers.sphere.branch_and_bound import branch_and_bound
from mopn.solvers.sphere.cholesky import proven_bound
from mopn.solvers.sphere.splitting import split_and_bound
from mopn.solvers.sphere.starts import dominant_starts, extreme_starts, gram_starts, random_starts

__all__ = ["METHODS", "Atoms", "BasisOracle", "basis_oracle"]

METHODS = ("auto", "power", "eigh", "refine", "enumerate", "exact")

# Stacks of d x d matrices are formed up to this d; beyond it, and for method "power", oracles are matrix-free.
DENSE_LIMIT = 500
# Single d x d matrices are formed, and factorised for a proof, up to this d.
CHOLESKY_LIMIT = 3000
# Sums of squares work on matrices of dimension D = d (d + 1) / 2.
SUM_OF_SQUARES_LIMIT = 65
# One step decomposes such a matrix; the steps of a call are bounded by D^3 and an overhead, whatever the machine's
# speed.
_WORK, _OVERHEAD = 1e11, 1e6
# method "auto" proves what it finds up to this d.
_AUTO_EXACT = 26
# Value and bound meet when they agree to this, relative; it leaves room for the rounding errors in the bound.
_MEET = 1e-6
_SAME_DIRECTION = 0.98
_MIN_LOOKS = 10
# Sums of squares come near their limit slowly; a call that does not say otherwise is content with this.
_DEFAULT_FOR_TWO = 1e-4
# Many starts end in the same few maxima: all are refined to the rough tolerance, so many of them to the oracle's own.
_ROUGH, _REFINED = 1e-3, 8


@dataclass(frozen=True)
class Atoms:
    """Answer of an oracle.

    Attributes
    ----------
    basis : ndarray of shape (q, d)
        Distinct unit vectors, best first.
    values : ndarray of shape (q,)
        ``||q(h_r)||_p`` of each: lower bounds of the dual norm.
    bound : float
        Proven upper bound of the dual norm max_h ``||q(h)||_p``, rounding errors included; possibly loose.
    certified : bool
        Whether the best value and the bound meet (to 1e-6, relative): the unit is proven optimal.
    work : int
        What the proof took: nodes of branch and bound, or decompositions of the sums of squares; 0 for other bounds.
    """

    basis: np.ndarray
    values: np.ndarray
    bound: float
    certified: bool
    work: int = 0


@dataclass(frozen=True)
class BasisOracle:
    """Oracle made by :func:`basis_oracle`; call it on a stack Gamma (m, d, d)."""

    norm: Norm
    method: str
    tol: float
    max_nodes: int
    max_time: float
    # The sum-of-squares proof of the last call starts the next one: gradients change little from round to round.
    _warm: dict[str, np.ndarray] = field(default_factory=dict, compare=False, repr=False)

    def __call__(
        self, gammas: np.ndarray | DenseStack | GradientForms, precision: float | None = None, share: float = 1.0
    ) -> Atoms:
        """Select units for symmetric matrices Gamma (m, d, d), or for the forms of a gradient.

        Parameters
        ----------
        gammas : ndarray of shape (m, d, d), DenseStack or GradientForms
        precision : float, optional
            How far the bound may exceed the best value, relative, before more is spent on it; default ``tol``, for
            l1/l2 1e-4.
        share : float, default 1
            Share of the limits on a proof that may be spent. Below 1, no matrices are factorised for large d.
        """
        stack, scale = self._prepare(gammas).scaled()
        default = _DEFAULT_FOR_TWO if self.norm.exponent == 2 else 0.0
        precision = max(self.tol, default if precision is None else min(precision, 1.0))
        H, values, bound, work = self._maximise(stack, self._resolve(stack), precision, share)
        H, values = _distinct(H, values)
        return Atoms(H, values * scale, bound * scale, bool(bound <= values[0] * (1.0 + _MEET)), work)

    def _maximise(
        self, stack: Any, method: str, precision: float, share: float
    ) -> tuple[np.ndarray, np.ndarray, float, int]:
        """Return unit vectors, their values, a proven bound, and the work of its proof."""
        p, work = self.norm.exponent, 0
        if method == "enumerate":
            h, bound = enumerate_signs(stack)
            return h[None], np.linalg.norm(stack.forms(h[None]), p, axis=1), bound, work
        bound = stack.bound(p)
        H = self._starts(stack, method)
        values = np.linalg.norm(stack.forms(H), p, axis=1)
        if method in ("refine", "exact") and not (p == math.inf or stack.shape[0] == 1):
            H, values = self._refine(stack, H)
        if method == "exact" and bound > values.max() * (1.0 + precision):
            new, tight, work = self._tighten(stack, H, values, precision, share)
            H = np.vstack([H, new])
            values = np.linalg.norm(stack.forms(H), p, axis=1)
            bound = min(bound, tight)
        return H, values, bound, work

    def _refine(self, stack: Any, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Refine all starts roughly, and the best distinct ones to the end."""
        H, values = _distinct(*refine(stack, H, self.norm.exponent, tol=max(_ROUGH, self.tol)))
        best, best_values = refine(stack, H[:_REFINED], self.norm.exponent, tol=self.tol)
        return np.vstack([best, H[_REFINED:]]), np.concatenate([best_values, values[_REFINED:]])

    def _tighten(
        self, stack: Any, H: np.ndarray, values: np.ndarray, precision: float, share: float
    ) -> tuple[np.ndarray, float, int]:
        """Close the gap between value and bound; return new unit vectors, a bound and the work."""
        p, (_, d) = self.norm.exponent, stack.shape
        if not isinstance(stack, DenseStack):
            new, bound = proven_bound(stack, p, precision) if share >= 1.0 else (H[:0], math.inf)
            return new, bound, 0
        if p == 1:
            h, bound, nodes = branch_and_bound(
                stack,
                H[[np.argmax(values)]],
                tol=precision,
                max_nodes=math.ceil(share * self.max_nodes),
                max_time=self.max_time,
            )
            return h[None], bound, nodes
        if p == math.inf or d > SUM_OF_SQUARES_LIMIT:
            return H[:0], math.inf, 0
        looks = int(share * _WORK / ((d * (d + 1) / 2) ** 3 + _OVERHEAD))
        split = split_and_bound(
            stack, H, precision, self._warm.get("N"), max_looks=max(looks, _MIN_LOOKS), max_time=self.max_time
        )
        self._warm["N"] = split.N
        return split.H, split.bound, split.looks

    def _prepare(self, gammas: Any) -> Any:
        if isinstance(gammas, DenseStack):
            return gammas
        if not isinstance(gammas, GradientForms):
            return DenseStack(check_stack(gammas))
        d = gammas.shape[1]
        limit = CHOLESKY_LIMIT if self.method == "exact" else DENSE_LIMIT
        if self.method in ("eigh", "enumerate", "exact") and d > limit:
            raise ValueError(
                f"method={self.method!r} forms d x d matrices and is meant for d <= {limit}, got d = {d}; use "
                "method='power' (l1) or 'refine'"
            )
        return gammas.dense() if d <= DENSE_LIMIT and self.method != "power" else gammas

    def _resolve(self, stack: Any) -> str:
        """Turn "auto" into the method for this stack."""
        if self.method != "auto":
            return self.method
        (m, d), single = stack.shape, self.norm.exponent == math.inf or stack.shape[0] == 1
        if not isinstance(stack, DenseStack):
            return "exact" if d <= CHOLESKY_LIMIT and (single or m == 2) else "power" if single else "refine"
        if single:
            return "eigh"
        return "exact" if d <= _AUTO_EXACT else "refine"

    def _starts(self, stack: Any, method: str) -> np.ndarray:
        """Return start vectors (k, d): the dominant eigenvectors of the Gamma_c, and more where they are refined."""
        p = self.norm.exponent
        if p == math.inf or stack.shape[0] == 1 or method in ("power", "eigh"):
            return dominant_starts(stack, self.tol)
        if isinstance(stack, DenseStack):
            starts = [extreme_starts(stack), gram_starts(stack, p)]
            # For p = 2 those are nearly always enough; the maxima of sum_c |q_c| are many and sharp.
            return np.vstack([*starts, random_starts(stack)] if p == 1 else starts)
        return np.vstack([dominant_starts(stack, self.tol), gram_starts(stack, p)])


def basis_oracle(
    norm: str | Norm,
    method: str = "auto",
    tol: float = 1e-6,
    max_nodes: int = 1_500_000,
    max_time: float = math.inf,
) -> BasisOracle:
    """Return an oracle for max over unit h of ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p``.

    Parameters
    ----------
    norm : {"l1", "l1/l2", "l1/linf"}
        The norm of the weights; p is inf, 2 and 1, respectively.
    method : {"auto", "power", "eigh", "refine", "enumerate", "exact"}
        ``"power"`` and ``"eigh"`` return the dominant eigenvector of every Gamma_c, by Lanczos (matrix-free, a
        lower bound) or by a dense eigen-solver: optimal for l1. ``"refine"`` improves many starts by block ascent and
        proves little. ``"enumerate"`` is exact for l1/linf, in 2^(m-1) eigenvalue problems, up to m = 20.
        ``"exact"`` proves what ``"refine"`` finds, and finds more: by branch and bound for l1/linf (d <= 500), by
        sums of squares on parts of the sphere for l1/l2 (d <= 65; beyond, by eigenvalues alone). For d up to 3000
        Cholesky factors prove l1, l1/linf with at most 6 outputs, and l1/l2 with two classes.
        ``"auto"`` is ``"exact"`` up to d = 26 and for l1 and two outputs up to d = 3000, else ``"refine"``.
    tol : float, default 1e-6
        The tolerance epsilon of power and refinement iterations, relative.
    max_nodes : int, default 1_500_000
        Limit on the nodes of branch and bound in one call; at a limit the best open bound is returned.
    max_time : float, default no limit
        Limit on the seconds of branch and bound and of sums of squares in one call. The latter are also limited by
        a fixed amount of work, so that results repeat.

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
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    if method == "enumerate" and norm.exponent != 1:
        raise ValueError(f"method='enumerate' is for the norm 'l1/linf' only, got norm={norm.name!r}")
    if not 0 < tol < 1:
        raise ValueError(f"tol must lie in (0, 1), got {tol!r}")
    if not max_nodes >= 1:
        raise ValueError(f"max_nodes must be >= 1, got {max_nodes!r}")
    if not max_time > 0:
        raise ValueError(f"max_time must be > 0 seconds, got {max_time!r}")
    return BasisOracle(norm, method, tol, max_nodes, max_time)


def check_stack(gammas: Any) -> np.ndarray:
    """Return Gamma (m, d, d) as floats, or say what is wrong with it."""
    gammas = np.asarray(gammas, dtype=float)
    if gammas.ndim != 3 or gammas.shape[1] != gammas.shape[2] or 0 in gammas.shape:
        raise ValueError(f"Gamma must have shape (m, d, d) with m, d >= 1, got {gammas.shape}")
    if not np.isfinite(gammas).all():
        raise ValueError("Gamma contains NaN or infinity")
    if not np.allclose(gammas, gammas.transpose(0, 2, 1), rtol=1e-8, atol=1e-8 * float(np.abs(gammas).max())):
        raise ValueError("Gamma must be symmetric in its last two axes; symmetrise it as (G + G') / 2 first")
    return gammas


def _distinct(H: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort by value and drop what points (up to sign) nearly where a better one does."""
    order = np.argsort(-values, kind="stable")
    kept: list[int] = []
    for r in order:
        if not kept or np.max(np.abs(H[kept] @ H[r])) < _SAME_DIRECTION:
            kept.append(int(r))
    return H[kept], values[kept]
