"""Ascents: never downwards, up to the maximum in the plane, and many at once as each alone."""

import numpy as np
import pytest
from stacks import attained, draw, draw_small, every_kind, every_p, norms, shapes, symmetric, unit_vectors, varied

from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.refinement import gram_starts


@every_kind
@every_p
@varied(shape=shapes)
def test_refinement_is_monotone(kind, p, seed, shape):
    """More ascents never lower a value, none falls below its start, and the vectors have these values."""
    rng, stack = draw(kind, seed, shape)
    starts = unit_vectors(rng, 4, shape[1])
    before = DenseStack(stack).forms(starts)
    before = norms(before, p)
    for max_iter in (0, 1, 2, 5, 20):
        H, values = refine(DenseStack(stack), starts, p, tol=1e-15, max_iter=max_iter)
        assert (values >= before).all()
        np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-14)
        size = 1e-14 * np.abs(stack).sum(axis=(1, 2)).sum()
        np.testing.assert_allclose(values, attained(stack, H, p).astype(float), rtol=0, atol=size)
        before = values


@every_p
@pytest.mark.parametrize("kind", ["gaussian", "sum to zero", "near ties", "positive"])
def test_refinement_finds_the_maximum_in_the_plane(kind, p):
    """In two dimensions a fine grid of angles is a brute-force search."""
    angles = np.linspace(0, np.pi, 3001)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for seed in range(5):
        _, stack = draw(kind, seed, (3, 2))
        grid = attained(stack, circle, p).max()
        _, values = refine(DenseStack(stack), circle[::100], p, tol=1e-15, max_iter=1000)
        # The grid's spacing costs at most (pi / 6000)^2 of the spread of the eigenvalues.
        assert grid * (1 - 1e-9) <= values.max() <= grid + 1e-6 * np.abs(stack).sum()


@pytest.mark.parametrize("p", [1, 2])
def test_refinement_of_many_is_that_of_each(p):
    stack = DenseStack(draw_small("gaussian", np.random.default_rng(20)))
    H = unit_vectors(np.random.default_rng(21), 12, stack.shape[1])
    together, values = refine(stack, H, p)
    alone = [refine(stack, h[None], p) for h in H]
    np.testing.assert_allclose(values, [value[0] for _, value in alone], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(together * np.vstack([h for h, _ in alone]), axis=1)), 1.0, rtol=1e-9)


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
