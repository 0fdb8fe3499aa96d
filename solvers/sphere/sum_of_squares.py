"""A tight bound for p = 2 by sums of squares: the quartic sum_c (h' Gamma_c h)^2 on the unit sphere.

On Sym^2(R^d), of dimension D = d (d + 1) / 2, let T = sum_c svec(Gamma_c) svec(Gamma_c)'. Every symmetric N whose full
symmetrisation is zero has (hh')' N (hh') = 0, so lambda_max(T + N) bounds the quartic: any such N is a proof. The
least of these bounds is a convex problem; its smoothed form, temperature * log sum exp(lambda / temperature), is
minimised by L-BFGS with a temperature that shrinks.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from mopn.solvers.sphere.bounds import eigen_error
from mopn.solvers.sphere.stack import DenseStack

__all__ = ["Relaxation", "relax"]

_EPS = float(np.finfo(float).eps)
# Temperatures relative to the largest eigenvalue; the smallest still resolves units that tie.
_TEMPERATURES = (0.05, 0.01, 2e-3, 4e-4, 1e-4, 2e-5)
_STEPS = 500
# One step decomposes a D x D matrix; so many D^3 bound the steps of a call, whatever the machine's speed.
_WORK = 3e10


class Relaxation(NamedTuple):
    """The best bound found, the N (D, D) that proves it, and unit vectors (q, d) that its eigenvectors suggest."""

    bound: float
    N: np.ndarray
    starts: np.ndarray


class _Done(Exception):
    """The bound is at most the target, or the work is spent."""


def relax(stack: DenseStack, N: np.ndarray | None = None, target: float = 0.0) -> Relaxation:
    """Bound max over unit h of sqrt(sum_c (h' Gamma_c h)^2).

    Parameters
    ----------
    stack : DenseStack
        Matrices Gamma (m, d, d); the work is O(d^6) a step, so d is small.
    N : ndarray of shape (D, D), optional
        Where to start: the N of a similar stack; one of another size is ignored.
    target : float
        Stop as soon as the bound is at most this (a value that is attained, say, a little enlarged).

    Returns
    -------
    Relaxation
    """
    search = _Search(stack, target)
    N = np.zeros_like(search.T) if N is None or N.shape != search.T.shape else search.project(N)
    try:
        search.look(N)
        for temperature in _TEMPERATURES:
            search.descend(search.best_N, temperature * max(search.best, math.ulp(0.0)))
    except _Done:
        pass
    return Relaxation(math.sqrt(search.best) + float(np.linalg.norm(stack.error)), search.best_N, search.starts())


class _Search:
    """The best N so far, and the smoothed problem around it."""

    def __init__(self, stack: DenseStack, target: float) -> None:
        m, d = stack.shape
        self.index = _pairings(d)
        vectors = stack.matrices[:, self.index.i, self.index.j] * self.index.scale
        self.T = vectors.T @ vectors
        self.forming = (m + 3) * _EPS * float(np.sum(vectors**2))
        allowed = max(target - float(np.linalg.norm(stack.error)), 0.0)
        self.target = allowed * allowed
        self.best, self.best_N = math.inf, np.zeros_like(self.T)
        self.looks_left = max(int(_WORK / len(self.T) ** 3), 10)

    def symmetrised(self, M: np.ndarray) -> np.ndarray:
        """Return the full symmetrisation: the mean over the three pairings of the four indices."""
        entries = (M / self.index.scales).ravel()
        mean = (entries[self.index.first] + entries[self.index.second] + entries[self.index.third]) / 3.0
        return mean * self.index.scales

    def project(self, M: np.ndarray) -> np.ndarray:
        """Return the nearest matrix whose symmetrisation is zero."""
        return M - self.symmetrised(M)

    def look(self, N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Decompose T + N, and keep N if its proven bound is the best so far."""
        # eigh reads one triangle: what is charged below must be of the same matrix.
        N = 0.5 * (N + N.T)
        form = self.T + N
        values, vectors = np.linalg.eigh(form)
        # What rounding leaves of the symmetrisation is not zero, and is charged.
        error = eigen_error(form) + self.forming + float(np.linalg.norm(self.symmetrised(N)))
        error += 8 * _EPS * float(np.linalg.norm(N))
        bound = max(float(values[-1]), 0.0) + error
        if bound < self.best:
            self.best, self.best_N, self.top = bound, N, vectors[:, -3:]
        self.looks_left -= 1
        if self.best <= self.target or self.looks_left <= 0:
            raise _Done
        return values, vectors

    def descend(self, N: np.ndarray, temperature: float) -> None:
        """Minimise the smoothed bound from N; the gradient stays in the subspace, and so do the iterates."""
        D = len(self.T)

        def smoothed(x: np.ndarray) -> tuple[float, np.ndarray]:
            values, vectors = self.look(x.reshape(D, D))
            weights = np.exp((values - values[-1]) / temperature)
            total = float(weights.sum())
            kept = weights > 1e-12
            gradient = (vectors[:, kept] * (weights[kept] / total)) @ vectors[:, kept].T
            value = float(values[-1]) + temperature * math.log(total)
            return value / temperature, self.project(gradient).ravel() / temperature

        options = {"maxiter": _STEPS, "maxcor": 15, "ftol": 1e-9}
        minimize(smoothed, N.ravel(), jac=True, method="L-BFGS-B", options=options)

    def starts(self) -> np.ndarray:
        """Return the dominant eigenvectors (q, d) of the matrices that the top eigenvectors of T + N stand for."""
        d = int(self.index.i[-1]) + 1
        matrices = np.zeros((self.top.shape[1], d, d))
        matrices[:, self.index.i, self.index.j] = self.top.T / self.index.scale
        matrices[:, self.index.j, self.index.i] = self.top.T / self.index.scale
        values, vectors = np.linalg.eigh(matrices)
        return vectors[np.arange(len(values)), :, np.abs(values).argmax(axis=1)]


class _Pairings(NamedTuple):
    i: np.ndarray
    j: np.ndarray
    scale: np.ndarray
    scales: np.ndarray
    first: np.ndarray
    second: np.ndarray
    third: np.ndarray


@lru_cache(maxsize=4)
def _pairings(d: int) -> _Pairings:
    """Index sym4 on svec: entry (ij, kl) is the mean of those at (ij, kl), (ik, jl) and (il, jk)."""
    i, j = np.triu_indices(d)
    D = len(i)
    place = np.zeros((d, d), dtype=np.intp)
    place[i, j] = place[j, i] = np.arange(D)
    scale = np.where(i == j, 1.0, math.sqrt(2.0))
    a, b = np.arange(D)[:, None], np.arange(D)[None, :]
    i1, j1, k1, l1 = i[:, None], j[:, None], i[None, :], j[None, :]
    return _Pairings(
        i,
        j,
        scale,
        np.outer(scale, scale),
        a * D + b,
        place[i1, k1] * D + place[j1, l1],
        place[i1, l1] * D + place[j1, k1],
    )
