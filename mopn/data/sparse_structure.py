"""The structure of sparse matrices, which SciPy's constructors do not check.

Compiled functions follow every index, and one outside reads or writes foreign memory. SciPy's ``check_format`` does not
look at all formats, and may change the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.values import to_host


def compressed(X: Any, name: str = "X") -> Any:
    """Return a sparse matrix in CSR or CSC, without a copy if it has one of them, and all else on the host.

    Raises ``ValueError`` if its arrays do not fit each other or its shape, in one pass.
    """
    X = to_host(X)
    if not sparse.issparse(X) or X.ndim != 2:
        return X
    if X.format not in ("csr", "csc"):
        _refuse(X, _fault_before_conversion(X), name)
        X = X.tocsr()
    n, d = X.shape
    _refuse(X, _fault_of_lines(X, n, d) if X.format == "csr" else _fault_of_lines(X, d, n), name)
    if X.indices.dtype.kind == "u":
        X = type(X)((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    return X


def _refuse(X: Any, fault: str | None, name: str) -> None:
    if fault:
        raise ValueError(
            f"{name} is not a valid {X.format.upper()} matrix of shape {X.shape}: {fault}; "
            "build it anew, for example by scipy.sparse.coo_array((data, (rows, columns)), shape)"
        )


def _fault_before_conversion(X: Any) -> str | None:
    """Return a fault that SciPy's conversion to CSR does not survive."""
    n, d = X.shape
    if X.format == "coo":
        return (
            _fault_of_lengths(row=X.row, col=X.col, data=X.data)
            or _fault_of_indices("row", X.row, n)
            or _fault_of_indices("col", X.col, d)
        )
    if X.format == "bsr":
        rows, columns = X.blocksize
        return _fault_of_lines(X, n // rows, d // columns)
    if X.format == "dia":
        return _fault_of_lengths(offsets=X.offsets, data=X.data)
    if X.format == "lil":
        equal = [*map(len, X.rows)] == [*map(len, X.data)]
        return None if equal else "the lists in rows and data are not of equal lengths"
    return None


def _fault_of_lines(X: Any, count: int, length: int) -> str | None:
    """Return a fault of the arrays of ``count`` rows, or columns, of a length."""
    indptr, indices = X.indptr, X.indices
    for array, what in ((indptr, "indptr"), (indices, "indices")):
        if array.dtype.kind not in "iu":
            return f"{what} holds no integers but {array.dtype}"
    if X.data.dtype.kind not in "biufc":
        return f"data holds no numbers but {X.data.dtype}"
    if X.data.ndim != (3 if X.format == "bsr" else 1):
        return f"data has shape {X.data.shape}"
    if indptr.shape != (count + 1,):
        return f"indptr has shape {indptr.shape}, not {(count + 1,)}"
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return "indptr does not start at 0, or decreases somewhere"
    if indptr[-1] > len(indices):
        return f"indptr ends at {indptr[-1]}, but there are {len(indices)} indices"
    used = indices[: indptr[-1]]
    return _fault_of_lengths(indices=indices, data=X.data) or _fault_of_indices("indices", used, length)


def _fault_of_lengths(**arrays: np.ndarray) -> str | None:
    lengths = {name: len(array) for name, array in arrays.items()}
    return None if len(set(lengths.values())) == 1 else f"its arrays are not of equal lengths: {lengths}"


def _fault_of_indices(name: str, indices: np.ndarray, length: int) -> str | None:
    if not indices.size:
        return None
    least, largest = indices.min(), indices.max()
    return None if least >= 0 and largest < length else f"{name} holds {least if least < 0 else largest}"
