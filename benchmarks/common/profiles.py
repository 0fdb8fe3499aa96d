"""Performance profiles (Dolan and Moré, 2002): how often a solver is how many times slower than the fastest one."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np


def profile_ratios(times: Any) -> np.ndarray:
    """Return times over the fastest solver's time on each problem, for performance profiles.

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


def plot_profile(times: Mapping[str, Sequence[float]], ax: Any = None, **style: Any) -> Any:
    """Plot performance profiles: the fraction of problems that a solver ends within a factor of the fastest's time.

    At the left edge: on how many it is the fastest; at the right edge: how many it ends at all. Times are relative to
    the fastest of *these* solvers, so leaving one out may change all other curves (Gould and Scott, 2016).
    """
    of_fastest = profile_ratios(np.column_stack([*times.values()]))
    problems = len(of_fastest)
    right = 1.3 * max(10.0, of_fastest[np.isfinite(of_fastest)].max(initial=1.0))
    ax = plt.figure().add_subplot() if ax is None else ax
    for label, column in zip(times, of_fastest.T, strict=True):
        factors = np.sort(column[np.isfinite(column)])
        fractions = np.arange(1, len(factors) + 1) / problems
        ends = fractions[-1] if len(fractions) else 0.0
        ax.step(np.r_[1.0, factors, right], np.r_[0.0, fractions, ends], where="post", label=label, **style)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set(xlim=(1.0, right), ylim=(0.0, 1.02), ylabel=f"fraction of {problems} problems")
    ax.set_xlabel("time over the fastest solver's on a problem")
    ax.legend()
    return ax
