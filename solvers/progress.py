"""How far a run is, and a bar of tqdm that shows it."""

from __future__ import annotations

import math
import sys
from typing import Literal, NamedTuple

__all__ = ["Progress", "ProgressBar", "Verbose", "say"]

Verbose = int | Literal["bar"]


def say(verbose: Verbose, text: str) -> None:
    """Print what a call does now, if it is to print lines."""
    if verbose and verbose != "bar":
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


class Progress(NamedTuple):
    """How far a run is: numbers alone, for ``minimize(progress=...)``.

    Attributes
    ----------
    nit : int
        Number of the last iteration recorded; -1 before the first.
    refit_nit : int
        Number of iterations of refits so far.
    fun : float
        The present objective; within a refit, that of the refit.
    gap : float
        The gap of the last iteration recorded.
    time : float
        Seconds so far, callbacks and printing excluded.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 5))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=1.0)
    >>> def progress(now):
    ...     print(f"{now.nit} rounds, {now.refit_nit} iterations of refits: {now.fun:.5g}, {now.time:.0f} s")
    >>> result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(), max_time=0.5, progress=progress)
    """

    nit: int
    refit_nit: int
    fun: float
    gap: float
    time: float


class ProgressBar:
    """A function for ``minimize(progress=...)`` that draws a bar; tqdm shows a widget in notebooks.

    The bar is full when the relative gap, in logarithms from its first finite value on, reaches the tolerance, or the
    run a limit of iterations or of time, whichever is nearer.

    Parameters
    ----------
    tol : float
    max_iter : int or None
    max_time : float or None
        Of the run.

    Raises
    ------
    ImportError
        If tqdm is not installed.
    """

    def __init__(self, tol: float, max_iter: int | None, max_time: float | None) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("verbose='bar' needs the package tqdm: pip install tqdm") from error
        self.tol, self.max_iter, self.max_time = tol, max_iter, max_time
        self.first = math.nan
        self.bar = tqdm(total=1.0, bar_format="{percentage:3.0f}%|{bar}| {elapsed}{postfix}")

    def __call__(self, now: Progress) -> None:
        """Draw the bar, with the objective and the relative gap beside it."""
        gap = now.gap / max(abs(now.fun), math.ulp(0.0))
        self.bar.n = max(self.bar.n, self._done(now, gap))
        known = f", gap {gap:.1e}" if math.isfinite(gap) else ""
        self.bar.set_postfix_str(f"objective {now.fun:.6g}{known}, {max(now.nit, 0)} iterations")

    def _done(self, now: Progress, gap: float) -> float:
        parts = [0.0]
        if 0.0 < gap < math.inf:
            self.first = gap if math.isnan(self.first) else self.first
            if 0.0 < self.tol < self.first:
                parts.append(math.log(self.first / gap) / math.log(self.first / self.tol))
        if self.max_iter:
            parts.append(now.nit / self.max_iter)
        if self.max_time:
            parts.append(now.time / self.max_time)
        return min(max(parts), 1.0)

    def close(self) -> None:
        """End the line of the bar."""
        self.bar.close()
