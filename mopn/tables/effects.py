"""How the targets depend on each column of numbers alone, which decides over its finer functions."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mopn.data.row_blocks import RawBlock
from mopn.data.validation import check_weights, distinct_labels, label_codes
from mopn.tables.encoding import TableEncoding
from mopn.tables.quantiles import Quantiles
from mopn.tables.reading import Table

# Targets that are numbers end at these ranks from either end: outliers would be all of their variance otherwise.
_RANK_OF_ENDS = 0.005
# Share of the variance of the targets that each finer function explains on average, from which on they fade in. At
# twice this share they have their full size.
_LEAST_SHARE = 0.002
# Standard deviations of the share that chance explains, beyond which a share is no chance.
_DEVIATIONS_OF_CHANCE = 4.0
# Hashes that are kept to count different rows: the number of more rows is an estimate, to about 1 %.
_MOST_HASHES = 1 << 14
# Copies of a row that tell nothing: with more, rows repeat by nature, as in a table of a few codes.
_MOST_COPIES = 10
# Functions that depend on the ones before, up to this part of their length, are left out.
_DEPENDENT_LENGTH = 1e-7


@dataclass(frozen=True, eq=False)
class Response:
    """Targets as numbers: indicators of the labels, or numbers up to their outer ranks, minus their level."""

    labels: np.ndarray | None
    lower: np.ndarray  # (m,), of numbers
    upper: np.ndarray  # (m,), of numbers

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray | None, *, is_labels: bool) -> Response:
        """Return how to tell the targets of rows, given the targets and the weights of all rows, or all labels."""
        if is_labels and y.ndim == 1:
            return cls(distinct_labels(y)[0], np.zeros(0), np.zeros(0))
        columns = y.reshape(len(y), -1).astype(np.float64)
        present = slice(None) if weights is None else weights > 0.0
        rows = np.ones(len(y)) if weights is None else weights
        outer = [_RANK_OF_ENDS, 1.0 - _RANK_OF_ENDS]
        ends = np.array([Quantiles.of(column[present], rows[present]).at(outer) for column in columns.T])
        return cls(None, ends[:, 0], ends[:, 1])

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Return the targets (n, m) of some rows."""
        if self.labels is not None:
            indicators: np.ndarray = label_codes(y, self.labels)[:, None] == np.arange(len(self.labels))
            return indicators.astype(np.float64)
        numbers: np.ndarray = y.reshape(len(y), -1).astype(np.float64)
        return numbers.clip(self.lower, self.upper) - self.lower


@dataclass(frozen=True, eq=False)
class Effects:
    """Weighted sums over rows: in the cells of each column, and of all rows."""

    weights: tuple[np.ndarray, ...]  # (q,) of each column: the weights in its cells
    targets: tuple[np.ndarray, ...]  # (q, m) of each column: the targets in its cells
    weight: float  # of all rows
    rows: int  # of positive weight
    hashes: np.ndarray  # of the different rows, ascending, the smallest ones if there are many
    sums: np.ndarray  # (m,), the targets of all rows
    squares: np.ndarray  # (m,), their squares

    def __add__(self, other: Effects) -> Effects:
        return Effects(
            tuple(a + b for a, b in zip(self.weights, other.weights, strict=True)),
            tuple(a + b for a, b in zip(self.targets, other.targets, strict=True)),
            self.weight + other.weight,
            self.rows + other.rows,
            np.union1d(self.hashes, other.hashes)[:_MOST_HASHES],
            self.sums + other.sums,
            self.squares + other.squares,
        )

    @property
    def different_rows(self) -> float:
        """The number of rows without copies: by the place of the last hash, if more were left out.

        Bar-Yossef, Jayram, Kumar, Sivakumar and Trevisan: Counting distinct elements in a data stream. RANDOM 2002.
        """
        if len(self.hashes) < _MOST_HASHES:
            return float(len(self.hashes))
        return (_MOST_HASHES - 1) / (float(self.hashes[-1]) / 2.0**64)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the columns of numbers of a table: each number belongs to the nearest of some knots."""

    encoding: TableEncoding
    knots: tuple[np.ndarray, ...]
    response: Response

    def effects(self, block: RawBlock) -> Effects:
        """Return the effects in a block of rows, whose X is a table."""
        table, weights, present = block.X.present_rows(check_weights(block.sample_weight, block.X.n))
        arranged = self.encoding.arranged(table, training=True)
        targets = self.response(np.asarray(block.y)[present])

        columns = zip(self.encoding.number_columns, self.knots, strict=True)
        sums = [_sums_in_cells(arranged.columns[j], knots, weights, targets) for j, knots in columns]
        return Effects(
            tuple(of_cells for of_cells, _ in sums),
            tuple(of_targets for _, of_targets in sums),
            float(weights.sum()),
            table.n,
            _hashes(arranged, targets),
            weights @ targets,
            weights @ targets**2,
        )


def _hashes(table: Table, targets: np.ndarray) -> np.ndarray:
    """Return the hashes of the different rows of an arranged table with targets, the smallest ones if there are many.

    They depend on the cells alone, so that the hashes of blocks can be joined.
    """
    sums = np.zeros(table.n, np.uint64)
    for place, column in enumerate([*table.columns, *targets.T]):
        if column.dtype == object:
            codes = {text: zlib.crc32(repr(text).encode()) for text in set(column.tolist())}
            bits = np.array([codes[text] for text in column.tolist()], np.uint64)
        else:
            bits = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)  # one NaN, and one zero
        sums += _mixed(bits + np.uint64(place))
        sums = _mixed(sums)
    return np.unique(sums)[:_MOST_HASHES]


def _mixed(x: np.ndarray) -> np.ndarray:
    """Return random bits for each of some numbers of 64 bits (Stafford's variant 13 of the finaliser of MurmurHash)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _sums_in_cells(
    x: np.ndarray, knots: np.ndarray, weights: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (q,) in the cells around some knots, and the sums (q, m) of the targets there."""
    rows = np.flatnonzero(~np.isnan(x))
    middles = knots[:-1] + 0.5 * np.diff(knots)
    cells = np.searchsorted(middles, x[rows])
    matrix = sparse.csr_array((weights[rows], (cells, rows)), shape=(len(knots), len(x)))
    return np.asarray(matrix.sum(axis=1)), matrix @ targets


def part_of_size(effects: Effects, column: int, common: np.ndarray, finer: np.ndarray) -> float:
    """Return the size of finer functions (q, w) of a column, from 0 to 1, by the variance that they explain.

    Functions are given by their values at the column's knots. The size depends on the share of the variance that the
    finer functions explain beyond the common ones, on average of each, minus the share that chance may explain.
    """
    one_row = effects.weight / max(effects.different_rows, effects.rows / _MOST_COPIES)
    rows = effects.weights[column] / one_row
    mean = effects.sums / effects.weight
    variances = effects.squares / effects.weight - mean**2
    number = rows.sum()
    if not finer.size or not variances.sum() > 0.0:
        return 0.0

    explained, independent = _explained(rows, effects.targets[column] / one_row, mean, np.column_stack([common, finer]))
    is_finer = independent & (np.arange(len(independent)) > common.shape[1])
    count = is_finer.sum()
    freedom = number - independent.sum()
    if not count or freedom <= 0:
        return 0.0

    left = (number * variances - explained[independent].sum(axis=0)).clip(0.0)
    by_chance = left / freedom  # by each function, of each output
    total = by_chance.sum()
    # Outputs whose variances differ count as fewer equal ones.
    outputs = total**2 / (by_chance @ by_chance) if total else 1.0
    deviation = math.sqrt(2.0 / (count * outputs))
    surely = explained[is_finer].sum() / count - total * (1.0 + _DEVIATIONS_OF_CHANCE * deviation)
    share = surely / (effects.weight / one_row * variances.sum())
    # In single precision: the order of the rows changes the last bits.
    return float(np.float32(np.clip(share / _LEAST_SHARE - 1.0, 0.0, 1.0)))


def _explained(
    rows: np.ndarray, targets: np.ndarray, mean: np.ndarray, functions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squares (w, m) that a constant and functions explain, each beyond the ones before it.

    ``rows`` (q,) and ``targets`` (q, m) are sums in cells, and ``mean`` (m,) is of all rows. Also returns which
    functions are independent of the ones before.
    """
    roots = np.sqrt(rows)[:, None]
    distances = targets - rows[:, None] * mean
    projected = np.divide(distances, roots, out=np.zeros_like(distances), where=roots > 0.0)
    matrix = roots * np.column_stack([np.ones(len(rows)), functions])
    basis, triangle = np.linalg.qr(matrix)
    lengths = np.linalg.norm(matrix, axis=0)[: basis.shape[1]]
    explained: np.ndarray = (basis.T @ projected) ** 2
    return explained, np.abs(np.diag(triangle)) > _DEPENDENT_LENGTH * lengths
