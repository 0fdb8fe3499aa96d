"""A new user or item from a few ratings: a new feature, fitted with all others as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from mopn.core.kernels import get_kernel
from mopn.core.norms import get_norm
from mopn.data.designs import AugmentedDesign
from mopn.losses.losses import Loss
from mopn.models.multi_output import Model

__all__ = ["with_feature"]

_TOL = 1e-8
# The new feature's name, if features have names.
_NAME = "new"


def with_feature(
    model: Model, X: Any, Y: np.ndarray, loss: Loss, *, norm: str, strength: float, alpha: float | None
) -> Model:
    """Return a factorization machine with one more feature, the last, which is 1 in all rows of X.

    The coefficients h (k,) of the feature in the units and w (m,) in the linear term minimise the objective of the
    training, with all others as they are (it is in no group, so it interacts with all of them)::

        sum_i loss(y_i, o_i + w + V' (H x_i * h)) + strength * sum_r ||v_r|| h_r^2 + alpha / 2 * ||w||^2,

    as the penalty of a unit is that of its weights times its squared length. The outputs are linear in h and w, so this
    is a small convex problem.

    Parameters
    ----------
    model : Model
        Of the kernel "anova".
    X : array-like or sparse matrix of shape (n, d)
        The known features of the rows in which the new one is 1.
    Y : ndarray of shape (n, m)
        Targets for the loss.
    loss : Loss
    norm : str
    strength : float
    alpha : float or None
        None if there is no linear term.

    Returns
    -------
    Model
    """
    design, (k, m) = model._design(X), model.weights.shape
    base = model.outputs(X)
    augmented = AugmentedDesign(design, get_kernel(model.kernel).dummies) if model.augment else design
    Z = augmented.project(model.basis)
    penalties = strength * np.array([get_norm(norm).value(row[None]) for row in model.weights])
    ridge = np.zeros(m) if alpha is None else np.full(m, alpha)

    def value_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        h, w = x[:k], x[k:]
        losses, G = loss.value_gradient(Y, base + w + (Z * h) @ model.weights)
        value = losses.sum() + penalties @ h**2 + 0.5 * ridge @ w**2
        slopes = G.sum(axis=0) + ridge * w if alpha is not None else np.zeros(m)
        return value, np.concatenate([np.sum(Z * (G @ model.weights.T), axis=0) + 2.0 * penalties * h, slopes])

    x = minimize(value_gradient, np.zeros(k + m), jac=True, method="L-BFGS-B", options={"gtol": _TOL}).x
    linear = None if model.linear is None else np.column_stack([model.linear, x[k:]])
    names = None if model.feature_names is None else np.append(model.feature_names, _NAME)
    groups = None if model.groups is None else np.append(model.groups, -1)
    scales = None if model.feature_scales is None else np.append(model.feature_scales, 1.0)
    basis = np.column_stack([model.basis, x[:k]])
    return replace(model, basis=basis, linear=linear, feature_names=names, groups=groups, feature_scales=scales)
