"""The biquadratic form in output space: its values, its multipliers, and the matrix above the other directions."""

import itertools

import numpy as np
import pytest
from mpmath import mp, mpf
from stacks import STACKS, attained, best_of_many, decaying, every_kind, symmetric, unit_vectors, varied

from mopn.solvers.sphere.biquadratic import Biquadratic, rest_majorant

either_norm = pytest.mark.parametrize("p", [1, 2])


def outputs(rng, p, k, m):
    """Unit vectors of R^m, or vectors of signs."""
    return unit_vectors(rng, k, m) if p == 2 else rng.choice([-1.0, 1.0], (k, m))


def products(p, U, H):
    """The unit vectors (1, u) (x) h."""
    Y = np.hstack([np.ones((len(U), 1)), U]) / np.sqrt(2.0 if p == 2 else U.shape[1] + 1.0)
    return np.einsum("ki,kj->kij", Y, H).reshape(len(H), -1)


@either_norm
@varied()
def test_its_values_are_those_of_the_combinations(p, seed):
    """On all directions: h' A(u) h at every product, whatever multiplier is added; reach has the largest."""
    rng = np.random.default_rng(seed)
    A = symmetric(rng.standard_normal((3, 4, 4)))
    form = Biquadratic(A, 4, 1.0, np.zeros((0, 0)), p)
    U, H = outputs(rng, p, 50, 3), unit_vectors(rng, 50, 4)
    V = symmetric(rng.standard_normal((1, 16, 16)))[0]
    N, Z = form.project(V), products(p, U, H)
    expected = np.einsum("kc,ki,cij,kj->k", U, H, A, H)
    np.testing.assert_allclose(np.einsum("ka,ab,kb->k", Z, form.matrix + N, Z), expected, atol=1e-12)
    assert form.reach(H, U) == pytest.approx(expected.max(), rel=1e-12)
    # A projection, orthogonal to the remainder and to the identity.
    np.testing.assert_allclose(form.project(N), N, atol=1e-14)
    assert np.vdot(V - N, N) == pytest.approx(0.0, abs=1e-11)
    assert np.trace(N) == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.norm(N) > 1.0


@varied()
def test_its_values_with_some_signs_fixed(seed):
    rng = np.random.default_rng(seed)
    A = symmetric(decaying(rng, 4, 5, 0.5))
    form = Biquadratic(A, 3, 1e3, rest_majorant(A[:, 3:, 3:], 1), 1)
    E = np.array([[1.0, 0.0, -1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
    node, H = form.with_signs(E), unit_vectors(rng, 20, 3)
    z = np.hstack([np.ones((20, 1)), rng.choice([-1.0, 1.0], (20, 2))])
    X, Z = products(1, (z @ E)[:, 1:], H), products(1, z[:, 1:], H)
    expected = np.einsum("ka,ab,kb->k", X, form.matrix, X)
    N = node.project(symmetric(rng.standard_normal((1, 9, 9)))[0])
    np.testing.assert_allclose(np.einsum("ka,ab,kb->k", Z, node.matrix + N, Z), expected, rtol=1e-12)
    assert (node.matrix == node.matrix.T).all()
    assert (node.shape, form.shape) == ((3, 3), (5, 3))


@either_norm
@every_kind
@varied()
def test_the_matrix_above_the_other_directions(p, kind, seed):
    rng = np.random.default_rng(seed)
    A = symmetric(STACKS[kind](rng, 4, 5))
    R = rest_majorant(A, p)
    U = outputs(rng, p, 100, 4)
    lowest = np.linalg.eigvalsh(R - np.einsum("kc,cij->kij", U, A))[:, 0]
    assert lowest.min() >= 0.0


@either_norm
@varied()
def test_the_schur_complement_covers_the_other_directions(p, seed):
    """For t = lambda_max A(u) at some u, h' A(u) h is at most the value of the form on the leading directions."""
    rng = np.random.default_rng(seed)
    A = symmetric(decaying(rng, 3, 8, 0.5))
    basis = np.linalg.eigh(sum(B @ B for B in A))[1][:, ::-1]
    A = basis.T @ A @ basis
    (u,) = outputs(rng, p, 1, 3)
    values, vectors = np.linalg.eigh(np.einsum("c,cij->ij", u, A))
    t, h = values[-1], vectors[:, -1]
    R = rest_majorant(A[:, 4:, 4:], p)
    if np.linalg.eigvalsh(R)[-1] >= t:
        with pytest.raises(ValueError, match="above the largest eigenvalue"):
            Biquadratic(A, 4, t, R, p)
        return
    assert Biquadratic(A, 4, t, R, p).reach(h[None, :4] / np.linalg.norm(h[:4]), u[None]) >= t * (1 - 1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e140])
def test_a_bound_with_fixed_signs_covers_its_rounding(scale):
    """Against h'(sum_c s_c Gamma_c) h in forty digits: with all signs fixed there is nothing but rounding between."""
    rng = np.random.default_rng(9)
    A, rest = scale * symmetric(rng.standard_normal((30, 3, 3))), np.zeros((0, 0))
    A[1::2] = -A[::2] * (1.0 + 1e-15)
    E = np.ones((1, 31))
    node = Biquadratic(A, 3, 0.0, rest, 1).with_signs(E)
    values, vectors = np.linalg.eigh(node.matrix)
    with mp.workdps(40):
        h = [mpf(float(value)) for value in vectors[:, -1]]
        total = sum(mpf(float(A[c, a, b])) * h[a] * h[b] for c, a, b in np.ndindex(30, 3, 3))
        total /= sum(value * value for value in h)
        assert mpf(node.bound(node.matrix, float(values[-1]), np.zeros((3, 3)))) >= total


@either_norm
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e140])
def test_a_bound_covers_its_rounding(p, scale):
    """Against x'(M + N) x in forty digits, at the top eigenvector of the computed matrix; N nearly cancels M."""
    rng = np.random.default_rng(7)
    A = scale * symmetric(rng.standard_normal((2, 3, 3)))
    form = Biquadratic(A, 3, 0.0, np.zeros((0, 0)), p)
    N = form.project(-1e6 * scale * np.linalg.eigh(rng.standard_normal((9, 9)))[1])
    computed = form.matrix + N
    values, vectors = np.linalg.eigh(computed)
    with mp.workdps(40):
        x = [mpf(float(value)) for value in vectors[:, -1]]
        half = mpf(2 if p == 2 else 3) / 2
        total = mpf(0)
        for (i, a), (j, b) in itertools.product(itertools.product(range(3), range(3)), repeat=2):
            entry = mpf(float(N[3 * i + a, 3 * j + b]))
            if (i == 0) != (j == 0):
                entry += half * mpf(float(A[max(i, j) - 1, a, b]))
            total += x[3 * i + a] * entry * x[3 * j + b]
        total /= sum(value * value for value in x)
        assert mpf(form.bound(computed, float(values[-1]), N)) >= total


@either_norm
@every_kind
def test_a_multiplier_is_a_proof(p, kind):
    """Any multiplier, however large; for p = 1 the diagonal entries sum to zero only up to rounding."""
    rng = np.random.default_rng(8)
    A = symmetric(STACKS[kind](rng, 3, 3))
    value = max(best_of_many(A, p, rng, starts=30), attained(A, np.eye(3), p).max())
    form = Biquadratic(A, 3, 0.0, np.zeros((0, 0)), p)
    for size in (0.0, 1e-3, 1.0, 1e8):
        N = form.project(size * symmetric(rng.standard_normal((1, 12, 12)))[0])
        M = form.matrix + N
        assert form.bound(M, np.linalg.eigvalsh(M)[-1], N) >= value
