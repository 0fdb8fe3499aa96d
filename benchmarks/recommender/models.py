"""The models of the recommender study: fits of several outputs and of one."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import mopn
from mopn.estimators import OrdinalFMRegressor
from mopn.solvers import CoordinateDescent

_TOL = 1e-4
_EPOCHS = 50
# The ridge of the ordinal models' linear term, relative to the strength.
_ALPHA = 0.15


@dataclass(frozen=True)
class Options:
    """Parameters of a fit: the number of units, or the largest number, the strength and the seed."""

    k: int
    strength: float
    seed: int


# From X, y and the options to the predictions as a function of X, and the number of units that are there.
Fitted = tuple[Callable[[Any], np.ndarray], int]
Fit = Callable[[Any, np.ndarray, Options], Fitted]


def _ordinal(X: Any, y: np.ndarray, options: Options, norm: str) -> Fitted:
    given = {"strength": options.strength, "alpha": _ALPHA * options.strength, "scale": None}
    regressor = OrdinalFMRegressor(norm=norm, max_units=options.k, random_state=options.seed, **given)
    with warnings.catch_warnings():
        # With few units the largest number of them ends the fit.
        warnings.simplefilter("ignore", ConvergenceWarning)
        regressor.fit(X, y)
    return regressor.predict, len(regressor.model_.weights)


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


FITS: dict[str, Fit] = {
    "ordinal-l1": partial(_ordinal, norm="l1"),
    "ordinal-l1/l2": partial(_ordinal, norm="l1/l2"),
    "ordinal-l1/linf": partial(_ordinal, norm="l1/linf"),
    "A2-linear": partial(_factorized, fit_linear=True),
    "A2-augment": partial(_factorized, fit_lower="augment"),
    "H2-linear": partial(_lifted, fit_linear=True),
    "H2-augment": partial(_lifted, augment=True),
    "all-subsets": partial(_factorized, kernel="all-subsets"),
}
MODELS = tuple(FITS)
