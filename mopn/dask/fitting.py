"""Fits on a cluster, where small data are gathered and fitted locally; and predictions block by block."""

import time
import warnings
from copy import copy
from functools import partial
from typing import Any, TypeVar

import dask
import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from mopn.dask.blocks import TIMEOUT, DaskBlocks, arranged, check_collection, dask_blocks
from mopn.dask.pairs import DaskPairs
from mopn.data.chunked_rows import IN_MEMORY
from mopn.data.row_blocks import row_by_row
from mopn.estimators.implicit import ImplicitFactorization
from mopn.estimators.network_estimator import NetworkAttributes, network_fit_of
from mopn.estimators.network_fit import NetworkFit
from mopn.estimators.tables import TableEstimator
from mopn.models.table import TableModel
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.signals import signals_later
from mopn.tables.functions import CURVES
from mopn.tables.reading import read_table

Estimator = TypeVar("Estimator", bound=NetworkAttributes | ImplicitFactorization)


def fit(
    estimator: Estimator,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    X_val: Any = None,
    y_val: Any = None,
    sample_weight_val: Any = None,
    classes: Any = None,
    user_features: Any = None,
    item_features: Any = None,
    client: Any = None,
    timeout: float = TIMEOUT,
) -> Estimator:
    """Fit an estimator to dask arrays or DataFrames.

    Up to 2^24 numbers (128 MiB) are fitted in the memory of this process; in tables, a column of numbers counts as
    ``1 + curves``. Larger data stay on the workers: this process runs the solver, sends parameters and receives sums,
    and the fit is as with :class:`mopn.RowBlocks` of the same blocks. Either way it is the same to the last bit for any
    number of workers.

    Parameters
    ----------
    estimator : estimator of networks, of ordered levels, of tables or of implicit feedback
        Such as ``MultiOutputPNClassifier``, ``TableRegressor`` or ``ImplicitFactorization``. It is left
        as it is; with ``warm_start=True`` the fit starts from its network.
    X : dask array or DataFrame of shape (n, d)
        Rows in chunks, which may be of unknown sizes; all columns in one chunk. Blocks are dense, SciPy's CSR or
        frames. For ``ImplicitFactorization`` rows are users, and blocks are sparse interactions.
    y : dask array, DataFrame or Series of shape (n,) or (n, m)
        As for the estimator. Regressors of numbers take it into the memory of this process.
    sample_weight : dask array or Series of shape (n,), optional
    X_val, y_val, sample_weight_val : array-like, dask array or DataFrame, optional
        Samples to validate on, as for the estimator; they come into the memory of this process.
    classes : array-like, optional
        The labels, or ordered levels, that y may have; labels that no row has get outputs, too. If they are given, the
        fit is on the workers. Default: the labels of y.
    user_features, item_features : array-like, sparse matrix or dask array, optional
        For ``ImplicitFactorization`` alone, which takes no samples but X. As the factors they are in the memory of this
        process, and a dask array comes there.
    client : dask.distributed.Client, optional
        Default: the current one.
    timeout : float, default 3600
        Seconds that a pass over the data may take; the first one computes the blocks, too.

    Returns
    -------
    estimator
        A fitted copy of the estimator, which holds neither data nor client.

    Raises
    ------
    TypeError, ValueError
        As the estimator; messages name the block and the row in it.
    OSError
        If a block cannot be computed or has changed, or the cluster is lost, before the network has units. Later this
        ends the fit with the best network so far and a ``ConvergenceWarning``.
    KeyboardInterrupt
        After Ctrl-C. The network so far is lost; ``max_time`` ends a fit with it.

    Examples
    --------
    >>> import dask.array as da
    >>> import mopn.dask
    >>> from dask.distributed import Client
    >>> from mopn.estimators import MultiOutputPNClassifier
    >>> X = da.random.default_rng(0).uniform(-1, 1, (400, 3), chunks=(100, 3))
    >>> y = da.where(X[:, 0] * X[:, 1] > 0, "equal", "different")
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     classifier = mopn.dask.fit(MultiOutputPNClassifier(max_units=4), X, y)
    >>> classifier.predict([[0.5, 0.5, 0.0], [0.5, -0.5, 0.0]])
    array(['equal', 'different'], dtype='<U9')
    """
    began = time.monotonic()
    if isinstance(estimator, ImplicitFactorization):
        others = {"y": y, "sample_weight": sample_weight, "X_val": X_val, "y_val": y_val, "classes": classes}
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise TypeError(f"{given[0]} is not for ImplicitFactorization; leave it out")
        return _fit_interactions(estimator, X, (user_features, item_features), client, timeout)
    if not isinstance(estimator, NetworkAttributes):
        raise TypeError(
            "estimator must be one of the networks, ordinal regressors or tables of mopn.estimators, "
            f"or ImplicitFactorization, got {shown(estimator)}"
        )
    for name, features in (("user_features", user_features), ("item_features", item_features)):
        if features is not None:
            raise TypeError(f"{name} is for ImplicitFactorization alone; leave it out")
    fitted = copy(estimator)
    fit_of_network = network_fit_of(fitted)
    blocks = dask_blocks(X, y, sample_weight, classes, client, timeout)
    _check_classes(fit_of_network, y, classes)
    validation = dask.compute(X_val, y_val, sample_weight_val, scheduler=blocks.client.get, traverse=False)
    options = dict(zip(("X_val", "y_val", "sample_weight_val"), validation, strict=True))
    data = _training_data(fitted, X, blocks)
    del blocks
    # The wait for the blocks counts as time of the fit.
    limit = fitted.max_time
    if limit is not None:
        fitted.max_time = max(0.0, limit - (time.monotonic() - began))
    try:
        with warnings.catch_warnings():
            # For data on workers each label occurs once, which scikit-learn takes for a sign of numbers.
            warnings.filterwarnings("ignore", "The number of unique classes")
            return fitted.fit(*data, **options)
    finally:
        fitted.max_time = limit


def _fit_interactions(
    estimator: ImplicitFactorization, X: Any, features: tuple[Any, Any], client: Any, timeout: float
) -> ImplicitFactorization:
    """Return a copy that is fitted to users in blocks; few pairs are gathered."""
    began = time.monotonic()
    fitted = copy(estimator)
    blocks = dask_blocks(X, None, None, None, client, timeout)
    users, items = dask.compute(*features, scheduler=blocks.client.get, traverse=False)
    stored = blocks.count()
    if stored <= IN_MEMORY:
        interactions = _joined([block.X for block in blocks.gathered()])
    else:
        for name in ("strength", "unobserved_weight"):
            if isinstance(getattr(estimator, name), str):
                raise ValueError(
                    f"{name} must be given for interactions on workers, got 'auto'; "
                    "choose it by a fit to some users in memory, strength as a mopn.Ratio"
                )
        interactions = DaskPairs(blocks.grouped(stored), X.shape[1], estimator.alpha)
    del blocks
    if fitted.max_time is not None:
        fitted.max_time = max(0.0, fitted.max_time - (time.monotonic() - began))
    try:
        return fitted.fit(interactions, user_features=users, item_features=items)
    finally:
        fitted.max_time = estimator.max_time


def _training_data(estimator: NetworkAttributes, X: Any, blocks: DaskBlocks) -> tuple[Any, Any, Any]:
    """Return X, y and the weights in memory if they are small; else blocks on the workers, which hold all three."""
    curves = estimator.curves if isinstance(estimator, TableEstimator) else 0
    if curves is None:
        curves = CURVES
    stored = blocks.count()
    if blocks.classes is None and stored * (1 + curves) <= IN_MEMORY:
        gathered = blocks.gathered()
        # The blocks that have rows, or an empty one.
        parts = [block for block in gathered if np.shape(block.X)[0]] or gathered[:1]
        X = _joined([block.X for block in parts])
        y = _joined([block.y for block in parts])
        return X, y, _joined([block.sample_weight for block in parts])
    empty = X._meta if hasattr(X, "columns") else np.empty((0, *X.shape[1:]))
    continued = getattr(estimator, "warm_start", False) and hasattr(estimator, "model_")
    validate_data(estimator, empty, reset=not continued, skip_check_array=True)
    convert: Any = read_table if isinstance(estimator, TableEstimator) else row_by_row
    return arranged(blocks, stored, convert), None, None


def _check_classes(fit: NetworkFit, y: Any, classes: Any) -> None:
    """Raise an error for a shape of y, or for classes, that the estimator does not take."""
    if fit.encoding.kind == "numbers":
        if classes is not None:
            raise ValueError("classes are for labels and ordered levels; this y is numbers")
        return
    if y.ndim > 1 and y.shape[1] == 1:
        raise ValueError(
            "y must be labels (n,) or an indicator matrix, and has a single column; use y[:, 0], or a column"
        )
    if y.ndim > 1 and classes is not None:
        raise ValueError("classes are for labels; an indicator matrix y has a column for each")


def _joined(parts: list[Any]) -> Any:
    """Return the rows of all parts, which are arrays, sparse matrices, frames or None."""
    if parts[0] is None:
        return None
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    with signals_later():
        from dask.dataframe.dispatch import concat

    return concat(parts, ignore_index=True)  # categories may differ


def predict(model: Any, X: Any, *, method: str = "predict") -> Any:
    """Predict for every row of dask arrays or DataFrames, lazily, block by block.

    Parameters
    ----------
    model : fitted estimator or model
        The result of :func:`fit`, or its ``model_``. It goes to the workers.
    X : dask array or DataFrame of shape (n, d)
        All columns in one chunk. X in memory is predicted at once.
    method : str, default "predict"
        The method called with each block, such as "predict_proba", "decision_function" or "outputs".

    Returns
    -------
    dask array of shape (n,) or (n, m)
        In the chunks of rows of X.

    Raises
    ------
    AttributeError
        If the model has no such method.
    ValueError, TypeError
        As the method: for the columns of X at once, for their contents when a block is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import mopn.dask
    >>> from mopn.estimators import MultiOutputPNClassifier
    >>> X = da.random.default_rng(0).uniform(-1, 1, (400, 3), chunks=(100, 3))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> classifier = MultiOutputPNClassifier(max_units=4).fit(X.compute(), y.compute())
    >>> lazy = mopn.dask.predict(classifier, X, method="predict_proba")
    >>> lazy.chunks
    ((100, 100, 100, 100), (2,))
    >>> bool((mopn.dask.predict(classifier, X) == y).mean() > 0.95)
    True
    """
    if not dask.is_dask_collection(X):
        return getattr(model, method)(X)
    check_collection(X, "X")
    of_row = getattr(model, method)(_typical_row(model, X))
    empty = of_row[:0]
    if hasattr(X, "columns"):
        return X.map_partitions(partial(_predicted, model, method, empty), meta=empty, enforce_metadata=False)
    model = copy(model)
    # Arrays have no names; the call above has warned of this.
    vars(model).pop("feature_names_in_", None)
    shape = {"drop_axis": 1} if of_row.ndim == 1 else {"chunks": (X.chunks[0], of_row.shape[1:])}
    return X.map_blocks(partial(_predicted, model, method, empty), dtype=of_row.dtype, meta=empty, **shape)


def _typical_row(model: Any, X: Any) -> Any:
    """Return a row such as X has, with numbers that every column may hold."""
    # Values of every column of a table may be missing, but no other number fits into all columns.
    entry = np.nan if isinstance(getattr(model, "model_", model), TableModel) else 0.0
    if hasattr(X, "columns"):
        return type(X._meta)(entry, index=[0], columns=X.columns)
    return np.full((1, *X.shape[1:]), entry)


def _predicted(model: Any, method: str, empty: np.ndarray, X: Any) -> np.ndarray:
    """Return the predictions for a block; ``empty`` if it has no rows."""
    return getattr(model, method)(X) if X.shape[0] else empty
