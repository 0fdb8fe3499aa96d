"""Boxes in which quadratic functions of a common matrix are positive, proven; and corners of boxes where they are not.

The minimum of c + <b, u> + u'Au over a box is NP-hard to find. A diagonal D that makes A + D positive semidefinite
bounds it by a convex problem over the same box, in which any point proves a bound.
"""

from __future__ import annotations

import numpy as np

from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.numerics.quadric_distance import positive_root, spectrum

# Steps of projected gradients for the diagonal, of accelerated ones for radii, and from corner to corner.
_DIAGONAL_STEPS, _DUAL_STEPS, _CROSSING_STEPS = 200, 60, 10


def convex_diagonal(matrix: np.ndarray) -> np.ndarray:
    """Return a diagonal D >= 0 (d,) with A + D positive semidefinite, proven; its sum is nearly the least.

    The dual, max -<A, VV'> over V with rows of length 1 at most, is solved by projected gradients with V of low rank
    (Burer and Monteiro, 2003), and its multipliers are shifted until they are proven.
    """
    d = len(matrix)
    of = spectrum(matrix)
    rank = min(d, 2 + int(np.sqrt(2.0 * d)))
    V = of.vectors[:, :rank] + 0.01 * np.random.default_rng(0).standard_normal((d, rank))
    steepest = max(float(of.values.max(initial=0.0)), -0.1 * float(of.values.min(initial=0.0)), TINY)
    for _ in range(_DIAGONAL_STEPS):
        V -= (matrix @ V) / steepest
        V /= np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1.0)
    diagonal = np.maximum(-np.einsum("ij,ij->i", V, matrix @ V), 0.0)
    shifted = spectrum(matrix + np.diag(diagonal))
    rounding = 2 * EPS * (diagonal.max(initial=0.0) + float(np.abs(np.diag(matrix)).max(initial=0.0)))
    return diagonal + max(shifted.error + rounding - float(shifted.values.min(initial=0.0)), 0.0) * (1.0 + 4 * EPS)


def box_radii(
    matrix: np.ndarray,
    diagonal: np.ndarray,
    slopes: np.ndarray,
    margins: np.ndarray,
    errors: np.ndarray,
    enough: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return proven radii (n,) of boxes ||u||_inf <= r in which functions are positive, and their likely minimisers.

    The functions c_i + <b_i, u> + u'Au have slopes, margins and errors as for ``ball_radii``, and ``diagonal`` is the
    :func:`convex_diagonal` of A; radii that are ``enough`` (n,) need not be exceeded. Radii are 0 if nothing is proven,
    and inf for positive constants; the minimisers (n, d) are 0 where the first radius is enough.

    With P = A + D and any v, u'Au >= u'Pu - r^2 tr D and <b, u> + u'Pu >= -v'Pv + <b + 2Pv, u> for ||u||_inf <= r, so
    g(u) >= c - v'Pv - r ||b + 2Pv||_1 - r^2 tr D. The v are iterates of accelerated projected gradients on the box.
    """
    P = matrix + np.diag(diagonal)
    trace = float(diagonal.sum()) * (1.0 + len(P) * EPS)
    step = 0.5 / max(float(spectrum(P).values.max(initial=0.0)), TINY)
    errors = errors * float(len(P)) ** (0.5 * np.arange(3)) * (1.0 + 8 * EPS)
    ends = np.zeros_like(slopes)
    radii, _ = _dual_radii(P, trace, ends, slopes, margins, errors)
    left = np.flatnonzero(radii < enough)
    slopes, margins, errors = slopes[left], margins[left], errors[left]
    v = last = ends[left]
    for k in range(_DUAL_STEPS):
        proven, gradients = _dual_radii(P, trace, v, slopes, margins, errors)
        radii[left] = np.maximum(radii[left], proven)
        edge = radii[left, None]
        moved = np.clip(v - step * gradients, -edge, edge)
        v, last = moved + k / (k + 3.0) * (moved - last), moved
    ends[left] = last
    return radii, ends


def _dual_radii(
    P: np.ndarray, trace: float, v: np.ndarray, slopes: np.ndarray, margins: np.ndarray, errors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the radii (n,) that points v (n, d) prove, 0 if none, and the gradients b + 2Pv (n, d)."""
    d, (e0, e1, e2) = len(P), errors.T
    products = v @ P
    gradients = slopes + 2.0 * products
    rounding = (2 * d + 16) * EPS * (np.abs(v) @ np.abs(P).sum(axis=0))
    lost = np.einsum("ij,ij->i", v, products) + rounding * np.abs(v).max(axis=1)
    falls = np.abs(gradients).sum(axis=1)
    falls += 2.0 * rounding + (d + 8) * EPS * (np.abs(slopes).sum(axis=1) + falls)
    radii = positive_root(trace + e2, e1 + falls, (1.0 - 8 * EPS) * margins - e0 - lost) * (1.0 - 16 * EPS)
    return np.where(radii > 0.0, radii, 0.0), gradients


def box_crossings(matrix: np.ndarray, slopes: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return radii (n,) of boxes with a corner where functions are zero, inf if none is found, and corners."""
    best, corners = np.full(len(margins), np.inf), np.full_like(slopes, np.nan)
    signs = -np.sign(slopes)
    for _ in range(_CROSSING_STEPS):
        radii, ends = ray_crossings(matrix, slopes, margins, signs)
        better = radii < best
        best, corners = np.where(better, radii, best), np.where(better[:, None], ends, corners)
        # Without a zero on the ray, the gradient where one might have been expected.
        ends = np.where(np.isfinite(ends), ends, signs * (margins / np.abs(slopes).sum(axis=1))[:, None])
        signs = -np.sign(slopes + 2.0 * ends @ matrix)
    return best, corners


def ray_crossings(
    matrix: np.ndarray, slopes: np.ndarray, margins: np.ndarray, directions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest moduli (n,) of the first zeros along directions, inf if there are none, and these (n, d)."""
    slope = np.einsum("ij,ij->i", slopes, directions)
    curvature = np.einsum("ij,ij->i", directions @ matrix, directions)
    t = 2.0 * margins / (np.sqrt(slope * slope - 4.0 * margins * curvature) - slope)
    ends = np.where(t > 0.0, t, np.nan)[:, None] * directions
    radii = np.abs(ends).max(axis=1)
    return np.where(np.isnan(radii), np.inf, radii), ends
