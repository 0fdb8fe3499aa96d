"""The best items for a user, by parts of the outputs that are computed once; features with similar interactions.

Let u be the row of a user and v the row of an item, without a common feature. In a model of degree 2 the output of
u + v is the output of u, plus the output of v, minus the output of zeros, plus the products of features of both. These
are an inner product of two short vectors, as all interactions are products of factors (Rendle, Factorization Machines,
ICDM 2010).
"""

from typing import Any, NamedTuple

import numpy as np

from mopn.data.designs import DenseDesign
from mopn.data.validation import check_count, check_nonnegative, distinct_labels, finite_numbers
from mopn.models.base import Fitted, fitted_model
from mopn.models.formula import dense_rows
from mopn.models.quadratic import products, units_and_weights
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import quiet


class Ranking(NamedTuple):
    """The items that are best for a user, the best first.

    Attributes
    ----------
    items : ndarray of shape (n,)
        Their rows among all items, or their ids if the :class:`Ranker` has ids.
    scores : ndarray of shape (n,)
    """

    items: np.ndarray
    scores: np.ndarray


class Ranker:
    """Items, prepared to be scored for one user after the other.

    A user costs one product of a matrix (n_items, K) with a vector, where K is the number of units, or more with
    ``interactions``.

    Parameters
    ----------
    model : Model, FactorizationModel or fitted estimator
        Degree 2, with one output or ordered levels. ``FactorizationModel.from_outputs`` makes a model of one output:
        minus the last one of ordered levels ranks by the probability of the highest level.
    item_rows : array-like or sparse matrix of shape (n_items, d)
        The features of every item; features of users are 0.
    ids : array-like of shape (n_items,), optional
        A number or string of each item, in place of its row in rankings and in ``exclude``.

    Raises
    ------
    TypeError
        For a model of a table.
    ValueError
        For other degrees, or several outputs that are not ordered levels; for ids that are not distinct, or of
        another shape.

    Examples
    --------
    Two users (the first columns) and three items:

    >>> import numpy as np, mopn
    >>> from mopn.ranking import Ranker
    >>> model = mopn.FactorizationModel(np.array([[[1.0, -1.0, 2.0, 1.0, -1.0]]]), degree=2, lams=np.ones(1))
    >>> ranker = Ranker(model, np.eye(5)[2:])
    >>> ranker.rank([[1, 0, 0, 0, 0]], n=2)
    Ranking(items=array([0, 1]), scores=array([2., 1.]))
    >>> ranker.rank([[1, 0, 0, 0, 0]], n=2, exclude=[0]).items.tolist()
    [1, 2]
    >>> ranker.scores([[0, 1, 0, 0, 0]])
    array([-2., -1.,  1.])
    >>> Ranker(model, np.eye(5)[2:], ids=["Alien", "Brazil", "Dune"]).rank([[1, 0, 0, 0, 0]], n=1, exclude=["Alien"])
    Ranking(items=array(['Brazil'], dtype='<U6'), scores=array([1.]))
    """

    @quiet()
    def __init__(self, model: Fitted, item_rows: Any, *, ids: Any = None) -> None:
        machine: Any = fitted_model(model)
        if machine.encoding is not None:
            raise TypeError("Ranker takes models of features, such as an OrdinalFMRegressor's, and not of tables")
        units, V = units_and_weights(machine)
        if units.degree != 2 or units.kernel == "all-subsets":
            raise ValueError(
                f"rows are split into user and item for degree 2; this model has the kernel {units.kernel!r} and "
                f"degree {units.degree}: use its predictions of all joined rows"
            )
        if V.shape[1] > 1 and machine.target != "ordinal":
            zeros = np.zeros(V.shape[1] - 2, int).tolist()
            raise ValueError(
                f"the model has {V.shape[1]} outputs, and items are ranked by one number: give "
                f"mopn.FactorizationModel.from_outputs(model, {[-1, *zeros, 1]}), which ranks them "
                "by the last output less the first"
            )
        self._model = machine
        self._weights, (self._left, right) = products(units, V, 2)
        design = machine.design(item_rows, "item_rows")
        self._right = np.ascontiguousarray(design.project(right).T)
        n_items = design.shape[0]
        self._is_item_feature = design.occurrences(np.ones(n_items)) > 0
        self._formula = machine.formula()
        self._item_outputs = machine.outputs(item_rows) - machine.outputs(np.zeros((1, machine.n_features)))
        self._ids = None if ids is None else _distinct_ids(ids, n_items)
        self._rows_by_id = {} if self._ids is None else {item: row for row, item in enumerate(self._ids.tolist())}

    @quiet()
    def scores(self, user_row: Any) -> np.ndarray:
        """Return the scores (n_items,): expected levels, or the output before any link.

        Parameters
        ----------
        user_row : array-like or sparse matrix of shape (1, d)
            The features of the user and of the context; features of items are 0.

        Raises
        ------
        ValueError
            For several rows, or a feature that an item has, too.
        """
        design = self._model.design(user_row, "user_row")
        if design.shape[0] != 1:
            raise ValueError(f"user_row must be a single row, of shape (1, d), got {design.shape[0]} rows")
        (row,) = dense_rows(design)
        features = np.flatnonzero(row)
        shared = features[self._is_item_feature[features]]
        if len(shared):
            raise ValueError(f"user_row and item_rows both have the feature {shared[0]}; set it to 0 in one of them")
        values = row[features]
        user_output = self._formula.of_columns(features).outputs(DenseDesign(values[None]))
        user_products = (self._left[:, features] @ values)[:, None] * self._weights
        outputs = self._right.T @ user_products
        outputs += self._item_outputs
        outputs += user_output
        if not np.isfinite(outputs).all():
            raise ValueError("the outputs overflow, as the numbers of user_row are too large; scale it as in training")
        return self._model.predictions_of(outputs) if self._model.target == "ordinal" else outputs[:, 0]

    def rank(self, user_row: Any, n: int, *, exclude: Any = ()) -> Ranking:
        """Return the n items with the largest scores, or all if there are fewer; of equal scores, the first ones.

        Parameters
        ----------
        user_row : array-like or sparse matrix of shape (1, d)
        n : int
        exclude : array-like, optional
            Rows of items to leave out, such as items that the user has rated; ids if the ranker has ids.

        Raises
        ------
        TypeError, ValueError
            As :meth:`scores`, and for rows or ids that do not exist.
        """
        n = check_count(n, "n")
        scores = self.scores(user_row)
        rows = np.delete(np.arange(len(scores)), self._excluded_rows(exclude, len(scores)))
        scores = scores[rows]
        least = np.partition(scores, -n)[-n] if n < len(scores) else -np.inf
        best = np.flatnonzero(scores >= least)
        best = best[np.argsort(-scores[best], kind="stable")][:n]
        items = rows[best] if self._ids is None else self._ids[rows[best]]
        return Ranking(items, scores[best])

    def _excluded_rows(self, exclude: Any, n_items: int) -> np.ndarray:
        """Return the rows of items to leave out, which are given as rows or as ids."""
        rows = np.asarray(exclude)
        if self._ids is not None:
            names = rows.ravel().tolist()
            unknown = [name for name in names if name not in self._rows_by_id]
            if unknown:
                raise ValueError(f"exclude must hold ids of items, got {unknown[0]!r}, which is not in ids")
            return np.array([self._rows_by_id[name] for name in names], np.intp)
        if not rows.size:
            return np.zeros(0, np.intp)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise TypeError(f"exclude must hold rows of items, integers, got dtype {rows.dtype} and shape {rows.shape}")
        if rows.min() < 0 or rows.max() >= n_items:
            raise ValueError(
                f"exclude must hold rows of items, from 0 to {n_items - 1}, got {rows.min()} to {rows.max()}"
            )
        return rows


def _distinct_ids(ids: Any, n_items: int) -> np.ndarray:
    """Return the ids of the items, which must differ."""
    distinct, codes = distinct_labels(ids, "ids")
    if codes.shape != (n_items,) or len(distinct) < n_items:
        raise ValueError(
            f"ids must hold another id for each of the {n_items} items, got {len(distinct)} in shape {codes.shape}"
        )
    return distinct[codes]


class Similar(NamedTuple):
    """A feature, and the cosine of its interactions with the given feature's, shrunk if counts are given."""

    feature: int
    cosine: float


@quiet()
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
    """Return the k features whose interactions are most like a given feature's.

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
    d = machine.n_features
    k = check_count(k, "k")
    (feature,) = _indices([feature], "feature", d)
    among = _indices(among, "among", d)
    if partners is None:
        partners = np.setdiff1d(np.arange(d), [*among, feature])
    partners = _indices(partners, "partners", d)
    if not len(partners):
        raise ValueError("partners is empty: there are no features to interact with; give the users' features, say")
    weights, (left, right) = products(units, V, 2)
    # <t_j, t_l> for the interactions t_j[p, c] = sum_r left_rj right_rp weights_rc.
    metric = (weights @ weights.T) * (right[:, partners] @ right[:, partners].T)
    others = among[among != feature]
    inner = left[:, others].T @ (metric @ left[:, feature])
    lengths = np.sqrt(np.maximum(np.sum(left[:, others] * (metric @ left[:, others]), axis=0), 0.0))
    own = np.sqrt(max(left[:, feature] @ metric @ left[:, feature], 0.0))
    interacts = (lengths > 0) & (own > 0)
    candidates = others[interacts]
    cosines = np.clip(inner[interacts] / (lengths[interacts] * (own or 1.0)), -1.0, 1.0)
    if counts is not None:
        cosines = cosines * reliabilities(counts, shrinkage, d, "features")[candidates]
    order = np.argsort(-cosines, kind="stable")[:k]
    return [Similar(int(candidates[place]), float(cosines[place])) for place in order]


def reliabilities(counts: Any, shrinkage: float, size: int, things: str) -> np.ndarray:
    """Return n / (n + shrinkage) for the counts n of features or items; 0 where n is 0."""
    shrinkage = check_nonnegative(shrinkage, "shrinkage")
    counts = finite_numbers(counts, "counts")
    if counts.shape != (size,) or counts.min() < 0:
        raise ValueError(f"counts must hold a number >= 0 for each of the {size} {things}, got {shown(counts)}")
    return counts / np.where(counts > 0, counts + shrinkage, 1.0)


def _indices(values: Any, name: str, d: int) -> np.ndarray:
    """Return distinct indices of features, ascending."""
    array = np.unique(np.asarray(list(values) if np.iterable(values) else values))
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array[0] < 0 or array[-1] >= d)):
        raise ValueError(f"{name} must hold indices of features, from 0 to {d - 1}, got {values!r}")
    return array.astype(np.intp)
