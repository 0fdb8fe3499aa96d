"""Relaxations of a maximum on the sphere for the solvers of others: in CVXPY, and by low-rank factors.

A relaxation has a matrix M and multipliers N that change no value of its form; for any N, lambda_max(M + N) is a bound.
Its dual is a problem of pseudo-moments: maximise <M, X> over X >= 0 of trace 1 that no multiplier changes, <N, X> = 0.
Whatever a solver returns, its multiplier is projected, and mopn proves the bound by it, rounding included.
"""

import math
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from mopn.solvers.sphere.biquadratic import Biquadratic
from mopn.solvers.sphere.boundary_point import Relaxation
from mopn.solvers.sphere.stack import DenseStack
from mopn.solvers.sphere.sum_of_squares import Quartic

# Tolerance of every solver, and the gap at which low-rank factors are good enough: mopn's.
_TOL, _GAP = 1e-5, 1e-4
_MANY = 10_000_000
# The augmented Lagrangian: steps of L-BFGS per round, the weight of a new column, and the growth of the penalty.
_STEPS, _NEW, _GROWTH, _FALL = 200, 0.1, 2.0, 0.5


def relaxation(stack: DenseStack, p: int) -> tuple[Relaxation, float]:
    """Return the relaxation of smaller order, and the power of the maximum that it bounds."""
    m, d = stack.shape
    if p == 2 and d + 1 < 2 * (m + 1):
        return Quartic(stack), 2.0
    return Biquadratic(stack.matrices, d, 0.0, np.zeros((0, 0)), p), 1.0


def moments(form: Relaxation) -> csr_array:
    """Return the map (n^2, k) from pseudo-moments to X: entries that are equal on all products are one moment."""
    n = len(form.matrix)
    if isinstance(form, Quartic):
        i, j = (np.broadcast_to(index, (n, n)) for index in form.lift.monomials.T)
        names = np.sort(np.stack([i.T, j.T, i, j]), axis=0)
        scales = form.lift.scales.ravel()
    else:
        _, d = form.shape
        i, a = (np.broadcast_to(index[:, None], (n, n)) for index in (np.arange(n) // d, np.arange(n) % d))
        names = np.stack([np.minimum(i, i.T), np.maximum(i, i.T), np.minimum(a, a.T), np.maximum(a, a.T)])
        if form.p == 1:
            names[:2, i == i.T] = 0
        scales = np.ones(n * n)
    _, columns = np.unique(names.reshape(4, -1), axis=1, return_inverse=True)
    return csr_array((scales, (np.arange(n * n), columns.ravel())))


def by_program(form: Relaxation, solver: str, seconds: float) -> Iterator[float]:
    """Yield the bound of one run of a solver in CVXPY, whose compilation counts as well."""
    import cvxpy as cp

    began = time.perf_counter()
    M, A = form.matrix, moments(form)
    n = len(M)
    z = cp.Variable(A.shape[1])
    positive = cp.reshape(A @ z, (n, n), order="C") >> 0
    program = cp.Problem(cp.Maximize((A.T @ M.ravel()) @ z), [positive, (A.T @ np.eye(n).ravel()) @ z == 1])
    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), _TOL)
    options: dict[str, Any] = {**tolerances, "max_iter": _MANY, "max_threads": 1, "time_limit": seconds}
    if solver == "scs":
        options = {"max_iters": _MANY, "eps_abs": _TOL, "eps_rel": _TOL, "time_limit_secs": seconds}
    data, chain, inverse = program.get_problem_data(solver.upper(), solver_opts=options)
    limit = "time_limit_secs" if solver == "scs" else "time_limit"
    options[limit] = max(seconds - (time.perf_counter() - began), 1.0)
    answer = chain.solve_via_data(program, data, solver_opts=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.unpack_results(answer, chain, inverse)
    # S = s I - M - N, and N is as orthogonal to I, less its part among the multipliers, as to all moments.
    N = form.project(abs(float(program.constraints[1].dual_value)) * np.eye(n) - M - positive.dual_value)
    yield form.bound(M + N, float(np.linalg.eigvalsh(M + N)[-1]), N)


def by_low_rank(form: Relaxation, seconds: float) -> Iterator[float]:
    """Yield better and better bounds by the method of ManiSDP, written plainly.

    X = YY' with a Y of length 1: an augmented Lagrangian for P X = 0, where P projects to the multipliers,
    minimised by L-BFGS on the sphere of Y; after each round N comes from the Lagrangian, and the top eigenvector of
    M + N, where the bound is not met, becomes a column of Y (Wang and Hu, 2023).
    """
    began = time.perf_counter()
    M, n = form.matrix, len(form.matrix)
    N, sigma, best, before = np.zeros((n, n)), 1.0, math.inf, math.inf
    Y = np.random.default_rng(0).standard_normal((n, 2))
    while time.perf_counter() - began < seconds:

        def value(y: np.ndarray, N: np.ndarray = N, sigma: float = sigma) -> tuple[float, np.ndarray]:
            length = float(np.linalg.norm(y))
            Y = y.reshape(n, -1) / length
            P = form.project(Y @ Y.T)
            FY = (M + N) @ Y
            G = 2.0 * (sigma * (P @ Y) - FY)
            fun = 0.5 * sigma * float(np.sum(P * P)) - float(np.sum(FY * Y))
            return fun, ((G - float(np.sum(G * Y)) * Y) / length).ravel()

        Y = minimize(value, Y.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x.reshape(n, -1)
        Y /= np.linalg.norm(Y)
        P = form.project(Y @ Y.T)
        N = form.project(N - sigma * P)
        values, vectors = np.linalg.eigh(M + N)
        best = min(best, form.bound(M + N, float(values[-1]), N))
        yield best
        residual = float(np.linalg.norm(P))
        if residual <= _GAP and best <= float(np.sum((M @ Y) * Y)) * (1.0 + _GAP):
            return
        sigma *= _GROWTH if residual > max(_TOL, _FALL * before) else 1.0
        before = residual
        U, s, _ = np.linalg.svd(Y, full_matrices=False)
        Y = np.hstack([(U * s)[:, s > 1e-4 * s[0]], _NEW * vectors[:, -1:]])
