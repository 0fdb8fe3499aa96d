"""Proofs for a stack that forms one combination of its matrices at a time: ||A||_2 <= theta by two Cholesky factors.

Lanczos gives a lower bound of ||A||_2 only, however small its residual. If Cholesky factorisations of theta I - A and
theta I + A both succeed, the two matrices are positive semidefinite up to rounding (Rump, 2006), and theta is an upper
bound. The factorisation of theta I + A alone bounds lambda_max(-A).
"""

import math
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf

from mopn.solvers.numerics.precision import EPS, NULL
from mopn.solvers.sphere.cones import half_of_signs
from mopn.solvers.sphere.eigenvectors import lanczos, lanczos_start
from mopn.solvers.sphere.stack import MatrixFreeStack
from mopn.solvers.tools.budgets import Budget

# Outputs up to which p = 1 is proven by all sign vectors: 32 of them at 6 outputs, with two factorisations each.
MAX_SIGNED = 6
# Steps of Lanczos to a value, at most; the proof does not rest on it.
_MAX_LANCZOS_STEPS = 150
# Floating-point operations a second of one core, in matrix products and factorisations.
OPERATIONS_A_SECOND = 2e10


def expected_work(stack: MatrixFreeStack, p: float) -> float:
    """Estimate the operations of ``proven_bound``: Lanczos, forming, and two factorisations for each combination."""
    m, d = stack.shape
    if p == 1 and m > MAX_SIGNED:
        return math.inf
    product, forming = stack.work
    combinations = 2 ** (m - 1) if p == 1 else m
    return combinations * (_MAX_LANCZOS_STEPS * product + forming + 2.0 * d**3 / 3.0)


def proven_bound(
    stack: MatrixFreeStack, p: float, tol: float, budget: Budget | None = None, *, one_sided: bool = False
) -> tuple[np.ndarray, float]:
    """Find and bound max ||q(h)||_p over unit h: to about ``tol`` for p = inf, and for p = 1 with few outputs.

    For p = inf every Gamma_c is bounded, for p = 1 every signed sum of them. For p = 2 the outputs are rotated to the
    eigenvectors of the Gram matrix, which leaves ||q||_2 as it is. The bound is the 2-norm of the bounds of the rotated
    forms. It is exact if only one of them is not zero, as for two matrices of opposite sign.
    """
    budget = budget or Budget()
    m, d = stack.shape
    if p == 1 and m > MAX_SIGNED:
        return np.zeros((0, d)), math.inf
    W = _combinations(stack, p)
    tol *= 0.5
    start = lanczos_start(len(W), d, stack.seed)
    H = lanczos(partial(stack.products, W), start, tol=0.2 * tol, max_steps=_MAX_LANCZOS_STEPS, one_sided=one_sided)
    values = np.einsum("kd,kd->k", stack.products(W, H), H)
    values = np.maximum(-values, 0.0) if one_sided else np.abs(values)

    # For p = 2 every bound counts, otherwise only the largest.
    near = values if p == 2 else np.full(len(W), values.max())
    bounds = np.full(len(W), math.inf)
    for i, value in enumerate(near):
        if not budget.out_of_time:
            matrix, error = stack.combination(W[i])
            bounds[i] = norm_bound(matrix, float(value), tol, one_sided=one_sided) + error
    if p == 2:
        # Eigenvectors of rotated forms that are zero up to rounding are noise. The rotation is orthogonal up to m eps.
        return H[values > NULL * values.max()], float(np.linalg.norm(bounds)) * (1.0 + 10 * m * EPS)
    return H, float(np.max(bounds))


def _combinations(stack: MatrixFreeStack, p: float) -> np.ndarray:
    """Return the weights (k, m) of the combinations that are bounded."""
    m, _ = stack.shape
    if p == math.inf:
        return np.eye(m)
    if p == 1:
        return half_of_signs(m)
    return np.linalg.eigh(stack.gram())[1].T


def norm_bound(matrix: np.ndarray, value: float, tol: float, *, one_sided: bool = False) -> float:
    """Return a bound of ||A||_2 or ``one_sided`` max(lambda_max(-A), 0), near a lower bound ``value``."""
    d = len(matrix)
    trivial = float(np.linalg.norm(matrix)) * (1 + d * d * EPS)
    # Without a negative eigenvalue it is rounding that limits the proof.
    value = max(value, NULL * trivial if one_sided else 0.0)
    excess = tol
    while 0 < value * (1.0 + excess) < trivial:
        theta = value * (1.0 + excess)
        if _is_positive(theta, matrix, 1.0) and (one_sided or _is_positive(theta, matrix, -1.0)):
            # (d + 2) eps times the trace of the factorised matrix, and the rounding of its diagonal.
            return theta + (d + 4) * EPS * (d * theta + float(np.abs(np.diag(matrix)).sum()))
        excess *= 4.0
    return trivial


def _is_positive(theta: float, matrix: np.ndarray, sign: float) -> bool:
    """Whether the Cholesky factorisation of theta I + sign A succeeds."""
    shifted = np.array(matrix if sign > 0 else -matrix, order="F")
    shifted[np.diag_indices(len(matrix))] += theta
    return bool(dpotrf(shifted, lower=1, overwrite_a=1, clean=0)[1] == 0)
