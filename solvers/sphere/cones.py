"""Bounds for p = 2 from bounds of single combinations of the outputs: branch and bound on cones of directions.

With g(w) = max_h |sum_c w_c q_c(h)|,

    max_h ||q(h)||_2 = max over unit w of g(w),

and g is sublinear: on the cone of w_1, ..., w_m it is at most <u, w> where <u, w_i> = g(w_i), so at most ||u|| for unit
w. The cones of the largest bound are split first.

For few independent outputs eigenvalues bound g: three classes have two, as their gradients sum to zero, and a dozen
eigenvalue problems of order d prove the maximum to 1e-4. Three outputs take a hundred, and four some hundreds.
"""

import heapq
import itertools
import math
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from scipy.optimize import nnls

from mopn.solvers.numerics.precision import EPS, NULL, TINY, proven_upper
from mopn.solvers.sphere.bounds import eigen_scale
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack, rotated_outputs
from mopn.solvers.tools.budgets import Budget

# Rounds of splits, at most: several times as many as 1e-6 takes unless g is constant.
_MAX_ROUNDS = 100
# Directions that are bounded at a time.
AT_A_TIME = 16
# Largest number of outputs whose 2^(m - 1) cones are split.
MAX_SPLIT = 8
# The largest condition of a cone: for each unit of it, the bound on the cone errs by NULL, relative.
_MAX_CONDITION = 1e8
# Decimal digits to which corners are rounded for comparison.
_CORNER_DIGITS = 12
# The distance of corners' cosines from 1 below which cones are not split.
_NARROW = 10.0**-_CORNER_DIGITS


class OutputNorm(Protocol):
    """Upper bounds of g."""

    # The best value that is known.
    best: float
    # Directions to bound at a time.
    at_a_time: int

    def __call__(self, W: np.ndarray) -> np.ndarray:
        """Return the bounds (k,) for the rows of W (k, m); infinite once exhausted."""

    @property
    def exhausted(self) -> bool:
        """Whether the budget has nothing left for further directions."""


def half_of_signs(m: int) -> np.ndarray:
    """Return all vectors of signs that begin with 1, (2^(m - 1), m)."""
    return np.array([(1.0, *signs) for signs in itertools.product((1.0, -1.0), repeat=m - 1)])


def bound_by_cones(norm: OutputNorm, axes: np.ndarray, tol: float, most: int) -> float:
    """Bound max g(w) over unit w from axes (m, m), within ``tol`` or in at most ``most`` rounds of splits."""
    m = len(axes)
    values = norm(axes)
    if m == 1 or m > MAX_SPLIT or not np.isfinite(values).all():
        return float(np.linalg.norm(values)) * (1.0 + 10 * m * EPS)
    cones = _ConeTree((signs[:, None] * axes, values) for signs in half_of_signs(m))
    corners: dict[bytes, tuple[np.ndarray, float]] = {}
    splits = 0
    while splits < most and not norm.exhausted:
        target = norm.best * (1.0 + tol) + m * TINY
        if not cones.has_above(target):
            break
        splits += 1
        split: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        new: dict[bytes, np.ndarray] = {}
        while cones.has_above(target) and len(new) < norm.at_a_time:
            cone, cone_values = cones.pop()
            middle = _middle(cone)
            split.append((cone, cone_values, middle))
            key = _corner_key(middle)
            if key not in corners:
                new[key] = middle
        if new:
            W = np.array(list(new.values()))
            for key, w, value in zip(new, W, norm(W), strict=True):
                corners[key] = (w, float(value))
        for cone, cone_values, middle in split:
            w, value = corners[_corner_key(middle)]
            if math.isinf(value):
                cones.push(cone, cone_values)
            else:
                # The corner may be the opposite one, as g(-w) = g(w).
                cones.push_parts(cone, cone_values, math.copysign(1.0, float(w @ middle)) * w, value)
    # The common corner of the parts of a cone differs from its middle by at most sqrt(m) 10^-digits. A unit vector of
    # the cone is at most sqrt(m) times as far from a part. So g of the difference is at most m 10^-digits times its
    # maximum.
    return cones.bound * (1.0 + 2.0 * m * _NARROW * splits)


class _ConeTree:
    """Cones of m corners each, by decreasing bound; for narrow cones it only keeps the largest bound."""

    def __init__(self, cones: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        self.heap: list[tuple[float, int, np.ndarray, np.ndarray]] = []
        self.order = itertools.count()
        self.closed = 0.0
        for cone, values in cones:
            self.push(cone, values)

    def push(self, cone: np.ndarray, values: np.ndarray) -> None:
        """Add a cone with corners (m, m) and bounds of g at these."""
        bound = float(proven_upper(_bound_on_cone(cone, values)))
        if float((cone @ cone.T).min()) >= 1.0 - _NARROW:
            self.closed = max(self.closed, bound)
        else:
            heapq.heappush(self.heap, (-bound, next(self.order), cone, values))

    def push_parts(self, cone: np.ndarray, values: np.ndarray, w: np.ndarray, value: float) -> None:
        """Add the two parts of a cone, whose longest edge is split at w with the bound ``value`` of g."""
        for corner in _longest_edge(cone):
            part = cone.copy()
            part_values = values.copy()
            part[corner] = w
            part_values[corner] = value
            self.push(part, part_values)

    def has_above(self, target: float) -> bool:
        """Whether the largest bound is above a target, and belongs to a cone that may be split."""
        return bool(self.heap) and -self.heap[0][0] > max(target, self.closed)

    def pop(self) -> tuple[np.ndarray, np.ndarray]:
        return heapq.heappop(self.heap)[2:]

    @property
    def bound(self) -> float:
        return max(self.closed, -self.heap[0][0] if self.heap else 0.0)


def _bound_on_cone(cone: np.ndarray, values: np.ndarray) -> float:
    """Bound g over the unit vectors w = C'a with a >= 0, given bounds v of g at the corners C (m, m).

    g is sublinear, so a'v bounds it. For the solution u of C u = v this is <u, w>, with the length of the projection of
    u onto the cone as its maximum. Corners that nearly coincide determine no u; there the sum of a is at most 1 over
    the least cosine between a corner and the axis.
    """
    size = max(float(values.max()), TINY)
    axis = cone.sum(axis=0)
    cosine = float((cone @ axis).min()) / max(float(np.linalg.norm(axis)), NULL)
    narrow = 1.0 / cosine if cosine > 0 else math.inf
    condition = float(np.linalg.cond(cone))
    if condition > _MAX_CONDITION:
        return size * narrow * (1.0 + NULL)
    u = np.linalg.solve(cone, values / size)
    try:
        coefficients, _ = nnls(cone.T, u)
        projection = cone.T @ coefficients
    except RuntimeError:  # any projection proves a bound
        projection = np.zeros_like(u)
    # <u, w> = <projection, w> + a'C(u - projection), and the norm of a is at most the norm of C's inverse.
    rest = max(float((cone @ (u - projection)).max()), 0.0)
    bound = float(np.linalg.norm(projection)) + math.sqrt(len(cone)) * condition * rest
    return size * min(bound * (1.0 + NULL * condition), narrow * (1.0 + NULL))


def _longest_edge(cone: np.ndarray) -> tuple[int, int]:
    """Return the indices of the two corners that are farthest apart."""
    i, j = np.unravel_index(np.argmin(cone @ cone.T), cone.shape)
    return int(i), int(j)


def _middle(cone: np.ndarray) -> np.ndarray:
    """Return the middle of the longest edge, a unit vector."""
    i, j = _longest_edge(cone)
    w = cone[i] + cone[j]
    return w / np.linalg.norm(w)


def _corner_key(w: np.ndarray) -> bytes:
    """Return the name of a corner and of the opposite one, common to the cones that have it."""
    w = np.round(w, _CORNER_DIGITS) + 0.0
    first = w[np.flatnonzero(w)[0]]
    if not first > 0:
        w = 0.0 - w
    return w.tobytes()


def bound_by_eigenvalues(stack: DenseStack, H: np.ndarray, tol: float, budget: Budget) -> tuple[np.ndarray, float]:
    """Bound ``||q(h)||_2`` over unit h, for a stack scaled to about 1; return unit vectors found, and the bound."""
    outputs = rotated_outputs(stack)
    norm = _NormByEigenvalues(outputs.stack, H, budget)
    bound = bound_by_cones(norm, np.eye(len(outputs.basis)), tol, _MAX_ROUNDS)
    return np.vstack(norm.found), outputs.bound(bound + float(np.linalg.norm(outputs.stack.error)))


class _NormByEigenvalues:
    """Upper bounds of g(w) = max over unit h of |h' (sum_c w_c Gamma_c) h| by eigenvalues."""

    at_a_time = AT_A_TIME

    def __init__(self, stack: DenseStack, H: np.ndarray, budget: Budget) -> None:
        self.stack = stack
        self.budget = budget
        self.best = float(np.linalg.norm(stack.forms(H), axis=1).max())
        self.found = [H[:0]]
        m, d = stack.shape
        # Operations of the eigenvalues of one matrix; the overhead of the calls is worth 1e5.
        self._work = 0.5 * d**3 + 1e5
        # Rounding error of the sum of m terms, and of its eigenvalues, for unit w.
        self._error = (eigen_scale(d) + m + 2) * EPS * float(np.linalg.norm(stack.matrices))

    @property
    def exhausted(self) -> bool:
        return not self.budget.affords(self.at_a_time * self._work)

    def __call__(self, W: np.ndarray) -> np.ndarray:
        """Return the bounds (k,); the eigenvector of the largest one starts a search."""
        if not self.budget.affords(len(W) * self._work):
            return np.full(len(W), np.inf)
        self.budget.spend(len(W) * self._work)
        matrices = self.stack.combine(W)
        sizes = np.abs(np.linalg.eigvalsh(matrices)).max(axis=1)
        bounds = sizes + self._error * np.linalg.norm(W, axis=1)
        if bounds.max() > self.best:
            values, vectors = np.linalg.eigh(matrices[np.argmax(bounds)])
            h = vectors[:, [np.argmax(np.abs(values))]].T
            h, value = refine(self.stack, h, 2, max_time=self.budget.seconds)
            self.best = max(self.best, float(value[0]))
            self.found.append(h)
        return bounds
