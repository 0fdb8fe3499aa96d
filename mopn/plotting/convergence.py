"""How runs of solvers converge: their traces."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mopn.plotting.drawing import new_axes
from mopn.solvers import Result, Trace
from mopn.solvers.result import relative
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import quiet

_LABELS = {
    "time": "time [s]",
    "n_iter": "iteration",
    "nit": "iteration",
    "fun": "objective",
    "gap": "certified gap",
    "restricted_gap": "certified gap with these units",
    "relative_gap": "certified relative gap",
    "suboptimality": "relative suboptimality",
    "n_units": "units",
    "value": "dual norm found",
    "bound": "dual norm bound",
}
# Columns with a logarithmic axis.
_LOGARITHMIC = ("gap", "restricted_gap", "relative_gap", "suboptimality", "value", "bound")
# The axis of time is logarithmic if the longest run takes more than this multiple of the shortest.
_LOG_TIME_RATIO = 10.0
#: The colours of the norms in all figures of mopn: Okabe and Ito's palette, which the colour-blind can tell apart.
NORM_COLORS = {"l1": "#0072B2", "l1/l2": "#D55E00", "l1/linf": "#009E73"}


@quiet()
def plot_convergence(
    results: Result | Sequence[Result] | Mapping[str, Result],
    x: str = "time",
    y: str = "gap",
    ax: Any = None,
    **style: Any,
) -> Any:
    """Plot a column of one or many traces against another.

    Parameters
    ----------
    results : Result, sequence of Result, or mapping of label to Result
        Objects with a ``trace``, or fitted estimators with a ``trace_``. Labels that are norms have their colours,
        ``NORM_COLORS``.
    x : {"time", "n_iter", ...}, default "time"
        Column on the horizontal axis; seconds, or iterations. Time has a logarithmic axis if the longest run took ten
        times as long as the shortest.
    y : {"gap", "relative_gap", "suboptimality", "fun", "n_units", ...}, default "gap"
        Column on the vertical axis. ``"relative_gap"`` is the gap over the objective, ``"suboptimality"`` the relative
        distance of the objective to the best lower bound that any run has proven, so that no curve is too low; a dotted
        line marks the best objective of all runs, below which no curve can be. Both and gaps have a logarithmic axis,
        without points where nothing is proven yet (inf).
    ax : matplotlib Axes, optional
        Where to draw; default new axes.
    **style
        Options of the lines, such as ``marker=""``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For objects without a trace, and names of columns that are none.
    ValueError
        If a trace lacks the column, or no run has proven a bound.

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
    for name, column in {"x": x, "y": y}.items():
        if not isinstance(column, str):
            raise TypeError(f"{name} must be the name of a column of the trace, got {shown(column)}")
    traces = {label: _trace(result) for label, result in _results_by_label(results).items()}
    lower_bound = _best_lower_bound(traces.values()) if y == "suboptimality" else None
    xs = []
    ys = []
    for trace in traces.values():
        xs.append(_column(trace, x, "x"))
        ys.append(_column(trace, y, "y", lower_bound))

    ax = new_axes(ax)
    for label, x_values, y_values in zip(traces, xs, ys, strict=True):
        look = {"marker": ".", "markersize": 3, "label": label, "color": NORM_COLORS.get(label)} | style
        ax.plot(x_values, y_values, **look)
    if lower_bound is not None:
        best = np.fmin.reduce(np.concatenate(ys))
        ax.axhline(best, color="0.6", linestyle=":", linewidth=1, zorder=0)

    if y in _LOGARITHMIC and any((y_values > 0.0).any() for y_values in ys):
        ax.set_yscale("log")
    ends = [x_values[-1] for x_values in xs if len(x_values)]
    if x == "time" and max(ends, default=0.0) > _LOG_TIME_RATIO * min(ends, default=0.0) > 0.0:
        ax.set_xscale("log")
    ax.set_xlabel(_LABELS.get(x, x))
    ax.set_ylabel(_LABELS.get(y, y))
    ax.grid(True, alpha=0.3)
    if any(traces):
        ax.legend()
    return ax


def _results_by_label(results: Any) -> dict[str, Any]:
    if isinstance(results, Mapping) and not isinstance(results, Result):
        return dict(results)
    if isinstance(results, Result) or not isinstance(results, Sequence):
        return {"": results}
    return {f"run {index + 1}": result for index, result in enumerate(results)}


def _trace(result: Any) -> Trace:
    for name in ("trace", "trace_"):
        if isinstance(trace := getattr(result, name, None), Trace):
            return trace
    raise TypeError(
        f"results must be a Result, a fitted estimator, or a sequence or mapping of these, got {shown(result)}"
    )


def _best_lower_bound(traces: Iterable[Trace]) -> float:
    """Return the best lower bound that a run has proven, up to rounding: each run has its best one in the last row."""
    best = max((float(trace["fun"][-1] - trace["gap"][-1]) for trace in traces), default=-np.inf)
    if not np.isfinite(best):
        raise ValueError("no run has proven a lower bound of the minimum; take y='fun'")
    return best


def _column(trace: Trace, column: str, name: str, lower_bound: float | None = None) -> np.ndarray:
    """Return the values of a column, stored or computed; NaN where they are infinite, or not above the bound."""
    if column == "suboptimality":
        assert lower_bound is not None
        if lower_bound == 0:
            raise ValueError("the best lower bound is 0, to which no distance is relative; take y='fun'")
        above = (trace["fun"] - lower_bound) / abs(lower_bound)
        return np.where(above > 0, above, np.nan)
    if column == "relative_gap":
        values = np.array([relative(gap, fun) for gap, fun in zip(trace["gap"], trace["fun"], strict=True)])
    else:
        stored = "nit" if column == "n_iter" else column
        if stored not in trace:
            computed = ", or 'relative_gap' or 'suboptimality'" if name == "y" else ""
            raise ValueError(
                f"{name} must be a column of the trace ({', '.join(trace)}){computed}, got {shown(column)}"
            )
        values = trace[stored]
    return np.where(np.isfinite(values), values, np.nan)
