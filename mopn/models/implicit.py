"""The fitted model of implicit feedback: recommendations, similar items, new users. NumPy and SciPy suffice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.data.features import checked_features
from mopn.data.interactions import checked_interactions
from mopn.data.validation import check_count, check_flag, check_nonnegative, compressed, finite_numbers
from mopn.models.base import Fitted
from mopn.solvers.tools.checks import check_positive, shown
from mopn.solvers.tools.decorators import cached_property, quiet
from mopn.solvers.tools.display import Displayed

# Scores that are held in memory at a time.
_SCORES_AT_A_TIME = 2**22
# Scores in a block, whose maximum is found first: lists of 12,500 scores then take a fifteenth of the time.
_SCORES_IN_BLOCK = 64


class Recommendations(NamedTuple):
    """Items for users, the best first: ids and scores (n,), or (users, n) for several users.

    Where a user has fewer than n items left, ids are -1 and scores -inf. Of items with equal scores the smaller id is
    first; at the end of a list any of them may be left out.
    """

    items: np.ndarray
    scores: np.ndarray


class Reasons(NamedTuple):
    """Items that a user liked, and how much each adds to a score, the largest first; they add up to the score.

    With features of users one more entry is for all of them, the item -1.
    """

    items: np.ndarray
    contributions: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class ImplicitModel(Displayed, Fitted):
    """Factors of users and items; the score of a pair is their inner product, near 1 for what a user likes.

    Attributes
    ----------
    user_factors : ndarray of shape (n_users, k)
    item_factors : ndarray of shape (n_items, k)
    liked_starts, liked_items, liked_counts : ndarray
        The interactions of the fit in the CSR format: ``indptr``, ``indices`` and ``data``.
    strength, unobserved_weight, alpha : float
        The options of the fit, for new users.
    user_feature_factors : ndarray of shape (p, k), optional
        Factors of the features of users.
    item_feature_factors : ndarray of shape (q, k), optional
        Factors of the features of items.
    user_offsets : ndarray of shape (n_users, k), optional
        The part of ``user_factors`` that comes from the features of users.
    item_squares : ndarray of shape (k, k), optional
        Q'Q of the factors of items and their features; default of ``item_factors``.

    Raises
    ------
    ValueError
        For shapes that do not fit each other, or options out of range.
    """

    user_factors: np.ndarray
    item_factors: np.ndarray
    liked_starts: np.ndarray
    liked_items: np.ndarray
    liked_counts: np.ndarray
    strength: float
    unobserved_weight: float
    alpha: float = 0.0
    user_feature_factors: np.ndarray | None = None
    item_feature_factors: np.ndarray | None = None
    user_offsets: np.ndarray | None = None
    item_squares: np.ndarray | None = None

    def __post_init__(self) -> None:
        users = finite_numbers(self.user_factors, "user_factors")
        items = finite_numbers(self.item_factors, "item_factors")
        if users.ndim != 2 or items.ndim != 2 or users.shape[1] != items.shape[1]:
            raise ValueError(f"user_factors and item_factors must be (n, k), got {users.shape} and {items.shape}")
        k = users.shape[1]
        self._check_shape("user_feature_factors", None, k)
        self._check_shape("item_feature_factors", None, k)
        self._check_shape("user_offsets", len(users), k)
        self._check_shape("item_squares", k, k)
        check_positive(self.strength, "strength")
        check_positive(self.unobserved_weight, "unobserved_weight")
        check_nonnegative(self.alpha, "alpha")
        compressed(self.liked, "liked")

    def _check_shape(self, name: str, n: int | None, k: int) -> None:
        """Check an optional field of shape (n, k)."""
        if getattr(self, name) is None:
            return
        values = finite_numbers(getattr(self, name), name)
        if values.ndim != 2 or values.shape[1] != k or n not in (None, len(values)):
            rows = "p" if n is None else n
            raise ValueError(f"{name} must have shape ({rows}, {k}), got {values.shape}")

    @cached_property
    def liked(self) -> sparse.csr_array:
        """The interactions of the fit (n_users, n_items)."""
        parts = self.liked_counts, self.liked_items, self.liked_starts
        return sparse.csr_array(parts, shape=(len(self.user_factors), len(self.item_factors)))

    @cached_property
    def _popularity(self) -> np.ndarray:
        """The number of users (n_items,) who liked each item."""
        return np.bincount(self.liked.indices, minlength=len(self.item_factors)).astype(np.float64)

    def _fitted_model(self) -> ImplicitModel:
        return self

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"classes": None}

    def _entries(self) -> dict[str, str]:
        return {"users": str(len(self.user_factors)), "items": str(len(self.item_factors)), "units": str(self.n_units)}

    @property
    def n_units(self) -> int:
        """The number k of units."""
        return int(self.item_factors.shape[1])

    # -- recommendations --------------------------------------------------------------------------------------------

    @quiet()
    def recommend(
        self, users: Any = None, n: int = 10, *, filter_already_liked: bool = True, user_features: Any = None
    ) -> Recommendations:
        """Return the n best items of users; those of whom nothing is known get what most users liked, with scores of 0.

        Parameters
        ----------
        users : int, array-like of int or sparse matrix of shape (m, n_items), optional
            Ids of users of the fit; or the interactions of new or changed users, a row each, by which their factors
            are computed anew; default all users of the fit.
        n : int, default 10
        filter_already_liked : bool, default True
            Leave out items of the interactions.
        user_features : array-like or sparse matrix of shape (m, p), optional
            Features of the users whose interactions are given; default zeros.

        Raises
        ------
        TypeError, ValueError
            For ids that are not integers or not of the fit, interactions of other items, or features that do not fit.
        """
        n = min(check_count(n, "n"), len(self.item_factors))
        check_flag(filter_already_liked, "filter_already_liked")
        liked, factors = self._of_users(users, user_features)
        items = np.empty((len(factors), n), np.int64)
        scores = np.empty((len(factors), n))
        for rows, block in self._score_blocks(factors):
            unknown = ~factors[rows].any(axis=1)
            block[unknown] = self._popularity
            if filter_already_liked:
                part = liked[rows]
                block[np.repeat(np.arange(len(block)), np.diff(part.indptr)), part.indices] = -np.inf
            items[rows], found = best_of_rows(block, n)
            found[unknown] = np.minimum(found[unknown], 0.0)
            scores[rows] = found
        if users is not None and not sparse.issparse(users) and np.ndim(users) == 0:
            return Recommendations(items[0], scores[0])
        return Recommendations(items, scores)

    def _of_users(self, users: Any, user_features: Any) -> tuple[sparse.csr_array, np.ndarray]:
        """Return interactions and factors of users of the fit, or of new ones."""
        if sparse.issparse(users):
            liked = self._rows(users)
            return liked, self._folded(liked, self._offsets(user_features, liked.shape[0]))
        if user_features is not None:
            raise ValueError("user_features are for new users: give their interactions as a sparse matrix, too")
        if users is None:
            return self.liked, self.user_factors
        ids = np.atleast_1d(self._ids(users, len(self.user_factors), "users"))
        return self.liked[ids], self.user_factors[ids]

    def _score_blocks(self, factors: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield scores (b, n_items) of some users at a time."""
        size = max(1, _SCORES_AT_A_TIME // len(self.item_factors))
        for first in range(0, len(factors), size):
            rows = slice(first, min(first + size, len(factors)))
            yield rows, factors[rows] @ self.item_factors.T

    @quiet()
    def similar_items(self, items: Any, n: int = 10) -> Recommendations:
        """Return the n items whose factors have the largest cosines with given items, which are left out.

        Parameters
        ----------
        items : int or array-like of int
        n : int, default 10
        """
        ids = self._ids(items, len(self.item_factors), "items")
        n = min(check_count(n, "n"), len(self.item_factors))
        lengths = np.linalg.norm(self.item_factors, axis=1, keepdims=True)
        directions = self.item_factors / np.where(lengths > 0.0, lengths, 1.0)
        cosines = directions[np.atleast_1d(ids)] @ directions.T
        cosines[np.arange(len(cosines)), np.atleast_1d(ids)] = -np.inf
        found = best_of_rows(cosines, n)
        return Recommendations(*found) if np.ndim(items) else Recommendations(found[0][0], found[1][0])

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the scores of pairs of users and items of the fit, given by equally long arrays of ids."""
        users = self._ids(users, len(self.user_factors), "users")
        items = self._ids(items, len(self.item_factors), "items")
        if users.shape != items.shape:
            raise ValueError(f"users and items must be equally long, got shapes {users.shape} and {items.shape}")
        return np.sum(self.user_factors[users] * self.item_factors[items], axis=-1)

    # -- new users and items ----------------------------------------------------------------------------------------

    @quiet()
    def fold_in(self, interactions: Any, user_features: Any = None) -> np.ndarray:
        """Return the factors (m, k) of new users in closed form: the minimum with all other factors fixed.

        Parameters
        ----------
        interactions : sparse matrix of shape (m, n_items)
        user_features : array-like or sparse matrix of shape (m, p), optional
            Features of these users; default zeros.
        """
        liked = self._rows(interactions)
        return self._folded(liked, self._offsets(user_features, liked.shape[0]))

    @quiet()
    def fold_in_items(self, item_features: Any) -> np.ndarray:
        """Return the factors (m, k) of new items by their features: scores are inner products with ``user_factors``.

        Parameters
        ----------
        item_features : array-like or sparse matrix of shape (m, q)
        """
        return _by_features(item_features, self.item_feature_factors, "item_features")

    @quiet()
    def recommend_new_items(self, item_features: Any, users: Any = None, n: int = 10) -> Recommendations:
        """Return the n best of new items for users, by the features of the items; ids are their rows.

        Parameters
        ----------
        item_features : array-like or sparse matrix of shape (m, q)
        users : int or array-like of int, optional
            Users of the fit, default all.
        n : int, default 10
        """
        new = self.fold_in_items(item_features)
        n = min(check_count(n, "n"), len(new))
        ids = np.arange(len(self.user_factors)) if users is None else self._ids(users, len(self.user_factors), "users")
        found = best_of_rows(self.user_factors[np.atleast_1d(ids)] @ new.T, n)
        return Recommendations(*found) if np.ndim(ids) else Recommendations(found[0][0], found[1][0])

    def _offsets(self, user_features: Any, n: int) -> np.ndarray:
        """Return the part (n, k) of users' factors that comes from their features."""
        if user_features is None:
            return np.zeros((n, self.n_units))
        return _by_features(user_features, self.user_feature_factors, "user_features", n)

    @quiet()
    def explain(self, user: Any, item: int, user_features: Any = None) -> Reasons:
        """Return how much each item that a user liked adds to the score of an item: exact for the factors of fold_in.

        Parameters
        ----------
        user : int or sparse matrix of shape (1, n_items)
            A user of the fit, or the interactions of a new one.
        item : int
        user_features : array-like or sparse matrix of shape (1, p), optional
            Features of a new user.
        """
        item = int(self._ids(item, len(self.item_factors), "item"))
        if sparse.issparse(user):
            liked = self._rows(user)
            offset = self._offsets(user_features, liked.shape[0])
        else:
            row = int(self._ids(user, len(self.user_factors), "user"))
            liked = self.liked[[row]]
            offset = np.zeros((1, self.n_units)) if self.user_offsets is None else self.user_offsets[[row]]
        if liked.shape[0] != 1:
            raise ValueError(f"user must be a single row of interactions, got {liked.shape[0]} rows")
        matrix, weighted = self._normal_equations(liked, 0, self._common)
        solved = np.linalg.solve(matrix, self.item_factors[item])
        items = liked.indices
        contributions = weighted @ solved
        if self.user_feature_factors is not None:
            items = np.append(items, -1)
            contributions = np.append(contributions, (self._common @ offset[0]) @ solved)
        order = np.argsort(-contributions, kind="stable")
        return Reasons(items[order], contributions[order])

    @property
    def _common(self) -> np.ndarray:
        """The part of the normal equations that all users share."""
        squares = self.item_factors.T @ self.item_factors if self.item_squares is None else self.item_squares
        return self.unobserved_weight * squares + self.strength * np.eye(self.n_units)

    def _normal_equations(self, liked: sparse.csr_array, row: int, common: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix (k, k) of a user, and the factors of the user's items times confidences."""
        places = slice(liked.indptr[row], liked.indptr[row + 1])
        factors = self.item_factors[liked.indices[places]]
        weighted = (1.0 + self.alpha * liked.data[places])[:, None] * factors
        return common + factors.T @ weighted, weighted

    def _folded(self, liked: sparse.csr_array, offsets: np.ndarray) -> np.ndarray:
        """Return factors (m, k), given their parts from features; these alone, where nothing was liked."""
        common = self._common
        found = offsets.copy()
        for row in np.flatnonzero(np.diff(liked.indptr)).tolist():
            matrix, weighted = self._normal_equations(liked, row, common)
            found[row] = np.linalg.solve(matrix, weighted.sum(axis=0) + common @ offsets[row])
        return found

    # -- checks -----------------------------------------------------------------------------------------------------

    def _rows(self, interactions: Any) -> sparse.csr_array:
        liked = checked_interactions(interactions, "interactions")
        if liked.shape[1] != len(self.item_factors):
            raise ValueError(
                f"interactions must have a column for each of the {len(self.item_factors)} items, got {liked.shape[1]}"
            )
        return liked

    def _ids(self, values: Any, number: int, name: str) -> np.ndarray:
        ids = np.asarray(values)
        if ids.dtype.kind not in "iu" or ids.ndim > 1:
            raise TypeError(f"{name} must be ids, integers from 0 to {number - 1}, got {shown(values)}")
        if ids.size and not 0 <= ids.min() <= ids.max() < number:
            raise ValueError(f"{name} must be ids from 0 to {number - 1}, got {ids.min()} to {ids.max()}")
        return ids


def _by_features(features: Any, factors: np.ndarray | None, name: str, n: int | None = None) -> np.ndarray:
    """Return the part (n, k) of factors that comes from features."""
    if factors is None:
        raise ValueError(f"{name}: the model has none; give {name} to fit, too")
    if n is None:
        n = np.shape(features)[0] if np.ndim(features) or sparse.issparse(features) else 0
    checked = checked_features(features, n, name)
    if checked.shape[1] != len(factors):
        raise ValueError(f"{name} must have a column for each of the {len(factors)} of the fit, got {checked.shape[1]}")
    return np.asarray(checked @ factors)


def best_of_rows(scores: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places (m, n) of the n largest scores of each row and the scores, the largest first; -1 for -inf."""
    blocks = scores.shape[1] // _SCORES_IN_BLOCK
    if blocks <= n:
        return _sorted_best(scores, n)
    # The n largest scores are in the n blocks of the largest maxima, or in the rest behind the blocks.
    end = blocks * _SCORES_IN_BLOCK
    maxima = scores[:, :end].reshape(len(scores), blocks, _SCORES_IN_BLOCK).max(axis=2)
    best = np.sort(np.argpartition(-maxima, n - 1, axis=1)[:, :n], axis=1)
    columns = best[:, :, None] * _SCORES_IN_BLOCK + np.arange(_SCORES_IN_BLOCK)
    rest = np.tile(np.arange(end, scores.shape[1]), (len(scores), 1))
    columns = np.hstack([columns.reshape(len(scores), -1), rest])
    places, found = _sorted_best(np.take_along_axis(scores, columns, axis=1), n)
    # -1 is the last place of a row; it stays.
    return np.where(places >= 0, np.take_along_axis(columns, places, axis=1), -1), found


def _sorted_best(scores: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    if n < scores.shape[1]:
        places = np.sort(np.argpartition(-scores, n - 1, axis=1)[:, :n], axis=1)
    else:
        places = np.tile(np.arange(scores.shape[1]), (len(scores), 1))
    found = np.take_along_axis(scores, places, axis=1)
    order = np.argsort(-found, axis=1, kind="stable")
    found = np.take_along_axis(found, order, axis=1)
    places = np.take_along_axis(places, order, axis=1)
    return np.where(found > -np.inf, places, -1), found
