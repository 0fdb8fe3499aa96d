"""Branch and bound over signs, against enumeration."""

import numpy as np
import pytest
from properties import seeds, tried
from stacks import attained, draw, every_kind, gaussian, good_vectors, shapes, slow_maximum, spectral

from benchmarks.certificates.drawn_stacks import draw_clustered_stack
from mopn.oracles import basis_oracle
from mopn.solvers.sphere import MAX_ENUMERATED, DenseStack, branch_signs, enumerate_signs


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
        patch.setattr(branch_signs, "_CHUNK", chunk)
        h, bound = enumerate_signs(DenseStack(stack))
    expected, size = slow_maximum(stack), sum(spectral(matrix) for matrix in stack)
    np.testing.assert_allclose(attained(stack, h[None], 1)[0].astype(float), expected, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(bound, expected, rtol=0, atol=1e-13 * size)
    assert attained(stack, np.vstack([h[None], good_vectors(rng, stack, 1)]), 1).max() <= bound


def test_out_of_time_it_has_the_best_of_the_signs_so_far_and_no_bound(monkeypatch):
    monkeypatch.setattr(branch_signs, "_CHUNK", 1)
    stack = gaussian(np.random.default_rng(0), 3, 4)
    h, bound = enumerate_signs(DenseStack(stack), max_time=0.0)
    assert bound == np.inf
    np.testing.assert_allclose(abs(h @ stack.sum(axis=0) @ h), spectral(stack.sum(axis=0)), rtol=1e-12)


@pytest.mark.parametrize("m", [MAX_ENUMERATED + 1, 26])
def test_enumeration_refuses_many_outputs(m):
    stack = np.ones((m, 1, 1))
    with pytest.raises(ValueError, match=rf"refused above m = 20 outputs, got m = {m}; use 'refine'"):
        enumerate_signs(DenseStack(stack))
