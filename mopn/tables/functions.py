"""The functions of a column of numbers: itself, curves, and finer functions where the targets depend on them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mopn.solvers.tools.decorators import cached_property
from mopn.tables.effects import Effects, part_of_size
from mopn.tables.quantiles import Quantiles

# Cosines per column of numbers.
CURVES = 8
# Cosines of a column whose targets depend on finer ones.
_FINER_CURVES = 16
# Cosines of a column whose targets depend on the finest ones.
_FINEST_CURVES = 32
# Least number of knots of a column with more values.
KNOTS = 33
# Knots for each cosine: four for each half wave.
_KNOTS_PER_CURVE = 4
# Rank from either end at which the linear function ends: outliers would decide its slope otherwise.
_RANK_OF_ENDS = 0.005
# Standard deviations from the mean at which it ends at the latest.
_MAX_DEVIATIONS = 3.0
# Difference up to which ranks are equal: sums of weights that are no whole numbers are rounded.
_RANK_TIE = 1e-9
# Features of columns of numbers: with many columns, each has fewer functions.
_MAX_NUMBER_FEATURES = 256
# Height of a hat: the function that is this at one value, and 0 from the next knots on.
_SIZE_OF_HAT = 0.7
# Rows of a value from which its hat fades in; at twice as many it has its full height.
_MIN_ROWS_OF_HAT = 24
# Share of all rows from which it fades in, likewise.
_MIN_SHARE_OF_HAT = 1 / 256


def fading_of_curves(k: np.ndarray, columns: int) -> np.ndarray:
    """Return how far the k-th curves of each of some columns have faded: 1 for not at all, 0 for no curve."""
    room = _MAX_NUMBER_FEATURES / max(columns, 1) - 1.0
    fading: np.ndarray = (4.0 * (room - k) + 1.0).clip(0.0, 1.0)
    return fading


def sizes_of_curves(curves: int, columns: int, smoothness: float) -> np.ndarray:
    """Return the sizes of the curves of each column of a table; the last ones fade out where there are many columns."""
    k = np.arange(1.0, curves + 1)
    fading = fading_of_curves(k, columns)
    sizes: np.ndarray = k**-smoothness * fading
    return sizes[fading > 0.0]


@dataclass(frozen=True)
class FineParts:
    """How far the finer functions of a column have faded in, from 0 to 1: hats, and curves in two groups."""

    hats: float = 0.0
    finer: float = 0.0
    finest: float = 0.0


_ALL = FineParts(1.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class NumberFunctions:
    """The functions of a column of at least three numbers, in a table of n rows.

    ``missing`` is the weight of the rows without a number, ``sizes`` (w,) belong to the usual curves, and finer ones go
    on as 1 / k^smoothness.
    """

    quantiles: Quantiles
    missing: float
    n: int
    sizes: np.ndarray
    smoothness: float
    parts: FineParts = FineParts()

    def refined(self, effects: Effects, place: int) -> NumberFunctions:
        """Return the functions that suit the effects of the column, which is at a place among the columns of numbers.

        Where hats have their full size, finer curves have none: both tell codes apart. Nor have they where many
        columns leave no room for the usual ones.
        """
        whole = self._whole
        at = whole._at
        # All usual curves, also where many columns leave no room for some.
        usual = np.column_stack([self._linear[at], self._cosines(at, np.ones(CURVES), 1)])
        curves = whole._finer_curves(at)
        count = _FINER_CURVES - CURVES
        finer = curves[:, :count]
        finest = curves[:, count:]
        hats = part_of_size(effects, place, usual, whole._hats(at))
        of_finer = 0.0
        if len(self.sizes) == CURVES:
            room = self.sizes[-1] * CURVES**self.smoothness
            of_finer = part_of_size(effects, place, usual, finer) * (1.0 - hats) * room
        of_finest = part_of_size(effects, place, np.column_stack([usual, finer]), finest) * of_finer
        return replace(self, parts=FineParts(hats, of_finer, of_finest))

    @property
    def finest_knots(self) -> np.ndarray:
        """The knots (q,) if all finer functions have faded in."""
        return self.quantiles.values[self._whole._at]

    def at_knots(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the knots (q,), and the values (q, w) of the functions at them."""
        at = self._at
        usual = self._cosines(at, self.sizes, 1)
        functions = [self._linear[at], usual, self._finer_curves(at), self._hats(at)]
        return self.quantiles.values[at], np.column_stack(functions)

    @cached_property
    def _whole(self) -> NumberFunctions:
        """The functions with all finer ones."""
        return replace(self, parts=_ALL)

    @cached_property
    def _ranks(self) -> np.ndarray:
        return self.quantiles.mid_ranks

    @property
    def _n_curves(self) -> int:
        """The number of curves, finer ones among them."""
        if self.parts.finest > 0.0:
            return _FINEST_CURVES
        return _FINER_CURVES if self.parts.finer > 0.0 else len(self.sizes)

    @cached_property
    def _at(self) -> np.ndarray:
        """Which of the values are knots: all if they are few.

        Else some at equal ranks, the ends of the linear function, and the values with hats.
        """
        ranks = self._ranks
        count = max(KNOTS, _KNOTS_PER_CURVE * self._n_curves + 1)
        if len(ranks) <= count:
            return np.arange(len(ranks))
        wanted = np.linspace(-_RANK_TIE, 1.0 - _RANK_TIE, count)
        wanted = np.append(wanted, [_RANK_OF_ENDS - _RANK_TIE, 1.0 - _RANK_OF_ENDS - _RANK_TIE])
        at = np.searchsorted(ranks, wanted).clip(0, len(ranks) - 1)
        return np.union1d(at, np.flatnonzero(self._sizes_of_hats))

    @cached_property
    def _linear(self) -> np.ndarray:
        """The values (q,) up to their ends, minus their mean and divided by their deviation."""
        values = self.quantiles.values
        exponent = int(np.frexp(np.abs(values).max())[1])
        scaled = np.ldexp(values, -exponent)  # against overflow
        ends = np.interp([_RANK_OF_ENDS, 1.0 - _RANK_OF_ENDS], self._ranks, scaled)
        held = scaled.clip(*ends)
        weights = self.quantiles.weights
        shares = weights / weights.sum()
        centered = held - shares @ held
        deviation = np.sqrt(shares @ centered**2)
        linear: np.ndarray = (centered / deviation).clip(-_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        return linear

    def _cosines(self, at: np.ndarray, sizes: np.ndarray, first: int) -> np.ndarray:
        """Return the curves of some sizes from the ``first`` one on, at knots; no more than tell these apart."""
        count = min(len(sizes), max(len(at) - first, 0))
        k = np.arange(first, first + count)
        ranks = self._ranks[at]
        cosines: np.ndarray = np.sqrt(2.0) * np.cos(np.pi * ranks[:, None] * k) * sizes[:count]
        return cosines

    def _finer_curves(self, at: np.ndarray) -> np.ndarray:
        """Return the curves behind the usual ones at knots, as far as they have faded in."""
        k = np.arange(CURVES + 1.0, self._n_curves + 1)
        parts = np.where(k <= _FINER_CURVES, self.parts.finer, self.parts.finest)
        return self._cosines(at, k**-self.smoothness * parts, CURVES + 1)

    def _hats(self, at: np.ndarray) -> np.ndarray:
        """Return the hats at knots, as far as they have faded in."""
        sizes = self._sizes_of_hats[at]
        hats: np.ndarray = np.diag(sizes)[:, sizes > 0.0]
        return hats

    @cached_property
    def _sizes_of_hats(self) -> np.ndarray:
        """The sizes (q,) of the hats at all values; 0 for no hat.

        Whole numbers that many rows share have hats, which fade out where rows or shares become few.
        """
        values = self.quantiles.values
        weights = self.quantiles.weights
        if not self.parts.hats > 0.0:
            return np.zeros(len(values))
        total = weights.sum() + self.missing
        rows = weights / min(1.0, total / self.n)  # as for categories
        is_whole = values == np.rint(values)
        fading = is_whole * _fading_in(rows, _MIN_ROWS_OF_HAT) * _fading_in(weights / total, _MIN_SHARE_OF_HAT)
        sizes: np.ndarray = _SIZE_OF_HAT * self.parts.hats * fading
        return sizes


def _fading_in(x: np.ndarray, least: float) -> np.ndarray:
    """Return 0 up to the least value, 1 from twice this value on, and a line between."""
    part: np.ndarray = (x / least - 1.0).clip(0.0, 1.0)
    return part


def functions_of_pair(quantiles: Quantiles) -> np.ndarray:
    """Return the only function of a column of two numbers at these, of mean 0; its range is 1."""
    shares = quantiles.weights / quantiles.weights.sum()
    return np.array([[-shares[1]], [shares[0]]])
