"""Biquadratic forms on more and more principal directions, and branch and bound with a form at every node."""

import numpy as np
import pytest
from stacks import STACKS, best_of_many, decaying, every_kind, hostile, symmetric, unit_vectors, varied

from mopn.solvers.sphere import DenseStack, enumerate_signs, refine
from mopn.solvers.sphere.biquadratic import Biquadratic
from mopn.solvers.sphere.boundary_point import Multipliers
from mopn.solvers.sphere.nested import _child, _few_steps, _Node, nest_and_bound
from mopn.solvers.sphere.stack import in_basis, principal_basis, rotated_outputs
from mopn.solvers.tools.budgets import Budget

either_norm = pytest.mark.parametrize("p", [1, 2])


def test_the_error_of_a_basis_covers_its_rounding():
    rng = np.random.default_rng(0)
    stack = DenseStack(symmetric(decaying(rng, 2, 40, 0.9)))
    basis = principal_basis(stack)
    rotated = in_basis(stack, basis)
    exact = basis.astype(np.longdouble)
    difference = exact.T @ stack.matrices.astype(np.longdouble) @ exact - rotated.matrices
    assert (np.linalg.norm(difference.astype(float), 2, axis=(1, 2)) <= rotated.error).all()
    assert rotated.error.max() <= 1e-10 * np.abs(stack.matrices).max()
    np.testing.assert_allclose(basis.T @ basis, np.eye(40), atol=1e-13)


@every_kind
@varied()
def test_combinations_of_outputs_keep_the_norm(kind, seed):
    rng = np.random.default_rng(seed)
    A = symmetric(STACKS[kind](rng, 3, 4))
    A = np.concatenate([A, -A.sum(axis=0, keepdims=True)])
    outputs, H = rotated_outputs(DenseStack(A, np.full(4, 1e-9))), unit_vectors(rng, 50, 4)
    values, kept = (np.linalg.norm(np.einsum("ki,cij,kj->kc", H, B, H), axis=1) for B in (A, outputs.stack.matrices))
    added = np.linalg.norm(outputs.stack.error)
    assert all(outputs.bound(float(t) + added) >= value for t, value in zip(kept, values, strict=True))
    np.testing.assert_allclose(kept, values, rtol=1e-6, atol=1e-12)
    assert 1 <= outputs.stack.shape[0] <= 3


@either_norm
@pytest.mark.parametrize("work", [1e9, 1e10])
@pytest.mark.parametrize("d", [12, 40])
@pytest.mark.slow
def test_the_bound_is_one_at_any_limit(d, work, p):
    rng = np.random.default_rng(1)
    for A in hostile(rng, 3, d):
        stack, _ = DenseStack(symmetric(A)).scaled()
        H = unit_vectors(rng, 5, d)
        found = nest_and_bound(stack, H, p, 1e-3, Budget(work))
        assert found.bound >= best_of_many(stack.matrices, p, rng, starts=50)
        assert found.bound >= refine(stack, found.H, p)[1].max()
        assert nest_and_bound(stack, H, p, 1e-3, Budget(work, seconds=1e-9)).bound == np.inf


def test_the_bound_is_tight_where_few_directions_matter():
    rng = np.random.default_rng(2)
    for d in (30, 100):
        stack, _ = DenseStack(symmetric(decaying(rng, 5, d, 0.75))).scaled()
        found = nest_and_bound(stack, unit_vectors(rng, 10, d), 2, 1e-3, Budget(1e10))
        assert found.bound <= refine(stack, found.H, 2)[1].max() * (1 + 1e-3)


def test_it_starts_from_the_last_proof_of_a_similar_stack():
    rng = np.random.default_rng(3)
    A, noise = (symmetric(decaying(rng, 4, 40, 0.8)) for _ in range(2))
    H, spent, last = unit_vectors(rng, 10, 40), [], None
    for B in (A, A + 1e-6 * noise, A + 1e-6 * noise):
        budget = Budget()
        found = nest_and_bound(DenseStack(B), H, 2, 1e-3, budget, last)
        spent.append(budget.spent)
        last = found.last if last is None else None
    assert spent[1] < 0.5 * spent[2]
    # Those of another number of outputs, or of features, are none.
    for C in (A[:3], A[:, :30, :30]):
        proofs = [nest_and_bound(DenseStack(C), H[:, : len(C[0])], 2, 0.1, Budget(), k) for k in (None, found.last)]
        assert proofs[0].bound == proofs[1].bound


def test_a_larger_budget_takes_more_directions():
    rng = np.random.default_rng(0)
    stack, H = DenseStack(decaying(rng, 3, 40, 0.9)), unit_vectors(rng, 10, 40)
    few, more = (nest_and_bound(stack, H, 2, 1e-4, Budget(work)) for work in (3e8, 1e11))
    assert few.last.features.shape[1] < more.last.features.shape[1]
    assert more.bound < few.bound


# -- branch and bound --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_node_inherits_the_bound_of_its_parent(sign):
    """Without a step of its own, and with none of the work left."""
    A = DenseStack(symmetric(np.random.default_rng(3).standard_normal((5, 4, 4)))).scaled()[0].matrices
    form = Biquadratic(A, 4, 0.0, np.zeros((0, 0)), 1)
    proof = _few_steps(form, Multipliers.none(24), 0.0, Budget())
    node = _Node(np.eye(6), form, proof)
    for _ in range(5):
        child = _child(form, node, sign, 0.0, Budget(0.0))
        assert child.proof.bound <= node.proof.bound * (1 + 1e-12)
        assert len(child.E) == len(node.E) - 1
        assert np.abs(child.E).sum() == 6
        node = child
    assert node.proof.bound == pytest.approx(np.linalg.eigvalsh(np.einsum("c,cij->ij", node.E[0, 1:], A))[-1])


def test_nodes_close_what_the_form_of_the_root_leaves_open():
    """A stack whose relaxation is not tight, on some of its directions: ten outputs that enumeration knows."""
    stack, _ = DenseStack(symmetric(decaying(np.random.default_rng(0), 10, 24, 0.8))).scaled()
    H = unit_vectors(np.random.default_rng(1), 1, 24)
    found = nest_and_bound(stack, H, 1, 1e-3, Budget())
    value = enumerate_signs(stack)[1]
    assert value * (1 - 1e-12) <= found.bound <= value * (1 + 2e-3)
    assert found.last.features.shape[1] < 24
