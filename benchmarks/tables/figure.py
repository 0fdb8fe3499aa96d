"""Mean ranks with what differs by more than chance, and scores against the sizes of models."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common.figures import legend_below, pareto, plt, save, tidy
from benchmarks.tables.methods import METHODS
from benchmarks.tables.report import critical_difference, kinds, ranks, summary

__all__ = ["draw_ranks", "draw_sizes", "groups"]

_STYLES = {
    "mopn": ("#D55E00", "*"),
    "mopn-columns": ("#D55E00", "P"),
    "linear": ("#0072B2", "o"),
    "kernel": ("#009E73", "^"),
    "boosting": ("#CC79A7", "o"),
    "lightgbm": ("#CC79A7", "s"),
    "additive": ("#56B4E9", "D"),
}
_SCORES = {"classes": "accuracy", "numbers": "R2"}


def groups(values: np.ndarray, difference: float) -> list[tuple[int, int]]:
    """Return the first and last of every largest run of sorted values that differ by less than ``difference``.

    Parameters
    ----------
    values : ndarray of shape (n,)
        From the least to the largest.
    difference : float

    Returns
    -------
    list of (int, int)
        Runs of two values or more.
    """
    found: list[tuple[int, int]] = []
    for first in range(len(values)):
        last = int(np.searchsorted(values, values[first] + difference)) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def draw_ranks(fits: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Draw a diagram of critical differences for classes and one for numbers, and write a PNG file.

    Parameters
    ----------
    fits : DataFrame
        As ``report.frame`` returns them, of at least one fit.
    path : str or path
    """
    of_kinds = dict(kinds(fits))
    figure, axes = plt.subplots(
        len(of_kinds), 1, figsize=(8.5, 3.0 * len(of_kinds)), layout="constrained", squeeze=False
    )
    for ax, (kind, of_kind) in zip(axes.flat, of_kinds.items(), strict=True):
        found = summary(of_kind)
        _ranks(ax, ranks(of_kind).sort_values(), int(found["sets"].iloc[0]), kind)
    save(figure, path, dpi=150)


def _ranks(ax: Any, mean_ranks: pd.Series, sets: int, kind: str) -> None:
    k = len(mean_ranks)
    difference = critical_difference(k, sets) if k > 1 else 0.0
    for place, (method, rank) in enumerate(mean_ranks.items()):
        # The better half is named on the left, the other one on the right.
        left = place < (k + 1) // 2
        x, depth = (0.8, place + 1) if left else (k + 0.2, k - place)
        ax.plot([rank, rank, x], [0, -depth, -depth], color=_STYLES[str(method)][0], linewidth=1.4)
        text = f"{METHODS[str(method)].label}  {rank:.2f}"
        ax.text(x, -depth, f"{text} " if left else f" {text}", ha="right" if left else "left", va="center", fontsize=9)
    for level, (first, last) in enumerate(groups(mean_ranks.to_numpy(), difference)):
        y = -0.25 - 0.22 * level
        ax.plot(mean_ranks.iloc[[first, last]], [y, y], color="0.2", linewidth=4, solid_capstyle="round")
    ax.plot([1, 1 + difference], [0.9, 0.9], color="0.2", linewidth=1.4, marker="|")
    ax.text(1 + difference, 0.9, f"  critical difference {difference:.2f}", va="center", fontsize=9)
    ax.set(xlim=(-1.2, k + 2.2), ylim=(-((k + 1) // 2) - 0.6, 1.4), yticks=[], xticks=[])
    ax.set_title(
        f"{kind}: mean ranks of {_SCORES[kind]} on {sets} sets; bars join what Nemenyi's test does not tell apart"
    )
    ax.title.set_fontsize(10)
    ax.spines[["left", "right", "top", "bottom"]].set_visible(False)
    ax.plot([1, k], [0, 0], color="0.2", linewidth=1.0)
    for tick in range(1, k + 1):
        ax.plot([tick, tick], [0, 0.15], color="0.2", linewidth=1.0)
        ax.text(tick, 0.2, str(tick), ha="center", va="bottom", fontsize=9)


def draw_sizes(fits: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Draw mean scores against the geometric means of the models' bytes, and write a PNG file; as ``draw_ranks``."""
    of_kinds = dict(kinds(fits))
    figure, axes = plt.subplots(
        1, len(of_kinds), figsize=(5.2 * len(of_kinds), 4.8), layout="constrained", squeeze=False
    )
    for ax, (kind, of_kind) in zip(axes.flat, of_kinds.items(), strict=True):
        _sizes(ax, summary(of_kind), kind)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    legend_below(figure, handles, labels, 4, fontsize=9)
    save(figure, path, dpi=150)


def _sizes(ax: Any, found: pd.DataFrame, kind: str) -> None:
    best = pareto(found["bytes"].to_numpy(), found["score"].to_numpy())
    ax.step(found["bytes"].iloc[best], found["score"].iloc[best], where="post", color="0.7", linewidth=1.2, zorder=1)
    for method, row in found.iterrows():
        color, marker = _STYLES[str(method)]
        style = {"s": 170 if marker == "*" else 60, "color": color, "marker": marker, "zorder": 3}
        ax.scatter(row["bytes"], row["score"], label=METHODS[str(method)].label, **style)
    ax.set_xscale("log")
    ax.set_xlabel(f"bytes of the model, geometric mean over {found['sets'].iloc[0]} sets")
    ax.set_ylabel(f"mean test {_SCORES[kind]} (%)")
    ax.set_title(kind)
    tidy(ax)
