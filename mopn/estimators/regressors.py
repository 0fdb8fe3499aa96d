"""Regressors of one or several targets."""

from typing import Any

from sklearn.base import RegressorMixin

from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.feature_scaling import ScaleName
from mopn.estimators.base import Scored
from mopn.estimators.encodings import NumberEncoding
from mopn.estimators.fold_in import NetworkFoldIn
from mopn.estimators.network_estimator import NetworkEstimator
from mopn.estimators.parameters import MAX_UNITS
from mopn.losses.losses import Loss, LossName
from mopn.network.oracles import BasisOracle, OracleName
from mopn.solvers.conditional_gradient import RefitName
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep


class RegressorMethods(Scored, RegressorMixin):
    """Scores and targets of the regressors that have a network."""

    loss: LossName | Loss
    _numeric_y = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _encoding(self) -> NumberEncoding:
        return NumberEncoding(self.loss)


class Regressor(RegressorMethods, NetworkEstimator):
    """Base of the regressors."""


class MultiOutputPNRegressor(Regressor):
    r"""Regressor of one or several targets: one polynomial network for all targets.

    Predictions are the mean of y plus :math:`\sum_r \langle h_r, z\rangle^2 v_r` with :math:`z = [1, x]`. Units
    :math:`h_r` and weights :math:`v_r` minimise a convex problem over all networks of any size, and the distance to its
    minimum is bounded (``gap_``). Several targets weigh alike, whatever their units: each is divided by its deviation,
    relative to the mean of all deviations, unless ``loss`` is an object with parameters in the unit of y.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        "squared"; "huber" (:class:`mopn.Huber`), for outliers; "quantile" (:class:`mopn.Quantile`), by default the
        median; "poisson" (:class:`mopn.Poisson`), for counts; or a :class:`mopn.Loss`. Names take their parameters
        in the unit of y.
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1"
        Norm of the output weights, which makes most units zero. With "l1" every output has its own units, and the
        certificate is tight; "nonnegative-l1" is the same with weights >= 0. With the others outputs share units, which
        suits many outputs.
    strength : float or Ratio, default Ratio(0.002)
        Strength of the penalty; larger means fewer units. A :class:`mopn.Ratio` is relative to the smallest
        strength whose solution is zero; a number multiplies the norm, next to the sum of the losses.
    max_units : int, None or "auto", default "auto"
        Limit on the units. A number asks for the best network of this size; with None units are added until the gap is
        at most ``tol``. "auto" is 200 or, under "l1" and "nonnegative-l1", 10 for each output if that is more. With a
        number, a fit under "l1" is proven as far as a short time allows; under another norm, up to 5e7 rows times
        features times outputs.
    refit : {"full", "output", "none"} or one of FullRefit, OutputRefit, PlainStep, default "full"
        Correction after new units: refit units and output weights together (not convex, but smaller and better
        networks sooner), refit the output weights (convex), or take a conditional gradient step. An object sets its
        own tolerances.
    oracle : str or oracle, default "auto"
        Method of :func:`mopn.oracles.basis_oracle`, or an oracle, which finds and bounds units. ``"exact"`` proves
        more than ``"auto"``, and may take long with many features.
    fit_intercept : bool, default True
        Give the units a constant and linear terms, by a dummy column of ones in front of X, and subtract the mean
        of X, so that the penalty does not depend on the origin. Sparse X stays sparse.
    scale : {"features", "data", "large"} or None, default "features"
        Divide every feature by its deviation, or X by one number, so that the mean squared length of a sample is 4 and
        the penalty does not depend on the units of X. "large", for one-hot rows, divides the features that many rows
        share (:class:`mopn.NetworkProblem`). The fitted model is for X as given.
    alpha : float or None, default None
        Strength of the penalty :math:`\frac{\alpha}{2} (\|W\|^2 + \|b\|^2 / 100)` of a linear term W with constants
        b, which shrinks every coefficient separately. None for no such term.
    ridge : float, default 0.0
        Strength of the ridge on the outputs as functions, for rows of a mean squared length of 4; see
        :class:`mopn.NetworkProblem`. Larger means smoother outputs of more units, and proofs that cost less. It
        does not depend on the units of X. The losses are added up, so that it weighs less the more rows there are.
    tol : float, default 0.005
        Relative tolerance of the objective: a fit stops at a relative gap of ``tol`` or, with ``max_units``, when
        ten iterations of the last refit together decrease it by less. With 0 only the limits stop a fit.
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
    MultiOutputFMRegressor : Products of distinct features only, for sparse and categorical data.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import MultiOutputPNRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 3))
    >>> Y = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] ** 2])
    >>> regressor = MultiOutputPNRegressor(strength=1e-3).fit(X, Y)
    >>> regressor.predict(X).shape, regressor.score(X, Y) > 0.99
    ((100, 2), True)
    """

    _kernel = "homogeneous"
    _rules = Regressor._rules | {"max_units": MAX_UNITS.or_auto()}


class MultiOutputFMRegressor(NetworkFoldIn, Regressor):
    r"""Regressor of one or several targets: a factorization machine whose targets share their units.

    Predictions are the mean of y plus :math:`\sum_r v_r \sum_{i<j} h_{ri} z_i h_{rj} z_j` with :math:`z = [1, 1, x]`: a
    constant, a linear term and the products of distinct features. Units :math:`h_r` and weights :math:`v_r` minimise a
    convex problem over all networks of any size, and the distance to its minimum is bounded (``gap_``). Several targets
    weigh alike, whatever their units: each is divided by its deviation, relative to the mean of all deviations, unless
    ``loss`` is an object with parameters in the unit of y.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        "squared"; "huber" (:class:`mopn.Huber`), for outliers; "quantile" (:class:`mopn.Quantile`), by default the
        median; "poisson" (:class:`mopn.Poisson`), for counts; or a :class:`mopn.Loss`. Names take their parameters
        in the unit of y.
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1/l2"
        Norm of the output weights, which makes most units zero. With "l1/l2" and "l1/linf" outputs share units.
        With "l1" and "nonnegative-l1" (weights >= 0) each has its own: for wide one-hot rows far more, and
        without a tight bound.
    strength : float or Ratio, default Ratio(0.002)
        Strength of the penalty; larger means fewer units. A :class:`mopn.Ratio` is relative to the smallest
        strength whose solution is zero; a number multiplies the norm, next to the sum of the losses.
    max_units : int or None, default 50
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
    fit_intercept : bool, default True
        Give the units a constant and linear terms, by two dummy columns of ones in front of X, which stays sparse.
    scale : {"features", "data", "large"} or None, default "features"
        Divide every feature by its deviation, or X by one number, so that the mean squared length of a sample is 4 and
        the penalty does not depend on the units of X. "large", for one-hot rows, divides the features that many rows
        share (:class:`mopn.NetworkProblem`). The fitted model is for X as given.
    alpha : float or None, default None
        Strength of the penalty :math:`\frac{\alpha}{2} (\|W\|^2 + \|b\|^2 / 100)` of a linear term W with constants
        b, which shrinks every coefficient separately. None for no such term.
    ridge : float, default 0.0
        Strength of the ridge on the outputs as functions (:class:`mopn.NetworkProblem`): larger means smoother
        outputs of more units. ``fold_in`` takes models without it.
    tol : float, default 0.005
        Relative tolerance of the objective: a fit stops at a relative gap of ``tol`` or, with ``max_units``, when
        ten iterations of the last refit together decrease it by less. With 0 only the limits stop a fit.
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
    MultiOutputPNRegressor : The features' squares as well.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import MultiOutputFMRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 3))
    >>> y = 1.0 + X[:, 0] * X[:, 1] - X[:, 2]
    >>> regressor = MultiOutputFMRegressor(strength=1e-3).fit(X, y)
    >>> regressor.predict(X).shape, regressor.score(X, y) > 0.99
    ((100,), True)
    """

    _kernel = "anova"

    def __init__(
        self,
        *,
        loss: LossName | Loss = "squared",
        norm: NormName = "l1/l2",
        strength: float | Ratio = Ratio(0.002),
        max_units: int | None = 50,
        refit: RefitName | CorrectiveStep = "full",
        oracle: OracleName | BasisOracle = "auto",
        fit_intercept: bool = True,
        scale: ScaleName | None = "features",
        alpha: float | None = None,
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
