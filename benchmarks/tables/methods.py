"""What a user would fit to a table, each at its defaults: estimators of classes and of numbers.

Boosted trees and additive models take categories and gaps as they are. For the others numbers are imputed by their
median and categories get a column of zeros and ones for each level; linear models and kernels have numbers scaled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from mopn.estimators import MultiOutputPNClassifier, MultiOutputPNRegressor, TableClassifier, TableRegressor

__all__ = ["METHODS", "Method"]

_LOGISTIC_ITERATIONS = 1_000


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
    """

    label: str
    classifier: Callable[[], Any]
    regressor: Callable[[], Any]
    package: str = "sklearn"

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


METHODS: dict[str, Method] = {
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
    "additive": Method("EBM", _additive("Classifier"), _additive("Regressor"), "interpret"),
}
