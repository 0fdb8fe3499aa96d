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
from mopn.solvers.sphere.eigenvectors import MEMORY, lanczos
from mopn.solvers.sphere.stack import MatrixFreeStack, Stack
from mopn.solvers.tools.budgets import Budget

# Starts for each matrix; steps of Lanczos that estimate its norm, and at least this fraction of the bound's steps; and
# the fraction of the tolerance by which norms may exceed their estimates.
_STARTS, _LOOK, _OF_STEPS, _BEYOND = 2, 30, 0.25, 0.2
# The least scale, relative to the largest value found.
_NOTHING = 1e-10
# The largest number of matrices that are bounded for p = 2.
_MOST_RUNS = 512
# The fraction of the tolerance for the errors of runs if cones are split.
_TOL_OF_RUNS = 0.5


def least_component(failure: float) -> float:
    """Return delta: all starts have a smaller component along a given unit vector with this probability, at most."""
    return math.sqrt(0.5 * math.pi) * failure ** (1.0 / _STARTS)


def steps_for(d: int, tol: float, failure: float) -> int:
    """Return the steps that bound the norm of a matrix of order d to ``tol``, with the norm as the scale."""
    return max(2, math.ceil(math.acosh(max(math.sqrt(d) / least_component(failure), 1.0)) / math.acosh(1.0 + tol)))


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
    runs = 2 ** (m - 1) if p == 1 and m <= MAX_SIGNED else m
    steps = steps_for(d, (1.0 - _BEYOND) * tol, failure / _runs(m, p))
    return runs * (_look(steps) + _STARTS * steps)


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
    fraction = _TOL_OF_RUNS if p == 2 and 1 < m <= MAX_SPLIT else 1.0
    norm = _ProbableNorm(stack, fraction * tol, failure / _runs(m, p), rng, budget, best)
    if p == math.inf:
        bound = float(norm(np.eye(m)).max())
    elif p == 1 and m <= MAX_SIGNED:
        bound = float(norm(half_of_signs(m)).max())
    else:
        bound = bound_by_cones(norm, np.linalg.eigh(stack.gram())[1].T, tol, _MOST_RUNS)
        bound *= math.sqrt(m) if p == 1 else 1.0
    return np.vstack(norm.found), bound + norm.steps * stack.rounding(p)


def _look(steps: int) -> int:
    return max(_LOOK, int(_OF_STEPS * steps))


def _runs(m: int, p: float) -> int:
    return m if p == math.inf else 2 ** (m - 1) if p == 1 and m <= MAX_SIGNED else m + _MOST_RUNS + AT_A_TIME


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
        self.steps = steps_for(d, (1.0 - _BEYOND) * tol, failure)
        self.least = least_component(failure)
        self.look = _look(self.steps)
        self.beyond = 1.0 + _BEYOND * tol
        self.at_a_time = max(1, min(AT_A_TIME, MEMORY // (self.look * d)))
        self.found = [np.zeros((0, d))]
        self.forms = np.zeros((0, m))
        self.runs = 0

    @property
    def exhausted(self) -> bool:
        """Whether the time is over, or all matrices that share the probability were bounded."""
        return self.budget.out_of_time or self.runs >= self.stack.shape[0] + _MOST_RUNS

    def __call__(self, W: np.ndarray) -> np.ndarray:
        bounds = np.full(len(W), math.inf)
        for first in range(0, len(W), self.at_a_time):
            if self.budget.out_of_time:
                break
            rows = slice(first, first + self.at_a_time)
            self.runs += len(W[rows])
            bounds[rows] = self._bounds(W[rows])
        return bounds

    def _bounds(self, W: np.ndarray) -> np.ndarray:
        starts = self.rng.standard_normal((_STARTS, len(W), self.stack.shape[1]))
        H = lanczos(partial(self.stack.products, W), starts[0], max_steps=self.look)
        self.found.append(H)
        self.forms = np.vstack([self.forms, self.stack.forms(H)])
        self.best = max(self.best, float(np.linalg.norm(self.forms, axis=1).max()))
        estimated = np.abs(W @ self.forms.T).max(axis=1) * self.beyond
        scale = np.tile(np.maximum(estimated, max(_NOTHING * self.best, TINY)), _STARTS)
        products = partial(self.stack.products, np.tile(W, (_STARTS, 1)))
        bounds = chebyshev_bound(products, np.concatenate(starts), scale, self.steps, self.least)
        return bounds.reshape(_STARTS, -1).max(axis=0)
