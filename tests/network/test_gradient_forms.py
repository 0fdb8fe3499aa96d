"""Forms of a gradient, matrix-free: bounds against attained values, products against the matrices themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import DATA, attained_by_forms, draw_forms, every_kernel, forms_of, random_network, wide_problem
from properties import examples, seeds
from stacks import best_of_many, every_p, good_vectors, norms, spectral

from mopn.solvers.sphere import enumerate_signs
from mopn.solvers.sphere.bounds import upper_bound

SIZES = [(1, 1, 1), (10, 4, 3), (8, 9, 2)]
every_data = pytest.mark.parametrize("data", DATA)


@every_kernel
@every_data
@every_p
@examples(12)
@given(seed=seeds, sparsely=st.booleans(), ones=st.integers(0, 2), sizes=st.sampled_from(SIZES))
def test_no_attained_value_exceeds_the_bounds_of_forms(kernel, data, p, seed, sparsely, ones, sizes):
    """Matrix-free, dense and enumerated: all three prove a bound for the data, not for the rounded matrices."""
    forms, X, G = draw_forms(kernel, data, seed, *sizes, sparsely=sparsely, ones=ones)
    dense = forms.dense
    H = good_vectors(np.random.default_rng(seed), dense.matrices, p)
    largest = attained_by_forms(kernel, X, G, H, p).max()
    assert largest <= forms.bound(p)
    assert largest <= upper_bound(dense, p)
    if p == 1:
        assert largest <= enumerate_signs(dense)[1]


@every_kernel
@every_data
@every_p
def test_matrix_free_bound_is_at_most_its_first_step(kernel, data, p):
    """The largest row sum of the matrix A of |x_i| and weights ||G_i||_p, plus the budget for rounding."""
    for seed in range(5):
        forms, X, G = draw_forms(kernel, data, seed)
        A = majorant(kernel, X, G, p)
        assert spectral(A) * (1 - 1e-14) <= forms.collatz_bound(p)
        assert forms.bound(p) <= forms.collatz_bound(p)
        assert forms.collatz_bound(p) <= A.sum(axis=1).max() + 1e-11 * np.sum(norms(G, p)[:, None] * X**2)


@every_kernel
@every_p
@pytest.mark.parametrize("data", ["positive", "dense"])
def test_matrix_free_bound_is_close_to_the_perron_value(kernel, data, p):
    for seed in range(5):
        forms, X, G = draw_forms(kernel, data, seed, n=30, d=8)
        np.testing.assert_allclose(forms.collatz_bound(p), spectral(majorant(kernel, X, G, p)), rtol=1e-3)


def majorant(kernel, X, G, p):
    A = np.einsum("i,ij,ik->jk", norms(G, p), np.abs(X), np.abs(X))
    return A if kernel == "homogeneous" else 0.5 * (A - np.diag(np.diag(A)))


def test_gram_of_a_stack():
    """The matrix-free stack has the Gram matrix of the dense one; beyond some samples it is estimated."""
    for kernel in ("homogeneous", "anova"):
        for sparse_data in (True, False):
            problem = wide_problem(m=3, kernel=kernel, sparse_data=sparse_data, d=50)
            forms = forms_of(problem, random_network(problem, seed=2))
            dense = forms.dense
            assert forms.gram() == pytest.approx(dense.gram(), rel=1e-9, abs=1e-9)
            for p in (1, 2, np.inf):
                assert forms.bound(p) >= best_of_many(dense.matrices, p, np.random.default_rng(3), starts=20)
    problem = wide_problem(m=3, n=3200, d=40)
    many = forms_of(problem, random_network(problem, seed=2))
    assert many.gram() == pytest.approx(many.dense.gram(), rel=1.0)
