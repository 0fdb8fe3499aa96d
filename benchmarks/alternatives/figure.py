"""Accuracy against the cost of a model: the methods that no other beats in both lie on the line."""

import os
from typing import Any

import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.alternatives.methods import METHODS
from benchmarks.common.figures import legend_below, pareto, plt, save, tidy

# A colour a family, a marker a member.
STYLES = {
    "mopn": ("#D55E00", "*"),
    "mopn-tuned": ("#D55E00", "P"),
    "linear": ("#0072B2", "o"),
    "quadratic-features": ("#0072B2", "s"),
    "nystroem": ("#0072B2", "^"),
    "count-sketch": ("#0072B2", "v"),
    "svc-quadratic-ovr": ("#009E73", "o"),
    "svc-quadratic-ovo": ("#009E73", "s"),
    "svc-rbf": ("#009E73", "^"),
    "boosting": ("#CC79A7", "o"),
    "lightgbm": ("#CC79A7", "s"),
}
_PANELS = {"one_row": ("prediction of one row (µs)", 1e6), "size": ("numbers held", 1.0)}


def draw(found: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Draw accuracy against latency and against size, and write a PNG file."""
    figure, axes = plt.subplots(1, len(_PANELS), figsize=(10.5, 5.2), sharey=True, layout="constrained")
    for ax, (cost, (label, factor)) in zip(axes, _PANELS.items(), strict=True):
        _panel(ax, factor * found[cost], found["accuracy"])
        ax.set_xlabel(f"{label}, geometric mean over {found['sets'].iloc[0]} sets")
    axes[0].set_ylabel("mean test accuracy (%)")
    legend_below(figure, *axes[0].get_legend_handles_labels(), 4, fontsize=9)
    save(figure, path, dpi=150)


def _panel(ax: Any, costs: pd.Series, accuracies: pd.Series) -> None:
    best = pareto(costs.to_numpy(), accuracies.to_numpy())
    ax.step(costs.iloc[best], accuracies.iloc[best], where="post", color="0.7", linewidth=1.2, zorder=1)
    for method in (name for name in METHODS if name in costs.index):
        color, marker = STYLES[method]
        size = 150 if marker == "*" else 55
        ax.scatter(
            costs[method], accuracies[method], s=size, color=color, marker=marker, label=METHODS[method].label, zorder=3
        )
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    tidy(ax)
