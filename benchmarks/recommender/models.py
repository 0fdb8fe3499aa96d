"""The models of the recommender study: fits of several outputs and of one, and of myFM where it is installed."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import partial
from io import StringIO
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mopn
from mopn.estimators import OrdinalFMRegressor
from mopn.solvers import CoordinateDescent

_TOL = 1e-4
_EPOCHS = 50
_SAMPLES = 200
# The ones of side features are this much in ordinal models: each row has many of them, and a penalty in common with
# users and items. myFM has priors for each group.
_OF_FEATURES = 0.15
# The ridge of the ordinal models' linear term, relative to the strength.
_ALPHA = 0.15


@dataclass(frozen=True)
class Options:
    """What a fit is told.

    Attributes
    ----------
    k : int
        Number of units, or the largest number.
    strength : float
    seed : int
    groups : tuple of int
        Numbers of the columns of X that belong to users, items and other fields.
    """

    k: int
    strength: float
    seed: int
    groups: tuple[int, ...]


# From X, y and the options to the predictions as a function of X, and the number of units that are there.
Fitted = tuple[Callable[[Any], np.ndarray], int]
Fit = Callable[[Any, np.ndarray, Options], Fitted]


def _ordinal(X: Any, y: np.ndarray, options: Options, norm: str) -> Fitted:
    def scaled(rows: Any) -> Any:
        if len(options.groups) == 2:
            return rows
        scales = np.repeat(np.r_[1.0, 1.0, np.full(len(options.groups) - 2, _OF_FEATURES)], options.groups)
        return sparse.csr_array(rows @ sparse.diags_array(scales))

    given = {"strength": options.strength, "alpha": _ALPHA * options.strength, "scale": None}
    regressor = OrdinalFMRegressor(norm=norm, max_units=options.k, random_state=options.seed, **given)
    with warnings.catch_warnings():
        # With few units the largest number of them ends the fit.
        warnings.simplefilter("ignore", ConvergenceWarning)
        regressor.fit(scaled(X), y)
    return lambda rows: regressor.predict(scaled(rows)), len(regressor.model_.weights)


def _factorized(X: Any, y: np.ndarray, options: Options, **kernel: Any) -> Fitted:
    def make(X: Any, y: np.ndarray) -> mopn.FactorizationProblem:
        strengths = {"alpha": options.strength, "beta": options.strength, "penalty": "frobenius"}
        return mopn.FactorizationProblem(
            X, y, n_components=options.k, fit_intercept=True, rng=options.seed, **strengths, **kernel
        )

    return _minimized(make, X, y), options.k


def _lifted(X: Any, y: np.ndarray, options: Options, **kernel: Any) -> Fitted:
    def make(X: Any, y: np.ndarray) -> mopn.LiftedProblem:
        strengths = {"alpha": options.strength, "beta": options.strength}
        return mopn.LiftedProblem(X, y, rank=options.k, fit_intercept=True, rng=options.seed, **strengths, **kernel)

    return _minimized(make, X, y), options.k


def _minimized(make: Callable[[Any, np.ndarray], Any], X: Any, y: np.ndarray) -> Callable[[Any], np.ndarray]:
    result = mopn.minimize(make(X, y), CoordinateDescent(), tol=_TOL, max_iter=_EPOCHS)
    return lambda rows: make(rows, np.zeros(rows.shape[0])).outputs(result.x)


def _gibbs(X: Any, y: np.ndarray, options: Options) -> Fitted:
    regressor = _sampled("MyFMRegressor", X, y, options)
    return lambda rows: regressor.predict(sparse.csr_matrix(rows)), options.k


def _probit(X: Any, y: np.ndarray, options: Options) -> Fitted:
    levels, codes = np.unique(y, return_inverse=True)
    regressor = _sampled("MyFMOrderedProbit", X, codes, options)
    return lambda rows: regressor.predict_proba(sparse.csr_matrix(rows)) @ levels, options.k


def _sampled(name: str, X: Any, y: np.ndarray, options: Options) -> Any:
    """Return a model of myFM, whose progress bars are not shown."""
    model = getattr(importlib.import_module("myfm"), name)(rank=options.k, random_seed=options.seed)
    with redirect_stderr(StringIO()):
        return model.fit(sparse.csr_matrix(X), y, n_iter=_SAMPLES, group_shapes=list(options.groups))


FITS: dict[str, Fit] = {
    "ordinal-l1": partial(_ordinal, norm="l1"),
    "ordinal-l1/l2": partial(_ordinal, norm="l1/l2"),
    "ordinal-l1/linf": partial(_ordinal, norm="l1/linf"),
    "A2-linear": partial(_factorized, fit_linear=True),
    "A2-augment": partial(_factorized, fit_lower="augment"),
    "H2-linear": partial(_lifted, fit_linear=True),
    "H2-augment": partial(_lifted, augment=True),
    "all-subsets": partial(_factorized, kernel="all-subsets"),
    "myfm-regression": _gibbs,
    "myfm-probit": _probit,
}
MODELS = tuple(FITS)
SAMPLED = ("myfm-regression", "myfm-probit")
