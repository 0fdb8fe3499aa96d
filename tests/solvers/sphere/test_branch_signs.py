"""Branch and bound over signs, against enumeration; with many features, nodes on principal directions."""

import itertools
from copy import copy

import numpy as np
import pytest
from properties import seeds, tried
from stacks import (
    STACKS,
    attained,
    best_of_many,
    decaying,
    draw,
    every_kind,
    gaussian,
    good_vectors,
    hostile,
    shapes,
    slow_maximum,
    spectral,
    symmetric,
    unit_vectors,
    varied,
)

from benchmarks.certificates.drawn_stacks import draw_clustered_stack
from mopn.oracles import basis_oracle
from mopn.solvers.sphere import MAX_ENUMERATED, DenseStack, enumerate_signs, refine
from mopn.solvers.sphere.branch_signs import NODE_WORK, branch_and_bound, majorants
from mopn.solvers.sphere.node_matrices import Reduced, reduced, whole
from mopn.solvers.tools.budgets import Budget


@pytest.mark.parametrize("seed", [9, 26, 33, 65])
def test_a_leaf_is_bounded_by_its_own_matrix_where_directions_nearly_tie(seed):
    """The reduced matrices rank another direction first, whose ascent ends below the leaf's eigenvalue."""
    A, _ = draw_clustered_stack(np.random.default_rng(seed))
    best = float(np.linalg.eigvalsh(A.sum(axis=0))[-1])
    found = basis_oracle("l1/linf", "exact", tol=1e-6)(A)
    assert best * (1 - 1e-13) <= found.bound <= best * (1 + 1e-6)
    assert found.values[0] >= best * (1 - 1e-6)


@every_kind
@pytest.mark.parametrize("entries", [1, 3, 512])
@tried(8, seed=seeds, shape=shapes)
def test_enumeration_equals_a_slow_loop(kind, entries, seed, shape):
    rng, stack = draw(kind, seed, shape)
    h, bound = enumerate_signs(DenseStack(stack), entries=entries)
    expected, size = slow_maximum(stack), sum(spectral(matrix) for matrix in stack)
    np.testing.assert_allclose(attained(stack, h[None], 1)[0].astype(float), expected, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(bound, expected, rtol=0, atol=1e-13 * size)
    assert attained(stack, np.vstack([h[None], good_vectors(rng, stack, 1)]), 1).max() <= bound


def test_out_of_time_it_has_the_best_of_the_signs_so_far_and_no_bound():
    stack = gaussian(np.random.default_rng(0), 3, 4)
    h, bound = enumerate_signs(DenseStack(stack), max_time=0.0, entries=1)
    assert bound == np.inf
    np.testing.assert_allclose(abs(h @ stack.sum(axis=0) @ h), spectral(stack.sum(axis=0)), rtol=1e-12)


@pytest.mark.parametrize("m", [MAX_ENUMERATED + 1, 26])
def test_enumeration_refuses_many_outputs(m):
    stack = np.ones((m, 1, 1))
    with pytest.raises(ValueError, match=rf"refused above m = 20 outputs, got m = {m}; use 'refine'"):
        enumerate_signs(DenseStack(stack))


# -- nodes on principal directions, against whole matrices -------------------------------------------------------------


LARGE = 0.5  # a tolerance with which few directions will do


def nodes_of(A, rng, tol=LARGE):
    """Return a scaled stack, the reduced matrices of its nodes, which may be none, and the whole ones."""
    stack, _ = DenseStack(symmetric(A)).scaled()
    H, values = refine(stack, unit_vectors(rng, 20, stack.shape[1]), 1)
    M, violation = majorants(stack, steps=0)
    return stack, reduced(stack, M, violation, H[np.argmax(values)], tol), whole(stack, M, violation)


def every_node(m):
    """Return the signs of all nodes: 0 where free, which is at the end."""
    return np.array([(*s, *[0] * (m - j)) for j in range(m + 1) for s in itertools.product((1, -1), repeat=j)], np.int8)


@varied()
def test_reduced_nodes_bound_whole_ones(seed):
    rng = np.random.default_rng(seed)
    stack, nodes, exact = nodes_of(decaying(rng, 4, 40, rng.choice([0.6, 0.8, 0.9])), rng)
    assert isinstance(nodes, Reduced)
    signs = every_node(4)
    bounds, sizes = nodes.bounds(signs) + nodes.slack, exact.bounds(signs)
    assert (bounds >= sizes).all()
    assert nodes.slack <= 1e-6 * nodes.t
    # They are not much larger where it matters; a vector near the bound's eigenvector is found as well.
    leaves, top = (signs != 0).all(axis=1), np.argmax(bounds)
    assert bounds[leaves].max() <= max(sizes[leaves].max(), nodes.t) * (1 + LARGE)
    h = nodes.vectors(signs[[top]])
    assert np.linalg.norm(h) == pytest.approx(1.0)
    assert attained(stack.matrices, h, 1) <= bounds[top]


def test_what_reduced_nodes_give_away_vanishes_with_the_rest():
    rng = np.random.default_rng(1)
    small = np.zeros((3, 50, 50))
    small[:, :16, :16] = decaying(rng, 3, 16, 0.9)
    Q, _ = np.linalg.qr(rng.standard_normal((50, 50)))
    for rest in (0.0, 1e-14, 1e-9):
        A = Q @ (small + rest * symmetric(rng.standard_normal((3, 50, 50)))) @ Q.T
        _, nodes, exact = nodes_of(A, rng)
        assert nodes.basis.shape == (50, 16)
        signs = every_node(3)
        expected = np.maximum(exact.bounds(signs), nodes.t)
        np.testing.assert_allclose(nodes.bounds(signs), expected, rtol=1e-7)


def test_without_principal_directions_there_are_no_reduced_nodes():
    rng = np.random.default_rng(2)
    for A in (decaying(rng, 3, 40, 1.0), np.zeros((3, 40, 40)), STACKS["near ties"](rng, 3, 40)):
        assert nodes_of(A, rng, tol=1e-3)[1] is None


@pytest.mark.parametrize("limits", [None, Budget(0.0), Budget(5 * NODE_WORK), Budget(seconds=0.0)])
@pytest.mark.parametrize("tol", [1e-9, 1e-2])
@pytest.mark.parametrize("d", [40, 90])
def test_branch_and_bound_is_a_proof_for_hostile_stacks(d, tol, limits):
    rng = np.random.default_rng(3)
    for A in hostile(rng, 5, d):
        stack, _ = DenseStack(symmetric(A)).scaled()
        H = refine(stack, unit_vectors(rng, 5, d), 1)[0]
        h, bound = branch_and_bound(stack, H, tol, limits and copy(limits))
        optimum = slow_maximum(stack.matrices)
        assert bound >= max(optimum, best_of_many(stack.matrices, 1, rng, starts=20)) * (1 - 1e-14)
        assert attained(stack.matrices, h[None], 1) <= bound
        if limits is None:
            assert bound <= optimum * (1 + tol) * (1 + 1e-7)
            assert attained(stack.matrices, h[None], 1) >= optimum * (1 - tol) * (1 - 1e-7)


def test_errors_of_the_matrices_join_the_bound():
    rng = np.random.default_rng(5)
    A = symmetric(decaying(rng, 3, 50, 0.7))
    A /= np.abs(A).max()
    H = refine(DenseStack(A), unit_vectors(rng, 20, 50), 1)[0]
    plain, uncertain = (branch_and_bound(DenseStack(A, np.full(3, e)), H)[1] for e in (0.0, 1e-3))
    assert uncertain >= plain + 3e-3
