"""What searches for parameters share: the estimator that was found answers for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mopn.estimators.availability import available_if
from mopn.estimators.callbacks import CallbackSupportMixin, Task
from mopn.models.base import Predictor
from mopn.models.fitted import Fitted

__all__ = ["Search"]


def _best_has(name: str) -> Callable[[Search], Any]:
    """Return the check whether the estimator has a method; its own error says why not."""
    return lambda search: getattr(getattr(search, "best_estimator_", search.estimator), name)


class Search(CallbackSupportMixin, MetaEstimatorMixin, Fitted, BaseEstimator):
    """Base of the searches: an estimator is fitted to all samples at the end, and predicts."""

    estimator: Any
    best_estimator_: Any

    def _refitted(self, best: Any, task: Task, *samples: Any, **options: Any) -> Self:
        """Fit the estimator that was found, which ends the task of the search."""
        refit = task.subtask("refit")
        with refit.handed_on(best):
            refit.begin()
            try:
                best.fit(*samples, **options)
            finally:
                # After Ctrl-C the estimator is fitted to the best point so far.
                if hasattr(best, "model_"):
                    self.best_estimator_ = best
        refit.end({})
        task.end({})
        return self

    @available_if(_best_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict y by the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the outputs of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    def _fitted_model(self) -> Predictor:
        check_is_fitted(self)
        return self.best_estimator_.model_

    @property
    def classes_(self) -> np.ndarray:
        """Labels of the best estimator, if it is a classifier."""
        return self.best_estimator_.classes_

    @property
    def model_(self) -> Predictor:
        """The model of the best estimator."""
        return self.best_estimator_.model_

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importances (d,) of the features to the best estimator."""
        return self.best_estimator_.feature_importances_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if all are strings."""
        return self.best_estimator_.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)
