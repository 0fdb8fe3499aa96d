"""A scale for every field of features, chosen on held-out samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mopn.data.row_blocks import RowBlocks
from mopn.estimators.base import NetworkEstimator
from mopn.estimators.callbacks import begin_fit, samples_of, with_callbacks
from mopn.estimators.field_scales import FieldSearch, field_of_features, readied, strength_of_ones
from mopn.estimators.search import Search
from mopn.estimators.single_output import SingleOutputEstimator
from mopn.solvers.tools.checks import shown

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["FieldScaleCV"]


class FieldScaleCV(Search):
    r"""Give every field of features, such as users, items or genres, a scale of its own, chosen on held-out samples.

    The columns of a field are multiplied by its scale, so their coefficients are penalised by one over its square:
    what a field has to say decides how much it is shrunk, as in Bayesian factorization machines, which learn a variance
    for every field (Rendle, Factorization Machines with libFM, ACM TIST 2012). First all scales together are multiplied
    or divided by :math:`\sqrt 2`, up to six times, which chooses the strength of the penalty, then those of one field
    after the other. A step is kept if the loss on a tenth of the samples (of 1000 or fewer, a third) falls by more than
    its standard error, and scales other than ones only if a fit that starts anew has a smaller loss than ones, too. The
    last fit is to all samples. Copies of a sample are held out together; samples of rows that repeat by nature, as
    those of few users and items do, one by one: repeat such rows, instead of weighting them.

    Parameters
    ----------
    estimator : estimator
        Any estimator of :mod:`mopn.estimators` but those of tables: factorization machines of one output, and all
        estimators of networks, such as :class:`OrdinalFMRegressor`.
    fields : sequence of int, mapping of str to sequences, or None, default None
        The numbers of columns of fields that follow each other; or the columns of each field by its name, as indices or
        names. None for the tables of :class:`mopn.RelationBlocks`, and for a single field of all columns of other X.

    Attributes
    ----------
    field_scales_ : ndarray of shape (F,)
        The scales of the fields, in the order of ``fields``.
    best_estimator_ : estimator
        The estimator, fitted to all samples. Coefficients and ``model_`` are for X as given.
    cv_results_ : dict of ndarray
        A row for everything that was tried, ones first: "field_scales" (q, F) and "mean_test_loss" (q,), the mean loss
        of the held-out samples.
    best_index_ : int
        The row of ``field_scales_``.

    See Also
    --------
    PathCV : The choice of strength and number of units.
    mopn.NetworkProblem : ``lengths``, for scales of your own.

    Notes
    -----
    A fit takes two to seven times as long as one of the estimator: the fits of ones, of the chosen scales and of all
    samples, and two or more fits a field that go on from the best one before. The penalties are those of the estimator
    in all fits; a ``strength`` that is a :class:`mopn.Ratio` is the number that it is with scales of ones, as in
    ``best_estimator_`` if it has others. In a grid search over ``estimator__alpha`` scales are chosen for every
    candidate.
    Networks with ``max_units=None`` have at most 50 units while scales are chosen.

    Examples
    --------
    Users and items decide, and days are noise:

    >>> import numpy as np
    >>> from mopn.estimators import FactorizationMachineRegressor, FieldScaleCV
    >>> rng = np.random.default_rng(0)
    >>> users, items, days = rng.integers(0, 20, 2000), rng.integers(0, 10, 2000), rng.integers(0, 50, 2000)
    >>> X = np.hstack([np.eye(20)[users], np.eye(10)[items], np.eye(50)[days]])
    >>> y = rng.normal(size=(20, 10))[users, items] + rng.normal(size=2000)
    >>> search = FieldScaleCV(FactorizationMachineRegressor(random_state=0), fields=[20, 10, 50]).fit(X, y)
    >>> users, items, days = search.field_scales_
    >>> bool(days < items), search.predict(X[:3]).shape
    (True, (3,))
    """

    estimator: Any
    field_scales_: np.ndarray

    def __init__(self, estimator: Any, fields: Any = None) -> None:
        self.estimator = estimator
        self.fields = fields

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the scales, and fit to all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or RelationBlocks
            Training data, in memory.
        y : array-like of shape (n,) or (n, m)
            As for the estimator.
        sample_weight : array-like of shape (n,), optional
            They count in held-out losses, too.

        Returns
        -------
        self
            The fitted search.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter are invalid; if ``fields`` does not hold every column once.
        """
        self._check(X)
        single = clone(self.estimator)
        single._check_parameters()
        ready, targets = readied(single, X, y, sample_weight)
        fields = field_of_features(self.fields, ready, ready.shape[1], getattr(single, "feature_names_in_", ()))
        task = begin_fit(self, samples_of(ready, targets.y, targets.sample_weight), 1)
        strength = strength_of_ones(single, ready, targets)
        single.set_params(**strength)
        search = FieldSearch(single, ready, targets, fields)
        self.field_scales_ = search.best.scales
        self.cv_results_ = {"field_scales": np.array(search.scales), "mean_test_loss": np.array(search.losses)}
        self.best_index_ = 0 if search.best is search.ones else len(search.scales) - 1
        best = clone(self.estimator)
        if self.best_index_:
            best.set_params(**strength)._lengths = self.field_scales_[fields]
        return self._refitted(best, task, X, y, sample_weight)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or RelationBlocks
        y : array-like of shape (n,) or (n, m)
        sample_weight : array-like of shape (n,), optional
        """
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight))

    def _check(self, X: Any) -> None:
        if not isinstance(self.estimator, NetworkEstimator | SingleOutputEstimator):
            raise TypeError(f"estimator must be one of mopn.estimators with a penalty, got {shown(self.estimator)}")
        if getattr(self.estimator, "_without_paths", None) is not None:
            raise TypeError(
                f"estimator must take columns of numbers in memory, and {type(self.estimator).__name__} does not"
            )
        if isinstance(X, RowBlocks):
            raise TypeError("samples are held out at random, which needs X in memory; give an array or sparse matrix")
