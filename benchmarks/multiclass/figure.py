"""Figure 3 of Blondel et al. (NIPS 2017): test accuracy against the largest number of units, by norm."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common.figures import legend_below, plt, save, tidy
from benchmarks.common.measures import mean_and_error
from benchmarks.multiclass.paper_tables import NORMS, SETS
from benchmarks.multiclass.report import complete, select
from mopn.plotting.convergence import NORM_COLORS

_COLORS = NORM_COLORS | {"nystrom": "#CC79A7"}
_LABELS = {
    "l1": r"network, $\ell_1$",
    "l1/l2": r"network, $\ell_1/\ell_2$",
    "l1/linf": r"network, $\ell_1/\ell_\infty$",
    "nystrom": "Nyström",
}


def unit_curve(fits: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers of units 1, 2, ..., mean test accuracy and its standard error over splits.

    At each number the strength with the best validation accuracy is taken, split by split; of equals the largest.
    """
    length = int(fits["max_units"].max())
    by_split = []
    for _, of_split in fits.sort_values("strength", ascending=False).groupby("split"):
        validation = np.array([_padded(text, length) for text in of_split["curve_validation"]])
        test = np.array([_padded(text, length) for text in of_split["curve_test"]])
        by_split.append(test[np.argmax(validation, axis=0), np.arange(length)])
    mean, error = zip(*(mean_and_error(column) for column in np.array(by_split).T), strict=True)
    return np.arange(1, length + 1), np.array(mean), np.array(error)


def landmark_curve(fits: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same for the Nyström method, whose numbers of landmarks are fits of their own."""
    groups = [(units, select(complete(group))) for units, group in fits.groupby("max_units")]
    mean, error = zip(*(mean_and_error(group["test"].to_numpy()) for _, group in groups), strict=True)
    return np.array([units for units, _ in groups]), np.array(mean), np.array(error)


def _padded(text: str, length: int) -> np.ndarray:
    """Read a curve; a run that ended early keeps its last model."""
    values = np.array(text.split(), dtype=float)
    return np.concatenate([values, np.full(length - len(values), values[-1])])


def draw(fits: pd.DataFrame, path: str | os.PathLike[str]) -> bool:
    """Draw a panel for every set that has output-layer refits with the logistic loss, and write a PNG file."""
    names = [name for name in SETS if len(fits) and len(_networks(fits, name))]
    if not names:
        return False
    figure, axes = plt.subplots(1, len(names), figsize=(4.3 * len(names), 3.9), squeeze=False, layout="constrained")
    for name, ax in zip(names, axes[0], strict=True):
        _panel(ax, fits, name)
    axes[0, 0].set_ylabel("test accuracy (%), ± its standard error")
    _legend(figure, axes[0])
    save(figure, path, dpi=150)
    return True


def _networks(fits: pd.DataFrame, name: str) -> pd.DataFrame:
    wanted = (fits["method"] == "conditional-gradient") & (fits["loss"] == "logistic") & (fits["refit"] == "output")
    return fits[wanted & (fits["set"] == name)]


def _panel(ax: Any, fits: pd.DataFrame, name: str) -> None:
    networks = _networks(fits, name)
    levels: list[float] = []
    for norm in NORMS:
        of_norm = networks[networks["norm"] == norm]
        if len(of_norm):
            levels += _line(ax, unit_curve(complete(of_norm)), norm)
    others = fits[fits["set"] == name].groupby("method")
    if "nystrom" in others.groups:
        levels += _line(ax, landmark_curve(others.get_group("nystrom")), "nystrom", marker="o", markersize=3.5)
    for method, label, style in (("svm", "SVM, quadratic kernel", (0, (5, 2))), ("linear", "linear", (0, (1, 1.5)))):
        if method in others.groups:
            chosen = select(complete(others.get_group(method)))
            levels.append(100 * chosen["test"].mean())
            ax.axhline(levels[-1], color="0.35", linestyle=style, linewidth=1.4, label=label)
    splits = complete(networks)["split"].nunique()
    ax.set_title(f"{name} ({splits} split{'s' if splits > 1 else ''})", fontsize=11)
    ax.set_xlabel("largest number of units or landmarks")
    ax.set_xlim(0, networks["max_units"].max())
    # The first units say little, and would flatten the rest of the figure.
    low, high = min(levels), max(levels)
    ax.set_ylim(low - max(0.25 * (high - low), 1.5), high + max(0.1 * (high - low), 0.5))
    tidy(ax)


def _line(ax: Any, curve: Sequence[np.ndarray], name: str, **style: Any) -> tuple[float, float]:
    """Draw a curve with its standard error; return its end and its top, in percent."""
    units, mean, error = curve
    ax.plot(units, 100 * mean, color=_COLORS[name], linewidth=1.7, label=_LABELS[name], **style)
    ax.fill_between(units, 100 * (mean - error), 100 * (mean + error), color=_COLORS[name], alpha=0.15, linewidth=0)
    return 100 * mean[-1], 100 * mean.max()


def _legend(figure: Any, axes: Sequence[Any]) -> None:
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    columns = min(len(entries), 3 * len(axes))
    legend_below(figure, entries.values(), entries, columns, fontsize=9)
