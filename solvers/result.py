"""Status, trace and result of a run."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from mopn.solvers.tools.budgets import FAILURE
from mopn.solvers.tools.display import Displayed
from mopn.solvers.tools.signals import signals_later

# To type checkers a field that is not declared is an error; OptimizeResult has any.
if TYPE_CHECKING:
    import pandas

    OptimizeResult = dict[str, Any]
else:
    from scipy.optimize import OptimizeResult


class Status(IntEnum):
    """Why a run ended; printed, it says so in a sentence, ``status.message``, and what to do about it.

    Examples
    --------
    >>> import mopn
    >>> print(mopn.Status.MAX_ITER)
    MAX_ITER: max_iter iterations are done; raise max_iter to go on.
    """

    CONVERGED = 0
    MAX_ITER = 1
    MAX_TIME = 2
    STALLED = 3
    NONFINITE = 4
    MAX_UNITS = 5
    ESTIMATED = 6
    INTERRUPTED = 7
    CALLBACK_FAILED = 8
    FAILED = 9
    RETURNED = 10
    NO_BETTER_UNIT = 11
    NOT_BETTER_THAN_ZERO = 12
    LEVELLED_OFF = 13
    BEST_SCORE = 14
    RUNNING = 98
    STOPPED = 99

    @property
    def message(self) -> str:
        """The message of this status."""
        return _MESSAGES[self]

    @property
    def claims_tolerance(self) -> bool:
        """Whether the gap is at most the tolerance, as proven or as estimated."""
        return self in (Status.CONVERGED, Status.ESTIMATED)

    @property
    def ended_by_itself(self) -> bool:
        """Whether the solver ended, and nothing from outside ended it."""
        return self in (Status.CONVERGED, Status.STALLED, Status.MAX_ITER)

    @property
    def may_still_converge(self) -> bool:
        """Whether the final measurement may show that the tolerance is reached after all."""
        return self in (
            Status.MAX_ITER,
            Status.MAX_TIME,
            Status.MAX_UNITS,
            Status.ESTIMATED,
            Status.STALLED,
            Status.RETURNED,
            Status.NO_BETTER_UNIT,
            Status.LEVELLED_OFF,
        )

    @property
    def tells_gap(self) -> bool:
        """Whether the result may be good or bad, so that its message has the gap."""
        return self in (Status.MAX_UNITS, Status.ESTIMATED, Status.NO_BETTER_UNIT, Status.LEVELLED_OFF)

    @property
    def is_judged_by_gap(self) -> bool:
        """Whether the gap of the last network says how the fit ended."""
        return self in (Status.CONVERGED, Status.ESTIMATED, Status.LEVELLED_OFF, Status.STALLED, Status.MAX_UNITS)

    @property
    def warns(self) -> bool:
        """Whether a fit warns; other ends are success, or limits that the user sets."""
        return self in (Status.MAX_ITER, Status.NONFINITE, Status.NOT_BETTER_THAN_ZERO, Status.FAILED)

    @property
    def broke_off(self) -> bool:
        """Whether an interruption, an error or an overflow ended the run."""
        return self in (Status.INTERRUPTED, Status.CALLBACK_FAILED, Status.FAILED, Status.NONFINITE)

    @property
    def ends_path(self) -> bool:
        """Whether a regularization path ends with this run."""
        return self in (Status.MAX_TIME, Status.INTERRUPTED, Status.CALLBACK_FAILED, Status.FAILED, Status.STOPPED)

    @property
    def ends_outer_run(self) -> bool:
        """Whether a refit that ends so ends the whole run."""
        return self in (Status.INTERRUPTED, Status.FAILED)

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


# A bound is called loose, by estimate, if more than this fraction of the gap is beyond the estimated one.
_LOOSE_FRACTION = 0.01
# The gap of a perfect fit in rounding errors of the objective, at most: its lower bound has such an error, too.
_MAX_ROUNDINGS_OF_PERFECT_FIT = 4.0
# Rows of a trace that are shown at its beginning, and at its end: together they fill a screen.
_SHOWN_ENDS = 10
_MESSAGES = {
    Status.CONVERGED: "The stopping test holds: the tolerance is reached.",
    Status.MAX_ITER: "max_iter iterations are done; raise max_iter to go on.",
    Status.MAX_TIME: "max_time ended the run; raise max_time to go on.",
    Status.STALLED: "The last steps decreased the objective by rounding errors alone, or by too little to reach tol in "
    "a reasonable time. Scaled features (to [-1, 1], say) or a larger strength may help.",
    Status.NONFINITE: "The objective became infinite or NaN; the best point that is known is returned. "
    "Scale the features (to [-1, 1], say).",
    Status.MAX_UNITS: "max_units is reached (or 2 * max_units candidates were tried). The gap may be due "
    "to this limit, or to a loose bound: raise max_units, or take a tighter oracle.",
    Status.ESTIMATED: "No unit was found that lowers the objective by more than tol. A gap below tol is not proven, as "
    "the bound of the oracle is loose; a tighter oracle may prove it.",
    Status.INTERRUPTED: "Interrupted (Ctrl-C); the best point so far is returned.",
    Status.CALLBACK_FAILED: "The callback raised an exception (see `error`); the best point so far is returned.",
    Status.FAILED: "A numerical routine failed, or data could not be read (see `error`); the best point so far is "
    "returned.",
    Status.RETURNED: "The solver returned before the stopping test held; see the gap.",
    Status.NO_BETTER_UNIT: "The oracle of your own found no better unit in 20 rounds, or hardly; other units may be.",
    Status.NOT_BETTER_THAN_ZERO: "No pass led to a better model than zeros, which are returned. "
    "Scale the features (to [-1, 1], say), or give another step.",
    Status.LEVELLED_OFF: "The objective has levelled off: the last round lowered it by at most ftol, or its estimated "
    "gap is small. No gap below tol is proven.",
    Status.BEST_SCORE: "The network of the best score on the held-out samples is kept; its gap is larger than tol.",
    Status.RUNNING: "The run is under way.",
    Status.STOPPED: "The callback asked to stop (StopIteration).",
}


class Trace:
    """The history of a run: named columns of equal length, one row for each iteration.

    ``trace["fun"]`` is a column as an array; ``trace.columns`` are the names. A missing value is NaN. Times and counts
    are totals since the start of the run: do not add them up.

    Notes
    -----
    All solvers have these columns:

    * ``nit``: the number of the iteration, from 0;
    * ``time``: seconds, without callbacks and printing;
    * ``fun``: the objective;
    * ``gap``: its proven distance to the minimum; infinite without a proof.

    Conditional gradient adds, with slopes and gaps in the unit of the objective:

    * ``restricted_gap``: the proven distance to the best output weights of the same units;
    * ``estimated_gap``: an estimate of the gap, without a proof;
    * ``n_units``: the number of units;
    * ``value``: the steepest slope of the losses along a unit that the oracle found; the strength at the minimum;
    * ``bound``: the steepest slope along any unit, as proven; where it equals ``value`` the oracle is exact;
    * ``passes``: the passes over the rows of the data;
    * ``oracle_time``, ``proof_time``, ``refit_time``: seconds in the search for new units, in bounds, and in refits.

    Examples
    --------
    >>> import mopn
    >>> trace = mopn.solvers.Trace()
    >>> trace.append(fun=3.0)
    >>> trace.append(fun=2.0, gap=0.5)
    >>> trace.columns, trace["gap"]
    (('fun', 'gap'), array([nan, 0.5]))
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[float]] = {}
        self._length = 0

    def append(self, **row: float) -> None:
        """Add one row; new column names are filled with NaN above it."""
        for name in row:
            self._columns.setdefault(name, np.full(self._length, np.nan).tolist())
        self._length += 1
        for name, column in self._columns.items():
            column.append(float(row.get(name, np.nan)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    @property
    def last(self) -> dict[str, float]:
        """The last row."""
        return {name: column[-1] for name, column in self._columns.items()}

    def to_dict(self) -> dict[str, list[float]]:
        """Return a copy as a dictionary of lists."""
        return {name: list(column) for name, column in self._columns.items()}

    def to_frame(self) -> pandas.DataFrame:
        """Return a copy as a pandas DataFrame."""
        try:
            with signals_later():
                import pandas
        except ImportError as error:
            raise ImportError("Trace.to_frame needs pandas: pip install pandas; to_dict and to_csv do not") from error
        return pandas.DataFrame(self.to_dict())

    def __str__(self) -> str:
        """Return the trace as a table, of at most 20 rows: the first ten and the last ten."""
        cells = [list(self.columns)]
        cells += [[_cell(column, i) for column in self._columns.values()] for i in _shown_rows(self._length)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(map(str.rjust, line, widths)) for line in cells)
        return "\n".join(lines) if self._length else "Trace without rows"

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as comma-separated values, with the names in the first row; missing values are empty.

        Parameters
        ----------
        path : str or path
            An existing file is overwritten.
        """
        with open(path, "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(self.columns)
            for row in zip(*self._columns.values(), strict=True):
                rows.writerow("" if math.isnan(value) else repr(value) for value in row)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._columns:
            raise KeyError(f"the trace has no column {name!r}; it has {', '.join(self.columns) or 'none yet'}")
        return np.array(self._columns[name])

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows: {', '.join(self.columns)})"


class Result(Displayed, OptimizeResult):
    """Outcome of :func:`mopn.minimize`; a ``scipy.optimize.OptimizeResult`` with all fields present always.

    Attributes
    ----------
    x : ndarray
        The best point as a flat array. Problems add named views of it: networks ``basis`` (k, d), ``weights`` (k, m)
        and ``linear``; models of one output some of ``w``, ``intercept``, ``lams``, ``theta``, ``P`` and ``U``.
    fun : float
        The objective at the best point, recomputed from scratch at the end.
    lower : float
        Proven lower bound of the minimum, the largest of the run; ``-inf`` if none is known.
    dual : object or None
        The dual point that proves ``lower``: of network problems a :class:`mopn.core.gap.Dual`, else None.
    gap : float
        Upper bound of ``fun``, and of the exact objective at the point, minus the minimum: ``fun - lower`` plus
        ``rounding``, rounded up. ``inf`` if no bound is known.
    estimated_gap : float
        Estimate of ``fun`` minus the minimum: the gap if the best unit found at this point is the best one. Where it
        is far below ``gap``, a tighter oracle may prove more. Equal to ``gap`` where there is no estimate.
    restricted_gap : float
        Upper bound of ``fun`` minus the minimum over the weights alone, with the units as they are; at most ``gap``.
        The rest of ``gap`` can be gained only by other or more units, or is due to a loose bound.
    gap_is_proven : bool
        Whether ``gap`` and ``restricted_gap`` are finite and proven, rounding errors included, whatever their size.
    proof : str
        Proof of ``gap``: ``"deterministic"``; ``"probability 1 - 1e-09"`` over the random starts of an oracle,
        also in the runs that this one continues, with their seed if you gave one; or ``"none"``.
    rounding : float
        Bound of the rounding error in ``fun`` that ``gap`` includes, as far as the solver knows it.
    failure : float
        The largest probability that any bound of the run, or of those that it continues by ``start=result``, is false;
        less than 1e-9.
    success : bool
        Whether ``relative_gap <= tol`` or, for problems without a certificate, the solver's own stopping test holds.
    status : Status
        Why the run ended; ``message`` is the sentence for users.
    nit : int
        Number of iterations.
    refit_nit : int
        Number of iterations of all refits: of the runs on subproblems.
    time : float
        Seconds in the solver, callbacks and printing excluded.
    trace : Trace
        One row for each iteration.
    error : Exception or None
        The exception that a callback or a numerical routine raised.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 5))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=1.0)
    >>> result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-2)
    >>> result.status.name, result.relative_gap <= 1e-2, result.proof
    ('CONVERGED', True, 'deterministic')
    """

    x: np.ndarray
    fun: float
    lower: float
    dual: Any
    gap: float
    estimated_gap: float
    restricted_gap: float
    gap_is_proven: bool
    rounding: float
    proof: str
    failure: float
    success: bool
    status: Status
    message: str
    nit: int
    refit_nit: int
    time: float
    trace: Trace
    error: BaseException | None
    # Views of the point.
    basis: np.ndarray
    weights: np.ndarray
    linear: np.ndarray
    w: np.ndarray
    intercept: np.ndarray
    lams: np.ndarray
    theta: np.ndarray
    P: Any
    Q: Any
    U: Any

    @property
    def relative_gap(self) -> float:
        """The proven gap relative to ``abs(fun)``: 0.01 means at most 1 % above the minimum.

        It is 0 for a perfect fit: where objective and gap are rounding errors.
        """
        return relative(self.gap, self.fun, self.get("rounding", 0.0))

    def _entries(self) -> dict[str, str]:
        entries = {name: words(self[name]) for name, words in _WORDS.items() if name in self}
        return entries | {name: str(part.shape) for name, part in self.items() if isinstance(part, np.ndarray)}


# Entries of a result that are shown, besides the shapes of its arrays.
_WORDS: dict[str, Callable[[Any], str]] = {
    "status": lambda status: Status(status).name,
    "fun": "{:.6g}".format,
    "gap": "{:.3g}".format,
    "proof": repr,
    "nit": str,
    "time": "{:.3g}".format,
}


def relative(gap: float, fun: float, rounding: float = 0.0) -> float:
    """Return a gap as a share of the size of an objective; 0 for a perfect fit, up to rounding errors."""
    if gap == 0.0 or (abs(fun) <= rounding and gap <= _MAX_ROUNDINGS_OF_PERFECT_FIT * rounding < math.inf):
        return 0.0
    return gap / abs(fun) if fun != 0.0 else math.inf


def proof_in_words(gap: float, *, random: bool, seed: int | None) -> str:
    """Return the kind of the proof of a gap: certain, or over random starts of a seed."""
    if not math.isfinite(gap):
        return "none"
    if not random:
        return "deterministic"
    return f"probability 1 - {FAILURE:.0e}" + ("" if seed is None else f", over starts of seed {seed}")


def gap_in_words(result: Result) -> str:
    """Return the gap of a result, and its parts."""
    return parts_in_words(result.gap, result.restricted_gap, result.estimated_gap)


def parts_in_words(gap: float, restricted: float, estimated: float) -> str:
    """Return a gap, and its parts due to these and to other units; gaps without proof are called estimates."""
    if restricted == gap:
        return f"{gap:.3g}"
    with_these = f"{gap:.3g} (at most {restricted:.3g} with these units"
    others = max(min(estimated, gap) - restricted, 0.0)
    if gap - restricted - others <= _LOOSE_FRACTION * gap:
        return f"{with_these}, {gap - restricted:.3g} more with others)"
    return f"{with_these}; by estimate {others:.3g} more with others, the rest a loose bound)"


def _shown_rows(count: int) -> list[int | None]:
    """Return the rows of a trace that are shown; None stands for the rows between."""
    if count <= 2 * _SHOWN_ENDS:
        return list(range(count))
    return [*range(_SHOWN_ENDS), None, *range(count - _SHOWN_ENDS, count)]


def _cell(column: list[float], row: int | None) -> str:
    """Return a cell of a trace as text; "..." for rows that are left out."""
    if row is None:
        return "..."
    return "" if math.isnan(column[row]) else f"{column[row]:.5g}"
