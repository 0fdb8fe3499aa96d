"""Principal directions of a stack: the bound on the rest, and sums of squares on more and more of them."""

import numpy as np
import pytest
from stacks import STACKS, attained, best_of_many, decaying, every_kind, hostile, symmetric, unit_vectors, varied

from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.compression import rotated
from mopn.solvers.sphere.nested import nest_and_bound


@pytest.mark.covering(1)
@every_kind
@pytest.mark.parametrize("r", [1, 3, 6])
@varied()
def test_what_the_directions_and_the_rest_add_up_to_is_a_bound(kind, r, seed):
    rng = np.random.default_rng(seed)
    A = symmetric(STACKS[kind](rng, 4, 7))
    stack, _ = DenseStack(A).scaled()
    part = rotated(stack).compressed(r)
    nu = best_of_many(part.leading.matrices, 2, rng, starts=30)
    # Even of a value in place of the bound nu, but for how far that value is from the maximum.
    bound = part.bound(nu * (1 + 1e-6) + float(np.linalg.norm(part.leading.error)))
    assert bound >= best_of_many(stack.matrices, 2, rng, starts=30)


@varied()
def test_the_parts_bound_what_they_say(seed):
    """kappa the form between both parts, rho the form on the rest; the basis is one of the same space."""
    rng = np.random.default_rng(seed)
    stack = DenseStack(symmetric(decaying(rng, 3, 8, 0.6)))
    whole = rotated(stack)
    np.testing.assert_allclose(whole.basis.T @ whole.basis, np.eye(8), atol=1e-13)
    for r in (2, 5):
        part = whole.compressed(r)
        P, Q = whole.basis[:, :r], whole.basis[:, r:]
        a, b = unit_vectors(rng, 200, r) @ P.T, unit_vectors(rng, 200, 8 - r) @ Q.T
        between = np.einsum("ki,cij,kj->kc", a, stack.matrices, b)
        assert np.linalg.norm(between, axis=1).max() <= part.kappa
        assert attained(stack.matrices, b, 2).max() <= part.rho
        np.testing.assert_allclose(part.leading.matrices, P.T @ stack.matrices @ P, atol=1e-12)


def test_the_error_of_the_basis_covers_its_rounding():
    rng = np.random.default_rng(0)
    stack = DenseStack(symmetric(decaying(rng, 2, 40, 0.9)))
    whole = rotated(stack)
    exact = whole.basis.astype(np.longdouble)
    difference = exact.T @ stack.matrices.astype(np.longdouble) @ exact - whole.stack.matrices
    assert (np.linalg.norm(difference.astype(float), 2, axis=(1, 2)) <= whole.stack.error).all()
    assert whole.stack.error.max() <= 1e-10 * np.abs(stack.matrices).max()


@pytest.mark.parametrize("work", [5e8, 2e9])
@pytest.mark.parametrize("d", [12, 40])
@pytest.mark.slow
def test_the_bound_is_one_at_any_limit(d, work):
    rng = np.random.default_rng(1)
    for A in hostile(rng, 3, d):
        stack, _ = DenseStack(symmetric(A)).scaled()
        H = unit_vectors(rng, 5, d)
        found = nest_and_bound(stack, H, 1e-3, Allowance(work))
        assert found.bound >= best_of_many(stack.matrices, 2, rng, starts=50)
        assert found.bound >= refine(stack, found.H, 2)[1].max()
        assert nest_and_bound(stack, H, 1e-3, Allowance(work, seconds=1e-9)).bound == np.inf


def test_the_bound_is_tight_where_few_directions_matter():
    rng = np.random.default_rng(2)
    for d in (30, 100):
        stack, _ = DenseStack(symmetric(decaying(rng, 5, d, 0.75))).scaled()
        found = nest_and_bound(stack, unit_vectors(rng, 10, d), 1e-2, Allowance(1e11))
        assert found.bound <= refine(stack, found.H, 2)[1].max() * (1 + 1e-2)


def test_without_work_there_is_no_bound():
    stack = DenseStack(np.eye(30)[None])
    assert nest_and_bound(stack, np.eye(30)[:1], 1e-3, Allowance(1e6)).bound == np.inf


def test_the_parts_of_a_bound_add_up_to_it():
    """Few directions leave much to the others; with more of them, both parts shrink."""
    rng = np.random.default_rng(0)
    stack, H = DenseStack(decaying(rng, 3, 40, 0.9)), unit_vectors(rng, 10, 40)
    best = refine(stack, H, 2)[1].max()
    few, more = (nest_and_bound(stack, H, 1e-4, Allowance(work)) for work in (2e9, 1e11))
    for found in (few, more):
        assert best + found.parts.relaxation + found.parts.compression == pytest.approx(found.bound, rel=1e-12)
        assert found.parts.compression >= 0
    assert few.parts.directions < more.parts.directions
    assert more.parts.compression < few.parts.compression
