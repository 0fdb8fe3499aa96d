"""Regressors of one or several targets."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.feature_scaling import ScaleName
from mopn.estimators.base import NetworkEstimator, Scored
from mopn.estimators.fold_in import NetworkFoldIn
from mopn.estimators.parameters import REGRESSORS
from mopn.estimators.targets import Targets, regression_loss
from mopn.losses.losses import Loss, LossName
from mopn.network.oracles import BasisOracle, OracleName
from mopn.solvers.conditional_gradient import RefitName
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep


class RegressorMethods(Scored, RegressorMixin):
    """Scores of the regressors that have a network."""

    _numeric_y = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class Regressor(RegressorMethods, NetworkEstimator):
    """Base of the regressors: they fit around the best constant, for the squared loss the weighted mean of y."""

    _policy = REGRESSORS
    _metric = staticmethod(r2_score)

    def _encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        values = y.astype(np.float64, copy=False)
        loss = regression_loss(self.loss, values, sample_weight)
        return Targets(y, values, loss, "vector" if y.ndim == 1 else "outputs", None, sample_weight)


class MultiOutputPNRegressor(Regressor):
    r"""Regressor of one or several targets: one polynomial network for all targets.

    Predictions are the mean of y plus :math:`\sum_r \langle h_r, z\rangle^2 v_r` with :math:`z = [1, x]`. Units
    :math:`h_r` and weights :math:`v_r` minimise a convex problem over all networks of any size, and the distance to its
    minimum is bounded (``gap_``).

    The parameters are those of :class:`MultiOutputPNClassifier`, without ``class_weight``.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        "squared"; "huber" (:class:`mopn.Huber`), for outliers; "quantile" (:class:`mopn.Quantile`), by default the
        median; "poisson" (:class:`mopn.Poisson`), for counts; or a :class:`mopn.Loss`. Names take their parameters
        in the unit of y.
    strength : float or Ratio, default Ratio(0.002)
        Strength of the penalty.
    ridge : float, default 0.0
        Strength of the ridge on the outputs as functions.

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


class MultiOutputFMRegressor(NetworkFoldIn, Regressor):
    r"""Regressor of one or several targets: a factorization machine whose targets share their units.

    Predictions are the mean of y plus :math:`\sum_r v_r \sum_{i<j} h_{ri} z_i h_{rj} z_j` with :math:`z = [1, 1, x]`: a
    constant, a linear term and the products of distinct features. Units :math:`h_r` and weights :math:`v_r` minimise a
    convex problem over all networks of any size, and the distance to its minimum is bounded (``gap_``).

    The parameters are those of :class:`MultiOutputPNRegressor`, with two other defaults.

    With wide one-hot rows "l1" takes many more units and far longer, and its bound is not tight there either.

    Parameters
    ----------
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1/l2"
        Norm of the output weights.
    max_units : int or None, default 50
        Largest number of units.

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
        interactions: Any = None,
        ridge: float = 0.0,
        tol: float = 5e-3,
        max_time: float | None = None,
        validation_fraction: float = 0.0,
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
            interactions=interactions,
            ridge=ridge,
            tol=tol,
            max_time=max_time,
            validation_fraction=validation_fraction,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
