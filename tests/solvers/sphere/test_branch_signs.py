"""Branch and bound over signs, against enumeration."""

import numpy as np
import pytest
from stacks import draw_small, every_kind, slow_maximum

from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.branch_signs import branch_and_bound


@every_kind
def test_branch_and_bound_is_enumeration(kind):
    rng = np.random.default_rng(1)
    for _ in range(40):
        A = draw_small(kind, rng)
        d = A.shape[1]
        optimum = slow_maximum(A)
        h, bound, _ = branch_and_bound(DenseStack(A), np.eye(d)[:1])
        value = np.abs(np.einsum("i,cij,j->c", h, A, h)).sum()
        assert np.linalg.norm(h) == pytest.approx(1.0, rel=1e-12)
        assert bound >= optimum
        assert value >= optimum * (1 - 1e-9)
        assert bound <= optimum * (1 + 2e-9)


@pytest.mark.parametrize("max_nodes", [0, 2, 10, 50])
def test_branch_and_bound_is_a_proof_at_any_limit(max_nodes):
    rng = np.random.default_rng(2)
    for _ in range(30):
        A = draw_small("gaussian", rng)
        h, bound, _ = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], max_nodes=max_nodes)
        optimum = slow_maximum(A)
        assert bound >= optimum
        assert np.abs(np.einsum("i,cij,j->c", h, A, h)).sum() <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("tol", [1e-3, 1e-1])
def test_branch_and_bound_keeps_its_pruning_tolerance(tol):
    rng = np.random.default_rng(3)
    for _ in range(30):
        A = draw_small("sum to zero", rng)
        h, bound, _ = branch_and_bound(DenseStack(A), np.eye(A.shape[1])[:1], tol=tol)
        value = np.abs(np.einsum("i,cij,j->c", h, A, h)).sum()
        assert slow_maximum(A) <= bound <= value * (1 + tol) * (1 + 1e-9)
