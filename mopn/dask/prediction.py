"""Predictions for dask arrays and DataFrames, block by block."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import dask
import numpy as np

from mopn.dask.blocks import check_collection
from mopn.models.table import TableModel


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
        As the method: for the columns of X here, for what they hold when a block is computed.

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
    row = getattr(model, method)(_a_row(model, X))
    if hasattr(X, "columns"):
        of_block = partial(_of_rows, model, method, row[:0])
        return X.map_partitions(of_block, meta=row[:0], enforce_metadata=False)
    model = copy(model)
    vars(model).pop("feature_names_in_", None)  # that arrays have none the row above was warned of
    shape = {"drop_axis": 1} if row.ndim == 1 else {"chunks": (X.chunks[0], row.shape[1:])}
    return X.map_blocks(partial(_of_rows, model, method, row[:0]), dtype=row.dtype, meta=row[:0], **shape)


def _a_row(model: Any, X: Any) -> Any:
    # Every column of a table may be missing, and no other number fits into all.
    entry = np.nan if isinstance(getattr(model, "model_", model), TableModel) else 0.0
    if hasattr(X, "columns"):
        return type(X._meta)(entry, index=[0], columns=X.columns)
    return np.full((1, *X.shape[1:]), entry)


def _of_rows(model: Any, method: str, empty: np.ndarray, X: Any) -> np.ndarray:
    return getattr(model, method)(X) if X.shape[0] else empty
