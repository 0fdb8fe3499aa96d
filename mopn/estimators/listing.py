"""The members that ``help`` and completion list of the classes of estimators."""

from abc import ABCMeta

from sklearn.base import BaseEstimator


class Listed(ABCMeta):
    """Metaclass of the estimators: ``help`` lists what they add to what every estimator of scikit-learn has.

    The methods of metadata routing alone would fill a hundred lines. Instances list all that they have.
    """

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if not (name.startswith("_") or _is_of_sklearn(cls, name))]


def _is_of_sklearn(cls: type, name: str) -> bool:
    module = str(getattr(getattr(cls, name, None), "__module__", ""))
    return module.startswith("sklearn") or hasattr(BaseEstimator, name)
