"""The figure of the race: seconds to a proven gap against the features, a panel a loss, rows and outputs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.certificates.race_cell import DONE, INACCURATE
from benchmarks.common.figures import plt, save, tidy

_COLORS = ("#1b6ca8", "#d95f02", "#7a7a7a")
_CAPTION = (
    "Seconds to a proven relative gap of 1e-4. A cross is where a solver ended without one: at its limit, above which\n"
    "it was tried no more, or earlier, where tighter tolerances changed nothing."
)
Row = Mapping[str, Any]


def draw(rows: Sequence[Row], solvers: Sequence[str], path: Path) -> None:
    """Draw a line a solver in every panel, and a cross at the limit where it failed."""
    panels = list(dict.fromkeys(_panel_of(row) for row in rows))
    columns = min(len(panels), 3)
    lines = -(-len(panels) // columns)
    fig, axes = plt.subplots(
        lines, columns, figsize=(4.1 * columns, 3.4 * lines + 0.8), sharey=True, squeeze=False, layout="constrained"
    )
    for ax in axes.ravel()[len(panels) :]:
        ax.set_visible(False)
    for ax, panel in zip(axes.ravel(), panels, strict=False):
        _draw_panel(ax, [row for row in rows if _panel_of(row) == panel], solvers)
        loss, n, m = panel
        ax.set_title(f"{loss}, {n} rows, {m} output{'s' if m > 1 else ''}", fontsize=11)
    for ax in axes[:, 0]:
        ax.set_ylabel("seconds")
    fig.supxlabel(_CAPTION, fontsize=9.5)
    fig.legend(*_entries(axes), loc="outside upper center", ncols=len(solvers), frameon=False)
    save(fig, path)


def _panel_of(row: Row) -> tuple[str, int, int]:
    return row["loss"], int(row["n"]), int(row["m"])


def _draw_panel(ax: Any, rows: Sequence[Row], solvers: Sequence[str]) -> None:
    for solver, color in zip(solvers, _COLORS, strict=True):
        of_solver = [row for row in rows if row["solver"] == solver]
        proven = [row for row in of_solver if row["status"] == DONE]
        if proven:
            x, y = [int(row["d"]) for row in proven], [float(row["seconds"]) for row in proven]
            ax.plot(x, y, marker="o", markersize=4, linewidth=1.8, color=color, label=solver)
        failed = [row for row in of_solver if row["status"] != DONE]
        x, y = [int(row["d"]) for row in failed], [_end(row) for row in failed]
        ax.plot(x, y, marker="x", markersize=8, markeredgewidth=2, linestyle="none", color=color)
    ax.set_yscale("log")
    ax.set_xscale("log")
    sizes = sorted({int(row["d"]) for row in rows})
    ax.set_xticks(sizes, map(str, sizes), minor=False)
    ax.set_xticks([], minor=True)
    ax.set_xlabel("features d")
    tidy(ax)


def _end(row: Row) -> float:
    """Return where a run that failed is drawn."""
    return float(row["seconds"] if row["status"] == INACCURATE else row["max_time"])


def _entries(axes: Any) -> tuple[list[Any], list[str]]:
    """Return one handle a solver, of whatever panel has it."""
    found: dict[str, Any] = {}
    for ax in axes.ravel():
        handles, labels = ax.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    return list(found.values()), list(found)
