"""Sparse X: other formats, storage that is not canonical, and indices that are wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tests.fuzz.inputs.arrays import Change, dense
from tests.fuzz.trial import pick


def _csr(X: Any) -> sparse.csr_array:
    return sparse.csr_array(dense(X))


def _unsorted(X: Any) -> sparse.csr_array:
    X = _csr(X)
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:stop] = X.indices[start:stop][::-1].copy()
        X.data[start:stop] = X.data[start:stop][::-1].copy()
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)


def _repeated(X: Any) -> sparse.csr_array:
    """Return each entry as two halves."""
    X = _csr(X)
    parts = np.repeat(0.5 * X.data, 2), np.repeat(X.indices, 2), 2 * X.indptr
    return sparse.csr_array(parts, shape=X.shape)


def _explicit_zeros(X: Any) -> sparse.csr_array:
    X = dense(X)
    full = sparse.csr_array(np.ones(X.shape))
    full.data[:] = X.ravel()
    return full


def _long_indices(X: Any) -> sparse.csr_array:
    X = _csr(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _spare_capacity(X: Any) -> sparse.csr_array:
    X = _csr(X)
    X.data, X.indices = np.append(X.data, [np.nan] * 3), np.append(X.indices, [-1] * 3).astype(X.indices.dtype)
    return X


def _read_only(X: Any) -> sparse.csr_array:
    X = _csr(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


# Forms of the same numbers.
FORMS: dict[str, Change] = {
    **{
        f"{name}_{kind}": lambda rng, X, make=f"{name}_{kind}": getattr(sparse, make)(dense(X))
        for name in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
        for kind in ("array", "matrix")
    },
    "unsorted": lambda rng, X: _unsorted(X),
    "unsorted CSC": lambda rng, X: _unsorted(dense(X).T).T,
    "repeated entries": lambda rng, X: _repeated(X),
    "repeated entries, COO": lambda rng, X: _repeated(X).tocoo(),
    "explicit zeros": lambda rng, X: _explicit_zeros(X),
    "long indices": lambda rng, X: _long_indices(X),
    "spare capacity": lambda rng, X: _spare_capacity(X),
    "read-only": lambda rng, X: _read_only(X),
}

SPARSE_TYPES: dict[str, Change] = {
    **{
        f"sparse {name}": lambda rng, X, name=name: sparse.csr_array(np.round(3 * dense(X)).astype(name))
        for name in ("f4", "i1", "i8", "u2", "?", "c16", "g")
    },
    "ones": lambda rng, X: sparse.csr_array((dense(X) > 0).astype(float)),
    "sparse zeros": lambda rng, X: sparse.csr_array(X.shape),
    "an empty column": lambda rng, X: sparse.csr_array(dense(X) * (np.arange(X.shape[1]) > 0)),
    "an empty row": lambda rng, X: sparse.csr_array(dense(X) * (np.arange(X.shape[0]) > 0)[:, None]),
    "sparse NaN": lambda rng, X: _with_first(X, np.nan),
    "sparse infinity": lambda rng, X: _with_first(X, np.inf),
    "one axis": lambda rng, X: sparse.coo_array(dense(X)[:, 0]),
    "no rows": lambda rng, X: sparse.csr_array((0, X.shape[1])),
    "no columns": lambda rng, X: sparse.csr_array((X.shape[0], 0)),
    "a sum that overflows": lambda rng, X: _with_first(X, 1.5e308, _repeated),
}


def _with_first(X: Any, value: float, make: Callable[[Any], sparse.csr_array] = _csr) -> sparse.csr_array:
    """Return X with another number in place of the first one, or of its two halves."""
    X = make(X)
    X.data[:2] = value
    return X


# -- malformed ---------------------------------------------------------------------------------------------------------


def _damaged(part: str, damage: Callable[[np.random.Generator, np.ndarray], Any]) -> Change:
    """Return a change of one of the three arrays of CSR or CSC, after the constructor's checks."""

    def change(rng: np.random.Generator, X: Any) -> Any:
        X = pick(rng, (sparse.csr_array, sparse.csc_array, sparse.csr_matrix))(dense(X))
        array = getattr(X, part).copy()
        replaced = damage(rng, array)
        setattr(X, part, array if replaced is None else replaced)
        return X

    return change


def _put(value: int) -> Callable[[np.random.Generator, np.ndarray], None]:
    def damage(rng: np.random.Generator, array: np.ndarray) -> None:
        array[rng.integers(len(array))] = value

    return damage


MALFORMED: dict[str, Change] = {
    **{
        f"an index {value}": _damaged("indices", _put(value))
        for value in (10, 60, 1000, 10**6, 2**31 - 1, -1, -5, -(2**31))
    },
    **{f"a start {value}": _damaged("indptr", _put(value)) for value in (0, 1000, 2**31 - 1, -1)},
    "indices cut": _damaged("indices", lambda rng, array: array[: len(array) // 2]),
    "data cut": _damaged("data", lambda rng, array: array[: len(array) // 2]),
    "starts cut": _damaged("indptr", lambda rng, array: array[:-1]),
    "starts added": _damaged("indptr", lambda rng, array: np.append(array, array[-1])),
    "starts descending": _damaged("indptr", lambda rng, array: array[::-1].copy()),
    "starts shuffled": _damaged("indptr", lambda rng, array: rng.permutation(array)),
    "indices of floats": _damaged("indices", lambda rng, array: array + 0.5),
    "indices unsigned": _damaged("indices", lambda rng, array: array.astype(np.uint32)),
    "indices empty": _damaged("indices", lambda rng, array: array[:0]),
    "data of objects": _damaged("data", lambda rng, array: array.astype(object)),
    "data of strings": _damaged("data", lambda rng, array: array.astype(str)),
    "data of two axes": _damaged("data", lambda rng, array: array[:, None]),
}
