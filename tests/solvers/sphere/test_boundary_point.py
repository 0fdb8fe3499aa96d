"""The least largest eigenvalue over multipliers: known optima, limits, starts."""

from itertools import chain, repeat
from unittest.mock import Mock, PropertyMock

import numpy as np
import pytest

from mopn.solvers.sphere import boundary_point
from mopn.solvers.sphere.boundary_point import Multipliers, step_work, tighten
from mopn.solvers.tools.budgets import Budget


class Theta:
    """Lovasz's theta of a cycle: the least lambda_max(J + N) over N on its edges, n cos(pi/n) / (1 + cos(pi/n))."""

    def __init__(self, n):
        self.matrix = np.ones((n, n))
        self.edges = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) % (n - 2) == 1

    def project(self, V):
        return np.where(self.edges, V, 0.0)

    def bound(self, form, top, N):
        assert np.array_equal(form, self.matrix + N)
        return top


@pytest.mark.parametrize("n", [5, 7, 11])
def test_theta_of_odd_cycles(n):
    exact = n * np.cos(np.pi / n) / (1 + np.cos(np.pi / n))
    found = tighten(Theta(n), Multipliers.none(n), exact * (1 + 1e-7), Budget(3000 * step_work(n)))
    assert exact * (1 - 1e-14) <= found.bound <= exact * (1 + 1e-7)
    assert found.bound == pytest.approx(np.linalg.eigvalsh(np.ones((n, n)) + found.N)[-1], rel=1e-14)
    # The pseudo-moments are feasible for the dual, and as good.
    assert np.trace(found.X) == pytest.approx(1.0, abs=1e-3)
    assert found.X.sum() == pytest.approx(exact, rel=1e-3)
    again = Budget()
    assert tighten(Theta(n), found, exact * (1 + 1e-7), again).bound == found.bound
    assert again.spent == 0.0


def test_a_failure_of_the_partial_solver_ends_nothing(monkeypatch):
    """LAPACK's solver for some eigenvalues ends in an "internal error" now and then."""
    monkeypatch.setattr(boundary_point, "eigh", Mock(side_effect=np.linalg.LinAlgError))
    target = np.sqrt(5) * (1 + 1e-7)
    assert tighten(Theta(5), Multipliers.none(5), target, Budget(3000 * step_work(5))).bound <= target


def test_out_of_time_it_takes_no_further_step(monkeypatch):
    monkeypatch.setattr(Budget, "out_of_time", PropertyMock(side_effect=chain([False] * 3, repeat(True))))
    theta = Mock(wraps=Theta(5), matrix=np.ones((5, 5)))
    tighten(theta, Multipliers.none(5), 0.0, Budget())
    assert theta.project.call_count < 10


def test_it_ends_where_the_target_is_out_of_reach():
    spent = Budget()
    found = tighten(Theta(5), Multipliers.none(5), 0.9 * np.sqrt(5), spent)
    assert found.bound == pytest.approx(np.sqrt(5), rel=1e-3)
    assert spent.spent < 3000 * step_work(5)
