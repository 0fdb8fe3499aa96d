"""The drift of the columns of a table, and of the predictions for it."""

from typing import Any

import numpy as np

from mopn.data.cells import CATEGORIES
from mopn.explain.column_drift import ColumnDrift, Drift
from mopn.plotting.drawing import mark_dates, name_ticks, plain, subplots
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import quiet

# Columns with a bar: the sizes of all of them can be read.
_LISTED_COLUMNS = 30
# Columns whose distributions are drawn: they fill a page.
_DRAWN_COLUMNS = 6
# Distributions next to each other on a page.
_COLUMNS_ACROSS = 3
# Categories that are drawn, the most frequent of the training data.
_DRAWN_CATEGORIES = 8
# Colours of the training data and of the rows: Okabe and Ito's palette, which the colour-blind can tell apart.
_BEFORE_COLOR = "0.55"
_NOW_COLOR = "#D55E00"


@quiet()
def plot_drift(found: Drift) -> Any:
    """Plot a report of drift on a page: the indices of columns, then the distributions of the first of them.

    A page has thirty indices and six distributions. The last of both is of the prediction that stands out most.

    Bars are population stability indices; a mark on each is its noise, below which 99 % of samples without drift stay.
    A column of numbers, and a prediction, has the shares up to each number, in the training data and now. A column of
    categories has bars of the shares, of the eight most frequent categories at most.

    Parameters
    ----------
    found : Drift
        From :func:`mopn.explain.drift`.

    Returns
    -------
    list of matplotlib Axes
        The axes of the indices, then of each distribution.

    Raises
    ------
    TypeError
        If it is no Drift.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> table = {"size": np.linspace(0, 3, 60), "color": ["red", "blue"] * 30}
    >>> model = TableRegressor(strength=mopn.Ratio(0.01)).fit(table, np.sin(table["size"]))
    >>> later = {"size": np.linspace(2, 4, 60), "color": ["red", "blue"] * 30}
    >>> indices, *columns = plot_drift(mopn.explain.drift(model, later))
    >>> [ax.get_title() for ax in columns]
    ['size', 'color', 'prediction']
    """
    if not isinstance(found, Drift):
        raise TypeError(f"found must be a report of mopn.explain.drift(model, X), got {shown(found)}")
    predictions = found.predictions[:1]
    drawn = *found.columns[: _DRAWN_COLUMNS - len(predictions)], *predictions
    rows = -(-len(drawn) // _COLUMNS_ACROSS)
    columns = 1 + _COLUMNS_ACROSS
    cells = subplots(rows, columns, figsize=(3.8 * columns, 3.0 * rows), squeeze=False)
    corner = cells[0, 0]
    first = corner.figure.add_subplot(corner.get_gridspec()[:, 0])
    axes = cells[:, 1:].ravel()
    for unused in (*cells[:, 0], *axes[len(drawn) :]):
        unused.remove()

    _draw_indices(first, (*found.columns[:_LISTED_COLUMNS], *predictions))
    for ax, column in zip(axes, drawn, strict=False):
        _draw_distribution(ax, column, legend=column is drawn[0])
    first.figure.suptitle(f"{found.n_rows:,} rows against {found.n_training_rows:,} of the training data")
    return [first, *axes[: len(drawn)]]


def _draw_indices(ax: Any, columns: tuple[ColumnDrift, ...]) -> None:
    """Draw the index of each column as a bar, and its noise as a mark."""
    places = np.arange(len(columns))
    colors = [_NOW_COLOR if column.stands_out else _BEFORE_COLOR for column in columns]
    ax.barh(places, [column.psi for column in columns], color=colors)
    ax.plot([column.psi_noise for column in columns], places, "|", color="black", markersize=12, label="noise (99 %)")
    ax.set_yticks(places, [plain(column.column) for column in columns])
    ax.invert_yaxis()
    ax.set_xlabel("population stability index")
    ax.grid(True, axis="x", alpha=0.3)
    ax.legend(loc="lower right", fontsize="small")


def _draw_distribution(ax: Any, column: ColumnDrift, *, legend: bool) -> None:
    """Draw the distribution of a column in the training data and now."""
    if column.kind == CATEGORIES:
        _draw_shares(ax, column)
    else:
        _draw_cumulated_shares(ax, column)
    ax.set_title(plain(column.column), fontsize="medium")
    ax.grid(True, alpha=0.3)
    ax.set_axisbelow(True)
    if legend:
        ax.legend(fontsize="small")


def _draw_shares(ax: Any, column: ColumnDrift) -> None:
    """Draw the shares of the most frequent categories, and of the missing values, as bars."""
    names = [*column.values, "missing"]
    before = np.append(column.shares_before, column.missing_before)
    now = np.append(column.shares, column.missing)
    present = np.flatnonzero((before > 0.0) | (now > 0.0))
    order = present[np.argsort(-np.maximum(before, now)[present], kind="stable")][:_DRAWN_CATEGORIES]
    places = np.arange(len(order))
    ax.bar(places - 0.2, 100.0 * before[order], 0.4, color=_BEFORE_COLOR, label="training")
    ax.bar(places + 0.2, 100.0 * now[order], 0.4, color=_NOW_COLOR, label="now")
    name_ticks(ax, [names[k] for k in order])
    ax.set_ylabel("% of rows")
    if len(order) < len(present):
        ax.set_xlabel(f"{len(order)} of {len(present)} categories")


def _draw_cumulated_shares(ax: Any, column: ColumnDrift) -> None:
    """Draw the shares of the numbers up to each knot."""
    step = {"drawstyle": "steps-post"} if len(column.values) <= _DRAWN_CATEGORIES else {}
    ax.plot(column.values, 100.0 * column.shares_before, color=_BEFORE_COLOR, label="training", **step)
    ax.plot(column.values, 100.0 * column.shares, color=_NOW_COLOR, label="now", **step)
    ax.set_ylim(-3, 103)
    ax.set_ylabel("% of numbers up to this")
    mark_dates(ax.xaxis, column.kind)
    if column.missing or column.missing_before:
        ax.set_xlabel(f"missing: {column.missing_before:.1%} to {column.missing:.1%}")
