"""The alternatives for a table, each at its defaults and tuned: estimators of classes and of numbers.

Boosted trees and additive models take categories and gaps as they are. For the others numbers are imputed by their
median and categories get a column of zeros and ones for each level; linear models and kernels have numbers scaled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.tables.recursive_features import RecursiveFeatureClassifier, RecursiveFeatureRegressor
from mopn import Ratio
from mopn.estimators import MultiOutputPNClassifier, MultiOutputPNRegressor, TableClassifier, TableRegressor

_LOGISTIC_ITERATIONS = 1_000
# From the parameters of an estimator to the values that a search takes.
Space = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Method:
    """A line of the tables.

    Attributes
    ----------
    label : str
    classifier, regressor : callable
        Make an estimator.
    package : str, default "sklearn"
        What must be installed.
    spaces : (mapping, mapping), optional
        Tuned parameters of the classifier, and of the regressor.
    """

    label: str
    classifier: Callable[[], Any]
    regressor: Callable[[], Any]
    package: str = "sklearn"
    spaces: tuple[Space, Space] | None = None

    @property
    def is_installed(self) -> bool:
        """Whether the package can be imported."""
        return find_spec(self.package) is not None


def _on_numbers(estimator: Any, *scaler: Any) -> Any:
    """Return a pipeline that makes numbers of a table."""
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (make_pipeline(imputer, *scaler), make_column_selector(dtype_include="number")),
        (levels, make_column_selector(dtype_include="category")),
    )
    return make_pipeline(columns, estimator)


def _on_scaled(estimator: Any) -> Any:
    return _on_numbers(estimator, StandardScaler())


def _kernel_regressor() -> Any:
    return _on_scaled(TransformedTargetRegressor(SVR(C=10), transformer=StandardScaler()))


def _lightgbm(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        import lightgbm

        return getattr(lightgbm, f"LGBM{kind}")(n_jobs=1, verbose=-1)

    return make


def _additive(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        from interpret import glassbox

        return getattr(glassbox, f"ExplainableBoosting{kind}")(n_jobs=1)

    return make


_DEFAULTS = {
    "mopn": Method("mopn, table", TableClassifier, TableRegressor),
    "mopn-columns": Method(
        "mopn, columns", lambda: _on_numbers(MultiOutputPNClassifier()), lambda: _on_numbers(MultiOutputPNRegressor())
    ),
    "linear": Method(
        "linear", lambda: _on_scaled(LogisticRegression(max_iter=_LOGISTIC_ITERATIONS)), lambda: _on_scaled(Ridge())
    ),
    "kernel": Method("RBF SVM", lambda: _on_scaled(SVC(C=10)), _kernel_regressor),
    "boosting": Method(
        "gradient boosting",
        lambda: HistGradientBoostingClassifier(random_state=0),
        lambda: HistGradientBoostingRegressor(random_state=0),
    ),
    "lightgbm": Method("LightGBM", _lightgbm("Classifier"), _lightgbm("Regressor"), "lightgbm"),
    "recursive": Method(
        "xRFM",
        lambda: _on_scaled(RecursiveFeatureClassifier()),
        lambda: _on_scaled(RecursiveFeatureRegressor()),
        "xrfm",
    ),
    "additive": Method("EBM", _additive("Classifier"), _additive("Regressor"), "interpret"),
}


# -- tuned parameters --------------------------------------------------------------------------------------------------


def _values(smallest: float, largest: float, count: int) -> list[float]:
    return [float(f"{value:.2g}") for value in np.geomspace(smallest, largest, count)]


def _prefixed(prefix: str, space: Space) -> Space:
    return {f"{prefix}__{name}": values for name, values in space.items()}


_NETWORK: Space = {
    "strength": ["auto", *(Ratio(value) for value in _values(3e-4, 0.1, 11))],
    "curves": [2, 4, 8, 16],
    "smoothness": [0.5, 1.0, 1.5, 2.0],
    "norm": ["l1", "l1/l2"],
}
_KERNEL: Space = {"C": _values(0.1, 1e3, 9), "gamma": ["scale", *_values(1e-3, 1.0, 10)]}
_RATES, _TREES, _LEAVES, _LEAST = _values(0.02, 0.3, 6), [50, 100, 200, 400], [4, 8, 16, 31, 63], [2, 5, 10, 20, 50]
_SHRINKAGE, _SHARES = [0.0, 0.1, 1.0, 10.0], [0.3, 0.6, 1.0]
_BOOSTING: Space = {
    "learning_rate": _RATES,
    "max_iter": _TREES,
    "max_leaf_nodes": _LEAVES,
    "min_samples_leaf": _LEAST,
    "l2_regularization": _SHRINKAGE,
    "max_features": _SHARES,
}
_LIGHTGBM: Space = {
    "learning_rate": _RATES,
    "n_estimators": _TREES,
    "num_leaves": _LEAVES,
    "min_child_samples": _LEAST,
    "reg_lambda": _SHRINKAGE,
    "colsample_bytree": _SHARES,
}
_RECURSIVE: Space = {
    "bandwidth": _values(1.0, 200.0, 10),
    "exponent": [0.7, 0.85, 1.0, 1.2, 1.4],
    "reg": _values(1e-6, 10.0, 8),
    "diag": [False, True],
}
# Additive models are not tuned: one fit at the defaults mostly takes longer than the search of another method.
_SPACES: dict[str, tuple[Space, Space]] = {
    "mopn": (_NETWORK, _NETWORK),
    "linear": ({"logisticregression__C": _values(1e-3, 1e3, 13)}, {"ridge__alpha": _values(1e-3, 1e3, 13)}),
    "kernel": (_prefixed("svc", _KERNEL), _prefixed("transformedtargetregressor__regressor", _KERNEL)),
    "boosting": (_BOOSTING, _BOOSTING),
    "lightgbm": (_LIGHTGBM, _LIGHTGBM),
    "recursive": (
        _prefixed("recursivefeatureclassifier", _RECURSIVE),
        _prefixed("recursivefeatureregressor", _RECURSIVE),
    ),
}
METHODS: dict[str, Method] = _DEFAULTS | {
    f"{name}-tuned": replace(_DEFAULTS[name], label=f"{_DEFAULTS[name].label}, tuned", spaces=spaces)
    for name, spaces in _SPACES.items()
}
