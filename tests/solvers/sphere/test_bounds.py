"""The bound that costs least, against attained values, special stacks and the paper's factor."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st
from stacks import (
    SHAPES,
    attained,
    draw,
    every_kind,
    every_p,
    good_vectors,
    norms,
    shapes,
    slow_maximum,
    spectral,
    symmetric,
    varied,
)

from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.bounds import moduli_error, upper_bound


@every_kind
@every_p
@varied(shape=shapes)
def test_no_attained_value_exceeds_the_bound_which_is_as_tight_as_the_papers(kind, p, seed, shape):
    """At most m^(1/p) times the maximum for p = inf (section 4), which is exact."""
    rng, stack = draw(kind, seed, shape)
    bound, largest = upper_bound(DenseStack(stack), p), max(spectral(matrix) for matrix in stack)
    assert attained(stack, good_vectors(rng, stack, p), p).max() <= bound
    assert bound <= shape[0] ** (1.0 / p) * largest * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["duplicated", "identity", "diagonal", "positive"])
@varied(shape=shapes)
def test_the_bound_is_exact_for_p_1_where_the_moduli_add_up(kind, seed, shape):
    """For semidefinite, commuting or proportional matrices h' |Gamma| h = |h' Gamma h| at a common maximiser."""
    _, stack = draw(kind, seed, shape)
    if kind == "diagonal":
        stack = np.abs(stack)
    np.testing.assert_allclose(upper_bound(DenseStack(stack), 1.0), slow_maximum(stack), rtol=1e-13)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_bound_is_exact_for_p_2_on_an_orthonormal_basis(d):
    """Of the symmetric matrices, m = d (d + 1) / 2: then ||q(h)||_2 = ||h h'||_F = 1 for every unit h."""
    pairs = list(itertools.combinations_with_replacement(range(d), 2))
    basis = np.zeros((len(pairs), d, d))
    for c, (j, k) in enumerate(pairs):
        basis[c, j, k] = basis[c, k, j] = 1.0 if j == k else np.sqrt(0.5)
    rotation, _ = np.linalg.qr(np.random.default_rng(d).standard_normal((len(pairs),) * 2))
    for stack in (basis, np.einsum("ce,ejk->cjk", rotation, basis)):
        np.testing.assert_allclose(upper_bound(DenseStack(stack), 2.0), 1.0, rtol=1e-13)


@every_kind
@varied(shape=st.sampled_from([*SHAPES, (12, 2), (20, 3)]))
def test_bounds_are_ordered_like_the_norms(kind, seed, shape):
    """||q||_1 <= sqrt(m) ||q||_2: the bound for p = 1 must not be worse than what that for p = 2 gives."""
    _, stack = draw(kind, seed, shape)
    assert upper_bound(DenseStack(stack), 1.0) <= np.sqrt(shape[0]) * upper_bound(DenseStack(stack), 2.0) * (1 + 1e-12)


@every_p
def test_the_bound_counts_the_errors_of_forming_the_matrices(p):
    """Errors of spectral norm e_c raise ||q||_p by up to ||e||_p, and do so for matrices proportional to e."""
    e = np.array([0.5, 0.25, 1.0])
    assert upper_bound(DenseStack(np.zeros((3, 4, 4)), error=e), p) >= norms(e[None], p)[0]
    assert upper_bound(DenseStack(np.zeros((3, 4, 4)), error=e), p) <= norms(e[None], p)[0] * (1 + 1e-14)
    stack = np.ones((3, 1, 1))
    np.testing.assert_allclose(upper_bound(DenseStack(stack, error=e), p), norms((1 + e)[None], p)[0], rtol=0.05)
    assert upper_bound(DenseStack(stack, error=e), p) >= norms((1 + e)[None], p)[0]


@every_p
def test_a_stack_that_is_nothing_beside_its_errors_scales_by_them(p):
    """Where X has the least numbers, the bound of the errors of the sums is 10^30 times the sums, and more."""
    stack, scale = DenseStack(np.full((2, 3, 3), 1e-300), np.array([1e-40, 1e-100])).scaled()
    bound = upper_bound(stack, p)
    assert 0.5 <= bound <= 4.0
    assert np.isclose(bound * scale, 1e-40, rtol=1e-9)


def test_moduli_bound_the_forms_however_they_were_decomposed():
    """Inaccurate eigenvectors make other matrix absolute values; what they lack is part of the bound."""
    rng = np.random.default_rng(0)
    A = symmetric(rng.standard_normal((3, 8, 8)))
    stack = DenseStack(A)
    values, vectors = stack.eigen
    worse = DenseStack(A)
    vars(worse)["eigen"] = (values, vectors + 1e-3 * rng.standard_normal(vectors.shape))
    H = good_vectors(rng, A, 1.0)
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    for each in (stack, worse):
        least = np.einsum("ki,ij,kj->k", H, each.moduli.sum(axis=0), H) + moduli_error(each)
        assert np.all(attained(A, H, 1.0) <= least)
