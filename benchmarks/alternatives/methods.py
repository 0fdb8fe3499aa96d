"""Methods for classes: networks, and models of other packages, each over a small grid.

Networks get the features as they are. Others but trees get them scaled, by ``StandardScaler`` or to [-1, 1], which the
grid chooses. C multiplies the loss. A grid begins with its plainest estimator, and goes on from there outwards.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from mopn import Ratio
from mopn.estimators import MultiOutputPNClassifier

Grid = dict[str, Any]

_MOST_COLUMNS = 40_000
_MOST_BYTES = 4 * 2**30
_MOST_COMPONENTS = 1_000
_LOGISTIC_ITERATIONS = 300
_RATES = (0.1, 0.05, 0.2)


class TooLargeError(ValueError):
    """A fit that would need more memory than the study gives."""


@dataclass(frozen=True)
class Method:
    """A line of the tables.

    Attributes
    ----------
    label : str
    grid : callable
        From the numbers of rows and of features of a training part to estimators by the names of their
        hyper-parameters. It may raise ``TooLargeError``.
    package : str, default "sklearn"
        What must be installed.
    """

    label: str
    grid: Callable[[int, int], Grid]
    package: str = "sklearn"


# -- networks ----------------------------------------------------------------------------------------------------------


def _network(n: int, d: int) -> Grid:
    return {"defaults": MultiOutputPNClassifier()}


def _tuned_network(n: int, d: int) -> Grid:
    return {
        f"ratio {ratio:g}, {scale}": MultiOutputPNClassifier(strength=Ratio(ratio), scale=scale)
        for ratio, scale in product((0.001, 0.01, 0.003), ("features", "data"))
    }


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def _scaled(steps: Callable[[float], Iterable[Any]], values: Iterable[float]) -> Grid:
    """Return a pipeline for each value and each way to scale; ``steps`` makes what follows the scaler."""
    scalers = {"standard": StandardScaler(), "[-1, 1]": MinMaxScaler((-1, 1))}
    return {
        f"C {value:g}, {name}": make_pipeline(scaler, *steps(value))
        for value, (name, scaler) in product(values, scalers.items())
    }


def _logistic(C: float) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=_LOGISTIC_ITERATIONS)


def _linear(n: int, d: int) -> Grid:
    return _scaled(lambda C: [_logistic(C)], (1, 10, 0.1))


def _quadratic_features(n: int, d: int) -> Grid:
    columns = d * (d + 3) // 2
    size = 8 * n * columns
    if columns > _MOST_COLUMNS or size > _MOST_BYTES:
        raise TooLargeError(f"skipped: {columns} columns for {n} rows, {size / 2**30:.1f} GiB")
    return _scaled(lambda C: [PolynomialFeatures(2, include_bias=False), _logistic(C)], (1, 0.1, 0.01))


def _nystroem(n: int, d: int) -> Grid:
    # The rows of the least part that it is fitted to: three quarters of the training part.
    components = min(10 * d, _MOST_COMPONENTS, 3 * n // 4)

    def steps(C: float) -> list[Any]:
        kernel = {"kernel": "polynomial", "degree": 2, "gamma": 1 / d, "coef0": 1}
        return [Nystroem(n_components=components, random_state=0, **kernel), _logistic(C)]

    return _scaled(steps, (1, 10, 100))


def _count_sketch(n: int, d: int) -> Grid:
    def steps(C: float) -> list[Any]:
        return [PolynomialCountSketch(n_components=10 * d, gamma=1 / d, coef0=1, random_state=0), _logistic(C)]

    return _scaled(steps, (1, 10, 100))


def _quadratic_svc(C: float) -> SVC:
    return SVC(kernel="poly", degree=2, coef0=1, C=C)


def _one_against_rest(n: int, d: int) -> Grid:
    return _scaled(lambda C: [OneVsRestClassifier(_quadratic_svc(C))], (1, 10, 100))


def _one_against_one(n: int, d: int) -> Grid:
    return _scaled(lambda C: [_quadratic_svc(C)], (1, 10, 100))


def _rbf(n: int, d: int) -> Grid:
    return _scaled(lambda C: [SVC(C=C)], (1, 10, 100))


def _boosting(n: int, d: int) -> Grid:
    return {f"rate {rate:g}": HistGradientBoostingClassifier(learning_rate=rate, random_state=0) for rate in _RATES}


def _lightgbm(n: int, d: int) -> Grid:
    from lightgbm import LGBMClassifier

    return {f"rate {rate:g}": LGBMClassifier(learning_rate=rate, n_jobs=1, verbose=-1) for rate in _RATES}


METHODS: dict[str, Method] = {
    "mopn": Method("mopn, defaults", _network),
    "mopn-tuned": Method("mopn, strength tuned", _tuned_network),
    "linear": Method("linear", _linear),
    "quadratic-features": Method("quadratic features, linear", _quadratic_features),
    "nystroem": Method("Nyström, linear", _nystroem),
    "count-sketch": Method("count sketch, linear", _count_sketch),
    "svc-quadratic-ovr": Method("quadratic SVM, one-v-rest", _one_against_rest),
    "svc-quadratic-ovo": Method("quadratic SVM, one-v-one", _one_against_one),
    "svc-rbf": Method("RBF SVM", _rbf),
    "boosting": Method("gradient boosting", _boosting),
    "lightgbm": Method("LightGBM", _lightgbm, "lightgbm"),
}


def installed_methods() -> list[str]:
    """Return the names of the methods whose package can be imported."""
    return [name for name, method in METHODS.items() if find_spec(method.package) is not None]
