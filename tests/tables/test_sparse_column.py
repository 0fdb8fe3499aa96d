"""Sparse columns against dense ones: the same functions, shifted so that zeros have none."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import mopn
from mopn.tables.fields import from_fields, to_fields
from mopn.tables.learning import learn_encoding
from mopn.tables.reading import read_table

RNG = np.random.default_rng(0)
N = 300
KINDS = {
    "signed": RNG.standard_normal(N),
    "negative": -RNG.exponential(size=N),
    "counts": RNG.integers(1, 4, N).astype(float),
    "one value": np.full(N, 7.0),
    "tiny": RNG.uniform(1.0, 2.0, N) * 1e-310,
    "huge": RNG.uniform(-1.0, 1.0, N) * 1e308,
}
DENSE = np.column_stack([*KINDS.values()]) * (RNG.random((N, len(KINDS))) < 0.3)


def learned(X, weights=None, curves=3, **options):
    return learn_encoding(read_table(X), weights, curves=curves, smoothness=1.0, **options)


def shifted(X, at, **options):
    """Return dense features minus those of zeros; where a number is missing they are 0 for both."""
    encoding = learned(X, **options)
    functions = len(encoding.numbers._features[0])
    features = encoding.encode(at)
    features[:, :functions] -= encoding.encode(np.zeros((1, at.shape[1])))[:, :functions]
    missing = np.isnan(at)[:, encoding.numbers.owners[:functions]]
    features[:, :functions][missing] = 0.0
    return features


def frame_of(X):
    return pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0))


@pytest.mark.parametrize("curves", [0, 3, 8])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.dok_matrix, frame_of])
@pytest.mark.parametrize("gaps", [False, True])
def test_features_are_those_of_a_dense_column_minus_those_of_zero(make, curves, gaps):
    X = DENSE.copy()
    X[::7] = np.where(gaps, np.nan, X[::7])
    encoding = learned(make(X), curves=curves)
    features = encoding.encode(make(X))
    assert features.format == "csr"
    assert np.allclose(features.toarray(), shifted(X, X, curves=curves), rtol=1e-12, atol=1e-12)
    assert features.nnz <= np.count_nonzero(X[:, encoding.owners])
    again = from_fields(to_fields(encoding))
    assert np.array_equal(again.encode(make(X)).toarray(), features.toarray())


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, -2.0, 0.5, 3.0, np.nan]), min_size=3, max_size=40), st.data())
def test_any_column_and_weights(numbers, data):
    x = np.array(numbers)[:, None]
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x))), float)
    known = x[(weights > 0) & ~np.isnan(x[:, 0])]
    if len(np.unique(known)) < 2:
        return
    encoding = learned(sparse.csr_array(x), weights)
    expected = shifted(x, x, weights=weights) if (known == 0.0).any() else learned(x, weights).encode(x)
    assert np.allclose(encoding.encode(sparse.csr_array(x)).toarray(), expected, atol=1e-12)


def test_zero_is_a_knot_of_a_column_of_many_numbers():
    x = np.append(RNG.standard_normal(5000), np.zeros(10))[:, None]
    encoding = learned(sparse.csc_array(x), curves=2)
    assert encoding.numbers.are_zero_at_zero.all()
    features = encoding.encode(sparse.csc_array(x))
    assert features.nnz == 5000 * 3
    assert np.abs(features.toarray() - shifted(x, x, curves=2)).max() < 0.01  # that of 34 knots and of 33


def test_it_does_not_matter_how_rows_are_stored_that_are_encoded():
    mixed = frame_of(DENSE).assign(dense=RNG.standard_normal(N), city=RNG.choice(["Bern", "Rome"], N))
    mixed.columns = mixed.columns.map(str)
    plain = mixed.astype({name: float for name in mixed if name != "city"})
    for trained in (mixed, plain):
        encoding = learned(trained)
        features = encoding.encode(mixed)
        assert features.format == "csr"
        assert np.allclose(features.toarray(), encoding.encode(plain), rtol=1e-12, atol=1e-12)
        assert np.allclose(encoding.encode(plain.iloc[3].to_dict()), features[[3]].toarray(), rtol=1e-12, atol=1e-12)


def test_blocks_may_be_sparse_or_dense():
    from mopn.estimators import TableEncoder

    blocks = [sparse.csr_array(DENSE[:100]), DENSE[100:150], sparse.csc_array(DENSE[150:])]
    found = TableEncoder(curves=2).fit(mopn.RowBlocks(blocks))
    expected = TableEncoder(curves=2).fit(sparse.coo_array(DENSE))
    assert np.allclose(found.transform(DENSE), expected.transform(DENSE), rtol=1e-12, atol=1e-12)
    assert found.transform(blocks[0]).format == "csr"


def test_matrices_are_read_whatever_their_entries():
    twice = sparse.csr_array((np.array([1.0, 2.0, 0.0, 5.0]), np.array([1, 1, 0, 0]), np.array([0, 2, 3, 4])), (3, 2))
    columns = read_table(twice).columns
    assert np.array_equal(np.column_stack(columns), twice.toarray())
    assert [len(column.rows) for column in columns] == [2, 1]
    assert np.array_equal(np.asarray(columns[0][np.array([2, 2, 0])]), [5.0, 5.0, 0.0])
    assert twice.nnz == 4


def test_codes_and_columns_filled_with_something_else_are_dense():
    table = pd.DataFrame(
        {
            "code": pd.arrays.SparseArray([0, 0, 1, 2] * 5),
            "mostly missing": pd.arrays.SparseArray([np.nan, np.nan, 1.0, 2.0] * 5),
            "known": pd.arrays.SparseArray([False, False, False, True] * 5),
        }
    )
    encoding = learned(table, curves=0, levels=["code"])
    names = ["mostly missing", "mostly missing is missing", "code = 0", "code = 1", "code = 2", "known = True"]
    assert encoding.feature_names.tolist() == names
    assert isinstance(encoding.encode(table), np.ndarray)
    assert encoding.encode(table)[:, 2:].tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]] * 5


def test_a_constant_sparse_column_has_no_feature():
    table = frame_of(np.zeros((9, 1))).assign(city=["Bern", "Rome", "Oslo"] * 3).rename(columns=str)
    features = learned(table).encode(table)
    assert features.toarray().tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]] * 3


@pytest.mark.parametrize(
    ("X", "kind", "message"),
    [
        (sparse.csr_array([[np.inf, 0.0]]), ValueError, "X contains infinity"),
        (frame_of([[np.inf, 0.0]]).rename(columns=str), ValueError, "column '0' of X contains infinity"),
        (sparse.csr_array([[1j, 0.0]]), ValueError, "Complex data not supported"),
        (sparse.coo_array(np.ones(3)), ValueError, r"X must be a table of shape \(n, columns\), got shape \(3,\)"),
        (sparse.csr_array((3, 2)), ValueError, "no column of X varies"),
    ],
)
def test_what_is_no_table_is_refused(X, kind, message):
    with pytest.raises(kind, match=message):
        learned(X)


def test_memory_is_that_of_the_numbers_that_are_stored():
    n, c = 20_000, 1_000
    cells = RNG.integers(0, n * c, n * c // 500)
    X = sparse.csr_array((RNG.uniform(1.0, 2.0, len(cells)), np.divmod(cells, c)), shape=(n, c))
    tracemalloc.start()
    try:
        learned(X).encode(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.05 * 8 * n * c
