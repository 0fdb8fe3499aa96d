"""Branch and bound with a biquadratic form at every node, against enumeration."""

import numpy as np
import pytest
from stacks import decaying, symmetric, unit_vectors

from mopn.solvers.sphere import DenseStack, enumerate_signs
from mopn.solvers.sphere.biquadratic import Biquadratic
from mopn.solvers.sphere.boundary_point import Multipliers
from mopn.solvers.sphere.nested import _child, _few_steps, _Node, nest_and_bound
from mopn.solvers.tools.budgets import Budget


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
    assert found.last.features.shape[1] < 24
