"""Features with similar interactions, such as items that the same users like beyond their averages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mopn.data.validation import check_count, check_nonnegative, finite_numbers
from mopn.models.base import Fitted, fitted_model
from mopn.models.interaction_factors import products, units_and_weights
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import door


class Similar(NamedTuple):
    """A feature, and the cosine of its interactions with the given feature's, shrunk if counts are given."""

    feature: int
    cosine: float


@door
def similar_features(
    model: Fitted,
    feature: int,
    among: Any,
    k: int = 10,
    partners: Any = None,
    *,
    counts: Any = None,
    shrinkage: float = 10.0,
) -> list[Similar]:
    """Return the k features whose interactions are most like those of a feature.

    The interactions of a feature are the weights of its products with all ``partners``, in all outputs. Two items are
    similar if the cosine of these arrays is large: the same users like both, beyond how well liked either is, as the
    linear term is left out. Scales, order and splits of units do not matter. No array of features by partners is
    formed.

    Parameters
    ----------
    model : Model, FactorizationModel or fitted estimator
    feature : int
        Index of a feature, such as the one-hot column of an item.
    among : sequence of int
        Indices of candidates, such as the columns of all items; ``feature`` itself is left out.
    k : int, default 10
    partners : sequence of int, optional
        Indices of the other features in the products, such as the columns of all users; default all that are not in
        ``among``.
    counts : array-like of shape (d,), optional
        Rows of the fit in which each feature is not zero, such as ``(X != 0).sum(axis=0)``. The cosine of a feature
        with n rows is multiplied by n / (n + ``shrinkage``), as cosines of items with few ratings are large by chance.
        Default: no shrinkage.
    shrinkage : float, default 10.0
        The number of rows at which a cosine is halved; 0 for none.

    Returns
    -------
    list of Similar
        In order of decreasing cosine, after shrinkage; at most k. Features without interactions are not in it.

    Raises
    ------
    ValueError
        For indices that are not features, for a degree without pairs, if there are no partners, or for counts of
        another shape or below 0.

    Notes
    -----
    The shrinkage: equation 2 of Koren, Factorization Meets the Neighborhood (KDD 2008).

    Examples
    --------
    Two users (columns 0 and 1) and three items; the first two items divide the users alike:

    >>> import numpy as np, mopn
    >>> from mopn.ranking import similar_features
    >>> model = mopn.Model(np.array([[1.0, -1.0, 2.0, 1.0, -1.0]]), np.array([[1.0]]), kernel="anova")
    >>> [(item.feature, round(item.cosine, 3)) for item in similar_features(model, 2, among=[2, 3, 4])]
    [(3, 1.0), (4, -1.0)]
    """
    machine: Any = fitted_model(model)
    units, V = units_and_weights(machine)
    d, k = machine.n_features, check_count(k, "k")
    (feature,) = _indices([feature], "feature", d)
    among = _indices(among, "among", d)
    if partners is None:
        partners = np.setdiff1d(np.arange(d), [*among, feature])
    partners = _indices(partners, "partners", d)
    if not len(partners):
        raise ValueError("partners is empty: there are no features to interact with; give those of the users, say")
    weights, (left, right) = products(units, V, 2)
    # <t_j, t_l> for the interactions t_j[p, c] = sum_r left_rj right_rp weights_rc.
    metric = (weights @ weights.T) * (right[:, partners] @ right[:, partners].T)
    others = among[among != feature]
    inner = left[:, others].T @ (metric @ left[:, feature])
    lengths = np.sqrt(np.maximum(np.sum(left[:, others] * (metric @ left[:, others]), axis=0), 0.0))
    own = np.sqrt(max(left[:, feature] @ metric @ left[:, feature], 0.0))
    there = (lengths > 0) & (own > 0)
    cosines = np.clip(inner[there] / (lengths[there] * (own or 1.0)), -1.0, 1.0)
    if counts is not None:
        cosines = cosines * reliabilities(counts, shrinkage, d, "features")[others[there]]
    order = np.argsort(-cosines, kind="stable")[:k]
    return [Similar(int(others[there][place]), float(cosines[place])) for place in order]


def reliabilities(counts: Any, shrinkage: float, size: int, things: str) -> np.ndarray:
    """Return n / (n + shrinkage) for the counts n of features or items; 0 for those without rows."""
    shrinkage = check_nonnegative(shrinkage, "shrinkage")
    counts = finite_numbers(counts, "counts")
    if counts.shape != (size,) or counts.min() < 0:
        raise ValueError(f"counts must hold a number >= 0 for each of the {size} {things}, got {shown(counts)}")
    return counts / np.where(counts > 0, counts + shrinkage, 1.0)


def _indices(values: Any, name: str, d: int) -> np.ndarray:
    array = np.unique(np.asarray(list(values) if np.iterable(values) else values))
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array[0] < 0 or array[-1] >= d)):
        raise ValueError(f"{name} must hold indices of features, from 0 to {d - 1}, got {values!r}")
    return array.astype(np.intp)
