"""Basis selection (4) of Blondel et al. (NIPS 2017): the best unit for a gradient, and a bound on every unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mopn.core.norms import Norm, get_norm
from mopn.network.gradient_forms import GradientForms
from mopn.solvers.sphere import DenseStack, enumerate_signs, refine
from mopn.solvers.sphere.branch_regions import split_and_bound
from mopn.solvers.sphere.branch_signs import branch_and_bound
from mopn.solvers.sphere.cholesky import expected_seconds, proven_bound
from mopn.solvers.sphere.directions import leaders
from mopn.solvers.sphere.starts import dominant_starts, extreme_starts, gram_starts, random_starts, ritz_starts

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
_WORK, _OVERHEAD = 4e11, 1e7
# What a proof may cost while the gap is wide: this work, and this part of the nodes of branch and bound.
_ROUND_WORK, _ROUND_NODES = 2e8, 0.03
# method "auto" proves what it finds up to this d, and under l1/linf where all sign vectors are as little work as this.
_AUTO_EXACT, _AUTO_WORK = 26, 1e8
# Value and bound meet when they agree to this, relative; it leaves room for the rounding errors in the bound.
_MEET = 1e-6
_SAME_DIRECTION = 0.98
_MIN_LOOKS = 10
# Sums of squares come near their limit slowly; a call that does not say otherwise is content with this.
_DEFAULT_FOR_TWO = 1e-4
# Many starts end in the same few maxima: all are refined to the rough tolerance (with matrices), so many of them to the
# oracle's own.
_ROUGH, _REFINED = 1e-3, 8
# Without matrices, values err by this part of what the bound may; and steps that gain little more than that are few.
_FINER, _STEPS = 0.01, 100


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
    final : bool
        Whether the method has no tighter bound, whatever precision is asked for.
    """

    basis: np.ndarray
    values: np.ndarray
    bound: float
    certified: bool
    work: int = 0
    final: bool = False


class _Proof(NamedTuple):
    """Unit vectors (k, d) found on the way, the bound, and the work."""

    H: np.ndarray
    bound: float
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
        self,
        gammas: np.ndarray | DenseStack | GradientForms,
        precision: float | None = None,
        patience: float = math.inf,
    ) -> Atoms:
        """Select units for symmetric matrices Gamma (m, d, d), or for the forms of a gradient.

        Parameters
        ----------
        gammas : ndarray of shape (m, d, d), DenseStack or GradientForms
        precision : float, optional
            How far the bound may exceed the best value, relative, before more is spent on it; default ``tol``, for
            l1/l2 1e-4.
        patience : float, default inf
            Seconds that a proof may take, within the oracle's own limits; 0 for as little, in steps and nodes, as a
            round of a fit is worth.
        """
        stack, scale = self._prepare(gammas).scaled()
        precision, method = self._precision(precision), self._resolve(stack)
        H, values, bound, work = self._maximise(stack, method, precision, patience)
        H, values = _distinct(H, values)
        certified = bool(bound <= values[0] * (1.0 + _MEET))
        return Atoms(H, values * scale, bound * scale, certified, work, method != "exact")

    def bound(
        self,
        gammas: np.ndarray | DenseStack | GradientForms,
        precision: float | None = None,
        patience: float = math.inf,
    ) -> float:
        """Return the bound of a call alone; units are selected only where their proof starts from them."""
        prepared = self._prepare(gammas)
        method = self._resolve(prepared)
        if method == "enumerate" or (method == "exact" and isinstance(prepared, DenseStack)):
            return self(prepared, precision, patience).bound
        stack, scale = prepared.scaled()
        bound = stack.bound(self.norm.exponent)
        if method == "exact":
            bound = min(bound, self._prove_by_cholesky(stack, self._precision(precision), patience).bound)
        return bound * scale

    def _precision(self, precision: float | None) -> float:
        default = _DEFAULT_FOR_TWO if self.norm.exponent == 2 else 0.0
        return max(self.tol, default if precision is None else min(precision, 1.0))

    def _maximise(
        self, stack: Any, method: str, precision: float, patience: float
    ) -> tuple[np.ndarray, np.ndarray, float, int]:
        """Return unit vectors, their values, a proven bound, and the work of its proof."""
        p = self.norm.exponent
        if method == "enumerate":
            h, bound = enumerate_signs(stack)
            return h[None], np.linalg.norm(stack.forms(h[None]), p, axis=1), bound, 0
        bound = stack.bound(p)
        tol = self._tolerance(stack, method, precision, patience)
        H = self._starts(stack, method, tol)
        values = np.linalg.norm(stack.forms(H), p, axis=1)
        if method in ("refine", "exact") and not (p == math.inf or stack.shape[0] == 1):
            H, values = self._refine(stack, H, values, tol)
        if method != "exact" or bound <= values.max() * (1.0 + precision):
            return H, values, bound, 0
        proof = self._prove(stack, H, values, precision, patience)
        H = np.vstack([H, proof.H])
        return H, np.linalg.norm(stack.forms(H), p, axis=1), min(bound, proof.bound), proof.work

    def _tolerance(self, stack: Any, method: str, precision: float, patience: float) -> float:
        """Return how exact values are to be: without matrices, where steps are dear, as little as will do."""
        if isinstance(stack, DenseStack):
            return self.tol
        # Where nothing is proven, rounds of a fit want units alone.
        precision = precision if method == "exact" or patience > 0 else 1.0
        return max(self.tol, min(_ROUGH, _FINER * precision))

    def _refine(self, stack: Any, starts: np.ndarray, values: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
        """Refine all starts roughly, and the best distinct ones to ``tol``; keep the starts.

        Many starts may end in the same few maxima, and what a fit adds beside those should differ. Without matrices,
        where steps are dear, the best ones alone are refined.
        """
        p = self.norm.exponent
        if not isinstance(stack, DenseStack):
            H, _ = _distinct(starts, values)
            best, best_values = refine(stack, H[:_REFINED], p, tol=tol, max_iter=min(_STEPS, int(_FINER / tol)))
            return np.vstack([best, starts]), np.concatenate([best_values, values])
        H, rough = _distinct(*refine(stack, starts, p, tol=max(_ROUGH, tol), max_iter=_STEPS))
        best, best_values = refine(stack, H[:_REFINED], p, tol=tol, max_iter=_STEPS)
        return np.vstack([best, H[_REFINED:], starts]), np.concatenate([best_values, rough[_REFINED:], values])

    def _prove(self, stack: Any, H: np.ndarray, values: np.ndarray, precision: float, patience: float) -> _Proof:
        """Close the gap between value and bound, as far as the limits allow."""
        p, (_, d) = self.norm.exponent, stack.shape
        final, seconds = patience > 0, min(self.max_time, patience or math.inf)
        if not isinstance(stack, DenseStack):
            return self._prove_by_cholesky(stack, precision, patience)
        if p == 1:
            nodes = self.max_nodes if final else math.ceil(_ROUND_NODES * self.max_nodes)
            best = H[[np.argmax(values)]]
            h, bound, nodes = branch_and_bound(stack, best, precision, max_nodes=nodes, max_time=seconds)
            return _Proof(h[None], bound, nodes)
        looks = int((_WORK if final else _ROUND_WORK) / ((d * (d + 1) / 2) ** 3 + _OVERHEAD))
        if p == math.inf or d > SUM_OF_SQUARES_LIMIT or looks < _MIN_LOOKS:
            return _Proof(H[:0], math.inf)
        split = split_and_bound(stack, H, precision, self._warm.get("N"), max_looks=looks, max_time=seconds)
        if not final or math.isinf(patience):
            # What a clock may have cut short must not change later answers.
            self._warm["N"] = split.N
        return _Proof(split.H, split.bound, split.looks)

    def _prove_by_cholesky(self, stack: Any, precision: float, patience: float) -> _Proof:
        """Return a proof that needs no vectors to start from, if it is expected to end in time."""
        p = self.norm.exponent
        if expected_seconds(stack, p) > min(patience, self.max_time):
            return _Proof(np.zeros((0, stack.shape[1])), math.inf)
        return _Proof(*proven_bound(stack, p, precision))

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
        few_signs = self.norm.exponent == 1 and 2.0 ** min(m, 64) * d**3 <= _AUTO_WORK
        return "exact" if d <= _AUTO_EXACT or few_signs else "refine"

    def _starts(self, stack: Any, method: str, tol: float) -> np.ndarray:
        """Return start vectors (k, d): the dominant eigenvectors of the Gamma_c, and more where they are refined."""
        p = self.norm.exponent
        alone = p == math.inf or stack.shape[0] == 1 or method in ("power", "eigh")
        if not isinstance(stack, DenseStack):
            return ritz_starts(stack, p, tol, combined=not alone)
        if alone:
            return dominant_starts(stack)
        starts = [extreme_starts(stack), gram_starts(stack, p)]
        # For p = 2 those are nearly always enough; the maxima of sum_c |q_c| are many and sharp.
        return np.vstack([*starts, random_starts(stack)] if p == 1 else starts)


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
        ``"power"`` and ``"eigh"`` return the dominant eigenvector of every Gamma_c, by Lanczos (matrix-free, a lower
        bound; further ones as well) or by a dense eigen-solver: optimal for l1. ``"refine"`` improves many starts by
        block ascent and proves little. ``"enumerate"`` is exact for l1/linf, in 2^(m-1) eigenvalue problems, up to m =
        20. ``"exact"`` proves what ``"refine"`` finds, and finds more: by branch and bound for l1/linf (d <= 500), by
        sums of squares on parts of the sphere for l1/l2 (d <= 65; beyond, by eigenvalues alone). For d up to 3000
        Cholesky factors prove l1, l1/linf with at most 6 outputs, and l1/l2 with two classes.
        ``"auto"`` is ``"exact"`` up to d = 26, for l1 and for two outputs up to d = 3000, and for l1/linf with few
        outputs; else ``"refine"``.
    tol : float, default 1e-6
        The tolerance epsilon of power and refinement iterations, relative.
    max_nodes : int, default 1_500_000
        Limit on the nodes of branch and bound in one call; at a limit the best open bound is returned.
    max_time : float, default no limit
        Limit on the seconds of branch and bound and of sums of squares in one call, and on what Cholesky factors are
        expected to take. Sums of squares are also limited by a fixed amount of work, so that results repeat.

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
    kept = order[leaders(H, order, _SAME_DIRECTION)[order] == order]
    return H[kept], values[kept]
