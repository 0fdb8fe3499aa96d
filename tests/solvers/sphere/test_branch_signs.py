"""Branch and bound over signs, against enumeration."""

import numpy as np
import pytest
from stacks import STACKS, draw_small, every_kind, slow_maximum

from benchmarks.certificates.drawn_stacks import draw_clustered_stack
from mopn.oracles import basis_oracle
from mopn.solvers.sphere import DenseStack
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
