"""Features of users and items: pairs seen through ids and features, with half-steps by conjugate gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.features import checked_features
from mopn.data.interactions import checked_interactions
from mopn.implicit.pairs import STEPS, Lines, Pairs
from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.tools.decorators import cached_property

# Part of its residual to which a half-step with features is solved: without it fits take the same sweeps, and a fifth
# to a half more time.
_HALF_STEP_TOL = 0.1


class Side:
    """The users, or the items: n ids, each with a column of its own, and p columns of features F, if any.

    A factor has n rows of the ids, then p rows of the features. The vector of a user is the row of the user's id plus
    the features times the rows of the features.
    """

    def __init__(self, n: int, features: Any, name: str) -> None:
        self.n = n
        self.features: Any = None if features is None else checked_features(features, n, name)

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

    def sizes(self, lengths: np.ndarray) -> np.ndarray:
        """Return sums of the moduli (n,) of what adds up to the vectors, given the lengths of the factor's rows."""
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

    def improved(
        self, start: np.ndarray, vectors: np.ndarray, lines: Lines, common: np.ndarray, *, single: bool
    ) -> np.ndarray:
        """Return a better factor of ids and features, given the vectors of the other side.

        The ids are eliminated: given the factor V of the features, their best rows A(V) are solved one by one. The
        gradient of the remaining objective is (V - F' A(V)) times ``common``, in whose inner product the map has
        eigenvalues from 1 to 1 + ||F||^2.
        """
        F = self.features
        V = start[self.n :]
        ids = lines.half_step(vectors, common, F @ V, target=1.0, single=single)
        scales = (1.0 + self.column_squares)[:, None]
        R = F.T @ ids - V
        Z = R / scales
        direction = Z
        square = float(np.vdot(R @ common, Z))
        least = _HALF_STEP_TOL**2 * square
        for _ in range(STEPS):
            if not square > max(least, TINY):
                break
            change = lines.half_step(vectors, common, F @ direction, target=0.0, single=single)
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


class FeaturedPairs(Pairs):
    """Pairs seen through the columns A of users and B of items: <p, q> are entries of A P Q' B', G is A' G B."""

    def __init__(self, matrix: sparse.csr_array, user_features: Any = None, item_features: Any = None) -> None:
        super().__init__(matrix)
        self.user_side = Side(matrix.shape[0], user_features, "user_features")
        self.item_side = Side(matrix.shape[1], item_features, "item_features")
        self.shape = self.user_side.size, self.item_side.size
        self._seen: tuple[Any, Any] = None, None

    def vectors(self, P: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors A P of users and B Q of items."""
        return self.user_side.vectors(P), self.item_side.vectors(Q)

    def residuals(self, P: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """Return c (1 - <p, q>) of all pairs, by the vectors."""
        return self.users.residuals(*self.vectors(P, Q))

    def rounding(self, r: np.ndarray, users: np.ndarray, items: np.ndarray, relative: float) -> float:
        """Bound the rounding errors of the losses, given the lengths of the factors' rows."""
        relative = relative + (self.user_side.roundings + self.item_side.roundings) * EPS
        return self.users.rounding(r, self.user_side.sizes(users), self.item_side.sizes(items), relative)

    def seen(self, r: np.ndarray) -> sparse.csr_array:
        """Return A' G B for the matrix G of r."""
        by_users = self.user_side.joined(self.matrix(r))
        both = sparse.csr_array(self.item_side.joined(sparse.csr_array(by_users.T)).T)
        both.sort_indices()
        return both

    def moments(self, r: np.ndarray) -> np.ndarray:
        """Return the sums of r, of r^2 / (2 c) and of the moduli of r, and the squared length of A' G B, rounded up."""
        sums = self.users.moments(r)
        values = self._lines(r, by_items=False).confidences
        sums[3] = values @ values * (1.0 + (len(values) + 8) * EPS)
        return sums

    def times(self, r: np.ndarray, X: np.ndarray, *, by_items: bool) -> np.ndarray:
        """Return the product of A' G B, or of its transpose, and X."""
        lines = self._lines(r, by_items=by_items)
        return lines.times(lines.confidences, X)

    def gram(self, r: np.ndarray, *, by_items: bool) -> np.ndarray:
        """Return the lower triangle of M'M for M = A' G B, or of its transpose."""
        lines = self._lines(r, by_items=by_items)
        return lines.gram(lines.confidences, self.shape[0] if by_items else self.shape[1])

    def improved(
        self, start: np.ndarray, other: np.ndarray, common: np.ndarray, *, single: bool, by_items: bool
    ) -> np.ndarray:
        """Return better rows of users, or of items, and of their features."""
        side = self.item_side if by_items else self.user_side
        other_side = self.user_side if by_items else self.item_side
        lines = self.items if by_items else self.users
        vectors = other_side.vectors(other)
        if side.features is None:
            return lines.improved(start, vectors, common, single=single)
        return side.improved(start, vectors, lines, common, single=single)

    def error(self, r: np.ndarray) -> float:
        """Bound the rounding errors of A' G B in the Frobenius norm."""
        of_users = np.repeat(self.user_side.lengths, np.diff(self.users.starts))
        sizes = of_users * self.item_side.lengths[self.users.partners]
        total = float(np.abs(r) @ sizes)
        roundings = self.user_side.roundings + self.item_side.roundings + 8
        return roundings * EPS * total * (1.0 + (len(r) + 64) * EPS) + TINY * (len(r) + 1) * sum(self.shape)

    def _lines(self, r: np.ndarray, *, by_items: bool) -> Lines:
        """Return A' G B by its rows, or by its columns; those of the last r are kept, as many products follow."""
        if self._seen[0] is not r:
            matrix = self.seen(r)
            self._seen = r, [_as_lines(matrix), _as_lines(sparse.csr_array(matrix.T))]
        return self._seen[1][by_items]


def pairs_with_features(interactions: Any, user_features: Any, item_features: Any) -> Pairs:
    """Return interactions as pairs, seen through features if there are any."""
    are_plain = user_features is None and item_features is None
    if isinstance(interactions, Pairs):
        if not are_plain:
            raise ValueError(
                "user_features and item_features: not taken with interactions on workers; "
                "give interactions as a sparse matrix in memory, or leave features out"
            )
        return interactions
    matrix = checked_interactions(interactions, "interactions")
    return Pairs(matrix) if are_plain else FeaturedPairs(matrix, user_features, item_features)


def _as_lines(matrix: sparse.csr_array) -> Lines:
    return Lines(matrix.indptr, matrix.indices, matrix.data)


def _sums_of_squares(features: Any, axis: int) -> np.ndarray:
    squares = features.multiply(features) if sparse.issparse(features) else features * features
    return np.asarray(squares.sum(axis=axis)).ravel()
