"""Odd arrays, from valid ones of one or two axes: samples, targets, weights, and options.

Columns and targets of every type that a table may have come from ``tests/estimators/test_types.py``.
"""

import decimal
import fractions
import tempfile

import numpy as np
import pandas as pd
from scipy import sparse

from tests.fuzz.samples import pick


def dense(a):
    """Return an array, of sparse samples too."""
    return a.toarray() if sparse.issparse(a) else np.asarray(a)


def _of(function):
    """Return the change of an array by a function, beyond the largest number if need be."""
    return lambda rng, a: np.errstate(over="ignore")(function)(dense(a))


# -- storage -----------------------------------------------------------------------------------------------------------


class _Duck:
    """Something that turns into an array."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)


class _Subclass(np.ndarray):
    """An array of another class."""


def _strided(a):
    every = (slice(None, None, 2),) * a.ndim
    large = np.zeros([2 * size for size in a.shape], a.dtype)
    large[every] = a
    return large[every]


def _read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def _memory_map(a):
    with tempfile.TemporaryFile() as file:
        file.write(a.tobytes())
        file.flush()
        return np.memmap(file, dtype=a.dtype, mode="r", shape=a.shape)


def _misaligned(a):
    view = np.zeros(a.nbytes + 1, dtype=np.uint8)[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def _pandas(a, **labels):
    """Return a series or a frame."""
    return (pd.DataFrame if np.ndim(a) == 2 else pd.Series)(a, **labels)


# Storage of the same numbers: results are equal to the last bit.
STORAGE = {
    "Fortran order": _of(np.asfortranarray),
    "strided": _of(_strided),
    "negative strides": _of(lambda a: np.flip(np.flip(a).copy())),
    "read-only": _of(_read_only),
    "memory map": _of(_memory_map),
    "big-endian": _of(lambda a: a.astype(a.dtype.newbyteorder(">"))),
    "misaligned": _of(_misaligned),
    "array subclass": _of(lambda a: a.view(_Subclass)),
    "list": _of(np.ndarray.tolist),
    "list of arrays": _of(list),
    "object": _of(lambda a: a.astype(object)),
    "longdouble": _of(lambda a: a.astype(np.longdouble)),
    "something with __array__": _of(_Duck),
    "pandas": _of(_pandas),
    "pandas with an index": _of(lambda a: _pandas(a, index=[f"row {i}" for i in range(len(a))][::-1])),
}

# -- types -------------------------------------------------------------------------------------------------------------

_NAMES = "f2", "f4", "i1", "i8", "u1", "u8", "?", "c8", "c16", "M8[s]", "m8[s]", "S8", "U8", ">i4"


def _set(value):
    """Return the change of the first entry."""

    def change(a):
        a = np.atleast_1d(a.astype(object))
        a[(0,) * a.ndim] = value
        return a

    return _of(change)


def _each(kind):
    return _of(np.vectorize(kind, otypes=[object]))


TYPES = {
    **{f"dtype {name}": _of(lambda a, name=name: np.round(3 * a).astype(name)) for name in _NAMES},
    "digits": _of(lambda a: a.astype(str)),
    "words": _of(lambda a: np.full(a.shape, "word")),
    "an object among numbers": _set(object()),
    "None among numbers": _set(None),
    "NA among numbers": _set(pd.NA),
    "a string among numbers": _set("word"),
    "a huge integer": _set(10**400),
    "a list among numbers": _set([1, 2]),
    "NaT": _of(lambda a: np.full(a.shape, np.datetime64("NaT", "s"))),
    "fractions": _each(fractions.Fraction),
    "decimals": _each(decimal.Decimal),
    "complex numbers of real value": _of(lambda a: a + 0j),
    "masked": _of(lambda a: np.ma.masked_array(a, mask=a >= a.max())),
    "masked nowhere": _of(np.ma.masked_array),
    "ragged": _of(lambda a: [*a.tolist()[1:], [1.0] * (a[0].size + 1)]),
    "generator": _of(lambda a: (row for row in a)),
    "dictionary": _of(lambda a: dict(enumerate(a))),
    "set": _of(lambda a: set(a.ravel().tolist())),
    "None": _of(lambda a: None),
    "a string": _of(lambda a: "X"),
    "a class": _of(lambda a: np.ndarray),
}

# -- shapes ------------------------------------------------------------------------------------------------------------

SHAPES = {
    "a number": lambda rng, a: 1.5,
    "empty": lambda rng, a: np.zeros(0),
    "no rows": lambda rng, a: a[:0],
    "no columns": lambda rng, a: np.zeros((a.shape[0], 0)),
    "one row": lambda rng, a: a[:1],
    "two rows": lambda rng, a: a[:2],
    "fewer rows": lambda rng, a: a[:-1],
    "more rows": _of(lambda a: np.concatenate([a, a[:1]])),
    "a column less": _of(lambda a: a[..., :-1]),
    "twice": _of(lambda a: np.column_stack([a, a])),
    "flat": _of(np.ravel),
    "transposed": lambda rng, a: a.T,
    "an axis less": _of(lambda a: a[0]),
    "an axis more": _of(lambda a: a[..., None]),
    "two axes more": _of(lambda a: a[..., None, None]),
}

# -- values ------------------------------------------------------------------------------------------------------------


def _with(value):
    def change(rng, a):
        a = dense(a).astype(float)
        a[tuple(rng.integers(size) for size in a.shape)] = value
        return a

    return change


_LARGE = (1e10, 2.0**53, 1e20, 1e40, 1e75, 1e80, 1e120, 1e150, 1e155, 1e200, 1e300, 1.7e308)
_SMALL = (1e-5, 1e-10, 1e-20, 1e-50, 1e-160, 1e-300, 5e-324)

VALUES = {
    "a NaN": _with(np.nan),
    "an infinity": _with(np.inf),
    "a negative infinity": _with(-np.inf),
    "NaN alone": _of(lambda a: np.full(a.shape, np.nan)),
    "infinity alone": _of(lambda a: np.full(a.shape, np.inf)),
    **{f"an entry {value:g}": _with(value) for value in (*_LARGE, -1e300, -1.0, 1e-20, 1e-300, 5e-324)},
    **{f"all times {factor:g}": _of(lambda a, factor=factor: a * factor) for factor in (*_LARGE[3:], *_SMALL)},
    "zeros": _of(lambda a: np.zeros(a.shape)),
    "negative zeros": _of(lambda a: np.full(a.shape, -0.0)),
    "ones": _of(lambda a: np.ones(a.shape)),
    "equal rows": _of(lambda a: np.repeat(a[:1], len(a), axis=0)),
    "two distinct rows": _of(lambda a: a[np.arange(len(a)) % 2]),
    "rows of all sizes": _of(lambda a: (a.T * 10.0 ** np.linspace(-10, 10, len(a))).T),
    "signs": _of(np.sign),
    "a large mean": lambda rng, a: 1e9 + rng.standard_normal(a.shape),
}

_ARRAYS = STORAGE | TYPES | SHAPES | VALUES
# Those that arrays of any number of axes have, empty ones too, for options.
PARTS = {
    name: _ARRAYS[name]
    for name in (
        "NaN alone", "infinity alone", "zeros", "ones", "all times 1e+200", "all times 1e-160", "fewer rows",
        "a column less", "flat", "transposed", "list", "dtype f4", "dtype i8", "dtype c16", "digits", "object",
        "Fortran order", "None", "a string", "empty", "a number",
    )
}  # fmt: skip

# -- samples, targets and weights --------------------------------------------------------------------------------------


def _column(values):
    """Return the change of a column of X."""

    def change(rng, X):
        X = dense(X).copy()
        X[:, int(rng.integers(X.shape[1]))] = values(len(X))
        return X

    return change


SHAPES_OF_X = SHAPES | {
    "a column": _of(lambda X: X[:, 0]),
    "one column": lambda rng, X: X[:, :1],
    "two columns": lambda rng, X: X[:, :2],
    "more columns": _of(lambda X: np.hstack([X] * 8)),
    "no rows or columns": lambda rng, X: np.zeros((0, 0)),
}
TYPES_OF_X = TYPES | {
    "pandas with names": _of(lambda X: pd.DataFrame(X).add_prefix("x")),
    "mixed names": _of(lambda X: pd.DataFrame(X, columns=["a", *range(1, X.shape[1])])),
    "records": _of(lambda X: np.rec.fromarrays(X.T)),
    "a series": _of(lambda X: pd.Series(X[:, 0])),
}
VALUES_OF_X = VALUES | {
    "equal columns": _of(lambda X: np.repeat(X[:, :1], X.shape[1], axis=1)),
    "a constant column": _column(lambda n: 3.0),
    "a column of zeros": _column(lambda n: 0.0),
    "a column near 2^53": _column(lambda n: 2.0**53 + 2 * np.arange(n)),
    "a column of dates": _column(lambda n: 1.7e9 + np.arange(n)),
    "columns of all sizes": _of(lambda X: X * 10.0 ** np.linspace(-10, 10, X.shape[1])),
    "one-hot": lambda rng, X: np.eye(X.shape[1])[rng.integers(X.shape[1], size=X.shape[0])],
    "rank one": _of(lambda X: np.outer(X[:, 0], X[0])),
    "float32 limits": _of(lambda X: (X * 3e38).astype(np.float32)),
    "float32 denormals": _of(lambda X: (X * 1e-44).astype(np.float32)),
}


def _codes(y):
    """Return codes (n,) of three or two classes."""
    codes = np.unique(y, return_inverse=True)[1].reshape(np.shape(y))
    return (codes if codes.ndim == 1 else codes[:, 0]) % 3


def _labels(*names):
    """Return targets of three classes of these names."""

    def change(y):
        labels = np.empty(len(y), dtype=object)
        labels[:] = [names[i % 3] for i in range(len(y))]
        return labels

    return _of(change)


TARGETS = _ARRAYS | {
    # Labels.
    "strings": _of(lambda y: np.array(["red", "é", ""])[_codes(y)]),
    "large integers": _of(lambda y: _codes(y) + 2**62),
    "a label per sample": _of(lambda y: np.arange(len(y))),
    "one sample of a label": _of(lambda y: (np.arange(len(y)) == 0).astype(int)),
    "None among strings": _labels("red", None, "blue"),
    "tuples": _labels((0, "a"), (1, "a"), (2, "a")),
    "mixed types": _labels(1, "a", 2.5),
    "ragged labels": _of(lambda y: [["a", "b"][: 1 + i % 2] for i in range(len(y))]),
    # Several outputs.
    "indicator": _of(lambda y: np.eye(3, dtype=int)[_codes(y)]),
    "sparse indicator": _of(lambda y: sparse.csr_array(np.eye(3, dtype=int)[_codes(y)])),
    "two columns of labels": _of(lambda y: np.column_stack([_codes(y), _codes(y)[::-1]])),
    "several labels": lambda rng, y: (rng.uniform(size=(len(y), 3)) > 0.5).astype(int),
    "columns of real numbers": lambda rng, y: rng.standard_normal((len(y), 3)),
    "columns of signs": lambda rng, y: np.sign(rng.standard_normal((len(y), 2))),
}

# From valid weights.
WEIGHTS = _ARRAYS | {
    "integers": _of(lambda w: 1 + np.arange(len(w)) % 3),
    "some zero": _of(lambda w: w * (np.arange(len(w)) % 3 > 0)),
    "one not zero": _of(lambda w: w * (np.arange(len(w)) == 3)),
    "two not zero": _of(lambda w: w * (np.arange(len(w)) < 2)),
    "a sum that overflows": _of(lambda w: np.full(len(w), 1e308)),
    "balanced": lambda rng, w: "balanced",
    "a list of lists": _of(lambda w: [[1.0]] * len(w)),
}

# -- sparse samples: other formats, storage that is not canonical, and indices that are wrong --------------------------


def _unsorted(X):
    X = sparse.csr_array(X)
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:stop] = X.indices[start:stop][::-1].copy()
        X.data[start:stop] = X.data[start:stop][::-1].copy()
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)


def _repeated(X):
    """Return each entry as two halves."""
    X = sparse.csr_array(X)
    parts = np.repeat(0.5 * X.data, 2), np.repeat(X.indices, 2), 2 * X.indptr
    return sparse.csr_array(parts, shape=X.shape)


def _explicit_zeros(X):
    full = sparse.csr_array(np.ones(X.shape))
    full.data[:] = X.ravel()
    return full


def _long_indices(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _spare_capacity(X):
    X = sparse.csr_array(X)
    X.data, X.indices = np.append(X.data, [np.nan] * 3), np.append(X.indices, [-1] * 3).astype(X.indices.dtype)
    return X


def _read_only_parts(X):
    X = sparse.csr_array(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


# Forms of the same numbers.
FORMS = {
    **{
        f"{name}_{kind}": _of(getattr(sparse, f"{name}_{kind}"))
        for name in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
        for kind in ("array", "matrix")
    },
    "unsorted": _of(_unsorted),
    "unsorted CSC": _of(lambda X: _unsorted(X.T).T),
    "repeated entries": _of(_repeated),
    "repeated entries, COO": _of(lambda X: _repeated(X).tocoo()),
    "explicit zeros": _of(_explicit_zeros),
    "long indices": _of(_long_indices),
    "spare capacity": _of(_spare_capacity),
    "read-only": _of(_read_only_parts),
}


def _with_first(value, make=sparse.csr_array):
    """Return the change of the first number, or of its two halves."""

    def change(X):
        X = make(X)
        X.data[:2] = value
        return X

    return _of(change)


SPARSE_TYPES = {
    **{
        f"sparse {name}": _of(lambda X, name=name: sparse.csr_array(np.round(3 * X).astype(name)))
        for name in ("f4", "i1", "i8", "?", "c16", "g")
    },
    "ones": _of(lambda X: sparse.csr_array((X > 0).astype(float))),
    "sparse zeros": _of(lambda X: sparse.csr_array(X.shape)),
    "an empty column": _of(lambda X: sparse.csr_array(X * (np.arange(X.shape[1]) > 0))),
    "an empty row": _of(lambda X: sparse.csr_array(X * (np.arange(X.shape[0]) > 0)[:, None])),
    "sparse NaN": _with_first(np.nan),
    "sparse infinity": _with_first(np.inf),
    "a sum that overflows": _with_first(1.5e308, _repeated),
    "one axis": _of(lambda X: sparse.coo_array(X[:, 0])),
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

# -- what has no meaning, and so must not be taken without a word ------------------------------------------------------

_MISSING = {"a NaN", "NaN alone", "None among numbers", "NA among numbers", "masked", "NaT"}
_NO_NUMBERS = _MISSING | {
    "dtype c8", "dtype c16", "dtype M8[s]", "dtype m8[s]", "complex numbers of real value", "words",
    "an object among numbers", "a string among numbers", "a huge integer", "a list among numbers",
    "ragged", "dictionary", "set", "None", "a string", "a class",
    "an infinity", "a negative infinity", "infinity alone",
}  # fmt: skip
_NO_SAMPLES = _NO_NUMBERS | {"sparse c16", "sparse NaN", "sparse infinity", "a sum that overflows"}
_NO_SHAPE = {"a column", "an axis less", "a number", "an axis more", "two axes more", "transposed", "empty"}
_NO_MATRIX = {
    *(f"an index {value}" for value in (60, 2**31 - 1, -1, -(2**31))), "indices cut", "indices empty", "data cut",
    "data of two axes", "starts cut", "starts added",
}  # fmt: skip
_NOT_PER_SAMPLE = {
    "fewer rows", "more rows", "one row", "two rows", "no rows", "empty", "a number", "an axis less", "two axes more",
    "no columns",
}  # fmt: skip
# Of X, what tables take: missing values, texts, dates, and columns by name.
TAKEN_BY_TABLES = _MISSING | {
    "sparse NaN", "words", "a string among numbers", "dtype M8[s]", "dtype m8[s]", "dictionary",
}  # fmt: skip
# By category.
REFUSED = {
    "X malformed": _NO_MATRIX,
    "X shape": _NO_SHAPE | {"flat", "no rows", "one row", "fewer rows", "more rows"},
    "X dtype": _NO_SAMPLES,
    "X sparse": _NO_SAMPLES | {"one axis", "no rows"},
    "X values": _NO_SAMPLES,
    "X at prediction": _NO_SAMPLES | _NO_SHAPE - {"an axis less", "transposed"},
    "X at prediction, malformed": _NO_MATRIX,
    "y": _MISSING | _NOT_PER_SAMPLE | {
        "an infinity", "None", "None among strings", "a string", "ragged", "ragged labels", "dictionary", "set",
    },
    "weights": _NO_NUMBERS - {"None"} | _NOT_PER_SAMPLE | {
        "zeros", "negative zeros", "an entry -1", "an entry -1e+300", "twice", "balanced", "a list of lists",
    },
}  # fmt: skip
