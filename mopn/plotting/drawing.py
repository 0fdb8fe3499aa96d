"""Shared parts of plots: axes, colours, bars, names of outputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mopn.data.cells import DATES, ZONED_DATES
from mopn.models.multi_output import Model
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.display import printable
from mopn.solvers.tools.signals import signals_later

# Colours of bars: the ends of RdBu, the colour map for values of both signs.
_POSITIVE_COLOR = "#b2182b"
_NEGATIVE_COLOR = "#2166ac"
# Characters of names in letters of a point that fit below an inch of an axis; longer rows of names slant.
_CHARACTERS_PER_INCH = 80.0


def plot_weights(labels: list[str], values: list[Any], words: str, outputs: Any, ax: Any) -> Any:
    """Draw numbers as bars, or arrays (m,) as the rows of a heat map."""
    if not labels:
        raise ValueError("there is nothing to plot: the list is empty")
    table = np.array(values, dtype=np.float64)
    if table.ndim == 1:
        ax = new_axes(ax)
        bars(ax, labels, table)
        ax.set_xlabel(words)
        return ax
    names = checked_labels(outputs, table.shape[1], "outputs")
    ax = new_axes(ax)
    image = ax.imshow(table, aspect="auto", **colors(table))
    name_ticks(ax, names)
    ax.set_yticks(range(len(labels)), map(plain, labels))
    ax.set_xlabel("output")
    ax.figure.colorbar(image, ax=ax, label=words)
    return ax


def name_ticks(ax: Any, names: list[str]) -> None:
    """Name the ticks of the horizontal axis, slanting if the names would not fit next to each other."""
    inches = ax.get_position().width * ax.figure.get_figwidth()
    points = ax.xaxis.label.get_size()
    crowded = len(names) * max(map(len, names)) > _CHARACTERS_PER_INCH * inches / points
    slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(range(len(names)), map(plain, names), **slant)


def mark_dates(axis: Any, kind: str) -> None:
    """Write dates in place of numbers of days, if a column of this kind holds dates."""
    if kind in (DATES, ZONED_DATES):
        with signals_later():
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=7)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))


def bars(ax: Any, labels: Sequence[str], values: np.ndarray) -> None:
    """Draw horizontal bars, the first at the top, coloured by their signs."""
    ax.barh(range(len(values)), values, color=np.where(values >= 0, _POSITIVE_COLOR, _NEGATIVE_COLOR))
    ax.set_yticks(range(len(values)), map(plain, labels))
    ax.invert_yaxis()
    ax.axvline(0.0, color="0.35", linewidth=0.8)
    ax.grid(True, axis="x", alpha=0.3)


def plain(text: str) -> str:
    """Return a text that matplotlib shows as given, without formulas; legends would leave out a leading underscore."""
    shown_text = printable(text).replace("$", r"\$")
    return f" {shown_text}" if text.startswith("_") else shown_text


def colors(values: np.ndarray) -> dict[str, Any]:
    """Return the map of colours for values: white is 0, in the middle if some values are negative."""
    largest = float(np.abs(values).max()) or 1.0
    if values.size and values.min() >= 0:
        return {"cmap": "Reds", "vmin": 0.0, "vmax": largest}
    return {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}


def output_names(model: Any, outputs: Any) -> Any:
    """Return the given names, else the classes if each has an output, else the model's names of outputs or None."""
    network = getattr(model, "model", model)
    if outputs is not None or not isinstance(network, Model):
        return outputs
    output_per_class = network.classes is not None and len(network.classes) == network.weights.shape[1]
    return network.classes if output_per_class else network.output_names


def checked_labels(labels: Any, count: int, name: str) -> list[str]:
    """Return labels as strings, by default the numbers from 0 on; ``ValueError`` unless there are ``count``."""
    labels = range(count) if labels is None else labels
    if not np.iterable(labels) or len(list(labels)) != count:
        raise ValueError(f"{name} must hold {count} labels, got {shown(labels)}")
    return [str(label) for label in labels]


def new_axes(ax: Any) -> Any:
    return subplots(figsize=(6.4, 4.2)) if ax is None else ax


def subplots(*shape: int, **options: Any) -> Any:
    """Return the axes of a new figure."""
    try:
        with signals_later():
            import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None
    _, axes = plt.subplots(*shape, layout="constrained", **options)
    return axes
