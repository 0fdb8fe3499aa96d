"""The public maximum: known maxima of tensors, any scale and limit, and what it refuses."""

import numpy as np
import pytest
from stacks import best_of_many, symmetric

from mopn.solvers.sphere import dense_search, enumerate_signs, maximise
from mopn.solvers.sphere.boundary_point import step_work
from mopn.solvers.sphere.stack import DenseStack

# The state of three qubits W, and GHZ; and, beside it, one of three levels.
W = np.array([[[0, 1], [1, 0]], [[1, 0], [0, 0]]]) / np.sqrt(3)
GHZ = np.array([np.diag([1, 0]), np.diag([0, 1])]) / np.sqrt(2)
THREE = np.array([np.diag(e) for e in np.eye(3)]) / np.sqrt(3)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize(("state", "norm"), [(W, 2 / 3), (GHZ, 2**-0.5), (THREE, 3**-0.5)])
def test_injective_norms_of_states(state, norm, scale):
    found = maximise(scale * state, 2, 1e-6)
    assert found.value / scale == pytest.approx(norm, rel=1e-6)
    assert norm <= found.bound / scale <= 1.000002 * norm
    assert np.linalg.norm(np.einsum("cij,i,j", state, found.h, found.h)) == pytest.approx(found.value / scale)


@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("max_time", [1e-9, np.inf])
def test_the_maximum_is_between_value_and_bound(p, max_time):
    rng = np.random.default_rng(0)
    A = symmetric(rng.standard_normal((3, 28, 28)))
    value, bound = maximise(A, p, 1e-3, max_time)[1:]
    best = best_of_many(A, p, rng, starts=50)
    assert value <= best * (1 + 1e-5)
    assert best <= bound
    assert max_time < 1 or bound <= 1.001 * value
    if p == 1:
        assert value <= enumerate_signs(DenseStack(A))[1] * (1 + 1e-12)


def test_a_search_that_has_spent_its_work_is_continued(monkeypatch):
    monkeypatch.setattr(dense_search, "_WORK", 80 * step_work(36))
    A = symmetric(np.random.default_rng(3).standard_normal((4, 8, 8)))
    value, bound = maximise(A, 2, 1e-4)[1:]
    assert best_of_many(A, 2, np.random.default_rng(0), starts=50) <= bound <= 1.0001 * value


def test_signs_of_many_outputs_that_are_soon_decided_need_no_forms(monkeypatch):
    monkeypatch.setattr(dense_search, "nest_and_bound", None)
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((14, 6, 3))
    signs = rng.choice([-1.0, 1.0], (14, 1, 1))
    A = signs * (roots @ roots.swapaxes(1, 2)) + 0.3 * symmetric(rng.standard_normal((14, 6, 6)))
    value, bound = maximise(A, 1, 1e-4)[1:]
    assert enumerate_signs(DenseStack(A))[1] * (1 - 1e-12) <= bound <= 1.0001 * value


def test_no_matrix_but_zero():
    assert maximise(np.zeros((2, 3, 3)))[1:] == (0.0, 0.0)
