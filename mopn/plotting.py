"""Plots of traces (the extra ``plot``): convergence, and accuracy against the number of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mopn.core.validation import as_numbers
from mopn.solvers import Result, Trace
from mopn.solvers.checks import number, shown

__all__ = ["plot_accuracy", "plot_convergence"]

_LABELS = {
    "time": "time [s]",
    "nit": "iteration",
    "fun": "objective",
    "gap": "certified gap",
    "restricted_gap": "certified gap with these units",
    "relative_gap": "certified relative gap",
    "n_units": "units",
    "value": "dual norm found",
    "bound": "dual norm bound",
}
# Columns with a logarithmic axis.
_LOGARITHMIC = ("gap", "restricted_gap", "relative_gap", "value", "bound")


def plot_convergence(
    results: Result | Sequence[Result] | Mapping[str, Result], x: str = "time", y: str = "gap", ax: Any = None
) -> Any:
    """Plot a column of one or many traces against another.

    Parameters
    ----------
    results : Result, sequence of Result, or mapping of label to Result
        Objects with a ``trace``, or fitted estimators with a ``trace_``.
    x : {"time", "n_iter", ...}, default "time"
        Column on the horizontal axis; seconds, or iterations.
    y : {"gap", "relative_gap", "fun", "n_units", ...}, default "gap"
        Column on the vertical axis. ``"relative_gap"`` is the gap over the objective. Gaps are drawn on a logarithmic
        axis; where nothing is proven yet (inf) there is no point.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    KeyError
        If a trace lacks the column.
    TypeError
        For objects without a trace.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, strength=0.5)
    >>> result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=1e-2)
    >>> ax = plot_convergence({"l1/l2": result}, x="n_iter")
    >>> ax.get_xlabel(), ax.get_yscale()
    ('iteration', 'log')
    """
    for name, column in (("x", x), ("y", y)):
        if not isinstance(column, str):
            raise TypeError(f"{name} must be the name of a column, got {shown(column)}")
    traces = {label: _trace(result) for label, result in _named(results).items()}
    ax = _axes(ax)
    x = "nit" if x == "n_iter" else x
    for label, trace in traces.items():
        ax.plot(_column(trace, x), _column(trace, y), marker=".", markersize=3, label=label)
    if y in _LOGARITHMIC:
        ax.set_yscale("log")
    ax.set_xlabel(_LABELS.get(x, x))
    ax.set_ylabel(_LABELS.get(y, y))
    ax.grid(True, alpha=0.3)
    if any(traces):
        ax.legend()
    return ax


def plot_accuracy(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    baselines: Mapping[str, float] | None = None,
    ax: Any = None,
) -> Any:
    """Plot accuracy against the number of units, with horizontal lines for models without units.

    Parameters
    ----------
    curves : mapping of label to (n_units, accuracy)
        Two sequences of equal length each.
    baselines : mapping of label to accuracy, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If ``curves`` or ``baselines`` is not a mapping, or a curve is not a pair of numbers of equal length.
    ValueError
        If a baseline is not a finite number.
    """
    baselines = {} if baselines is None else baselines
    for name, values in (("curves", curves), ("baselines", baselines)):
        if not isinstance(values, Mapping):
            raise TypeError(f"{name} must be a mapping from labels, got {shown(values)}")
    pairs = {label: _pair(curve, label) for label, curve in curves.items()}
    levels = {label: number()(level, f"baselines[{label!r}]") for label, level in baselines.items()}
    ax = _axes(ax)
    for label, (units, accuracy) in pairs.items():
        ax.plot(units, accuracy, marker=".", markersize=4, label=label)
    for index, (label, level) in enumerate(levels.items()):
        ax.axhline(level, color="0.35", linestyle=("--", ":", "-.")[index % 3], label=label)
    ax.set_xlabel("units")
    ax.set_ylabel("accuracy")
    ax.grid(True, alpha=0.3)
    ax.legend()
    return ax


def _pair(curve: Any, label: Any) -> np.ndarray:
    """Return the numbers of units and the accuracies of a curve (2, k)."""
    pair = as_numbers(curve, f"curves[{label!r}]")
    if pair.ndim != 2 or len(pair) != 2:
        raise TypeError(f"curves[{label!r}] must be (n_units, accuracy), of equal length, got {shown(curve)}")
    return pair


def _named(results: Any) -> dict[str, Any]:
    if isinstance(results, Mapping) and not isinstance(results, Result):
        return dict(results)
    if isinstance(results, Result) or not isinstance(results, Sequence):
        return {"": results}
    return {f"run {index + 1}": result for index, result in enumerate(results)}


def _trace(result: Any) -> Trace:
    """Return the trace of a result, or of a fitted estimator."""
    for name in ("trace", "trace_"):
        if isinstance(trace := getattr(result, name, None), Trace):
            return trace
    raise TypeError(
        f"results must be a Result, a fitted estimator, or a sequence or mapping of these, got {shown(result)}"
    )


def _column(trace: Any, name: str) -> np.ndarray:
    if name == "relative_gap":
        return _finite(trace["gap"] / np.abs(trace["fun"]))
    return _finite(trace[name])


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.nan)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'mopn[plot]'") from None
    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]
