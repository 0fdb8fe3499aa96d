"""Matplotlib, set up to write files, and the common parts of all figures of the studies."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np


def tidy(ax: Any) -> None:
    """Give axes a pale grid and two spines."""
    ax.grid(color="0.92", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)


def legend_below(figure: Any, handles: Iterable[Any], labels: Sequence[str], columns: int, **style: Any) -> None:
    """Draw one legend for all axes, below them."""
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, **style)


def save(figure: Any, path: str | os.PathLike[str], dpi: int = 130) -> None:
    """Write a figure and close it."""
    figure.savefig(path, dpi=dpi)
    plt.close(figure)


def pareto(costs: np.ndarray, accuracies: np.ndarray) -> np.ndarray:
    """Return the indices of the points that no cheaper one equals or beats, from the cheapest on."""
    order = np.lexsort((-accuracies, costs))
    before = np.concatenate([[-np.inf], np.maximum.accumulate(accuracies[order])[:-1]])
    return order[accuracies[order] > before]
