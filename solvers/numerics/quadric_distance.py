"""Distances to quadrics, proven: balls and boxes in which quadratic functions of a common matrix stay positive.

min ||u||^2 subject to g(u) = c + <b, u> + u'Au <= 0 is a trust-region problem, convex or not: its dual has one
multiplier, and no gap. Any multiplier proves a bound.
"""

from typing import NamedTuple

import numpy as np

from mopn.solvers.numerics.precision import EPS, TINY
from mopn.solvers.sphere import power_of_two
from mopn.solvers.sphere.stack import far_from_orthonormal

# Steps of projected gradients for the diagonal; one diagonal serves all functions of a matrix.
_DIAGONAL_STEPS = 200
# Steps of accelerated projected gradients for radii; each step is a proof of its own.
_DUAL_STEPS = 60
# Steps from corner to corner of a box; they only look for zeros.
_CROSSING_STEPS = 10
# Binary logarithm of the smallest distance of a multiplier from the least one, where slopes and curvatures are about 1.
_MIN_LOG_DISTANCE = -50
# Binary logarithm of the largest distance; beyond it no multiplier is the best.
_MAX_LOG_DISTANCE = 3
# Halvings of the range of these logarithms, to a relative error of 1e-7.
_HALVINGS = 30


class Spectrum(NamedTuple):
    """A = U diag(a) U' up to ``error``, for an orthonormal U no farther than ``slack`` from ``vectors``."""

    values: np.ndarray
    vectors: np.ndarray
    error: float
    slack: float


def spectrum(matrix: np.ndarray) -> Spectrum:
    """Return the spectral decomposition of a symmetric matrix (d, d), with proven errors: inf after an overflow."""
    d = len(matrix)
    if not np.isfinite(matrix).all():
        return Spectrum(np.zeros(d), np.eye(d), np.inf, 0.0)
    unit = power_of_two(float(np.abs(matrix).max(initial=0.0)))  # squares of its entries neither over- nor underflow
    matrix = matrix / unit
    values, vectors = np.linalg.eigh(matrix)
    residual = float(np.linalg.norm(matrix - (vectors * values) @ vectors.T))
    largest = float(np.abs(values).max(initial=0.0))
    slack = far_from_orthonormal(vectors)
    # Rounding in the product and in the difference, and the step from the computed vectors to U.
    rounding = 2 * d * (d + 4) * EPS * (largest + residual)
    error = (residual + rounding + 3.0 * slack * largest) * unit
    return Spectrum(values * unit, vectors, error, slack)


def ball_radii(
    of: Spectrum, slopes: np.ndarray, margins: np.ndarray, errors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return proven radii (n,) of balls in which functions are positive, and points (n, d) near them that are zeros.

    Function i is g(u) = c_i + <b_i, u> + u'Au up to e_0 + e_1 ||u|| + e_2 ||u||^2, for the spectrum of A, slopes b
    (n, d), margins c (n,) and errors e (n, 3). Radii are 0 if nothing is proven, and inf for positive constants; points
    are zeros up to rounding, hardly farther away, or NaN.

    Where I mu + A is positive definite, mu ||u||^2 + g(u) >= c - b'(mu I + A)^{-1} b / 4 =: psi, hence
    g(u) >= psi - mu r^2 for all ||u|| <= r. Conn, Gould and Toint, Trust-Region Methods (2000), section 7.3, has the
    secular equation and its hard case.
    """
    d = len(of.values)
    sizes = np.maximum(np.abs(slopes).max(axis=1, initial=0.0), TINY)
    lengths = np.linalg.norm(slopes / sizes[:, None], axis=1) * sizes
    largest = np.abs(of.values).max(initial=0.0)
    # In other units: 1 + <b, u> + u' diag(a) u with ||b|| and |a| at most 1, so that the radius is 0.6 at least.
    units = positive_root(largest, lengths, margins)
    units[~np.isfinite(units)] = 1.0
    b = (slopes @ of.vectors) * (units / margins)[:, None]
    a = np.outer(units * units / margins, of.values)
    powers = units[:, None] ** np.arange(3) / margins[:, None]
    e0, e1, e2 = (errors * powers * (1.0 + 8 * EPS)).T
    e1 = e1 + (of.slack + (d**1.5 + 8) * EPS) * lengths * powers[:, 1]
    e2 = e2 + (of.error + 8 * EPS * largest) * powers[:, 2]

    best, points = _best_multipliers(a, b)
    least = np.maximum(-a.min(axis=1, initial=0.0), 0.0)
    radii = np.zeros(len(b))
    # Where g touches 0 without a change of sign, the best multiplier makes psi smaller than its rounding errors.
    others = [least + 2.0**log_distance for log_distance in range(_MIN_LOG_DISTANCE, _MAX_LOG_DISTANCE + 1)]
    for mu in [best, *others]:
        dropped = 0.25 * np.einsum("ij,ij->i", b, b / (mu[:, None] + a))
        psi = 1.0 - dropped - (d + 8) * EPS * (1.0 + dropped)
        proven = positive_root(mu + e2, e1, psi - e0) * units * (1.0 - 16 * EPS)
        radii = np.fmax(radii, proven)

    constant = (lengths == 0.0) & (largest == 0.0) & (e1 == 0.0) & (e2 == 0.0)
    radii[constant & (margins > errors[:, 0])] = np.inf
    radii = np.where((margins > 0.0) & (radii > 0.0), radii, 0.0)
    return radii, (points * units[:, None]) @ of.vectors.T


def positive_root(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the root of a t^2 + b t = c for numbers of at least 0; there is none, inf, if a = b = 0."""
    return 2.0 * c / (b + np.sqrt(b * b + 4.0 * a * c))


def _best_multipliers(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return multipliers mu (n,) near the best ones, and points where 1 + <b, u> + u' diag(a) u = 0.

    The value at u = -b / (2 (mu + a)) grows with mu, and is zero at the best one, unless it is positive for all.
    """
    least = np.maximum(-a.min(axis=1, initial=0.0), 0.0)
    low = np.full(len(a), float(_MIN_LOG_DISTANCE))
    high = np.full(len(a), float(_MAX_LOG_DISTANCE))
    squares = b * b
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        mu = (least + np.exp2(middle))[:, None]
        inverse = 1.0 / (mu + a)
        inside = 0.25 * np.einsum("ij,ij->i", squares, inverse * (1.0 + mu * inverse)) <= 1.0
        high = np.where(inside, middle, high)
        low = np.where(inside, low, middle)
    mu = least + np.exp2(0.5 * (low + high))
    return mu, _zeros(a, b, -0.5 * b / (mu[:, None] + a))


def _zeros(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return zeros of 1 + <b, u> + u' diag(a) u: the nearer one along u, or along an eigenvector from u."""
    p = np.einsum("ij,ij->i", b, u)
    q = np.einsum("ij,ij,ij->i", a, u, u)
    t = 2.0 / (np.sqrt(p * p - 4.0 * q) - p)
    along = np.where(t > 0.0, t, np.nan)[:, None] * u

    rows = np.arange(len(a))
    least = a.argmin(axis=1)
    a_least = a[rows, least]
    u_least = u[rows, least]
    slope = b[rows, least] + 2.0 * a_least * u_least
    value = 1.0 + p + q
    half = -0.5 * (slope + np.copysign(np.sqrt(slope * slope - 4.0 * a_least * value), slope))
    ends = u_least + np.stack([value / half, half / a_least])
    aside = u.copy()
    aside[rows, least] = np.where(np.abs(ends[1]) < np.abs(ends[0]), ends[1], ends[0])

    distances = np.nan_to_num(np.linalg.norm(along, axis=1), nan=np.inf)
    aside_is_nearer = np.linalg.norm(aside, axis=1) < distances
    return np.where(aside_is_nearer[:, None], aside, along)


def convex_diagonal(matrix: np.ndarray) -> np.ndarray:
    """Return a diagonal D >= 0 (d,) with A + D positive semidefinite, proven; its sum is nearly the least.

    The dual, max -<A, VV'> over V with rows of length 1 at most, is solved by projected gradients with V of low rank
    (Burer and Monteiro, 2003). Its multipliers are shifted until they are proven.
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
    lacking = max(shifted.error + rounding - float(shifted.values.min(initial=0.0)), 0.0)
    return diagonal + lacking * (1.0 + 4 * EPS)


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
    slopes = slopes[left]
    margins = margins[left]
    errors = errors[left]
    v = last = ends[left]
    for k in range(_DUAL_STEPS):
        proven, gradients = _dual_radii(P, trace, v, slopes, margins, errors)
        radii[left] = np.maximum(radii[left], proven)
        edge = radii[left, None]
        moved = np.clip(v - step * gradients, -edge, edge)
        v = moved + k / (k + 3.0) * (moved - last)
        last = moved
    ends[left] = last
    return radii, ends


def _dual_radii(
    P: np.ndarray, trace: float, v: np.ndarray, slopes: np.ndarray, margins: np.ndarray, errors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the radii (n,) that points v (n, d) prove, 0 if none, and the gradients b + 2Pv (n, d)."""
    d = len(P)
    e0, e1, e2 = errors.T
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
    best = np.full(len(margins), np.inf)
    corners = np.full_like(slopes, np.nan)
    signs = -np.sign(slopes)
    for _ in range(_CROSSING_STEPS):
        radii, ends = ray_crossings(matrix, slopes, margins, signs)
        better = radii < best
        best = np.where(better, radii, best)
        corners = np.where(better[:, None], ends, corners)
        # Without a zero on the ray, take the gradient where a linear function would have one.
        linear_ends = signs * (margins / np.abs(slopes).sum(axis=1))[:, None]
        ends = np.where(np.isfinite(ends), ends, linear_ends)
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
