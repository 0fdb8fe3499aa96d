"""The state of coordinate descent: outputs, slopes of the losses, and the columns of each thread.

Threads that write to neighbouring samples wait for each other's cache lines. So each thread's samples are contiguous.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mopn.compiled.codes import SQUARED
from mopn.compiled.jit import in_turn, threads_usable
from mopn.compiled.kernels import anova_degrees, anova_degrees_of_columns, pack, parallel_anova_degrees
from mopn.compiled.relation_sweeps import sweep_tables
from mopn.compiled.storage import Lines, constant, disjoint_groups, owners, row_lines
from mopn.compiled.sweeps import parallel_sweep_units, sweep_units
from mopn.data.designs import Design
from mopn.data.relation_design import RelationDesign
from mopn.data.rows import SumOfLosses
from mopn.solvers.numerics.precision import dot

# Entries of a group of disjoint columns, per thread, from which on threads pay: starting them takes microseconds.
_MIN_ENTRIES_PER_THREAD = 10_000
# Samples in the smallest block of a thread: smaller ones are not much longer than a cache line.
_MIN_BLOCK_SAMPLES = 64


class SweepState:
    """Outputs o and slopes w_i l'(y_i, o_i) of one output; with threads in the ``order`` found for ``designs``."""

    def __init__(
        self, losses: SumOfLosses, outputs: np.ndarray, designs: Iterable[Design] = (), n_threads: int = 1
    ) -> None:
        self.losses = losses
        self.n_threads = n_threads
        lines = [design.column_lines for design in designs if not isinstance(design, RelationDesign)]
        self.order = arrangement(lines, n_threads)
        self.loss = losses.loss.compiled
        self.smoothness = losses.loss.smoothness(1)
        targets = losses.in_memory
        self._offset = 0.0 if targets.offset is None else targets.offset[:, 0]
        self._weights = targets.weights
        self.arranged_y = constant(self.arrange(targets.y[:, 0]))
        self.arranged_weights = None if self._weights is None else constant(self.arrange(self._weights))
        self.arranged_outputs = self.arrange(outputs + self._offset)
        self.arranged_slopes = self.arrange(self._slopes_at(outputs)).copy()
        self._lines: dict[int, tuple[Lines, Lines]] = {}
        self._workspaces: dict[tuple[tuple[int, ...], int], np.ndarray] = {}

    @property
    def total_weight(self) -> float:
        return self.losses.in_memory.total_weight

    @property
    def slopes(self) -> np.ndarray:
        return self._original_order(self.arranged_slopes)

    def value(self) -> float:
        if self.losses.loss.code == SQUARED:
            slopes = self.slopes
            residuals = slopes if self._weights is None else slopes / self._weights
            return 0.5 * dot(slopes, residuals)
        return self.losses.value(self._outputs()[:, None])

    def shift_outputs(self, change: np.ndarray) -> None:
        if self.losses.loss.code == SQUARED:
            slope_change = change if self._weights is None else self._weights * change
            self.arranged_slopes += self.arrange(slope_change)
        else:
            self.arranged_outputs += self.arrange(change)
            self.arranged_slopes[:] = self.arrange(self._slopes_at(self._outputs()))

    def weighted(self, features: np.ndarray) -> np.ndarray:
        """Return the rows times the square roots of the sample weights."""
        return features if self._weights is None else features * np.sqrt(self._weights)[:, None]

    def lines(self, design: Design) -> tuple[Lines, Lines]:
        """Return the columns and the rows of a design, in the order of the sweeps."""
        if id(design) not in self._lines:
            self._lines[id(design)] = arranged_lines(design, self.order)
        return self._lines[id(design)]

    def sweeper(self, design: Design) -> Any:
        """Return the sweeps over the columns of a design, a ``Sweeper`` or a ``RelationSweeper``."""
        return RelationSweeper(self, design) if isinstance(design, RelationDesign) else Sweeper(self, design)

    def workspace(self, shape: tuple[int, ...], copy: int = 0) -> np.ndarray:
        """Return a workspace, the same array in every call with the same shape and ``copy``."""
        if (shape, copy) not in self._workspaces:
            self._workspaces[shape, copy] = np.zeros(shape)
        return self._workspaces[shape, copy]

    def _outputs(self) -> np.ndarray:
        return self._original_order(self.arranged_outputs) - self._offset

    def _slopes_at(self, outputs: np.ndarray) -> np.ndarray:
        _, G = self.losses.value_gradient(outputs[:, None])
        return G[:, 0]

    def arrange(self, values: np.ndarray) -> np.ndarray:
        """Return values of the samples in the order of the sweeps."""
        return values if self.order is None else values[self.order]

    def _original_order(self, arranged: np.ndarray) -> np.ndarray:
        if self.order is None:
            return arranged
        values = np.empty_like(arranged)
        values[self.order] = arranged
        return values


class Sweeper:
    """Sweeps over the columns of a design, with threads where that pays."""

    def __init__(self, state: SweepState, design: Design) -> None:
        self.columns, self.rows = state.lines(design)
        self.n_threads = state.n_threads
        self._column_parts = column_parts(self.columns, self.n_threads)
        targets = state.arranged_y, state.arranged_outputs, state.arranged_weights
        self._losses = state.loss, state.smoothness, *targets
        self._workspace = state.workspace
        self._arrange = state.arrange
        self._slopes = state.arranged_slopes

    def __call__(self, theta, omegas, values, P, scales, ridges) -> float:  # type: ignore[no-untyped-def]
        """Sweep over at most eight units P, dummies first, with the states ``values`` (8, q, n)."""
        # For sparse columns the state of a sample is contiguous; for full ones each entry is, over all samples.
        n = values.shape[2]
        width = values.shape[1] + 1
        is_full = self.columns.indices is None
        state = self._workspace((width, n)).T if is_full else self._workspace((n, width))
        state[:, 0] = self._slopes

        dummies = P.shape[1] - self.columns.size
        losses_and_units = (*self._losses, state, values, P, scales, ridges)
        if self._in_threads():
            arguments = (theta, omegas, self.columns, self.rows, *losses_and_units, dummies, self._column_parts)
            decrease = in_turn(parallel_sweep_units, *arguments)
        else:
            # Loops that a kernel does not need are not compiled.
            cancels = omegas is None and (theta is None or len(theta) > 1)
            rows = self.rows if cancels else None
            decrease = sweep_units(theta, omegas, self.columns, rows, *losses_and_units, dummies or None)
        self._slopes[:] = state[:, 0]
        return decrease

    def features(self, features: np.ndarray, out: np.ndarray) -> None:
        """Set out (8, 1, n) to the features (n, k <= 8) of some units."""
        out[: features.shape[1], 0] = self._arrange(features).T

    def degrees(self, theta: tuple[float, ...], P: np.ndarray, out: np.ndarray) -> None:
        """Set out (8, m - 1, n) to A^1, ..., A^{m-1} for at most eight units P, without the part of dummies."""
        P = np.ascontiguousarray(P[:, P.shape[1] - self.columns.size :])
        if self.columns.indices is None:
            anova_degrees_of_columns(self.columns, P, out)
        elif self._in_threads():
            in_turn(parallel_anova_degrees, theta, self.rows, pack(P), 0, out, self.n_threads)
        else:
            anova_degrees(theta, self.rows, pack(P), 0, out, 0, self.rows.size)

    def _in_threads(self) -> bool:
        return self._column_parts is not None and threads_usable()


class RelationSweeper:
    """Sweeps over the columns of tables, for pairs and linear terms, with the squared loss; without threads."""

    def __init__(self, state: SweepState, design: RelationDesign) -> None:
        tables = self._tables = design.tables
        places = constant(design.places.T, np.uint32)
        self._data = tables.column_lines, tables.row_lines, design.cuts, places, state.arranged_weights
        self._slopes = state.arranged_slopes

    def __call__(self, theta, omegas, values, P, scales, ridges) -> float:  # type: ignore[no-untyped-def]
        """Sweep over units P, in the same way as a ``Sweeper``, for theta (1.0,) or (0.0, 1.0)."""
        linear = len(theta) == 1
        own = np.ascontiguousarray(self._tables.project(P).T)
        decreases = [
            sweep_tables(*self._data, self._slopes, own[s], P[s], scales[s], ridges[s], linear)
            for s in np.flatnonzero(scales)
        ]
        return max(decreases, default=0.0)

    def degrees(self, theta: tuple[float, ...], P: np.ndarray, out: np.ndarray) -> None:
        """Do nothing: sweeps start from the rows of tables, not from the samples."""


def column_parts(columns: Lines, n_threads: int) -> np.ndarray | None:
    """Return runs of columns (groups, n_threads + 1), in groups without common rows; None if threads do not pay."""
    if n_threads == 1 or columns.starts is None:
        return None
    groups = disjoint_groups(columns)
    entries = columns.starts.astype(np.int64)
    sizes = np.diff(entries[groups])
    if sizes.sum() < _MIN_ENTRIES_PER_THREAD * n_threads * len(sizes):
        return None
    fractions = np.arange(n_threads + 1) / n_threads
    targets = entries[groups[:-1], None] + fractions * sizes[:, None]
    parts = np.searchsorted(entries, targets)
    parts[:, 0] = groups[:-1]
    parts[:, -1] = groups[1:]
    return parts


def arrangement(designs: Iterable[Lines], n_threads: int) -> np.ndarray | None:
    """Return an order (n,) in which samples of one thread are contiguous, for each group; None if it does not pay."""
    designs = list(designs)
    if any(columns.indices is None for columns in designs):
        return None
    groups: list[tuple[Lines, np.ndarray]] = []
    for columns in designs:
        parts = column_parts(columns, n_threads)
        if parts is not None:
            groups.extend((columns, cuts) for cuts in parts)
    if not groups:
        return None

    n = designs[0].length
    key = np.zeros(n, np.int64)
    most_groups = int(math.log(max(n / _MIN_BLOCK_SAMPLES, 1.0), n_threads))
    for columns, cuts in groups[:most_groups]:
        key = n_threads * key + owners(columns, cuts)
    return np.argsort(key, kind="stable")


def arranged_lines(design: Design, order: np.ndarray | None) -> tuple[Lines, Lines]:
    """Return the columns, whose entries keep their order, and the rows of a design with its samples reordered."""
    if order is None:
        return design.column_lines, design.row_lines
    columns = design.column_lines
    position = np.empty(len(order), np.uint32)
    position[order] = np.arange(len(order))
    indices = constant(position[columns.indices], np.uint32)
    return columns._replace(indices=indices), row_lines(design.rows(order).matrix())
