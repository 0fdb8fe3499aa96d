"""Symmetric powers: lengths, values, symmetric parts, and forms of the next degree, against plain tensors."""

import itertools
import math

import numpy as np
import pytest

from mopn.solvers.sphere.lifting import lifting

SIZES = [(1, 2), (1, 3), (4, 2), (4, 3), (3, 4), (2, 5)]
every_size = pytest.mark.parametrize(("d", "degree"), SIZES)


def tensor_basis(d, degree):
    """The scaled monomials as orthonormal symmetric tensors (D, d^k), in lexicographic order."""
    rows = []
    for monomial in itertools.combinations_with_replacement(range(d), degree):
        tensor = np.zeros((d,) * degree)
        for order in set(itertools.permutations(monomial)):
            tensor[order] = 1.0
        rows.append(tensor.ravel() / np.linalg.norm(tensor))
    return np.array(rows)


def random_form(lift, rng):
    form = rng.standard_normal((lift.dimension, lift.dimension))
    return form + form.T


@every_size
def test_powers_are_the_coordinates_of_tensors(d, degree):
    h = np.random.default_rng(0).standard_normal(d)
    tensor = h
    for _ in range(degree - 1):
        tensor = np.multiply.outer(tensor, h).ravel()
    lift = lifting(d, degree)
    (z,) = lift.powers(h[None])
    assert lift.dimension == math.comb(d + degree - 1, degree)
    np.testing.assert_allclose(z, tensor_basis(d, degree) @ tensor, rtol=1e-12)
    assert np.linalg.norm(z) == pytest.approx(np.linalg.norm(h) ** degree, rel=1e-12)
    rest = lifting(d, degree - 1).powers(h[None])
    np.testing.assert_allclose(lift.unfolded(z[None])[0], np.outer(h, rest), rtol=1e-12)


@every_size
def test_the_symmetric_part_is_a_projection_that_keeps_values(d, degree):
    rng, lift = np.random.default_rng(1), lifting(d, degree)
    M, other, Z = random_form(lift, rng), random_form(lift, rng), lift.powers(rng.standard_normal((50, d)))
    N = lift.project(M)
    assert np.array_equal(N, N.T)
    scale = np.abs(M).max() * (Z**2).sum(axis=1)
    assert np.all(np.abs(np.einsum("ra,ab,rb->r", Z, N, Z)) <= 1e-13 * lift.dimension**2 * scale)
    np.testing.assert_allclose(lift.project(N), N, atol=1e-12)
    assert np.vdot(N, lift.symmetrised(other)) == pytest.approx(0.0, abs=1e-10)
    # Forms that vanish on powers are as many as there are entries more than monomials of twice the degree.
    D, monomials = lift.dimension, math.comb(d + 2 * degree - 1, 2 * degree)
    units = np.eye(D * D).reshape(-1, D, D)
    symmetric = 0.5 * (units + units.transpose(0, 2, 1))
    rank = np.linalg.matrix_rank(np.array([lift.project(unit).ravel() for unit in symmetric]))
    assert rank == D * (D + 1) // 2 - monomials


@every_size
def test_raised_forms_are_the_symmetric_part_of_the_form_beside_the_identity(d, degree):
    rng, lift = np.random.default_rng(2), lifting(d, degree + 1)
    form = random_form(lifting(d, degree), rng)
    below, above = tensor_basis(d, degree), tensor_basis(d, degree + 1)
    whole = np.kron(np.eye(d), below.T @ form @ below)
    raised = lift.raised(form)
    np.testing.assert_allclose(raised, above @ whole @ above.T, atol=1e-12)
    assert np.linalg.eigvalsh(raised)[-1] <= np.linalg.eigvalsh(form)[-1] + 1e-12
