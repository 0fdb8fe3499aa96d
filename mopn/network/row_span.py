"""The span of the rows, in which a problem of more features than rows is solved: docs/mathematics.md, 5.9."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mopn.core.kernels import Kernel
from mopn.data.designs import Design
from mopn.data.rows import ArrayRows, Rows
from mopn.network.linear_term import LinearTerm
from mopn.network.point import Network, of_unit_length
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.decorators import quiet

# Features for every row from which the span pays. Its basis costs less than one round of the solver.
_LEAST_FEATURES_PER_ROW = 1.25
# Rows up to which it pays: beyond, its basis takes the time of many rounds.
_MOST_ROWS = 5000
# The least and the largest modulus in a row of X whose products neither underflow nor overflow.
_LEAST_MODULUS = 1e-140
_MOST_MODULUS = 1e140
# A basis with a larger error, relative to the lengths of rows and units, is not used.
_MOST_ERROR = 1e-6


@dataclass(frozen=True)
class RowSpan:
    """An orthonormal basis Q (d, r) of the span of the rows x_i, with coordinates R (n, r): X = R Q' up to rounding.

    Projections of x_i on units, and lengths of units, change by at most ``error`` when units are mapped, relative to
    the lengths of r_i and of the unit.
    """

    Q: np.ndarray
    R: np.ndarray
    error: float

    @classmethod
    def measured(cls, X: np.ndarray, Q: np.ndarray, R: np.ndarray) -> RowSpan:
        """Return the span for any Q and R, with the error that they are found to have."""
        return cls(Q, R, _error(X, Q, R))

    def inside(self, H: np.ndarray, constants: int) -> np.ndarray:
        """Return coordinates (k, q + r) of vectors (k, q + d) projected on the span, with q constants in front."""
        return np.hstack([H[:, :constants], H[:, constants:] @ self.Q])

    def outside(self, H: np.ndarray, constants: int) -> np.ndarray:
        """Return the vectors (k, q + d) that have these coordinates (k, q + r)."""
        return np.hstack([H[:, :constants], H[:, constants:] @ self.Q.T])


@limited_threads()
def row_span(X: np.ndarray) -> RowSpan | None:
    """Return the span of the rows of X (n, d), n < d; None for numbers too large or too small to bound its error."""
    sizes = np.abs(X).max(axis=1)
    used = sizes > 0
    if not used.any() or sizes[used].min() < _LEAST_MODULUS or sizes.max() > _MOST_MODULUS:
        return None
    Q, triangle = np.linalg.qr(X.T)
    span = RowSpan.measured(X, Q, np.ascontiguousarray(triangle.T))
    return span if span.error <= _MOST_ERROR else None


def _error(X: np.ndarray, Q: np.ndarray, R: np.ndarray) -> float:
    """Bound the error of a basis, as found: docs/mathematics.md, 5.9."""
    d, r = Q.shape
    lengths = np.linalg.norm(R, axis=1)
    residuals = np.linalg.norm(X - R @ Q.T, axis=1)
    used = lengths > 0
    if residuals[~used].any():
        return math.inf
    of_rows = float(np.max(residuals[used] / lengths[used], initial=0.0))
    of_basis = float(np.linalg.norm(Q.T @ Q - np.eye(r)))
    # Sums of r products in X - R Q' and in units of the span, of d products in Q' Q and in projections on the span.
    rounding = (2 * r + d + 12) * math.sqrt(r) * EPS + (d + 4) * r * EPS
    return (of_rows + of_basis + rounding) * (1.0 + d * EPS)


class InRowSpan:
    """The part of a network problem that knows the span of its rows.

    ``rows`` and ``linear_term`` are in coordinates of the span where there is one, as are networks; ``given_rows`` and
    ``given_linear_term``, and the units of results, are in the coordinates of the features.
    """

    kernel: Kernel
    rows: Rows
    linear_term: LinearTerm
    given_rows: Rows
    given_linear_term: LinearTerm
    span: RowSpan | None = None

    @quiet()
    def in_row_span(self) -> Self:
        """Return the same problem, solved in the span of the rows where that pays: where features are many more.

        Networks are the same functions, and gaps as proven. Units have no part outside of the span, which would add
        to the penalty alone. This holds for ``homogeneous`` only, and needs X in memory.
        """
        if self.span is not None or self.kernel.distinct or not _pays(self.rows):
            return self
        assert isinstance(self.rows, ArrayRows)
        base = self.rows.design.without_dummies
        span = row_span(_dense(base))
        if span is None:
            return self
        other = copy(self)
        other.span = span
        rows = self.rows.with_features(span.R)
        other._take(rows, self.linear_term.on(rows))
        return other

    def in_given_coordinates(self) -> Self:
        """Return the same problem in coordinates of the features."""
        if self.span is None:
            return self
        other = copy(self)
        other.span = None
        other._take(self.given_rows, self.given_linear_term)
        return other

    def _take(self, rows: Rows, linear_term: LinearTerm) -> None:
        raise NotImplementedError

    @property
    def dummies(self) -> int:
        return self.rows.shape[1] - self.rows.n_features

    @property
    def n_inputs(self) -> int:
        """Number of entries of a unit of results: dummies and features."""
        return self.given_rows.shape[1]

    def inside(self, basis: np.ndarray, linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return units and linear term of results in the coordinates of networks."""
        if self.span is None:
            return basis, linear
        return self.span.inside(basis, self.dummies), self.span.inside(linear, 1) if linear.size else linear

    def parts(self, network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return unit vectors, weights and linear term of a network as results have them, for the features."""
        if self.span is None:
            return network.basis, network.weights, network.linear
        basis, weights = of_unit_length(self.span.outside(network.basis, self.dummies), network.weights)
        linear = network.linear
        return basis, weights, self.span.outside(linear, 1) if linear.size else linear


def _pays(rows: Rows) -> bool:
    if rows.design is None:
        return False
    n = rows.shape[0]
    if n > _MOST_ROWS or rows.n_features < _LEAST_FEATURES_PER_ROW * n:
        return False
    # Products with the coordinates, of n entries a row, are to take less time than products with the rows.
    work, _ = rows.work
    return n * n <= work


def _dense(design: Design) -> np.ndarray:
    """Return X (n, d) as an array of float64."""
    matrix: Any = design.matrix()
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), np.float64)
