"""Balls and boxes in which quadratics stay positive, against stationary points, grids and cases in closed form."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st
from properties import generators, tried

from mopn.solvers.numerics.quadric_distance import (
    ball_radii,
    box_crossings,
    box_radii,
    convex_diagonal,
    ray_crossings,
    spectrum,
)

# Public callers ignore floating-point errors.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EXACT = np.zeros((1, 3))


def symmetric(rng, d, rank=None):
    """A random symmetric matrix (d, d), indefinite as a rule."""
    factors = rng.standard_normal((d, d if rank is None else rank))
    return factors * rng.standard_normal(factors.shape[1]) @ factors.T


def nearest_zero(A, b, c):
    """The least length of u with c + <b, u> + u'Au = 0 among all stationary points, roots of a polynomial."""
    a, vectors = np.linalg.eigh(A)
    b = vectors.T @ b
    poles = [np.polynomial.Polynomial([x, 1.0]) for x in a]
    squares = np.prod([pole * pole for pole in poles])
    # c - sum_i b_i^2 (2 mu + a_i) / (4 (mu + a_i)^2), times all denominators.
    others = [np.prod([pole * pole for j, pole in enumerate(poles) if j != i] or [1.0]) for i in range(len(a))]
    rest = [np.polynomial.Polynomial([x, 2.0]) * bi * bi / 4 * other for bi, x, other in zip(b, a, others, strict=True)]
    roots = (c * squares - sum(rest)).roots()
    mu = roots[np.abs(roots.imag) < 1e-7 * (1 + np.abs(roots))].real
    lengths = np.linalg.norm(0.5 * b / (mu[:, None] + a), axis=1)
    return lengths.min(initial=np.inf)


@tried(100, rng=generators, d=st.integers(1, 3))
def test_the_radius_is_the_distance_to_the_nearest_zero(rng, d):
    A, slopes, margins = symmetric(rng, d), rng.standard_normal((5, d)), 10.0 ** rng.uniform(-2, 2, 5)
    radii, points = ball_radii(spectrum(A), slopes, margins, np.zeros((5, 3)))
    for b, c, radius, u in zip(slopes, margins, radii, points, strict=True):
        expected = nearest_zero(A, b, c)
        assert radius <= expected * (1 + 1e-7)
        if np.isfinite(expected):
            assert radius >= expected * (1 - 1e-6)
            assert abs(c + b @ u + u @ A @ u) <= 1e-9 * (c + abs(b @ u) + abs(u @ A @ u))
            np.testing.assert_allclose(np.linalg.norm(u), expected, rtol=1e-6)


@tried(50, rng=generators, d=st.integers(2, 6))
def test_the_hard_case_and_nearly_hard_ones(rng, d):
    """The slope has no part, or hardly any, along the eigenvectors of the least eigenvalue, which is double."""
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = np.r_[-1.0, -1.0, rng.uniform(-0.5, 1.0, d - 2)]
    b = np.r_[0.0, rng.choice([0.0, 1e-300, 1e-17, 1e-12, 1e-8, 1e-4]), 0.1 * rng.standard_normal(d - 2)]
    radii, points = ball_radii(spectrum(basis * values @ basis.T), (basis @ b)[None], np.ones(1), EXACT)
    # At mu = 1 the bound of the dual is 1 - sum b_i^2 / (4 (1 + a_i)), over mu.
    expected = np.sqrt(1 - np.sum(b[2:] ** 2 / (4 * (1 + values[2:]))))
    np.testing.assert_allclose(radii, expected, atol=2 * b[1] + 1e-9)
    np.testing.assert_allclose(np.linalg.norm(points), radii[0], rtol=1e-6)


def test_errors_count_in_full():
    """For A = -a I the worst function within the errors is c - e_0 - (||b|| + e_1) r - (a + e_2) r^2."""
    b, errors = np.array([[3.0, 4.0]]), np.array([[5e-5, 2e-4, 1e-4]])
    (radius,), _ = ball_radii(spectrum(-2.0 * np.eye(2)), b, np.array([5.0]), errors)
    assert 0 <= 5.0 - 5e-5 - 5.0002 * radius - 2.0001 * radius**2 < 1e-7
    assert ball_radii(spectrum(np.eye(2)), b, np.array([5e-5]), errors)[0] == 0
    assert ball_radii(spectrum(np.zeros((2, 2))), 0 * b, np.array([0.5]), np.array([[0.6, 0.0, 0.0]]))[0] == 0


def test_functions_without_a_zero():
    constant, _ = ball_radii(spectrum(np.zeros((2, 2))), np.zeros((1, 2)), np.ones(1), EXACT)
    assert constant == np.inf
    above, points = ball_radii(spectrum(np.eye(2)), np.ones((1, 2)), np.ones(1), EXACT)
    assert above > 1e5
    assert np.isnan(points).all()
    negative, _ = ball_radii(spectrum(np.eye(2)), np.ones((1, 2)), -np.ones(1), EXACT)
    assert negative == 0


@tried(30, rng=generators, d=st.integers(1, 20), digits=st.integers(-150, 150))
def test_decompositions_err_no_more_than_they_say(rng, d, digits):
    A = symmetric(rng, d, rng.integers(0, d + 1)) * 10.0**digits
    found = spectrum(A)
    U = found.vectors.astype(np.longdouble)
    left = (A - (U * found.values) @ U.T) / 10.0**digits
    assert np.linalg.norm(left.astype(float), 2) <= found.error / 10.0**digits
    assert np.linalg.norm((U.T @ U - np.eye(d)).astype(float), 2) <= found.slack
    assert found.error <= 1e-11 * d * np.abs(found.values).max(initial=0.0)


# -- boxes ------------------------------------------------------------------------------------------------------------


def boxes(A, slopes, margins, errors=(0.0, 0.0, 0.0), enough=np.inf):
    """Radii of boxes in which functions of one matrix are positive, and where they end."""
    n = len(margins)
    return box_radii(A, convex_diagonal(A), slopes, margins, np.tile(errors, (n, 1)), np.broadcast_to(enough, n))


@tried(50, rng=generators, d=st.integers(1, 5), digits=st.integers(-150, 150))
def test_the_diagonal_makes_the_matrix_convex_with_nearly_the_least_sum(rng, d, digits):
    A = symmetric(rng, d) * 10.0**digits
    D = convex_diagonal(A)
    assert (D >= 0).all()
    assert np.linalg.eigvalsh(A + np.diag(D)).min() >= -1e-13 * np.abs(A).sum()
    box = np.array(list(itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=d)))
    lowest = -np.einsum("ni,ij,nj->n", box, A, box).min()
    assert lowest * (1 - 1e-12) <= D.sum() <= 1.6 * lowest + 1e-3 * np.abs(A).sum()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_diagonals_of_definite_matrices(sign):
    A = sign * np.array([[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(convex_diagonal(A), 0.0 if sign > 0 else 3.0, atol=1e-12)


@tried(60, rng=generators, d=st.integers(1, 3))
def test_radii_and_crossings_bracket_the_truth(rng, d):
    A, slopes, margins = symmetric(rng, d), rng.standard_normal((6, d)), 10.0 ** rng.uniform(-2, 2, 6)
    radii, _ = boxes(A, slopes, margins)
    reached, corners = box_crossings(A, slopes, margins)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * d), axis=-1).reshape(-1, d)
    for b, c, radius, far, corner in zip(slopes, margins, radii, reached, corners, strict=True):
        assert 0 < radius <= far
        points = min(radius, 1e6) * (1 - 1e-12) * grid
        assert (c + points @ b + np.einsum("ni,ij,nj->n", points, A, points)).min() > 0
        if np.isfinite(far):
            assert np.abs(corner).max() == pytest.approx(far)
            assert abs(c + corner @ b + corner @ A @ corner) <= 1e-9 * (c + np.abs(corner * b).sum())


def test_radii_are_mostly_near_crossings():
    """A convex relaxation may be loose, and a crossing far from the nearest one: not so in the most cases."""
    ratios = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A, slopes, margins = symmetric(rng, 3), rng.standard_normal((6, 3)), 10.0 ** rng.uniform(-2, 2, 6)
        reached, _ = box_crossings(A, slopes, margins)
        ratios += list((boxes(A, slopes, margins)[0] / reached)[np.isfinite(reached)])
    assert np.median(ratios) > 0.8


def test_concave_functions_of_one_sign_are_exact():
    """A <= 0 entry by entry and b <= 0: the corner (1, ..., 1) is the lowest."""
    args = -np.array([[1.0, 0.5], [0.5, 2.0]]), np.array([[-1.0, -1.0]]), np.array([6.0])
    np.testing.assert_allclose(box_crossings(*args)[0], 1.0)
    np.testing.assert_allclose(boxes(*args)[0], 1.0, rtol=1e-6)


def test_convex_functions_are_exact_where_the_nearest_zero_is_no_corner():
    """The disc of radius 1 around (0, 3) meets the square around 0 first at (0, 2), in the middle of an edge."""
    args = np.eye(2), np.array([[0.0, -6.0]]), np.array([8.0])
    (radius,), ends = boxes(*args)
    assert radius == pytest.approx(2.0, rel=1e-6)
    reached, point = ray_crossings(*args, ends)
    np.testing.assert_allclose(reached, 2.0, rtol=1e-3)
    np.testing.assert_allclose(point, [[0.0, 2.0]], atol=1e-2)


def test_errors_count_in_terms_of_lengths():
    """A line in 4 features with errors: c - e_0 = (||b||_1 + 2 e_1) r + 4 e_2 r^2, as corners have the length 2r."""
    zero, b, errors = np.zeros((4, 4)), np.ones((1, 4)), (0.5, 1.0, 0.25)
    (radius,), _ = boxes(zero, b, np.array([5.0]), errors)
    assert 4.5 - 6.0 * radius - radius**2 == pytest.approx(0.0, abs=1e-9)
    assert boxes(zero, b, np.array([0.1]), errors)[0] == 0


def test_radii_that_suffice_are_not_improved():
    rng = np.random.default_rng(0)
    problem = symmetric(rng, 5), rng.standard_normal((6, 5)), np.ones(6)
    quick = boxes(*problem, enough=0.0)[0]
    assert (quick < boxes(*problem)[0]).all()
    np.testing.assert_array_equal(boxes(*problem, enough=quick)[0], quick)


def test_boxes_of_functions_without_a_zero():
    A, b, c = np.eye(3), np.ones((1, 3)), np.array([10.0])
    assert boxes(A, b, c)[0] > 1e3
    radii, corners = box_crossings(A, b, c)
    assert radii == np.inf
    assert np.isnan(corners).all()
    assert boxes(0 * A, 0 * b, c)[0] == np.inf
