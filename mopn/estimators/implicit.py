"""The estimator of implicit feedback: a convex factorization with a proven gap, options chosen on held-out pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mopn.core.regularizers import Ratio
from mopn.data.features import checked_features, column_lengths
from mopn.data.interactions import checked_interactions
from mopn.estimators.base import raise_interruption
from mopn.estimators.callbacks import print_progress
from mopn.estimators.fit_warnings import warn_of_failure
from mopn.estimators.parameters import COMMON
from mopn.implicit.pairs import Pairs
from mopn.implicit.problem import ImplicitProblem
from mopn.models.base import Fitted
from mopn.models.implicit import ImplicitModel, Reasons, Recommendations
from mopn.ranking import ndcg_at_k
from mopn.solvers import AlternatingLeastSquares, Result, Status, Trace, minimize
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.checks import Rule, check_nonnegative, check_positive, count

# Strengths that are tried, relative to the largest singular value, the largest first.
_RATIOS = (0.14, 0.1, 0.07, 0.05, 0.035, 0.025)
# Weights of unobserved pairs that are tried: the strength is chosen with the first.
_WEIGHTS = (0.3, 1.0, 0.1)
# Strengths in a row without a better score after which the search ends.
_PATIENCE = 1
# Part of the pairs that is held out.
_HELD_OUT = 0.1
# Another weight than the first must be better by this factor, as means over users are uncertain.
_WEIGHT_MARGIN = 1.03
# Length of the scored lists, and the largest number of users whose lists are scored.
_LIST_LENGTH = 10
_MOST_SCORED_USERS = 1000
# Relative tolerance and largest number of sweeps of a fit of the choice, which is not proven.
_CHOICE_TOL = 3e-3
_CHOICE_SWEEPS = 3

# Length of a column of features, where an id's column has 1. Scores by the features of n items then pay 1 / 0.3^2 times
# the ridge of scores by ids; by unscaled columns they would pay 1 / n, and unobserved pairs hardly count. Lists
# are equally good from 0.2 to 0.5 (benchmarks/recommender).
_FEATURE_LENGTH = 0.3

# Sweeps of a fit, at most, by default.
_MAX_SWEEPS = 100

_STRENGTH = Rule(
    "a finite number > 0, a mopn.Ratio",
    lambda value: value if isinstance(value, Ratio) else check_positive.convert(value),
).or_auto()
_RULES = {
    "strength": _STRENGTH,
    "unobserved_weight": check_positive.or_auto(),
    "alpha": check_nonnegative,
    "max_units": count().or_none(),
    **{name: COMMON[name] for name in ("tol", "max_iter", "max_time", "verbose", "random_state")},
}


class _Tried(NamedTuple):
    """Options and their mean nDCG on held-out pairs."""

    ratio: float
    weight: float
    score: float


class _Chosen(NamedTuple):
    """The chosen options, a fit of other pairs to start from, and all tried options."""

    strength: Any
    weight: float
    start: Result | None = None
    tried: Any = ()


class _Features(NamedTuple):
    """Features of users and of items, or None, and the factors (p,) that scale their columns for the fit."""

    users: Any
    items: Any
    user_scales: Any
    item_scales: Any

    def scaled(self) -> dict[str, Any]:
        """Return the features of the problem, by name."""
        users = None if self.users is None else _times(self.users, self.user_scales)
        items = None if self.items is None else _times(self.items, self.item_scales)
        return {"user_features": users, "item_features": items}


def _times(features: Any, scales: np.ndarray) -> Any:
    return features @ sparse.diags_array(scales) if sparse.issparse(features) else features * scales


def _features(user_features: Any, item_features: Any, shape: tuple[int, int]) -> _Features:
    users = None if user_features is None else checked_features(user_features, shape[0], "user_features")
    items = None if item_features is None else checked_features(item_features, shape[1], "item_features")
    return _Features(users, items, _scales(users), _scales(items))


def _scales(features: Any) -> np.ndarray | None:
    return None if features is None else _FEATURE_LENGTH / column_lengths(features)


class ImplicitFactorization(Fitted, BaseEstimator):
    """Recommend items from clicks, purchases or plays: matrix factorization of implicit feedback with a proven gap.

    The loss is the one of alternating least squares for implicit feedback (iALS): observed pairs are ones with a
    confidence, all pairs are zeros with a small weight. A strength takes the place of the number of factors, which is
    found. The gap to the best matrix of any rank is proven. See
    :class:`mopn.ImplicitProblem`.

    Parameters
    ----------
    strength : float, Ratio or "auto", default "auto"
        Strength of the penalty, above 0; a :class:`mopn.Ratio` is relative to the strength from which on nothing is
        learned. "auto": chosen by the nDCG of the first ten items, on a tenth of the pairs.
    unobserved_weight : float or "auto", default "auto"
        Weight of each pair as a zero, above 0. "auto": chosen likewise; with a given strength 0.3 is the first.
    alpha : float, default 0.0
        The confidence of an observed pair is 1 + alpha * count. By default counts make no difference.
    max_units : int, optional
        Largest number of factors; default as many as the strength allows.
    tol : float, default 1e-3
        The fit ends when the gap is proven to be at most this part of the objective.
    max_iter : int, optional
        Largest number of sweeps; default 100.
    max_time : float, optional
        Seconds of the choice and the fit.
    verbose : int, default 0
    random_state : int, RandomState or None, default 0
        Seed that draws the held-out pairs.

    Attributes
    ----------
    model_ : ImplicitModel
        For recommendations without scikit-learn; ``save`` writes it.
    strength_, unobserved_weight_ : float
        The options of the fit.
    user_factors_, item_factors_ : ndarray of shape (n, k)
    n_units_ : int
    objective_, gap_, relative_gap_ : float
        The objective and its proven gap to the minimum over all matrices.
    scores_ : list of tuple
        Tried options: strength relative to the largest, weight of unobserved pairs, nDCG. Empty without a choice.
    status_ : Status
    n_iter_ : int
    trace_ : Trace
    n_features_in_ : int
        The number of items.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from mopn.estimators import ImplicitFactorization
    >>> rng = np.random.default_rng(0)
    >>> chance = np.where(np.arange(60)[:, None] % 2 == np.arange(40) % 2, 0.5, 0.05)
    >>> likes = sparse.csr_array((rng.random((60, 40)) < chance).astype(int))
    >>> model = ImplicitFactorization().fit(likes)
    >>> items, scores = model.recommend(7, n=5)
    >>> (items % 2).tolist(), model.relative_gap_ < 1e-3
    ([1, 1, 1, 1, 1], True)
    """

    model_: ImplicitModel
    status_: Status
    trace_: Trace

    def __init__(
        self,
        strength: Any = "auto",
        unobserved_weight: Any = "auto",
        alpha: float = 0.0,
        max_units: int | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.strength = strength
        self.unobserved_weight = unobserved_weight
        self.alpha = alpha
        self.max_units = max_units
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self, interactions: Any, y: Any = None, *, user_features: Any = None, item_features: Any = None
    ) -> ImplicitFactorization:
        """Fit the factors.

        Parameters
        ----------
        interactions : sparse matrix of shape (n_users, n_items)
            Above 0 where a user clicked, bought or rated an item: counts or weights, of any SciPy format and type of
            real numbers. Duplicates are summed, explicit zeros are no interactions.
        y : None
            Not used.
        user_features : array-like or sparse matrix of shape (n_users, p), optional
            Features of users, next to their ids. Columns are scaled to 0.3 times the length of an id's column: else
            unobserved pairs would hardly count in a large group.
        item_features : array-like or sparse matrix of shape (n_items, q), optional
            Features of items, likewise; by them new items are recommended.

        Raises
        ------
        TypeError, ValueError
            For interactions that are not sparse, NaN, negative numbers, or no interactions; for features that are not
            numbers, or of another number of rows; for options out of range.
        """
        for name, rule in _RULES.items():
            rule(getattr(self, name), name)
        deadline = Deadline(self.max_time)
        stored = isinstance(interactions, Pairs)
        liked = interactions.liked if stored else checked_interactions(interactions, "interactions")
        if not liked.nnz:
            raise ValueError("interactions holds no pair above 0, so there is nothing to learn from")
        features = _features(user_features, item_features, liked.shape)
        choice = self._choose(liked, features, deadline)
        if stored:
            problem = ImplicitProblem(interactions, choice.strength, choice.weight, **features.scaled())
        else:
            problem = self._problem(liked, features, choice.strength, choice.weight)
        solver = AlternatingLeastSquares(max_units=self.max_units)
        most = _MAX_SWEEPS if self.max_iter is None else self.max_iter
        result = self._minimized(problem, solver, self.tol, most, deadline, choice.start, verbose=self.verbose)
        warn_of_failure(result)
        self.scores_ = list(choice.tried)
        self._set(problem, liked, features, result)
        return self

    def _problem(self, liked: sparse.csr_array, features: _Features, strength: Any, weight: float) -> ImplicitProblem:
        confidences = sparse.csr_array((1.0 + self.alpha * liked.data, liked.indices, liked.indptr), shape=liked.shape)
        return ImplicitProblem(confidences, strength, weight, **features.scaled())

    def _minimized(
        self,
        problem: ImplicitProblem,
        solver: AlternatingLeastSquares,
        tol: float,
        most: int,
        deadline: Deadline,
        start: Result | None,
        verbose: int = 0,
    ) -> Result:
        seconds = None if self.max_time is None else deadline.left
        options: dict[str, Any] = {"tol": tol, "max_iter": most, "max_time": seconds, "verbose": verbose}
        result = minimize(problem, solver, start=start, **options)
        raise_interruption(result)
        return result

    def _set(self, problem: ImplicitProblem, liked: sparse.csr_array, features: _Features, result: Result) -> None:
        self.model_ = self._model(problem, liked, features, result)
        self.strength_ = problem.strength
        self.unobserved_weight_ = problem.unobserved_weight
        self.user_factors_ = self.model_.user_factors
        self.item_factors_ = self.model_.item_factors
        self.n_units_ = result.P.shape[1]
        self.objective_ = result.fun
        self.gap_ = result.gap
        self.relative_gap_ = result.relative_gap
        self.status_ = result.status
        self.n_iter_ = max(result.nit, 1)
        self.trace_ = result.trace
        self.n_features_in_ = liked.shape[1]

    def _model(
        self, problem: ImplicitProblem, liked: sparse.csr_array, features: _Features, result: Result
    ) -> ImplicitModel:
        parts = liked.indptr, liked.indices, liked.data
        options: dict[str, Any] = {
            "strength": problem.strength,
            "unobserved_weight": problem.unobserved_weight,
            "alpha": float(self.alpha),
        }
        n_users, n_items = problem.pairs.n_ids
        user_factors, item_factors = map(np.array, problem.pairs.vectors(result.P, result.Q))
        if features.users is not None:
            options["user_feature_factors"] = features.user_scales[:, None] * result.P[n_users:]
            options["user_offsets"] = user_factors - result.P[:n_users]
        if features.items is not None:
            options["item_feature_factors"] = features.item_scales[:, None] * result.Q[n_items:]
            options["item_squares"] = result.Q.T @ result.Q
        return ImplicitModel(user_factors, item_factors, *parts, **options)

    # -- the choice -------------------------------------------------------------------------------------------------

    def _choose(self, liked: sparse.csr_array, features: _Features, deadline: Deadline) -> _Chosen:
        """Return strength and weight, a fit to start from, and the scores of all tried options."""
        weights = _WEIGHTS if self.unobserved_weight == "auto" else (float(self.unobserved_weight),)
        chooses_strength = isinstance(self.strength, str)
        ratios: tuple[Any, ...] = tuple(map(Ratio, _RATIOS)) if chooses_strength else (self.strength,)
        if len(weights) == len(ratios) == 1:
            return _Chosen(self.strength, weights[0])
        train, held = held_out_pairs(liked, check_random_state(self.random_state))
        if not held.nnz:
            middle = Ratio(_RATIOS[2]) if chooses_strength else self.strength
            return _Chosen(middle, weights[0])
        walk = _Walk(self, train, held, features, deadline)
        walk.try_strengths(ratios, weights[0])
        for weight in weights[1:]:
            walk.try_strengths([walk.best.strength], weight)
        return walk.best._replace(tried=walk.tried)

    # -- use --------------------------------------------------------------------------------------------------------

    def recommend(
        self, users: Any = None, n: int = 10, *, filter_already_liked: bool = True, user_features: Any = None
    ) -> Recommendations:
        """Return the n best items of users; see :meth:`mopn.models.implicit.ImplicitModel.recommend`.

        Users of whom nothing is known get the items that most users liked, with scores of 0.

        Parameters
        ----------
        users : int, array-like of int or sparse matrix of shape (m, n_items), optional
            Users of the fit, default all; or interactions of new or changed users, a row each.
        n : int, default 10
        filter_already_liked : bool, default True
        user_features : array-like or sparse matrix of shape (m, p), optional
            Features of new users; default zeros.
        """
        options = {"filter_already_liked": filter_already_liked, "user_features": user_features}
        return self._fitted_model().recommend(users, n, **options)

    def recommend_new_items(self, item_features: Any, users: Any = None, n: int = 10) -> Recommendations:
        """Return the n best of new items for users of the fit, default all; ids are the rows of the features.

        Parameters
        ----------
        item_features : array-like or sparse matrix of shape (m, q)
        users : int or array-like of int, optional
        n : int, default 10
        """
        return self._fitted_model().recommend_new_items(item_features, users, n)

    def similar_items(self, items: Any, n: int = 10) -> Recommendations:
        """Return the n items with the largest cosines to given ones.

        Parameters
        ----------
        items : int or array-like of int
        n : int, default 10
        """
        return self._fitted_model().similar_items(items, n)

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the scores of pairs of users and items, equally long arrays of ids."""
        return self._fitted_model().predict(users, items)

    def fold_in(self, interactions: Any, user_features: Any = None) -> np.ndarray:
        """Return the factors (m, k) of new users with interactions (m, n_items) and features (m, p), in closed form."""
        return self._fitted_model().fold_in(interactions, user_features)

    def fold_in_items(self, item_features: Any) -> np.ndarray:
        """Return the factors (m, k) of new items with features (m, q)."""
        return self._fitted_model().fold_in_items(item_features)

    def explain(self, user: Any, item: int, user_features: Any = None) -> Reasons:
        """Return how much each item that a user liked adds to the score of an item.

        Parameters
        ----------
        user : int or sparse matrix of shape (1, n_items)
        item : int
        user_features : array-like or sparse matrix of shape (1, p), optional
            Features of a new user.
        """
        return self._fitted_model().explain(user, item, user_features)

    def _fitted_model(self) -> ImplicitModel:
        check_is_fitted(self)
        return self.model_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _Walk:
    """Fits to the remaining pairs, each from the one before, with their scores on the held-out pairs."""

    def __init__(
        self,
        estimator: ImplicitFactorization,
        train: sparse.csr_array,
        held: sparse.csr_array,
        features: _Features,
        deadline: Deadline,
    ) -> None:
        self.estimator = estimator
        self.train = train
        self.held = held
        self.features = features
        self.deadline = deadline
        self.solver = AlternatingLeastSquares(max_units=estimator.max_units, prove=False)
        self.result: Result | None = None
        self.tried: list[_Tried] = []
        self.best = _Chosen(None, 0.0)
        self.best_score = -1.0

    def try_strengths(self, strengths: Any, weight: float) -> None:
        """Try strengths with a weight, until some in a row gave no better score, or half of the time is over."""
        worse = 0
        for strength in strengths:
            if worse >= _PATIENCE or (self.tried and self.deadline.is_over):
                return
            problem = self.estimator._problem(self.train, self.features, strength, weight)
            deadline = self.deadline.share(0.5)
            limits = _CHOICE_TOL, _CHOICE_SWEEPS, deadline
            self.result = self.estimator._minimized(problem, self.solver, *limits, self.result)
            score = self._score(problem, self.result)
            ratio = problem.strength / problem.largest_singular_value
            self.tried.append(_Tried(ratio, weight, score))
            print_progress(self.estimator.verbose, f"strength {ratio:.3g}, weight {weight:g}: nDCG {score:.4f}")
            worse += 1
            is_first = weight == self.tried[0].weight
            if score > self.best_score * (1.0 if is_first else _WEIGHT_MARGIN):
                worse = 0
                self.best = _Chosen(strength, weight, self.result)
                self.best_score = score

    def _score(self, problem: ImplicitProblem, result: Result) -> float:
        users = np.flatnonzero(np.diff(self.held.indptr))
        if len(users) > _MOST_SCORED_USERS:
            users = users[np.linspace(0, len(users) - 1, _MOST_SCORED_USERS).astype(int)]
        of_users, of_items = problem.pairs.vectors(result.P, result.Q)
        scores = of_users[users] @ of_items.T
        return ndcg_at_k(self.held[users], scores, _LIST_LENGTH, seen=self.train[users])


def held_out_pairs(liked: sparse.csr_array, rng: np.random.RandomState) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return the pairs to fit to, and a tenth of them that is held out."""
    held = np.zeros(liked.nnz, bool)
    held[rng.permutation(liked.nnz)[: int(_HELD_OUT * liked.nnz)]] = True
    parts = []
    for mask in (~held, held):
        # A copy, as zeros are dropped in place.
        part = sparse.csr_array(liked, copy=True)
        part.data[~mask] = 0.0
        part.eliminate_zeros()
        parts.append(part)
    return parts[0], parts[1]
