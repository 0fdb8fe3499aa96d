"""From the rows of searches to a table and a figure."""

import os
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.blackbox.search import COLUMNS
from benchmarks.common.figures import legend_below, plt, save, tidy

_COLORS = {"mopn": "#D55E00", "mopn-linear": "#009E73", "adam": "#0072B2", "random": "0.55"}
_LABELS = {
    "mopn": "mopn",
    "mopn-linear": "mopn with a linear term",
    "adam": "machine trained by Adam",
    "random": "random rows",
}
_TITLES = {
    "loops": "frustrated loops",
    "landscape": "NK landscape",
    "assignment": "quadratic assignment",
}
# Evaluations between two values of a trace.
_STEP = 10


def frame(rows: Sequence[dict[str, str]]) -> pd.DataFrame:
    """Return the store's rows; evaluations are NaN where the minimum was not found."""
    searches = pd.DataFrame(rows, columns=COLUMNS)
    numbers = ["seed", "d", "evaluations", "excess", "refit", "anneal"]
    searches[numbers] = searches[numbers].apply(pd.to_numeric)
    return searches


def table(searches: pd.DataFrame) -> str:
    """Return a line for every function and method: how often the minimum was found, after how many evaluations."""
    lines = ["function     d  method      found  evaluations          excess at the end    ms: refit annealing"]
    lines += ["                                   median (least-most)  median (least-most)   (medians)"]
    for (name, d, method), group in searches.groupby(["function", "d", "method"], sort=False):
        found, excess = group["evaluations"].dropna(), group["excess"]
        spent = f"{found.median():.0f} ({found.min():.0f}-{found.max():.0f})" if len(found) else "-"
        over = f"{excess.median():.2f}  ({excess.min():.2f}-{excess.max():.2f})"
        medians = (group[column].dropna().median() for column in ("refit", "anneal"))
        times = "  ".join(f"{median:8.1f}" for median in medians).replace("nan", "  -")
        lines.append(
            f"{name:10s} {d:3d}  {method:11s} {len(found):2d}/{len(group):<2d}  {spent:18s}   {over:20s} {times}"
        )
    return "\n".join(lines)


def draw(searches: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Draw the excess over the minimum against evaluations, median and range over the seeds, and write a PNG file."""
    groups = list(searches.groupby(["function", "d"], sort=False))
    figure, axes = plt.subplots(1, len(groups), figsize=(3.3 * len(groups), 3.2), layout="constrained", squeeze=False)
    for ax, ((name, d), of_function) in zip(axes[0], groups, strict=True):
        traces = [[float(value) for value in trace.split()] for trace in of_function["trace"]]
        length = max(map(len, traces))
        for method, color in _COLORS.items():
            chosen = [trace for trace, kind in zip(traces, of_function["method"], strict=True) if kind == method]
            if not chosen:
                continue
            # A search that has ended has found the minimum.
            excess = np.array([trace + [0.0] * (length - len(trace)) for trace in chosen])
            counts = _STEP * np.arange(1, length + 1)
            ax.fill_between(counts, excess.min(axis=0), excess.max(axis=0), color=color, alpha=0.15, linewidth=0)
            ax.plot(counts, np.median(excess, axis=0), color=color, label=_LABELS[method])
        ax.set_title(f"{_TITLES[name]}, d = {d}", fontsize=10)
        ax.set_xlabel("evaluations")
        ax.set_ylim(bottom=0)
        tidy(ax)
    axes[0, 0].set_ylabel("best value over the minimum,\nin deviations of random rows")
    legend_below(figure, *axes[0, 0].get_legend_handles_labels(), 3)
    save(figure, path, dpi=90)
