"""Shared parts of plots: axes, colours, bars, names of outputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mopn.models.multi_output import Model
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.display import printable
from mopn.solvers.tools.signals import signals_later

# Of bars, as in the map of values of both signs.
_POSITIVE, _NEGATIVE = "#b2182b", "#2166ac"
# So many characters fit below a map next to its colour bar.
_CHARACTERS = 40


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
    crowded = len(names) * max(map(len, names)) > _CHARACTERS
    slanting = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(names)), map(plain, names), **slanting if crowded else {})


def bars(ax: Any, labels: Sequence[str], values: np.ndarray) -> None:
    ax.barh(range(len(values)), values, color=np.where(values >= 0, _POSITIVE, _NEGATIVE))
    ax.set_yticks(range(len(values)), map(plain, labels))
    ax.invert_yaxis()
    ax.axvline(0.0, color="0.35", linewidth=0.8)
    ax.grid(True, axis="x", alpha=0.3)


def plain(text: str) -> str:
    """Return a text of the data as matplotlib shows it as it is: no formula, and no label that legends leave out."""
    return " " * text.startswith("_") + printable(text).replace("$", r"\$")


def colors(values: np.ndarray) -> dict[str, Any]:
    """Return the colours of values: white for 0, which is in the middle unless none is negative."""
    largest = float(np.abs(values).max()) or 1.0
    if values.size and values.min() >= 0:
        return {"cmap": "Reds", "vmin": 0.0, "vmax": largest}
    return {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}


def output_names(model: Any, outputs: Any) -> Any:
    """Return the given names, or the classes of a model with an output each, or the names of its outputs, or None."""
    network = getattr(model, "model", model)
    if outputs is not None or not isinstance(network, Model):
        return outputs
    alike = network.classes is not None and len(network.classes) == network.weights.shape[1]
    return network.classes if alike else network.output_names


def checked_labels(labels: Any, count: int, name: str) -> list[str]:
    labels = range(count) if labels is None else labels
    if not np.iterable(labels) or len(list(labels)) != count:
        raise ValueError(f"{name} must hold {count} labels, got {shown(labels)}")
    return [str(label) for label in labels]


def new_axes(ax: Any) -> Any:
    return subplots(figsize=(6.4, 4.2)) if ax is None else ax


def subplots(*shape: int, **options: Any) -> Any:
    try:
        with signals_later():
            import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None
    return plt.subplots(*shape, layout="constrained", **options)[1]
