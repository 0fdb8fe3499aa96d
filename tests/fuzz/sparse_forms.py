"""Sparse X: other formats, storage that is not canonical, and indices that are wrong."""

import numpy as np
from scipy import sparse

from tests.fuzz.arrays import dense
from tests.fuzz.samples import pick


def _csr(X):
    return sparse.csr_array(dense(X))


def _unsorted(X):
    X = _csr(X)
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:stop] = X.indices[start:stop][::-1].copy()
        X.data[start:stop] = X.data[start:stop][::-1].copy()
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)


def _repeated(X):
    """Return each entry as two halves."""
    X = _csr(X)
    parts = np.repeat(0.5 * X.data, 2), np.repeat(X.indices, 2), 2 * X.indptr
    return sparse.csr_array(parts, shape=X.shape)


def _explicit_zeros(X):
    X = dense(X)
    full = sparse.csr_array(np.ones(X.shape))
    full.data[:] = X.ravel()
    return full


def _long_indices(X):
    X = _csr(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _spare_capacity(X):
    X = _csr(X)
    X.data, X.indices = np.append(X.data, [np.nan] * 3), np.append(X.indices, [-1] * 3).astype(X.indices.dtype)
    return X


def _read_only(X):
    X = _csr(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


def _of(make):
    return lambda rng, X: make(X)


# Forms of the same numbers.
FORMS = {
    **{
        f"{name}_{kind}": lambda rng, X, make=f"{name}_{kind}": getattr(sparse, make)(dense(X))
        for name in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
        for kind in ("array", "matrix")
    },
    "unsorted": _of(_unsorted),
    "unsorted CSC": _of(lambda X: _unsorted(dense(X).T).T),
    "repeated entries": _of(_repeated),
    "repeated entries, COO": _of(lambda X: _repeated(X).tocoo()),
    "explicit zeros": _of(_explicit_zeros),
    "long indices": _of(_long_indices),
    "spare capacity": _of(_spare_capacity),
    "read-only": _of(_read_only),
}


def _with_first(value, make=_csr):
    """Return the change of the first number, or of its two halves."""

    def change(rng, X):
        X = make(X)
        X.data[:2] = value
        return X

    return change


SPARSE_TYPES = {
    **{
        f"sparse {name}": lambda rng, X, name=name: sparse.csr_array(np.round(3 * dense(X)).astype(name))
        for name in ("f4", "i1", "i8", "?", "c16", "g")
    },
    "ones": _of(lambda X: sparse.csr_array((dense(X) > 0).astype(float))),
    "sparse zeros": _of(lambda X: sparse.csr_array(X.shape)),
    "an empty column": _of(lambda X: sparse.csr_array(dense(X) * (np.arange(X.shape[1]) > 0))),
    "an empty row": _of(lambda X: sparse.csr_array(dense(X) * (np.arange(X.shape[0]) > 0)[:, None])),
    "sparse NaN": _with_first(np.nan),
    "sparse infinity": _with_first(np.inf),
    "a sum that overflows": _with_first(1.5e308, _repeated),
    "one axis": _of(lambda X: sparse.coo_array(dense(X)[:, 0])),
    "no rows": _of(lambda X: sparse.csr_array((0, X.shape[1]))),
    "no columns": _of(lambda X: sparse.csr_array((X.shape[0], 0))),
}


def _damaged(part, damage):
    """Return a change of one of the three arrays of CSR or CSC, after the constructor's checks."""

    def change(rng, X):
        X = pick(rng, (sparse.csr_array, sparse.csc_array, sparse.csr_matrix))(dense(X))
        setattr(X, part, damage(rng, getattr(X, part).copy()))
        return X

    return change


def _put(value):
    def damage(rng, array):
        array[rng.integers(len(array))] = value
        return array

    return damage


MALFORMED = {
    **{f"an index {value}": _damaged("indices", _put(value)) for value in (10, 60, 2**31 - 1, -1, -(2**31))},
    **{f"a start {value}": _damaged("indptr", _put(value)) for value in (0, 1000, 2**31 - 1, -1)},
    "indices cut": _damaged("indices", lambda rng, array: array[: len(array) // 2]),
    "indices of floats": _damaged("indices", lambda rng, array: array + 0.5),
    "indices unsigned": _damaged("indices", lambda rng, array: array.astype(np.uint32)),
    "indices empty": _damaged("indices", lambda rng, array: array[:0]),
    "starts cut": _damaged("indptr", lambda rng, array: array[:-1]),
    "starts added": _damaged("indptr", lambda rng, array: np.append(array, array[-1])),
    "starts descending": _damaged("indptr", lambda rng, array: array[::-1].copy()),
    "data cut": _damaged("data", lambda rng, array: array[: len(array) // 2]),
    "data of objects": _damaged("data", lambda rng, array: array.astype(object)),
    "data of strings": _damaged("data", lambda rng, array: array.astype(str)),
    "data of two axes": _damaged("data", lambda rng, array: array[:, None]),
}
