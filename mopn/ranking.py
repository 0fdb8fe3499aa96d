"""Ranking metrics by group, such as users; the best items for a user; similar items.

nDCG (Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS, 2002) is computed with
scikit-learn's ``ndcg_score``. The gain of an item is its relevance y, or 2^y - 1 (Burges et al., Learning to rank using
gradient descent, ICML 2005); discounts are 1 / log2(1 + rank).
"""

from typing import Any

import numpy as np

from mopn.data.validation import distinct_labels, finite_numbers
from mopn.models.ranker import Ranker, similar_features
from mopn.solvers.tools.checks import choice, count
from mopn.solvers.tools.decorators import quiet
from mopn.solvers.tools.signals import signals_later

__all__ = ["Ranker", "grouped_ndcg", "similar_features"]

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


def __dir__() -> list[str]:
    return __all__
