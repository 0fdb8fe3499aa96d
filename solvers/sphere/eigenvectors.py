"""Dominant eigenvectors (largest absolute eigenvalue) of combinations of a stack's matrices: by eigh, or by Lanczos."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.sphere.stack import DenseStack, Stack

# Steps between two checks of convergence, each with a decomposition of T.
_CHECK_EVERY = 5
# Dimension from which on some steps of Lanczos cost less than a decomposition, with the same maxima.
_MIN_LANCZOS_DIMENSION = 24
# Largest number of entries of all Krylov bases together, 256 MiB.
MAX_KRYLOV_ENTRIES = 1 << 25
# Length below which a vector is mostly rounding errors, relative to the matrix.
_ROUNDED_LENGTH = 1e-8
# The least length by which a vector is divided.
_LEAST_DIVISOR = TINY / EPS


def dominant_eigenvectors(
    stack: Stack, W: np.ndarray, start: np.ndarray, tol: float = 1e-6, max_steps: int = 50
) -> np.ndarray:
    """Return unit vectors (k, d), row r a dominant eigenvector of A_r = sum_c W_rc Gamma_c.

    By ``eigh`` for small dense stacks, else by Lanczos from ``start`` (k, d), where |h_r' A_r h_r| never decreases.
    """
    if not isinstance(stack, DenseStack):
        return lanczos(partial(stack.products, W), start, tol=tol, max_steps=max_steps)
    A = stack.combine(W)
    if stack.shape[1] >= _MIN_LANCZOS_DIMENSION:
        return lanczos(lambda H: (A @ H[:, :, None])[:, :, 0], start, tol=tol, max_steps=max_steps)
    values, vectors = np.linalg.eigh(A)
    last = np.abs(values[:, -1]) >= np.abs(values[:, 0])
    return np.where(last[:, None], vectors[:, :, -1], vectors[:, :, 0])


def lanczos_start(m: int, d: int, seed: int = 0) -> np.ndarray:
    """Return m random start vectors (m, d), the same at every call with a seed."""
    return np.random.default_rng(seed).standard_normal((m, d))


def lanczos(
    products: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    tol: float = 1e-6,
    max_steps: int = 50,
    count: int = 1,
    *,
    one_sided: bool = False,
) -> np.ndarray:
    """Run Lanczos with full reorthogonalisation, k runs in lockstep so that every step is one block product."""
    k, d = start.shape
    steps = min(max_steps, d, max(_CHECK_EVERY, MAX_KRYLOV_ENTRIES // (max(k, 1) * d)))
    for j, (bases, T, beta) in enumerate(krylov(products, start, steps), start=1):
        Q = bases
        if j == steps or j % _CHECK_EVERY == 0 or not beta.any():
            theta, s = _dominant_ritz(T, count, one_sided)
            if j == steps or np.all(beta * np.abs(s[0, :, -1]) <= tol * np.abs(theta)):
                break
    H = np.einsum("ckj,kjd->ckd", s, Q[:, : s.shape[2]]).reshape(-1, d)
    lengths = np.linalg.norm(H, axis=1, keepdims=True)
    # The zero vectors beyond an exhausted space are left out.
    found = lengths[:, 0] > 0
    return H[found] / lengths[found]


def krylov(
    products: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield, step by step, orthonormal bases (k, j, d) of Krylov spaces, A_r in these (k, j, j), and residuals (k,)."""
    k, d = start.shape
    Q = np.zeros((k, steps, d))
    T = np.zeros((k, steps, steps))
    Q[:, 0] = start / np.linalg.norm(start, axis=1, keepdims=True)
    for j in range(steps):
        known = Q[:, : j + 1]
        w = products(np.ascontiguousarray(Q[:, j]))
        T[:, j, j] = np.einsum("kd,kd->k", w, Q[:, j])
        # Both vectors of the three-term recurrence; the second pass, over all vectors, removes rounding errors.
        w -= T[:, j, j, None] * Q[:, j] + (T[:, j - 1, j, None] * Q[:, j - 1] if j else 0.0)
        w -= ((known @ w[:, :, None]).transpose(0, 2, 1) @ known)[:, 0]
        beta = np.linalg.norm(w, axis=1)
        yield known, T[:, : j + 1, : j + 1], beta
        if j + 1 == steps:
            return
        # A Krylov space that is exhausted up to rounding goes on along the rounding errors, made orthogonal to it. One
        # that is exactly exhausted is padded with zero vectors.
        w /= np.where(beta > _LEAST_DIVISOR, beta, 1.0)[:, None]
        rest = beta <= _ROUNDED_LENGTH * np.abs(T[:, : j + 1, : j + 1]).max(axis=(1, 2))
        if rest.any():
            w[rest] -= ((known[rest] @ w[rest, :, None]).transpose(0, 2, 1) @ known[rest])[:, 0]
            lengths = np.linalg.norm(w[rest], axis=1)
            w[rest] *= np.where(lengths > 0.1, 1.0 / np.maximum(lengths, 0.1), 0.0)[:, None]
            beta = np.where(w.any(axis=1), beta, 0.0)
        T[:, j, j + 1] = T[:, j + 1, j] = beta
        Q[:, j + 1] = w


def _dominant_ritz(T: np.ndarray, count: int, one_sided: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the dominant eigenvalue of every tridiagonal (k, j, j), and sorted eigenvectors (count, k, j)."""
    values, vectors = np.linalg.eigh(T)
    order = np.argsort(values if one_sided else -np.abs(values), axis=1, kind="stable")[:, :count]
    chosen = np.take_along_axis(vectors, order[:, None, :], axis=2)
    return values[np.arange(len(T)), order[:, 0]], chosen.transpose(2, 0, 1)
