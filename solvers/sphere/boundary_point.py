"""The least largest eigenvalue of M + N over multipliers N, by the boundary point method.

A relaxation bounds a form x' M x over some unit vectors x by lambda_max(M + N). The multipliers N are a linear space,
or a convex cone, of symmetric matrices that are nowhere negative on these x. Any N is a proof. The least bound is a
semidefinite program,

    minimise s  subject to  S = s I - M - N positive semidefinite,

whose dual variable X, a matrix of trace 1, takes the place of a mean of xx': the pseudo-moments. The boundary point
method (Povh, Rendl and Wiegele, Computing 78, 2006; Malick, Povh, Rendl and Wiegele, SIAM J. Optim. 20, 2009)
alternates between (s, N) and S in the augmented Lagrangian. The first are a projection, and S and X the two parts of
one matrix by the sign of its eigenvalues. Only the positive part is decomposed; its rank is about the number of
maximisers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh

from mopn.solvers.tools.budgets import Budget

# Steps at a node of a branch and bound; fewer prove little.
FEW_STEPS = 60
# The penalty sigma of the first step, for a bound of 1.
_FIRST_SIGMA = 0.05
# Length of the dual step, between 1 and 2.
_DUAL_STEP = 1.6
# Steps between two checks, each with a proof, which takes as long as a step.
_CHECK_EVERY = 10
# Ratio of the primal and dual residuals, or its inverse, from which on a check changes sigma.
_MAX_RESIDUAL_RATIO = 5.0
# Factor by which a check changes sigma.
_SIGMA_FACTOR = 1.5
# The target is out of reach if the checks of the next number remove at most this fraction of the excess over it.
_LEAST_PROGRESS = 0.15
# Checks to wait for progress if the estimated limit s, too, leaves most of the excess.
_FEW_CHECKS = 10
# Checks to wait for progress otherwise.
_MANY_CHECKS = 50


class Relaxation(Protocol):
    """A form, and the multipliers that may be added to it."""

    @property
    def matrix(self) -> np.ndarray:
        """M (n, n), symmetric."""

    def project(self, V: np.ndarray) -> np.ndarray:
        """Return the multiplier nearest to a matrix, symmetric to the last bit, as solvers read only one triangle."""

    def bound(self, form: np.ndarray, top: float, N: np.ndarray) -> float:
        """Return the proven bound by the computed M + N, given its computed largest eigenvalue."""


class Multipliers(NamedTuple):
    """Multipliers N (n, n), the pseudo-moments X (n, n), and the bound that N proves."""

    N: np.ndarray
    X: np.ndarray
    bound: float = math.inf

    @classmethod
    def none(cls, n: int) -> Multipliers:
        return cls(np.zeros((n, n)), np.zeros((n, n)))


class RelaxationBound(NamedTuple):
    """Unit vectors (k, d) found, a proven bound, and the multipliers for the next proof."""

    H: np.ndarray
    bound: float
    last: Any = None


def step_work(n: int) -> float:
    """Return the operations of a step on matrices of order n."""
    # The overhead of its calls is worth 4e6 operations, however small n is.
    return 0.5 * float(n) ** 3 + 4e6


def tighten(relaxation: Relaxation, start: Multipliers, target: float, budget: Budget) -> Multipliers:
    """Return multipliers that prove a bound of at most ``target``, or the best found."""
    M = relaxation.matrix
    n = len(relaxation.matrix)
    identity = np.eye(n)
    # s I - N is the same as s J - N for the part J of I that no multiplier can replace, and (s, N) separate.
    outside = identity - relaxation.project(identity)
    size = float(np.trace(outside))
    N = relaxation.project(start.N)
    X = start.X
    best = _proof(relaxation, N, X)
    s = best.bound
    work = (_CHECK_EVERY + 1) * step_work(n)
    excesses = [best.bound - target]
    sigma = _FIRST_SIGMA / max(target, _FIRST_SIGMA * s, math.ulp(0.0))
    while best.bound > target and budget.affords(work):
        for _ in range(_CHECK_EVERY):
            W = M + N + X / sigma - s * identity
            P = _positive_part(W)
            S = P - W
            X = (1.0 - _DUAL_STEP) * X + (_DUAL_STEP * sigma) * P
            V = M + S + X / sigma
            s = (float(np.sum(outside * V)) - 1.0 / sigma) / size
            N = relaxation.project(s * identity - V)
            if budget.out_of_time:
                break
        budget.spend(work)

        found = _proof(relaxation, N, X)
        best = found if found.bound < best.bound else best._replace(X=X)
        excesses.append(best.bound - target)
        if _stalls(excesses, s - target):
            break

        primal = float(np.linalg.norm(M + N + S - s * identity)) / (target + float(np.linalg.norm(M)))
        dual = float(np.linalg.norm(relaxation.project(-X))) + abs(float(np.trace(X)) - 1.0)
        if primal > _MAX_RESIDUAL_RATIO * dual:
            sigma *= _SIGMA_FACTOR
        elif dual > _MAX_RESIDUAL_RATIO * primal:
            sigma /= _SIGMA_FACTOR
    return best


def _proof(relaxation: Relaxation, N: np.ndarray, X: np.ndarray) -> Multipliers:
    """Return multipliers with the bound that N proves."""
    form = relaxation.matrix + N
    top = float(np.linalg.eigvalsh(form)[-1])
    return Multipliers(N, X, relaxation.bound(form, top, N))


def _positive_part(W: np.ndarray) -> np.ndarray:
    """Return the part of a symmetric matrix with its positive eigenvalues."""
    try:
        values, vectors = eigh(W, subset_by_value=(0.0, math.inf), driver="evr", check_finite=False)
    except np.linalg.LinAlgError:
        # LAPACK's search for single eigenvalues seldom fails.
        values, vectors = np.linalg.eigh(W)
        values = np.maximum(values, 0.0)
    return (vectors * values) @ vectors.T


def _stalls(excesses: list[float], estimated: float) -> bool:
    """Whether the last checks removed little of the excess, given the estimate of its limit."""
    checks = _FEW_CHECKS if estimated >= 0.5 * excesses[-1] else _MANY_CHECKS
    return len(excesses) > checks and excesses[-1] > (1.0 - _LEAST_PROGRESS) * excesses[-1 - checks]
