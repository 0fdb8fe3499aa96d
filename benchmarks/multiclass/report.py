"""From the rows of fits to tables: selection on the validation part, means over splits, next to the paper's figures."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from benchmarks.common.measures import mean_and_error
from benchmarks.multiclass.paper_tables import SETS, TABLE_2, TABLE_4, Cell, Figure

_CELL = list(Cell._fields)
_INTEGERS = ("split", "max_units", "k", "units")
_NUMBERS = ("strength", "validation", "test", "objective", "gap", "seconds")


def frame(rows: Sequence[dict[str, str]]) -> pd.DataFrame:
    """Return the store's rows with numbers as numbers."""
    types = dict.fromkeys(_INTEGERS, int) | dict.fromkeys(_NUMBERS, float)
    return pd.DataFrame(rows).astype(types if rows else {})


def complete(fits: pd.DataFrame) -> pd.DataFrame:
    """Leave out splits that a run has only begun: with fewer strengths than most splits, selection would be unfair."""
    counts = fits.groupby("split").size()
    usual = counts.mode().max()
    return fits[fits["split"].isin(counts.index[counts >= usual])]


def select(fits: pd.DataFrame) -> pd.DataFrame:
    """Return the row of the best validation accuracy of every split; of equals the fewest units, then most strength."""
    order = fits.sort_values(["split", "validation", "units", "strength"], ascending=[True, False, True, False])
    return order.drop_duplicates("split")


def summary(fits: pd.DataFrame) -> pd.DataFrame:
    """Return a row for every set and cell: the paper's accuracy and units, ours, and how many splits ours has."""
    rows = [_summarize(name, cell, group) for name, cell, group in _groups(fits)]
    return pd.DataFrame(rows, columns=[*_FIRST, *_REST])


_FIRST = ["set", *_CELL]
_REST = ["paper_test", "paper_units", "test", "test_error", "units", "splits", "strengths", "seconds", "gap"]


def _groups(fits: pd.DataFrame) -> Iterator[tuple[str, Cell, pd.DataFrame]]:
    if fits.empty:
        return
    for (name, *cell), group in fits[fits["method"] != "nystrom"].groupby(_FIRST, sort=False):
        yield name, Cell(*cell), complete(group)


def _summarize(name: str, cell: Cell, fits: pd.DataFrame) -> dict[str, object]:
    chosen = select(fits)
    test, error = mean_and_error(100 * chosen["test"].to_numpy())
    paper = _paper(name, cell)
    return (
        {"set": name}
        | cell._asdict()
        | {
            "paper_test": paper.accuracy,
            "paper_units": paper.units,
            "test": test,
            "test_error": error,
            "units": chosen["units"].mean(),
            "splits": len(chosen),
            "strengths": " ".join(f"{value:g}" for value in sorted(chosen["strength"])),
            "seconds": fits["seconds"].mean(),
            "gap": chosen["gap"].mean(),
        }
    )


def _paper(name: str, cell: Cell) -> Figure:
    table = TABLE_2 | TABLE_4
    return table[cell][name] if cell in table else Figure(np.nan, None)


def tables(results: pd.DataFrame) -> str:
    """Return Tables 2 and 4 as text, the paper's figure next to ours in every cell."""
    names = [name for name in SETS if name in set(results["set"])]
    if not names:
        return "no results yet"
    ours = {(row["set"], Cell(*(row[name] for name in _CELL))): row for _, row in results.iterrows()}
    parts = [
        "Test accuracy in percent (number of units, or support vectors). The paper's figure comes from one split; "
        "ours is\nthe mean over splits ± its standard error, with strength and number of units chosen on each split's "
        "validation part.",
        _table("Table 2", TABLE_2, names, ours),
        _table("Table 4: squared hinge (MSH) and logistic (ML) losses", TABLE_4, names, ours),
        _splits(results, names),
    ]
    return "\n\n".join(parts)


_WIDTH = 40


def _table(title: str, paper: dict[Cell, dict[str, Figure]], names: Sequence[str], ours: dict) -> str:
    lines = [title, " " * _WIDTH + "".join(f"  {name:^35}" for name in names).rstrip()]
    lines.append(f"{'':<{_WIDTH}}" + f"  {'paper':>12}  {'here':>21}" * len(names))
    several = len({cell.loss for cell in paper if cell.method == "conditional-gradient"}) > 1
    for cell, figures in paper.items():
        found = [_pair(figures[name], ours.get((name, cell))) for name in names]
        if any(text for _, text in found):
            lines.append(
                f"{_label(cell, several):<{_WIDTH}}" + "".join(f"  {a:>12}  {b:>21}" for a, b in found).rstrip()
            )
    return "\n".join(lines)


_METHOD_LABELS = {
    "conditional-gradient": "cond. gradient",
    "projected-gradient": "random, proj. gradient",
    "linear": "linear",
    "svm": "quadratic-kernel SVM",
    "one-vs-rest": "one-vs-rest networks",
}


def _label(cell: Cell, with_loss: bool) -> str:
    words = [_METHOD_LABELS[cell.method]]
    if cell.method == "conditional-gradient":
        words += [cell.refit + " refit,", cell.norm]
        if with_loss:
            words.append("ML" if cell.loss == "logistic" else "MSH")
    elif cell.method == "projected-gradient":
        words.append(cell.norm)
    return " ".join(words)


def _pair(paper: Figure, ours: pd.Series | None) -> tuple[str, str]:
    there = f"{paper.accuracy:.2f}" + ("" if paper.units is None else f" ({paper.units})")
    if ours is None:
        return there, ""
    error = "" if np.isnan(ours["test_error"]) else f" ± {ours['test_error']:.2f}"
    units = f" ({ours['units']:.1f})" if ours["units"] else ""
    return there, f"{ours['test']:.2f}{error}{units}"


def _splits(results: pd.DataFrame, names: Sequence[str]) -> str:
    """Say how many splits the cells have, and which have fewer than the set's others."""
    lines = []
    for name in names:
        of_set = results[results["set"] == name]
        most = of_set["splits"].max()
        fewer = of_set[of_set["splits"] < most]
        line = f"{name}: {most} split{'s' if most > 1 else ''} a cell"
        if len(fewer):
            line += (
                f"; {len(fewer)} of {len(of_set)} cells have fewer, down to {fewer['splits'].min()} (see summary.csv)"
            )
        lines.append(line)
    return "\n".join(lines)
