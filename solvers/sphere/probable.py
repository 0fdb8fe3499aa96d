"""Bounds for any width that hold with a stated probability: Lanczos from random starts.

After k steps from a uniformly random direction, the largest Ritz value theta of a symmetric A of order d is below
lambda_max by more than eps (lambda_max - lambda_min) with a probability of at most

    1.648 sqrt(d) exp(-sqrt(eps) (2k - 1)),

whatever the spectrum (Kuczynski and Wozniakowski, SIAM J. Matrix Anal. Appl., 1992, theorem 4.2). The probability is
over the start alone, which must not be known to whoever chose A: see :mod:`mopn.solvers.chance`.

For p = inf the matrices are the Gamma_c, for p = 1 all signed sums. For p = 2, with g(w) = max_h |sum_c w_c q_c(h)|,

    max_h ||q(h)||_2 = max over unit w of g(w),

and g is sublinear: on the cone of w_1, ..., w_m it is at most <u, w> where <u, w_i> = g(w_i), so at most ||u|| for unit
w. The cones of the largest bound are split first.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable
from functools import partial

import numpy as np
from scipy.optimize import lsq_linear

from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.cholesky import MAX_SIGNED
from mopn.solvers.sphere.eigenvectors import krylov
from mopn.solvers.sphere.stack import MatrixFreeStack, Stack

__all__ = ["error_after", "expected_products", "probable_bound", "steps_for"]

_EPS = float(np.finfo(float).eps)
# A matrix of order d may take so many numbers for the bases of its Krylov spaces; fewer steps leave a larger error.
_MEMORY = 1 << 27
# With more outputs their cones are not split: there are 2^(m - 1) of them.
_MAX_SPLIT = 8
# The largest number of matrices that are bounded for p = 2, and how many at a time.
_MOST_RUNS, _AT_A_TIME = 512, 8
# The fraction of the tolerance that the errors of runs may take where cones are split.
_TOL_OF_RUNS = 0.25
# The relative error of one cone's bound, solved from vectors that are far from parallel, for each unit of their
# condition; and the condition from which on nothing is solved.
_SOLVE, _SINGULAR = 1e-12, 1e8
# Corners that agree to so many digits are one.
_DIGITS = 12


def steps_for(d: int, eps: float, failure: float) -> int:
    """Return the steps after which a Ritz value errs by more than ``eps`` of the spectrum so seldom, at most."""
    return max(2, math.ceil(0.5 * (1.0 + math.log(1.648 * math.sqrt(d) / failure) / math.sqrt(eps))))


def error_after(steps: int, d: int, failure: float) -> float:
    """Return the error, relative to the length of the spectrum, that is exceeded so seldom after so many steps."""
    return (max(math.log(1.648 * math.sqrt(d) / failure), 0.0) / (2 * steps - 1)) ** 2


def expected_products(stack: Stack, p: float, tol: float, failure: float) -> float:
    """Estimate the number of products with a vector of :func:`probable_bound`, before cones are split."""
    m, d = stack.shape
    runs = 2 ** (m - 1) if p == 1 and m <= MAX_SIGNED else m
    return runs * _steps(d, tol, failure / (2 * _runs(m, p)))


def probable_bound(
    stack: MatrixFreeStack,
    p: float,
    tol: float,
    failure: float,
    rng: np.random.Generator,
    allowance: Allowance | None = None,
) -> tuple[np.ndarray, float]:
    """Bound max ||q(h)||_p over unit h, to about ``tol`` for p = inf and with few outputs, with a probability.

    Parameters
    ----------
    stack : MatrixFreeStack
    p : {1, 2, inf}
    tol : float
        Relative precision.
    failure : float
        The largest probability that the bound is too small.
    rng : Generator
        The source of the starts.
    allowance : Allowance, optional
        Out of time, no further matrix is bounded. Default: no limits.

    Returns
    -------
    H : ndarray of shape (k, d)
        Unit vectors found.
    bound : float
        Rounding is added: of the products as proven for the stack, of Lanczos with full reorthogonalisation as its
        backward error is documented. With more than 6 outputs (p = 1) or 8 (p = 2) it is only the norm of those of
        single forms.
    """
    allowance = allowance or Allowance()
    m, _ = stack.shape
    # Most of the tolerance is for the cones, where it is expensive.
    fraction = _TOL_OF_RUNS if p == 2 and 1 < m <= _MAX_SPLIT else 1.0
    norm = _Norm(stack, fraction * tol, failure / (2 * _runs(m, p)), rng, allowance)
    if p == math.inf:
        bound = float(norm(np.eye(m)).max())
    elif p == 1 and m <= MAX_SIGNED:
        bound = float(norm(np.array([(1.0, *s) for s in itertools.product((1.0, -1.0), repeat=m - 1)])).max())
    else:
        bound = _bound_by_cones(norm, np.linalg.eigh(stack.gram())[1].T, tol)
        bound *= math.sqrt(m) if p == 1 else 1.0
    return np.vstack(norm.found), bound + norm.steps * stack.rounding(p)


def _runs(m: int, p: float) -> int:
    """Return the largest number of matrices that one call bounds, from both ends each."""
    return m if p == math.inf else 2 ** (m - 1) if p == 1 and m <= MAX_SIGNED else m + _MOST_RUNS + _AT_A_TIME


def _steps(d: int, tol: float, failure: float) -> int:
    """Return the steps for a bound to ``tol``, half of it on either end of a spectrum that may reach to both signs."""
    return min(steps_for(d, 0.5 * tol, failure), d, max(2, _MEMORY // d))


class _Norm:
    """g(w) = max over unit h of |h' (sum_c w_c Gamma_c) h|, from above, for several w at a time."""

    def __init__(
        self, stack: Stack, tol: float, failure: float, rng: np.random.Generator, allowance: Allowance
    ) -> None:
        self.stack, self.rng, self.allowance = stack, rng, allowance
        d = stack.shape[1]
        self.steps = _steps(d, tol, failure)
        # All of the space leaves no error.
        self.eps = error_after(self.steps, d, failure) if self.steps < d else 0.0
        self.at_a_time = max(1, min(_AT_A_TIME, _MEMORY // (self.steps * d)))
        self.found: list[np.ndarray] = [np.zeros((0, d))]
        self.best = 0.0

    def __call__(self, W: np.ndarray) -> np.ndarray:
        """Return the bounds (k,) for the rows of W (k, m); infinite for those that the time does not suffice for."""
        bounds = np.full(len(W), math.inf)
        for first in range(0, len(W), self.at_a_time):
            if self.allowance.out_of_time:
                break
            rows = slice(first, first + self.at_a_time)
            bounds[rows] = self._bounds(W[rows])
        return bounds

    def _bounds(self, W: np.ndarray) -> np.ndarray:
        k, d = len(W), self.stack.shape[1]
        start = self.rng.standard_normal((k, d))
        *_, (Q, T, _) = krylov(partial(self.stack.products, W), start, self.steps)
        values, vectors = np.linalg.eigh(T)
        low, high = values[:, 0], values[:, -1]
        self._keep(Q, vectors[np.arange(k), :, np.where(high >= -low, -1, 0)])
        if self.eps >= 0.5:
            return np.full(k, math.inf)
        # The spectrum is longer than that of the Ritz values by 2 eps of its own length, at most.
        missing = self.eps * (high - low) / (1.0 - 2.0 * self.eps)
        size = np.maximum(high, -low)
        return size + missing + 8.0 * self.steps * d * _EPS * size

    def _keep(self, Q: np.ndarray, s: np.ndarray) -> None:
        H = np.einsum("kj,kjd->kd", s, Q)
        lengths = np.linalg.norm(H, axis=1, keepdims=True)
        H = H[lengths[:, 0] > 0] / lengths[lengths[:, 0] > 0]
        self.found.append(H)
        if len(H):
            self.best = max(self.best, float(np.linalg.norm(self.stack.forms(H), axis=1).max()))


def _bound_by_cones(norm: _Norm, axes: np.ndarray, tol: float) -> float:
    """Bound max g(w) over unit w from the axes (m, m), orthonormal, and from directions between them."""
    m, values = len(axes), norm(axes)
    if m == 1 or m > _MAX_SPLIT or not np.isfinite(values).all():
        return float(np.linalg.norm(values)) * (1.0 + 10 * m * _EPS)
    signs = itertools.product((1.0, -1.0), repeat=m - 1)
    cones = _Cones((np.array([1.0, *s])[:, None] * axes, values) for s in signs)
    corners: dict[bytes, tuple[np.ndarray, float]] = {}
    splits = 0
    # Corners are shared, so that cones may be split for nothing; the number of splits is limited, too.
    while splits < _MOST_RUNS:
        over = norm.allowance.out_of_time or len(corners) >= _MOST_RUNS
        if over or cones.bound <= norm.best * (1.0 + tol):
            break
        splits += 1
        widest = cones.pop(_AT_A_TIME)
        middles = [_middle(cone) for cone, _ in widest]
        new = np.array([w for w in {_key(w): w for w in middles}.values() if _key(w) not in corners])
        if len(new):
            corners |= {_key(w): (w, float(value)) for w, value in zip(new, norm(new), strict=True)}
        for (cone, of_cone), middle in zip(widest, middles, strict=True):
            w, value = corners[_key(middle)]
            if math.isinf(value):
                cones.push(cone, of_cone)
                continue
            for corner in _longest_edge(cone):
                part, of_part = cone.copy(), of_cone.copy()
                part[corner], of_part[corner] = math.copysign(1.0, float(w @ middle)) * w, value
                cones.push(part, of_part)
    # The corner w of the parts of a cone differs from its middle by at most sqrt(m) 10^-digits. A unit vector of the
    # cone is at most sqrt(m) times as much from one of the parts, and g of the difference is at most that times its
    # maximum.
    return cones.bound * (1.0 + 2.0 * m * 10.0**-_DIGITS * splits)


class _Cones:
    """Cones of m corners each, by decreasing bound."""

    def __init__(self, cones: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        self.heap: list[tuple[float, int, np.ndarray, np.ndarray]] = []
        self.order = itertools.count()
        for cone, values in cones:
            self.push(cone, values)

    def push(self, cone: np.ndarray, values: np.ndarray) -> None:
        """Add a cone with corners (m, m) and g at these."""
        heapq.heappush(self.heap, (-_bound_on_cone(cone, values), next(self.order), cone, values))

    def pop(self, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Remove up to so many cones of the largest bounds."""
        return [heapq.heappop(self.heap)[2:] for _ in range(min(count, len(self.heap)))]

    @property
    def bound(self) -> float:
        """The largest bound."""
        return -self.heap[0][0]


def _bound_on_cone(cone: np.ndarray, values: np.ndarray) -> float:
    """Bound the maximum, over unit w = C'a with a >= 0, of a'v, where v are bounds of g at the corners C (m, m).

    g is convex and homogeneous, so that a'v bounds it. It is <u, w> for the solution u of C u = v, so its maximum is
    the length of the projection of u onto the cone. Corners that nearly coincide determine no u; there the sum of a is
    at most 1 over the least cosine between a corner and the axis.
    """
    size = max(float(values.max()), float(np.finfo(float).tiny))
    axis = cone.sum(axis=0)
    cosine = float((cone @ axis).min()) / max(float(np.linalg.norm(axis)), _SOLVE)
    narrow = 1.0 / cosine if cosine > 0 else math.inf
    condition = float(np.linalg.cond(cone))
    if condition > _SINGULAR:
        return size * narrow * (1.0 + _SOLVE)
    u = np.linalg.solve(cone, values / size)
    projection = cone.T @ lsq_linear(cone.T, u, (0.0, math.inf), method="bvls").x
    # Whatever the projection, <u, w> = <projection, w> + a'C(u - projection), and a is no longer than C's inverse.
    rest = max(float((cone @ (u - projection)).max()), 0.0)
    bound = float(np.linalg.norm(projection)) + math.sqrt(len(cone)) * condition * rest
    return size * min(bound, narrow) * (1.0 + _SOLVE * condition)


def _longest_edge(cone: np.ndarray) -> tuple[int, int]:
    """Return the two corners that are farthest from each other."""
    i, j = np.unravel_index(np.argmin(cone @ cone.T), cone.shape)
    return int(i), int(j)


def _middle(cone: np.ndarray) -> np.ndarray:
    i, j = _longest_edge(cone)
    w = cone[i] + cone[j]
    return w / np.linalg.norm(w)


def _key(w: np.ndarray) -> bytes:
    """Return what neighbouring cones, and the opposite ones, call their common corner."""
    w = np.round(w, _DIGITS) + 0.0
    return (w if w[np.flatnonzero(w)[0]] > 0 else 0.0 - w).tobytes()
