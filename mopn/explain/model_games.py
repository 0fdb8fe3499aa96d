"""The games of fitted models, by their kernel and degree."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.designs import DenseDesign, Design
from mopn.data.validation import finite_numbers
from mopn.explain.games import Background, ColumnGame, Game, QuadraticGame
from mopn.explain.higher_games import Multilinear, Powers, PowersOfForms
from mopn.models.quadratic import Quadratic, is_quadratic
from mopn.models.single_output import FactorizationModel
from mopn.models.table import TableModel


def background_rows(model: Any, background: Any, design: Design) -> Background:
    """Return the rows that a design's rows are compared with, by default themselves."""
    if background is None:
        if design.shape[0] == 1:
            raise ValueError("X has a single row, which cannot be compared with itself: give a background")
        return Background(design)
    if model.encoding is None and not sparse.issparse(background):
        finite_numbers(background, "background")
    return Background(model._design(background, "background"))


def model_game(model: Any, background: Background) -> Game:
    """Return the games of the outputs; the players are features, or the columns of a table."""
    if isinstance(model, TableModel):
        of_features = QuadraticGame(Quadratic.of(model._formula()), background)
        return ColumnGame(of_features, model.encoding.owners, model.n_features)
    formula = model._formula()
    if is_quadratic(formula):
        return QuadraticGame(Quadratic.of(formula), background)
    direct = _as_direct(model) if model.form == "lifted" else model
    assert direct.lams is not None
    if direct.kernel == "homogeneous":
        w, t = np.zeros(direct.n_features) if direct.w is None else direct.w, direct.dummies
        units = zip(direct._degrees(), direct.factors, strict=True)
        parts = [PowersOfForms(degree, direct.lams, P[:, :t].sum(axis=1), P[:, t:]) for degree, P in units]
        return Powers(parts, w, background)
    degree = direct.n_features if direct.kernel == "all-subsets" else min(direct.degree, direct.n_features)
    return Multilinear(partial(_gradient, direct), degree, background)


def _gradient(model: FactorizationModel, X: np.ndarray) -> np.ndarray:
    """Return the gradients (n, d) of the output of a direct form at the rows of X."""
    from mopn.core.factor_kernels import make_factor_kernel  # needs numba, which degree 2 does not

    assert model.lams is not None
    ones = np.ones(len(X))
    augmented = np.hstack([np.ones((len(X), model.dummies)), X])
    total = np.zeros_like(augmented)
    for degree, P in zip(model._degrees(), model.factors, strict=True):
        # Kernels are symmetric: rows and units change places.
        kernel = make_factor_kernel(model.kernel, degree, model.theta)
        total += kernel.gradient(DenseDesign(np.ascontiguousarray(P)), augmented, ones, model.lams)
    gradient = total[:, model.dummies :]
    return gradient if model.w is None else gradient + model.w


def _as_direct(model: FactorizationModel) -> FactorizationModel:
    """Return a lifted model in the direct form, by polarisation: a product of forms is a sum of their powers.

    prod_t a_t = sum over signs of (prod_t s_t) (a_1 + s_2 a_2 + ... + s_m a_m)^m / (2^(m - 1) m!).
    """
    m = model.degree
    signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=m - 1)])
    P = np.einsum("et,trj->erj", signs, model.factors).reshape(-1, model.factors.shape[2])
    lams = np.repeat(signs.prod(axis=1) / (2 ** (m - 1) * math.factorial(m)), model.factors.shape[1])
    return replace(model, form="direct", factors=P[None], lams=lams)
