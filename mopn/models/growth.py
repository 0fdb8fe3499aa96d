"""One more feature in a fitted factorization machine.

Kernels of distinct features are affine in each of them, A^m([p, h], [x, 1]) = A^m(p, x) + h A^{m-1}(p, x)
(multi-linearity: Blondel et al., Higher-Order Factorization Machines, NIPS 2016), so outputs are linear in what is new.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mopn.data.designs import Design
from mopn.models.formula import kernel_formula
from mopn.models.multi_output import Model
from mopn.models.single_output import FactorizationModel

Machine = Model | FactorizationModel
# The new feature's name, if features have names.
_NAME = "new"


def slopes_of_new(model: Machine, design: Design) -> tuple[np.ndarray, np.ndarray]:
    """Return Z (n, K) and V (K, m): coefficients h (K,) of a new feature that is 1 add (Z * h) V to the outputs."""
    if isinstance(model, Model):
        dummies, V = model.basis.shape[1] - model.n_features, model.weights
        parts = [(np.array([0.0, 1.0]), model.basis)]
    else:
        assert model.lams is not None
        dummies, V = model.dummies, np.tile(model.lams, len(model.factors))[:, None]
        parts = [(model._theta(degree), P) for degree, P in zip(model._degrees(), model.factors, strict=True)]
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
    """Return the model with one more feature, the last, in no group.

    Its coefficients are ``h`` (K,) in the units, in the order of ``slopes_of_new``, and ``w`` (m,) in a linear term;
    ``scale`` is the divisor that a fit would have had.
    """
    names = None if model.feature_names is None else np.append(model.feature_names, _NAME)
    changes: dict[str, Any] = {"feature_names": names}
    if isinstance(model, Model):
        changes["basis"] = np.column_stack([model.basis, h])
        changes["linear"] = None if model.linear is None else np.column_stack([model.linear, w])
        changes["groups"] = None if model.groups is None else np.append(model.groups, -1)
        changes["feature_scales"] = None if model.feature_scales is None else np.append(model.feature_scales, scale)
    else:
        column = h.reshape(*model.factors.shape[:2], 1)
        changes["factors"] = np.concatenate([model.factors, column], axis=2)
        changes["w"] = None if model.w is None else np.append(model.w, w)
    return replace(model, **changes)
