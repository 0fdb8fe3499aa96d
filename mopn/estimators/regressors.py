"""Regressors of one or several targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from mopn.estimators.base import NetworkEstimator, Scored
from mopn.estimators.fold_in import NetworkFoldIn
from mopn.estimators.policy import FACTORIZATION_MACHINES, REGRESSORS
from mopn.estimators.targets import Targets, regression_loss

__all__ = ["MultiOutputFMRegressor", "MultiOutputPNRegressor"]


class Regressor(Scored, RegressorMixin, NetworkEstimator):
    """Base of the regressors: they fit around the best constant, for the squared loss the weighted mean of y."""

    _numeric_y = True
    _policy = REGRESSORS

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        values = y.astype(np.float64, copy=False)
        loss = regression_loss(self.loss, values, sample_weight)
        return Targets(y, values, loss, "vector" if y.ndim == 1 else "outputs", None, sample_weight)

    def _score(self, targets: Targets, prediction: np.ndarray) -> float:
        return r2_score(targets.y, prediction, sample_weight=targets.sample_weight)


class MultiOutputPNRegressor(Regressor):
    r"""Regressor of one or several targets: one polynomial network for all targets.

    Predictions are the mean of y plus :math:`\sum_r \langle h_r, z\rangle^2 v_r` with :math:`z = [1, x]`. Units
    :math:`h_r` and weights :math:`v_r` minimise a convex problem over all networks of any size, and the distance to its
    minimum is bounded (``gap_``).

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

    _defaults = FACTORIZATION_MACHINES
    _kernel = "anova"
