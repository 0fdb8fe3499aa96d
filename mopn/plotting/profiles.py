"""Performance profiles (Dolan and Moré, 2002): how often a solver is how many times slower than the fastest one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mopn.data.validation import as_numbers
from mopn.plotting.drawing import new_axes
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.door import door

__all__ = ["plot_profile", "profile_ratios"]


def profile_ratios(times: Any) -> np.ndarray:
    """Return times over that of the fastest solver on each problem: what performance profiles count.

    Parameters
    ----------
    times : array-like of shape (problems, solvers)
        Seconds until a problem was solved, inf if it was not.

    Returns
    -------
    ndarray of shape (problems, solvers)
        At least 1; inf where a problem was not solved.

    Examples
    --------
    >>> profile_ratios([[1.0, 2.0], [np.inf, 3.0], [np.inf, np.inf]])
    array([[ 1.,  2.],
           [inf,  1.],
           [inf, inf]])
    """
    times = np.asarray(times, dtype=float)
    fastest = times.min(axis=1, keepdims=True, initial=np.inf)
    return np.where(np.isfinite(times), times / np.where(np.isfinite(fastest), fastest, 1.0), np.inf)


@door
def plot_profile(times: Mapping[str, Sequence[float]], ax: Any = None, **style: Any) -> Any:
    """Plot performance profiles: the fraction of problems that a solver ends within a factor of the fastest's time.

    At the left edge: on how many it is the fastest; at the right edge: how many it ends at all. Times are relative to
    the fastest of *these* solvers, so leaving one out may change all other curves (Gould and Scott, 2016).

    Parameters
    ----------
    times : mapping of label to sequence of seconds
        Of each solver on the same problems in the same order, such as the times to a proven gap; inf where it was not
        reached. Problems that no solver ends count against all.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.
    **style
        Options of the lines, such as ``linewidth=2``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If times are not a mapping of sequences, equally long, of positive numbers.

    References
    ----------
    Dolan and Moré, Benchmarking optimization software with performance profiles, Mathematical Programming 91, 2002.

    Examples
    --------
    >>> ax = plot_profile({"a": [1.0, 1.0, 3.0, 2.0], "b": [2.0, 4.0, 1.0, float("inf")]})
    >>> ax.get_ylabel(), ax.get_xscale()
    ('fraction of 4 problems', 'log')
    """
    of_fastest = profile_ratios(_table(times))
    problems = len(of_fastest)
    right = 1.3 * max(10.0, of_fastest[np.isfinite(of_fastest)].max(initial=1.0))
    ax = new_axes(ax)
    for label, column in zip(times, of_fastest.T, strict=True):
        factors = np.sort(column[np.isfinite(column)])
        fractions = np.arange(1, len(factors) + 1) / problems
        ends = fractions[-1] if len(fractions) else 0.0
        ax.step(np.r_[1.0, factors, right], np.r_[0.0, fractions, ends], where="post", label=label, **style)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set(xlim=(1.0, right), ylim=(0.0, 1.02), ylabel=f"fraction of {problems} problems")
    ax.set_xlabel("time over that of the fastest solver on a problem")
    ax.legend()
    return ax


def _table(times: Any) -> np.ndarray:
    """Return the times (problems, solvers)."""
    if not isinstance(times, Mapping) or not times:
        raise ValueError(f"times must be a mapping of labels to sequences of seconds, got {shown(times)}")
    columns = [as_numbers(seconds, f"times[{label!r}]") for label, seconds in times.items()]
    if any(column.shape != columns[0].shape or column.ndim != 1 or not (column > 0).all() for column in columns):
        raise ValueError(
            f"times must be sequences of positive seconds, one a problem, inf if unsolved; got {shown(times)}"
        )
    return np.column_stack(columns)
