"""Designs and kernels: every storage and augmentation against explicit arrays and brute-force sums."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st
from networks import rows_of
from properties import seeds, tried
from reference import check_products, kernel_values
from scipy import sparse

import mopn
from mopn.core.kernels import KERNELS, Homogeneous
from mopn.data import designs
from mopn.data.designs import make_design, ridge_scales
from mopn.network.gradient_forms import GradientForms

KERNEL_NAMES = sorted(KERNELS)


def with_duplicates(X):
    """CSR as assembled from triplets: every entry stored as two unequal halves, columns unsorted."""
    rows, columns = np.nonzero(X)
    values = X[rows, columns]
    order = np.lexsort((-np.tile(columns, 2), np.tile(rows, 2)))
    data = np.concatenate([0.25 * values, 0.75 * values])[order]
    pointers = np.concatenate([[0], np.cumsum(2 * np.bincount(rows, minlength=len(X)))])
    return sparse.csr_matrix((data, np.tile(columns, 2)[order], pointers), shape=X.shape)


def with_stored_zeros(X):
    A = sparse.csr_array(np.ones(X.shape))
    A.data[:] = X.ravel()
    return A


# Ways to hand over one and the same matrix, whose entries are float32 numbers.
STORAGES = {
    "float64": lambda X: X,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "float32": lambda X: X.astype(np.float32),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
    "csr_float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csc_float32": lambda X: sparse.csc_array(X.astype(np.float32)),
    "csr_duplicates": with_duplicates,
    "csc_duplicates": lambda X: with_duplicates(X.T.copy()).T,
    "csr_zeros": with_stored_zeros,
    "coo": sparse.coo_array,
    "lil": sparse.lil_array,
    "dok": sparse.dok_array,
}
# Used as they are; the other storages are converted.
UNCOPIED = ["float64", "fortran", "strided", "float32", "csr_array", "csr_matrix", "csc_array", "csr_float32"]

every_storage = pytest.mark.parametrize("storage", STORAGES)
every_count = pytest.mark.parametrize("dummies", [0, 1, 2])
every_kernel = pytest.mark.parametrize("kernel", KERNEL_NAMES)
varied = partial(tried, 5, seed=seeds)
SHAPES = [(1, 1), (6, 1), (1, 4), (7, 3), (5, 8)]
shapes = st.sampled_from(SHAPES)


def draw(seed, shape=(7, 4)):
    """A random generator and X with about a third zeros, an empty row and an empty column where there is room."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.7)
    if min(shape) > 2:
        X[rng.integers(shape[0])] = 0.0
        X[:, rng.integers(shape[1])] = 0.0
    return rng, X.astype(np.float32).astype(np.float64)


def augmented(X, dummies):
    return np.hstack([np.ones((len(X), dummies)), X])


def close(actual, expected, size):
    """Equal up to the rounding of sums of terms of this size."""
    assert actual.dtype == np.float64
    np.testing.assert_allclose(actual, expected, rtol=0, atol=4e-15 * size)


# Designs


@every_storage
@every_count
@varied(shape=shapes)
def test_products_equal_those_of_the_explicit_array(storage, dummies, seed, shape):
    check(storage, dummies, seed, shape)


@pytest.mark.parametrize("storage", ["float32", "float64"])
@every_count
def test_blocks_of_rows_give_the_same_products(monkeypatch, storage, dummies):
    """float32 data is converted block by block; the last block here is a short one."""
    monkeypatch.setattr(designs, "CACHE_ENTRIES", 12)
    check(storage, dummies, seed=0, shape=(11, 4))


def check(storage, dummies, seed, shape):
    rng, X = draw(seed, shape)
    Z = augmented(X, dummies)
    tolerance = 4e-15 * Z.size * (1 + np.abs(Z).max()) ** 4
    check_products(make_design(STORAGES[storage](X), dummies), Z, np.abs(Z), rng, tolerance)


@pytest.mark.parametrize("storage", ["float32", "csr_float32", "csc_float32"])
def test_float32_data_is_squared_in_float64(storage):
    """1e30 squared overflows float32, and rounded squares would not cancel against <h, x>^2."""
    X = np.array([[1e30, 0.0], [0.0, 1e-30], [1.0 + 2.0**-23, 3.0]]).astype(np.float32).astype(np.float64)
    design = make_design(STORAGES[storage](X))
    H, R = np.eye(2), np.eye(3)
    for squares in (design.project_squares(H), design.adjoint_squares(R), design.absolute.project_squares(H)):
        np.testing.assert_allclose(squares, X * X, rtol=1e-15)


@every_storage
def test_the_users_data_is_not_overwritten(storage):
    """Read-only data would raise on a write; index arrays and flags count as data too."""
    rng, X = draw(1)
    given_X = STORAGES[storage](X)
    arrays = [
        getattr(given_X, name)
        for name in ("data", "indices", "indptr")
        if sparse.issparse(given_X) and isinstance(getattr(given_X, name, None), np.ndarray)
    ]
    arrays += [given_X] if isinstance(given_X, np.ndarray) else []
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.setflags(write=False)
    design = make_design(given_X, 1)
    H, R = rng.standard_normal((2, 5)), rng.standard_normal((7, 2))
    for each in (design, design.absolute):
        each.project(H), each.project_squares(H), each.adjoint(R), each.adjoint_squares(R), each.gram(R[:, 0])
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    if storage == "csr_duplicates":
        assert given_X.nnz == len(before[0])


@pytest.mark.parametrize("storage", UNCOPIED)
@every_count
def test_dense_and_compressed_data_is_not_copied(storage, dummies):
    given_X = STORAGES[storage](draw(2)[1])
    design = make_design(given_X, dummies)
    held = design.base.X if dummies else design.X
    assert held.dtype == given_X.dtype
    for name in ("data", "indices", "indptr") if sparse.issparse(given_X) else ("T",):
        assert np.shares_memory(getattr(held, name), getattr(given_X, name))


@pytest.mark.parametrize(
    ("dtype", "sparsely"),
    [(dtype, sparsely) for dtype in (bool, np.int8, np.int64, np.uint16) for sparsely in (False, True)]
    + [(np.float16, False), (">f8", False)],
)
def test_other_numbers_are_converted_to_float64(dtype, sparsely):
    X = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    design = make_design(sparse.csr_array(X) if sparsely else X)
    assert design.X.dtype == np.float64
    close(design.project(np.eye(3)), np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), 1)


WRONG = {
    "1-d": (np.ones(3), ValueError, "X must be two-dimensional (n, d), got shape (3,); reshape"),
    "3-d": (np.ones((2, 2, 2)), ValueError, "X must be two-dimensional (n, d), got shape (2, 2, 2)"),
    "number": (1.0, ValueError, "X must be two-dimensional (n, d), got shape ()"),
    "no features": (np.ones((3, 0)), ValueError, "X has 0 features (shape (3, 0)); give at least 1 column"),
    "no samples": (np.ones((0, 3)), ValueError, "X is empty: it has shape (0, 3)"),
    "no features, sparse": (sparse.csr_array((3, 0)), ValueError, "X has 0 features (shape (3, 0))"),
    "no samples, sparse": (sparse.csr_array((0, 3)), ValueError, "X is empty: it has shape (0, 3)"),
    "NaN": (np.array([[1.0, np.nan]]), ValueError, "X contains NaN or infinity; impute or drop"),
    "float32 NaN": (np.array([[1.0, np.nan]], dtype=np.float32), ValueError, "X contains NaN or infinity"),
    "inf": (np.array([[1.0, -np.inf]]), ValueError, "X contains NaN or infinity"),
    "sparse NaN": (sparse.csr_array(np.array([[1.0, np.nan]])), ValueError, "X contains NaN or infinity"),
    "sparse inf": (sparse.coo_array(np.array([[0.0, np.inf]])), ValueError, "X contains NaN or infinity"),
    "None": (np.array([[1.0, None]]), ValueError, "X contains NaN or infinity"),
    "strings": (np.array([["red", "1"]]), TypeError, "X must be numeric, got dtype <U3: could not convert"),
    "bytes": (np.array([[b"red"]]), TypeError, "X must be numeric, got dtype |S3: could not convert"),
    "objects": (np.array([[{}, 1]]), TypeError, "X must be numeric, got dtype object: float() argument"),
    "dates": (np.array([["2020-01-01"]], "M8[D]"), TypeError, "X must hold real numbers, got dtype datetime64[D]"),
    "durations": (np.array([[1]], dtype="m8[s]"), TypeError, "X must hold real numbers, got dtype timedelta64[s]"),
    "complex": (np.array([[1.0 + 0j]]), TypeError, "X must hold real numbers, got dtype complex128"),
    "complex sparse": (sparse.csr_array(np.array([[1j]])), TypeError, "X must hold real numbers, got dtype complex128"),
    "complex objects": (np.array([[1j]], dtype=object), TypeError, "X must be numeric, got dtype object: "),
}


@pytest.mark.parametrize("case", WRONG)
@every_count
def test_make_design_says_what_is_wrong(case, dummies):
    X, error, message = WRONG[case]
    with pytest.raises(error) as raised:
        make_design(X, dummies)
    assert message in str(raised.value)


# Kernels


@every_kernel
@every_count
@pytest.mark.parametrize("storage", ["float64", "float32", "csr_array", "csc_float32", "csr_duplicates"])
@varied(shape=shapes)
def test_features_equal_kernel_values(kernel, dummies, storage, seed, shape):
    rng, X = draw(seed, shape)
    design, X = make_design(STORAGES[storage](X), dummies), augmented(X, dummies)
    H = rng.standard_normal((3, X.shape[1]))
    scale = kernel_values("homogeneous", np.abs(H), np.abs(X)).max()
    close(KERNELS[kernel].features(design, H), kernel_values(kernel, H, X), 1 + 4 * scale)


@pytest.mark.parametrize("storage", ["float64", "float32", "csr_array", "csr_float32", "csc_float32"])
def test_anova_of_one_feature_a_row_is_zero(storage):
    """One-hot rows have no pair of features: the two terms of the kernel must cancel, to the last bit."""
    rng = np.random.default_rng(0)
    X = np.diag(rng.standard_normal(6).astype(np.float32).astype(np.float64))
    K = KERNELS["anova"].features(make_design(STORAGES[storage](X)), rng.standard_normal((20, 6)))
    np.testing.assert_allclose(K, 0.0, rtol=0, atol=1e-15)


@every_kernel
@every_count
@every_storage
@varied(shape=shapes)
def test_gammas_are_the_matrices_of_the_forms(kernel, dummies, storage, seed, shape):
    """h' Gamma_c h = sum_i G_ic K(h, x_i)."""
    rng, X = draw(seed, shape)
    design, X = make_design(STORAGES[storage](X), dummies), augmented(X, dummies)
    G, H = rng.standard_normal((len(X), 2)), rng.standard_normal((3, X.shape[1]))
    gammas = KERNELS[kernel].gammas(design, G)
    assert gammas.shape == (2, X.shape[1], X.shape[1])
    np.testing.assert_allclose(gammas, gammas.transpose(0, 2, 1), rtol=1e-14, atol=1e-14)
    expected = kernel_values(kernel, H, X).T @ G
    size = (kernel_values("homogeneous", np.abs(H), np.abs(X)).T @ np.abs(G)).max()
    close(np.einsum("rj,cjk,rk->rc", H, gammas, H), expected, 1 + 4 * size)
    if kernel == "anova":
        np.testing.assert_array_equal(np.einsum("cjj->cj", gammas), 0.0)


@every_kernel
@every_count
@every_storage
@varied(shape=shapes)
def test_gradient_forms_equal_their_dense_stack(kernel, dummies, storage, seed, shape):
    rng, X = draw(seed, shape)
    design = make_design(STORAGES[storage](X), dummies)
    n, d = design.shape
    # Compiled loops take four outputs, and one; a unit at a time, or several.
    for k in (1, 9):
        H, W, G = rng.standard_normal((k, d)), rng.standard_normal((k, 5)), rng.standard_normal((n, 5))
        check_forms(KERNELS[kernel], design, X, H, W, G)


@every_kernel
@pytest.mark.parametrize("opposite", [[], [0, 1, 2], [0], [1], [2]], ids=str)
def test_matrices_of_two_outputs_are_formed_once_where_they_are_opposite(kernel, opposite):
    """In blocks of three rows, some of which are opposite."""
    rng = np.random.default_rng(0)
    design = make_design(rng.standard_normal((9, 4)))
    G = rng.standard_normal((9, 2))
    for block in opposite:
        rows = slice(3 * block, 3 * block + 3)
        G[rows, 0] = -G[rows, 1]
    stack = GradientForms(KERNELS[kernel], rows_of(design, size=3), G).dense
    expected = KERNELS[kernel].gammas(design, G)
    close(stack.matrices, expected, 100.0)
    errors = np.linalg.norm(stack.matrices - expected, 2, axis=(1, 2))
    assert (errors <= stack.error).all()


def check_forms(kernel, design, X, H, W, G):
    n, d = design.shape
    forms = GradientForms(kernel, rows_of(design, size=3), G)
    dense = GradientForms(kernel, rows_of(design), G).dense
    assert forms.shape == dense.shape == (5, d)
    size = 10 * n * d * (1 + np.abs(X).max()) ** 2
    close(forms.forms(H), np.einsum("rj,cjk,rk->rc", H, dense.matrices, H), size * d * 10)
    close(forms.products(W, H), np.einsum("rc,cjk,rk->rj", W, dense.matrices, H), size * d * 10)
    close(dense.forms(H), np.einsum("rj,cjk,rk->rc", H, dense.matrices, H), size * d)
    close(dense.products(W, H), np.einsum("rc,cjk,rk->rj", W, dense.matrices, H), size * d)


@every_kernel
@every_count
@pytest.mark.parametrize("storage", ["float64", "float32", "csr_float32"])
def test_error_of_the_dense_stack_covers_the_rounding(kernel, dummies, storage):
    """Against Gamma in rational arithmetic: the spectral norm of what forming the matrices has lost."""
    for seed in range(4):
        rng, X = draw(seed, (12, 3))
        # Samples that nearly cancel: the matrices are small, their rounding errors are not.
        X = np.vstack([X, (X * (1 + 1e-6)).astype(np.float32).astype(np.float64)])
        G = 10.0 ** rng.integers(-3, 4, size=(12, 2)) * rng.standard_normal((12, 2))
        G = np.vstack([G, -G])
        dense = GradientForms(KERNELS[kernel], rows_of(make_design(STORAGES[storage](X), dummies)), G).dense
        error = exact_gammas(kernel, augmented(X, dummies), G) - dense.matrices.astype(object)
        assert (np.linalg.norm(error.astype(float), 2, axis=(1, 2)) <= dense.error).all()
        # And it is a bound that one can still use: a few hundred units in the last place of the moduli.
        assert (dense.error <= 1e-13 * np.sum(augmented(X, dummies) ** 2, axis=1) @ np.abs(G)).all()


def exact_gammas(kernel, X, G):
    X, G = np.vectorize(Fraction, otypes=[object])(X), np.vectorize(Fraction, otypes=[object])(G)
    gammas = np.stack([(X * g[:, None]).T @ X for g in G.T])
    if kernel == "anova":
        gammas = gammas * Fraction(1, 2)
        for gamma in gammas:
            np.fill_diagonal(gamma, Fraction(0))
    return gammas


def test_kernels_are_a_closed_set():
    class Upper(Homogeneous):
        name = "upper"

    for kernel in (Upper(), Homogeneous()):
        with pytest.raises(TypeError, match=r"kernel must be one of 'homogeneous', 'anova', by name: .*got the object"):
            mopn.NetworkProblem(np.eye(3), np.arange(3), kernel=kernel, strength=1.0)


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-140, 1e140])
@pytest.mark.parametrize("ridge", [0.0, 1e-300, 1.0, 1e300])
@pytest.mark.parametrize("curvature", [0.0, 1.0, np.inf])
def test_scales_beside_a_ridge_are_finite(size, ridge, curvature):
    """Problems refuse data whose products are not; a loss may have no bound of its curvature."""
    squares = make_design([[size, 0.0], [size, size]]).adjoint_squares(np.ones((2, 1)))[0]
    scales = ridge_scales(squares, size, curvature, ridge)
    assert np.isfinite(scales).all()
    assert (scales > 0).all()
    assert scales[0] <= scales[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [sparse.csr_array, sparse.csc_array])
def test_compiled_grams_are_products(monkeypatch, storage, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 9)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0.0
    stored = storage(X)
    g = rng.standard_normal(40)
    exact = np.einsum("ia,i,ib->ab", X.astype(float), g, X.astype(float))
    for most in (0.0, np.inf):
        monkeypatch.setattr(designs, "PAIRS_TO_COMPILE", most)
        found = make_design(stored).gram(g)
        assert found == pytest.approx(exact, abs=1e-12)
        assert (found == found.T).all() or most == np.inf
