"""The effects of columns, and of pairs of columns, in a model of tables."""

from collections import Counter
from typing import Any, Literal

import numpy as np

from mopn.explain.column_effects import EffectSize, effects
from mopn.models.base import Fitted
from mopn.plotting.drawing import (
    checked_labels,
    colors,
    mark_dates,
    name_ticks,
    new_axes,
    output_names,
    plain,
    plot_weights,
    subplots,
)
from mopn.solvers.tools.checks import choice, shown
from mopn.solvers.tools.decorators import quiet

# Points of a curve. More could not be seen in a figure of this width.
_POINTS_OF_CURVE = 400
# Rows of the data that are drawn as points on a map; more would hide it.
_ROWS_ON_MAP = 400
# Grid points along each side of a map; the colours between them are interpolated.
_POINTS_OF_SIDE = 80
# Cells of a table up to which each shows its number; in smaller cells numbers would overlap.
_MOST_NUMBERED_CELLS = 100
# Effects side by side on the page of a model.
_EFFECTS_ACROSS = 3
# Effects that the page of a model draws.
_DRAWN_EFFECTS = 9
# Effects whose sizes the page of a model lists.
_LISTED_SIZES = 18
# Share of the numbers of a column that the page of a model shows: with all, one outlier would flatten the curve.
_CENTRAL_SHARE = 0.99
# The unit of the outputs by link; without a link outputs are predictions.
_UNITS = {"softmax": "log-probability", "logistic": "log-odds", "log": "log of the mean"}


@quiet()
def plot_model(model: Fitted, X: Any = None) -> Any:
    """Plot a whole model of tables on a page: the sizes of its effects, then its nine largest effects in their order.

    The sizes are the standard deviations of the effects of columns and of pairs of columns
    (:func:`mopn.explain.effects`), as in the titles of the effects. These are drawn as by :func:`plot_effect` and
    :func:`plot_pair`, with six categories of a column at most; effects of columns have a common vertical axis. Axes of
    numbers have the central 99 % of the background, as the page says.

    Parameters
    ----------
    model : TableModel or fitted estimator of tables
    X : DataFrame, array-like of shape (n, c), or dict, optional
        The background, by default the distributions in the encoding; see :func:`mopn.explain.effects`.

    Returns
    -------
    list of matplotlib Axes
        The axes of the sizes, then of each effect.

    Raises
    ------
    TypeError
        If it is not a model of tables.
    ValueError
        If there is no effect.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> table = {"size": np.linspace(0, 3, 60), "color": ["red", "blue"] * 30}
    >>> model = TableRegressor(strength=mopn.Ratio(0.01)).fit(table, np.sin(table["size"]))
    >>> sizes, *effects = plot_model(model)
    >>> sizes.get_yticklabels()[0].get_text()
    'size'
    """
    drawing = _Drawing(model, X, most=6, share=_CENTRAL_SHARE)
    sizes = drawing.found.sizes()
    drawn = sizes[:_DRAWN_EFFECTS]
    first, axes = _axes_of_page(len(drawn))
    drawing.sizes(first, sizes[:_LISTED_SIZES])

    mains = [ax for ax, size in zip(axes, drawn, strict=True) if len(size.columns) == 1]
    for ax, size in zip(axes, drawn, strict=True):
        drawing.effect_with_size(ax, size, legend=ax in mains[:1])

    limits = [ax.get_ylim() for ax in mains]
    for ax in mains:
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
    if drawing.leaves_out_numbers(drawn):
        first.figure.supxlabel(f"Axes of numbers show the central {_CENTRAL_SHARE:.0%} of the rows.", fontsize="small")
    return [first, *axes]


def _axes_of_page(count: int) -> tuple[Any, Any]:
    """Return the axes of the sizes, in the first column of a page, and the axes of ``count`` effects."""
    rows = max(1, -(-count // _EFFECTS_ACROSS))
    columns = 1 + _EFFECTS_ACROSS
    cells = subplots(rows, columns, figsize=(4.0 * columns, 3.2 * rows), squeeze=False)
    corner = cells[0, 0]
    first = corner.figure.add_subplot(corner.get_gridspec()[:, 0])
    axes = cells[:, 1:].ravel()
    for unused in (*cells[:, 0], *axes[count:]):
        unused.remove()
    return first, axes[:count]


@quiet()
def plot_effect(
    model: Fitted,
    column: str | int,
    X: Any = None,
    *,
    scale: Literal["output", "probability"] = "output",
    axes: Any = None,
) -> Any:
    """Plot the effect of a column on the outputs, above the distribution of its values.

    A column of numbers has a curve for every output, and a dotted line where it is missing; beyond the training data,
    where curves are constant, the ground is grey. A column of categories has bars of the 20 most frequent ones.

    Parameters
    ----------
    model : TableModel or fitted estimator of tables
    column : str or int
        Its name or index.
    X : DataFrame, array-like of shape (n, c), or dict, optional
        The background, by default the distributions in the encoding; see :func:`mopn.explain.effects`.
    scale : {"output", "probability"}, default "output"
        The effect on the outputs; or the probabilities of classes if all other effects are 0. With two classes, only
        the second one's is drawn.
    axes : pair of matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    pair of matplotlib Axes
        The axes of the effect and of the distribution.

    Raises
    ------
    TypeError
        If it is not a model of tables, or has no probabilities that are requested.
    ValueError
        For an unknown column.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> table = {"size": np.linspace(0, 3, 60), "color": ["red", "blue"] * 30}
    >>> model = TableRegressor(strength=mopn.Ratio(0.01)).fit(table, np.sin(table["size"]))
    >>> effect, distribution = plot_effect(model, "size", table)
    >>> effect.get_ylabel(), distribution.get_xlabel()
    ('effect on the output', 'size')
    """
    drawing = _Drawing(model, X, choice(("output", "probability"))(scale, "scale"))
    j = drawing.found.index(column)
    top, bottom = subplots(2, sharex=True, figsize=(6.4, 4.6), height_ratios=(4, 1)) if axes is None else axes
    drawing.effect(top, j)
    drawing.distribution(bottom, j)
    top.set_ylabel(drawing.ylabel)
    if top.get_legend_handles_labels()[1]:
        _legend(top)
    return top, bottom


@quiet()
def plot_pair(model: Fitted, a: str | int, b: str | int, X: Any = None, *, output: Any = None, ax: Any = None) -> Any:
    """Plot the effect of a pair of columns on an output: their joint effect beyond the effect of each alone.

    Two columns of numbers have a map, with rows of X as points; a column of numbers and one of categories have a curve
    for each category; two columns of categories have a table. The eight most frequent categories are drawn.

    Parameters
    ----------
    model : TableModel or fitted estimator of tables
    a, b : str or int
        Names or indices of two columns.
    X : DataFrame, array-like of shape (n, c), or dict, optional
        The background, by default the distributions in the encoding; see :func:`mopn.explain.effects`.
    output : label of a class, or int, optional
        The class, or the number of the output; default that in which the effect varies most over X.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
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
    >>> ax = plot_pair(TableRegressor(strength=mopn.Ratio(0.01)).fit(table, y), "size", "color", table)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['red', 'blue']
    """
    drawing = _Drawing(model, X, most=8)
    i = drawing.found.index(a)
    j = drawing.found.index(b)
    c, name = drawing.output(output, i, j)
    ax = new_axes(ax)
    title = drawing.pair(ax, i, j, c)
    if name:
        title += f", {name}"
    ax.set_title(title)
    return ax


class _Drawing:
    """The effects of a model and their background, and the outputs to draw: only the second one of two classes.

    ``chosen`` holds the indices of these outputs, ``names`` their names, and ``named`` these names if the model has
    any, else None. ``most`` is the largest number of categories of a column that are drawn, and ``share`` the central
    share of the numbers of a column.
    """

    def __init__(self, model: Fitted, X: Any, scale: str = "output", most: int = 20, share: float = 1.0) -> None:
        self.found = effects(model, X)
        self.scale = scale
        self.most = most
        self.share = share
        self.machine = machine = self.found.model
        self.encoding = machine.encoding
        self.with_rows = X is not None
        if scale == "probability" and machine.target in ("outputs", "vector"):
            raise TypeError("scale='probability': a model of numbers predicts no probabilities; take scale='output'")
        self.chosen = list(range(np.size(self.found.constant)))
        self.named = output_names(machine, None)
        if machine.target == "labels" and machine.classes is not None and len(machine.classes) == 2:
            self.chosen = [-1]
            self.named = machine.classes[1:]
        self.names = checked_labels(self.named, len(self.chosen), "outputs")
        self.output_word = "output" if machine.classes is None else "output of"
        self.ylabel = "effect on the output" if scale == "output" else "probability"
        if len(self.names) == 1 and self.named is not None:
            link = " " if machine.classes is None else " of "
            self.ylabel += link + plain(self.names[0])
        self.unit = _UNITS.get(machine.link or "", "")
        if self.unit and scale == "output":
            self.ylabel += f" [{self.unit}]"
        self.effect_label = f"effect [{self.unit}]" if self.unit else "effect on the output"

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def sizes(self, ax: Any, sizes: list[EffectSize]) -> None:
        """Draw the standard deviations of effects as bars, or as a heat map of several outputs."""
        deviations = [self._deviations(size).squeeze() for size in sizes]
        labels = [" × ".join(size.columns) for size in sizes]
        words = "standard deviation of the effect"
        if self.unit:
            words += f" [{self.unit}]"
        plot_weights(labels, deviations, words, self.named, ax)

    def effect_with_size(self, ax: Any, size: EffectSize, *, legend: bool) -> None:
        """Draw the effect of a column or of a pair, with its size in the title."""
        i, *others = (self.found.index(column) for column in size.columns)
        length = f": {np.linalg.norm(self._deviations(size)):.3g}"
        if others:
            c, name = self.output(None, i, others[0])
            title = self.pair(ax, i, others[0], c)
            if name:
                title += f"\n{name}"
            ax.set_title(title + length, fontsize="medium")
            return

        self.effect(ax, i)
        ax.set_title(plain(size.columns[0]) + length, fontsize="medium")
        if legend:
            ax.set_ylabel(self.ylabel.replace(" [", "\n["))  # the axes of a page are short
            if len(self.names) > 1:
                ax.legend(fontsize="small")

    def _deviations(self, size: EffectSize) -> np.ndarray:
        """Return the standard deviations of an effect on the drawn outputs."""
        return np.atleast_1d(size.deviation)[self.chosen]

    # -- effects of columns --------------------------------------------------------------------------------------------

    def main(self, j: int, values: Any) -> np.ndarray:
        """Return the lines (n, count) of the effect of a column at some values."""
        effect = self.found.main(j, values).reshape(len(values), -1)
        if self.scale == "probability":
            effect = self.machine.probabilities_of(self.found.constant + effect)
        return effect[:, self.chosen]

    def effect(self, ax: Any, j: int) -> None:
        """Draw the effect of a column on the outputs."""
        if self.is_number(j):
            self._curves(ax, j)
            self._mark_dates(ax.xaxis, j)
        else:
            self._bars_of_categories(ax, j)
        if self.scale == "output":
            ax.axhline(0.0, color="0.35", linewidth=0.8, zorder=1)
        ax.grid(True, alpha=0.3)
        ax.set_axisbelow(True)

    def _bars_of_categories(self, ax: Any, j: int) -> None:
        """Draw a group of bars for each category: a bar for each output."""
        texts, _ = self.frequent(j)
        effects_of_outputs = self.main(j, texts).T
        width = 0.8 / len(effects_of_outputs)
        for c, (name, heights) in enumerate(zip(self.names, effects_of_outputs, strict=True)):
            centers = np.arange(len(texts)) + (c + 0.5) * width - 0.4
            ax.bar(centers, heights, width, label=self._label(name))
        name_ticks(ax, list(map(_text, texts)))
        count = self.category_count(j)
        if len(texts) < count:
            ax.set_xlabel(f"{len(texts)} of {count:,} categories")

    def _curves(self, ax: Any, j: int) -> None:
        """Draw a curve for each output, a dotted line for missing values, and grey outside the training data."""
        least, largest = self.range(j)
        knots = self.encoding.of_column(j).numbers.knots[0]
        knots = knots[np.isfinite(knots)]
        inner_knots = knots[(knots > least) & (knots < largest)]
        grid = np.union1d(np.linspace(least, largest, _POINTS_OF_CURVE), inner_knots)
        curves = []
        for name, y in zip(self.names, self.main(j, grid).T, strict=True):
            (curve,) = ax.plot(grid, y, label=self._label(name))
            curves.append(curve)

        missing = np.isnan(self.found.background.columns[j])
        if missing.any():
            for curve, level in zip(curves, self.main(j, [np.nan])[0], strict=True):
                ax.axhline(level, color=curve.get_color(), linestyle=":")
            ax.plot([], [], color="0.35", linestyle=":", label=f"missing\n({missing.mean():.0%} of rows)")

        for first, last in ((least, knots[0]), (knots[-1], largest)):
            if first < last:
                ax.axvspan(first, last, color="0.9", zorder=0)

    def distribution(self, ax: Any, j: int) -> None:
        """Draw how many rows have the values of a column, in percent if the rows are not known."""
        unit = 1.0 if self.with_rows else 100.0 / self.found.background.n
        if self.is_number(j):
            x = self.found.background.columns[j]
            present = x[~np.isnan(x)]
            ax.hist(present, bins=40, color="0.6", weights=np.full(len(present), unit))
            ax.set_xlabel(plain(self.encoding.columns[j]))
            self._mark_dates(ax.xaxis, j)
        else:
            texts, counts = self.frequent(j)
            ax.bar(range(len(texts)), unit * np.array(counts), color="0.6")
            name_ticks(ax, list(map(_text, texts)))
            ax.set_xlabel(self.name(j))
        ax.set_ylabel("rows" if self.with_rows else "% of rows")
        ax.locator_params(axis="y", nbins=2)

    # -- effects of pairs ----------------------------------------------------------------------------------------------

    def pair(self, ax: Any, i: int, j: int, c: int) -> str:
        """Draw the effect of a pair of columns on an output; return the names of both for a title."""
        if self.is_number(j) and not self.is_number(i):
            i, j = j, i
        if self.is_number(j):
            self._map(ax, i, j, c)
            self._mark_dates(ax.yaxis, j)
        elif self.is_number(i):
            self._curves_of_categories(ax, i, j, c)
        else:
            self._cells(ax, i, j, c)
        if self.is_number(i):
            self._mark_dates(ax.xaxis, i)
        columns = self.encoding.columns
        ax.set_xlabel(plain(columns[i]))
        return plain(f"{columns[i]} × {columns[j]}")

    def _map(self, ax: Any, i: int, j: int, c: int) -> None:
        """Draw the effect of two columns of numbers as a map, with rows as points."""
        x = self.found.background.columns[i]
        y = self.found.background.columns[j]
        both = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        if not len(both):
            raise ValueError("no row of X has a value of both columns, so there is nothing to plot")
        across, up = (np.linspace(*self._central(v[both]), _POINTS_OF_SIDE) for v in (x, y))
        Z = self.combinations(i, j, across, up)[..., c]
        # The scale of colours is chosen for the rows: elsewhere effects can be large.
        at_rows = np.reshape(self.found.pair(i, j), (len(x), -1))[both, c] if self.with_rows else Z
        image = ax.pcolormesh(across, up, Z.T, shading="gouraud", rasterized=True, **colors(at_rows))
        ax.figure.colorbar(image, ax=ax, label=self.effect_label, extend="both")
        if self.with_rows:
            inside = (x >= across[0]) & (x <= across[-1]) & (y >= up[0]) & (y <= up[-1])
            some = np.random.default_rng(0).permutation(both[inside[both]])[:_ROWS_ON_MAP]
            ax.scatter(x[some], y[some], s=5, color="0.15", alpha=0.5, linewidths=0)
        ax.set_ylabel(plain(self.encoding.columns[j]))

    def _curves_of_categories(self, ax: Any, i: int, j: int, c: int) -> None:
        """Draw the effect of numbers and categories as a curve for each category."""
        grid = np.linspace(*self.range(i), _POINTS_OF_CURVE)
        texts, _ = self.frequent(j)
        for text, curve in zip(texts, self.combinations(i, j, grid, texts)[..., c].T, strict=True):
            ax.plot(grid, curve, label=plain(_text(text)))
        ax.axhline(0.0, color="0.35", linewidth=0.8, zorder=1)
        ax.grid(True, alpha=0.3)
        ax.set_ylabel(self.effect_label)
        _legend(ax, title=self.name(j))

    def _cells(self, ax: Any, i: int, j: int, c: int) -> None:
        """Draw the effect of two columns of categories as a table."""
        across, _ = self.frequent(i)
        down, _ = self.frequent(j)
        Z = self.combinations(i, j, across, down)[..., c].T
        image = ax.imshow(Z, aspect="auto", **colors(Z))
        ax.figure.colorbar(image, ax=ax, label=self.effect_label)
        if Z.size <= _MOST_NUMBERED_CELLS:
            largest = np.abs(Z).max()
            for (row, column), value in np.ndenumerate(Z):
                on_dark = abs(value) > 0.6 * largest
                color = "white" if on_dark else "0.15"
                ax.text(column, row, f"{value:.2g}", ha="center", va="center", color=color)
        name_ticks(ax, list(map(_text, across)))
        ax.set_yticks(range(len(down)), [plain(_text(text)) for text in down])
        ax.set_ylabel(self.name(j))

    def combinations(self, i: int, j: int, u: Any, v: Any) -> np.ndarray:
        """Return the effect (len(u), len(v), m) of two columns at all combinations of their values."""
        shape = (len(u), len(v))
        rows, columns = np.indices(shape).reshape(2, -1)
        values = self.found.pair(i, j, [u[r] for r in rows], [v[c] for c in columns])
        return values.reshape(*shape, -1)

    def output(self, output: Any, i: int, j: int) -> tuple[int, str]:
        """Return the number of an output of a pair, and its name in a title."""
        labels = self.chosen if self.named is None else list(self.named)
        if output is None:
            effect = np.reshape(self.found.pair(i, j), (-1, np.size(self.found.constant)))[:, self.chosen]
            at = int(np.std(effect, axis=0).argmax())
        elif output in labels:
            at = labels.index(output)
        else:
            raise ValueError(f"output must be one of {shown(labels)}, got {shown(output)}")
        if len(labels) == 1 and self.named is None:
            return self.chosen[at], ""
        return self.chosen[at], plain(f"{self.output_word} {labels[at]}")

    # -- columns -------------------------------------------------------------------------------------------------------

    def is_number(self, j: int) -> bool:
        return j in self.encoding.number_columns

    def range(self, j: int) -> tuple[float, float]:
        """Return the least and the largest number of a column that are drawn."""
        x = self.found.background.columns[j]
        if np.isnan(x).all():
            raise ValueError(f"column {self.encoding.columns[j]!r} of X has no value, so there is nothing to plot")
        return self._central(x[~np.isnan(x)])

    def _central(self, x: np.ndarray) -> tuple[float, float]:
        """Return the ends of the central share of numbers; all of them if these are equal."""
        tail = 0.5 - 0.5 * self.share
        low, high = np.quantile(x, [tail, 1.0 - tail], method="nearest").tolist()
        return (low, high) if low < high else (float(x.min()), float(x.max()))

    def leaves_out_numbers(self, sizes: list[EffectSize]) -> bool:
        """Whether an axis of these effects is shorter than the range of the column."""
        for name in {name for size in sizes for name in size.columns}:
            j = self.found.index(name)
            if self.is_number(j):
                x = self.found.background.columns[j]
                if self.range(j) != (np.nanmin(x), np.nanmax(x)):
                    return True
        return False

    def frequent(self, j: int) -> tuple[list[str | None], list[int]]:
        """Return the most frequent categories of a column, and how many rows have them."""
        rows_of_categories = Counter(self.found.background.columns[j])
        texts, counts = zip(*rows_of_categories.most_common(self.most), strict=True)
        return list(texts), list(counts)

    def name(self, j: int) -> str:
        """Return the name of a column of categories, with the number of drawn ones if some are left out."""
        name = self.encoding.columns[j]
        count = self.category_count(j)
        drawn = min(self.most, len(set(self.found.background.columns[j])))
        return plain(f"{name} ({drawn} of {count:,})" if count > drawn else name)

    def category_count(self, j: int) -> int:
        """Return the number of categories of a column, in the background or, without rows, in the training data."""
        found = len(set(self.found.background.columns[j]))
        if self.with_rows:
            return found
        column = self.encoding.categories[self.encoding.category_columns.index(j)]
        return max(found, len(column.categories) + len(column.rare) + bool(column.missing))

    def _label(self, name: str) -> str:
        return plain(name) if len(self.names) > 1 else ""

    def _mark_dates(self, axis: Any, j: int) -> None:
        """Write dates in place of numbers of days, if the column holds dates."""
        mark_dates(axis, self.encoding.number_kinds[self.encoding.number_columns.index(j)])


def _text(category: str | None) -> str:
    return "missing" if category is None else category


def _legend(ax: Any, **options: Any) -> None:
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, **options)
