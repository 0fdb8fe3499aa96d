"""Bounds for p = 2 by sums of squares: the quartic sum_c (h' Gamma_c h)^2 on the unit sphere, as a form of degree 2k.

On the unit sphere ``||h||^(2k - 4)`` is 1. So the quartic is a quadratic form M on Sym^k(R^d), at the vector z of the
scaled monomials of h, of length 1. Every symmetric N whose full symmetrisation is zero has z' N z = 0, so
lambda_max(M + N) bounds the quartic, and any such N is a proof. The least of these bounds falls to the maximum as k
grows. The first, k = 2, is mostly tight for loss gradients; where it is not, the next one was in all cases tried.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np
from scipy.optimize import nnls

from mopn.solvers.numerics.precision import EPS, JITTER
from mopn.solvers.sphere.boundary_point import Multipliers, RelaxationBound, step_work, tighten
from mopn.solvers.sphere.bounds import eigen_error
from mopn.solvers.sphere.lifting import lifting
from mopn.solvers.sphere.refinement import SAME_MAXIMUM, distinct, refine
from mopn.solvers.sphere.stack import DenseStack
from mopn.solvers.tools.budgets import Budget

# The largest k.
_MAX_DEGREE = 5
# The largest order of M beyond k = 2: a step then takes a second.
_MAX_ORDER = 1600
# Steps that must be affordable for a further k: fewer prove nothing.
_MIN_STEPS = 20
# Value of active units, at least, as a fraction of the best.
_MIN_ACTIVE_VALUE = 0.95


class Quartic:
    """The quartic of a stack as a quadratic form M on Sym^2(R^d), for a stack scaled to about 1."""

    def __init__(self, stack: DenseStack) -> None:
        m, d = stack.shape
        self.lift = lifting(d)
        vectors = self.lift.vectors(stack.matrices)
        self.matrix = vectors.T @ vectors
        self._size = float(np.sum(vectors**2))
        # Rounding error of the matrix M.
        self.rounding = (m + 3) * EPS * self._size

    def raised(self) -> Quartic:
        """Return the quartic times ``||h||^2``, as a form on Sym^(k+1)(R^d)."""
        above = copy(self)
        above.lift = lifting(self.lift.d, self.lift.degree + 1)
        above.matrix = above.lift.raised(self.matrix)
        # Each entry is a sum of at most k + 1 entries of M, each with a factor.
        above.rounding = self.rounding + (above.lift.degree + 6) * EPS * self._size
        return above

    def project(self, V: np.ndarray) -> np.ndarray:
        return self.lift.project(0.5 * (V + V.T))

    def bound(self, form: np.ndarray, top: float, N: np.ndarray) -> float:
        """Return the proven bound by M + N for the stack's matrices, as if these were exact."""
        # Rounding makes the symmetrisation of N nonzero.
        terms = math.comb(2 * self.lift.degree, self.lift.degree)
        error = float(np.linalg.norm(self.lift.symmetrised(N))) + (terms + 8) * EPS * float(np.linalg.norm(N))
        return max(top, 0.0) * (1 + 8 * EPS) + self.rounding + error + eigen_error(form)

    def starts(self, X: np.ndarray) -> np.ndarray:
        """Return vectors (3, d), near units h whose z are near the three top eigenvectors of X."""
        _, vectors = np.linalg.eigh(X)
        directions, _, _ = np.linalg.svd(self.lift.unfolded(vectors[:, -3:].T), full_matrices=False)
        return directions[:, :, 0]


def bound_by_squares(
    stack: DenseStack, H: np.ndarray, tol: float = 1e-4, budget: Budget | None = None, last: Multipliers | None = None
) -> RelaxationBound:
    """Bound sqrt(sum_c (h' Gamma_c h)^2) over unit h by forms of degree 4, 6 and so on until the bound is tight."""
    budget = budget or Budget()
    error = float(np.linalg.norm(stack.error))
    H, values = refine(stack, H, 2)
    quartic = Quartic(stack)
    bound = math.inf
    order = len(quartic.matrix)
    start = first = last if last and len(last.N) == order else Multipliers.none(order)
    while True:
        proof = tighten(quartic, start, _target(values, tol, error), budget)
        if bound == math.inf:
            first = proof
        bound = min(bound, proof.bound)
        new, new_values = refine(stack, quartic.starts(proof.X), 2)
        H = np.vstack([H, new])
        values = np.concatenate([values, new_values])
        if bound <= _target(values, tol, error) or not _has_next(quartic, budget):
            return RelaxationBound(H, math.sqrt(bound) + error, first)
        above = quartic.raised()
        active = H[values >= _MIN_ACTIVE_VALUE * values.max()]
        start = _raised(proof, quartic, above, active)
        quartic = above


def square_multipliers(matrices: np.ndarray, target: float) -> np.ndarray:
    """Return multipliers N (d^2, d^2) that prove a bound of about ``target``, or the least found, for k = 2.

    (h x h)' N (h x h) = 0 for all h, so that lambda_max(sum_c vec(Gamma_c) vec(Gamma_c)' + N) bounds the quartic.
    """
    stack, size = DenseStack(matrices).scaled()
    quartic = Quartic(stack)
    d = matrices.shape[1]
    proof = tighten(quartic, Multipliers.none(len(quartic.matrix)), (target / size) ** 2, Budget())
    pairs = np.eye(d * d).reshape(d * d, d, d)
    lifted = quartic.lift.vectors(0.5 * (pairs + pairs.transpose(0, 2, 1)))
    return size**2 * (lifted @ proof.N @ lifted.T)


def _target(values: np.ndarray, tol: float, error: float) -> float:
    """Return a tight bound of the quartic: within tol, or within the error of the matrices."""
    best = float(values.max())
    return max(best * (1.0 + tol) - error, best + error) ** 2


def _has_next(quartic: Quartic, budget: Budget) -> bool:
    """Whether the form of the next degree is small enough, and affordable."""
    k = quartic.lift.degree + 1
    d = quartic.lift.d
    order = math.comb(d + k - 1, k)
    return k <= _MAX_DEGREE and order <= _MAX_ORDER and budget.affords(_MIN_STEPS * step_work(order))


def _raised(proof: Multipliers, below: Quartic, above: Quartic, H: np.ndarray) -> Multipliers:
    """Return the start of the next degree: the same proof, and moments of units H, fitted to X."""
    H, _ = distinct(H, np.ones(len(H)), SAME_MAXIMUM)
    Z = below.lift.powers(H)
    # Least squares ||sum_r w_r z_r z_r' - X|| over w >= 0, by its normal equations.
    factor = np.linalg.cholesky((Z @ Z.T) ** 2 + JITTER * np.eye(len(Z)))
    moments = np.linalg.solve(factor, np.einsum("ra,ab,rb->r", Z, proof.X, Z))
    weights, _ = nnls(factor.T, moments, maxiter=100 * len(Z))  # it raises an error at its limit
    Z = above.lift.powers(H)
    N = above.project(above.lift.raised(proof.N))
    return Multipliers(N, (Z.T * weights) @ Z)
