"""The estimators of networks on dask arrays, and of tables on DataFrames."""

from __future__ import annotations

import math
import operator
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import dask
import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from mopn.dask.blocks import TIMEOUT, DaskBlocks, dask_array, dask_blocks, dask_frames
from mopn.data.row_blocks import RawBlock, named, row_by_row
from mopn.data.validation import check_weights, distinct_labels, finite_numbers, label_codes, of_present
from mopn.data.values import as_targets
from mopn.estimators.availability import available_if
from mopn.estimators.base import NetworkEstimator
from mopn.estimators.classifiers import MultiOutputFMClassifier, MultiOutputPNClassifier, check_probabilities
from mopn.estimators.ordinal import OrdinalFMRegressor, OrdinalPNRegressor
from mopn.estimators.regressors import MultiOutputFMRegressor, MultiOutputPNRegressor
from mopn.estimators.table_encoder import TableReader
from mopn.estimators.tables import TableClassifier, TableRegressor
from mopn.estimators.targets import Targets
from mopn.solvers.tools.checks import shown
from mopn.tables.encoding import TableEncoding
from mopn.tables.reading import read_table

__all__ = [
    "DaskMultiOutputFMClassifier",
    "DaskMultiOutputFMRegressor",
    "DaskMultiOutputPNClassifier",
    "DaskMultiOutputPNRegressor",
    "DaskOrdinalFMRegressor",
    "DaskOrdinalPNRegressor",
    "DaskTableClassifier",
    "DaskTableRegressor",
]


class DaskEstimator(NetworkEstimator):
    """Base of the estimators: the workers hold the data, and this process runs the solver of the plain estimator."""

    # Whether y has few distinct values, which are encoded block by block.
    _by_label: ClassVar[bool] = True
    _without_paths = (
        "has its data on a cluster, and folds are drawn at random, which needs X in memory: choose the strength by "
        "PathCV of the plain estimator, to_local(), on a part of the rows; as a mopn.Ratio it serves all rows"
    )
    # An entry that every column of X takes.
    _entry: ClassVar[float] = 0.0

    client: Any = None
    """The ``dask.distributed.Client`` of ``fit`` and ``score``, if one is set; None for the current one. It is no
    parameter, so copies, pickles and :meth:`to_local` do not have it."""

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        target_weight: Any = None,
        classes: Any = None,
        client: Any = None,
        timeout: float = TIMEOUT,
    ) -> Any:
        """Fit the network on the workers of a cluster.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d)
            Rows in chunks, which may be of unknown sizes; all columns in one chunk. Blocks are dense or SciPy's CSR.
        y : dask array, DataFrame or Series of shape (n,) or (n, m)
            As of the plain estimator. Regressors of numbers take it into the memory of this process as well.
        sample_weight : dask array or Series of shape (n,), optional
        target_weight : array-like of shape (m,), optional
            As of the plain estimator.
        classes : array-like, optional
            The labels, or ordered levels, that y may have; those that no row has get outputs, too. Default: those that
            it has.
        client : dask.distributed.Client, optional
            Default: the attribute ``client``, or else the current one.
        timeout : float, default 3600
            Seconds that a pass over the data may take; the first one computes the blocks, too.

        Returns
        -------
        self
            The fitted estimator, which holds neither data nor client.

        Raises
        ------
        TypeError, ValueError
            As the plain estimator; messages name the block and the row in it.
        OSError
            If a block cannot be computed or has changed, or the cluster is lost, before the network has units. Later
            this ends the fit with the best network so far.

        Warns
        -----
        ConvergenceWarning
            Likewise, and as the plain estimator.
        """
        if classes is not None and not self._by_label:
            raise ValueError("classes are for labels and ordered levels; this y is numbers")
        y, client = dask_array(y, "y"), self.client if client is None else client
        blocks = dask_blocks(self._array(X), y, sample_weight, classes, client, timeout, self._convert)
        self._check_columns(X, reset=not (self.warm_start and hasattr(self, "model_")))
        return super().fit(blocks, y, target_weight=target_weight)

    def predict(self, X: Any) -> Any:
        """Predict y, like that of ``fit``; lazily, block by block, for a dask array or DataFrame X (n, d)."""
        return self._on_blocks("predict", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the plain estimator; predictions, y and weights come to this process."""
        y, weights = dask_array(y, "y"), None if sample_weight is None else dask_array(sample_weight, "sample_weight")
        predicted, y, weights = dask.compute(self.predict(X), y, weights, scheduler=self.client)
        return self._score(
            Targets(self._plain_targets(y, reset=False), np.empty(0), self.loss_, "", None, weights), predicted
        )

    def to_local(self) -> Any:
        """Return the plain estimator, fitted if this one is."""
        local = next(kind for kind in type(self).__mro__ if not issubclass(kind, DaskEstimator))
        plain = local(**self.get_params(deep=False))
        vars(plain).update({name: value for name, value in vars(self).items() if name != "client"})
        return plain

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "client"}

    def _on_blocks(self, method: str, X: Any) -> Any:
        """Call a method of the plain estimator, for every block of a dask array."""
        if not dask.is_dask_collection(X):
            return getattr(self.to_local(), method)(X)
        check_is_fitted(self)
        self._check_columns(X, reset=False)
        X = self._array(X)
        # What predictions need, and nothing else, goes to the workers.
        plain = type(self.to_local())(loss=self.loss)
        fitted = ("model_", "n_features_in_", self._classes_name)
        vars(plain).update({name: value for name, value in vars(self).items() if name in fitted})
        row = getattr(plain, method)(self._convert(np.full((1, X.shape[1]), self._entry)))
        shape = {"drop_axis": 1} if row.ndim == 1 else {"chunks": (X.chunks[0], row.shape[1:])}
        of_block = partial(_of_rows, getattr(plain, method), self._convert, row[:0])
        return X.map_blocks(of_block, dtype=row.dtype, meta=row[:0], **shape)

    def _array(self, X: Any) -> Any:
        """Return the dask array of X."""
        return dask_array(X, "X")

    @staticmethod
    def _convert(X: Any) -> Any:
        """Return what a plain estimator takes of a block of this array."""
        return row_by_row(X)

    def _check_columns(self, X: Any, *, reset: bool) -> None:
        """Check the number of columns, and their names and order where X is a DataFrame, as plain estimators do."""
        # What a DataFrame has in place of a partition: all columns and no rows.
        empty = X._meta if hasattr(X, "columns") else np.empty((0, *X.shape[1:]))
        validate_data(self, empty, reset=reset, skip_check_array=True)

    def _samples(self, X: DaskBlocks, y: Any, sample_weight: Any, **_: Any) -> Any:
        """Return the blocks and, in place of all samples, a row for every label and its weight, or the numbers."""
        if not self._by_label:
            y, sample_weight = X.reduce(partial(named, function=_numbers), _joined)
            return X, y, sample_weight, None
        classes = X.classes
        if y.ndim > 1:
            if y.shape[1] == 1:
                raise ValueError(f"y must be labels (n,) or an indicator matrix, got shape {y.shape}; use y[:, 0]")
            if classes is not None:
                raise ValueError("classes are for labels; an indicator matrix y has a column for each")
            classes = _INDICATORS
        found = X.reduce(partial(named, function=partial(_counted, classes=classes)), operator.add)
        if y.ndim > 1:
            return X, np.repeat(_INDICATORS[:, None], y.shape[1], axis=1), None, None
        if classes is None:  # as in memory, labels of rows of weight 0 alone are none
            found = LabelWeights(found.labels[found.weights > 0.0], found.weights[found.weights > 0.0])
        return X, found.labels, found.weights, None

    def _encode(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Targets:
        if getattr(self, "class_weight", None) == "balanced" and sample_weight is not None and not sample_weight.all():
            raise ValueError(
                f"class_weight='balanced' needs rows of each class, and {shown(y[sample_weight == 0][0])} has none"
            )
        with warnings.catch_warnings():
            # Each label is there once, which scikit-learn takes for a sign of numbers.
            warnings.filterwarnings("ignore", "The number of unique classes")
            return super()._encode(y, sample_weight)  # type: ignore[safe-super]

    def _data(self, X: DaskBlocks, targets: Targets) -> tuple[Any, Any, Any]:
        if not self._by_label:
            return X, None, None
        labels = _INDICATORS if targets.form == "indicator" else targets.y
        code = partial(_encoded, labels=labels, values=targets.values, factors=targets.class_factor)
        return X.replaced(code, np.arange(len(labels)) if targets.loss.targets == "labels" else None), None, None


class DaskClassifier(DaskEstimator):
    """What classifiers and ordinal regressors have besides."""

    def decision_function(self, X: Any) -> Any:
        """Return the outputs (n,) or (n, m); lazily, block by block, for a dask array or DataFrame X (n, d)."""
        return self._on_blocks("decision_function", X)

    @available_if(check_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return probabilities (n, c) or (n, m); lazily, block by block, for a dask array or DataFrame X (n, d)."""
        return self._on_blocks("predict_proba", X)


class DaskTable(DaskEstimator):
    """What estimators of tables have besides: partitions are tables, and become features on the workers."""

    _entry = math.nan

    def _array(self, X: Any) -> Any:
        return dask_frames(X, "X")

    @staticmethod
    def _convert(X: Any) -> Any:
        return read_table(X)

    def _on_blocks(self, method: str, X: Any) -> Any:
        assert isinstance(self, TableReader)
        if dask.is_dask_collection(X) and hasattr(X, "columns") and self._has_columns(X.columns):
            X = X[self.feature_names_in_.tolist()]  # blocks have no names
        return super()._on_blocks(method, X)

    def _samples(self, X: DaskBlocks, y: Any, sample_weight: Any, **_: Any) -> Any:
        assert isinstance(self, TableReader)
        self._learn_in_blocks(X)
        encode = partial(named, function=partial(_features, encoding=self.encoding_))
        return super()._samples(X.replaced(encode, X.classes), y, sample_weight)


class DaskMultiOutputPNClassifier(DaskClassifier, MultiOutputPNClassifier):
    """A :class:`~mopn.estimators.MultiOutputPNClassifier`, with its parameters and attributes, for dask arrays.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from mopn.dask import DaskMultiOutputPNClassifier
    >>> X = da.random.default_rng(0).uniform(-1, 1, (400, 3), chunks=(100, 3))
    >>> y = da.where(X[:, 0] * X[:, 1] > 0, "equal", "different")
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     classifier = DaskMultiOutputPNClassifier(max_units=4).fit(X, y)
    ...     lazy = classifier.predict(X)
    ...     lazy.chunks, classifier.score(X, y) > 0.95
    (((100, 100, 100, 100),), True)
    >>> classifier.to_local().predict([[0.5, 0.5, 0.0], [0.5, -0.5, 0.0]])
    array(['equal', 'different'], dtype='<U9')
    """


class DaskMultiOutputFMClassifier(DaskClassifier, MultiOutputFMClassifier):
    """A :class:`~mopn.estimators.MultiOutputFMClassifier`, with its parameters and attributes, for dask arrays.

    Examples
    --------
    It is used as in the example of :class:`DaskMultiOutputPNClassifier`.

    >>> from mopn.dask import DaskMultiOutputFMClassifier
    >>> DaskMultiOutputFMClassifier(max_units=4).to_local()
    MultiOutputFMClassifier(max_units=4)
    """


class DaskMultiOutputPNRegressor(DaskEstimator, MultiOutputPNRegressor):
    """A :class:`~mopn.estimators.MultiOutputPNRegressor`, with its parameters and attributes, for dask arrays.

    Examples
    --------
    It is used as in the example of :class:`DaskMultiOutputPNClassifier`.

    >>> from mopn.dask import DaskMultiOutputPNRegressor
    >>> DaskMultiOutputPNRegressor(max_units=4).to_local()
    MultiOutputPNRegressor(max_units=4)
    """

    _by_label = False


class DaskMultiOutputFMRegressor(DaskEstimator, MultiOutputFMRegressor):
    """A :class:`~mopn.estimators.MultiOutputFMRegressor`, with its parameters and attributes, for dask arrays.

    Examples
    --------
    It is used as in the example of :class:`DaskMultiOutputPNClassifier`.

    >>> from mopn.dask import DaskMultiOutputFMRegressor
    >>> DaskMultiOutputFMRegressor(max_units=4).to_local()
    MultiOutputFMRegressor(max_units=4)
    """

    _by_label = False


class DaskOrdinal(DaskEstimator):
    """What regressors of ordered levels have besides."""

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities (n, n_levels); lazily, block by block, for a dask array or DataFrame X (n, d)."""
        return self._on_blocks("predict_proba", X)


class DaskOrdinalFMRegressor(DaskOrdinal, OrdinalFMRegressor):
    """An :class:`~mopn.estimators.OrdinalFMRegressor`, with its parameters and attributes, for dask arrays.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from mopn.dask import DaskOrdinalFMRegressor
    >>> X = da.random.default_rng(0).uniform(-1, 1, (100, 3), chunks=(50, 3))
    >>> y = 1 + (X[:, 0] > 0) + (X[:, 1] > 0)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     model = DaskOrdinalFMRegressor(max_units=1, tol=0.1).fit(X, y)
    >>> model.to_local().predict_proba([[0.5, 0.5, 0.0]]).shape
    (1, 3)
    """


class DaskOrdinalPNRegressor(DaskOrdinal, OrdinalPNRegressor):
    """An :class:`~mopn.estimators.OrdinalPNRegressor`, with its parameters and attributes, for dask arrays.

    Examples
    --------
    It is used as in the example of :class:`DaskOrdinalFMRegressor`.

    >>> from mopn.dask import DaskOrdinalPNRegressor
    >>> DaskOrdinalPNRegressor(max_units=4).to_local()
    OrdinalPNRegressor(max_units=4)
    """


class DaskTableClassifier(DaskTable, DaskClassifier, TableClassifier):
    """A :class:`~mopn.estimators.TableClassifier`, with its parameters and attributes, for dask DataFrames.

    The workers encode their partitions, which may have different categories; knots are quantiles up to a rank error of
    at most (1 + log2 of the number of partitions) / 8190.

    Examples
    --------
    >>> import pandas as pd
    >>> import dask.dataframe
    >>> from dask.distributed import Client
    >>> from mopn.dask import DaskTableClassifier
    >>> table = pd.DataFrame({"size": [1.0, 2.0, None, 4.0] * 30, "color": ["red", "red", "blue", "blue"] * 30})
    >>> table["label"] = ["small", "large", "large", "large"] * 30
    >>> frame = dask.dataframe.from_pandas(table, npartitions=2)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     classifier = DaskTableClassifier(strength=0.1).fit(frame[["size", "color"]], frame["label"])
    >>> classifier.to_local().predict({"size": 1.0, "color": "red"}).tolist()
    ['small']
    """


class DaskTableRegressor(DaskTable, TableRegressor):
    """A :class:`~mopn.estimators.TableRegressor`, with its parameters and attributes, for dask DataFrames.

    Examples
    --------
    It is used as in the example of :class:`DaskTableClassifier`.

    >>> from mopn.dask import DaskTableRegressor
    >>> DaskTableRegressor(curves=4).to_local()
    TableRegressor(curves=4)
    """

    _by_label = False


_INDICATORS = np.arange(2)


@dataclass(frozen=True)
class LabelWeights:
    """Sorted distinct labels, and the sums of the weights of their rows."""

    labels: np.ndarray
    weights: np.ndarray

    def __add__(self, other: LabelWeights) -> LabelWeights:
        labels, codes = distinct_labels(np.concatenate([self.labels, other.labels]))
        return LabelWeights(labels, np.bincount(codes, np.concatenate([self.weights, other.weights])))


def _counted(chunk: RawBlock, classes: np.ndarray | None) -> LabelWeights:
    y = as_targets(chunk.y, numeric=False)
    labels, codes = distinct_labels(y) if classes is None else (classes, label_codes(y, classes))
    weights = check_weights(chunk.sample_weight, len(y)) if y.ndim == 1 else None
    return LabelWeights(labels, np.bincount(codes.ravel(), weights, minlength=len(labels)))


def _encoded(chunk: RawBlock, labels: np.ndarray, values: np.ndarray, factors: np.ndarray | None) -> RawBlock:
    """Return a block with the targets of a problem, given those of each label, and the factors of their weights."""
    y, weights = as_targets(chunk.y, numeric=False), chunk.sample_weight
    codes = label_codes(of_present(y, weights, labels[0]) if y.ndim == 1 else y, labels)
    if factors is not None:
        weights = factors[codes] if weights is None else weights * factors[codes]
    return RawBlock(
        chunk.number, chunk.X, values[codes] if codes.ndim == 1 else np.take_along_axis(values, codes, 0), weights
    )


def _features(block: RawBlock, encoding: TableEncoding) -> RawBlock:
    """Return a block with the features of its table."""
    return block._replace(X=encoding.encode(block.X, training=True))


def _of_rows(predict: Any, convert: Any, empty: np.ndarray, X: Any) -> np.ndarray:
    """Return the predictions for a block, which may have no rows."""
    return predict(convert(X)) if X.shape[0] else empty


def _numbers(chunk: RawBlock) -> tuple[np.ndarray, np.ndarray | None]:
    y = finite_numbers(chunk.y, "y")
    return y, check_weights(chunk.sample_weight, len(y))


def _joined(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    return None if a is None or b is None else np.concatenate([a, b])
