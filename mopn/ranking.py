"""Ranking metrics by group, such as users, and of lists from all items; the best items for a user; similar items.

nDCG (Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS, 2002) is computed with
scikit-learn's ``ndcg_score``. The gain of an item is its relevance y, or 2^y - 1 (Burges et al., Learning to rank using
gradient descent, ICML 2005); discounts are 1 / log2(1 + rank).
"""

from typing import Any, NamedTuple

import numpy as np

from mopn.data.interactions import checked_interactions
from mopn.data.validation import distinct_labels, finite_numbers
from mopn.models.implicit import best_of_rows
from mopn.models.ranker import Ranker, similar_features
from mopn.solvers.tools.checks import choice, count
from mopn.solvers.tools.decorators import quiet
from mopn.solvers.tools.signals import signals_later

__all__ = ["Ranker", "average_precision_at_k", "grouped_ndcg", "ndcg_at_k", "recall_at_k", "similar_features"]

_GAINS = {"exponential": lambda y: np.exp2(y) - 1.0, "linear": lambda y: y}
# The largest relevances whose gains can be added up, by the kind of gain.
_LARGEST_RELEVANCE = {"exponential": 900.0, "linear": 1e290}


@quiet()
def grouped_ndcg(y_true: Any, y_score: Any, groups: Any, k: int | None = None, gain: str = "exponential") -> float:
    """Return the mean over the groups of the normalised discounted cumulative gain.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Relevances, at least 0, such as ratings.
    y_score : array-like of shape (n,)
        Predictions. Items of equal scores share the mean of their gains, as in scikit-learn.
    groups : array-like of shape (n,)
        The user of each item, as a number or a string. All users have the same weight.
    k : int, optional
        Only the first k items of the ranking count; default all.
    gain : {"exponential", "linear"}, default "exponential"
        2^y - 1, or y.

    Returns
    -------
    float
        Between 0 and 1. Users whose gains are all 0 have the score 0; users with a single item are left out.

    Raises
    ------
    ImportError
        Without scikit-learn.
    TypeError, ValueError
        For arrays of other shapes or types, NaN, negative relevances, groups that cannot be compared, an unknown gain,
        k < 1, or no group to rank.

    Examples
    --------
    >>> grouped_ndcg([5, 3, 1, 4, 2], [0.9, 0.5, 0.1, 0.2, 0.8], ["a", "a", "a", "b", "b"], k=1)
    0.6
    """
    try:
        with signals_later():
            from sklearn.metrics import ndcg_score
    except ImportError as error:
        raise ImportError("mopn.ranking needs scikit-learn: pip install scikit-learn") from error

    y_true, y_score, codes = _checked(y_true, y_score, groups)
    gain = choice(_GAINS)(gain, "gain")
    k = count().or_none()(k, "k")
    if y_true.max() > _LARGEST_RELEVANCE[gain]:
        raise ValueError(f"y_true is too large for gain={gain!r}: up to {y_true.max():g}; scale the relevances")
    sizes = np.bincount(codes)
    rows = np.argsort(codes, kind="stable")
    starts = np.cumsum(sizes) - sizes
    gains = _GAINS[gain](y_true)
    total = 0.0
    n_groups = 0
    # scikit-learn ranks the rows of a table: here a row for each user with the same number of items.
    for size in np.unique(sizes[sizes > 1]):
        users = np.flatnonzero(sizes == size)
        items = rows[starts[users][:, None] + np.arange(size)]
        total += len(users) * float(ndcg_score(gains[items], y_score[items], k=k))
        n_groups += len(users)
    if not n_groups:
        raise ValueError("every group has a single item, so nothing is ranked; give groups with several items")
    return total / n_groups


def _checked(y_true: Any, y_score: Any, groups: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return relevances and scores as floats, and the number of the group of each item."""
    y_true = finite_numbers(y_true, "y_true")
    y_score = finite_numbers(y_score, "y_score")
    _, codes = distinct_labels(groups, "groups")
    if y_true.ndim != 1 or not len(y_true):
        raise ValueError(f"y_true must have shape (n,) with n >= 1, got {y_true.shape}")
    for name, values in (("y_score", y_score), ("groups", codes)):
        if values.shape != y_true.shape:
            raise ValueError(f"{name} must have the shape {y_true.shape} of y_true, got {values.shape}")
    if y_true.min() < 0:
        raise ValueError(f"relevances must be >= 0, got {y_true.min():g} in y_true; shift them")
    return y_true, y_score, codes


class _Lists(NamedTuple):
    """For users with relevant items: the relevant places of their lists (m, k), and how many could be relevant (m,)."""

    hits: np.ndarray
    possible: np.ndarray


def _lists(relevant: Any, scores: Any, k: int, seen: Any) -> _Lists:
    relevant = checked_interactions(relevant, "relevant")
    scores = np.array(finite_numbers(scores, "scores"))
    k = count()(k, "k")
    if scores.shape != relevant.shape:
        raise ValueError(f"scores must have the shape {relevant.shape} of relevant, got {scores.shape}")
    wanted = relevant.astype(bool).toarray()
    if seen is not None:
        seen = checked_interactions(seen, "seen")
        if seen.shape != relevant.shape:
            raise ValueError(f"seen must have the shape {relevant.shape} of relevant, got {seen.shape}")
        known = seen.astype(bool).toarray()
        scores[known] = -np.inf
        wanted &= ~known
    users = wanted.any(axis=1)
    if not users.any():
        raise ValueError("no user has a relevant item that was not seen, so nothing is measured")
    places, _ = best_of_rows(scores[users], min(k, scores.shape[1]))
    hits = np.take_along_axis(wanted[users], places, axis=1) & (places >= 0)
    return _Lists(hits, np.minimum(wanted[users].sum(axis=1), k))


@quiet()
def recall_at_k(relevant: Any, scores: Any, k: int = 10, *, seen: Any = None) -> float:
    """Return the mean share of users' relevant items that are among the k items of the largest scores.

    Parameters
    ----------
    relevant : sparse matrix of shape (n_users, n_items)
        Above 0 for the held-out items of a user. Users without any are left out.
    scores : array-like of shape (n_users, n_items)
        Scores of all items. Of equal scores the smaller column is first; if they reach beyond the list, any may be in
        it.
    k : int, default 10
        Length of the lists. A user with more than k relevant items has k that can be found.
    seen : sparse matrix of shape (n_users, n_items), optional
        Above 0 for items that are not recommended, such as the items of the fit. They are not relevant either.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    TypeError, ValueError
        For arrays of other shapes or types, NaN, k < 1, or no user with a relevant item.

    Examples
    --------
    >>> from scipy import sparse
    >>> recall_at_k(sparse.csr_array([[1, 1, 0], [0, 0, 1]]), [[0.9, 0.1, 0.5], [0.9, 0.1, 0.5]], k=2)
    0.75
    """
    lists = _lists(relevant, scores, k, seen)
    return float(np.mean(lists.hits.sum(axis=1) / lists.possible))


@quiet()
def ndcg_at_k(relevant: Any, scores: Any, k: int = 10, *, seen: Any = None) -> float:
    """Return the mean over users of the normalised discounted cumulative gain of lists of k from all items.

    The gain of a relevant item at rank r is 1 / log2(1 + r); the sum is divided by the sum of the best possible list.
    Parameters, errors and equal scores are as for :func:`recall_at_k`.

    Examples
    --------
    >>> from scipy import sparse
    >>> round(ndcg_at_k(sparse.csr_array([[1, 0, 0]]), [[0.5, 0.9, 0.1]], k=2), 4)
    0.6309
    """
    lists = _lists(relevant, scores, k, seen)
    discounts = 1.0 / np.log2(np.arange(2, lists.hits.shape[1] + 2))
    best = np.cumsum(discounts)[np.minimum(lists.possible, len(discounts)) - 1]
    return float(np.mean(lists.hits @ discounts / best))


@quiet()
def average_precision_at_k(relevant: Any, scores: Any, k: int = 10, *, seen: Any = None) -> float:
    """Return the mean over users of the average precision of lists of k from all items (MAP@k).

    The precision at the rank of each relevant item in the list is added up, and divided by the number of relevant
    items, at most k. Parameters, errors and equal scores are as for :func:`recall_at_k`.

    Examples
    --------
    >>> from scipy import sparse
    >>> average_precision_at_k(sparse.csr_array([[1, 0, 1]]), [[0.9, 0.5, 0.1]], k=3)
    0.8333333333333333
    """
    lists = _lists(relevant, scores, k, seen)
    precisions = np.cumsum(lists.hits, axis=1) / np.arange(1, lists.hits.shape[1] + 1)
    return float(np.mean(np.sum(precisions * lists.hits, axis=1) / lists.possible))


def __dir__() -> list[str]:
    return __all__
