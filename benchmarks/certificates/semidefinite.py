"""The problem of the norm l1 as a semidefinite program in CVXPY: a matrix W_c an output, the sum of nuclear norms.

W_c = P_c - N_c with P_c and N_c positive semidefinite, and the nuclear norm is the trace of P_c + N_c. The variables
are P_c and W_c: then the outputs, linear in the upper triangle of W_c with the products of two entries of [1, x] as
coefficients, have half the entries that they have in P_c and N_c.
"""

import contextlib
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from benchmarks.certificates.planted import Planted

# By the names of their modules; CVXPY's are in capitals.
SOLVERS = ("clarabel", "scs")
# No limit of iterations ends a run before the limit of seconds does.
_MANY = 10_000_000


class Solution(NamedTuple):
    """Matrices (m, d, d) if there are any, seconds of the solver alone, and of CVXPY's compilation."""

    matrices: np.ndarray | None
    seconds: float
    compilation: float


def missing_packages(solvers: list[str]) -> list[str]:
    """Return the packages that these solvers need."""
    from importlib.util import find_spec

    wanted = [name for name in solvers if name in SOLVERS]
    return [name for name in ["cvxpy", *wanted] if wanted and find_spec(name) is None]


def solve(planted: Planted, solver: str, tol: float, seconds: float) -> Solution:
    """Solve once, with one tolerance for residuals and gap, and a limit of seconds."""
    import cvxpy as cp

    began = time.perf_counter()
    program, matrices = _program(cp, planted)
    options = _options(solver, tol, seconds)
    data, chain, inverse = program.get_problem_data(solver.upper(), solver_opts=options)
    compiled = time.perf_counter()
    answer = chain.solve_via_data(program, data, solver_opts=options)
    solved = time.perf_counter()
    with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
        # That a solution may be inaccurate is for the certificate to say.
        warnings.simplefilter("ignore")
        program.unpack_results(answer, chain, inverse)
    found = all(W.value is not None for W in matrices)
    return Solution(np.array([W.value for W in matrices]) if found else None, solved - compiled, compiled - began)


def _program(cp: Any, planted: Planted) -> tuple[Any, list[Any]]:
    """Return the program and its matrices W_c."""
    d, m = planted.rows.shape[1], planted.targets.shape[1]
    matrices = [cp.Variable((d, d), symmetric=True) for _ in range(m)]
    positive = [cp.Variable((d, d), PSD=True) for _ in range(m)]
    upper = np.triu_indices(d)
    triangles = cp.vstack([W[upper] for W in matrices]).T
    penalty = sum(2 * cp.trace(P) - cp.trace(W) for P, W in zip(positive, matrices, strict=True))
    objective = (
        _loss(cp, planted, _products(planted.rows, upper) @ triangles) + planted.problem.regularizer.strength * penalty
    )
    return cp.Problem(cp.Minimize(objective), [P >> W for P, W in zip(positive, matrices, strict=True)]), matrices


def _products(rows: np.ndarray, upper: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return factors of the upper triangles (n, d (d + 1) / 2); entries off the diagonal occur twice."""
    first, second = upper
    return rows[:, first] * rows[:, second] * np.where(first == second, 1.0, 2.0)


def _loss(cp: Any, planted: Planted, outputs: Any) -> Any:
    y = planted.targets
    if planted.loss == "squared":
        return 0.5 * cp.sum_squares(outputs - y)
    if planted.loss == "binary-logistic":
        return cp.sum(cp.logistic(cp.multiply(-y, outputs)))
    return cp.sum(cp.log_sum_exp(outputs, axis=1)) - cp.sum(cp.multiply(y, outputs))


def _options(solver: str, tol: float, seconds: float) -> dict[str, Any]:
    if solver == "scs":
        return {"eps_abs": tol, "eps_rel": tol, "max_iters": _MANY, "time_limit_secs": seconds}
    tolerances = {name: tol for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}
    return {**tolerances, "max_iter": _MANY, "time_limit": seconds, "max_threads": 1}


def units(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the network (k, d) and (k, m) of some matrices (m, d, d): their eigenvectors, weighted by eigenvalues."""
    m, d = matrices.shape[:2]
    values, vectors = np.linalg.eigh(matrices)
    weights = np.zeros((m, d, m))
    weights[np.arange(m), :, np.arange(m)] = values
    return vectors.transpose(0, 2, 1).reshape(m * d, d), weights.reshape(m * d, m)
