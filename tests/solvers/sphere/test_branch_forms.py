"""Branch and bound with a biquadratic form at every node, against enumeration."""

import numpy as np
import pytest
from stacks import STACKS, decaying, draw_small, every_kind, slow_maximum, symmetric, unit_vectors

from mopn.solvers.sphere import DenseStack, enumerate_signs, refine
from mopn.solvers.sphere.biquadratic import Biquadratic
from mopn.solvers.sphere.boundary_point import Multipliers, step_work
from mopn.solvers.sphere.branch_forms import _child, _few_steps, _Node, branch_on_forms
from mopn.solvers.sphere.budget import Budget
from mopn.solvers.sphere.nested import nest_and_bound

TOL = 1e-4


def bound_of(A, budget, tol=TOL):
    """The bound by forms on all directions, and the best value that starts of the nodes led to."""
    stack, scale = DenseStack(A).scaled()
    best = [float(refine(stack, np.eye(A.shape[1]), 1)[1].max())]

    def look(starts):
        best[0] = max(best[0], float(refine(stack, starts, 1)[1].max()))

    form = Biquadratic(stack.matrices, A.shape[1], best[0], np.zeros((0, 0)), 1)
    none = Multipliers.none(len(form.matrix))
    bound, _ = branch_on_forms(form, none, look, lambda: best[0] * (1.0 + tol), budget)
    return bound * scale, best[0] * scale


@every_kind
def test_it_is_enumeration(kind):
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e-150, 1e140):
        A = scale * draw_small(kind, rng)
        optimum = slow_maximum(A)
        bound, best = bound_of(A, Budget())
        assert optimum <= bound <= optimum * (1 + 1.01 * TOL)
        assert optimum * (1 - 1.01 * TOL) <= best <= optimum * (1 + 1e-12)


@pytest.mark.parametrize("nodes", [0, 1, 3, 10])
def test_it_is_a_proof_at_any_limit(nodes):
    rng = np.random.default_rng(2)
    for kind in STACKS:
        A = draw_small(kind, rng)
        m, d, _ = A.shape
        bound, _ = bound_of(A, Budget(60.0 * nodes * step_work((m + 1) * d)), tol=1e-9)
        assert bound >= slow_maximum(A)


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
    """Of a stack whose relaxation is not tight, on some of its directions: ten outputs that enumeration knows."""
    stack, _ = DenseStack(symmetric(decaying(np.random.default_rng(0), 10, 24, 0.8))).scaled()
    H = unit_vectors(np.random.default_rng(1), 1, 24)
    found = nest_and_bound(stack, H, 1, 1e-3, Budget())
    value = enumerate_signs(stack)[1]
    assert value * (1 - 1e-12) <= found.bound <= value * (1 + 2e-3)
    assert found.parts.directions < 24
