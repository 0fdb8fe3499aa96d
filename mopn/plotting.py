"""Plots (the extra ``plot``): how runs converge, and what a model has learnt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mopn.data.validation import check_count
from mopn.models.fields import check_scale
from mopn.models.fitted import Fitted, fitted_model
from mopn.models.multi_output import Model
from mopn.solvers import Result, Trace
from mopn.solvers.tools.checks import number, shown

if TYPE_CHECKING:  # needs numba, which most plots do not
    from mopn.models.interactions import Interactions

__all__ = ["NORM_COLORS", "plot_contributions", "plot_convergence", "plot_interactions", "plot_unit"]

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
# Of what is positive and negative; and the map between them, with white for 0.
_POSITIVE, _NEGATIVE, _DIVERGING = "#b2182b", "#2166ac", "RdBu_r"


def plot_convergence(
    results: Result | Sequence[Result] | Mapping[str, Result],
    x: str = "time",
    y: str = "gap",
    ax: Any = None,
    *,
    reference: float | None = None,
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
        Column on the vertical axis. ``"relative_gap"`` is the gap over the objective, and ``"suboptimality"`` how far
        the objective is above ``reference``, relative. Both and gaps are drawn on a logarithmic axis; where nothing is
        proven yet (inf) there is no point.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.
    reference : float, optional
        The minimum of the problem, for ``"suboptimality"``. Default the best lower bound that any of the runs has
        proven, so that a curve is never too low, and the fastest solver does not set the level by which it is measured.
    **style
        Options of the lines, such as ``marker=""``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        For objects without a trace.
    ValueError
        If a trace lacks the column; if no run has proven a bound and there is no reference, or an objective is below
        it.

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
    traces = {label: _trace(result) for label, result in _named(results).items()}
    if y == "suboptimality":
        reference = _minimum(traces.values()) if reference is None else number()(reference, "reference")
    curves = {label: (_column(trace, x, "x"), _column(trace, y, "y", reference)) for label, trace in traces.items()}
    ax = _axes(ax)
    for label, curve in curves.items():
        ax.plot(*curve, **{"marker": ".", "markersize": 3, "label": label, "color": NORM_COLORS.get(label)} | style)
    if y in _LOGARITHMIC:
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


def plot_interactions(interactions: Interactions | Fitted, outputs: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Plot the weights of interactions: a heat map of products by outputs, or bars for one output.

    Parameters
    ----------
    interactions : Interactions, or a model or fitted estimator
        From :func:`mopn.strongest_interactions`, by default that of a model without other options.
    outputs : sequence of m labels, optional
        Names of the outputs; default the classes of a model, or numbers.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If there are no interactions, or the outputs are not one per weight.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> model = mopn.Model(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]), np.eye(2), kernel="anova")
    >>> ax = plot_interactions(mopn.strongest_interactions(model), outputs=["low", "high"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0 × 2', '1 × 2']
    """
    if isinstance(interactions, Fitted):
        from mopn.models.interactions import strongest_interactions

        model = fitted_model(interactions)
        outputs = _output_names(model, outputs)
        interactions = strongest_interactions(model)
    labels = [" × ".join(item.names) for item in interactions]
    return _plot_weights(labels, [item.weight for item in interactions], "weight", outputs, ax)


def plot_contributions(contributions: Sequence[Any], outputs: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Plot what fields and pairs of fields add to an output of one row: bars, or a heat map for several outputs.

    Parameters
    ----------
    contributions : Contributions
        From :func:`mopn.contributions`.
    outputs : sequence of m labels, optional
        Names of the outputs; default numbers.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If there are no contributions, or the outputs are not one per value.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> model = mopn.Model(np.array([[1.0, -1.0, 1.0, -1.0]]), np.array([[2.0]]), kernel="anova", target="vector")
    >>> X = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    >>> ax = plot_contributions(mopn.contributions(model, X[:1], X, {"user": [0, 1], "item": [2, 3]}))
    >>> ax.get_yticklabels()[0].get_text()
    'user × item'
    """
    labels = [" × ".join(item.fields) for item in contributions]
    return _plot_weights(labels, [item.value for item in contributions], "contribution to the output", outputs, ax)


def plot_unit(
    model: Fitted,
    unit: int = 0,
    *,
    names: Sequence[Any] | None = None,
    scale: Any = None,
    shape: tuple[int, int] | None = None,
    top: int = 10,
    outputs: Sequence[Any] | None = None,
    axes: Any = None,
) -> Any:
    """Plot a unit h_r beside its weights v_r in the outputs: as an image, or its coefficients of largest modulus.

    The signs of h_r mean nothing beyond which features have the same: h_r and -h_r are one unit.

    Parameters
    ----------
    model : Model or fitted estimator
    unit : int, default 0
        Its number r; those of dummies are left out.
    names : sequence of d labels, optional
        Names of the features; default those of the model, or numbers.
    scale : array-like of shape (d,), optional
        Typical sizes of the features, such as ``X.std(axis=0)``: the coefficients of X / scale are drawn. Default
        ``model.feature_scales``, by which the fit divided them.
    shape : (height, width), optional
        Features are pixels, row by row: the unit is drawn as an image.
    top : int, default 10
        How many coefficients are drawn, without a shape.
    outputs : sequence of m labels, optional
        Names of the outputs; default ``model.classes``, or numbers.
    axes : pair of matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    pair of matplotlib Axes
        Of the unit and of its weights.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        If it is neither a ``Model`` nor an estimator with one.
    ValueError
        If there is no such unit, or shape, scale or names do not fit the features.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> model = mopn.Model(np.array([[1.0, -2.0]]), np.array([[0.5, -0.5]]))
    >>> unit, weights = plot_unit(model, 0, names=["height", "width"], outputs=["low", "high"])
    >>> [label.get_text() for label in unit.get_yticklabels()]
    ['width', 'height']
    """
    machine: Any = fitted_model(model)
    if not isinstance(machine, Model):
        raise TypeError(
            "model must be a mopn.Model, or an estimator of networks; those of one output have no units h_r"
        )
    k, d = len(machine.basis), machine.n_features
    if isinstance(unit, bool) or not isinstance(unit, (int, np.integer)) or not 0 <= unit < k:
        raise ValueError(f"unit must be the number of one of {k} units, counted from 0, got {shown(unit)}")
    h, v = machine.basis[unit, machine.basis.shape[1] - d :], machine.weights[unit]
    scale = machine.feature_scales if scale is None else scale
    h = h if scale is None else h * check_scale(scale, d)
    if shape is not None and (len(shape) != 2 or shape[0] * shape[1] != d):
        raise ValueError(f"shape must be (height, width) of {d} pixels in all, got {shown(shape)}")
    labels = _checked_labels(machine.feature_names if names is None else names, d, "names")
    outputs = _checked_labels(_output_names(machine, outputs), len(v), "outputs")
    left, right = _two_axes() if axes is None else axes
    if shape is None:
        largest = np.argsort(-np.abs(h), kind="stable")[: check_count(top, "top")]
        _bars(left, [labels[j] for j in largest], h[largest])
        left.set_xlabel("coefficient" if scale is None else "coefficient of the scaled feature")
    else:
        left.imshow(h.reshape(shape), cmap=_DIVERGING, **_limits(h))
        left.set_xticks([])
        left.set_yticks([])
    left.set_title(f"unit {unit}")
    _bars(right, outputs, v)
    right.set_title("weights in the outputs")
    return left, right


def _plot_weights(labels: list[str], values: list[Any], words: str, outputs: Any, ax: Any) -> Any:
    """Draw numbers as bars, or arrays (m,) as the rows of a heat map."""
    if not labels:
        raise ValueError("there is nothing to plot: the list is empty")
    table = np.array(values, dtype=np.float64)
    if table.ndim == 1:
        ax = _axes(ax)
        _bars(ax, labels, table)
        ax.set_xlabel(words)
        return ax
    names = _checked_labels(outputs, table.shape[1], "outputs")
    ax = _axes(ax)
    image = ax.imshow(table, cmap=_DIVERGING, aspect="auto", **_limits(table))
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_xlabel("output")
    ax.figure.colorbar(image, ax=ax, label=words)
    return ax


def _bars(ax: Any, labels: Sequence[str], values: np.ndarray) -> None:
    """Draw horizontal bars, the first at the top."""
    ax.barh(range(len(values)), values, color=np.where(values >= 0, _POSITIVE, _NEGATIVE))
    ax.set_yticks(range(len(values)), labels)
    ax.invert_yaxis()
    ax.axvline(0.0, color="0.35", linewidth=0.8)
    ax.grid(True, axis="x", alpha=0.3)


def _limits(values: np.ndarray) -> dict[str, float]:
    """Return the limits of colours that leave 0 in the middle."""
    largest = float(np.abs(values).max()) or 1.0
    return {"vmin": -largest, "vmax": largest}


def _output_names(model: Any, outputs: Any) -> Any:
    """Return the names that are given, or the classes of a model with an output each, or None."""
    classes = getattr(model, "classes", None)
    if outputs is None and isinstance(model, Model) and classes is not None and len(classes) == model.weights.shape[1]:
        return classes
    return outputs


def _checked_labels(labels: Any, count: int, name: str) -> list[str]:
    """Return labels as strings, by default numbers."""
    labels = range(count) if labels is None else labels
    if not np.iterable(labels) or len(list(labels)) != count:
        raise ValueError(f"{name} must hold {count} labels, got {shown(labels)}")
    return [str(label) for label in labels]


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


def _minimum(traces: Iterable[Trace]) -> float:
    """Return the best lower bound that a run has proven, up to rounding: that of its last row is the best one."""
    level = max((float(trace["fun"][-1] - trace["gap"][-1]) for trace in traces), default=-np.inf)
    if not np.isfinite(level):
        raise ValueError("no run has proven a lower bound of the minimum; give the minimum as reference")
    return level


def _column(trace: Trace, column: str, name: str, reference: float | None = None) -> np.ndarray:
    """Return the values of a column, or what is computed from some."""
    if column == "suboptimality":
        assert reference is not None
        least = float(np.min(trace["fun"]))
        if least < reference or reference == 0:
            raise ValueError(f"reference must be the minimum, not 0, got {reference:g}, and a run has found {least:g}")
        above = (trace["fun"] - reference) / abs(reference)
        return np.where(above > 0, above, np.nan)
    values = trace["gap"] / np.abs(trace["fun"]) if column == "relative_gap" else _stored(trace, column, name)
    return np.where(np.isfinite(values), values, np.nan)


def _stored(trace: Trace, column: Any, name: str) -> np.ndarray:
    column = "nit" if column == "n_iter" else column
    if not (isinstance(column, str) and column in trace):
        raise ValueError(f"{name} must be a column of the trace ({', '.join(trace)}), got {shown(column)}")
    return trace[column]


def _axes(ax: Any) -> Any:
    return _pyplot().subplots(figsize=(6.4, 4.2), layout="constrained")[1] if ax is None else ax


def _two_axes() -> Any:
    return _pyplot().subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")[1]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'mopn[plot]'") from None
    return plt
