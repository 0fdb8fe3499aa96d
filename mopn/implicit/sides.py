"""Features of users and items: pairs seen through ids and features, with half-steps by conjugate gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.features import checked_features
from mopn.data.interactions import checked_interactions
from mopn.implicit.pairs import Lines, Pairs
from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.tools.decorators import cached_property

# Conjugate gradients that divide vectors between ids and features in a half-step, from the division before.
_FEATURE_STEPS = 3


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
        """Bound the sums (n,) of the lengths of the terms of each vector, given the lengths of the factor's rows."""
        if self.features is None:
            return lengths
        return lengths[: self.n] + abs(self.features) @ lengths[self.n :]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths (n,) of the rows of all columns, ids included."""
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

    def fitted(self, vectors: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return rows V (p, k) of the features on the way from a start to the least ||X - F V||^2 + ||V||^2.

        X are the vectors (n, k), and X - F V the rows of the ids. The steps are conjugate gradients.
        """
        F = self.features
        V = start
        scales = (1.0 + self.column_squares)[:, None]
        R = F.T @ (vectors - F @ V) - V
        Z = R / scales
        direction = Z
        square = float(np.vdot(R, Z))
        for _ in range(_FEATURE_STEPS):
            if not square > TINY:
                break
            image = F.T @ (F @ direction) + direction
            length = square / float(np.vdot(direction, image))
            V = V + length * direction
            R = R - length * image
            Z = R / scales
            following = float(np.vdot(R, Z))
            direction = Z + (following / square) * direction
            square = following
        return V


class FeaturedPairs(Pairs):
    """Pairs seen through the columns A of users and B of items: <p, q> are entries of A P Q' B', G is A' G B.

    Half-steps take place where the pairs are stored; the matrix A' G B is formed in this process.
    """

    def __init__(self, ids: Pairs, user_features: Any = None, item_features: Any = None) -> None:
        # The pairs seen through ids alone.
        self.ids = ids
        self.n_ids = ids.n_ids
        self.number = ids.number
        self.user_side = Side(ids.n_ids[0], user_features, "user_features")
        self.item_side = Side(ids.n_ids[1], item_features, "item_features")
        self.shape = self.user_side.size, self.item_side.size
        self._seen: tuple[Any, Any] = None, None

    @property
    def confidences(self) -> np.ndarray:
        """The confidences, in the order of users."""
        return self.ids.confidences

    @property
    def totals(self) -> tuple[float, float, float]:
        """The least, the largest and the sum of the confidences."""
        return self.ids.totals

    def curvatures(self, P: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """Return the sums of c <p, q>^2 over the pairs, for each column of P and Q alone."""
        return self.ids.curvatures(*self.vectors(P, Q))

    def matrix(self, values: Any) -> sparse.csr_array:
        """Return the sparse matrix (n_users, n_items) with a value for each pair."""
        return self.ids.matrix(values)

    def scaled(self, r: Any, scale: float) -> Any:
        """Return multiples of numbers of the pairs."""
        return self.ids.scaled(r, scale)

    def vectors(self, P: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors A P of users and B Q of items."""
        return self.user_side.vectors(P), self.item_side.vectors(Q)

    def residuals(self, P: np.ndarray, Q: np.ndarray) -> Any:
        """Return c (1 - <p, q>) of all pairs, by the vectors."""
        return self.ids.residuals(*self.vectors(P, Q))

    def rounding(self, r: Any, users: np.ndarray, items: np.ndarray, relative: float) -> float:
        """Bound the rounding errors of the losses, given the lengths of the factors' rows."""
        relative = relative + (self.user_side.roundings + self.item_side.roundings) * EPS
        return self.ids.rounding(r, self.user_side.sizes(users), self.item_side.sizes(items), relative)

    def seen(self, r: Any) -> sparse.csr_array:
        """Return A' G B for the matrix G of r."""
        by_users = self.user_side.joined(self.matrix(r))
        both = sparse.csr_array(self.item_side.joined(sparse.csr_array(by_users.T)).T)
        both.sort_indices()
        return both

    def moments(self, r: Any) -> np.ndarray:
        """Return the sums of r, of r^2 / (2 c) and of the moduli of r, and the squared length of A' G B, rounded up."""
        sums = self.ids.moments(r)
        values = self._lines(r, by_items=False).confidences
        sums[3] = values @ values * (1.0 + (len(values) + 8) * EPS)
        return sums

    def times(self, r: Any, X: np.ndarray, *, by_items: bool) -> np.ndarray:
        """Return the product of A' G B, or of its transpose, and X."""
        lines = self._lines(r, by_items=by_items)
        return lines.times(lines.confidences, X)

    def gram(self, r: Any, *, by_items: bool) -> np.ndarray:
        """Return the lower triangle of M'M for M = A' G B, or of its transpose."""
        lines = self._lines(r, by_items=by_items)
        return lines.gram(lines.confidences, self.shape[0] if by_items else self.shape[1])

    def improved(
        self,
        start: np.ndarray,
        other: np.ndarray,
        offsets: np.ndarray | None = None,
        *,
        by_items: bool,
    ) -> np.ndarray:
        """Return better rows of users, or of items, and of their features.

        First the rows of the ids move, then the same vectors are divided anew between ids and features.
        """
        side = self.item_side if by_items else self.user_side
        other_side = self.user_side if by_items else self.item_side
        others = other_side.vectors(other)
        if side.features is None:
            return self.ids.improved(start, others, by_items=by_items)
        V = start[side.n :]
        of_features = side.features @ V
        ids = self.ids.improved(start[: side.n], others, of_features, by_items=by_items)
        vectors = ids + of_features
        V = side.fitted(vectors, V)
        return np.vstack([vectors - side.features @ V, V]).astype(start.dtype)

    def error(self, r: Any) -> float:
        """Bound the rounding errors of A' G B in the Frobenius norm."""
        total = float(self.user_side.lengths @ (abs(self.matrix(r)) @ self.item_side.lengths))
        roundings = self.user_side.roundings + self.item_side.roundings + 8
        return roundings * EPS * total * (1.0 + (self.number + 64) * EPS) + TINY * (self.number + 1) * sum(self.shape)

    def _lines(self, r: Any, *, by_items: bool) -> Lines:
        """Return A' G B by its rows, or by its columns; the lines of the last r are kept, as many products follow."""
        if self._seen[0] is not r:
            matrix = self.seen(r)
            self._seen = r, [_as_lines(matrix), _as_lines(sparse.csr_array(matrix.T))]
        return self._seen[1][by_items]


def pairs_with_features(interactions: Any, user_features: Any, item_features: Any) -> Pairs:
    """Return interactions as pairs, seen through features if there are any."""
    is_stored = isinstance(interactions, Pairs)
    pairs = interactions if is_stored else Pairs(checked_interactions(interactions, "interactions"))
    if user_features is None and item_features is None:
        return pairs
    return FeaturedPairs(pairs, user_features, item_features)


def _as_lines(matrix: sparse.csr_array) -> Lines:
    return Lines(matrix.indptr, matrix.indices, matrix.data)


def _sums_of_squares(features: Any, axis: int) -> np.ndarray:
    squares = features.multiply(features) if sparse.issparse(features) else features * features
    return np.asarray(squares.sum(axis=axis)).ravel()
