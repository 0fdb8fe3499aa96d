"""Relation blocks: their designs against the plain matrix, whose rows are put together one by one."""

import numpy as np
import pytest
from reference import check_products
from scipy import sparse

import mopn
from mopn.data.designs import COST_OF_ENTRY, AugmentedDesign, make_design

RNG = np.random.default_rng(0)
N, K, M = 60, 3, 2
# Users, items, and a context; entries are float32 numbers.
USERS = RNG.integers(-4, 5, (7, 5)) / 4.0 * (RNG.random((7, 5)) < 0.6)
TABLES = [USERS, RNG.integers(-4, 5, (4, 3)) / 4.0, np.eye(3, dtype=int)]
ROWS = np.column_stack([RNG.integers(0, len(table), N) for table in TABLES])
X = np.array([np.concatenate([table[row] for table, row in zip(TABLES, rows, strict=True)]) for rows in ROWS])
D = X.shape[1]
STORAGES = {
    "dense": np.asarray,
    "float32": lambda table: table.astype(np.float32),
    "list": lambda table: table.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
}


def relations(storage="csr", rows=ROWS):
    return mopn.RelationBlocks([STORAGES[storage](table) for table in TABLES], rows)


@pytest.mark.parametrize("storage", STORAGES)
def test_samples_are_rows_of_tables_side_by_side(storage):
    related = relations(storage, ROWS.astype(np.int16))
    assert related.shape == X.shape
    np.testing.assert_array_equal(related.tocsr().toarray(), X)
    mask = X[:, 0] > 0
    for rows in (slice(3, 20), slice(None, None, 7), np.array([5, 5, 0]), [4, 1], mask):
        np.testing.assert_array_equal(related[rows].tocsr().toarray(), X[rows])
        assert related[rows].shape == X[rows].shape
    np.testing.assert_array_equal(related[np.array([2]), ...].tocsr().toarray(), X[[2]])


@pytest.mark.parametrize("dummies", [0, 2])
def test_products(dummies):
    base = relations().design
    design = AugmentedDesign(base, dummies) if dummies else base
    plain, Z, R = make_design(X, dummies), np.hstack([np.ones((N, dummies)), X]), RNG.standard_normal((N, M))
    check_products(design, Z, np.abs(Z), RNG, 1e-13)
    for found, expected in (
        (design.gram(R[:, 0]), plain.gram(R[:, 0])),
        (design.row_products, plain.row_products),
        (design.squared_row_products, plain.squared_row_products),
        (design.single().matrix().toarray(), Z),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


def test_scaled():
    scale = RNG.uniform(0.5, 2.0, D)
    np.testing.assert_allclose(relations().design.scaled(scale).matrix().toarray(), X / scale, rtol=1e-15)


def test_work_is_that_of_tables_and_choices():
    product, gram = AugmentedDesign(relations().design, 2).work
    assert product == COST_OF_ENTRY * (N * K + sum(np.count_nonzero(table) for table in TABLES))
    assert gram >= COST_OF_ENTRY * N * K * K


@pytest.mark.parametrize(
    ("tables", "rows", "error", "match"),
    [
        ([np.eye(3), np.full((2, 2), np.nan)], ROWS[:, :2], ValueError, r"tables\[1\] contains NaN"),
        ([np.eye(9)], ROWS, ValueError, r"rows must have shape \(n, 1\), a column for each table, got \(60, 3\)"),
        ([np.eye(9)], ROWS[:0, :1], ValueError, "rows must have shape"),
        ([np.eye(9)], ROWS[:, 0], ValueError, "rows must have shape"),
        ([np.eye(9)], ROWS[:, :1] + 0.5, TypeError, "rows must be integers, got dtype float64"),
        ([np.eye(9), np.eye(2)], [[0, 0], [1, 2]], ValueError, r"rows\[1, 1\] is 2, but tables\[1\] has 2 rows"),
        ([np.eye(9)], [[-1]], ValueError, r"rows\[0, 0\] is -1"),
    ],
)
def test_errors(tables, rows, error, match):
    with pytest.raises(error, match=match):
        mopn.RelationBlocks(tables, rows)


def test_a_single_sample_is_no_number():
    with pytest.raises(TypeError, match="samples are taken by a slice"):
        relations()[3]
