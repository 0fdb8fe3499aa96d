"""Certified radii: how far the features of a row may change, together, while the predicted class provably stays.

Each pair of classes is a quadric, where the outputs of both are equal; docs/mathematics.md, section 15. What is proven
holds for predictions as they are computed: rounding errors in the coefficients, and in the outputs at every point of
the ball, count against the radius.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import permutations
from typing import Any

import numpy as np

from mopn.data.cache import rows_at_once
from mopn.data.designs import DenseDesign, Design
from mopn.losses.namespaces import to_host
from mopn.models.fields import check_scale
from mopn.models.formula import Formula, Products, blocks
from mopn.models.games import dense_rows
from mopn.solvers.numerics.quadric_boxes import box_crossings, box_radii, convex_diagonal
from mopn.solvers.numerics.quadric_distance import ball_radii, spectrum
from mopn.solvers.sphere import power_of_two
from mopn.solvers.sphere.principal_directions import far_from_orthonormal
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.checks import check_flag, choice

__all__ = ["certified_radius"]

_EPS = float(np.finfo(float).eps)
# What products may lose where they underflow.
_UNDERFLOW = 1e-290
# How far beyond the boundary, relative to the way there, an attack may have to go until predictions change.
_BEYOND = 10.0 ** np.arange(-14.0, -1.0)


def certified_radius(
    model: Any, X: Any, norm: str, scale: Any, return_attack: bool
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Return what :meth:`mopn.Model.certified_radius` does, of a model."""
    search = _SEARCHES[choice(_SEARCHES)(norm, "norm")]
    check_flag(return_attack, "return_attack")
    contests = _contests(model)
    scale = np.ones(model.n_features) if scale is None else check_scale(scale, model.n_features)
    if (scale < 0.0).any():
        raise ValueError(f"scale must be >= 0, got {scale.min()}")
    design = model._design(X)
    model.outputs(X)  # refuses rows whose outputs overflow
    found, attacks = [], []
    with limited_threads(), np.errstate(all="ignore"):
        quadratics = Quadratics(model, scale, reduced=norm == "l2")
        rows = Rows.of(model, quadratics, design)
        for contest in contests:
            nearest = Nearest(quadratics, design.shape[0], return_attack)
            search(nearest, list(_meetings(quadratics, rows, contest)))
            found.append(nearest.radii * quadratics.unit)
            if nearest.steps is not None:
                attacks.append(_attack(model, quadratics, rows, contest, nearest.steps))
    if model.target == "labels":
        return (found[0], attacks[0]) if return_attack else found[0]
    radii = np.stack(found, axis=1)
    return (radii, np.stack(attacks, axis=1)) if return_attack else radii


def _contests(model: Any) -> list[np.ndarray]:
    """Return the outputs among which the largest wins, for each prediction; there is one more output, which is 0."""
    if model.encoding is not None:
        raise TypeError(
            "certified_radius measures changes of numbers, and the columns of a table may hold categories and gaps; "
            "ask the network of the features that they become: model.model, with rows model.encoding.encode(X)"
        )
    if model.target not in ("labels", "indicator"):
        raise TypeError(f"certified_radius needs a model that predicts classes, got one of target={model.target!r}")
    m = len(model._formula().constant)
    if m > 1 and model.target == "labels":
        return [np.arange(m)]
    return [np.array([m, c]) for c in range(m)]


def _with_zero(outputs: np.ndarray) -> np.ndarray:
    """Return outputs (n, m) and one more, which is 0."""
    return np.hstack([outputs, np.zeros((len(outputs), 1))])


# -- outputs as quadratics ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """Outputs c + W x + Q (x * x) + sum_r v_r (b_1r + <h_1r, x>) (b_2r + <h_2r, x>), and one more, which is 0.

    ``factors`` are (2, k, d), ``biases`` (2, k), and ``weights`` (k, m + 1).
    """

    constant: np.ndarray
    linear: np.ndarray
    squares: np.ndarray
    factors: np.ndarray
    biases: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, formula: Formula) -> Terms:
        """Return the terms of a formula; raise ``TypeError`` if there are products of more than two features."""
        d = formula.linear.shape[1]
        factors, biases = [np.zeros((2, 0, d))], [np.zeros((2, 0))]
        for term in formula.terms:
            if not isinstance(term, Products) or len(term.factors) * term.power > 2:
                raise TypeError("certified_radius needs outputs of degree 2 at most, got a model of higher degree")
            U, b = (np.repeat(part, term.power, axis=0) for part in (term.factors, term.biases))
            if len(U) == 1:
                U, b = np.concatenate([U, np.zeros_like(U)]), np.concatenate([b, np.ones_like(b)])
            factors.append(U)
            biases.append(b)
        weights = np.concatenate([np.zeros((0, len(formula.constant))), *(term.weights for term in formula.terms)])
        constant, linear, squares = (
            np.concatenate([part, np.zeros_like(part[:1])]) for part in (formula.constant, formula.linear, formula.squares)
        )
        return cls(
            constant, linear, squares, np.concatenate(factors, 1), np.concatenate(biases, 1), _with_zero(weights)
        )

    def forms(self, design: Design) -> np.ndarray:
        """Return b + <h, x> for both factors, shape (2, n, k)."""
        return np.stack([design.project(U) + b for U, b in zip(self.factors, self.biases, strict=True)])


class Quadratics:
    """Differences of outputs around rows x as quadratics: f(x + scale * B u) = f(x) + <slope, u> + u'Au.

    Attributes
    ----------
    unit : float
        The power of two, times the given scale, that ``scale`` is: with it the longest units are about 1.
    scale : ndarray of shape (d,)
    basis : ndarray of shape (d, r) or None
        B, orthonormal up to rounding, which spans all that the outputs depend on; None is the identity.
    """

    def __init__(self, model: Any, scale: np.ndarray, *, reduced: bool) -> None:
        parameters = _parameters(model)
        absolute = {name: np.abs(value) for name, value in parameters.items()}
        self.terms = Terms.of(model._formula())
        # Classes and targets play no part in outputs, and the moduli of classes are none.
        self.moduli = Terms.of(replace(model, **(absolute | {"classes": None, "target": None}))._formula())
        largest = max(np.abs(scale * part).max(initial=0.0) for part in (self.terms.factors, self.terms.linear))
        self.unit = 1.0 / power_of_two(float(largest))
        self.scale = scale * self.unit
        # No number is the result of more operations than this, one after the other; twice, for predictions elsewhere.
        self.rounding = 2 * (2 * max(sum(np.shape(value)) for value in parameters.values()) + 64) * _EPS
        self.basis: np.ndarray | None = None
        self.factors, self.linear = self.scale * self.terms.factors, self.scale * self.terms.linear
        if reduced and not self.terms.squares.any():
            self._reduce()

    def _reduce(self) -> None:
        """Change to coordinates of the span, if it is smaller than the space; what that loses is rounding."""
        first, second = self.factors
        bends = self.linear.any(axis=1)
        vectors = np.vstack([first, *([] if np.array_equal(first, second) else [second]), self.linear[bends]])
        if not 0 < len(vectors) < self.scale.size:
            return
        self.basis = np.linalg.qr(vectors.T)[0]
        coordinates = vectors @ self.basis
        lost, lengths = np.linalg.norm(vectors - coordinates @ self.basis.T, axis=1), np.linalg.norm(vectors, axis=1)
        relative = np.divide(lost, lengths, out=np.zeros_like(lost), where=lengths > 0.0).max()
        self.rounding += 4.0 * (relative + far_from_orthonormal(self.basis) + len(vectors) ** 1.5 * _EPS)
        units = coordinates[: len(vectors) - bends.sum()]
        self.factors = np.stack([units[: len(first)], units[-len(first) :]]) if len(first) else units[None].repeat(2, 0)
        self.linear = np.zeros((len(bends), len(vectors)))
        self.linear[bends] = coordinates[len(units) :]

    def matrix(self, p: int, e: int) -> np.ndarray:
        """Return A (r, r) of the output p minus the output e."""
        half = (self.factors[0].T * (self.terms.weights[:, p] - self.terms.weights[:, e])) @ self.factors[1]
        A = 0.5 * (half + half.T)
        if self.basis is None:
            A += np.diag(self.scale**2 * (self.terms.squares[p] - self.terms.squares[e]))
        return A

    def slopes(self, design: Design, p: int, e: int) -> np.ndarray:
        """Return the slopes (n, r) at the rows of a design."""
        weights = self.terms.weights[:, p] - self.terms.weights[:, e]
        first, second = self.terms.forms(design) * weights
        slopes = first @ self.factors[1] + second @ self.factors[0] + (self.linear[p] - self.linear[e])
        squares = self.terms.squares[p] - self.terms.squares[e]
        return slopes + 2.0 * dense_rows(design) * (squares * self.scale) if squares.any() else slopes

    def errors(self, design: Design) -> np.ndarray:
        """Return e (n, m + 1, 3): rounding changes outputs by e_0 + e_1 ||u|| + e_2 ||u||^2 at most.

        Polynomials, their coefficients and derivatives err, relative to their terms' moduli, by the number of operations.
        """
        terms = self.moduli
        # What pairs of dummies take away is part of constants, where it may have cancelled: twice their products.
        constant = np.abs(terms.constant) + 2.0 * terms.biases.prod(axis=0) @ terms.weights
        linear, squares = np.abs(terms.linear), np.abs(terms.squares)
        long1, long2 = lengths = np.linalg.norm(self.scale * terms.factors, axis=2)
        slopes, curvatures = np.linalg.norm(self.scale * linear, axis=1), (self.scale**2 * squares).max(axis=1)
        errors = np.empty((design.shape[0], len(constant), 3))
        for rows, block in blocks(design.absolute, lengths.size + constant.size):
            first, second = terms.forms(block)
            errors[rows, :, 0] = (first * second) @ terms.weights + block.project(linear)
            errors[rows, :, 0] += block.project_squares(squares) + constant
            errors[rows, :, 1] = (first * long2 + second * long1) @ terms.weights + slopes
            errors[rows, :, 1] += 2.0 * np.sqrt(block.project_squares((self.scale * squares) ** 2))
        errors[:, :, 2] = (long1 * long2) @ terms.weights + curvatures
        varies = terms.weights.any(axis=0) | linear.any(axis=1) | squares.any(axis=1)
        return self.rounding * errors + np.where(varies, _UNDERFLOW, 0.0)[:, None]


def _parameters(model: Any) -> dict[str, Any]:
    """Return the fields of a model that hold real numbers."""
    values = {field.name: getattr(model, field.name) for field in fields(model)}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    }


# -- the search for the nearest class ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Rows, with outputs (n, m + 1) and errors (n, m + 1, 3), as of :meth:`Quadratics.errors`."""

    design: Design
    outputs: np.ndarray
    errors: np.ndarray

    @classmethod
    def of(cls, model: Any, quadratics: Quadratics, design: Design) -> Rows:
        """Return the rows of a design."""
        return cls(design, _with_zero(model._outputs(design)), quadratics.errors(design))

    def winners(self, contest: np.ndarray) -> np.ndarray:
        """Return the output (n,) that is the largest among some, the first of those that are level."""
        return contest[self.outputs[:, contest].argmax(axis=1)]


class Nearest:
    """Of every row the radius that is proven, and the nearest point found at which the class changes.

    ``steps`` (n, d) lead there in the coordinates of :class:`Quadratics`, NaN if there is none; None if nobody asks.
    """

    def __init__(self, quadratics: Quadratics, n: int, keep_steps: bool) -> None:
        self.radii, self.distances = np.full(n, np.inf), np.full(n, np.inf)
        self.steps = np.full((n, quadratics.scale.size), np.nan) if keep_steps else None
        self.basis = quadratics.basis

    def prove(self, rows: np.ndarray, radii: np.ndarray) -> None:
        """Take note of radii in which one other class does not win."""
        self.radii[rows] = np.minimum(self.radii[rows], radii)

    def reach(self, rows: np.ndarray, distances: np.ndarray, steps: np.ndarray) -> None:
        """Take note of steps after which one other class is level."""
        closer = distances < self.distances[rows]
        self.distances[rows[closer]] = distances[closer]
        if self.steps is not None:
            self.steps[rows[closer]] = steps[closer] if self.basis is None else steps[closer] @ self.basis.T


class Meeting:
    """The rows in which one output wins against another; iterating yields blocks of them.

    A block is the indices of its rows, and their slopes, margins and errors.
    """

    def __init__(self, quadratics: Quadratics, rows: Rows, wins: np.ndarray, winner: int, loser: int) -> None:
        self.quadratics, self.rows, self.wins, self.pair = quadratics, rows, wins, (winner, loser)

    @property
    def matrix(self) -> np.ndarray:
        """A of the difference of both outputs."""
        return self.quadratics.matrix(*self.pair)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        winner, loser = self.pair
        size = rows_at_once(max(self.quadratics.scale.size, *self.quadratics.factors.shape[1:]))
        for first in range(0, len(self.wins), size):
            at = self.wins[first : first + size]
            outputs, errors = self.rows.outputs[at], self.rows.errors[at]
            slopes = self.quadratics.slopes(self.rows.design.rows(at), winner, loser)
            yield at, slopes, outputs[:, winner] - outputs[:, loser], errors[:, winner] + errors[:, loser]


def _meetings(quadratics: Quadratics, rows: Rows, contest: np.ndarray) -> Iterator[Meeting]:
    winners = rows.winners(contest)
    for winner, loser in permutations(contest.tolist(), 2):
        wins = np.flatnonzero(winners == winner)
        if len(wins):
            yield Meeting(quadratics, rows, wins, winner, loser)


def _balls(nearest: Nearest, meetings: list[Meeting]) -> None:
    for meeting in meetings:
        of = spectrum(meeting.matrix)
        for rows, slopes, margins, errors in meeting:
            radii, points = ball_radii(of, slopes, margins, errors)
            nearest.prove(rows, radii)
            nearest.reach(rows, np.linalg.norm(points, axis=1), points)


def _boxes(nearest: Nearest, meetings: list[Meeting]) -> None:
    for meeting in meetings:
        for rows, slopes, margins, _ in meeting:
            nearest.reach(rows, *box_crossings(meeting.matrix, slopes, margins))
    for meeting in meetings:
        diagonal = convex_diagonal(meeting.matrix)
        for rows, slopes, margins, errors in meeting:
            enough = nearest.distances[rows]
            nearest.prove(rows, box_radii(meeting.matrix, diagonal, slopes, margins, errors, enough))


_SEARCHES = {"l2": _balls, "linf": _boxes}


def _attack(model: Any, quadratics: Quadratics, rows: Rows, contest: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the points (n, d) beyond the ends of steps where another class wins by more than rounding; NaN if nowhere."""
    X, before = dense_rows(rows.design), rows.winners(contest)
    points = np.full_like(steps, np.nan)
    left = np.flatnonzero(np.isfinite(steps).all(axis=1))
    for beyond in _BEYOND:
        if not len(left):
            break
        ends = X[left] + (1.0 + beyond) * quadratics.scale * steps[left]
        there = Rows.of(model, quadratics, DenseDesign(ends))
        at, after = np.arange(len(left)), there.winners(contest)
        gains = there.outputs[at, after] - there.outputs[at, before[left]]
        changed = gains > there.errors[at, after, 0] + there.errors[at, before[left], 0]
        points[left[changed]] = ends[changed]
        left = left[~changed]
    return points
