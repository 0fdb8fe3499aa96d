"""A new user or item from a few ratings: a new feature, fitted with all others as they are.

Kernels of distinct features are affine in each of them, A^m([p, h], [x, 1]) = A^m(p, x) + h A^{m-1}(p, x)
(multi-linearity: Blondel et al., Higher-Order Factorization Machines, NIPS 2016), so outputs are linear in new ones.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.utils.validation import column_or_1d

from mopn.core.norms import get_norm
from mopn.data.designs import Design
from mopn.data.feature_scaling import feature_sizes
from mopn.data.losses_of_rows import Losses
from mopn.data.targets import level_codes
from mopn.data.validation import check_block_targets, label_codes
from mopn.estimators.base import ModelEstimator, raise_interruption
from mopn.estimators.network_estimator import NetworkEstimator
from mopn.estimators.targets import encoded_codes, indicator_values
from mopn.losses.losses import Loss
from mopn.models.formula import kernel_formula
from mopn.models.multi_output import Model
from mopn.models.single_output import FactorizationModel
from mopn.network.maps import UserY
from mopn.solvers import LBFGS, minimize
from mopn.solvers.interface import Evaluation, Measure, Smooth
from mopn.solvers.tools.decorators import quiet, warn_caller

Machine = Model | FactorizationModel
# Iterations of the fit of a new feature: most take fewer than a hundred, badly scaled ones some hundreds.
_MAX_ITERATIONS = 10_000
# The new feature's name, if features have names.
_NAME = "new"


class NewFeature(NamedTuple):
    """The penalty of a new feature, <units, h * h> + linear / 2 * ||w||^2, where linear is None without such a term.

    The fit would have divided the feature by ``scale``, which is in both penalties.
    """

    units: np.ndarray
    linear: float | None
    scale: float = 1.0


# Number of columns up to which all may be ids, as of users and items; tables of counts and codes mostly have more.
_FEW_COLUMNS = 4
# Number of values above which a column of whole numbers seems to hold ids; counts and codes have fewer.
_MANY_IDS = 30


def _are_ids(X: Any) -> bool:
    """Whether X seems to hold an id in every column, such as a user's."""
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
        X = self._checked(X)
        y = self._plain_targets(y, reset=False)
        n = X.shape[0]
        if y.ndim == 0 or len(y) != n:
            raise ValueError(f"y must have an entry or row for each of the {n} rows of X, got shape {y.shape}")
        Y = _encoded(self.model_, y, self.loss_)
        user_y = getattr(self, "_user_y", None)
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
        scale = self._scale_of_new(n)
        norm = get_norm(self.norm)
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


class NewFeatureProblem(Smooth):
    """The problem of a new feature's coefficients h (K,), and w (m,) if there is a linear term: smooth and convex.

    It is sum_i loss(y_i, o_i + w + V' (z_i * h)) + <new.units, h * h> + new.linear / 2 * ||w||^2.
    """

    oracles = frozenset({"gradient"})
    bounds = None

    def __init__(self, losses: Losses, Z: np.ndarray, V: np.ndarray, new: NewFeature) -> None:
        m = losses.n_outputs
        self.losses = losses
        self.Z = Z
        self.V = V
        n_constants = 0 if new.linear is None else m
        self.ridges = np.concatenate([2.0 * new.units, np.full(n_constants, new.linear or 0.0)])
        # Curvatures of the losses, whatever the units of X.
        curvatures = np.concatenate(
            [np.sum(Z**2, axis=0) * np.sum(V**2, axis=1), np.full(n_constants, float(losses.n))]
        )
        curvatures = losses.smoothness * curvatures + self.ridges
        self._scales = 1.0 / np.sqrt(np.where(curvatures > 0, curvatures, 1.0))

    @property
    def scales(self) -> np.ndarray:
        """Typical steps."""
        return self._scales

    def start(self, start: Any = None) -> np.ndarray:
        """Return zeros: the feature has no effect."""
        return np.zeros(len(self.ridges))

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        """Return the value and the gradient."""
        h, w = self.split(x)
        value, G = self.losses.value_gradient((self.Z * h) @ self.V + w)
        slopes = np.concatenate([np.sum(self.Z * (G @ self.V.T), axis=0), G.sum(axis=0)])[: len(x)]
        return Evaluation(float(value) + 0.5 * float(self.ridges @ x**2), slopes + self.ridges * x)

    def measure(self, point: np.ndarray) -> Measure:
        """Return the objective, without a bound."""
        return Measure(self.value_gradient(point).value)

    def unpack(self, point: np.ndarray) -> dict[str, Any]:
        """Return h and w, zeros without a linear term."""
        h, w = self.split(point)
        return {"x": point, "h": h, "w": w}

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return h and w, zeros without a linear term."""
        k, m = self.V.shape
        return x[:k], x[k:] if len(x) > k else np.zeros(m)


def _folded_in(model: Machine, X: Any, Y: np.ndarray, loss: Loss, new: NewFeature) -> Machine:
    """Return the model with a new feature, whose coefficients minimise the objective of the fit."""
    Z, V = slopes_of_new(model, model.design(X))
    base = model.outputs(X)
    problem = NewFeatureProblem(Losses(loss, base.shape[1], None, base, Y), Z, V, new)
    found = minimize(problem, LBFGS(), tol=0.0, max_iter=_MAX_ITERATIONS)
    if found.error is not None:
        raise found.error
    raise_interruption(found)
    return with_feature(model, found["h"], found["w"], new.scale)


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
