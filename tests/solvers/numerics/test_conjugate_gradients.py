"""Conjugate gradients and their preconditioner against dense linear algebra."""

from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st
from properties import seeds, tried

from mopn.solvers.interior_point import BlockPreconditioner, conjugate_gradient

varied = partial(tried, 25, seed=seeds)
sizes = st.integers(1, 12)


def spd(rng, n, condition=1e3):
    """A symmetric positive definite matrix with its eigenvalues between 1 and the condition number."""
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return (Q * condition ** rng.uniform(size=n)) @ Q.T


def scaled_system(seed, n):
    """A badly scaled system, and the inverse diagonal as preconditioner."""
    rng = np.random.default_rng(seed)
    scales = 2.0 ** rng.integers(-10, 11, size=n)
    A = scales[:, None] * spd(rng, n) * scales
    return A, scales * rng.standard_normal(n), 1.0 / np.diag(A)


def solve(A, b, inverse, tol=1e-10, max_iter=10_000):
    return conjugate_gradient(lambda x: A @ x, b, lambda r: inverse * r, tol, max_iter)


@varied(n=sizes)
def test_solution_equals_the_dense_one(seed, n):
    A, b, inverse = scaled_system(seed, n)
    x, _ = solve(A, b, inverse, tol=1e-12)
    exact = np.linalg.solve(A, b)
    # In the scaled unknowns; their condition number is the unscaled matrix's times its spread of diagonals.
    size = np.sqrt(np.diag(A))
    assert np.linalg.norm(size * (x - exact)) <= 1e-7 * np.linalg.norm(size * exact)


@varied(n=sizes, tol=st.sampled_from([0.5, 0.02, 1e-6]))
def test_the_run_ends_when_the_residual_is_small_and_not_before(seed, n, tol):
    A, b, inverse = scaled_system(seed, n)

    def share(x):
        r = b - A @ x
        return np.sqrt(r @ (inverse * r) / (b @ (inverse * b)))

    x, iterations = solve(A, b, inverse, tol=tol)
    assert share(x) <= tol * (1 + 1e-6)
    assert iterations >= 1
    before, count = solve(A, b, inverse, tol=tol, max_iter=iterations - 1)
    assert count == iterations - 1
    assert share(before) > tol * (1 - 1e-6)


@pytest.mark.parametrize("shape", [(3,), (3, 2), (0, 2)])
def test_a_zero_right_side_needs_no_iteration(shape):
    x, iterations = conjugate_gradient(lambda x: 2.0 * x, np.zeros(shape), lambda r: 1.0 * r, 0.1, 5)
    np.testing.assert_array_equal(x, np.zeros(shape))
    assert iterations == 0


def test_no_curvature_ends_the_run_at_the_last_iterate():
    """A right side outside of the range of a singular matrix: what lies in the range is solved."""
    A = np.diag([4.0, 0.0])
    x, iterations = solve(A, np.array([2.0, 0.0]), np.ones(2))
    np.testing.assert_allclose(x, [0.5, 0.0], rtol=1e-15)
    assert iterations == 1
    x, iterations = solve(A, np.array([0.0, 1.0]), np.ones(2))
    np.testing.assert_array_equal(x, 0.0)
    assert iterations == 0


@pytest.mark.parametrize("precondition", [lambda r: r, lambda r: r.copy()], ids=["itself", "copy"])
def test_the_right_side_is_not_overwritten_whatever_the_preconditioner_returns(precondition):
    """A preconditioner that does nothing may return its argument."""
    A = np.diag([1.0, 2.0, 3.0])
    b = np.ones(3)
    b.setflags(write=False)
    x, iterations = conjugate_gradient(lambda x: A @ x, b, precondition, 1e-10, 50)
    np.testing.assert_allclose(x, 1.0 / np.diag(A), rtol=1e-9)
    assert iterations == 3


def pieces(rng, k, m, rank=None, size=1.0):
    """Blocks of a rank, a diagonal of a size, rows within it (diag(D) - sum e_r e_r' stays positive), and a vector."""
    factors = rng.standard_normal((m, rank or k, k))
    diagonal = size * rng.uniform(0.5, 2.0, (k, m))
    rows = rng.standard_normal((k, m))
    rows *= np.sqrt(rng.uniform(0.0, 0.9, (k, 1)) / np.sum(rows**2 / diagonal, axis=1, keepdims=True))
    return factors.transpose(0, 2, 1) @ factors, diagonal, rows, np.sqrt(size) * rng.standard_normal((k, m))


def dense(blocks, diagonal, rows, common):
    """The matrix over X flat, in C order, entry by entry."""
    m, k, _ = blocks.shape
    A = np.zeros((k, m, k, m))
    for c in range(m):
        A[:, c, :, c] = blocks[c]
    A = A.reshape(k * m, k * m) + np.diag(diagonal.ravel())
    for r in range(0 if rows is None else k):
        e = np.zeros((k, m))
        e[r] = rows[r]
        A -= np.outer(e, e)
    return A if common is None else A + np.outer(common, common)


@pytest.mark.parametrize("with_common", [False, True])
@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize(("k", "m", "rank"), [(1, 1, 1), (5, 1, 5), (1, 4, 1), (6, 3, 6), (6, 3, 2)])
@tried(10, seed=seeds, size=st.sampled_from([1e-2, 1.0, 1e3]))
def test_preconditioner_inverts_its_matrix(k, m, rank, with_rows, with_common, seed, size):
    blocks, diagonal, rows, common = pieces(np.random.default_rng(seed), k, m, rank, size)
    rows, common = rows if with_rows else None, common if with_common else None
    A = dense(blocks, diagonal, rows, common)
    preconditioner = BlockPreconditioner(blocks, diagonal, rows, common)
    inverse = np.stack([preconditioner(e.reshape(k, m)).ravel() for e in np.eye(k * m)], axis=1)
    # The ridge of 1e-10 is relative to the pieces; relative to A, the condition number multiplies it.
    error = 1e-10 * np.linalg.cond(A) * 20
    assert error < 1e-4
    np.testing.assert_allclose(inverse, np.linalg.inv(A), rtol=0, atol=error * np.abs(inverse).max())
    np.testing.assert_allclose(inverse, inverse.T, rtol=0, atol=1e-12 * np.linalg.cond(A) * np.abs(inverse).max())
    assert np.linalg.eigvalsh(0.5 * (inverse + inverse.T)).min() > 0


@pytest.mark.parametrize("careful", [False, True])
def test_preconditioner_of_a_block_that_rounding_made_indefinite(careful):
    """What should be zero counts as the least that is resolved, so that the preconditioner is positive definite."""
    values = np.array([[3.0, 2.0, 1e-3, -1e-15], [1.0, 1.0, 1.0, 1.0]])
    blocks, diagonal = np.stack([np.diag(row) for row in values]), np.full((4, 2), 1e-20)
    X = BlockPreconditioner(blocks, diagonal, None, None, careful=careful)(np.ones((4, 2)))
    np.testing.assert_allclose(1.0 / X.T, np.maximum(values, 1e-14 * values.max(axis=1, keepdims=True)), rtol=1e-9)


@pytest.mark.parametrize("k", [1, 3])
def test_preconditioner_of_a_row_that_takes_all_of_its_diagonal(k):
    """I - e e' with |e|^2 = 1 + eps, which Woodbury's formula inverts by 1 / 0."""
    e = np.zeros((k, 2))
    e[0] = 1.0, 2.0**-26
    preconditioner = BlockPreconditioner(np.zeros((2, k, k)), np.ones((k, 2)), e, None)
    across = np.ones((k, 2))
    across[0] = 2.0**-26, -1.0
    np.testing.assert_allclose(preconditioner(across), across, rtol=1e-12)
    along = preconditioner(e)
    assert 1e12 < np.vdot(e, along) < 1e18


@pytest.mark.parametrize("stiffness", [1e3, 1e6, 1e9, 1e12])
def test_preconditioner_of_rows_whose_weights_move_together(stiffness):
    """The case of l1/linf near the optimum: a huge diagonal, of which the row vectors take all back along themselves.

    Conjugate gradients measure residuals in the norm of the preconditioner: it must not take a soft direction for a
    stiff one, or they end before they have begun.
    """
    k, m = 4, 2
    blocks, diagonal = np.stack([np.eye(k)] * m), np.full((k, m), stiffness)
    soft = np.ones((k, m))
    preconditioner = BlockPreconditioner(blocks, diagonal, np.sqrt(stiffness / m) * soft, None)
    # (I + diag(D) - sum_r e_r e_r') soft = soft; the pieces lose 2e-16 * stiffness, and 1 % would do no harm.
    np.testing.assert_allclose(preconditioner(soft), soft, rtol=0.01)
