"""Basis selection (4) of Blondel et al. (NIPS 2017): the best unit for a gradient, and a bound on every unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mopn.kernels import GradientForms
from mopn.norms import Norm, get_norm
from mopn.solvers.sphere import DenseStack, enumerate_signs, lanczos, refine
from mopn.solvers.sphere.branch_and_bound import branch_and_bound
from mopn.solvers.sphere.extremes import lanczos_start
from mopn.solvers.sphere.sum_of_squares import relax

__all__ = ["METHODS", "Atoms", "BasisOracle", "basis_oracle"]

METHODS = ("auto", "power", "eigh", "refine", "enumerate", "exact")

# Dense matrices d x d are formed up to this d; beyond it, and for method "power", oracles are matrix-free.
DENSE_LIMIT = 500
# Sums of squares work on matrices of dimension d (d + 1) / 2.
SUM_OF_SQUARES_LIMIT = 65
# method "auto" proves what it finds up to this d.
_AUTO_EXACT = 26
# Value and bound meet when they agree to this, relative; it leaves room for the rounding errors in the bound.
_MEET = 1e-6
_SAME_DIRECTION = 0.98


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
    """

    basis: np.ndarray
    values: np.ndarray
    bound: float
    certified: bool


@dataclass(frozen=True)
class BasisOracle:
    """Oracle made by :func:`basis_oracle`; call it on a stack Gamma (m, d, d)."""

    norm: Norm
    method: str
    tol: float
    max_nodes: int = 20_000
    # The sum-of-squares proof of the last call starts the next one: gradients change little from round to round.
    _warm: dict[str, np.ndarray] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, gammas: np.ndarray | DenseStack | GradientForms, precision: float | None = None) -> Atoms:
        """Select units for symmetric matrices Gamma (m, d, d), or for the forms of a gradient.

        Parameters
        ----------
        gammas : ndarray of shape (m, d, d), DenseStack or GradientForms
        precision : float, optional
            How far the bound may exceed the best value, relative, before more is spent on it; default ``tol``.
        """
        stack, scale = self._prepare(gammas).scaled()
        precision = max(self.tol, 0.0 if precision is None else min(precision, 1.0))
        H, values, bound = self._maximise(stack, self._resolve(stack), precision)
        H, values = _distinct(H, values)
        return Atoms(H, values * scale, bound * scale, bool(bound <= values[0] * (1.0 + _MEET)))

    def _maximise(self, stack: Any, method: str, precision: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Return unit vectors, their values and a proven bound."""
        p = self.norm.exponent
        if method == "enumerate":
            h, bound = enumerate_signs(stack)
            return h[None], np.linalg.norm(stack.forms(h[None]), p, axis=1), bound
        bound = stack.bound(p)
        H, values = self._starts(stack, method)
        if method in ("refine", "exact") and not (p == math.inf or stack.shape[0] == 1):
            H, values = refine(stack, H, p, tol=self.tol)
        if method == "exact" and bound > values.max() * (1.0 + precision):
            H, values, tight = self._tighten(stack, H, values, precision)
            bound = min(bound, tight)
        return H, values, bound

    def _tighten(
        self, stack: DenseStack, H: np.ndarray, values: np.ndarray, precision: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Close the gap between value and bound: branch and bound for p = 1, sums of squares for p = 2."""
        if self.norm.exponent == 1:
            h, bound = branch_and_bound(stack, H[[np.argmax(values)]], tol=precision, max_nodes=self.max_nodes)
            new = h[None]
        else:
            if stack.shape[1] > SUM_OF_SQUARES_LIMIT:
                return H, values, math.inf
            relaxation = relax(stack, self._warm.get("N"), target=float(values.max()) * (1.0 + precision))
            self._warm["N"] = relaxation.N
            new, bound = refine(stack, relaxation.starts, 2, tol=self.tol)[0], relaxation.bound
        H = np.vstack([H, new])
        return H, np.linalg.norm(stack.forms(H), self.norm.exponent, axis=1), bound

    def _prepare(self, gammas: Any) -> Any:
        if isinstance(gammas, DenseStack):
            return gammas
        if isinstance(gammas, GradientForms):
            small = gammas.shape[1] <= DENSE_LIMIT
            if self.method in ("eigh", "enumerate", "exact") and not small:
                raise ValueError(
                    f"method={self.method!r} forms d x d matrices and is meant for d <= {DENSE_LIMIT}, "
                    f"got d = {gammas.shape[1]}; use method='power' (l1) or 'refine'"
                )
            return gammas.dense() if small and self.method != "power" else gammas
        return DenseStack(check_stack(gammas))

    def _resolve(self, stack: Any) -> str:
        """Turn "auto" into the method for this stack."""
        if self.method != "auto":
            return self.method
        if not isinstance(stack, DenseStack):
            return "power" if self.norm.exponent == math.inf else "refine"
        m, d = stack.shape
        if self.norm.exponent == math.inf or m == 1:
            return "eigh"
        return "exact" if d <= _AUTO_EXACT else "refine"

    def _starts(self, stack: Any, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the l1 start: a dominant eigenvector of every Gamma_c, and the values under this norm."""
        m, d = stack.shape
        start = lanczos_start(m, d)
        if method == "power" or not isinstance(stack, DenseStack):
            H = lanczos(stack, np.eye(m), start, tol=self.tol)
        elif method == "exact":
            values, vectors = stack.eigen
            H = np.concatenate([vectors[:, :, -1], vectors[:, :, 0]])
        else:
            values, vectors = stack.eigen
            H = vectors[np.arange(m), :, np.abs(values).argmax(axis=1)]
        return H, np.linalg.norm(stack.forms(H), self.norm.exponent, axis=1)


def basis_oracle(norm: str | Norm, method: str = "auto", tol: float = 1e-6) -> BasisOracle:
    """Return an oracle for max over unit h of ``||(h' Gamma_1 h, ..., h' Gamma_m h)||_p``.

    Parameters
    ----------
    norm : {"l1", "l1/l2", "l1/linf"}
        The norm of the weights; p is inf, 2 and 1, respectively.
    method : {"auto", "power", "eigh", "refine", "enumerate", "exact"}
        ``"power"`` and ``"eigh"`` return the dominant eigenvector of every Gamma_c, by Lanczos (matrix-free, a
        lower bound) or by a dense eigen-solver: optimal for l1. ``"refine"`` improves them by block ascent.
        ``"enumerate"`` is exact for l1/linf, in 2^(m-1) eigenvalue problems, up to m = 20. ``"exact"`` refines from
        both extreme eigenvectors of every Gamma_c and proves the optimum: by branch and bound for l1/linf, by sums of
        squares for l1/l2 (nearly always tight, up to d = 65). ``"auto"`` is ``"exact"`` up to d = 26, ``"refine"``
        beyond; for l1 it is ``"eigh"``, and ``"power"`` for d > 500.
    tol : float, default 1e-6
        The tolerance epsilon of power and refinement iterations, relative.

    Returns
    -------
    BasisOracle
        Callable on Gamma (m, d, d); it returns :class:`Atoms`.

    Raises
    ------
    ValueError
        For an unknown norm or method, ``"enumerate"`` with another norm than l1/linf, or ``tol`` not in (0, 1).

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
    return BasisOracle(norm, method, tol)


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
