"""The relaxations by sums of squares: their proofs, rising degrees, limits, and the last proof as a start."""

import math

import numpy as np
import pytest
from stacks import draw_small, unit_vectors

from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.boundary_point import Multipliers, step_work, tighten
from mopn.solvers.sphere.sum_of_squares import Quartic, bound_by_squares
from mopn.solvers.tools.budgets import Budget


def quartics(A, degree):
    """The form of a degree 2k, and those below."""
    quartic = Quartic(DenseStack(A))
    for _ in range(degree - 2):
        quartic = quartic.raised()
    return quartic


def tightened(quartic, target, steps=3000):
    return tighten(
        quartic, Multipliers.none(len(quartic.matrix)), target, Budget(steps * step_work(len(quartic.matrix)))
    )


def choi_lam_stack():
    """A stack with sum_c q_c^2 = 2 |h|^4 - F for Choi and Lam's form F = w^4 + x^2 y^2 + y^2 z^2 + z^2 x^2 - 4wxyz.

    F is nonnegative, zero at (1, 1, 1, 1), and no sum of squares: the maximum is 2, and the first relaxation is not
    tight.
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


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_the_proof_can_be_checked(degree):
    """N is symmetric and vanishes at the powers of every h; M has the values of the quartic; the bound is theirs."""
    rng = np.random.default_rng(5)
    A = draw_small("gaussian", rng)
    A = A / np.abs(A).max()
    quartic = quartics(A, degree)
    found = tightened(quartic, 0.0, 100)
    H = unit_vectors(rng, 100, A.shape[1])
    Z = quartic.lift.powers(H)
    assert np.abs(np.einsum("ra,ab,rb->r", Z, found.N, Z)).max() < 1e-12
    # To the last bit, as eigenvalues are computed from one triangle.
    assert np.array_equal(found.N, found.N.T)
    values = (np.einsum("ri,cij,rj->rc", H, A, H) ** 2).sum(axis=1)
    np.testing.assert_allclose(np.einsum("ra,ab,rb->r", Z, quartic.matrix, Z), values, rtol=1e-10)
    assert found.bound == pytest.approx(np.linalg.eigvalsh(quartic.matrix + found.N)[-1], rel=1e-9)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_rounding_errors_of_a_multiplier_are_in_the_bound(degree):
    """Huge multipliers have a value of their own at powers, in extended precision: the bound has more than that."""
    rng = np.random.default_rng(7)
    quartic = quartics(draw_small("gaussian", rng), degree)
    D, left = len(quartic.matrix), 0.0
    for _ in range(20):
        N = quartic.project(1e12 * rng.standard_normal((D, D)))
        Z = quartic.lift.powers(unit_vectors(rng, 200, quartic.lift.d)).astype(np.longdouble)
        values = np.einsum("ra,ab,rb->r", Z, N.astype(np.longdouble), Z) / np.sum(Z * Z, axis=1)
        left = max(left, float(np.abs(values).max()))
        # Without a form, only the errors are bounded.
        assert np.all(values <= quartic.bound(np.zeros((D, D)), 0.0, N) - quartic.rounding)
    assert left > 1e-8


def test_higher_degrees_prove_what_the_first_cannot():
    A, optimum = choi_lam_stack(), math.sqrt(2.0)
    h = np.full(4, 0.5)
    assert np.linalg.norm(np.einsum("i,cij,j->c", h, A, h)) == pytest.approx(optimum, rel=1e-12)
    first = tightened(Quartic(DenseStack(A)), 2.0, 20_000)
    assert math.sqrt(first.bound) >= optimum * (1 + 1e-3)
    found = bound_by_squares(DenseStack(A), np.eye(4), tol=1e-5)
    assert optimum <= found.bound <= optimum * (1 + 1.01e-5)


def test_multiples_of_the_identity():
    """Their quartic is constant, and no degree brings the bound below its rounding."""
    stack = DenseStack(np.array([0.6, -0.8])[:, None, None] * np.eye(3))
    found = bound_by_squares(stack, np.eye(3), tol=0.0)
    assert 1.0 <= found.bound <= 1.0 + 1e-13


def test_it_starts_from_the_last_proof():
    A = draw_small("gaussian", np.random.default_rng(15))
    stack, _ = DenseStack(A).scaled()
    start = np.eye(stack.shape[1])
    first, second, third = Budget(), Budget(), Budget()
    cold = bound_by_squares(stack, start, tol=1e-4, budget=first)
    warm = bound_by_squares(stack, start, tol=1e-4, budget=second, last=cold.last)
    assert second.spent < 0.5 * first.spent
    assert warm.bound == pytest.approx(cold.bound, rel=2e-4)
    # Multipliers for another number of features are useless.
    smaller, _ = DenseStack(A[:, :-1, :-1]).scaled()
    bound_by_squares(smaller, start[:-1, :-1], tol=1e-4, budget=third, last=cold.last)
    assert third.spent > 0
