"""Interactions in a model: the weights of given products of features, and the largest weights."""

import heapq
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mopn.data.validation import check_count
from mopn.models.base import Fitted, check_scale, feature_groups, fitted_model
from mopn.models.quadratic import products, units_and_weights
from mopn.models.table import TableModel
from mopn.solvers.numerics.precision import NULL
from mopn.solvers.tools.decorators import quiet

# Incomplete products that a search of degree 3 or more visits at most; these take some seconds.
MAX_NODES = 200_000


class Interaction(NamedTuple):
    """A product of distinct features, its weight in one output or its weights (m,) in all, and the features' names."""

    features: tuple[int, ...]
    weight: Any
    names: tuple[str, ...]


class Interactions(list[Interaction]):
    """The strongest interactions, in order of decreasing size, or of decreasing length of the weights (m,).

    Attributes
    ----------
    bound : float
        An upper bound of the absolute values, or lengths, of all interactions that are not in the list.
    exact : bool
        Whether these are proven to be the strongest, up to rounding.
    """

    def __init__(self, items: Sequence[Interaction], bound: float) -> None:
        super().__init__(items)
        self.bound = bound
        # Lengths are computed for many interactions at once, and for one: they differ by rounding.
        self.exact = bound <= (_length(items[-1].weight) * (1.0 + NULL) if items else 0.0)


@quiet()
def interaction_weights(model: Fitted, features: Any) -> np.ndarray:
    """Return the weights in the outputs of products of distinct features.

    For factorization machines the weight is the tensor's entry, W_{j1,...,jt} = sum_s lambda_s p_{j1,s} ... p_{jt,s}
    (section 2 of Blondel et al., NIPS 2016). For polynomial networks it is multiplied by the number of permutations of
    the indices, as the sum contains each of them. Weights of lower degrees by dummies are included; a linear term is
    not.

    Parameters
    ----------
    model : Model, FactorizationModel or fitted estimator
    features : sequence of tuples
        Tuples of indices, or of names if the model has ``feature_names``; all of one length, the degree.

    Returns
    -------
    ndarray of shape (len(features), m), or (len(features),) of one output

    Raises
    ------
    ValueError
        For a degree without interactions in the model, and for unknown or repeated features in a tuple.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> model = mopn.Model(np.array([[1.0, 2.0, 0.0]]), np.array([[0.5]]), kernel="anova", target="vector")
    >>> mopn.explain.interaction_weights(model, [(0, 1), (1, 2)])
    array([1., 0.])
    """
    machine: Any = fitted_model(model)
    units, V = units_and_weights(machine)
    tuples = feature_groups(features, machine.feature_names, machine.n_features, "features")
    if len({len(group) for group in tuples}) > 1:
        raise ValueError("all tuples of features must have the same length")
    found = np.zeros((0, V.shape[1]))
    if tuples:
        weights, factors = products(units, V, len(tuples[0]))
        index = np.array(tuples)
        found = np.prod([F[:, index[:, a]] for a, F in enumerate(factors)], axis=0).T @ weights
    return found if found.shape[1] > 1 else found[:, 0]


@quiet()
def strongest_interactions(model: Fitted, k: int = 10, degree: int = 2, *, scale: Any = None) -> Interactions:
    """Return the k products of ``degree`` distinct features whose weights are largest in absolute value.

    With several outputs, the length of the weights (m,) counts, their 2-norm; for the interactions in a single output
    see :meth:`mopn.FactorizationModel.from_outputs`. In a model of tables the interactions are pairs of columns: the
    weight of a pair is the length of the array of weights of all products of a feature of one and a feature of the
    other. :func:`effects` tells how much such a pair adds in given data.

    Branch and bound over the features in order of decreasing size; no tensor is formed. The size of a feature is the
    l_t norm of its row of P, weighted by ``|lambda|`` or the lengths of the output weights, so a product of sizes
    bounds the length of a weight (Hölder). Pairs are exact. Higher degrees are exact unless the search ends after
    200,000 incomplete products: then ``exact`` is False, and ``bound`` bounds the weights that may be missing.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    k : int, default 10
    degree : int, default 2
        The number t of features in a product, at least 2.
    scale : array-like of shape (d,), optional
        Typical sizes of the features, such as ``X.std(axis=0)``: the weights are for X / scale, comparable where
        features have several units. Default 1.

    Returns
    -------
    Interactions
        A list of at most k items, none of weight 0. Weights are numbers for one output, else arrays (m,).
        The names are the model's feature names, or else numbers.

    Raises
    ------
    ValueError
        For a degree without interactions in models of this form, whatever their numbers are.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]), np.eye(2), kernel="anova")
    >>> [(item.features, item.weight.tolist()) for item in mopn.explain.strongest_interactions(model)]
    [((0, 2), [2.0, 0.0]), ((1, 2), [0.0, 1.0])]
    """
    machine: Any = fitted_model(model)
    k = check_count(k, "k")
    degree = check_count(degree, "degree", least=2)
    labels = list(map(str, range(machine.n_features) if machine.feature_names is None else machine.feature_names))
    if isinstance(machine, TableModel):
        if degree > 2 or scale is not None:
            raise ValueError(
                "pairs of columns of a table have weights for features of their own scale, and no third column: leave "
                "out degree and scale; mopn.explain.effects(model, X).sizes() is for columns as they vary in X"
            )
        return _strongest_pairs_of_columns(machine, k, labels)
    units, V = units_and_weights(machine)
    weights, factors = products(units, V, degree)
    if scale is not None:
        factors = [F * check_scale(scale, machine.n_features) for F in factors]
    search = _ProductSearch(weights, factors, k, MAX_NODES if degree > 2 else None)
    search.extend((), np.ones(len(weights)), 1.0)
    items = []
    for length, features, weight in sorted(search.best, key=lambda item: (-item[0], item[1])):
        if length:
            items.append(_interaction(features, weight, labels))
    # An upper bound of the moduli of all weights that are not among the best.
    return Interactions(items, max(search.skipped, search.least))


def _strongest_pairs_of_columns(model: TableModel, k: int, labels: list[str]) -> Interactions:
    """Return the pairs of columns with the longest arrays of weights of products of their features."""
    units, V = units_and_weights(model.model)
    weights, (P, _) = products(units, V, 2)
    members = (model.encoding.owners[:, None] == np.arange(model.n_features)).astype(np.float64)
    lengths = np.sqrt([members.T @ ((P.T * v) @ P) ** 2 @ members for v in weights.T])
    pairs = []
    for a, b in itertools.combinations(range(model.n_features), 2):
        if lengths[:, a, b].any():
            pairs.append(_interaction((a, b), lengths[:, a, b], labels))
    pairs.sort(key=lambda item: -_length(item.weight))
    bound = _length(pairs[k].weight) if len(pairs) > k else 0.0
    return Interactions(pairs[:k], bound)


def _interaction(features: tuple[int, ...], weights: np.ndarray, labels: list[str]) -> Interaction:
    """Return an interaction with its weights (m,), or its weight in a single output."""
    weight = weights if len(weights) > 1 else float(weights[0])
    return Interaction(features, weight, tuple(labels[j] for j in features))


def _length(weight: Any) -> float:
    return float(np.linalg.norm(weight))


class _ProductSearch:
    """Depth-first search over products of features, in order of decreasing size."""

    def __init__(self, weights: np.ndarray, factors: list[np.ndarray], k: int, max_nodes: int | None) -> None:
        t = len(factors)
        lengths = np.linalg.norm(weights, axis=1)
        sizes = np.max([(lengths @ np.abs(F) ** t) ** (1.0 / t) for F in factors], axis=0)
        self.order = np.argsort(-sizes, kind="stable")
        self.sizes = sizes[self.order]
        self.factors = [F[:, self.order] for F in factors]
        self.weights, self.k, self.nodes_left = weights, k, max_nodes
        # A heap, the smallest first. No two items have the same features, so that arrays are never compared.
        self.best: list[tuple[float, tuple[int, ...], np.ndarray]] = []
        self.skipped = 0.0

    @property
    def least(self) -> float:
        """The length that a product must exceed to be among the best."""
        return self.best[0][0] if len(self.best) == self.k else 0.0

    def extend(self, prefix: tuple[int, ...], product: np.ndarray, size: float) -> None:
        """Search the products that begin with a prefix, whose factors multiply to ``product`` and sizes to ``size``."""
        depth = len(prefix)
        first = prefix[-1] + 1 if prefix else 0
        if depth == len(self.factors) - 1:
            self._complete(prefix, product, size, first)
            return
        for j in range(first, len(self.sizes)):
            # No feature after j is larger than j.
            bound = size * self.sizes[j] ** (len(self.factors) - depth)
            if bound <= self.least:
                return
            if self.nodes_left is not None:
                if self.nodes_left <= 0:
                    self.skipped = max(self.skipped, bound)
                    return
                self.nodes_left -= 1
            self.extend((*prefix, j), product * self.factors[depth][:, j], size * self.sizes[j])

    def _complete(self, prefix: tuple[int, ...], product: np.ndarray, size: float, first: int) -> None:
        """Put the best products of a prefix and one more feature, from ``first`` on, into the heap."""
        # Sizes decrease, so the candidates come first.
        too_small = int(np.searchsorted(self.sizes[::-1] * size, self.least, side="right"))
        stop = len(self.sizes) - too_small
        if stop <= first:
            return
        values = (self.weights.T * product) @ self.factors[-1][:, first:stop]
        moduli: np.ndarray = np.sqrt(np.einsum("cj,cj->j", values, values)) if len(values) > 1 else np.abs(values[0])
        candidates = np.flatnonzero(moduli > self.least)
        if len(candidates) > self.k:
            candidates = candidates[np.argpartition(-moduli[candidates], self.k - 1)[: self.k]]
        for c in map(int, candidates):
            features = tuple(sorted(int(self.order[j]) for j in (*prefix, first + c)))
            item = (float(moduli[c]), features, values[:, c].copy())
            if len(self.best) < self.k:
                heapq.heappush(self.best, item)
            else:
                heapq.heappushpop(self.best, item)
