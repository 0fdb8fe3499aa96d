"""Features of users and items: vectors of ids and features, half-steps by conjugate gradients, residuals in both."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.features import checked_features
from mopn.implicit.pairs import Lines, Pairs
from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.tools.decorators import cached_property

# Part of its residual to which a half-step with features is solved: sweeps repeat it, and further steps gain less.
_HALF_STEP_TOL = 0.1
# Conjugate gradient steps of a half-step, at most: each costs as much as a half-step of ids.
_MOST_STEPS = 8


class Side:
    """The users, or the items: n ids, each with a column of its own, and p columns of features F, if any.

    A factor has n rows of the ids, then p rows of the features. The vector of a user is the row of the user's id plus
    the features times the rows of the features.
    """

    def __init__(self, n: int, features: Any, name: str) -> None:
        self.n = n
        self.features = None if features is None else checked_features(features, n, name)

    @property
    def size(self) -> int:
        """The number n + p of rows of a factor."""
        return self.n + (0 if self.features is None else self.features.shape[1])

    def vectors(self, factor: np.ndarray) -> np.ndarray:
        """Return the vectors (n, k) of all ids."""
        if self.features is None:
            return factor
        return factor[: self.n] + self.features @ factor[self.n :]

    def joined(self, matrix: sparse.csr_array) -> sparse.csr_array:
        """Return a matrix (n, m) and, below it, its products (p, m) with the features."""
        if self.features is None:
            return matrix
        products = sparse.csr_array(self.features.T @ matrix)
        return sparse.csr_array(sparse.vstack([matrix, products]))

    def sizes(self, factor: np.ndarray) -> np.ndarray:
        """Return sums of the moduli (n,) of what adds up to the vectors, by the lengths of rows."""
        lengths = np.linalg.norm(factor, axis=1)
        if self.features is None:
            return lengths
        return lengths[: self.n] + abs(self.features) @ lengths[self.n :]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths (n,) of the rows of all columns, those of ids included."""
        if self.features is None:
            return np.ones(self.n)
        return np.sqrt(1.0 + _sums_of_squares(self.features, axis=1))

    @cached_property
    def column_squares(self) -> np.ndarray:
        """Squared lengths (p,) of the columns of features."""
        return _sums_of_squares(self.features, axis=0)

    @property
    def roundings(self) -> int:
        """Roundings, at most, on the way to an entry of a product with the columns, or with the rows."""
        return 0 if self.features is None else max(self.features.shape) + 1

    def minimized(
        self,
        start: np.ndarray,
        vectors: np.ndarray,
        lines: Lines,
        confidences: np.ndarray,
        common: np.ndarray,
        *,
        single: bool,
    ) -> np.ndarray:
        """Return a better factor, given the vectors of the other side; without features the best one.

        The ids are eliminated: given the factor V of the features, their best rows A(V) are solved one by one. The
        gradient of the remaining objective is (V - F' A(V)) times ``common``, in whose inner product the map has
        eigenvalues from 1 to 1 + ||F||^2.
        """
        arguments = lines, vectors, confidences, common
        if self.features is None:
            return factor_of_lines(*arguments, single=single)
        F = self.features
        V = start[self.n :]
        ids = factor_of_lines(*arguments, single=single, offsets=F @ V)
        scales = (1.0 + self.column_squares)[:, None]
        R = F.T @ ids - V
        Z = R / scales
        direction = Z
        square = float(np.vdot(R @ common, Z))
        least = _HALF_STEP_TOL**2 * square
        for _ in range(_MOST_STEPS):
            if not square > max(least, TINY):
                break
            change = factor_of_lines(*arguments, single=single, offsets=F @ direction, target=0.0)
            image = direction - F.T @ change
            length = square / float(np.vdot(direction @ common, image))
            V = V + length * direction
            ids = ids + length * change
            R = R - length * image
            Z = R / scales
            following = float(np.vdot(R @ common, Z))
            direction = Z + (following / square) * direction
            square = following
        return np.vstack([ids, V])


class Sides:
    """Users and items, with their features."""

    def __init__(self, shape: tuple[int, int], user_features: Any = None, item_features: Any = None) -> None:
        self.users = Side(shape[0], user_features, "user_features")
        self.items = Side(shape[1], item_features, "item_features")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W: ids and features of users, and of items."""
        return self.users.size, self.items.size

    @property
    def are_plain(self) -> bool:
        """Whether there are no features."""
        return self.users.features is None and self.items.features is None

    def joined(self, matrix: sparse.csr_array) -> sparse.csr_array:
        """Return A' G B for a matrix G of users and items, and A and B the columns of ids and features."""
        if self.are_plain:
            return matrix
        by_users = self.users.joined(matrix)
        both = sparse.csr_array(self.items.joined(sparse.csr_array(by_users.T)).T)
        both.sort_indices()
        return both

    def error(self, pairs: Pairs, r: np.ndarray) -> float:
        """Bound the rounding errors of A' G B in the Frobenius norm, for residuals r."""
        if self.are_plain:
            return 0.0
        lines = pairs.users
        sizes = self.users.lengths[lines.line_of_entry] * self.items.lengths[lines.partners]
        total = float(np.abs(r) @ sizes)
        roundings = self.users.roundings + self.items.roundings + 8
        return roundings * EPS * total * (1.0 + (len(r) + 64) * EPS) + TINY * (len(r) + 1) * sum(self.shape)


def _sums_of_squares(features: Any, axis: int) -> np.ndarray:
    squares = features.multiply(features) if sparse.issparse(features) else features * features
    return np.asarray(squares.sum(axis=axis)).ravel()


def factor_of_lines(
    lines: Lines,
    vectors: np.ndarray,
    confidences: np.ndarray,
    common: np.ndarray,
    *,
    single: bool,
    offsets: np.ndarray | None = None,
    target: float = 1.0,
) -> np.ndarray:
    """Return the rows a (n, k) that minimise sum c/2 (<a + z, b> - target)^2 + <a, common a>/2 each.

    The sum is over the vectors b of the partners of a line; z are the ``offsets`` (n, k), 0 for None.
    """
    from mopn.compiled.alternating import half_step

    k = vectors.shape[1]
    dtype = np.float32 if single else np.float64
    found = np.zeros((len(lines), k), dtype)
    B = np.ascontiguousarray(vectors, dtype)
    Z = np.zeros((0, k), dtype) if offsets is None else np.ascontiguousarray(offsets, dtype)
    parts = lines.starts, lines.partners, confidences.astype(dtype, copy=False), common.astype(dtype)
    lines.in_blocks(half_step, found, B, *parts, Z, target)
    return found
