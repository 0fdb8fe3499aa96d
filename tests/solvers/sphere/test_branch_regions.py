"""Splitting the sphere: what one relaxation cannot prove, limits, and the last proof as a start."""

import numpy as np
import pytest
from stacks import STACKS, best_of_many, draw_small

from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.branch_regions import split_and_bound
from mopn.solvers.sphere.sum_of_squares import Quartic, relax


def choi_lam_stack():
    """A stack with sum_c q_c^2 = 2 |h|^4 - F for Choi and Lam's form F = w^4 + x^2 y^2 + y^2 z^2 + z^2 x^2 - 4wxyz.

    F is nonnegative, zero at (1, 1, 1, 1), and no sum of squares: the maximum is 2, and the relaxation is not tight.
    """
    i, j = np.triu_indices(4)
    place = {(a, b): r for r, (a, b) in enumerate(zip(i, j, strict=True))}
    F = np.zeros((10, 10))
    F[0, 0] = 1.0
    for pair in ((1, 2), (2, 3), (1, 3)):
        F[place[pair], place[pair]] = 0.5
    for a, b in (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))):
        F[place[a], place[b]] = F[place[b], place[a]] = -1.0 / 3.0
    values, vectors = np.linalg.eigh(2.0 * np.eye(10) - F)
    A = np.zeros((10, 4, 4))
    A[:, i, j] = A[:, j, i] = (vectors * np.sqrt(values)).T / np.where(i == j, 1.0, np.sqrt(2.0))
    return A


@pytest.mark.slow
def test_splitting_proves_what_one_relaxation_cannot():
    A, optimum = choi_lam_stack(), np.sqrt(2.0)
    h, quartic = np.full(4, 0.5), Quartic(DenseStack(A))
    assert np.linalg.norm(np.einsum("i,cij,j->c", h, A, h)) == pytest.approx(optimum, rel=1e-12)
    root = relax(quartic, quartic.whole(), 2.0, Allowance(20_000 * quartic.step_work))
    assert np.sqrt(root.bound) >= optimum * (1 + 1e-3)
    split = split_and_bound(DenseStack(A), np.eye(4), tol=1e-5, allowance=Allowance(100_000 * quartic.step_work))
    assert optimum <= split.bound <= optimum * (1 + 1.01e-5)


@pytest.mark.parametrize("steps", [1, 10, 100, 1000])
def test_splitting_is_a_proof_at_any_limit(steps):
    rng = np.random.default_rng(14)
    for kind in STACKS:
        stack, _ = DenseStack(draw_small(kind, rng)).scaled()
        start = np.eye(stack.shape[1])
        allowance = Allowance(steps * Quartic(stack).step_work)
        split = split_and_bound(stack, start, tol=1e-6, allowance=allowance)
        assert split.bound >= best_of_many(stack.matrices, 2, rng)
        assert allowance.spent <= allowance.work
    at_once = split_and_bound(stack, start, tol=1e-6, allowance=Allowance(seconds=1e-9))
    assert at_once.bound >= best_of_many(stack.matrices, 2, rng)


def test_multiples_of_the_identity_are_not_split():
    """Their quartic is constant, and no cut brings the bound below its rounding."""
    stack = DenseStack(np.array([0.6, -0.8])[:, None, None] * np.eye(3))
    allowance = Allowance(1000 * Quartic(stack).step_work)
    split = split_and_bound(stack, np.eye(3), tol=0.0, allowance=allowance)
    assert 1.0 <= split.bound <= 1.0 + 1e-13


def test_splitting_starts_from_the_last_proof():
    A = draw_small("gaussian", np.random.default_rng(15))
    stack, _ = DenseStack(A).scaled()
    start = np.eye(stack.shape[1])
    first, second = Allowance(), Allowance()
    cold = split_and_bound(stack, start, tol=1e-4, allowance=first)
    warm = split_and_bound(stack, start, tol=1e-4, N=cold.N, allowance=second)
    assert second.spent < 0.5 * first.spent
    assert warm.bound == pytest.approx(cold.bound, rel=2e-4)
