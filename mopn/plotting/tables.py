"""What a model of tables has learnt: the effects of its columns, and of pairs of columns."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mopn.data.validation import check_count
from mopn.explain.column_effects import Effects, effects
from mopn.models.fitted import Fitted
from mopn.plotting.drawing import (
    checked_labels,
    colors,
    name_ticks,
    new_axes,
    output_names,
    plain,
    plot_weights,
    subplots,
)
from mopn.solvers.tools.checks import choice, shown
from mopn.solvers.tools.door import door

__all__ = ["plot_effect", "plot_pair", "plot_strengths"]

# Values of a column of numbers at which curves and heat maps are drawn.
_POINTS, _CELLS = 400, 80
# Bars of a histogram, and rows that are drawn as points.
_BINS, _ROWS = 40, 400
# A table with more cells has no numbers in them.
_WRITTEN = 100


@door
def plot_effect(
    model: Fitted,
    X: Any,
    column: str | int,
    *,
    scale: str = "output",
    outputs: Sequence[Any] | None = None,
    levels: int = 20,
    axes: Any = None,
) -> Any:
    """Plot the effect of a column on the outputs, above the distribution of its values.

    A column of numbers has a curve for every output, and a dotted line where it is missing; beyond the training data,
    where curves are constant, the ground is grey. A column of levels has bars.

    Parameters
    ----------
    model : TableModel or fitted estimator of tables
    X : DataFrame, array-like of shape (n, c), or dict
        The background, such as the training data; see :func:`mopn.explain.effects`.
    column : str or int
        Its name or index.
    scale : {"output", "probability"}, default "output"
        What is drawn: what the column adds to the outputs; or the probabilities of classes, if all other effects are
        0. Of two classes it is that of the second.
    outputs : sequence of labels, optional
        Names of the outputs; default the classes of the model, or numbers.
    levels : int, default 20
        How many levels are drawn, the most frequent ones.
    axes : pair of matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    pair of matplotlib Axes
        Of the effect and of the distribution.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        If it is not a model of tables, or if probabilities are requested that it does not have.
    ValueError
        For an unknown column.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> table = {"size": np.linspace(0, 3, 60), "color": ["red", "blue"] * 30}
    >>> model = TableRegressor(strength=mopn.Ratio(0.01)).fit(table, np.sin(table["size"]))
    >>> effect, distribution = plot_effect(model, table, "size")
    >>> effect.get_ylabel(), distribution.get_xlabel()
    ('effect on the output', 'size')
    """
    found, scale = effects(model, X), choice(("output", "probability"))(scale, "scale")
    j = found.index(column)
    lines = _Lines(found, scale, outputs)
    top, bottom = subplots(2, sharex=True, figsize=(6.4, 4.6), height_ratios=(4, 1)) if axes is None else axes
    if _is_number(found, j):
        _plot_curves(top, bottom, lines, j)
        _mark_dates(bottom.xaxis, X, found, j)
    else:
        _plot_levels(top, bottom, lines, j, check_count(levels, "levels"))
    if scale == "output":
        top.axhline(0.0, color="0.35", linewidth=0.8, zorder=1)
    top.set_ylabel(lines.ylabel)
    top.grid(True, alpha=0.3)
    top.set_axisbelow(True)
    bottom.set_ylabel("rows")
    bottom.locator_params(axis="y", nbins=2)
    if top.get_legend_handles_labels()[1]:
        _legend(top)
    return top, bottom


@door
def plot_pair(
    model: Fitted, X: Any, a: str | int, b: str | int, *, output: Any = None, levels: int = 8, ax: Any = None
) -> Any:
    """Plot the effect of a pair of columns on an output: what they add together, beyond what each adds alone.

    Two columns of numbers have a map, with rows of X as points to show where there are data; a column of numbers and
    one of levels have a curve for each level; two columns of levels have a table.

    Parameters
    ----------
    model : TableModel or fitted estimator of tables
    X : DataFrame, array-like of shape (n, c), or dict
        The background, such as the training data; see :func:`mopn.explain.effects`.
    a, b : str or int
        Names or indices of two columns.
    output : label of a class, or int, optional
        The class, or the number of the output; default that in which the effect varies most over X.
    levels : int, default 8
        How many levels of a column are drawn, the most frequent ones.
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
        If it is not a model of tables.
    ValueError
        For unknown columns or outputs, or one column twice.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> table = {"size": np.linspace(0, 3, 60), "color": ["red", "blue"] * 30}
    >>> y = np.sin(table["size"]) * np.tile([1.0, -1.0], 30)
    >>> ax = plot_pair(TableRegressor(strength=mopn.Ratio(0.01)).fit(table, y), table, "size", "color")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['red', 'blue']
    """
    found, levels = effects(model, X), check_count(levels, "levels")
    i, j = found.index(a), found.index(b)
    c, name = _output(found, output, i, j)
    if _is_number(found, j) and not _is_number(found, i):
        i, j = j, i
    ax = new_axes(ax)
    if _is_number(found, j):
        _plot_map(ax, found, i, j, c)
        _mark_dates(ax.yaxis, X, found, j)
    elif _is_number(found, i):
        _plot_curves_of_levels(ax, found, i, j, c, levels)
    else:
        _plot_cells(ax, found, i, j, c, levels)
    if _is_number(found, i):
        _mark_dates(ax.xaxis, X, found, i)
    columns = found.model.encoding.columns
    ax.set_xlabel(plain(columns[i]))
    ax.set_title(plain(f"{columns[i]} × {columns[j]}{name}"))
    return ax


@door
def plot_strengths(
    model: Fitted, X: Any, top: int = 15, *, outputs: Sequence[Any] | None = None, ax: Any = None
) -> Any:
    """Plot which columns and pairs of columns matter: the standard deviations of their effects.

    Parameters
    ----------
    model : TableModel or fitted estimator of tables
    X : DataFrame, array-like of shape (n, c), or dict
        The background, such as the training data; see :func:`mopn.explain.effects`.
    top : int, default 15
        How many effects are drawn, the strongest ones.
    outputs : sequence of labels, optional
        Names of the outputs; default the classes of the model, or numbers.
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
        If it is not a model of tables.
    ValueError
        If there is no effect, or the outputs are not one per deviation.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> table = {"size": np.linspace(0, 3, 60), "color": ["red", "blue"] * 30}
    >>> model = TableRegressor(strength=mopn.Ratio(0.01)).fit(table, np.sin(table["size"]))
    >>> ax = plot_strengths(model, table)
    >>> ax.get_yticklabels()[0].get_text()
    'size'
    """
    found = effects(model, X)
    strengths = found.strengths()[: check_count(top, "top")]
    labels = [" × ".join(item.columns) for item in strengths]
    chosen, names = _shown_outputs(found, outputs)
    deviations = [np.atleast_1d(item.deviation)[chosen].squeeze() for item in strengths]
    return plot_weights(labels, deviations, "standard deviation of the effect", names, ax)


class _Lines:
    """What is drawn of an effect: a line for every output or class; of two classes for the second alone."""

    def __init__(self, found: Effects, scale: str, outputs: Sequence[Any] | None) -> None:
        self.found, self.scale = found, scale
        if scale == "probability" and found.model.target in ("outputs", "vector"):
            raise TypeError("scale='probability': a model of numbers predicts no probabilities; take scale='output'")
        self.chosen, names = _shown_outputs(found, outputs)
        self.names = checked_labels(names, len(self.chosen), "outputs")
        self.ylabel = "effect on the output" if scale == "output" else "probability"
        if len(self.names) == 1 and names is not None:
            self.ylabel += f" of {plain(self.names[0])}"
            self.names = [""]

    def main(self, j: int, values: Any) -> np.ndarray:
        """Return the lines (n, count) of the effect of a column at some values."""
        effect = self.found.main(j, values).reshape(len(values), -1)
        if self.scale == "probability":
            effect = self.found.model._probabilities_of_labels(self.found.constant + effect)
        return effect[:, self.chosen]


def _plot_curves(top: Any, bottom: Any, lines: _Lines, j: int) -> None:
    """Draw the effect of a column of numbers, and their histogram."""
    x, encoding = lines.found.background.columns[j], lines.found.model.encoding.of_column(j)
    missing, (least, largest) = np.isnan(x), _range(lines.found, j)
    knots = encoding.numbers.knots[0]
    knots = knots[np.isfinite(knots)]
    grid = np.union1d(np.linspace(least, largest, _POINTS), knots[(knots > least) & (knots < largest)])
    curves = [
        top.plot(grid, y, label=plain(name))[0] for name, y in zip(lines.names, lines.main(j, grid).T, strict=True)
    ]
    if missing.any():
        for curve, level in zip(curves, lines.main(j, [np.nan])[0], strict=True):
            top.axhline(level, color=curve.get_color(), linestyle=":")
        top.plot([], [], color="0.35", linestyle=":", label=f"missing\n({missing.mean():.0%} of rows)")
    for first, last in ((least, knots[0]), (knots[-1], largest)):
        if first < last:
            top.axvspan(first, last, color="0.9", zorder=0)
    bottom.hist(x[~missing], bins=_BINS, color="0.6")
    bottom.set_xlabel(plain(encoding.columns[0]))


def _plot_levels(top: Any, bottom: Any, lines: _Lines, j: int, most: int) -> None:
    """Draw the effects of levels, and how many rows have them."""
    levels, counts, name = _frequent(lines.found, j, most)
    values = lines.main(j, levels)
    places, width = np.arange(len(levels)), 0.8 / values.shape[1]
    for c, (label, column) in enumerate(zip(lines.names, values.T, strict=True)):
        top.bar(places + (c + 0.5) * width - 0.4, column, width, label=plain(label))
    bottom.bar(places, counts, color="0.6")
    name_ticks(bottom, list(map(_text, levels)))
    bottom.set_xlabel(plain(name))


def _plot_map(ax: Any, found: Effects, i: int, j: int, c: int) -> None:
    """Draw the effect of two columns of numbers."""
    x, y = found.background.columns[i], found.background.columns[j]
    both = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    if not len(both):
        raise ValueError("no row of X has a value of both columns, so there is nothing to plot")
    grids = [np.linspace(v[both].min(), v[both].max(), _CELLS) for v in (x, y)]
    Z = _combinations(found, i, j, *grids)[..., c]
    # Colours are for the rows: where there are none, effects can be large.
    of_rows = colors(np.reshape(found.pair(i, j), (len(x), -1))[both, c])
    image = ax.pcolormesh(*grids, Z.T, shading="gouraud", rasterized=True, **of_rows)
    ax.figure.colorbar(image, ax=ax, label="effect on the output", extend="both")
    some = np.random.default_rng(0).permutation(both)[:_ROWS]
    ax.scatter(x[some], y[some], s=5, color="0.15", alpha=0.5, linewidths=0)
    ax.set_ylabel(plain(found.model.encoding.columns[j]))


def _plot_curves_of_levels(ax: Any, found: Effects, i: int, j: int, c: int, most: int) -> None:
    """Draw the effect of a column of numbers i and one of levels j."""
    grid = np.linspace(*_range(found, i), _POINTS)
    levels, _, name = _frequent(found, j, most)
    for level, curve in zip(levels, _combinations(found, i, j, grid, levels)[..., c].T, strict=True):
        ax.plot(grid, curve, label=plain(_text(level)))
    ax.axhline(0.0, color="0.35", linewidth=0.8, zorder=1)
    ax.grid(True, alpha=0.3)
    ax.set_ylabel("effect on the output")
    _legend(ax, title=plain(name))


def _plot_cells(ax: Any, found: Effects, i: int, j: int, c: int, most: int) -> None:
    """Draw the effect of two columns of levels."""
    (across, _, _), (down, _, name) = _frequent(found, i, most), _frequent(found, j, most)
    Z = _combinations(found, i, j, across, down)[..., c].T
    image = ax.imshow(Z, aspect="auto", **colors(Z))
    ax.figure.colorbar(image, ax=ax, label="effect on the output")
    if Z.size <= _WRITTEN:
        for (row, column), value in np.ndenumerate(Z):
            dark = abs(value) > 0.6 * np.abs(Z).max()
            ax.text(column, row, f"{value:.2g}", ha="center", va="center", color="white" if dark else "0.15")
    name_ticks(ax, list(map(_text, across)))
    ax.set_yticks(range(len(down)), [plain(_text(level)) for level in down])
    ax.set_ylabel(plain(name))


def _combinations(found: Effects, i: int, j: int, u: Any, v: Any) -> np.ndarray:
    """Return the effect (len(u), len(v), m) of two columns at all combinations of their values."""
    rows, columns = np.indices((len(u), len(v))).reshape(2, -1)
    values = found.pair(i, j, [u[r] for r in rows], [v[c] for c in columns])
    return values.reshape(len(u), len(v), -1)


def _shown_outputs(found: Effects, outputs: Any) -> tuple[list[int], Any]:
    """Return the numbers of the outputs that are shown, and their names or None: of two classes only the second's."""
    model, count = found.model, np.size(found.constant)
    if model.target == "labels" and model.classes is not None and len(model.classes) == 2:
        return [-1], model.classes[1:] if outputs is None else outputs
    return list(range(count)), output_names(model, outputs)


def _output(found: Effects, output: Any, i: int, j: int) -> tuple[int, str]:
    """Return the number of an output and what a title says of it."""
    chosen, names = _shown_outputs(found, None)
    labels = chosen if names is None else list(names)
    if output is None:
        effect = np.reshape(found.pair(i, j), (-1, np.size(found.constant)))[:, chosen]
        at = int(np.std(effect, axis=0).argmax())
    elif output in labels:
        at = labels.index(output)
    else:
        raise ValueError(f"output must be one of {shown(labels)}, got {shown(output)}")
    return chosen[at], f", output of {labels[at]}" if len(labels) > 1 or names is not None else ""


def _is_number(found: Effects, j: int) -> bool:
    return j in found.model.encoding.number_columns


def _range(found: Effects, j: int) -> tuple[float, float]:
    """Return the least and the largest value of a column of numbers."""
    x = found.background.columns[j]
    if np.isnan(x).all():
        raise ValueError(f"column {found.model.encoding.columns[j]!r} of X has no value, so there is nothing to plot")
    return np.nanmin(x), np.nanmax(x)


def _frequent(found: Effects, j: int, most: int) -> tuple[list[str | None], list[int], str]:
    """Return the most frequent levels of a column, how many rows have them, and its name."""
    counts, name = Counter(found.background.columns[j]), found.model.encoding.columns[j]
    levels, numbers = zip(*counts.most_common(most), strict=True)
    return list(levels), list(numbers), f"{name} ({most} of {len(counts)})" if len(counts) > most else name


def _text(level: str | None) -> str:
    return "missing" if level is None else level


def _legend(ax: Any, **options: Any) -> None:
    """Add a legend beside the axes."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, **options)


def _mark_dates(axis: Any, X: Any, found: Effects, j: int) -> None:
    """Write dates in place of numbers of days, if the column holds dates."""
    values = np.zeros(0)
    with suppress(KeyError, IndexError, TypeError, ValueError):  # arrays and rows have no columns by name
        values = np.asarray(X[found.model.encoding.columns[j]])
    kind = values.dtype.kind
    if kind == "M" or (kind == "O" and any(isinstance(value, datetime.date) for value in values.flat)):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=7)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))
