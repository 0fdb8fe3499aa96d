"""Mean ranks with what differs by more than chance, and scores against what models cost."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common.figures import legend_below, pareto, plt, save, tidy
from benchmarks.tables.methods import METHODS
from benchmarks.tables.report import critical_difference

_STYLES = {
    "mopn": ("#D55E00", "*"),
    "mopn-columns": ("#D55E00", "P"),
    "linear": ("#0072B2", "o"),
    "kernel": ("#009E73", "^"),
    "boosting": ("#CC79A7", "o"),
    "lightgbm": ("#CC79A7", "s"),
    "recursive": ("#E69F00", "v"),
    "additive": ("#56B4E9", "D"),
}
_SCORES = {"classes": "accuracy", "numbers": "R2"}


def _style(method: Any) -> tuple[str, str]:
    """Return the colour and the marker of a method, tuned or not."""
    return _STYLES[str(method).removesuffix("-tuned")]


def groups(values: np.ndarray, difference: float) -> list[tuple[int, int]]:
    """Return the first and last of every largest run of sorted values that differ by less than ``difference``."""
    found: list[tuple[int, int]] = []
    for first in range(len(values)):
        last = int(np.searchsorted(values, values[first] + difference)) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def draw_ranks(summaries: Mapping[str, pd.DataFrame], path: str | os.PathLike[str]) -> None:
    """Draw a diagram of critical differences for classes and one for numbers, and write a PNG file."""
    heights = [1.3 + 0.3 * len(found) for found in summaries.values()]
    figure, axes = plt.subplots(
        len(heights),
        1,
        figsize=(8.5, sum(heights)),
        layout="constrained",
        squeeze=False,
        gridspec_kw={"height_ratios": heights},
    )
    for ax, (kind, found) in zip(axes.flat, summaries.items(), strict=True):
        _ranks(ax, found["rank"].sort_values(), int(found["sets"].iloc[0]), kind)
    save(figure, path, dpi=95)


def _ranks(ax: Any, mean_ranks: pd.Series, sets: int, kind: str) -> None:
    k = len(mean_ranks)
    difference = critical_difference(k, sets) if k > 1 else 0.0
    for place, (method, rank) in enumerate(mean_ranks.items()):
        # The better half is named on the left, the other one on the right.
        left = place < (k + 1) // 2
        x, depth = (0.8, place + 1) if left else (k + 0.2, k - place)
        ax.plot([rank, rank, x], [0, -depth, -depth], color=_style(method)[0], linewidth=1.4)
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


def draw_costs(summaries: Mapping[str, pd.DataFrame], path: str | os.PathLike[str]) -> None:
    """Draw mean scores against the models' bytes and the seconds of fits, and write a PNG file; as ``draw_ranks``."""
    figure, axes = plt.subplots(
        len(summaries), 2, figsize=(9.0, 0.8 + 3.4 * len(summaries)), layout="constrained", squeeze=False
    )
    for row, (kind, found) in zip(axes, summaries.items(), strict=True):
        for ax, cost in zip(row, ("bytes", "fit"), strict=True):
            _costs(ax, found, kind, cost)
    legend_below(figure, *axes.flat[0].get_legend_handles_labels(), 4, fontsize=9)
    save(figure, path, dpi=95)


def _costs(ax: Any, found: pd.DataFrame, kind: str, cost: str) -> None:
    best = pareto(found[cost].to_numpy(), found["score"].to_numpy())
    ax.step(found[cost].iloc[best], found["score"].iloc[best], where="post", color="0.7", linewidth=1.2, zorder=1)
    for method, row in found.iterrows():
        color, marker = _style(method)
        style = {"s": 170 if marker == "*" else 60, "edgecolors": color, "marker": marker, "zorder": 3}
        face = "none" if METHODS[str(method)].spaces else color
        ax.scatter(row[cost], row["score"], label=METHODS[str(method)].label, facecolors=face, **style)
    ax.set_xscale("log")
    ax.xaxis.set_minor_formatter("")  # labels between powers of ten collide
    ax.set_xlabel({"bytes": "bytes of the model", "fit": "CPU seconds of a fit"}[cost])
    ax.set_ylabel(f"mean test {_SCORES[kind]} (%)")
    ax.set_title(f"{kind}, {found['sets'].iloc[0]} sets", fontsize=10)
    tidy(ax)
