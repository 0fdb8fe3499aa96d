"""A new user or item from a few ratings: a new feature, fitted with all others as they are.

Kernels of distinct features are affine in each of them, A^m([p, h], [x, 1]) = A^m(p, x) + h A^{m-1}(p, x)
(multi-linearity: Blondel et al., Higher-Order Factorization Machines, NIPS 2016), so outputs are linear in new ones.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.optimize import minimize
from sklearn.utils.validation import column_or_1d

from mopn.core.norms import get_norm
from mopn.data.designs import Design
from mopn.data.feature_scaling import feature_sizes
from mopn.data.losses_of_rows import Losses
from mopn.data.targets import level_codes
from mopn.data.validation import check_block_targets, label_codes
from mopn.estimators.base import ModelEstimator, NetworkEstimator
from mopn.estimators.targets import encoded_codes, indicator_values
from mopn.losses.losses import Loss
from mopn.models.formula import kernel_formula
from mopn.models.multi_output import Model
from mopn.models.single_output import FactorizationModel
from mopn.network.maps import UserY
from mopn.solvers.tools.decorators import quiet, warn_caller

Machine = Model | FactorizationModel
# The new feature's name, if features have names.
_NAME = "new"
# Relative to the gradient at the start.
_TOL = 1e-8


class NewFeature(NamedTuple):
    """The penalty of a new feature, <units, h * h> + linear / 2 * ||w||^2, where linear is None without such a term.

    The fit would have divided the feature by ``scale``, which is in both penalties.
    """

    units: np.ndarray
    linear: float | None
    scale: float = 1.0


# Columns of counts and codes have fewer values each, or more columns besides them.
_FEW_COLUMNS, _MANY_IDS = 4, 30


def _are_ids(X: Any) -> bool:
    """Whether X seems to hold an id, as of a user, in every column."""
    if not isinstance(X, np.ndarray) or not 2 <= X.shape[1] <= _FEW_COLUMNS:
        return False
    return bool((X >= 0).all() and (np.floor(X) == X).all()) and all(
        len(np.unique(column)) > _MANY_IDS for column in X.T
    )


class FoldIn(ModelEstimator):
    """Base of factorization machines, which take new users and items without another fit."""

    model_: Any

    def _samples(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        samples = super()._samples(X, y, sample_weight, **options)
        if _are_ids(samples[0]):
            warn_caller(
                f"X has {samples[0].shape[1]} columns of whole numbers of many values, which count as numbers: if "
                "they are ids, of users and items say, encode them, as by sklearn.preprocessing.OneHotEncoder"
            )
        return samples

    @quiet()
    def fold_in(self, X: Any, y: Any) -> Machine:
        """Return the model with one more feature, the last: a new user or item, from a few ratings.

        The new coefficients minimise the objective of the fit, all others stay: a small convex problem, which takes
        milliseconds. The estimator does not change. ``scale="features"`` divides the feature by its deviation in the
        rows of the fit and the new ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows in which the new feature would be 1, without it: of a new user, the films rated and their features.
        y : array-like of shape (n,) or (n, m)
            Their targets; labels and levels must have been in the fit. No weights of rows, classes or targets
            count.

        Returns
        -------
        Model or FactorizationModel
            For rows of d + 1 features; the last one is 1 for the new user.

        Raises
        ------
        ValueError
            For targets that the fit did not have or cannot take, or a fit with a ridge.
        """
        X, y = self._checked(X), self._plain_targets(y, reset=False)
        n = X.shape[0]
        if y.ndim == 0 or len(y) != n:
            raise ValueError(f"y must have an entry or row for each of the {n} rows of X, got shape {y.shape}")
        Y, user_y = _encoded(self.model_, y, self.loss_), getattr(self, "_user_y", None)
        if user_y is None:
            return _folded_in(self.model_, X, Y, self.loss_, self._new_feature(n))
        return _folded_in_for_user_y(user_y, self.model_, X, Y, self.loss_, self._new_feature(n))

    @abstractmethod
    def _new_feature(self, n: int) -> NewFeature:
        """Return the penalties of a feature that is 1 in n new rows, and 0 in the rows of the fit."""


class NetworkFoldIn(FoldIn, NetworkEstimator):
    """The same for networks, whose unit r has the penalty strength * ||v_r|| * ||h_r||^2."""

    def _new_feature(self, n: int) -> NewFeature:
        if self.ridge:
            raise ValueError(f"fold_in knows no ridge, got ridge={self.ridge}; fit with ridge=0")
        scale, norm = self._scale_of_new(n), get_norm(self.norm)
        weights = self.model_.weights
        if self._user_y is not None:
            weights, _ = self._user_y.of_problem(weights, None)
        units = self.strength_ * np.array([norm.value(row[None]) for row in weights])
        return NewFeature(scale**2 * units, None if self.alpha is None else scale**2 * self.alpha, scale)

    def _scale_of_new(self, n: int) -> float:
        coordinates = self._coordinates
        # Few rows have the new feature, so that it is not among the large ones.
        if coordinates is None or self.scale in (None, "large"):
            return 1.0
        scales = coordinates.finite_scale
        if self.scale == "data":
            return float(scales.max())
        return float(feature_sizes(n / (coordinates.total_weight + n), int(np.count_nonzero(scales))))


def _encoded(model: Machine, y: np.ndarray, loss: Loss) -> np.ndarray:
    """Return targets (n,) or (n, m) in the form of the loss, as the fit did."""
    m = model.weights.shape[1] if isinstance(model, Model) else 1
    if model.classes is not None and model.target in ("labels", "ordinal"):
        is_ordinal = model.target == "ordinal"
        codes_of = level_codes if is_ordinal else label_codes
        codes = codes_of(column_or_1d(y, warn=True), model.classes)
        return encoded_codes(codes, len(model.classes), loss, ordinal=is_ordinal)
    return check_block_targets(indicator_values(y) if model.target == "indicator" else y, loss, None, m)


def _folded_in(model: Machine, X: Any, Y: np.ndarray, loss: Loss, new: NewFeature) -> Machine:
    """Return the model with a new feature, whose coefficients h (K,) and w (m,) minimise the objective of the fit.

    It is sum_i loss(y_i, o_i + w + V' (z_i * h)) + <new.units, h * h> + new.linear / 2 * ||w||^2.
    """
    base = model.outputs(X)
    Z, V = slopes_of_new(model, model.design(X))
    (n, m), k = base.shape, Z.shape[1]
    losses = Losses(loss, m, None, base, Y)
    ridges = np.concatenate([2.0 * new.units, np.full(m, new.linear or 0.0)])
    linear = new.linear is not None
    # In coordinates of curvatures near 1, whatever the units of X.
    curvatures = np.concatenate([np.sum(Z**2, axis=0) * np.sum(V**2, axis=1), np.full(m, float(n))])
    curvatures = losses.smoothness * curvatures + ridges
    steps = 1.0 / np.sqrt(np.where(curvatures > 0, curvatures, 1.0))
    steps[k:] *= linear

    def value_gradient(u: np.ndarray) -> tuple[float, np.ndarray]:
        x = steps * u
        value, G = losses.value_gradient((Z * x[:k]) @ V + x[k:])
        slopes = np.concatenate([np.sum(Z * (G @ V.T), axis=0), G.sum(axis=0)]) + ridges * x
        return float(value) + 0.5 * float(ridges @ x**2), steps * slopes

    start = np.zeros(k + m)
    # Steps that go too far overflow, and are shortened.
    tol = _TOL * float(np.abs(value_gradient(start)[1]).max())
    u = minimize(value_gradient, start, jac=True, method="L-BFGS-B", options={"gtol": tol, "ftol": 0.0}).x
    return with_feature(model, steps[:k] * u[:k], steps[k:] * u[k:], new.scale)


def _folded_in_for_user_y(user_y: UserY, model: Model, X: Any, Y: np.ndarray, loss: Loss, new: NewFeature) -> Machine:
    """Return the model with a new feature, fitted in the levels and units of the fit's targets."""
    weights, linear = user_y.of_problem(model.weights, model.linear)
    offset = user_y.offset_of_problem(model.offset)
    in_units = replace(model, weights=weights, linear=linear, offset=offset)
    found = cast(Model, _folded_in(in_units, X, user_y.targets(Y.reshape(len(Y), -1)), loss, new))
    weights, linear = user_y.network(found.weights, found.linear)
    return replace(found, weights=weights, linear=linear, offset=model.offset)


def slopes_of_new(model: Machine, design: Design) -> tuple[np.ndarray, np.ndarray]:
    """Return Z (n, K) and V (K, m): coefficients h (K,) of a new feature that is 1 add (Z * h) V to the outputs."""
    if isinstance(model, Model):
        dummies, V = model.basis.shape[1] - model.n_features, model.weights
        parts = [(np.array([0.0, 1.0]), model.basis)]
    else:
        assert model.lams is not None
        dummies, V = model.dummies, np.tile(model.lams, len(model.factors))[:, None]
        parts = [(model.theta_of(degree), P) for degree, P in zip(model.degrees(), model.factors, strict=True)]
    return np.hstack([_slopes(model.kernel, theta, P, dummies, design) for theta, P in parts]), V


def _slopes(kernel: str, theta: np.ndarray, P: np.ndarray, dummies: int, design: Design) -> np.ndarray:
    """Return (n, k), for P (k, dummies + d)."""
    each = np.eye(len(P))
    if kernel == "all-subsets":
        return kernel_formula(kernel, theta, P, dummies, each).outputs(design)
    if len(theta) == 1:
        return np.full((design.shape[0], len(P)), theta[0])
    return theta[0] + kernel_formula(kernel, theta[1:], P, dummies, each).outputs(design)


def with_feature(model: Machine, h: np.ndarray, w: np.ndarray, scale: float) -> Machine:
    """Return the model with one more feature, the last.

    Its coefficients are ``h`` (K,) in the units, in the order of ``slopes_of_new``, and ``w`` (m,) in a linear term;
    ``scale`` is the divisor that a fit would have had.
    """
    names = None if model.feature_names is None else np.append(model.feature_names, _NAME)
    changes: dict[str, Any] = {"feature_names": names}
    if isinstance(model, Model):
        changes["basis"] = np.column_stack([model.basis, h])
        changes["linear"] = None if model.linear is None else np.column_stack([model.linear, w])
        changes["feature_scales"] = None if model.feature_scales is None else np.append(model.feature_scales, scale)
    else:
        column = h.reshape(*model.factors.shape[:2], 1)
        changes["factors"] = np.concatenate([model.factors, column], axis=2)
        changes["w"] = None if model.w is None else np.append(model.w, w)
    return replace(model, **changes)
