"""How runs of solvers converge: their traces."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mopn.plotting.drawing import new_axes
from mopn.solvers import Result, Trace
from mopn.solvers.result import relative
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import door

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
# Time has one if runs differ by this factor.
_LOG_TIME = 10.0
#: The colours of the norms in all figures of mopn (Okabe and Ito's, told apart by the colour-blind).
NORM_COLORS = {"l1": "#0072B2", "l1/l2": "#D55E00", "l1/linf": "#009E73"}


@door
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
    traces = {label: _trace(result) for label, result in _named(results).items()}
    reference = _minimum(traces.values()) if y == "suboptimality" else None
    curves = {label: (_column(trace, x, "x"), _column(trace, y, "y", reference)) for label, trace in traces.items()}
    ax = new_axes(ax)
    for label, curve in curves.items():
        ax.plot(*curve, **{"marker": ".", "markersize": 3, "label": label, "color": NORM_COLORS.get(label)} | style)
    if reference is not None:
        level = np.fmin.reduce(np.concatenate([values for _, values in curves.values()]))
        ax.axhline(level, color="0.6", linestyle=":", linewidth=1, zorder=0)
    if y in _LOGARITHMIC and any((values > 0.0).any() for _, values in curves.values()):
        ax.set_yscale("log")
    ends = [curve[0][-1] for curve in curves.values() if len(curve[0])]
    if x == "time" and max(ends, default=0.0) > _LOG_TIME * min(ends, default=0.0) > 0.0:
        ax.set_xscale("log")
    ax.set_xlabel(_LABELS.get(x, x))
    ax.set_ylabel(_LABELS.get(y, y))
    ax.grid(True, alpha=0.3)
    if any(traces):
        ax.legend()
    return ax


def _named(results: Any) -> dict[str, Any]:
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


def _minimum(traces: Iterable[Trace]) -> float:
    """Return the best proven lower bound, up to rounding: the last row of a run has its best one."""
    level = max((float(trace["fun"][-1] - trace["gap"][-1]) for trace in traces), default=-np.inf)
    if not np.isfinite(level):
        raise ValueError("no run has proven a lower bound of the minimum; take y='fun'")
    return level


def _column(trace: Trace, column: str, name: str, reference: float | None = None) -> np.ndarray:
    """Return the values of a column, stored or computed."""
    if column == "suboptimality":
        assert reference is not None
        if reference == 0:
            raise ValueError("the best lower bound is 0, to which no distance is relative; take y='fun'")
        above = (trace["fun"] - reference) / abs(reference)
        return np.where(above > 0, above, np.nan)
    if column == "relative_gap":
        values = np.array([relative(gap, fun) for gap, fun in zip(trace["gap"], trace["fun"], strict=True)])
    else:
        stored = "nit" if column == "n_iter" else column
        if stored not in trace:
            others = ", or 'relative_gap' or 'suboptimality'" * (name == "y")
            raise ValueError(f"{name} must be a column of the trace ({', '.join(trace)}){others}, got {shown(column)}")
        values = trace[stored]
    return np.where(np.isfinite(values), values, np.nan)
