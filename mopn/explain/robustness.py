"""Certified radii: how far the features of a row may change, together, while the predicted class provably stays.

The outputs of two classes are equal on a quadric; docs/mathematics.md, section 15. Proofs hold for predictions as they
are computed: rounding errors in coefficients, and in outputs at every point, count against the radius.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from mopn.data.designs import DenseDesign, Design, rows_at_once
from mopn.data.values import to_host
from mopn.explain.margins import OutputMargins, with_zero
from mopn.models.base import Fitted, check_scale, fitted_model
from mopn.models.formula import dense_rows
from mopn.models.quadratic import is_quadratic
from mopn.solvers.numerics.quadric_distance import (
    ball_radii,
    box_crossings,
    box_radii,
    convex_diagonal,
    ray_crossings,
    spectrum,
)
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.checks import check_flag, choice
from mopn.solvers.tools.decorators import quiet

# Steps of an attack beyond the boundary, relative to the distance to it. Up to rounding errors the first would do; each
# next one is ten times as long.
_STEPS_BEYOND = 10.0 ** np.arange(-14.0, -1.0)


@quiet()
def certified_radius(
    model: Fitted, X: Any, norm: str = "l2", *, scale: Any = None, return_attack: bool = False
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Return how far the features of a row may change, all at once, while the predicted class provably stays.

    Within this radius ``predict`` returns the same label at every point, rounding errors included. All points around
    the row count, whether they occur in data or not. One-hot columns are treated as numbers;
    :func:`certified_flips` is for these.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    X : array-like or sparse matrix of shape (n, d)
    norm : {"l2", "linf"}, default "l2"
        The size of changes: the root of the sum of their squares, or the largest one. The l2 radius is the distance to
        the nearest other class, up to rounding; the linf radius is a lower bound of it.
    scale : array-like of shape (d,), optional
        The size of a change by 1 in each feature, such as standard deviations; 0 for features that do not change.
        Default 1: radii in the units of X.
    return_attack : bool, default False
        Whether to return points of other classes as well.

    Returns
    -------
    radii : ndarray of shape (n,), or (n, m) for m labels that are predicted separately
        0 where nothing is proven, as at a tie; inf if the prediction does not depend on the features.
    attack : ndarray of shape (n, d) or (n, m, d), if ``return_attack``
        Points with other predictions, NaN where none was found. The distance to the nearest other prediction is
        between the radius and the distance to this point; in l2 the two are nearly equal. No point is found where two
        outputs become level without a change of the class; the l2 radius ends there.

    Raises
    ------
    TypeError
        If the model predicts no classes, reads a table, or has outputs of a degree above 2.
    ValueError
        As :meth:`mopn.Model.outputs`; for another norm; if ``scale`` does not hold d numbers of at least 0.

    Notes
    -----
    Two outputs are equal on a quadric. The distance to it has an exact dual with one multiplier, and each pair of
    classes takes one decomposition into eigenvectors, for any number of rows, in the span of the units. Boxes are
    bounded by a convex relaxation; they, and anova kernels, take a matrix (d, d) for each pair of classes.
    docs/mathematics.md, section 15.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.eye(2), np.ones((2, 1)), offset=-1.0, classes=np.array(["inside", "outside"]))
    >>> mopn.explain.certified_radius(model, [[3.0, 4.0], [0.0, 0.25]]).round(6)  # the circle of radius 1
    array([4.  , 0.75])
    """
    machine = fitted_model(model)
    X = to_host(X)
    search = _SEARCHES[choice(_SEARCHES)(norm, "norm")]
    check_flag(return_attack, "return_attack")
    if machine.encoding is not None:
        raise TypeError(
            "certified_radius measures changes of numbers, and the columns of a table may hold categories and missing "
            "values: certified_flips counts changes of categories; for the features that the columns become ask the "
            "network, model.model, with rows model.encoding.encode(X)"
        )
    predictions = contests(machine, "certified_radius")
    scale = np.ones(machine.n_features) if scale is None else check_scale(scale, machine.n_features)
    if (scale < 0.0).any():
        raise ValueError(f"scale must be >= 0, got {scale.min()}")
    if not scale.any():
        raise ValueError("scale must be positive for at least one feature; with zeros alone none can change")
    design = machine.design(X)
    machine.outputs(X)  # refuses rows whose outputs overflow
    radii = []
    attacks = []
    with limited_threads():
        margins = OutputMargins(machine, scale, reduced=norm == "l2")
        rows = RowOutputs.of(machine, margins, design)
        for contest in predictions:
            nearest = Nearest(margins, design.shape[0])
            search(nearest, list(meetings(margins, rows, contest)))
            radii.append(nearest.radii * margins.unit)
            if return_attack:
                attacks.append(_attack(machine, margins, rows, contest, nearest.steps))
    # Labels are one prediction, and have no axis of predictions.
    separate = machine.target != "labels"
    found = np.stack(radii, axis=1) if separate else radii[0]
    if not return_attack:
        return found
    return found, np.stack(attacks, axis=1) if separate else attacks[0]


def contests(model: Any, name: str) -> list[np.ndarray]:
    """Return for each prediction the outputs that compete: the largest wins. The output m, after all others, is 0."""
    if model.target not in ("labels", "indicator"):
        raise TypeError(f"{name} needs a model that predicts classes, got one of target={model.target!r}")
    formula = model.formula()
    if not is_quadratic(formula):
        raise TypeError(f"{name} needs outputs of degree 2 at most, got a model of higher degree")
    m = len(formula.constant)
    if m > 1 and model.target == "labels":
        return [np.arange(m)]
    return [np.array([m, c]) for c in range(m)]


@dataclass(frozen=True)
class RowOutputs:
    """Rows, with outputs (n, m + 1) and the errors (n, m + 1, 3) that :meth:`OutputMargins.errors` returns."""

    design: Design
    outputs: np.ndarray
    errors: np.ndarray

    @classmethod
    def of(cls, model: Any, margins: OutputMargins, design: Design) -> RowOutputs:
        return cls(design, with_zero(model.outputs_of_design(design)), margins.errors(design))

    def winners(self, contest: np.ndarray) -> np.ndarray:
        """Return the largest (n,) of the outputs of a contest; the first one in a tie."""
        return contest[self.outputs[:, contest].argmax(axis=1)]


class Nearest:
    """The proven radius of every row, and ``steps`` (n, d) to the nearest point found of another class, or NaN."""

    def __init__(self, margins: OutputMargins, n: int) -> None:
        self.radii = np.full(n, np.inf)
        self.distances = np.full(n, np.inf)
        self.steps = np.full((n, margins.scale.size), np.nan)
        self.basis = margins.basis

    def prove(self, rows: np.ndarray, radii: np.ndarray) -> None:
        """Note radii within which one other class does not win."""
        self.radii[rows] = np.minimum(self.radii[rows], radii)

    def reach(self, rows: np.ndarray, distances: np.ndarray, steps: np.ndarray) -> None:
        """Note steps to points where one other class is level."""
        closer = distances < self.distances[rows]
        self.distances[rows[closer]] = distances[closer]
        self.steps[rows[closer]] = steps[closer] if self.basis is None else steps[closer] @ self.basis.T


class Meeting:
    """The rows in which one output wins against another.

    Iteration yields blocks of rows: their indices, slopes, margins, and the errors of the margins.
    """

    def __init__(self, margins: OutputMargins, rows: RowOutputs, wins: np.ndarray, winner: int, loser: int) -> None:
        self.margins = margins
        self.rows = rows
        self.wins = wins
        self.pair = (winner, loser)

    @property
    def matrix(self) -> np.ndarray:
        return self.margins.matrix(*self.pair)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        winner, loser = self.pair
        size = rows_at_once(max(self.margins.scale.size, *self.margins.local.factors.shape[1:]))
        for first in range(0, len(self.wins), size):
            at = self.wins[first : first + size]
            outputs = self.rows.outputs[at]
            errors = self.rows.errors[at]
            slopes = self.margins.slopes(self.rows.design.rows(at), winner, loser)
            margin = outputs[:, winner] - outputs[:, loser]
            margin_errors = errors[:, winner] + errors[:, loser]
            yield at, slopes, margin, margin_errors


def meetings(margins: OutputMargins, rows: RowOutputs, contest: np.ndarray) -> Iterator[Meeting]:
    """Yield the pairs of a winner and a loser in a contest, with the rows that the winner wins."""
    winners = rows.winners(contest)
    for winner, loser in permutations(contest.tolist(), 2):
        wins = np.flatnonzero(winners == winner)
        if len(wins):
            yield Meeting(margins, rows, wins, winner, loser)


def _search_balls(nearest: Nearest, meetings: list[Meeting]) -> None:
    """Find and prove distances in the 2-norm."""
    for meeting in meetings:
        eigen = spectrum(meeting.matrix)
        for rows, slopes, margins, errors in meeting:
            radii, points = ball_radii(eigen, slopes, margins, errors)
            nearest.prove(rows, radii)
            nearest.reach(rows, np.linalg.norm(points, axis=1), points)


def _search_boxes(nearest: Nearest, meetings: list[Meeting]) -> None:
    """Find and prove distances in the largest change; proofs use the distances found for all pairs of classes."""
    for meeting in meetings:
        matrix = meeting.matrix
        for rows, slopes, margins, _ in meeting:
            nearest.reach(rows, *box_crossings(matrix, slopes, margins))

    for meeting in meetings:
        matrix = meeting.matrix
        diagonal = convex_diagonal(matrix)
        for rows, slopes, margins, errors in meeting:
            radii, ends = box_radii(matrix, diagonal, slopes, margins, errors, nearest.distances[rows])
            nearest.prove(rows, radii)
            nearest.reach(rows, *ray_crossings(matrix, slopes, margins, ends))


_SEARCHES = {"l2": _search_balls, "linf": _search_boxes}


def _attack(model: Any, margins: OutputMargins, rows: RowOutputs, contest: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return points (n, d) beyond the ends of steps where another class wins by more than rounding; NaN if none."""
    X = dense_rows(rows.design)
    before = rows.winners(contest)
    points = np.full_like(steps, np.nan)
    left = np.flatnonzero(np.isfinite(steps).all(axis=1))
    for beyond in _STEPS_BEYOND:
        if not len(left):
            break
        ends = X[left] + (1.0 + beyond) * margins.scale * steps[left]
        there = RowOutputs.of(model, margins, DenseDesign(ends))
        at = np.arange(len(left))
        old = before[left]
        new = there.winners(contest)
        gains = there.outputs[at, new] - there.outputs[at, old]
        changed = gains > there.errors[at, new, 0] + there.errors[at, old, 0]
        points[left[changed]] = ends[changed]
        left = left[~changed]
    return points
