"""Table 3 from the rows of the link prediction study's file."""

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.links.models import MODELS, PAPER_SETS, SEVERAL
from benchmarks.links.prediction import KEY, PLANS, Cell

_LABELS = {
    "hofm": "HOFM",
    "augmented": "HOFM-shared-augmented",
    "simplex": "HOFM-shared-simplex",
    "all-subsets": "all-subsets",
    "polynomial": "polynomial network",
    "lifted": "polynomial network, lifted",
    "bilinear": "low-rank bilinear regression",
}
_STAND_INS = ("ion-channels", "gene-disease")


def report(rows: Sequence[dict[str, str]]) -> str:
    """Return Table 3 as text, the paper's figure next to the mean over our splits; a block for each plan."""
    blocks: dict[tuple[str, ...], dict[tuple[str, str], list[float]]] = {}
    for row in rows:
        # All graphs of a run that have the default plans belong into one table.
        default = Cell(row["set"], 0, row["model"], PLANS[row["set"]]).key
        same = all(str(default[name]) == row[name] for name in KEY[3:])
        plan = () if same else tuple(f"{name} {row[name]}" for name in KEY[3:] if str(default[name]) != row[name])
        block = blocks.setdefault(plan, {})
        block.setdefault((row["set"], row["model"]), []).append(float(row["test"]))
    return "\n\n".join(_table(", ".join(plan), block) for plan, block in blocks.items()) or "no results yet"


_HEADINGS = {
    "nips": "nips",
    "ion-channels": "ion-channels*",
    "gene-disease": "gene-disease*",
    "movielens": "movielens",
}


def _table(changed: str, found: dict[tuple[str, str], list[float]]) -> str:
    names = [name for name in PAPER_SETS if any(name == key[0] for key in found)]
    lines = ["Table 3: AUC on the test pairs" + (f" ({changed})" if changed else "")]
    lines.append(" " * 34 + "".join(f"{_HEADINGS[name]:>19}" for name in names))
    lines.append(" " * 34 + f"{'paper':>11}{'here':>8}" * len(names))
    for model in MODELS:
        cells = [(model.paper[name], found.get((name, model.name))) for name in names]
        if any(values for _, values in cells):
            figures = (f"{paper:>11.3f}{np.mean(values) if values else math.nan:>8.3f}" for paper, values in cells)
            degree = f" (m = {model.degree})" if model.kind in SEVERAL else ""
            lines.append(f"{_LABELS[model.kind] + degree:<34}" + "".join(figures))
    if set(names) & set(_STAND_INS):
        lines.append("* the paper's figure is for another graph: Enzyme, and GD with other links")
    spread = [max(values) - min(values) for values in found.values() if len(values) > 1]
    if spread:
        lines.append(f"largest difference between splits of a cell: {max(spread):.3f}")
    return "\n".join(lines)
