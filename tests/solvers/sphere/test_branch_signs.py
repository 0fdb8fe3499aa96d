"""Branch and bound over signs, against enumeration."""

import numpy as np
import pytest
from properties import seeds, tried
from stacks import (
    STACKS,
    attained,
    draw,
    draw_small,
    every_kind,
    gaussian,
    good_vectors,
    shapes,
    slow_maximum,
    spectral,
)

from benchmarks.certificates.drawn_stacks import draw_clustered_stack
from mopn.oracles import basis_oracle
from mopn.solvers.sphere import MAX_ENUMERATED, DenseStack, enumerate_signs, enumeration
from mopn.solvers.sphere.branch_signs import NODE_WORK, branch_and_bound
from mopn.solvers.sphere.budget import Budget


@every_kind
def test_branch_and_bound_is_enumeration(kind):
    rng = np.random.default_rng(1)
    for _ in range(40):
        A = draw_small(kind, rng)
        d = A.shape[1]
        optimum = slow_maximum(A)
        h, bound = branch_and_bound(DenseStack(A), np.eye(d)[:1])
        value = np.abs(np.einsum("i,cij,j->c", h, A, h)).sum()
        assert np.linalg.norm(h) == pytest.approx(1.0, rel=1e-12)
        assert bound >= optimum
        assert value >= optimum * (1 - 1e-9)
        assert bound <= optimum * (1 + 2e-9)


@pytest.mark.parametrize("nodes", [0, 2, 10, 50])
def test_branch_and_bound_is_a_proof_at_any_limit(nodes):
    rng = np.random.default_rng(2)
    for kind in 5 * list(STACKS):
        A = draw_small(kind, rng)
        h, bound = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], budget=Budget(nodes * NODE_WORK))
        optimum = slow_maximum(A)
        assert bound >= optimum
        assert np.abs(np.einsum("i,cij,j->c", h, A, h)).sum() <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("tol", [1e-3, 1e-1])
def test_branch_and_bound_keeps_its_pruning_tolerance(tol):
    rng = np.random.default_rng(3)
    for _ in range(30):
        A = draw_small("sum to zero", rng)
        h, bound = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], tol=tol)
        value = np.abs(np.einsum("i,cij,j->c", h, A, h)).sum()
        assert slow_maximum(A) <= bound <= value * (1 + tol) * (1 + 1e-9)


@pytest.mark.parametrize("seed", [9, 26, 33, 65])
def test_a_leaf_is_bounded_by_its_own_matrix_where_directions_nearly_tie(seed):
    """The reduced matrices rank another direction first, whose ascent ends below the leaf's eigenvalue."""
    A, _ = draw_clustered_stack(np.random.default_rng(seed))
    best = float(np.linalg.eigvalsh(A.sum(axis=0))[-1])
    found = basis_oracle("l1/linf", "exact", tol=1e-6)(A)
    assert best * (1 - 1e-13) <= found.bound <= best * (1 + 1e-6)
    assert found.values[0] >= best * (1 - 1e-6)


@every_kind
@pytest.mark.parametrize("chunk", [1, 3, 512])
@tried(8, seed=seeds, shape=shapes)
def test_enumeration_equals_a_slow_loop(kind, chunk, seed, shape):
    rng, stack = draw(kind, seed, shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "_CHUNK", chunk)
        h, bound = enumerate_signs(DenseStack(stack))
    expected, size = slow_maximum(stack), sum(spectral(matrix) for matrix in stack)
    np.testing.assert_allclose(attained(stack, h[None], 1)[0].astype(float), expected, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(bound, expected, rtol=0, atol=1e-13 * size)
    assert attained(stack, np.vstack([h[None], good_vectors(rng, stack, 1)]), 1).max() <= bound


def test_out_of_time_it_has_the_best_of_the_signs_so_far_and_no_bound(monkeypatch):
    monkeypatch.setattr(enumeration, "_CHUNK", 1)
    stack = gaussian(np.random.default_rng(0), 3, 4)
    h, bound = enumerate_signs(DenseStack(stack), max_time=0.0)
    assert bound == np.inf
    np.testing.assert_allclose(abs(h @ stack.sum(axis=0) @ h), spectral(stack.sum(axis=0)), rtol=1e-12)


@pytest.mark.parametrize("m", [MAX_ENUMERATED + 1, 26])
def test_enumeration_refuses_many_outputs(m):
    stack = np.ones((m, 1, 1))
    with pytest.raises(ValueError, match=rf"refused above m = 20 outputs, got m = {m}; use 'refine'"):
        enumerate_signs(DenseStack(stack))
