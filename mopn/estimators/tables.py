"""Estimators of tables: columns of numbers, categories and dates, with missing values, in frames or arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, check_X_y, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.chunked_rows import Chunks
from mopn.data.input_size import check_input
from mopn.data.row_blocks import RowBlocks
from mopn.data.validation import check_sample_weight, check_weighted_classes, of_present
from mopn.estimators.base import NetworkEstimator
from mopn.estimators.classifiers import Classifier
from mopn.estimators.regressors import Regressor
from mopn.estimators.strength_choice import Choice, choose_strength
from mopn.estimators.table_encoder import TableReader, features_of, is_named
from mopn.estimators.targets import Targets
from mopn.estimators.targets_in_chunks import samples_of_chunks
from mopn.losses.losses import Loss, LossName
from mopn.losses.namespaces import to_host
from mopn.models.multi_output import Model
from mopn.models.table import TableModel
from mopn.network.problem import NetworkProblem
from mopn.solvers import Result
from mopn.solvers.progress import Verbose
from mopn.solvers.tools.checks import Rule, check_positive
from mopn.solvers.tools.deadline import Deadline
from mopn.tables.reading import read_table, row_of

__all__ = ["TableClassifier", "TableRegressor"]


def _strength(value: Any) -> Any:
    if isinstance(value, Ratio) or (isinstance(value, str) and value == "auto"):
        return value
    return check_positive.convert(value)


class TableEstimator(TableReader, NetworkEstimator):
    """Base of the estimators of tables, which learn an encoding before the network."""

    model_: TableModel
    basis_: np.ndarray
    """Units H (k, 1 + d) of the d features of ``encoding_``; the first column belongs to the constant."""

    _kernel = "homogeneous"
    _without_paths = (
        "chooses its strength itself; for folds take make_pipeline(TableEncoder(), PathCV(MultiOutputPNClassifier())), "
        "or GridSearchCV over its strength"
    )
    _rules = NetworkEstimator._rules | {
        "strength": Rule("'auto', a number > 0 or a mopn.Ratio", _strength),
    }
    # What a fit to a table does not leave open.
    refit, oracle, fit_intercept, scale, alpha = "full", "auto", True, "data", None
    interactions, validation_fraction, warm_start, random_state = None, 0.0, False, None

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, least: int = 2
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Validate the samples, learn the encoding if it is to be ``reset``, and return features in place of X."""
        if isinstance(X, Chunks):
            self._learn_in_blocks(X)
            return samples_of_chunks(self, X.replaced(partial(features_of, encoding=self.encoding_), X.classes))
        if isinstance(X, RowBlocks):
            return self._samples_of_blocks(X.with_targets(y, sample_weight, self._plain_targets), reset)
        table = self._read(X, reset=reset)
        y = self._plain_targets(y, reset=reset)
        _, y = check_X_y(
            np.zeros((table.n, 1)),
            y,
            multi_output=True,
            y_numeric=self._numeric_y,
            ensure_min_samples=least,
            estimator=self,
        )
        y = y.toarray() if sparse.issparse(y) else y
        sample_weight = check_sample_weight(to_host(sample_weight), table.n)
        check_input(0.0 if sample_weight is None else sample_weight, "sample_weight")
        present = np.arange(table.n) if sample_weight is None else np.flatnonzero(sample_weight)
        if len(present) < least:
            raise ValueError(f"at least {least} samples of positive weight are needed to fit, got {len(present)}")
        if not self._numeric_y and reset:
            check_weighted_classes(y, present)
        if len(present) < table.n:
            table = table.rows(present)
        y, sample_weight = y[present], None if sample_weight is None else sample_weight[present]
        if reset:
            self._learn(table, sample_weight)
        return self.encoding_.encode(table), y, sample_weight, present

    def _samples_on_device(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """Return features in the memory of the host, where tables are encoded."""
        return self._samples(to_host(X), y, sample_weight, **options)

    def _samples_of_blocks(
        self, X: RowBlocks, reset: bool
    ) -> tuple[RowBlocks, np.ndarray, np.ndarray | None, np.ndarray]:
        """Learn the encoding, and return blocks of features, with the targets and weights of all rows in memory."""
        tables, y, sample_weight = X.read_by(read_table).with_targets_in_memory()
        self._learn_of_row_blocks(tables.with_targets(y, sample_weight))
        features = tables.read_by(partial(self.encoding_.encode, training=True))
        y = of_present(self._plain_targets(y), sample_weight)
        return features, y, sample_weight, np.arange(len(y))

    def _set_features(self, X: Any, number: int) -> None:
        """Leave the names and the number of the columns of the table, which are set with its encoding."""

    def _shown(self, given: Any, X: Any, present: np.ndarray) -> Any:
        if isinstance(given, RowBlocks | Chunks):
            return given
        if isinstance(given, Mapping):
            return {name: _safe_indexing(column, present) for name, column in given.items()}
        (given,) = indexable(given)
        return given if len(present) == _num_samples(given) else _safe_indexing(given, present)

    def _checked(self, X: Any) -> Any:
        """Return a table for a prediction; the model checks dictionaries, lists, and arrays like that of the fit."""
        if not hasattr(self, "model_"):
            check_is_fitted(self)
        if self._is_plain(X) or (type(X) is list and not hasattr(self, "feature_names_in_")):
            return X
        encoding = self.model_.encoding
        X = row_of(X, encoding.columns, named=encoding.named)
        return X if is_named(X) else self._read(X, reset=False)

    def _named(self, model: Model) -> Model:  # type: ignore[override]
        return replace(model, feature_names=self.encoding_.feature_names)

    def _choice(self, X: Any, targets: Targets, deadline: Deadline) -> Choice:
        if not isinstance(self.strength, str):
            return super()._choice(X, targets, deadline)
        return choose_strength(self._with_strength(Ratio(0.5)), X, targets, deadline)

    def _attributes(self, problem: NetworkProblem, targets: Targets, network: Result) -> dict[str, Any]:
        found = super()._attributes(problem, targets, network)
        return found | {"model_": TableModel(found["model_"], self.encoding_)}


class TableClassifier(TableEstimator, Classifier):
    r"""Classifier of tables: numbers, categories, dates and missing values, as they are.

    The outputs are sums of squares of additive models: a weight of each class times :math:`(g_1(x_1) + \dots +
    g_c(x_c))^2`, where :math:`g_j` is a smooth function of the column j, or a number for each of its levels. So a model
    has a smooth effect of every column and of every pair of columns, of low rank. They minimise a convex problem, and
    the distance to its minimum is bounded (``gap_``).

    See Also
    --------
    TableRegressor : The same for numbers.
    TableEncoder : The features alone, for pipelines.
    MultiOutputPNClassifier : Features as they are, and sparse matrices.

    Examples
    --------
    >>> from mopn.estimators import TableClassifier
    >>> table = {"size": [1.0, 2.0, None, 4.0] * 10, "color": ["red", "red", "blue", "blue"] * 10}
    >>> classifier = TableClassifier().fit(table, ["small", "large", "large", "large"] * 10)
    >>> classifier.predict({"size": [1.0, 3.9], "color": ["red", "blue"]})
    array(['small', 'large'], dtype='<U5')
    """

    def __init__(
        self,
        *,
        loss: LossName | Loss = "logistic",
        norm: NormName = "l1",
        strength: float | Ratio | Literal["auto"] = "auto",
        curves: int = 8,
        smoothness: float = 1.0,
        levels: Collection[str | int] = (),
        max_units: int | None = 200,
        class_weight: Any = None,
        tol: float = 1e-2,
        max_time: float | None = None,
        verbose: Verbose = 0,
    ) -> None:
        """Set the parameters.

        Parameters
        ----------
        loss : str or Loss, default "logistic"
            As for :class:`MultiOutputPNClassifier`.
        norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1"
            Norm of the output weights, which makes most units zero. With "l1" every class has its own units, which are
            few, and the gap is proven quickly; "nonnegative-l1" is the same with weights >= 0, so that units only add.
            With the others classes share units.
        strength : "auto", float or Ratio, default "auto"
            Strength of the penalty; larger means fewer units. "auto" takes, of five :class:`mopn.Ratio` from 0.1 down
            to 0.001, the last one before the loss on held-out samples rises. Copies of a sample are held out together;
            samples of rows that repeat by nature, as those of a few categories do, one by one: repeat such rows, do not
            weight them.
        curves : int, default 8
            Largest number of functions of a column of numbers, beside itself.
        smoothness : float, default 1.0
            How fast these get small: the k-th has the size 1 / k^smoothness, so larger asks for smoother effects.
        levels : collection of str or int, default ()
            Names or indices of columns of numbers, or texts of numbers, that are levels, such as codes. Other texts,
            booleans and categories always are.
        max_units : int or None, default 200
            Largest number of units; None for a proof, units are added until the gap is at most ``tol``.
        class_weight : dict, "balanced" or None, default None
            Factors of the sample weights, by label.
        tol : float, default 0.01
            Relative tolerance of the objective.
        max_time : float or None, default None
            Largest number of seconds for the whole call of ``fit``. The choice of the strength takes at most a third of
            those that are left after reading; then the best strength so far is fitted.
        verbose : int or "bar", default 0
            Print a line for every strength, and every ``verbose``-th round of the last fit; "bar" shows a progress bar
            of tqdm.
        """
        self._set_parameters(locals())


class TableRegressor(TableEstimator, Regressor):
    r"""Regressor of tables: numbers, categories, dates and missing values, as they are; one or several targets.

    Predictions are ``mean(y)`` plus sums of squares of additive models :math:`(g_1(x_1) + \dots + g_c(x_c))^2`,
    times a weight of each target; see :class:`TableClassifier`.

    See Also
    --------
    TableClassifier : The same for labels.
    TableEncoder : The features alone, for pipelines.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> x = np.linspace(0, 3, 100)
    >>> table = {"x": x, "kind": np.where(np.arange(100) % 2, "odd", "even")}
    >>> y = np.where(np.arange(100) % 2, np.sin(x), np.cos(x))
    >>> TableRegressor().fit(table, y).score(table, y) > 0.99
    True
    """

    def __init__(
        self,
        *,
        loss: LossName | Loss = "squared",
        norm: NormName = "l1",
        strength: float | Ratio | Literal["auto"] = "auto",
        curves: int = 8,
        smoothness: float = 1.0,
        levels: Collection[str | int] = (),
        max_units: int | None = 200,
        tol: float = 1e-2,
        max_time: float | None = None,
        verbose: Verbose = 0,
    ) -> None:
        """Set the parameters.

        Parameters
        ----------
        loss : str or Loss, default "squared"
            As for :class:`MultiOutputPNRegressor`.
        norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1"
            Norm of the output weights, as for :class:`TableClassifier`.
        strength : "auto", float or Ratio, default "auto"
            Strength of the penalty, as for :class:`TableClassifier`.
        curves : int, default 8
            Largest number of functions of a column of numbers, beside itself.
        smoothness : float, default 1.0
            How fast these get small: the k-th has the size 1 / k^smoothness, so larger asks for smoother effects.
        levels : collection of str or int, default ()
            Names or indices of columns of numbers, or texts of numbers, that are levels.
        max_units : int or None, default 200
            Largest number of units; None for a proof, units are added until the gap is at most ``tol``.
        tol : float, default 0.01
            Relative tolerance of the objective.
        max_time : float or None, default None
            Largest number of seconds for the whole call of ``fit``. The choice of the strength takes at most a third of
            those that are left after reading; then the best strength so far is fitted.
        verbose : int or "bar", default 0
            Print a line for every strength, and every ``verbose``-th round of the last fit; "bar" shows a progress bar
            of tqdm.
        """
        self._set_parameters(locals())
