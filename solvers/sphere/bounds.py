"""Proven upper bounds of max ||q(h)||_p over the unit sphere, for a dense stack; exact for p = inf.

Every bound adds the backward errors of the routines behind it. An inner product of length N errs by at most N * eps
times the product of the norms. A symmetric eigen-solver returns eigenvalues of A + E with ||E||_2 at most
_EIGEN_ERROR * d * eps * ||A||_F. LAPACK documents the form of the latter bound; its constant is a generous assumption.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar

from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere.lifting import lifting
from mopn.solvers.sphere.stack import DenseStack, sum_of_squares

# Error of eigenvalues, in units of d eps ||A||_F: a generous assumption, as said above.
_EIGEN_ERROR = 4.0
# Order d (d + 1) / 2 of the matrices that the bound by a family of forms decomposes: up to it, in milliseconds.
_MAX_FAMILY_ORDER = 250
# Forms that are decomposed, at most, to find the best of the family.
_MAX_FAMILY_STEPS = 10


def upper_bound(stack: DenseStack, p: float, *, one_sided: bool = False) -> float:
    """Return the least of the cheap bounds for this p, plus the error of forming the matrices."""
    m = stack.shape[0]
    if p == math.inf or m == 1:
        bound = _largest_eigenvalue(stack, one_sided)
    elif p == 2:
        bound = _bound_for_two(stack)
    else:
        bound = min(_bound_by_moduli(stack), math.sqrt(m) * _bound_for_two(stack))
    return (bound + float(np.linalg.norm(stack.error, p))) * (1 + 8 * EPS)


def eigen_error(matrix: np.ndarray) -> float:
    """Bound the error of any computed eigenvalue of a symmetric matrix."""
    return eigen_scale(len(matrix)) * EPS * float(np.linalg.norm(matrix))


def eigen_scale(d: int) -> float:
    """Return the error of eigenvalues of a d x d matrix, in units of eps times its Frobenius norm."""
    return _EIGEN_ERROR * d


def combination_error(stack: DenseStack) -> float:
    """Bound the error of an eigenvalue of any sum_c +-Gamma_c: decomposition, sum of m terms, error of Gamma_c."""
    m, _ = stack.shape
    size = sum(float(np.linalg.norm(matrix)) for matrix in stack.matrices)
    return sum(eigen_error(matrix) for matrix in stack.matrices) + m * EPS * size + float(np.sum(stack.error))


def moduli_error(stack: DenseStack) -> float:
    """Bound sum_c (|h' Gamma_c h| - h' |Gamma_c| h) for the computed matrix absolute values V |Lambda| V'.

    V (|Lambda| +- Lambda) V' is positive semidefinite for any V. This leaves V Lambda V' - Gamma, as computed; the two
    products and their sums err by d + m + 2 units of rounding of sum |lambda|.
    """
    m, d = stack.shape
    values, vectors = stack.eigen
    rest = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1) - stack.matrices
    sizes = float((np.abs(values) * np.sum(vectors * vectors, axis=1)).sum())
    return float(np.linalg.norm(rest, axis=(1, 2)).sum()) + 2.0 * (d + m + 2) * EPS * sizes


def _largest_eigenvalue(stack: DenseStack, one_sided: bool) -> float:
    """For p = inf, exact: max_c ||Gamma_c||_2; one-sided max_c lambda_max(-Gamma_c), or 0."""
    values, _ = stack.eigen
    errors = [eigen_error(matrix) for matrix in stack.matrices]
    sizes = np.maximum(-values, 0.0) if one_sided else np.abs(values)
    return float(np.max(sizes.max(axis=1) + errors))


def _bound_for_two(stack: DenseStack) -> float:
    d = stack.shape[1]
    cheap = min(_bound_by_gram(stack), _bound_by_squares(stack), _bound_by_rotation(stack))
    if d * (d + 1) // 2 > _MAX_FAMILY_ORDER:
        return cheap
    return min(cheap, _bound_by_family(stack))


def _bound_by_gram(stack: DenseStack) -> float:
    """For p = 2: ||q(h)||_2 <= sqrt(lambda_max(M)), M_ce = <Gamma_c, Gamma_e>, as hh' has Frobenius norm 1."""
    gram = stack.gram()
    error = eigen_error(gram) + stack.shape[1] ** 2 * EPS * float(np.sum(stack.matrices**2))
    return math.sqrt(max(float(np.linalg.eigvalsh(gram)[-1]), 0.0) + error)


def _bound_by_rotation(stack: DenseStack) -> float:
    """For p = 2: ||q||_2 = ||U q||_2 for orthogonal U, so it is at most sqrt(sum_r ||sum_c U_rc Gamma_c||_2^2).

    The rows of U are the eigenvectors of M. For two matrices of opposite sign, Gamma_2 = -Gamma_1, one rotated form is
    zero and the bound is exact.
    """
    m, _ = stack.shape
    forms = stack.combine(np.linalg.eigh(stack.gram())[1].T)
    errors = [eigen_error(form) for form in forms]
    # The computed eigenvectors are orthogonal, and the combinations exact, up to about m eps.
    rounding = 10 * m * EPS * math.sqrt(float(np.sum(stack.matrices**2)))
    form_norms = np.abs(np.linalg.eigvalsh(forms)).max(axis=1)
    return float(np.linalg.norm(form_norms + errors)) + rounding


def _bound_by_squares(stack: DenseStack) -> float:
    """For p = 2: sum_c (h' Gamma_c h)^2 <= h' (sum_c Gamma_c^2) h."""
    m, d = stack.shape
    squares = sum_of_squares(stack.matrices)
    error = eigen_error(squares) + m * d * EPS * float(np.sum(stack.matrices**2))
    return math.sqrt(max(float(np.linalg.eigvalsh(squares)[-1]), 0.0) + error)


def _bound_by_family(stack: DenseStack) -> float:
    """For p = 2: the best bound of a family of quadratic forms on Sym^2(R^d).

    T = sum_c svec(Gamma_c) svec(Gamma_c)' and S: X -> sum_c Gamma_c X Gamma_c both take the value
    sum_c (h' Gamma_c h)^2 at X = hh', whose length is 1. So lambda_max((1 - a) T + a S) is a bound for every a. It is
    convex in a.
    """
    m, d = stack.shape
    lift = lifting(d)
    i, j = lift.monomials.T
    vectors = lift.vectors(stack.matrices)
    T = vectors.T @ vectors
    # <E_ij, Gamma E_kl Gamma> for the orthonormal basis E of Sym^2.
    S = np.zeros(T.shape)
    for gamma in stack.matrices:
        S += gamma[i[:, None], i] * gamma[j[:, None], j] + gamma[i[:, None], j] * gamma[j[:, None], i]
    S *= 0.5 * lift.scales

    def bound(a: float) -> float:
        form = (1.0 - a) * T + a * S
        return float(np.linalg.eigvalsh(form)[-1]) + eigen_error(form)

    options = {"xatol": 0.01, "maxiter": _MAX_FAMILY_STEPS}
    found = minimize_scalar(bound, bounds=(0.0, 1.0), method="bounded", options=options)
    # Each entry of T and S is a sum of m products of two or three factors; both have Frobenius norm <= sum ||Gamma||^2.
    rounding = (m + 6) * EPS * float(np.sum(stack.matrices**2)) * 2.0
    return math.sqrt(max(float(found.fun), 0.0) + rounding)


def _bound_by_moduli(stack: DenseStack) -> float:
    """For p = 1: sum_c |h' Gamma_c h| <= h' (sum_c |Gamma_c|) h with the matrix absolute value."""
    moduli = np.sum(stack.moduli, axis=0)
    moduli = 0.5 * (moduli + moduli.T)
    return max(float(np.linalg.eigvalsh(moduli)[-1]), 0.0) + eigen_error(moduli) + moduli_error(stack)
