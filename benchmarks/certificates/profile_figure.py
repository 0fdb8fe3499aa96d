"""The figure of performance profiles, and a table of the same times."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.figures import plt, save, tidy
from benchmarks.common.profiles import plot_profile, profile_ratios

# Certified relative gaps.
LEVELS = (1e-2, 1e-3, 1e-4)
_COLORS = ("#1b6ca8", "#d95f02", "#7a7a7a")
_CAPTION = """\
{problems} problems: {sets} sets, the norms and the strengths. A curve shows the share of all problems that a solver
brought to the gap of its panel within a multiple of the seconds of the fastest solver on the problem. It starts
at the share on which the solver was the fastest, and ends at the share that it brought to the gap within {limit} s.
A problem that no solver brings to the gap counts against all of them."""
Row = Mapping[str, Any]


def level_column(level: float) -> str:
    """Return the name of the column of the times to a level."""
    return f"seconds to {level:g}"


def times(rows: Iterable[Row], solvers: Sequence[str], level: float) -> np.ndarray:
    """Return the seconds to a level (problems, solvers), infinite where it was not reached or not tried."""
    by_problem: dict[tuple[str, ...], np.ndarray] = {}
    for row in rows:
        problem = (row["set"], row["norm"], row["ratio"])
        seconds = by_problem.setdefault(problem, np.full(len(solvers), np.inf))
        seconds[solvers.index(row["solver"])] = float(row[level_column(level)])
    return np.array(list(by_problem.values())).reshape(-1, len(solvers))


def summary(rows: Sequence[Row], solvers: Sequence[str]) -> str:
    """Return a table: the share of problems that each solver brings to each level, and its times."""
    lines = ["level   solver          solved   fastest   within 2x   within 10x   median time   of solved"]
    for level in LEVELS:
        seconds = times(rows, solvers, level)
        of_fastest = profile_ratios(seconds)
        for column, solver in enumerate(solvers):
            lines.append(_line(level, solver, seconds[:, column], of_fastest[:, column]))
    return "\n".join([*lines, "", _unsolved(rows, solvers)])


def _line(level: float, solver: str, seconds: np.ndarray, of_fastest: np.ndarray) -> str:
    solved = np.isfinite(seconds)
    shares = (np.mean(solved), *(np.mean(of_fastest <= factor) for factor in (1.0, 2.0, 10.0)))
    texts = [f"{100 * share:.1f} %" for share in shares]
    median = np.median(seconds) if len(seconds) else np.inf
    of_solved = np.median(seconds[solved]) if solved.any() else np.inf
    return (
        f"{level:<7g} {solver:14s} {texts[0]:>7s} {texts[1]:>9s} {texts[2]:>11s} {texts[3]:>12s} "
        f"{_seconds(median):>13s} {_seconds(of_solved):>11s}"
    )


def _seconds(value: float) -> str:
    return f"{value:.3f} s" if np.isfinite(value) else "none"


def _unsolved(rows: Sequence[Row], solvers: Sequence[str]) -> str:
    """Say how many problems there are, and how many no solver brings to each level."""
    missed = [int(np.sum(np.isinf(times(rows, solvers, level).min(axis=1)))) for level in LEVELS]
    sets = len({row["set"] for row in rows})
    texts = ", ".join(f"{count} to {level:g}" for count, level in zip(missed, LEVELS, strict=True))
    return f"{len(times(rows, solvers, LEVELS[0]))} problems of {sets} sets; brought by no solver: {texts}"


# -- figure ------------------------------------------------------------------------------------------------------------


def draw(rows: Sequence[Row], solvers: Sequence[str], path: Path) -> None:
    """Draw a panel a level and a curve a solver, with words below that say how to read them."""
    fig, axes = plt.subplots(1, len(LEVELS), figsize=(3.9 * len(LEVELS), 4.9), sharey=True, layout="constrained")
    for ax, level in zip(axes, LEVELS, strict=True):
        ax.set_prop_cycle(color=_COLORS)
        seconds = times(rows, solvers, level)
        plot_profile(dict(zip(solvers, seconds.T, strict=True)), ax=ax, linewidth=1.8)
        ax.get_legend().remove()
        ax.set_title(f"to a proven relative gap of {level:g}", fontsize=11)
        ax.set(ylabel="")
        tidy(ax)
    axes[0].set_ylabel("share of problems")
    limit = max(float(row["max_time"]) for row in rows)
    words = _CAPTION.format(problems=len(seconds), sets=len({row["set"] for row in rows}), limit=f"{limit:g}")
    fig.supxlabel(words, fontsize=9.5)
    # Below the panels are the words.
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(solvers), frameon=False)
    save(fig, path)
