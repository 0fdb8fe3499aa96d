"""The convex problem of implicit feedback, as alternating least squares minimise it: value, gradient, proven gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds

from mopn.core.regularizers import Ratio
from mopn.data.validation import check_input, check_start_size, finite_numbers
from mopn.implicit.proof import ImplicitDual, Residuals, estimated_lower, krylov_space, outside, proven_dual
from mopn.implicit.sides import pairs_with_features
from mopn.solvers.alternating import AlternatingLeastSquares
from mopn.solvers.interface import Alternating, Estimate, Measure
from mopn.solvers.numerics.precision import EPS, NULL, TINY
from mopn.solvers.result import Result
from mopn.solvers.tools.blas_threads import in_threads, limited_threads
from mopn.solvers.tools.budgets import FailureBudget
from mopn.solvers.tools.checks import check_positive, shown
from mopn.solvers.tools.decorators import cached_property, quiet
from mopn.solvers.tools.display import Displayed

# Factors are in single precision only if confidences are at most this multiple of the strength and of each other.
_LARGEST_SINGLE = 1e4
# Units below this part of the largest leave: they are rounding errors of single precision, or on the way to 0.
_NULL_UNIT = 1e-7
# Steps of a search for new units.
_SEARCH_STEPS = 3
# Rows of a factor that are decomposed at a time: copies of them stay small, and threads share the blocks.
_ROWS_PER_BLOCK = 2**14
# Gap that a certificate is made for, at least, relative.
_CERTIFIED = 1e-5


class Factors(NamedTuple):
    """A point: the factors P (n_users + p, k) and Q (n_items + q, k) of W = P Q', with rows of the features last."""

    P: np.ndarray
    Q: np.ndarray

    @property
    def n_units(self) -> int:
        """The number k of units."""
        return self.P.shape[1]


@dataclass(frozen=True)
class AtFactors:
    """The objective at a point, and the residuals r = c (1 - W) of the observed pairs."""

    value: float
    residuals: Any


class ImplicitProblem(Displayed, Alternating):
    r"""Minimise :math:`\sum_{ui} \frac{c_{ui}}{2} (W_{ui} - 1)^2 + \frac{\rho}{2} \|W\|_F^2 + \lambda \|W\|_*`.

    The sum is over the observed pairs; W has a number for each user and item. In factors W = P Q' it is the problem of
    alternating least squares for implicit feedback, as :math:`\lambda \|W\|_*` is the least
    :math:`\frac{\lambda}{2} (\|P\|_F^2 + \|Q\|_F^2)` (Hu, Koren and Volinsky, Collaborative filtering for implicit
    feedback datasets, ICDM 2008). It is convex in W, so a gap to the best matrix of any rank can be proven.

    Parameters
    ----------
    interactions : sparse matrix of shape (n_users, n_items)
        The confidence c of each observed pair, above its weight as an unobserved one; of any SciPy format. Duplicates
        are summed, explicit zeros are not observed.
    strength : float or Ratio
        :math:`\lambda`, above 0; a :class:`mopn.Ratio` is relative to the largest singular value of the
        confidences, from which on W = 0 is best.
    unobserved_weight : float, default 0.3
        :math:`\rho`, above 0: the weight of every pair as a zero.
    user_features : array-like or sparse matrix of shape (n_users, p), optional
        Features of users, next to a column for each user. W then has n_users + p rows, the last p for features, and
        the prediction of a pair is a' W b, for a and b the columns of the user and of the item. Scale features down to
        columns below 1, the length of an id's column: the sweeps to a gap grow with the squares of these lengths.
    item_features : array-like or sparse matrix of shape (n_items, q), optional
        Features of items, likewise.

    Raises
    ------
    TypeError
        For interactions that are not sparse, or not real; for features that are not real.
    ValueError
        For NaN, infinity, negative interactions, or no users or items; for features with another number of rows; for
        options out of range.

    Notes
    -----
    Results have ``P`` (n_users + p, k) and ``Q`` (n_items + q, k), balanced, in the order of decreasing singular values
    of W; the number k is found. ``dual`` is a :class:`mopn.implicit.proof.ImplicitDual`. Starts are earlier results and
    pairs ``(P, Q)``.

    It is ``NetworkProblem(kernel="anova", loss="squared", norm="l1", strength=strength / 2, ridge=unobserved_weight)``
    on the one-hot columns of users and items and their features, all targets 1 and ``sample_weight=c``.

    Gaps are deterministic up to 6,000 users or items, whichever are fewer; beyond they hold with a probability of at
    least 1 - 1e-9.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from scipy import sparse
    >>> likes = sparse.csr_array((np.random.default_rng(0).random((50, 20)) < 0.3).astype(float))
    >>> problem = mopn.ImplicitProblem(likes, mopn.Ratio(0.2))
    >>> result = mopn.minimize(problem, tol=1e-4)
    >>> result.success, result.P.shape[0], result.Q.shape[0]
    (True, 50, 20)
    """

    oracles = frozenset({"alternating"})

    def __init__(
        self,
        interactions: Any,
        strength: Any,
        unobserved_weight: float = 0.3,
        *,
        user_features: Any = None,
        item_features: Any = None,
    ) -> None:
        self.pairs = pairs_with_features(interactions, user_features, item_features)
        self.unobserved_weight = check_positive(unobserved_weight, "unobserved_weight")
        check_input(self.unobserved_weight, "unobserved_weight")
        self.strength = self._strength(strength)
        check_input(self.strength, "strength")
        # The last point with a proof, and its dual point: runs often end there.
        self._last_proof: tuple[Any, Any] = None, None

    def _strength(self, strength: Any) -> float:
        if isinstance(strength, Ratio):
            return strength(self.largest_singular_value) or 1.0
        return check_positive(strength, "strength")

    @cached_property
    @limited_threads()
    @quiet()
    def largest_singular_value(self) -> float:
        """The largest singular value of the confidences, as found: the least strength whose solution is 0."""
        pairs = self.pairs
        no_units = self.start()
        # Without units the residuals are the confidences.
        matrix = Residuals(pairs, pairs.residuals(no_units.P, no_units.Q))
        if min(pairs.shape) == 1 or not pairs.number:
            return matrix.length
        forward = partial(_times_vector, matrix.times)
        backward = partial(_times_vector, matrix.transposed_times)
        shape = matrix.n_rows, matrix.n_columns
        operator = LinearOperator(shape, matvec=forward, rmatvec=backward, dtype=np.float64)
        start = np.ones(matrix.n_columns)
        return float(svds(operator, k=1, v0=start, return_singular_vectors=False)[0])

    def _entries(self) -> dict[str, str]:
        users, items = self.pairs.n_ids
        return {
            "users": str(users),
            "items": str(items),
            "pairs": str(self.pairs.number),
            "strength": f"{self.strength:.6g}",
            "unobserved_weight": f"{self.unobserved_weight:.6g}",
        }

    # -- points -----------------------------------------------------------------------------------------------------

    def start(self, start: Any = None) -> Factors:
        """Return a start: no units for None; factors of an earlier result, or given as a pair (P, Q)."""
        n_users, n_items = self.pairs.shape
        if start is None:
            return Factors(np.zeros((n_users, 0)), np.zeros((n_items, 0)))
        if isinstance(start, Result):
            start = start.get("P"), start.get("Q")
        if not (isinstance(start, tuple | list) and len(start) == 2):
            raise TypeError(f"start must be an earlier result or a pair (P, Q), got {shown(start)}")
        P = finite_numbers(start[0], "start: P")
        Q = finite_numbers(start[1], "start: Q")
        if P.ndim != 2 or P.shape[0] != n_users or Q.shape != (n_items, P.shape[1]):
            raise ValueError(
                f"start must be P of shape ({n_users}, k) and Q of shape ({n_items}, k), got {P.shape} and {Q.shape}"
            )
        check_start_size(P, "start: P")
        check_start_size(Q, "start: Q")
        return self.balanced(Factors(P, Q))

    def unpack(self, point: Factors) -> dict[str, Any]:
        """Return the flat point and its parts ``P`` and ``Q``."""
        flat = np.concatenate([point.P.ravel(), point.Q.ravel()])
        users = point.P.size
        return {"x": flat, "P": flat[:users].reshape(point.P.shape), "Q": flat[users:].reshape(point.Q.shape)}

    def balanced(self, point: Factors) -> Factors:
        """Return the factors of the same W with the least penalty, without units that are rounding errors."""
        left = _triangle(point.P)
        right = _triangle(point.Q)
        U, values, Vt = np.linalg.svd(left @ right.T, full_matrices=False)
        kept = values > NULL * values.max(initial=0.0)
        roots = np.sqrt(values[kept])
        # W V = P (right' V) and W'U = Q (left' U): no orthonormal factor of P or Q is formed.
        P = point.P @ (right.T @ Vt[kept].T / roots)
        Q = point.Q @ (left.T @ U[:, kept] / roots)
        return Factors(P, Q)

    # -- objective --------------------------------------------------------------------------------------------------

    def evaluate(self, point: Factors) -> AtFactors:
        """Return the objective, with the penalty as of the factors, and the residuals of the observed pairs."""
        residuals = self.pairs.residuals(point.P, point.Q)
        of_fit = float(self.pairs.moments(residuals)[1])
        of_ridge = 0.5 * self.unobserved_weight * float(np.vdot(point.P.T @ point.P, point.Q.T @ point.Q))
        of_penalty = 0.5 * self.strength * float(np.vdot(point.P, point.P) + np.vdot(point.Q, point.Q))
        return AtFactors(of_fit + of_ridge + of_penalty, residuals)

    @quiet()
    def value(self, P: Any, Q: Any) -> float:
        """Return the objective at W = P Q', with the nuclear norm of W."""
        with limited_threads():
            return self.evaluate(self.start((P, Q))).value

    @quiet()
    def gradient(self, P: Any, Q: Any) -> tuple[Any, float]:
        """Return the gradient of the smooth part at W = P Q': a sparse matrix G and a factor, for G + factor * W.

        At the minimum it is minus strength times U V' on the singular vectors of W, and its other singular values are
        at most the strength. With features G has rows and columns of these, too.
        """
        with limited_threads():
            residuals = self.evaluate(self.start((P, Q))).residuals
        return -self.pairs.seen(residuals), self.unobserved_weight

    def rounding(self, point: Factors, at: AtFactors) -> float:
        """Bound how far the exact objective of the point may be above its computed one."""
        P, Q = point
        k = point.n_units
        users = np.linalg.norm(P, axis=1)
        items = np.linalg.norm(Q, axis=1)
        of_products = self.pairs.rounding(at.residuals, users, items, (k + 8) * EPS)
        lengths = float(np.vdot(users, users))
        other_lengths = float(np.vdot(items, items))
        # The sum of the moduli of all terms is at most this.
        terms = at.value + 0.5 * self.unobserved_weight * lengths * other_lengths
        n_terms = self.pairs.number + sum(self.pairs.shape) * max(k, 1) + k * k + 64
        return of_products * (1.0 + n_terms * EPS) + n_terms * EPS * terms

    # -- proofs -----------------------------------------------------------------------------------------------------

    @quiet()
    def measure(self, point: Factors) -> Measure:
        """Objective and proven bounds, from scratch."""
        at = self.evaluate(point)
        budget = FailureBudget()
        proven_point, dual = self._last_proof
        if point is not proven_point:
            dual = self.dual(point, at, _CERTIFIED * at.value, budget)
        return Measure(
            at.value,
            lower=dual.lower,
            rounding=self.rounding(point, at),
            failure=budget.failure,
            seed=budget.seed,
            dual=dual,
        )

    def estimate(self, point: Factors, at: AtFactors, probes: int | np.ndarray, least: float, seed: int) -> Estimate:
        """Estimate the lower bound at a point, and find units to add, the best first.

        ``probes`` are directions to begin with, or a number of random ones. A unit is a direction whose slope exceeds
        the strength and which adds more than ``least`` to the gap.
        """
        matrix = Residuals(self.pairs, at.residuals)
        factor = self._on_short_side(point)
        n = len(factor)
        basis = outside(np.zeros((n, 0)), factor)
        if not isinstance(probes, np.ndarray):
            probes = np.random.default_rng(seed).standard_normal((n, probes))
        directions, images = krylov_space(matrix, basis, probes, _SEARCH_STEPS)
        within = images.T @ images
        values = _joint_values(matrix.times(basis), images, within)
        bound = estimated_lower(matrix, values, self.strength, self.unobserved_weight)
        squares, rotation = np.linalg.eigh(within)
        slopes = np.sqrt(np.maximum(squares[::-1], 0.0))
        rotation = rotation[:, ::-1]
        new = slopes > self.strength + math.sqrt(2.0 * self.unobserved_weight * least)
        new[probes.shape[1] :] = False
        long = images @ (rotation[:, new] / slopes[new])
        directions = directions @ rotation
        short = directions[:, new]
        P, Q = (short, long) if matrix.by_items else (long, short)
        # Where each unit alone is best, by a slope and a curvature.
        weights = (slopes[new] - self.strength) / (self.unobserved_weight + self.pairs.curvatures(P, Q))
        roots = np.sqrt(weights)
        return Estimate(bound.lower, Factors(P * roots, Q * roots), directions)

    def _on_short_side(self, point: Factors) -> np.ndarray:
        """Return the factor of users or items, whichever are fewer."""
        return point.P if self.pairs.shape[0] < self.pairs.shape[1] else point.Q

    def dual(
        self,
        point: Factors,
        at: AtFactors,
        goal: float,
        failure_budget: FailureBudget,
        seed: int | None = None,
    ) -> ImplicitDual:
        """Return the proven lower bound by the residuals at a point; see :mod:`mopn.implicit.proof`."""
        dual = proven_dual(
            self.pairs,
            at.residuals,
            self._on_short_side(point),
            self.strength,
            self.unobserved_weight,
            value=at.value,
            goal=goal,
            failure_budget=failure_budget,
            seed=seed,
        )
        self._last_proof = point, dual
        return dual

    # -- steps ------------------------------------------------------------------------------------------------------

    @property
    def allows_single(self) -> bool:
        """Whether half-steps in single precision are accurate enough to begin with."""
        least, most, _ = self.pairs.totals
        return most <= _LARGEST_SINGLE * min(least, self.unobserved_weight, self.strength)

    def with_units(self, point: Factors, new: Factors, most: int) -> Factors:
        """Return a point with the first ``most`` of the new units."""
        return Factors(np.hstack([point.P, new.P[:, :most]]), np.hstack([point.Q, new.Q[:, :most]]))

    def sweep(self, point: Factors, *, single: bool) -> Factors:
        """Improve P, then Q, by conjugate gradients of each row; return the balanced factors."""
        dtype = np.float32 if single else np.float64
        P = point.P.astype(dtype)
        Q = point.Q.astype(dtype)
        P, Q, _ = self._half_sweep(P, Q, by_items=False)
        Q, P, squares = self._half_sweep(Q, P, by_items=True)
        # Factors of the same W with the least penalty. The columns of P are orthogonal, of these squared lengths, so
        # that the squares of the singular values of W are the eigenvalues of a small matrix.
        lengths = np.sqrt(squares)
        values, turn = np.linalg.eigh(lengths[:, None] * _gram(Q) * lengths)
        kept = values > _NULL_UNIT**2 * values.max(initial=0.0)
        turn = turn[:, kept][:, ::-1]
        roots = values[kept][::-1] ** 0.25
        of_users = turn * roots / np.maximum(lengths, TINY)[:, None]
        of_items = turn / roots * lengths[:, None]
        return Factors(_product(P, of_users).astype(np.float64), _product(Q, of_items).astype(np.float64))

    def _half_sweep(
        self, start: np.ndarray, other: np.ndarray, *, by_items: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a better factor and the other one, turned alike so that the columns of the other are orthogonal.

        The squared lengths of these columns come last. The terms of unobserved pairs and of the penalty, <a, (ridge
        other'other + strength) a> for a row a, are then sums of squares; rows scaled by their roots need fewer steps.
        """
        squares, turn = np.linalg.eigh(_gram(other))
        squares = np.maximum(squares, 0.0)
        roots = np.sqrt(self.unobserved_weight * squares + self.strength)
        scaled_start = _product(start, turn * roots)
        scaled_other = _product(other, turn / roots)
        found = self.pairs.improved(scaled_start, scaled_other, by_items=by_items)
        found /= roots.astype(start.dtype)
        scaled_other *= roots.astype(start.dtype)
        return found, scaled_other, squares

    def default_solver(self) -> AlternatingLeastSquares:
        """Return the solver that :func:`mopn.minimize` takes by default."""
        return AlternatingLeastSquares()


def _joint_values(first: np.ndarray, second: np.ndarray, squared_second: np.ndarray) -> np.ndarray:
    """Return the singular values of the columns of two matrices, the second one given with its square, too."""
    across = first.T @ second
    squares = np.linalg.eigvalsh(np.block([[first.T @ first, across], [across.T, squared_second]]))
    return np.sqrt(np.maximum(squares, 0.0))


def _blocks(A: np.ndarray) -> list[slice]:
    """Return the rows of a factor in blocks, which threads share."""
    return [slice(first, first + _ROWS_PER_BLOCK) for first in range(0, len(A), _ROWS_PER_BLOCK)]


def _triangle(A: np.ndarray) -> np.ndarray:
    """Return the factor R of A = QR, by blocks of rows, as copies of a large A need much memory."""
    triangles = in_threads(lambda rows: np.linalg.qr(A[rows], mode="r"), _blocks(A))
    triangle: Any = np.linalg.qr(np.vstack([np.zeros((0, A.shape[1])), *triangles]), mode="r")
    return triangle


def _gram(A: np.ndarray) -> np.ndarray:
    """Return A'A, in double precision."""
    found = np.zeros((A.shape[1], A.shape[1]))
    for part in in_threads(lambda rows: _squared(A[rows].astype(np.float64, copy=False)), _blocks(A)):
        found += part
    return found


def _squared(A: np.ndarray) -> np.ndarray:
    return A.T @ A


def _product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B for a matrix B of few rows, in the precision of A."""
    found = np.empty((len(A), B.shape[1]), A.dtype)
    B = B.astype(A.dtype)
    for _ in in_threads(lambda rows: np.matmul(A[rows], B, out=found[rows]), _blocks(A)):
        pass
    return found


def _times_vector(times: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    return times(x.reshape(-1, 1)).ravel()
