"""Majorants M_c of a stack: |h' Gamma_c h| <= h' M_c h for every h, with lambda_max(sum_c M_c) small.

The matrix absolute values |Gamma_c| are majorants. So are M_c = P^-1 |P Gamma_c P| P^-1 for every positive definite P.
The largest eigenvalue of their sum is least where X = P^2 maximises the concave function sum_c ||P Gamma_c P||_*
(nuclear norms) over X of trace 1. The gradient of this function is sum_c M_c, and X <- P (sum_c M_c) P is the
multiplicative step. At a fixed point all eigenvalues of sum_c M_c on the range of X are equal.
"""

from __future__ import annotations

import math
import time

import numpy as np

from mopn.solvers.numerics.precision import TINY
from mopn.solvers.sphere.bounds import combination_error
from mopn.solvers.sphere.stack import DenseStack

# More steps improve the bound of the root little, and make the bounds of deeper nodes worse.
STEPS = 4
# Operations of all steps; a step decomposes m matrices, so large ones get fewer steps.
_WORK = 1e9
# Multiple of the identity in X, for the condition of P.
_FLOOR = 1e-6


def majorants(stack: DenseStack, max_time: float = math.inf, steps: int = STEPS) -> tuple[np.ndarray, float]:
    """Return majorants (m, d, d) after some steps, and a bound of sum_c (|h' Gamma_c h| - h' M_c h)."""
    m, d = stack.shape
    began = time.perf_counter()
    M, best, P = stack.moduli, _largest(stack.moduli), np.eye(d)
    for _ in range(min(steps, int(_WORK / (m * d**3)))):
        if time.perf_counter() - began >= max_time:
            break
        R = np.sum(_moduli(P @ stack.matrices @ P), axis=0)
        if not np.trace(R) > 0:
            break
        P, inverse = _roots(R / np.trace(R) + _FLOOR * np.eye(d))
        candidates = inverse @ _moduli(P @ stack.matrices @ P) @ inverse
        if _largest(candidates) < best:
            M, best = candidates, _largest(candidates)
    M = 0.5 * (M + M.transpose(0, 2, 1))
    # M_c +- Gamma_c must be positive semidefinite. Rounding may violate this; the violation is added to the bound.
    violations = [-np.linalg.eigvalsh(M + sign * stack.matrices)[:, 0] for sign in (1.0, -1.0)]
    return M, float(np.sum(np.maximum(np.max(violations, axis=0), 0.0))) + 2.0 * combination_error(DenseStack(M))


def _largest(M: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(np.sum(M, axis=0))[-1])


def _moduli(matrices: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.abs(values)[:, None, :]) @ vectors.transpose(0, 2, 1)


def _roots(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(X)
    roots = np.sqrt(np.maximum(values, TINY))
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T
