"""Cones of directions of the outputs: the bound on one, and the maximum for few outputs by eigenvalues."""

import numpy as np
import pytest
from stacks import unit_vectors

from mopn.solvers.sphere import DenseStack, maximise
from mopn.solvers.sphere import cones as cones_module
from mopn.solvers.sphere.cones import _bound_on_cone, bound_by_eigenvalues
from mopn.solvers.tools.budgets import Budget


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("seed", range(10))
def test_the_bound_on_a_cone_is_the_largest_value_of_its_linear_function(m, seed):
    """Values that differ put the maximum of the linear function on all of the sphere outside the cone."""
    rng = np.random.default_rng(seed)
    cone = np.abs(rng.standard_normal((m, m))) + np.eye(m)
    cone /= np.linalg.norm(cone, axis=1, keepdims=True)
    values = rng.uniform(0.1, 1.0, m)
    # A grid of the cone: with exponents, it is fine near the faces too.
    a = rng.dirichlet(np.full(m, 0.3), 20_000)
    a = np.vstack([a, np.eye(m)])
    least = float(((a @ values) / np.linalg.norm(a @ cone, axis=1)).max())
    assert least <= _bound_on_cone(cone, values) <= least * (1 + 2e-2)


@pytest.mark.parametrize("width", [0.0, 1e-16, 1e-9, 1e-3])
def test_corners_that_nearly_coincide_bound_their_cone(width):
    cone = np.array([1.0, 0.0, 0.0]) + width * np.random.default_rng(0).standard_normal((3, 3))
    cone /= np.linalg.norm(cone, axis=1, keepdims=True)
    bound = _bound_on_cone(cone, np.array([1e-16, 3e-16, 2e-16]))
    assert 3e-16 <= bound <= 3e-16 * (1 + 10 * width + 1e-3)


def test_a_search_that_fails_leaves_a_bound(monkeypatch):
    """That of nonnegative weights may reach its limit of iterations."""

    def fails(A, b):
        raise RuntimeError("Maximum number of iterations reached.")

    cone, values = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([1.0, 1.0])
    exact = _bound_on_cone(cone, values)
    monkeypatch.setattr(cones_module, "nnls", fails)
    assert 1.0 < exact <= _bound_on_cone(cone, values) < np.inf


@pytest.mark.slow
def test_forms_prove_what_cones_leave_open():
    """All directions of the outputs are alike: the antisymmetric tensor of three indices, whose norm is 1/sqrt(6)."""
    T = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        T[i, j, k], T[j, i, k] = 1.0, -1.0
    matrices = np.zeros((3, 6, 6))
    matrices[:, :3, 3:] = T.transpose(2, 0, 1)
    matrices += matrices.transpose(0, 2, 1)
    stack, scale = DenseStack(matrices).scaled()
    cones = bound_by_eigenvalues(stack, unit_vectors(np.random.default_rng(0), 1, 6), 1e-6, Budget())[1] * scale
    assert 1.0 + 1e-6 < cones < 1.1
    found = maximise(matrices, tol=1e-6)
    assert 1.0 <= found.bound <= 1.0 + 2e-6
