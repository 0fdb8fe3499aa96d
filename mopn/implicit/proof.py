r"""Proven lower bounds of the minimum for implicit feedback, of second order, from residuals of the observed pairs.

For any number r_e for each observed pair, and G the sparse matrix of them, Fenchel's inequality of each term gives

    F(W) >= sum_e (r_e - r_e^2 / (2 c_e)) + ridge / 2 ||W||^2 + strength ||W||_* - <G, W>
         >= sum_e (r_e - r_e^2 / (2 c_e)) - ||G - Y||^2 / (2 ridge)      for every Y with ||Y||_2 <= strength.

The best Y has the singular values of G, clipped at the strength. Let the columns of U and V be nearly orthonormal,
such as singular vectors of G above the strength, with projections P and R on their spans, and H = (1 - P) G (1 - R). If
D is diagonal with entries up to the strength, then Y = U D V' + (H clipped at the strength) is feasible, up to the
lengths of U and V, as ranges are orthogonal. If tau bounds ||H||_2, clipping loses at most theta = (1 - strength /
tau)_+^2 of each squared singular value, so that

    ||G - Y||^2 <= ||G - U D V'||^2 - (1 - theta) ||H||^2.

Errors of U and V, and values above the strength that they miss, enter by their squares. tau bounds ||G (1 - V V')||_2,
which is at least ||H||_2: by a Cholesky factorisation (Rump, BIT, 2006) or, for many users and items, with a
probability over random starts. With features, for A and B the columns of ids and features of users and of items, A' G B
stands in place of G, as <G, A W B'> = <A' G B, W>.

At r_e = c_e (1 - W_e) of the minimum all is equal, so the gap is of second order in the error of W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyr2k
from scipy.linalg.lapack import dpotrf

from mopn.implicit.pairs import Pairs
from mopn.solvers.numerics.precision import EPS, NULL, TINY, proven_lower
from mopn.solvers.sphere.probable import chebyshev_bound, least_component, steps_for
from mopn.solvers.tools.budgets import FailureBudget
from mopn.solvers.tools.decorators import cached_property
from mopn.solvers.tools.display import Displayed

# Users or items, whichever are fewer, up to which bounds are deterministic: a factorisation then takes some 3 s.
MAX_FACTORIZED = 6000
# Searches for singular vectors that are missed, at most; bounds hold without them.
_MAX_SEARCHES = 30
# Random directions of a search, and its steps: a product of several directions takes little longer than of one.
_SEARCH_DIRECTIONS = 8
_SEARCH_STEPS = 16
# Part of the gap that the bound of the norm may add.
_PART_OF_GAP = 0.1
# Excess of the norm bound over the strength that is tried first, at least and at most.
_LEAST_EXCESS = 1e-9
_MOST_EXCESS = 0.1
# Vectors are kept from this number of excesses below the strength: dropped, they would lift the rest above it.
_KEPT_EXCESSES = 10.0
# Factor of the excess after attempts without success.
_GROWTH = 3.0
# The least excess of bounds by random starts: the steps grow with its inverse root.
_LEAST_PROBABLE_EXCESS = 1e-3
# Random starts of a bound with a probability; see mopn.solvers.sphere.probable.
_STARTS = 2
# Scales of the residuals that are compared.
_SCALES = np.linspace(0.8, 1.05, 101)


@dataclass(frozen=True, repr=False)
class ImplicitDual(Displayed):
    """The residuals that prove a lower bound for implicit feedback: ``result.dual``.

    Attributes
    ----------
    lower : float
        The lower bound, rounding errors included: at most the sum of r - r^2 / (2 c) over the observed pairs, minus
        the sum of max(sigma_j - strength, 0)^2 / (2 unobserved_weight) over the singular values of ``matrix``, or with
        features of A' ``matrix`` B, for A and B the columns of ids and features.
    bound : float
        Proven bound of these singular values after clipping at the strength; a little above the strength.
    matrix : sparse array of shape (n_users, n_items)
        The numbers r of the observed pairs.
    vectors : ndarray of shape (n, k)
        Right vectors of this matrix, or left ones if it has fewer rows than columns, for the singular values above the
        strength, as found.
    """

    lower: float
    bound: float
    matrix: sparse.csr_array = field(compare=False)
    vectors: np.ndarray = field(compare=False)

    def _entries(self) -> dict[str, str]:
        return {"lower": f"{self.lower:.6g}", "bound": f"{self.bound:.6g}", "matrix": str(self.matrix.shape)}


class Residuals:
    """The residuals r of the observed pairs, as a matrix G with at least as many rows as columns; see the file head."""

    def __init__(self, pairs: Pairs, r: Any) -> None:
        self.pairs = pairs
        self.r = r
        self.by_items = pairs.shape[0] < pairs.shape[1]
        self.n_columns = min(pairs.shape)
        self.n_rows = max(pairs.shape)
        self.sum, self.half_squares, self.moduli, square = pairs.moments(r).tolist()
        self.length = math.sqrt(square) * (1.0 + (pairs.number + 8) * EPS)

    def times(self, X: np.ndarray) -> np.ndarray:
        """Return G X."""
        return self.pairs.times(self.r, X, by_items=self.by_items)

    def transposed_times(self, Y: np.ndarray) -> np.ndarray:
        """Return G'Y."""
        return self.pairs.times(self.r, Y, by_items=not self.by_items)

    @property
    def is_small(self) -> bool:
        """Whether the bound is by a factorisation."""
        return self.n_columns <= MAX_FACTORIZED

    @cached_property
    def gram(self) -> np.ndarray:
        """The lower triangle of G'G, in Fortran's order."""
        return self.pairs.gram(self.r, by_items=self.by_items)


def estimated_lower(matrix: Residuals, values: np.ndarray, strength: float, ridge: float) -> LowerEstimate:
    """Return about the best lower bound over multiples of residuals, given the largest singular values."""
    clipped = np.maximum(_SCALES[:, None] * values - strength, 0.0)
    bounds = _SCALES * matrix.sum - _SCALES**2 * matrix.half_squares - np.sum(clipped**2, axis=1) / (2.0 * ridge)
    best = int(np.argmax(bounds))
    return LowerEstimate(float(bounds[best]), float(_SCALES[best]))


@dataclass(frozen=True)
class LowerEstimate:
    """A lower bound of the minimum without a proof, and the scale of the residuals that it is for."""

    lower: float
    scale: float


def proven_dual(
    pairs: Pairs,
    r: Any,
    guess: np.ndarray,
    strength: float,
    ridge: float,
    *,
    value: float,
    goal: float,
    failure_budget: FailureBudget,
    seed: int | None = None,
) -> ImplicitDual:
    """Return a proven lower bound, by about the best multiple of the residuals r.

    Parameters
    ----------
    guess : ndarray of shape (n, k)
        Columns near the singular vectors of G above the strength, on the side with fewer rows; the bound holds for any.
    value : float
        The objective.
    goal : float
        The gap that is wanted, absolute: the bound of the norm may add a tenth of it, or of the gap if that is more.
    failure_budget : FailureBudget
        From which a bound by random starts spends.
    seed : int, optional
        Of random starts.
    """
    matrix = Residuals(pairs, r)
    vectors = near_singular_vectors(matrix, guess)
    estimate = estimated_lower(matrix, vectors.values, strength, ridge)
    allowance = _PART_OF_GAP * max(goal, value - estimate.lower)
    scale = estimate.scale
    if scale != 1.0:
        r = pairs.scaled(r, scale)
        matrix = Residuals(pairs, r)
        vectors = SingularVectors(vectors.V, scale * vectors.images)
    # Where (1 - strength / tau)^2 ||G||^2 / (2 ridge) is the allowance.
    excess = math.sqrt(2.0 * ridge * allowance) / max(matrix.length, TINY)
    excess = min(max(excess, _LEAST_EXCESS), _MOST_EXCESS)
    rest = _rest_of_matrix(matrix, vectors, strength, excess)
    bound = rest.bound(excess, failure_budget, seed)
    square = rest.squared_distance(bound)
    # An error of the matrix, from products with features, changes distances by its length at most.
    matrix_error = pairs.error(r)
    if matrix_error:
        square = (math.sqrt(square) + matrix_error) ** 2 * (1.0 + 8.0 * EPS)
    of_norms = square / (2.0 * ridge) * (1.0 + 8.0 * EPS)
    sums = matrix.sum - matrix.half_squares
    error = (pairs.number + 8) * EPS * (matrix.moduli + matrix.half_squares) + pairs.number * TINY
    lower = float(proven_lower((sums - error - of_norms) - 4.0 * EPS * (abs(sums) + error + of_norms)))
    return ImplicitDual(lower, bound, pairs.matrix(r), rest.V)


def outside(basis: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (n, q) of the rest of directions after projection onto an orthonormal basis.

    Directions with the largest rest come last; directions without a rest are dropped.
    """
    # The second projection removes the rounding errors of the first.
    for _ in range(2):
        least = NULL * np.max(np.einsum("ij,ij->j", directions, directions), initial=TINY)
        directions = directions - basis @ (basis.T @ directions)
        squares, turn = np.linalg.eigh(directions.T @ directions)
        kept = squares > least
        directions = directions @ (turn[:, kept] / np.sqrt(squares[kept]))
    return directions


def krylov_space(matrix: Residuals, basis: np.ndarray, start: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal directions outside a basis, and their images by G: the start times powers of G'G.

    It is a block Lanczos method with full orthogonalisation.
    """
    n, k = basis.shape
    known = np.empty((n, min(k + steps * start.shape[1], n)), order="F")
    known[:, :k] = basis
    images = np.empty((matrix.n_rows, known.shape[1] - k), order="F")
    size = k
    following = start
    for later in reversed(range(steps)):
        room = known.shape[1] - size
        if not room:
            break
        block = outside(known[:, :size], following)[:, -room:]
        image = matrix.times(block)
        end = size + block.shape[1]
        known[:, size:end] = block
        images[:, size - k : end - k] = image
        size = end
        if later:
            following = matrix.transposed_times(image)
    return known[:, k:size], images[:, : size - k]


class SingularVectors(NamedTuple):
    """Orthonormal right vectors V (n, k) near singular vectors of G, and their images G V."""

    V: np.ndarray
    images: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """Lengths of the images, near singular values."""
        return np.linalg.norm(self.images, axis=0)

    def turned(self) -> SingularVectors:
        """Return vectors of the same span with orthogonal images, the largest first."""
        turn = np.linalg.eigh(self.images.T @ self.images)[1][:, ::-1]
        return SingularVectors(self.V @ turn, self.images @ turn)

    def above(self, least: float) -> SingularVectors:
        """Return the vectors with values above ``least``."""
        kept = self.values > least
        return SingularVectors(self.V[:, kept], self.images[:, kept])

    def joined(self, others: SingularVectors) -> SingularVectors:
        """Return these vectors and others."""
        return SingularVectors(np.hstack([self.V, others.V]), np.hstack([self.images, others.images]))


def near_singular_vectors(matrix: Residuals, guess: np.ndarray) -> SingularVectors:
    """Return vectors near singular vectors of G by a step of the power method."""
    V = np.linalg.qr(guess)[0]
    V = np.linalg.qr(matrix.transposed_times(matrix.times(V)))[0]
    return SingularVectors(V, matrix.times(V)).turned()


def _rest_of_matrix(matrix: Residuals, vectors: SingularVectors, strength: float, excess: float) -> _RestOfMatrix:
    """Return the rest of G outside vectors, to which searches add what they find above the strength."""
    least_kept = strength * max(1.0 - _KEPT_EXCESSES * excess, 0.5)
    vectors = vectors.above(least_kept)
    n, known = vectors.V.shape
    rng = np.random.default_rng(0)
    start = rng.standard_normal((n, _SEARCH_DIRECTIONS))
    for _ in range(_MAX_SEARCHES):
        found = SingularVectors(*krylov_space(matrix, vectors.V, start, _SEARCH_STEPS)).turned()
        missed = found.above(strength * (1.0 + 0.5 * excess))
        number = missed.V.shape[1]
        vectors = vectors.joined(missed)
        # With many more values above the strength than units the point is far from the minimum.
        if not number or len(vectors.values) > 2 * known + _SEARCH_DIRECTIONS * _SEARCH_STEPS:
            break
        # The next search goes on from the vectors that come next, and from as many random ones.
        half = _SEARCH_DIRECTIONS // 2
        start = np.hstack([found.V[:, number : number + half], rng.standard_normal((n, half)) / math.sqrt(n)])
    if len(vectors.values) > known:
        vectors = near_singular_vectors(matrix, vectors.V).above(least_kept)
    return _RestOfMatrix(matrix, vectors, strength)


class _RestOfMatrix:
    """The matrix G (1 - V V'), for vectors V near the singular vectors of G above the strength."""

    def __init__(self, matrix: Residuals, vectors: SingularVectors, strength: float) -> None:
        self.matrix = matrix
        self.strength = strength
        self.V = np.ascontiguousarray(vectors.V)
        # The image G V.
        self.L = np.ascontiguousarray(vectors.images)
        # The length of the moduli of all terms: rounding errors are relative to its square.
        self.size = matrix.length * (1.0 + float(np.vdot(self.V, self.V))) * (1.0 + 8.0 * EPS)
        # Roundings on the way to an entry of a product, at most.
        self.roundings = 2 * (matrix.n_rows + matrix.n_columns) + 4 * self.V.shape[1] + 64

    def bound(self, excess: float, failure_budget: FailureBudget, seed: int | None) -> float:
        """Return a proven bound of ||G (1 - V V')||_2, about ``excess`` above the strength, or more if it has to be."""
        if not self.matrix.is_small:
            return self._probable_bound(excess, failure_budget, seed)
        bound = self._factorized_bound(excess)
        while bound == math.inf:
            excess *= _GROWTH
            bound = self._factorized_bound(excess)
        return bound

    @property
    def _error(self) -> float:
        """Bound of the rounding errors of the matrix of the squares, in the spectral norm."""
        return self.roundings * EPS * self.size * self.size

    def _factorized_bound(self, excess: float) -> float:
        """Return a bound of ||G (1 - V V')||_2 that is about ``excess`` above the strength, or inf."""
        K = np.array(self.matrix.gram, order="F")
        if self.V.shape[1]:
            X = self.matrix.transposed_times(self.L) - 0.5 * (self.V @ (self.L.T @ self.L))
            K = dsyr2k(-1.0, X, self.V, beta=1.0, c=K, lower=1, overwrite_c=1)
        n = len(K)
        trace = float(np.abs(np.diag(K)).sum()) * (1.0 + n * EPS)
        square = max((self.strength * (1.0 + excess)) ** 2, 2.0 * self._error)
        if square >= trace:
            return _root_above(trace + n * self._error)
        np.negative(K, out=K)
        K[np.diag_indices(n)] += square
        if dpotrf(K, lower=1, overwrite_a=1, clean=0)[1] != 0:
            return math.inf
        # (n + 2) eps times the trace of the factorised matrix, and the rounding of its diagonal.
        of_factor = (n + 4) * EPS * (n * square + trace)
        return _root_above(square + self._error + of_factor)

    def _probable_bound(self, excess: float, failure_budget: FailureBudget, seed: int | None) -> float:
        """Return a bound of ||G (1 - V V')||_2 that holds with the probability of the budget, over random starts."""
        failure = failure_budget.next
        rng = failure_budget.draw(seed)
        n = self.matrix.n_columns
        steps = steps_for(n, 2.0 * max(excess, _LEAST_PROBABLE_EXCESS), failure)
        starts = rng.standard_normal((_STARTS, n))
        scale = np.full(_STARTS, self.strength * self.strength)
        found = chebyshev_bound(self._squared_rows, starts, scale, steps, least_component(failure))
        return _root_above(float(np.max(found)) + self._error * steps)

    def _squared_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the products of (1 - V V') G'G (1 - V V') with vectors in rows."""
        X = np.ascontiguousarray(rows.T)
        image = self.matrix.times(X) - self.L @ (self.V.T @ X)
        product = self.matrix.transposed_times(image) - self.V @ (self.L.T @ image)
        return np.ascontiguousarray(product.T)

    def squared_distance(self, bound: float) -> float:
        """Return ||G - Y||^2, rounded up, for the feasible Y of the file's head; ``bound`` is tau."""
        G = self.matrix
        length = G.length
        theta = max(1.0 - self.strength / max(bound, self.strength) * (1.0 - 4.0 * EPS), 0.0) ** 2
        if not self.V.shape[1]:
            return theta * length * length * (1.0 + 8.0 * EPS)
        values = np.linalg.norm(self.L, axis=0)
        U = self.L / values
        V = self.V
        skew = max(_skewness(U), _skewness(V))
        clipped = np.minimum(values, self.strength * (1.0 - 2.0 * skew))
        left = G.transposed_times(U)
        right = G.times(V)
        inner = float(np.einsum("ij,ij->j", left, V) @ clipped)
        of_clipped = float(np.einsum("ij,ij->", (U.T @ U) * clipped, (V.T @ V) * clipped))
        of_left = float(np.vdot(left, left))
        of_right = float(np.vdot(right, right))
        product = U.T @ right
        of_both = float(np.vdot(product, product))
        total = theta * length * length - 2.0 * inner + of_clipped + (1.0 - theta) * (of_left + of_right - of_both)
        sizes = length * length + of_left + of_right + of_both + of_clipped
        k = self.V.shape[1]
        error = ((2 * self.roundings + k * k + 64) * k * EPS + 4.0 * skew) * sizes
        return max(total + error, 0.0)


def _skewness(U: np.ndarray) -> float:
    """Bound ||U'U - 1||_2 from above, rounding errors included."""
    k = U.shape[1]
    return float(np.linalg.norm(U.T @ U - np.eye(k))) + 2.0 * k * (len(U) + 8) * EPS


def _root_above(square: float) -> float:
    return math.sqrt(square) * (1.0 + 4.0 * EPS)
