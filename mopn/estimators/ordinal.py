"""Regressors of ordered levels, such as ratings."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import ClassifierTags

from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.feature_scaling import ScaleName
from mopn.data.targets import as_targets, category_order
from mopn.data.values import as_array
from mopn.estimators.base import Scored
from mopn.estimators.encodings import LEVELS_FROM_TEXTS, LevelEncoding, warn_of_merged_levels
from mopn.estimators.fit_policy import FitPolicy
from mopn.estimators.fold_in import NetworkFoldIn
from mopn.estimators.network_estimator import NetworkEstimator
from mopn.losses.losses import Loss, LossName
from mopn.network.oracles import BasisOracle, OracleName
from mopn.solvers.conditional_gradient import RefitName
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.tools.checks import shown


class OrdinalRegressor(Scored, RegressorMixin, NetworkEstimator):
    """Base of the ordinal regressors: they fit around the frequencies of the levels."""

    levels_: np.ndarray
    """The sorted distinct values (m + 1,) of y; values that differ by rounding alone count as one. Ordered categories
    have their positions, from 0."""
    level_names_: np.ndarray | None
    """The categories of y in their order, whose positions ``levels_`` are; None if y was numbers."""

    _numeric_y = True
    # The expected level gains from the last refit for longer than labels do.
    _policy = FitPolicy(polish_tol=3e-4)

    def __init__(
        self,
        *,
        loss: LossName | Loss = "binary-logistic",
        norm: NormName = "l1/l2",
        strength: float | Ratio = 3.5,
        max_units: int | None = 10,
        refit: RefitName | CorrectiveStep = "full",
        oracle: OracleName | BasisOracle = "auto",
        fit_intercept: bool = False,
        scale: ScaleName | None = "large",
        alpha: float | None = 0.7,
        ridge: float = 0.0,
        tol: float = 5e-3,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            loss=loss,
            norm=norm,
            strength=strength,
            max_units=max_units,
            refit=refit,
            oracle=oracle,
            fit_intercept=fit_intercept,
            scale=scale,
            alpha=alpha,
            ridge=ridge,
            tol=tol,
            max_time=max_time,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn needs the number of probabilities of every estimator with predict_proba: one per level.
        tags.classifier_tags = ClassifierTags(multi_class=True)
        return tags

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the levels (n, n_levels) for X as for ``predict``; rows add up to 1."""
        X = self._checked(X)  # raises an error before the first fit
        return self.model_.predict_proba(X)

    def _plain_targets(self, y: Any, *, reset: bool = True) -> Any:
        """Return levels as numbers, ordered categories as their positions in the order of the fit."""
        found = category_order(y)
        if found is None or (found[0].dtype.kind in "fiu" and np.all(np.diff(found[0]) > 0)):
            names = None
        elif not found[1]:
            raise ValueError(
                f"y has categories without an order, {shown(found[0].tolist())}; give numbers, or categories with "
                "ordered=True"
            )
        else:
            names = found[0]
        if reset:
            self.level_names_ = names
        if names is None:
            numbers = super()._plain_targets(y, reset=reset)
            given = None if numbers is None or not reset else as_array(y, "y")
            if given is not None and given.dtype == object and given.ndim == 1:
                warn_of_merged_levels(given, numbers)
            return numbers
        known = getattr(self, "level_names_", None)
        known = [] if known is None else known.tolist()
        labels = as_targets(y, numeric=False)
        at = {name: float(position) for position, name in enumerate(known)}
        unknown = [label for label in labels.tolist() if label not in at]
        if unknown:
            raise ValueError(f"y has the category {shown(unknown[0])}, but the levels {known} in the training data")
        return np.array([at[label] for label in labels.tolist()])

    def _advice_of_texts(self) -> str:
        return LEVELS_FROM_TEXTS

    def _encoding(self) -> LevelEncoding:
        return LevelEncoding(self.loss, type(self).__name__.replace("Ordinal", "MultiOutput"))


class OrdinalFMRegressor(NetworkFoldIn, OrdinalRegressor):
    r"""Regressor of ordered levels, such as ratings: a multi-output factorization machine by ordinal McRank.

    Each level c but the last has an output, for the probability that y is at most the level: the logistic function of
    :math:`\mathrm{offset}_c + b_c + \langle w_c, x\rangle + \sum_r v_{rc} \sum_{i<j} h_{ri} x_i h_{rj} x_j`. All
    outputs are trained together and share their units. ``alpha=None`` omits the linear term; ``fit_intercept`` gives
    the units one by dummies. Predictions are expectations of y, after sorting probabilities that cross. Units
    :math:`h_r` and weights :math:`v_r` minimise a convex problem over all networks of any size, and the distance to its
    minimum is bounded (``gap_``).

    Parameters
    ----------
    loss : str or Loss, default "binary-logistic"
        "binary-logistic", or a :class:`mopn.Loss` per output with the link "logistic".
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1/l2"
        Norm of the output weights, which makes most units zero. With "l1/l2" and "l1/linf" the levels share units.
    strength : float or Ratio, default 3.5
        Strength of the penalty; larger means fewer units. A :class:`mopn.Ratio` is relative to the smallest
        strength whose solution is zero; a number multiplies the norm, next to the sum of the losses.
    max_units : int or None, default 10
        Limit on the units. A number asks for the best network of this size; with None units are added until the gap is
        at most ``tol``. With a number, a fit under "l1" is proven as far as a short time allows; under another norm, up
        to 5e7 rows times features times outputs.
    refit : {"full", "output", "none"} or one of FullRefit, OutputRefit, PlainStep, default "full"
        Correction after new units: refit units and output weights together (not convex, but smaller and better
        networks sooner), refit the output weights (convex), or take a conditional gradient step. An object sets its
        own tolerances.
    oracle : str or oracle, default "auto"
        Method of :func:`mopn.oracles.basis_oracle`, or an oracle, which finds and bounds units. ``"exact"`` proves
        more than ``"auto"``, and may take long with many features.
    fit_intercept : bool, default False
        Give the units linear terms, by dummy columns of ones in front of X, besides the term of ``alpha``.
    scale : {"large", "features", "data"} or None, default "large"
        "large" leaves the smallest features that make up a mean squared length of 2, such as users and items, and
        divides the larger ones, such as an age group, which would fit the noise of the many rows that share them.
        "features" divides each by its deviation, "data" all by one number. The fitted model is for X as given.
    alpha : float or None, default 0.7
        Strength of the penalty :math:`\frac{\alpha}{2} (\|W\|^2 + \|b\|^2 / 100)` of a linear term W with constants
        b, which shrinks every coefficient separately. None for no such term.
    ridge : float, default 0.0
        Strength of the ridge on the outputs as functions (:class:`mopn.NetworkProblem`): larger means smoother
        outputs of more units. ``fold_in`` takes models without it.
    tol : float, default 0.005
        Relative tolerance of the objective. With ``max_units`` the last refit ends at 3e-4 if ``tol`` is larger, as
        the expected level gains from that. With 0 only the limits stop a fit.
    max_time : float or None, default None
        Largest number of seconds for ``fit``; default no limit.
    warm_start : bool, default False
        Start from the network of the previous fit.
    random_state : int, RandomState or None, default None
        Seed of the validation split.
    verbose : int, default 0
        Print every ``verbose``-th round as a row of a table; 0 prints nothing.

    See Also
    --------
    OrdinalPNRegressor : The features' squares as well.

    Examples
    --------
    Ratings of users (first three features) for films (the other three), and of a user unknown for the first film:

    >>> import numpy as np
    >>> from mopn.estimators import OrdinalFMRegressor
    >>> X = np.vstack([np.r_[np.eye(3)[u], np.eye(3)[f]] for u in range(3) for f in range(3)])
    >>> y = [5, 1, 3, 4, 1, 3, 5, 2, 4]
    >>> regressor = OrdinalFMRegressor(strength=0.01).fit(X, y)
    >>> np.round(regressor.predict(X)).astype(int).tolist()
    [5, 1, 3, 4, 1, 3, 5, 2, 4]
    >>> regressor.levels_, regressor.predict_proba([[0, 0, 0, 1, 0, 0]]).shape
    (array([1., 2., 3., 4., 5.]), (1, 5))

    A new user, who likes the first film and not the second:

    >>> films = np.eye(6)[3:]
    >>> model = regressor.fold_in(films[:2], [5, 1])
    >>> liked, disliked, unrated = model.predict(np.column_stack([films, np.ones(3)]))
    >>> bool(liked > unrated > disliked)
    True
    """

    _kernel = "anova"


class OrdinalPNRegressor(OrdinalRegressor):
    r"""Regressor of ordered levels: a multi-output polynomial network by ordinal McRank.

    Each level c but the last has an output, for the probability that y is at most the level: the logistic function of
    :math:`\mathrm{offset}_c + b_c + \langle w_c, x\rangle + \sum_r v_{rc} \langle h_r, x\rangle^2`. All
    outputs are trained together and share their units. Predictions are expectations of y, after sorting probabilities
    that cross. Units :math:`h_r` and weights :math:`v_r` minimise a convex problem over all networks of any size, and
    the distance to its minimum is bounded (``gap_``).

    Parameters
    ----------
    loss : str or Loss, default "binary-logistic"
        "binary-logistic", or a :class:`mopn.Loss` per output with the link "logistic".
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1/l2"
        Norm of the output weights, which makes most units zero. With "l1/l2" and "l1/linf" the levels share units.
    strength : float or Ratio, default 3.5
        Strength of the penalty; larger means fewer units. A :class:`mopn.Ratio` is relative to the smallest
        strength whose solution is zero; a number multiplies the norm, next to the sum of the losses.
    max_units : int or None, default 10
        Limit on the units. A number asks for the best network of this size; with None units are added until the gap is
        at most ``tol``. With a number, a fit under "l1" is proven as far as a short time allows; under another norm, up
        to 5e7 rows times features times outputs.
    refit : {"full", "output", "none"} or one of FullRefit, OutputRefit, PlainStep, default "full"
        Correction after new units: refit units and output weights together (not convex, but smaller and better
        networks sooner), refit the output weights (convex), or take a conditional gradient step. An object sets its
        own tolerances.
    oracle : str or oracle, default "auto"
        Method of :func:`mopn.oracles.basis_oracle`, or an oracle, which finds and bounds units. ``"exact"`` proves
        more than ``"auto"``, and may take long with many features.
    fit_intercept : bool, default False
        Give the units linear terms, by dummy columns of ones in front of X, besides the term of ``alpha``.
    scale : {"large", "features", "data"} or None, default "large"
        "large" leaves the smallest features that make up a mean squared length of 2, such as users and items, and
        divides the larger ones, such as an age group, which would fit the noise of the many rows that share them.
        "features" divides each by its deviation, "data" all by one number. The fitted model is for X as given.
    alpha : float or None, default 0.7
        Strength of the penalty :math:`\frac{\alpha}{2} (\|W\|^2 + \|b\|^2 / 100)` of a linear term W with constants
        b, which shrinks every coefficient separately. None for no such term.
    ridge : float, default 0.0
        Strength of the ridge on the outputs as functions (:class:`mopn.NetworkProblem`): larger means smoother
        outputs of more units.
    tol : float, default 0.005
        Relative tolerance of the objective. With ``max_units`` the last refit ends at 3e-4 if ``tol`` is larger, as
        the expected level gains from that. With 0 only the limits stop a fit.
    max_time : float or None, default None
        Largest number of seconds for ``fit``; default no limit.
    warm_start : bool, default False
        Start from the network of the previous fit.
    random_state : int, RandomState or None, default None
        Seed of the validation split.
    verbose : int, default 0
        Print every ``verbose``-th round as a row of a table; 0 prints nothing.

    See Also
    --------
    OrdinalFMRegressor : Products of distinct features only, for sparse and categorical data.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import OrdinalPNRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> y = np.digitize(X[:, 0] * X[:, 1], [-0.2, 0.2])
    >>> regressor = OrdinalPNRegressor(strength=0.1).fit(X, y)
    >>> float(np.mean(np.round(regressor.predict(X)) == y)) > 0.95
    True
    """

    _kernel = "homogeneous"
