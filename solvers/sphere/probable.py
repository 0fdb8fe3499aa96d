"""Bounds for any width that hold with a stated probability: Chebyshev polynomials of random starts.

Let v be an eigenvector of a symmetric A, of the eigenvalue lambda of largest modulus, and b a Gaussian vector: <v, b>
is a standard normal number, so that it is below delta in modulus with a probability of at most sqrt(2 / pi) delta. If
it is not, the Chebyshev polynomial of degree k shows lambda, for any scale s < |lambda|:

    ||T_k(A / s) b|| >= |<v, b>| T_k(|lambda| / s) >= delta cosh(k arccosh(|lambda| / s)).

It takes k products and three vectors. Any s proves a bound; the best is |lambda| itself, which Lanczos estimates. Two
starts fail together with a probability of at most 2 delta^2 / pi, so that delta is large compared with rounding errors.
The probability is over the starts alone, unknown to whoever chose A: see :mod:`mopn.solvers.tools.budgets`.

For p = inf the matrices are the Gamma_c, for p = 1 all signed sums, for p = 2 combinations on cones of directions
(:mod:`mopn.solvers.sphere.cones`).
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.sphere.cholesky import MAX_SIGNED
from mopn.solvers.sphere.cones import AT_A_TIME, MAX_SPLIT, bound_by_cones, half_of_signs
from mopn.solvers.sphere.eigenvectors import MAX_KRYLOV_ENTRIES, lanczos
from mopn.solvers.sphere.stack import MatrixFreeStack, Stack
from mopn.solvers.tools.budgets import Budget

# Random starts for each matrix: all must fail for a false bound.
_STARTS = 2
# Steps of Lanczos that estimate the norm of a matrix, at least; a poor estimate only loosens the bound.
_MIN_LANCZOS_STEPS = 30
# Steps of Lanczos, at least, as a fraction of the steps of the bound.
_LANCZOS_FRACTION = 0.25
# Excess of a norm over its estimate that the scale allows for, as a fraction of the tolerance.
_SCALE_EXCESS = 0.2
# The least scale, relative to the largest value found: smaller matrices do not change the bound.
_LEAST_SCALE = 1e-10
# The largest number of matrices that are bounded for p = 2: each has its share of the failure probability.
_MAX_MATRICES = 512
# The fraction of the tolerance for the bounds of matrices if cones are split; the cones have the rest.
_MATRIX_TOL_FRACTION = 0.5


def least_component(failure: float) -> float:
    """Return delta: all starts have a smaller component along a given unit vector with this probability, at most."""
    return math.sqrt(0.5 * math.pi) * failure ** (1.0 / _STARTS)


def steps_for(d: int, tol: float, failure: float) -> int:
    """Return the steps that bound the norm of a matrix of order d to ``tol``, with the norm as the scale."""
    growth = max(math.sqrt(d) / least_component(failure), 1.0)
    return max(2, math.ceil(math.acosh(growth) / math.acosh(1.0 + tol)))


def chebyshev_bound(
    products: Callable[[np.ndarray], np.ndarray], start: np.ndarray, scale: np.ndarray, steps: int, least: float
) -> np.ndarray:
    """Bound the norms of k symmetric matrices A_r, for starts that are not nearly orthogonal to eigenvectors."""
    before = start
    y = products(start) / scale[:, None]
    lengths = [_lengths(start), _lengths(y)]
    for _ in range(steps - 1):
        following = products(y)
        following *= (2.0 / scale)[:, None]
        following -= before
        before = y
        y = following
        lengths.append(_lengths(y))

    length = lengths[-1] * (1.0 + start.shape[1] * EPS)
    j = np.arange(1, steps + 1)[:, None]
    longest = np.maximum.accumulate(lengths)[1:]
    lost = 2 * EPS * np.sum((steps + 1 - j) * longest / np.cosh(j * _angle(length / least, steps)), axis=0)
    bounds = scale * np.cosh(_angle(length / (least - lost), steps)) * (1 + 16 * EPS)
    return np.where(lost < least, bounds, math.inf)


def _angle(grown: np.ndarray, steps: int) -> np.ndarray:
    """Return arccosh(x) for the x >= 1 at which the polynomial has these values."""
    return np.arccosh(np.maximum(grown, 1.0)) / steps


def _lengths(A: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("kd,kd->k", A, A))


def expected_products(stack: Stack, p: float, tol: float, failure: float) -> float:
    """Estimate the products with a vector of :func:`probable_bound`, before cones are split."""
    m, d = stack.shape
    matrices = 2 ** (m - 1) if p == 1 and m <= MAX_SIGNED else m
    steps = steps_for(d, (1.0 - _SCALE_EXCESS) * tol, failure / _max_matrices(m, p))
    return matrices * (_lanczos_steps(steps) + _STARTS * steps)


def probable_bound(
    stack: MatrixFreeStack,
    p: float,
    tol: float,
    failure: float,
    rng: np.random.Generator,
    budget: Budget | None = None,
    best: float = 0.0,
) -> tuple[np.ndarray, float]:
    """Bound max ||q(h)||_p over unit h, to about ``tol`` for p = inf and with few outputs, with a probability."""
    budget = budget or Budget()
    m, _ = stack.shape
    fraction = _MATRIX_TOL_FRACTION if p == 2 and 1 < m <= MAX_SPLIT else 1.0
    norm = _ProbableNorm(stack, fraction * tol, failure / _max_matrices(m, p), rng, budget, best)
    if p == math.inf:
        bound = float(norm(np.eye(m)).max())
    elif p == 1 and m <= MAX_SIGNED:
        bound = float(norm(half_of_signs(m)).max())
    else:
        axes = np.linalg.eigh(stack.gram())[1].T
        bound = bound_by_cones(norm, axes, tol, _MAX_MATRICES)
        if p == 1:
            bound *= math.sqrt(m)
    return np.vstack(norm.found), bound + norm.steps * stack.rounding(p)


def _lanczos_steps(steps: int) -> int:
    return max(_MIN_LANCZOS_STEPS, int(_LANCZOS_FRACTION * steps))


def _max_matrices(m: int, p: float) -> int:
    """Return the largest number of matrices that are bounded, which share the failure probability."""
    if p == math.inf:
        return m
    if p == 1 and m <= MAX_SIGNED:
        return 2 ** (m - 1)
    return m + _MAX_MATRICES + AT_A_TIME


class _ProbableNorm:
    """Upper bounds of g(w) = max over unit h of |h' (sum_c w_c Gamma_c) h|, with a probability."""

    def __init__(
        self, stack: Stack, tol: float, failure: float, rng: np.random.Generator, budget: Budget, best: float
    ) -> None:
        self.stack = stack
        self.rng = rng
        self.budget = budget
        self.best = best
        m, d = stack.shape
        self.steps = steps_for(d, (1.0 - _SCALE_EXCESS) * tol, failure)
        self.least = least_component(failure)
        self.lanczos_steps = _lanczos_steps(self.steps)
        self.excess = 1.0 + _SCALE_EXCESS * tol
        self.at_a_time = max(1, min(AT_A_TIME, MAX_KRYLOV_ENTRIES // (self.lanczos_steps * d)))
        self.found = [np.zeros((0, d))]
        self.forms = np.zeros((0, m))
        self.bounded = 0

    @property
    def exhausted(self) -> bool:
        """Whether the time is over, or all matrices that share the probability were bounded."""
        return self.budget.out_of_time or self.bounded >= self.stack.shape[0] + _MAX_MATRICES

    def __call__(self, W: np.ndarray) -> np.ndarray:
        bounds = np.full(len(W), math.inf)
        for first in range(0, len(W), self.at_a_time):
            if self.budget.out_of_time:
                break
            rows = slice(first, first + self.at_a_time)
            self.bounded += len(W[rows])
            bounds[rows] = self._bounds(W[rows])
        return bounds

    def _bounds(self, W: np.ndarray) -> np.ndarray:
        """Return the bounds (k,) of a few directions W (k, m), with new starts."""
        starts = self.rng.standard_normal((_STARTS, len(W), self.stack.shape[1]))
        H = lanczos(partial(self.stack.products, W), starts[0], max_steps=self.lanczos_steps)
        self.found.append(H)
        self.forms = np.vstack([self.forms, self.stack.forms(H)])
        self.best = max(self.best, float(np.linalg.norm(self.forms, axis=1).max()))

        estimated = np.abs(W @ self.forms.T).max(axis=1) * self.excess
        least_scale = max(_LEAST_SCALE * self.best, TINY)
        scale = np.tile(np.maximum(estimated, least_scale), _STARTS)
        products = partial(self.stack.products, np.tile(W, (_STARTS, 1)))
        bounds = chebyshev_bound(products, np.concatenate(starts), scale, self.steps, self.least)
        return bounds.reshape(_STARTS, -1).max(axis=0)
