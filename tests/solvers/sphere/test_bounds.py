"""The bound that costs least, against attained values, special stacks and the paper's factor."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st
from stacks import (
    SHAPES,
    attained,
    draw,
    draw_small,
    every_kind,
    every_p,
    good_vectors,
    norms,
    shapes,
    slow_maximum,
    spectral,
    symmetric,
    unit_vectors,
    varied,
)

from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.bounds import moduli_error, upper_bound
from mopn.solvers.sphere.branch_signs import majorants
from mopn.solvers.sphere.cholesky import norm_bound


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
    """For the symmetric matrices, m = d (d + 1) / 2: then ||q(h)||_2 = ||h h'||_F = 1 for every unit h."""
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
    """Inaccurate eigenvectors make other matrix absolute values; the bound allows for the difference."""
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


@every_kind
def test_majorants_cover_every_form(kind):
    rng, gains = np.random.default_rng(18), []
    for _ in range(20):
        stack, _ = DenseStack(draw_small(kind, rng)).scaled()
        M, violation = majorants(stack)
        H = unit_vectors(rng, 200, stack.shape[1])
        covered = np.einsum("ki,ij,kj->k", H, M.sum(axis=0), H) + violation
        assert (np.abs(stack.forms(H)).sum(axis=1) <= covered).all()
        assert violation <= 1e-6
        plain, better = (np.linalg.eigvalsh(matrices.sum(axis=0))[-1] for matrices in (stack.moduli, M))
        assert better <= plain * (1 + 1e-12)
        gains.append(plain / better if better > 0 else 1.0)
    # Worth having: on stacks in no special position the sum is clearly smaller than the sum of absolute values.
    assert np.median(gains) > 1.02 or kind != "gaussian"


def test_cholesky_bound_grows_when_the_value_is_too_low():
    rng = np.random.default_rng(1)
    for d in (1, 2, 30):
        A = rng.standard_normal((d, d))
        A = A + A.T
        exact = np.abs(np.linalg.eigvalsh(A)).max()
        for fraction in (1.0, 0.999, 0.5, 1e-3):
            bound = norm_bound(A, fraction * exact, 1e-8)
            assert exact <= bound <= np.linalg.norm(A) * (1 + 1e-10)
            if fraction == 1.0:
                assert bound <= exact * (1 + 1e-7)
        assert norm_bound(np.zeros((d, d)), 0.0, 1e-8) == 0.0
