"""The state of coordinate descent: outputs and slopes of the losses, kept up to date."""

from __future__ import annotations

import numpy as np

from mopn.compiled.kernels import anova_degrees, pack, parallel_anova_degrees
from mopn.compiled.losses import CODES, SQUARED
from mopn.compiled.sweeps import disjoint_groups, parallel_sweep_units, sweep_units
from mopn.datafit import DataFit
from mopn.designs import Design

__all__ = ["Descent"]

# A group of disjoint columns with fewer entries than this a thread is not worth waking threads for.
_ENTRIES_A_THREAD = 10_000


class Descent:
    """Outputs o, and slopes w_i l'(y_i, o_i), of a problem with one output.

    For the squared loss sweeps maintain the slopes alone, which tell the outputs.

    Parameters
    ----------
    fit : DataFit
        Its weights are positive.
    outputs : ndarray of shape (n,)
        Without the offset.
    n_threads : int
    """

    def __init__(self, fit: DataFit, outputs: np.ndarray, n_threads: int = 1) -> None:
        self.fit, self.n_threads = fit, n_threads
        self.loss, self.smoothness = CODES[fit.loss.name], fit.loss.smoothness(1)
        self.y = np.ascontiguousarray(fit.y[:, 0], dtype=np.float64)
        self.offset = np.zeros(1) if fit.offset is None else np.ascontiguousarray(fit.offset[:, 0])
        self._outputs = outputs + self.offset
        self.slopes = fit.value_gradient(outputs[:, None])[1][:, 0].copy()
        self._rooms: dict[tuple[tuple[int, ...], int], np.ndarray] = {}

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return float(len(self.y) if self.fit.weights is None else self.fit.weights.sum())

    def value(self) -> float:
        """Return the sum of the losses."""
        if self.loss == SQUARED:
            self._outputs[:] = self.y + (self.slopes if self.fit.weights is None else self.slopes / self.fit.weights)
        return self.fit.value((self._outputs - self.offset)[:, None])

    def move(self, change: np.ndarray) -> None:
        """Add a change (n,) to the outputs."""
        if self.loss == SQUARED:
            self.slopes += change if self.fit.weights is None else self.fit.weights * change
        else:
            self._outputs += change
            self.slopes[:] = self.fit.value_gradient((self._outputs - self.offset)[:, None])[1][:, 0]

    def weighted(self, features: np.ndarray) -> np.ndarray:
        """Return the rows times the square roots of the sample weights."""
        return features if self.fit.weights is None else features * np.sqrt(self.fit.weights)[:, None]

    def sweeper(self, design: Design, begin: int = 0) -> Sweeper:
        """Return the sweeps over the columns of a design from ``begin`` on."""
        return Sweeper(self, design, begin)

    def room(self, shape: tuple[int, ...], copy: int = 0) -> np.ndarray:
        """Return an array to work in, the same one whenever the same shape is asked for."""
        if (shape, copy) not in self._rooms:
            self._rooms[shape, copy] = np.zeros(shape)
        return self._rooms[shape, copy]


class Sweeper:
    """Sweeps of a descent over the columns of a design, with threads where that pays."""

    def __init__(self, descent: Descent, design: Design, begin: int) -> None:
        self.columns, self.rows, self.begin = design.column_lines, design.row_lines, begin
        self.n_threads = descent.n_threads
        self._parts = self._make_parts()
        self._losses = (descent.loss, descent.smoothness, descent.y, descent._outputs, descent.fit.weights)
        self._room = descent.room
        self.slopes = descent.slopes

    def __call__(self, theta, omegas, values, P, scales, ridges) -> float:  # type: ignore[no-untyped-def]
        """Sweep over the units P, at most as many as ``values`` (8, q, n) holds: see ``sweep_units``."""
        state = self._room((values.shape[2], values.shape[1] + 1))
        state[:, 0] = self.slopes
        arguments = (theta, omegas, self.columns, self.rows, *self._losses, state, values, P, scales, ridges)
        if self._parts is None:
            slope = sweep_units(*arguments, self.begin)
        else:
            slope = parallel_sweep_units(*arguments, self._parts)
        self.slopes[:] = state[:, 0]
        return slope

    def degrees(self, theta: tuple[float, ...], P: np.ndarray, out: np.ndarray) -> None:
        """Set out (8, m - 1, n) to A^1, ..., A^{m-1} for at most eight units P."""
        if self._parts is None:
            anova_degrees(theta, self.rows, pack(P), 0, out, 0, self.rows.size)
        else:
            parallel_anova_degrees(theta, self.rows, pack(P), 0, out, self.n_threads)

    def _make_parts(self) -> np.ndarray | None:
        """Cut the columns for the threads, each group into parts of about equally many entries; None for one thread."""
        if self.n_threads == 1 or self.columns.starts is None:
            return None
        groups = disjoint_groups(self.columns)
        groups = np.unique(np.maximum(groups, self.begin))
        entries = self.columns.starts.astype(np.int64)
        sizes = np.diff(entries[groups])
        if sizes.sum() < _ENTRIES_A_THREAD * self.n_threads * len(sizes):
            return None
        targets = entries[groups[:-1], None] + np.arange(self.n_threads + 1) / self.n_threads * sizes[:, None]
        parts = np.searchsorted(entries, targets)
        parts[:, 0], parts[:, -1] = groups[:-1], groups[1:]
        return parts
