"""The least largest eigenvalue of M + N over multipliers N, by the boundary point method.

A relaxation bounds a form x' M x over some unit vectors x by lambda_max(M + N), where the multipliers N are a linear
space, or a convex cone, of symmetric matrices that are nowhere negative on these x. Any N is a proof. The least bound
is a semidefinite program,

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
# The penalty sigma of the first step, for a bound of 1, and the length of the dual step.
_PENALTY, _STEP = 0.05, 1.6
# Steps between two proofs: a proof takes as long as a step.
_CHECK = 10
# Ratio of the residuals from which on a check changes sigma, and the factor.
_UNEVEN, _BALANCE = 5.0, 1.5
# The target is out of reach if so many checks remove no more than this fraction of the excess: fewer if the estimate s
# of the limit has most of the excess, too.
_CHECKS, _MANY_CHECKS, _PROGRESS = 10, 50, 0.15


class Relaxation(Protocol):
    """A form, and the multipliers that may be added to it."""

    @property
    def matrix(self) -> np.ndarray:
        """M (n, n), symmetric."""

    def project(self, V: np.ndarray) -> np.ndarray:
        """Return the multiplier nearest to a matrix, symmetric to the last bit, as eigenvalues read a triangle."""

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
    """Return the operations of a step on matrices of order n, and an overhead."""
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
    work = (_CHECK + 1) * step_work(n)
    excesses = [best.bound - target]
    sigma = _PENALTY / max(target, _PENALTY * s, math.ulp(0.0))
    while best.bound > target and budget.affords(work):
        for _ in range(_CHECK):
            W = M + N + X / sigma - s * identity
            P = _positive_part(W)
            S = P - W
            X = (1.0 - _STEP) * X + (_STEP * sigma) * P
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
        if primal > _UNEVEN * dual:
            sigma *= _BALANCE
        elif dual > _UNEVEN * primal:
            sigma /= _BALANCE
    return best


def _proof(relaxation: Relaxation, N: np.ndarray, X: np.ndarray) -> Multipliers:
    form = relaxation.matrix + N
    top = float(np.linalg.eigvalsh(form)[-1])
    return Multipliers(N, X, relaxation.bound(form, top, N))


def _positive_part(W: np.ndarray) -> np.ndarray:
    try:
        values, vectors = eigh(W, subset_by_value=(0.0, math.inf), driver="evr", check_finite=False)
    except np.linalg.LinAlgError:
        # Seldom, the search of LAPACK for single eigenvalues fails.
        values, vectors = np.linalg.eigh(W)
        values = np.maximum(values, 0.0)
    return (vectors * values) @ vectors.T


def _stalls(excesses: list[float], estimated: float) -> bool:
    """Whether the last checks removed little of the excess, given the estimate of its limit."""
    checks = _CHECKS if estimated >= 0.5 * excesses[-1] else _MANY_CHECKS
    return len(excesses) > checks and excesses[-1] > (1.0 - _PROGRESS) * excesses[-1 - checks]
