"""Coordinates in which a problem is solved: (x - c) / s, feature by feature, for the user's x.

With dummies, the networks on [1, x] and on [1, (x - c) / s] are the same functions; only the penalty differs, and in
the latter it depends neither on the origin of the features nor on their units. Means and deviations are weighted.
Neither X - 1 c' for sparse X nor (X - 1 c') / s for dense X takes a copy of X.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mopn.data.designs import DenseDesign, Design, Entries, SparseDesign, rows_at_once
from mopn.data.mixed_design import MixedDesign, full_columns, other_columns
from mopn.data.relation_design import RelationDesign
from mopn.data.rows import Block, Rows
from mopn.solvers.numerics.precision import NOISE, NULL
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import cached_property, warn_caller

if TYPE_CHECKING:
    from mopn.compiled.storage import Lines


def uncentered(H: np.ndarray, center: np.ndarray | None, dummies: int) -> np.ndarray:
    """Return the coefficients (k, q + d) of [1, x] from coefficients of [1, x - c]; the first dummy takes up c."""
    if center is None:
        return H
    H = H.copy()
    H[:, 0] -= H[:, dummies:] @ center
    return H


class CenteredDesign(Design):
    """X - 1 c' for sparse X (n, d) and a center c (d,): products with X and a correction of rank one."""

    def __init__(self, base: SparseDesign, center: np.ndarray) -> None:
        self.base = base
        self.center = center
        self.shape = base.shape

    @cached_property
    def squares(self) -> CenteredDesign:
        """(X - 1 c')^2 = (X^2 - 2 X diag(c)) - 1 (-c^2)'."""
        data = self.base.X.data.astype(np.float64, copy=False)
        changed = data * (data - 2.0 * self.center[self.base.stored_columns])
        return CenteredDesign(self.base.with_data(changed), -self.center * self.center)

    def project(self, H: np.ndarray) -> np.ndarray:
        return self.base.project(H) - (H @ self.center.astype(H.dtype, copy=False))

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        return self.base.adjoint(R) - np.outer(R.sum(axis=0), self.center.astype(R.dtype, copy=False))

    def gram(self, g: np.ndarray) -> np.ndarray:
        # X' D X - s c' - c s' + <g, 1> c c' for s = X' g; ``half`` is half of the correction, up to transposition.
        s = self.base.adjoint(g[:, None])[0]
        half = np.outer(s - 0.5 * g.sum() * self.center, self.center)
        return self.base.gram(g) - half - half.T

    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        # Entries of a feature with a center are hardly ever zero.
        return np.where(self.center != 0, weights.sum(), self.base.occurrences(weights))

    def inner_products(self, unit: float) -> np.ndarray:
        base = SparseDesign(self.base.X / unit)
        center = self.center / unit
        along = self.base.project(center[None])[:, 0] / unit
        return base.inner_products(1.0) - along[:, None] - along + center @ center

    @cached_property
    def squared_sizes(self) -> np.ndarray:
        return self.absolute.squared_norms

    @property
    def squared_column_sizes(self) -> np.ndarray:
        return self.absolute.adjoint_squares(np.ones((self.shape[0], 1)))[0]

    @cached_property
    def largest(self) -> float:
        """The larger bound of stored and of other entries."""
        stored = np.abs(self.base.X.data - self.center[self.base.stored_columns]).max(initial=0.0)
        return float(max(stored, np.abs(self.center).max()))

    @cached_property
    def absolute(self) -> CenteredDesign:
        """|x| + |c|, at least |x - c|."""
        return CenteredDesign(self.base.absolute, -np.abs(self.center))

    def matrix(self) -> np.ndarray:
        return self.base.matrix().toarray() - self.center

    @property
    def entries(self) -> Entries:
        return Entries(0, self.center)

    @property
    def stored_lines(self) -> Lines:
        return self.base.row_lines

    @property
    def work(self) -> tuple[float, float]:
        return self.base.work

    def rows(self, rows: slice | np.ndarray) -> CenteredDesign:
        return CenteredDesign(self.base.rows(rows), self.center)

    def single(self) -> CenteredDesign:
        return CenteredDesign(self.base.single(), self.center)


class MappedDesign(DenseDesign):
    """(X - 1 c') / s for dense data X (n, d), a center c and a scale s, each of shape (d,) or a number.

    It is computed block by block in double precision, so that equal numbers in single and in double precision are the
    same data.
    """

    def __init__(self, X: np.ndarray, center: np.ndarray | float, scale: np.ndarray | float) -> None:
        super().__init__(X)
        self.center = center
        self.scale = scale

    def _blocks(self, size: int | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        for rows, X in super()._blocks(size):
            yield rows, self._mapped(X)

    def _mapped(self, X: np.ndarray) -> np.ndarray:
        mapped: np.ndarray = np.subtract(X, self.center, dtype=np.float64)
        mapped /= self.scale
        return mapped

    @cached_property
    def largest(self) -> float:
        return max(float(np.abs(block).max()) for _, block in self._blocks(rows_at_once(self.shape[1])))

    @cached_property
    def absolute(self) -> DenseDesign:
        return DenseDesign(np.abs(self.matrix()))

    def matrix(self) -> np.ndarray:
        return self._mapped(self.X)

    def rows(self, rows: slice | np.ndarray) -> MappedDesign:
        return MappedDesign(self.X[rows], self.center, self.scale)

    def stored(self) -> DenseDesign:
        """Return the mapped data in memory, in the precision of X."""
        mapped = np.empty_like(self.X)
        for rows, block in self._blocks(rows_at_once(self.shape[1])):
            mapped[rows] = block
        return DenseDesign(mapped)

    def single(self) -> DenseDesign:
        return self.stored().single()


ScaleName = Literal["features", "data", "large"]
SCALES = get_args(ScaleName)
# Deviation, relative to the size, below which a sparse feature counts as constant: sparse data are not centered in
# memory, so products with them lose the leading digits of the mean. For dense features it is NULL.
_LEAST_DEVIATION_OF_SPARSE = 1e-6
# The mean squared length of a scaled sample.
_SQUARED_LENGTH = 4.0
# The squared length of a sample of a user and an item, with a one for each.
_SQUARED_LENGTH_OF_PAIR = 2.0


@dataclass(frozen=True)
class Coordinates:
    """The map from a user's features x to (x - center) / scale."""

    center: np.ndarray | None  # (d,), or None for zero
    scale: np.ndarray  # (d,), positive; infinite for constant features, which are 0 in these coordinates
    total_weight: float = 0.0  # the sum of the weights of the rows
    deviations: np.ndarray | None = None  # root mean squares (d,) about the center; 0 for constant features

    @property
    def finite_scale(self) -> np.ndarray:
        return np.where(np.isfinite(self.scale), self.scale, 0.0)

    @property
    def relative_center(self) -> np.ndarray:
        """The moduli (d,) of the center in units of the scale; 0 for constant features."""
        return np.zeros(len(self.scale)) if self.center is None else np.abs(self.center) / self.scale

    def design(self, base: DenseDesign | SparseDesign | RelationDesign) -> Design:
        """Return the data in these coordinates, with full columns of sparse data in memory."""
        if isinstance(base, SparseDesign):
            places = full_columns(base)
            if len(places) == base.shape[1]:
                base = DenseDesign(base.X.toarray(order="C"))
            elif len(places):
                return self._mixed(base, places)
        design = self.view(base)
        if isinstance(design, MappedDesign) and isinstance(base, DenseDesign) and base.X.dtype == np.float64:
            return design.stored()
        return design

    def view(self, base: DenseDesign | SparseDesign | RelationDesign) -> Design:
        """Return the data in these coordinates, without a copy of dense data."""
        if isinstance(base, RelationDesign):
            assert self.center is None
            return base.scaled(self.scale)
        if isinstance(base, DenseDesign):
            return MappedDesign(base.X, 0.0 if self.center is None else self.center, self.scale)
        scaled = base.scaled(self.scale)
        if self.center is None:
            return scaled
        return CenteredDesign(scaled, self.center / self.scale)

    def _mixed(self, base: SparseDesign, places: np.ndarray) -> MixedDesign:
        others = other_columns(places, base.shape[1])
        full = DenseDesign(base.columns(places).X.toarray(order="C"))
        return MixedDesign(self.of(places).design(full), self.of(others).view(base.columns(others)), places)

    def of(self, columns: np.ndarray) -> Coordinates:
        """Return the coordinates of some features."""
        center = None if self.center is None else self.center[columns]
        return Coordinates(center, self.scale[columns], self.total_weight)

    def original(self, H: np.ndarray, dummies: int) -> np.ndarray:
        """Return units (k, q + d) for the user's data from units in these coordinates, with q dummies in front."""
        scaled = np.hstack([H[:, :dummies], H[:, dummies:] / self.scale])
        return uncentered(scaled, self.center, dummies)

    def of_original(self, H: np.ndarray, dummies: int) -> np.ndarray:
        """Return units in these coordinates, the inverse of ``original``."""
        mapped = np.hstack([H[:, :dummies], H[:, dummies:] * self.finite_scale])
        if self.center is not None:  # constant features have nothing but their center
            mapped[:, 0] += H[:, dummies:] @ self.center
        return mapped


def make_coordinates(rows: Rows, *, center: bool, scale: str | None) -> Coordinates | None:
    """Return the coordinates of weighted rows, centered at their mean or not; None for the user's own coordinates.

    "features" gives all features equal deviations, or without ``center`` equal mean squares; "data" divides all by one
    number. Either makes the mean squared length of a sample 4. "large" leaves the smallest features that make up a mean
    squared length of 2, such as users and items. It divides each larger feature, so that its mean square is the largest
    of these: a larger column is penalised by its frequency (Srebro and Salakhutdinov, NIPS 2010).
    """
    if not center and scale is None:
        return None
    if center and isinstance(rows.template, RelationDesign):
        raise ValueError(
            "center=True, and with it fit_intercept=True of polynomial networks, takes no RelationBlocks: set it to "
            "False, or pass X.tocsr()"
        )
    total, sums, about_zero = rows.sum(_moments)
    about_zero = about_zero / total
    mean = None
    squares = about_zero
    if center:
        # To the last digit, for any order of the rows.
        mean = sums / total
        rest, about_mean = rows.sum(_moments_about, mean)
        mean = mean + rest / total
        squares = _varying(rows, about_mean / total - (rest / total) ** 2, about_zero)
    sizes = np.where(squares > 0, _divisors(squares, scale), np.inf)
    if mean is None and (sizes == 1.0).all():
        return None
    return Coordinates(mean, sizes, float(total), np.sqrt(squares))


def _varying(rows: Rows, variances: np.ndarray, about_zero: np.ndarray) -> np.ndarray:
    """Return the variances (d,), 0 for features that count as constant, with a warning if these vary."""
    is_sparse = rows.entries is not None
    least = _LEAST_DEVIATION_OF_SPARSE if is_sparse else NULL
    found = np.where(variances > least**2 * about_zero, variances, 0.0)
    lost = np.flatnonzero((found == 0.0) & (variances > NOISE**2 * about_zero))
    if len(lost):
        instead = ", or give a dense X" if is_sparse else ""
        warn_caller(
            f"features {shown(lost.tolist())} of X count as constant, for the certificate too: their deviations "
            f"are below {least:g} of their size. Subtract numbers near their means{instead}"
        )
    return found


def _divisors(squares: np.ndarray, scale: str | None) -> np.ndarray:
    """Return the divisors (d,) of features of given mean squares."""
    if scale is None:
        return np.ones(len(squares))
    if scale == "data":
        return np.full(len(squares), math.sqrt(squares.sum() / _SQUARED_LENGTH))
    if scale == "large":
        return np.maximum(1.0, np.sqrt(squares / _largest_of_pair(squares)))
    return feature_sizes(squares, int(np.count_nonzero(squares)))


def feature_sizes(squares: Any, number: int) -> Any:
    """Return the divisors of ``number`` features of given mean squares with ``scale="features"``."""
    return np.sqrt(squares * number / _SQUARED_LENGTH)


def _largest_of_pair(squares: np.ndarray) -> float:
    """Return the largest of the smallest mean squares that add up to 2, or of all if their sum is less; never 0."""
    ordered = np.sort(squares)
    # With a user and an item in each row, mean squares add up to 2 up to rounding errors.
    place = int(np.searchsorted(np.cumsum(ordered), _SQUARED_LENGTH_OF_PAIR * (1.0 - 1e-9)))
    return float(ordered[min(place, len(ordered) - 1)]) or 1.0


def _moments(block: Block) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the weighted sums of 1, of the features and of their squares."""
    weights = block.losses.sample_weights[:, None]
    sums = block.design.adjoint(weights)[0]
    squares = block.design.adjoint_squares(weights)[0]
    return block.losses.total_weight, sums, squares


def _moments_about(block: Block, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted sums of the features about means, whose last digits may be wrong, and of their squares."""
    weights = block.losses.sample_weights[:, None]
    design = block.design
    if isinstance(design, DenseDesign):
        dense = MappedDesign(design.X, mean, np.ones(len(mean)))
        return dense.adjoint(weights)[0], dense.adjoint_squares(weights)[0]
    assert isinstance(design, SparseDesign)
    n, d = design.shape
    columns = design.stored_columns
    about = design.with_data(design.X.data - mean[columns])
    # The weights (d,) of entries that are not stored. They are 0, whatever the rounding of the sums, if all are stored.
    stored = design.with_data(np.ones(len(columns))).adjoint(weights)[0]
    rest = np.maximum(block.losses.total_weight - stored, 0.0)
    rest[np.bincount(columns, minlength=d) == n] = 0.0
    first = about.adjoint(weights)[0] - rest * mean
    second = about.adjoint_squares(weights)[0] + rest * mean**2
    return first, second
