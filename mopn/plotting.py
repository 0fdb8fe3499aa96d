"""Plots (the extra ``plot``): convergence, performance profiles, accuracy against size, what a model has learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mopn.core.validation import as_numbers, check_count
from mopn.models.fields import check_scale
from mopn.models.multi_output import Model
from mopn.solvers import Result, Trace
from mopn.solvers.checks import choice, number, shown

__all__ = [
    "NORM_COLORS",
    "plot_accuracy",
    "plot_contributions",
    "plot_convergence",
    "plot_interactions",
    "plot_profile",
    "plot_suboptimality",
    "plot_unit",
    "profile_ratios",
]

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
_SIZES = {"units": "units", "bytes": "size of the model [bytes]", "seconds": "time of a prediction [s]"}
# Columns with a logarithmic axis.
_LOGARITHMIC = ("gap", "restricted_gap", "relative_gap", "value", "bound")
#: The colours of the norms in all figures of mopn (Okabe and Ito's, told apart by the colour-blind).
NORM_COLORS = {"l1": "#0072B2", "l1/l2": "#D55E00", "l1/linf": "#009E73"}
# Of what is positive and negative; and the map between them, with white for 0.
_POSITIVE, _NEGATIVE, _DIVERGING = "#b2182b", "#2166ac", "RdBu_r"


def plot_convergence(
    results: Result | Sequence[Result] | Mapping[str, Result], x: str = "time", y: str = "gap", ax: Any = None
) -> Any:
    """Plot a column of one or many traces against another.

    Parameters
    ----------
    results : Result, sequence of Result, or mapping of label to Result
        Objects with a ``trace``, or fitted estimators with a ``trace_``. Labels that are norms have their colours,
        ``NORM_COLORS``.
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
        ax.plot(
            _column(trace, x), _column(trace, y), marker=".", markersize=3, label=label, color=NORM_COLORS.get(label)
        )
    if y in _LOGARITHMIC:
        ax.set_yscale("log")
    ax.set_xlabel(_LABELS.get(x, x))
    ax.set_ylabel(_LABELS.get(y, y))
    ax.grid(True, alpha=0.3)
    if any(traces):
        ax.legend()
    return ax


def plot_suboptimality(
    results: Result | Sequence[Result] | Mapping[str, Result],
    reference: float | None = None,
    x: str = "time",
    ax: Any = None,
) -> Any:
    """Plot how far the objectives of runs are above the minimum of their problem, relative.

    Parameters
    ----------
    results : Result, sequence of Result, or mapping of label to Result
        Runs on one problem, as for :func:`plot_convergence`.
    reference : float, optional
        The minimum. Default the best lower bound that any of the runs has proven, so that a curve is never too low,
        and the fastest solver does not set the level by which it is measured.
    x : {"time", "n_iter", ...}, default "time"
        Column on the horizontal axis.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.

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
        If no run has proven a bound and there is no reference, if the reference is 0, or if an objective is below it.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, strength=0.5)
    >>> solvers = {refit: mopn.solvers.ConditionalGradient(refit=refit) for refit in ("full", "output")}
    >>> runs = {name: mopn.minimize(problem, solver, tol=1e-3) for name, solver in solvers.items()}
    >>> plot_suboptimality(runs).get_ylabel()
    'objective above the best proven lower bound, relative'
    """
    traces = {label: _trace(result) for label, result in _named(results).items()}
    if reference is None:
        level = max((float(np.max(trace["fun"] - trace["gap"])) for trace in traces.values()), default=-np.inf)
        words = "objective above the best proven lower bound, relative"
        if not np.isfinite(level):
            raise ValueError("no run has proven a lower bound of the minimum; give the minimum as reference")
    else:
        level, words = number()(reference, "reference"), "objective above the reference, relative"
    least = min((float(np.min(trace["fun"])) for trace in traces.values()), default=level)
    if least < level or level == 0:
        raise ValueError(f"reference must be the minimum, not 0, got {level:g}, and a run has found {least:g}")
    ax, x = _axes(ax), "nit" if x == "n_iter" else x
    for label, trace in traces.items():
        above = (trace["fun"] - level) / abs(level)
        ax.plot(_column(trace, x), np.where(above > 0, above, np.nan), marker=".", markersize=3, label=label)
    ax.set_yscale("log")
    ax.set_xlabel(_LABELS.get(x, x))
    ax.set_ylabel(words)
    ax.grid(True, alpha=0.3)
    if any(traces):
        ax.legend()
    return ax


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
    times = as_numbers(times, "times").astype(np.float64)
    if times.ndim != 2 or np.isnan(times).any() or (times <= 0).any():
        raise ValueError(f"times must be positive, of shape (problems, solvers), inf if not solved; got {shown(times)}")
    fastest = times.min(axis=1, keepdims=True, initial=np.inf)
    return np.where(np.isfinite(times), times / np.where(np.isfinite(fastest), fastest, 1.0), np.inf)


def plot_profile(times: Mapping[str, Sequence[float]], ax: Any = None, **style: Any) -> Any:
    """Plot performance profiles: the share of problems that a solver brings to the end within a factor of the fastest.

    The words below the axis say how to read it. Times are relative to the fastest of *these* solvers, so leaving one
    out may change all other curves (Gould and Scott, 2016).

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
    TypeError
        If ``times`` is not a mapping.
    ValueError
        If there are no times, or not as many for each solver, or if some are not positive.

    References
    ----------
    Dolan and Moré: Benchmarking optimization software with performance profiles. Mathematical Programming, 2002.

    Examples
    --------
    >>> ax = plot_profile({"fast": [1.0, 1.0, np.inf], "sure": [2.0, 3.0, 5.0]})
    >>> [float(line.get_ydata()[-1].round(2)) for line in ax.get_lines()]
    [0.67, 1.0]
    """
    if not isinstance(times, Mapping):
        raise TypeError(f"times must be a mapping from the solvers' labels, got {shown(times)}")
    if len({len(seconds) for seconds in times.values()}) != 1 or not len(next(iter(times.values()))):
        raise ValueError("times must hold the times of every solver on the same problems, one at least")
    of_fastest = profile_ratios(np.column_stack(list(times.values())))
    problems = len(of_fastest)
    right = 1.3 * max(10.0, of_fastest[np.isfinite(of_fastest)].max(initial=1.0))
    ax = _axes(ax)
    for label, column in zip(times, of_fastest.T, strict=True):
        factors = np.sort(column[np.isfinite(column)])
        shares = np.arange(1, len(factors) + 1) / problems
        ends = shares[-1] if len(shares) else 0.0
        ax.step(np.r_[1.0, factors, right], np.r_[0.0, shares, ends], where="post", label=label, **style)
    ax.set_xscale("log")
    ax.set(xlim=(1.0, right), ylim=(0.0, 1.02), ylabel=f"share of {problems} problems")
    ax.set_xlabel("time over that of the fastest solver on a problem\n(left edge: the fastest; right: ended at all)")
    ax.grid(True, alpha=0.3)
    ax.legend()
    return ax


def plot_accuracy(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    baselines: Mapping[str, float] | None = None,
    ax: Any = None,
    *,
    x: str = "units",
) -> Any:
    """Plot accuracy against the size of models or their latency, with horizontal lines for baselines.

    Parameters
    ----------
    curves : mapping of label to (sizes, accuracies)
        Two sequences of equal length each.
    baselines : mapping of label to accuracy, optional
        Of models without units, for instance.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.
    x : {"units", "bytes", "seconds"}, default "units"
        What the sizes are: the number of units; the bytes of the model's file; or the seconds that a prediction takes.
        The last two have a logarithmic axis.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If ``curves`` or ``baselines`` is not a mapping, or a curve is not a pair of numbers of equal length.
    ValueError
        If a baseline is not a finite number.

    Examples
    --------
    >>> ax = plot_accuracy({"network": ([5, 10, 20], [0.90, 0.95, 0.97])}, baselines={"linear": 0.93})
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('units', ['network', 'linear'])
    """
    baselines = {} if baselines is None else baselines
    for name, values in (("curves", curves), ("baselines", baselines)):
        if not isinstance(values, Mapping):
            raise TypeError(f"{name} must be a mapping from labels, got {shown(values)}")
    words = _SIZES[choice(_SIZES)(x, "x")]
    pairs = {label: _pair(curve, label) for label, curve in curves.items()}
    levels = {label: number()(level, f"baselines[{label!r}]") for label, level in baselines.items()}
    ax = _axes(ax)
    for label, (units, accuracy) in pairs.items():
        ax.plot(units, accuracy, marker=".", markersize=4, label=label, color=NORM_COLORS.get(label))
    for index, (label, level) in enumerate(levels.items()):
        ax.axhline(level, color="0.35", linestyle=("--", ":", "-.")[index % 3], label=label)
    if words != "units":
        ax.set_xscale("log")
    ax.set_xlabel(words)
    ax.set_ylabel("accuracy")
    ax.grid(True, alpha=0.3)
    ax.legend()
    return ax


def plot_interactions(interactions: Sequence[Any], outputs: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Plot the weights of interactions: a heat map of products by outputs, or bars for one output.

    Parameters
    ----------
    interactions : Interactions
        From :func:`mopn.strongest_interactions`.
    outputs : sequence of m labels, optional
        Names of the outputs, such as ``model.classes``; default numbers.
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
    model: Model,
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
    model : Model
    unit : int, default 0
        Its number r; those of dummies are left out.
    names : sequence of d labels, optional
        Names of the features; default numbers.
    scale : array-like of shape (d,), optional
        Typical sizes of the features, such as ``X.std(axis=0)``: the coefficients of X / scale are drawn.
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
        If it is not a ``Model``.
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
    if not isinstance(model, Model):
        raise TypeError(f"model must be a mopn.Model, such as the attribute model_ of a classifier, got {shown(model)}")
    k, d = len(model.basis), model.n_features
    if isinstance(unit, bool) or not isinstance(unit, (int, np.integer)) or not 0 <= unit < k:
        raise ValueError(f"unit must be the number of one of {k} units, counted from 0, got {shown(unit)}")
    h, v = model.basis[unit, model.basis.shape[1] - d :], model.weights[unit]
    h = h if scale is None else h * check_scale(scale, d)
    if shape is not None and (len(shape) != 2 or shape[0] * shape[1] != d):
        raise ValueError(f"shape must be (height, width) of {d} pixels in all, got {shown(shape)}")
    labels = _checked_labels(names, d, "names")
    classes = model.classes if model.classes is not None and len(model.classes) == len(v) else None
    outputs = _checked_labels(classes if outputs is None else outputs, len(v), "outputs")
    left, right = _two_axes() if axes is None else axes
    if shape is None:
        largest = np.argsort(-np.abs(h), kind="stable")[: check_count(top, "top")]
        _bars(left, [labels[j] for j in largest], h[largest])
        left.set_xlabel("coefficient")
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


def _checked_labels(labels: Any, count: int, name: str) -> list[str]:
    """Return labels as strings, by default numbers."""
    labels = range(count) if labels is None else labels
    if not np.iterable(labels) or len(list(labels)) != count:
        raise ValueError(f"{name} must hold {count} labels, got {shown(labels)}")
    return [str(label) for label in labels]


def _pair(curve: Any, label: Any) -> np.ndarray:
    """Return the sizes and the accuracies of a curve (2, k)."""
    pair = as_numbers(curve, f"curves[{label!r}]")
    if pair.ndim != 2 or len(pair) != 2:
        raise TypeError(f"curves[{label!r}] must be (sizes, accuracies), of equal length, got {shown(curve)}")
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
    return _pyplot().subplots(figsize=(6.4, 4.2), layout="constrained")[1] if ax is None else ax


def _two_axes() -> Any:
    return _pyplot().subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")[1]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'mopn[plot]'") from None
    return plt
