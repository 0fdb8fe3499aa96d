"""Gram starts: their proven value, and no start that rounding chooses."""

import numpy as np
import pytest
from stacks import draw, draw_small, every_kind, symmetric

from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.starts import gram_starts


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_rounding_chooses_no_start(m, p):
    """Matrices that add up to zero have a combination that is rounding alone: its eigenvectors are no starts."""
    rng, A = draw("sum to zero", 20, (m, 6))
    starts = gram_starts(DenseStack(A), p)
    for _ in range(5):
        noise = 1 + 1e-15 * rng.standard_normal(A.shape)
        moved = gram_starts(DenseStack(A * symmetric(noise)), p)
        assert moved.shape == starts.shape
        assert np.abs(np.einsum("kd,kd->k", moved, starts)).min() > 1 - 1e-9


@every_kind
@pytest.mark.parametrize("p", [1, 2])
def test_gram_starts_have_their_proven_value(kind, p):
    """||sum_c w_c Gamma_c||_2 >= ||.||_F / sqrt(d), and single flips end where s'Ms >= trace(M)."""
    rng = np.random.default_rng(19)
    for _ in range(20):
        stack, _ = DenseStack(draw_small(kind, rng)).scaled()
        best = np.linalg.norm(stack.forms(gram_starts(stack, p)), p, axis=1).max(initial=0.0)
        M = np.einsum("cij,eij->ce", stack.matrices, stack.matrices)
        square = np.trace(M) if p == 1 else np.linalg.eigvalsh(M)[-1]
        assert best >= np.sqrt(square / stack.shape[1]) * (1 - 1e-9)
