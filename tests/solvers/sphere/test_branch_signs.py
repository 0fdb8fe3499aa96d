"""Branch and bound over signs, against enumeration."""

from copy import copy

import numpy as np
import pytest
from stacks import (
    STACKS,
    attained,
    best_of_many,
    decaying,
    draw_small,
    every_kind,
    hostile,
    slow_maximum,
    symmetric,
    unit_vectors,
)

from benchmarks.certificates.drawn_stacks import draw_clustered_stack
from mopn.oracles import basis_oracle
from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.branch_signs import NODE_WORK, branch_and_bound


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
    for _ in range(30):
        A = draw_small("gaussian", rng)
        h, bound = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], allowance=Allowance(nodes * NODE_WORK))
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
    """The ascent from another direction ends below the leaf's eigenvalue."""
    A, _ = draw_clustered_stack(np.random.default_rng(seed))
    best = float(np.linalg.eigvalsh(A.sum(axis=0))[-1])
    found = basis_oracle("l1/linf", "exact", tol=1e-6)(A)
    assert best * (1 - 1e-13) <= found.bound <= best * (1 + 1e-6)
    assert found.values[0] >= best * (1 - 1e-6)


@pytest.mark.parametrize("limits", [None, Allowance(0.0), Allowance(5 * NODE_WORK), Allowance(seconds=0.0)])
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


@pytest.mark.parametrize("kind", ["gaussian", "positive", "sum to zero", "unequal", "rank one"])
@pytest.mark.parametrize("start", ["good", "bad"])
def test_branch_and_bound_is_enumeration_with_many_features(kind, start):
    rng = np.random.default_rng(4)
    sizes = 0.8 ** np.arange(60)
    for _ in range(3):
        A = symmetric(STACKS[kind](rng, 4, 60) * sizes[:, None] * sizes)
        stack, _ = DenseStack(A).scaled()
        H = refine(stack, unit_vectors(rng, 20, 60), 1)[0] if start == "good" else np.eye(60)[-1:]
        h, bound = branch_and_bound(stack, H)
        optimum = slow_maximum(stack.matrices)
        assert optimum <= bound <= optimum * (1 + 1e-7)
        assert attained(stack.matrices, h[None], 1) >= optimum * (1 - 1e-7)


def test_errors_of_the_matrices_join_the_bound():
    rng = np.random.default_rng(5)
    A = symmetric(decaying(rng, 3, 50, 0.7))
    A /= np.abs(A).max()
    H = refine(DenseStack(A), unit_vectors(rng, 20, 50), 1)[0]
    plain, uncertain = (branch_and_bound(DenseStack(A, np.full(3, e)), H)[1] for e in (0.0, 1e-3))
    assert uncertain >= plain + 3e-3
