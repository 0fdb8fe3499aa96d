"""Bounds for p = 2 by sums of squares: the quartic sum_c (h' Gamma_c h)^2 on the unit sphere, or on a part of it.

On Sym^2(R^d) let T = sum_c svec(Gamma_c) svec(Gamma_c)'. Every symmetric N whose full symmetrisation is zero has
(hh')' N (hh') = 0, so lambda_max(T + N) bounds the quartic. On a region where h' B h >= 0, the term
sym(svec(B) svec(LL')') may be added too, as its value at hh' is (h' B h) ||L'h||^2 >= 0. Any such N and L are a proof.
On the whole sphere the boundary point method minimises the bound. On parts of it, lambda_max is smoothed to
temperature * log sum exp(lambda / temperature), and L-BFGS minimises over N and L at decreasing temperatures.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from mopn.solvers.interface import Evaluation
from mopn.solvers.numerics.quasi_newton import quasi_newton
from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.boundary_point import Multipliers, step_work, tighten
from mopn.solvers.sphere.bounds import eigen_error
from mopn.solvers.sphere.lifting import Lifting, lifting
from mopn.solvers.sphere.stack import DenseStack

__all__ = ["Quartic", "Region", "relax"]

_EPS = float(np.finfo(float).eps)
# (temperature relative to the bound, iterations of L-BFGS). If the relaxation is not tight, temperatures below
# _COLDEST do not improve the bound.
_COLDEST = 2e-5
_COOLING = ((1e-3, 150), (1e-4, 150), (_COLDEST, 150))
# A descent ends when the gradient is this small, or when a step decreases the function by less than this, relative.
_FLAT, _LEVEL = 1e-5, 1e-9
# The multiplier LL' of a new cut starts at this times the identity, relative to the quartic's size: L = 0 would be
# stationary.
_FIRST_MULTIPLIER = 3e-3


class Quartic:
    """The quartic of a stack as a quadratic form T on Sym^2(R^d), for a stack scaled to about 1."""

    def __init__(self, stack: DenseStack) -> None:
        m, d = stack.shape
        self.lift: Lifting = lifting(d)
        self.step_work = step_work(self.lift.dimension)
        self.vectors = self.lift.vectors(stack.matrices)
        self.matrix = self.vectors.T @ self.vectors
        # Rounding error of the matrix T; and the error of the matrices, in the root of the quartic.
        self.rounding = (m + 3) * _EPS * float(np.sum(self.vectors**2))
        self.forming_error = float(np.linalg.norm(stack.error))

    @property
    def dimension(self) -> int:
        """D = d (d + 1) / 2."""
        return self.lift.dimension

    @property
    def identity(self) -> np.ndarray:
        """The identity matrix as a vector svec(I)."""
        return np.where(self.lift.i == self.lift.j, 1.0, 0.0)

    def project(self, V: np.ndarray) -> np.ndarray:
        """Return the nearest multiplier, a form that vanishes on every hh'; it is symmetric to the last bit."""
        return self.lift.project(0.5 * (V + V.T))

    def bound(self, form: np.ndarray, top: float, N: np.ndarray) -> float:
        """Return the proven bound by T + N and other terms, rounding errors of T and N included.

        Those made in forming the matrices, and those of the other terms, are not.
        """
        # Rounding makes the symmetrisation of N nonzero; its norm is added to the bound.
        error = float(np.linalg.norm(self.lift.symmetrised(N))) + 8 * _EPS * float(np.linalg.norm(N))
        return max(top, 0.0) * (1 + 8 * _EPS) + self.rounding + error + eigen_error(form)

    def whole(self, N: np.ndarray | None = None) -> Region:
        """Return the whole sphere, with the multiplier N of a similar quartic (ignored if its shape differs)."""
        D = self.dimension
        N = np.zeros((D, D)) if N is None or N.shape != (D, D) else self.project(N)
        d = int(self.lift.j[-1]) + 1
        return Region(np.zeros((0, D)), N, np.zeros((0, d, d)))


class Region(NamedTuple):
    """The unit vectors h with h' B_k h >= 0 for all cuts k, and the best proof of a bound on them.

    Attributes
    ----------
    cuts : ndarray of shape (q, D)
        svec(B_k), of length 1.
    N : ndarray of shape (D, D)
        Multiplier: a form that vanishes on every hh'.
    L : ndarray of shape (q, d, d)
        Factors of the multipliers L_k L_k' of the cuts.
    bound : float
        Proven upper bound of the quartic, rounding errors included (except those made in forming the matrices).
    X : ndarray of shape (D, D)
        Pseudo-moments of the relaxation, of trace 1: they take the place of a mean of svec(hh') svec(hh')'.
    """

    cuts: np.ndarray
    N: np.ndarray
    L: np.ndarray
    bound: float = math.inf
    X: np.ndarray = np.zeros((0, 0))

    def cut(self, vector: np.ndarray, quartic: Quartic, size: float) -> Region:
        """Return the part where <vector, svec(hh')> >= 0, with the multipliers of this region."""
        vector = vector / np.linalg.norm(vector)
        L = math.sqrt(_FIRST_MULTIPLIER * size) * np.eye(self.L.shape[1])
        return self._replace(cuts=np.vstack([self.cuts, vector]), L=np.concatenate([self.L, L[None]]))

    def starts(self, lift: Lifting) -> np.ndarray:
        """Return the dominant eigenvector of the matrix of each of the three top eigenvectors of X, (3, d)."""
        values, vectors = np.linalg.eigh(lift.matrices(np.linalg.eigh(self.X)[1][:, -3:].T))
        return vectors[np.arange(len(values)), :, np.abs(values).argmax(axis=1)]


class _Finished(Exception):
    """The bound is at most the target, or the allowance is spent."""


def relax(quartic: Quartic, region: Region, target: float, allowance: Allowance) -> Region:
    """Tighten the bound of a region until it is at most ``target`` or no longer decreases.

    Parameters
    ----------
    quartic : Quartic
    region : Region
        Where to start.
    target : float
        A bound of the quartic that is tight enough.
    allowance : Allowance
        Decompositions spend from it; when they have, the best proof so far is returned.

    Returns
    -------
    Region
        The same region, with a bound no larger than before.
    """
    if not len(region.cuts):
        D = quartic.dimension
        X = region.X if len(region.X) else np.zeros((D, D))
        N, X, bound = tighten(quartic, Multipliers(region.N, X), target, allowance)
        return region._replace(N=N, X=X / max(float(np.trace(X)), math.ulp(1.0)), bound=bound)
    if not allowance.affords(quartic.step_work):
        return region
    search = _Search(quartic, region, target, allowance)
    try:
        search.evaluate(region.N, region.L)
        # A temperature above the relative excess of the bound would spoil multipliers that are nearly optimal.
        excess = search.best.bound / max(target, math.ulp(0.0)) - 1.0
        for temperature, steps in _COOLING:
            if temperature > max(excess, _COLDEST):
                continue
            search.descend(temperature * max(search.best.bound, math.ulp(0.0)), steps)
    except _Finished:
        pass
    return search.best._replace(bound=min(search.best.bound, region.bound))


class _Search:
    """The best multipliers so far, and the smoothed problem around them."""

    def __init__(self, quartic: Quartic, region: Region, target: float, allowance: Allowance) -> None:
        self.quartic, self.target, self.allowance = quartic, target, allowance
        self.best = region._replace(bound=math.inf)

    def evaluate(self, N: np.ndarray, L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Decompose T + N + sum_k sym(svec(B_k) svec(L_k L_k')'), and keep the multipliers of the best proven bound."""
        # eigh reads one triangle only; the bound must be that of the same matrix.
        N = 0.5 * (N + N.T)
        terms = self.best.cuts.T @ self.quartic.lift.vectors(L @ L.transpose(0, 2, 1))
        form = self.quartic.matrix + N + 0.5 * (terms + terms.T)
        values, vectors = np.linalg.eigh(form)
        rounding = (L.shape[1] + len(L) + 8) * _EPS * float(np.sum(L * L))
        bound = self.quartic.bound(form, float(values[-1]), N) + rounding
        if bound < self.best.bound:
            X = _density(values, vectors, _COLDEST * max(bound, math.ulp(0.0)))
            self.best = self.best._replace(N=N, L=L.copy(), bound=bound, X=X)
        work = self.quartic.step_work
        self.allowance.spend(work)
        if not self.allowance.affords(work) or self.best.bound <= self.target:
            raise _Finished
        return values, vectors

    def descend(self, temperature: float, steps: int) -> None:
        """Minimise the smoothed bound from the best multipliers; the projected gradient keeps N in its subspace."""
        lift, D, cuts = self.quartic.lift, self.quartic.dimension, self.best.cuts

        def smoothed(x: np.ndarray) -> Evaluation:
            L = x[D * D :].reshape(self.best.L.shape)
            values, vectors = self.evaluate(x[: D * D].reshape(D, D), L)
            total = float(np.exp((values - values[-1]) / temperature).sum())
            density = _density(values, vectors, temperature)
            gradient = [lift.project(density).ravel(), (2.0 * lift.matrices(cuts @ density) @ L).ravel()]
            value = float(values[-1]) + temperature * math.log(total)
            return Evaluation(value / temperature, np.concatenate(gradient) / temperature)

        start = np.concatenate([self.best.N.ravel(), self.best.L.ravel()])
        before = math.inf
        for _, at, _ in itertools.islice(quasi_newton(smoothed, start, memory=15), steps):
            if np.abs(at.gradient).max() <= _FLAT or before - at.value <= _LEVEL * abs(at.value):
                break
            before = at.value


def _density(values: np.ndarray, vectors: np.ndarray, temperature: float) -> np.ndarray:
    """Return the gradient of temperature * log sum exp(lambda / temperature): a matrix of trace 1."""
    weights = np.exp((values - values[-1]) / temperature)
    kept = weights > 1e-12
    return (vectors[:, kept] * (weights[kept] / weights.sum())) @ vectors[:, kept].T
