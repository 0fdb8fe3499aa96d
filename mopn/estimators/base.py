"""Base classes of all estimators: parameters, validated samples, prediction and scores."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_X_y

from mopn.data.relation_design import RelationBlocks
from mopn.data.row_blocks import RowBlocks
from mopn.data.targets import as_targets
from mopn.data.validation import (
    check_input,
    check_sample_weight,
    check_weighted_classes,
    compressed,
    filled_targets,
)
from mopn.data.values import is_series, to_host
from mopn.estimators.callbacks import CallbackSupportMixin
from mopn.estimators.parameters import COMMON, readable, validated
from mopn.losses.losses import Loss
from mopn.models.base import Fitted, Predictor
from mopn.models.multi_output import Model
from mopn.solvers import Result, Status, Trace
from mopn.solvers.tools.checks import Rule
from mopn.solvers.tools.decorators import quiet

_FLOATS = (np.float64, np.float32)
_X_FORMAT: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": _FLOATS, "order": "C"}


class ModelEstimator(CallbackSupportMixin, Fitted, BaseEstimator):
    """Base of all estimators: validated samples, predictions by a model, and warnings at the end of a fit."""

    _numeric_y: ClassVar[bool]
    _rules: ClassVar[dict[str, Rule]] = COMMON

    # The names of the columns of y, if it is a Series or DataFrame.
    _target_names: Sequence[str] = ()

    model_: Predictor
    """The model for predictions, which ``save`` writes."""
    loss_: Loss
    """The loss of the outputs, with its parameters."""
    objective_: float
    """The objective."""
    status_: Status
    """Why the solver stopped; ``status_.message`` is a sentence."""
    n_iter_: int
    """Number of iterations, at least 1; of networks, the rounds in which units entered."""
    trace_: Trace
    """A row per iteration: time, objective, gaps of networks."""
    n_features_in_: int
    """Number of features d."""
    feature_names_in_: np.ndarray
    """Names (d,) of the features, if all are strings."""

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n,) or (n, m), like the y of ``fit``.

        Parameters
        ----------
        X : as for ``fit``, but no RowBlocks: predict them block by block
        """
        X = self._checked(X)  # raises an error before the first fit
        return self.model_.predict(X)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importances (d,) without rows: deviations of the features in the fit, times mean slopes of the outputs.

        For degrees up to 2, such as for scikit-learn's ``RFE``. The slopes are root mean squares over independent
        normal features with the means and deviations of the fit, where it centers or scales X, or else 0 and 1.
        """
        check_is_fitted(self)
        from mopn.explain.margins import importances_without_rows

        return importances_without_rows(self.model_, getattr(self, "_coordinates", None))

    def _fitted_model(self) -> Predictor:
        check_is_fitted(self)
        return self.model_

    def _named(self, model: Any) -> Any:
        named = replace(model, feature_names=getattr(self, "feature_names_in_", None))
        return replace(named, output_names=self._names_of_outputs(named)) if isinstance(named, Model) else named

    def _names_of_outputs(self, model: Model) -> Any:
        """Return the names of the targets, if an output is for each; labels name their outputs themselves."""
        alike = model.target not in ("labels", "ordinal") and len(self._target_names) == model.weights.shape[1]
        return self._target_names if alike else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, least: int = 2, every_row: bool = False
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Validate at least ``least`` samples to fit; return the samples of positive weight, and their indices.

        With ``every_row`` X has the others, too.
        """
        if isinstance(X, RowBlocks):
            return self._samples_of_blocks(X.with_targets(y, sample_weight, self._plain_targets), reset)
        y = self._plain_targets(y, reset=reset)
        X = readable(compressed(to_host(X)), "X")
        checks = _X_FORMAT | {"multi_output": True, "y_numeric": self._numeric_y, "ensure_min_samples": least}
        if isinstance(X, RelationBlocks):
            if reset:
                self._set_features(X, X.shape[1])
            self._check_relations(X)
            y = check_X_y(X.design.places, y, estimator=self, **checks)[1]
        else:
            X, y = validated(self, X, y, reset=reset, **checks)
        y, sample_weight, present = self._weighted(y, sample_weight, least, reset)
        if len(present) < X.shape[0] and not every_row:
            X = X.tocsr()[present] if sparse.issparse(X) else X[present]
        return X, y, sample_weight, present

    def _weighted(
        self, y: Any, sample_weight: Any, least: int, reset: bool
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return the targets, validated weights and indices of the samples of positive weight."""
        y = y.toarray() if sparse.issparse(y) else y
        sample_weight = check_sample_weight(to_host(sample_weight), len(y))
        check_input(0.0 if sample_weight is None else sample_weight, "sample_weight")
        present = np.arange(len(y)) if sample_weight is None else np.flatnonzero(sample_weight)
        if len(present) < least:
            raise ValueError(f"at least {least} samples of positive weight are needed to fit, got {len(present)}")
        if not self._numeric_y and reset:
            check_weighted_classes(y, present)
        return y[present], None if sample_weight is None else sample_weight[present], present

    def _check_relations(self, X: RelationBlocks) -> None:
        if X.shape[1] != self.n_features_in_:
            name = type(self).__name__
            raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {self.n_features_in_} features")

    def _samples_of_blocks(
        self, X: RowBlocks, reset: bool
    ) -> tuple[RowBlocks, np.ndarray, np.ndarray | None, np.ndarray]:
        """Return blocks of X, and the targets and weights of all rows in memory, which the problem validates."""
        X, y, sample_weight = X.with_targets_in_memory()
        y = filled_targets(self._plain_targets(y, reset=False), sample_weight)
        return self._in_known_order(X, reset), y, sample_weight, np.arange(len(y))

    def _in_known_order(self, X: RowBlocks, reset: bool) -> RowBlocks:
        """Return blocks with named columns in the order of the fit before, if it is continued."""
        X = copy(X)
        if not reset:
            X.columns = list(getattr(self, "feature_names_in_", []))
        return X

    def _set_features(self, X: Any, number: int) -> None:
        """Set the number of features, and the names of columns that scikit-learn does not read."""
        self.n_features_in_ = number
        if isinstance(X, RowBlocks | RelationBlocks):
            self._set_names(X)

    def _set_names(self, X: Any) -> None:
        """Replace the feature names of the fit before by the columns of X, if all are strings."""
        self.__dict__.pop("feature_names_in_", None)
        names = getattr(X, "columns", [])
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, object)

    def _plain_targets(self, y: Any, *, reset: bool = True) -> Any:
        """Return y as an array of numbers or labels; None and sparse matrices stay."""
        if reset:
            names = [y.name] if is_series(y) else list(getattr(y, "columns", ()))
            self._target_names = names if all(isinstance(name, str) and name for name in names) else []
        y = compressed(y, "y")
        if y is None or sparse.issparse(y):
            return y
        return as_targets(y, numeric=self._numeric_y, advice=self._advice_of_texts())

    def _advice_of_texts(self) -> str:
        """Return which estimators take targets that are texts."""
        classifier = type(self).__name__.replace("Regressor", "Classifier")
        return f"{classifier} takes them as classes, a regressor takes numbers"

    def _checked(self, X: Any) -> Any:
        if hasattr(self, "model_") and self._is_plain(X):
            return X
        check_is_fitted(self)
        if isinstance(X, RelationBlocks):
            self._check_relations(X)
            return X
        return validated(self, readable(compressed(X), "X"), reset=False, **_X_FORMAT)

    def _is_plain(self, X: Any) -> bool:
        """Whether X is an array like the fit's; the model checks the rest, so that single rows take microseconds."""
        if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in _FLOATS:
            return False
        return len(X) > 0 and X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_")


def check_parameters(estimator: ModelEstimator) -> None:
    """Raise an error that names a parameter of a wrong value."""
    rules = estimator._rules
    for name, value in estimator.get_params(deep=False).items():
        if name in rules:
            rules[name](value, name)


def raise_interruption(result: Result) -> None:
    """Raise ``KeyboardInterrupt`` or the error of a callback, if a run ended by it."""
    if result.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.status == Status.CALLBACK_FAILED and result.error is not None:
        raise result.error


class Scored:
    """Mixin for ``score``, in front of scikit-learn's mixins, which compute it."""

    @quiet()
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of predicted labels, or the R² of predicted numbers: at most 1, the larger the better.

        X, y and the weights are as for ``predict`` and ``fit``.
        """
        estimator: Any = super()
        y = self._plain_targets(y, reset=False)  # type: ignore[attr-defined]
        return float(estimator.score(X, y, to_host(sample_weight)))
