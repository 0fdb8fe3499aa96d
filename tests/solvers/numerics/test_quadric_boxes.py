"""Boxes in which quadratics stay positive, against their values on grids, and diagonals against all signs."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st
from properties import generators, tried

from mopn.solvers.numerics.quadric_boxes import box_crossings, box_radii, convex_diagonal, ray_crossings

# Public callers ignore floating-point errors.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EVERYTHING = np.full(6, np.inf)


def symmetric(rng, d):
    factors = rng.standard_normal((d, d))
    return factors * rng.standard_normal(d) @ factors.T


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
    radii, _ = box_radii(A, convex_diagonal(A), slopes, margins, np.zeros((6, 3)), EVERYTHING)
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
    for seed in range(100):
        rng = np.random.default_rng(seed)
        A, slopes, margins = symmetric(rng, 3), rng.standard_normal((6, 3)), 10.0 ** rng.uniform(-2, 2, 6)
        radii, _ = box_radii(A, convex_diagonal(A), slopes, margins, np.zeros((6, 3)), EVERYTHING)
        reached, _ = box_crossings(A, slopes, margins)
        ratios += list((radii / reached)[np.isfinite(reached)])
    assert np.median(ratios) > 0.8


def test_concave_functions_of_one_sign_are_exact():
    """A <= 0 entry by entry and b <= 0: the corner (1, ..., 1) is the lowest."""
    A, b = -np.array([[1.0, 0.5], [0.5, 2.0]]), np.array([[-1.0, -1.0]])
    args = A, b, np.array([6.0])
    np.testing.assert_allclose(box_crossings(*args)[0], 1.0)
    found, _ = box_radii(A, convex_diagonal(A), *args[1:], np.zeros((1, 3)), EVERYTHING[:1])
    np.testing.assert_allclose(found, 1.0, rtol=1e-6)


def test_convex_functions_are_exact_where_the_nearest_zero_is_no_corner():
    """The disc of radius 1 around (0, 3) meets the square around 0 first at (0, 2), in the middle of an edge."""
    args = np.eye(2), np.array([[0.0, -6.0]]), np.array([8.0])
    (radius,), ends = box_radii(args[0], np.zeros(2), *args[1:], np.zeros((1, 3)), EVERYTHING[:1])
    assert radius == pytest.approx(2.0, rel=1e-6)
    reached, point = ray_crossings(*args, ends)
    np.testing.assert_allclose(reached, 2.0, rtol=1e-3)
    np.testing.assert_allclose(point, [[0.0, 2.0]], atol=1e-2)


def test_errors_count_in_terms_of_lengths():
    """A line in 4 features with errors: c - e_0 = (||b||_1 + 2 e_1) r + 4 e_2 r^2, as corners have the length 2r."""
    zero, b = np.zeros((4, 4)), np.ones((1, 4))
    (radius,), _ = box_radii(zero, np.zeros(4), b, np.array([5.0]), np.array([[0.5, 1.0, 0.25]]), EVERYTHING[:1])
    assert 4.5 - 6.0 * radius - radius**2 == pytest.approx(0.0, abs=1e-9)
    assert box_radii(zero, np.zeros(4), b, np.array([0.1]), np.array([[0.5, 1.0, 0.25]]), EVERYTHING[:1])[0] == 0


def test_radii_that_suffice_are_not_improved():
    rng = np.random.default_rng(0)
    A, slopes, margins, exact = symmetric(rng, 5), rng.standard_normal((6, 5)), np.ones(6), np.zeros((6, 3))
    D = convex_diagonal(A)
    best, _ = box_radii(A, D, slopes, margins, exact, EVERYTHING)
    quick, _ = box_radii(A, D, slopes, margins, exact, np.zeros(6))
    assert (quick < best).all()
    np.testing.assert_array_equal(box_radii(A, D, slopes, margins, exact, quick)[0], quick)


def test_functions_without_a_zero():
    A, b = np.eye(3), np.ones((1, 3))
    assert box_radii(A, convex_diagonal(A), b, np.array([10.0]), np.zeros((1, 3)), EVERYTHING[:1])[0] > 1e3
    radii, corners = box_crossings(A, b, np.array([10.0]))
    assert radii == np.inf
    assert np.isnan(corners).all()
    assert box_radii(0 * A, np.zeros(3), 0 * b, np.ones(1), np.zeros((1, 3)), EVERYTHING[:1])[0] == np.inf
