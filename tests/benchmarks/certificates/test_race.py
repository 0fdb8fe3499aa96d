"""The race: that both forms are one problem, how runs end, and the program on small problems."""

import numpy as np
import pytest

import mopn
from benchmarks.certificates.planted import planted
from benchmarks.certificates.semidefinite import solve, units

LOSSES = [("squared", 1, "squared"), ("squared", 2, "squared"), ("logistic", 1, "binary-logistic")]
LOSSES += [("logistic", 3, "logistic")]


def test_units_of_matrices_have_their_outputs_and_nuclear_norms():
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((3, 4, 4))
    matrices += matrices.transpose(0, 2, 1)
    basis, weights = units(matrices)
    rows = rng.standard_normal((5, 4))
    np.testing.assert_allclose((rows @ basis.T) ** 2 @ weights, np.einsum("ni,cij,nj->nc", rows, matrices, rows))
    np.testing.assert_allclose(np.abs(weights).sum(), np.abs(np.linalg.eigvalsh(matrices)).sum())


@pytest.mark.parametrize(("loss", "m", "name"), LOSSES)
@pytest.mark.parametrize("solver", ["clarabel", "scs"])
def test_the_program_has_the_minimum_of_the_problem(loss, m, name, solver):
    pytest.importorskip("cvxpy")
    pytest.importorskip(solver)
    made = planted(loss, 60, 3, m, 0.1)
    assert made.loss == made.problem.losses.loss.name == name
    assert made.targets.shape == (60, m)
    found = solve(made, solver, 1e-7, 10.0)
    certified = mopn.certify(made.problem, *units(found.matrices), "exact")
    assert 0 <= certified.gap <= 1e-4 * certified.fun
