"""Tables and figures of the recommender study, from the rows of its file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from benchmarks.common.figures import legend_below, plt, save, tidy
from mopn.plotting.convergence import NORM_COLORS

_SETS = {
    "ml-100k": "MovieLens 100K",
    "lastfm": "Last.fm, artists and tags",
    "lastfm-users": "Last.fm, users and artists",
    "ml-1m": "MovieLens 1M",
}
_LABELS = {
    "ordinal-l1": "multi-output FM, l1",
    "ordinal-l1/l2": "multi-output FM, l1/l2",
    "ordinal-l1/linf": "multi-output FM, l1/linf",
    "A2-linear": "A2, linear combination (FM)",
    "A2-augment": "A2, augment",
    "H2-linear": "H2, linear combination (PN)",
    "H2-augment": "H2, augment",
    "all-subsets": "all-subsets",
}
_COLORS = {
    **{f"ordinal-{norm}": color for norm, color in NORM_COLORS.items()},
    "A2-linear": "0.35",
    "A2-augment": "0.35",
    "H2-linear": "#E69F00",
    "H2-augment": "#E69F00",
    "all-subsets": "#CC79A7",
}
_DASHED = ("A2-linear", "H2-linear")
_HEADINGS = {
    "rmse": "RMSE",
    "ndcg1": "nDCG@1",
    "ndcg5": "nDCG@5",
    "linear1": "nDCG@1 linear",
    "linear5": "nDCG@5 linear",
}
# Section 6.5 of the paper has these figures in its text; all others are in a plot.
_PAPER_NDCG = {"ml-100k": (0.75, 0.71), "ml-1m": (0.76, 0.75)}
_FINDINGS = {
    "ranking": "paper: multi-output FMs with l1/l2 and l1/linf beat FMs and PNs of one output in RMSE and nDCG",
    "kernels": "papers: A2 beats H2; augmentation is as good as the linear combination or better; all-subsets does "
    "relatively well",
}
_TITLES = {"ranking": "ordinal regression", "kernels": "test RMSE by kernel and k"}

Row = dict[str, str]
# By model and k: the rows of all splits.
Block = dict[tuple[str, int], list[Row]]


def report(rows: Sequence[Row]) -> str:
    """Return all tables as text."""
    texts = [_table(*place, block) for place, block in _blocks(rows).items()]
    return "\n\n".join(texts) or "no results yet"


def _blocks(rows: Sequence[Row]) -> dict[tuple[str, str, str], Block]:
    """Return the rows by study, set and number of rows drawn; of cells with several grids the last."""
    latest = {tuple(row[name] for name in ("study", "set", "rows", "model", "k", "split")): row for row in rows}
    blocks: dict[tuple[str, str, str], Block] = {}
    for (study, name, drawn, model, k, _), row in latest.items():
        blocks.setdefault((study, name, drawn), {}).setdefault((model, int(k)), []).append(row)
    return blocks


def _mean(rows: Sequence[Row], column: str) -> float:
    return float(np.mean([float(row[column]) for row in rows]))


def _table(study: str, name: str, drawn: str, block: Block) -> str:
    splits = max(len(rows) for rows in block.values())
    words = [f"{splits} split{'s' * (splits > 1)}", *([f"{drawn} rows drawn"] if drawn else [])]
    lines = [f"{_SETS[name]}, {_TITLES[study]} ({', '.join(words)})"]
    lines += _by_k(block) if study == "kernels" else _by_measure(block)
    if study == "ranking" and name in _PAPER_NDCG:
        lines.append("paper, nDCG@1: l1/linf {:.2f}, FM {:.2f}".format(*_PAPER_NDCG[name]))
    return "\n".join([*lines, _FINDINGS[study]])


def _by_k(block: Block) -> list[str]:
    """Return a line a model, with a column a number of units, and the strengths that were chosen."""
    models, ks = list(dict.fromkeys(model for model, _ in block)), sorted({k for _, k in block})
    lines = [f"{'k':<38}" + "".join(f"{k:>9}" for k in ks)]
    for column, digits in (("rmse", 4), ("strength", 0)):
        lines += ["strengths chosen:"] * (column == "strength")
        for model in models:
            found = [f"{_mean(block[model, k], column):.{digits}f}" if (model, k) in block else "" for k in ks]
            lines.append(f"{_LABELS[model]:<38}" + "".join(f"{value:>9}" for value in found))
    return lines


def _by_measure(block: Block) -> list[str]:
    """Return a line a model and number of units, with a column a measure."""
    lines = [
        f"{'':<38}{'k':>4}{'units':>7}{'strength':>10}{'valid.':>9}"
        + "".join(f"{heading:>{max(9, len(heading) + 2)}}" for heading in _HEADINGS.values())
        + f"{'seconds':>9}"
    ]
    for (model, k), rows in sorted(block.items(), key=lambda entry: (list(_LABELS).index(entry[0][0]), entry)):
        chosen = rows[0]["validation"] != ""
        texts = [f"{_mean(rows, 'strength'):.3g}", f"{_mean(rows, 'validation'):.4f}"] if chosen else ["", ""]
        figures = (f"{_mean(rows, name):>{max(9, len(text) + 2)}.4f}" for name, text in _HEADINGS.items())
        lines.append(
            f"{_LABELS[model]:<38}{k:>4}{_mean(rows, 'units'):>7.0f}{texts[0]:>10}{texts[1]:>9}"
            + "".join(figures)
            + f"{_mean(rows, 'seconds'):>9.0f}"
        )
    return lines


# -- figures -----------------------------------------------------------------------------------------------------------


def draw(rows: Sequence[Row], out: Path) -> list[Path]:
    """Draw ``ranking.png`` and ``kernels.png`` into a folder, as far as there are rows; return the paths."""
    blocks = _blocks(rows)
    paths = []
    for study, measures in (("ranking", ("rmse", "ndcg1", "ndcg5")), ("kernels", ("rmse",))):
        # A single number of units makes no curve: tables have it.
        several = {place: block for place, block in blocks.items() if len({k for _, k in block}) > 1}
        of_sets = {place[1]: block for place, block in several.items() if place[0] == study}
        if of_sets:
            paths.append(_draw(of_sets, measures, out / f"{study}.png"))
    return paths


def _draw(of_sets: dict[str, Block], measures: Sequence[str], path: Path) -> Path:
    """Draw a row a set and a column a measure, or sets side by side if there is one measure."""
    panels = [(name, measure) for name in of_sets for measure in measures]
    columns = len(measures) if len(measures) > 1 else len(of_sets)
    shape = (len(panels) // columns, columns)
    fig, axes = plt.subplots(*shape, figsize=(4.0 * columns, 3.2 * shape[0] + 0.6), layout="constrained", squeeze=False)
    for ax, (name, measure) in zip(axes.flat, panels, strict=True):
        _draw_panel(ax, of_sets[name], measure)
        ax.set_title(_SETS[name], fontsize=10)
        ax.set_ylabel(f"test {_HEADINGS[measure]}")
    for ax in axes[-1]:
        ax.set_xlabel("number of units k")
    drawn = {model for block in of_sets.values() for model, _ in block}
    models = [model for model in _COLORS if model in drawn]
    handles = [plt.Line2D([], [], **_style(model)) for model in models]
    labels = [_LABELS[model] for model in models]
    legend_below(fig, handles, labels, 3, fontsize=9)
    save(fig, path, dpi=110)
    return path


def _draw_panel(ax: Axes, block: Block, measure: str) -> None:
    for model in dict.fromkeys(model for model, _ in block):
        ks = sorted(k for other, k in block if other == model)
        ax.plot(ks, [_mean(block[model, k], measure) for k in ks], **_style(model))
        # The splits themselves: models often differ by less than these.
        splits = [(k, float(row[measure])) for k in ks for row in block[model, k]]
        ax.plot(*zip(*splits, strict=True), ".", color=_COLORS[model], markersize=3, alpha=0.5)
    ax.set_xticks(sorted({k for _, k in block}))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    tidy(ax)


def _style(model: str) -> dict[str, object]:
    dash = "--" if model in _DASHED else "-"
    return {"color": _COLORS[model], "linestyle": dash, "marker": "o", "markersize": 3.5, "linewidth": 1.7}
