"""From the rows of fits to tables: scores of every set, means over the sets, and mopn against each peer."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from scipy.stats import studentized_range

from benchmarks.tables.fits import COLUMNS
from benchmarks.tables.methods import METHODS

REFERENCE, REFERENCES = "mopn", ("mopn", "mopn-tuned")
_COSTS = ["fit", "one_row", "batch_row", "bytes"]
_MEASURES = ["score", "loss", "calibration", *_COSTS, "gap", "tried"]
# A method that has fewer of the reference's sets is in no mean over the common sets, only in pairs.
_COVERAGE = 0.8
# Scores, in percent, whose difference rounding alone could make are equal.
_DIGITS = 6


def frame(rows: Sequence[dict[str, str]]) -> pd.DataFrame:
    """Return the store's rows, accuracies and R2 in percent; missing measurements are NaN."""
    fits = pd.DataFrame(rows, columns=COLUMNS)
    numbers = [*_MEASURES, "rows", "classes"]
    fits[numbers] = fits[numbers].apply(pd.to_numeric)
    fits["score"] *= 100
    return fits


def kinds(fits: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Give the fits of classes and the fits of numbers, as far as there are any."""
    for kind, chosen in (("classes", fits["classes"] > 0), ("numbers", fits["classes"] == 0)):
        if chosen.any():
            yield kind, fits[chosen]


def means(fits: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the measurements over the splits, by set and method, both in the order of the fits."""
    return fits.dropna(subset="score").groupby(["set", "method"], sort=False)[_MEASURES].mean()


def common(fits: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the sets that all methods have, but for methods that lack many sets."""
    of_sets = means(fits)
    scores = of_sets["score"].unstack("method").reindex(columns=_in_order(of_sets))
    covered = scores.notna().mean() >= _COVERAGE
    sets = scores.loc[:, covered].dropna().index
    return of_sets[of_sets.index.isin(sets, level="set") & of_sets.index.isin(covered.index[covered], level="method")]


def summary(fits: pd.DataFrame) -> pd.DataFrame:
    """Return a row a method: over the common sets means, of costs geometric ones, the median gap, and the mean rank."""
    of_sets = common(fits)
    groups = of_sets.groupby("method", sort=False)
    found = groups[["score", "loss", "calibration"]].mean()
    if (fits["classes"] == 0).all():
        found["loss"] = _geometric_mean(_relative(of_sets, "loss"))
    for cost in _COSTS:
        found[cost] = _geometric_mean(of_sets[cost].unstack("method"))
    found[["gap", "tried"]] = groups[["gap", "tried"]].median()
    return found.assign(rank=ranks(fits), sets=of_sets["score"].unstack("method").shape[0]).loc[_in_order(of_sets)]


def ranks(fits: pd.DataFrame) -> pd.Series:
    """Return the mean ranks of the methods on the common sets of one kind, 1 for the best, of equals the mean."""
    return common(fits)["score"].unstack("method").round(_DIGITS).rank(axis=1, ascending=False).mean()


def critical_difference(methods: int, sets: int, level: float = 0.05) -> float:
    """Return by how much two mean ranks differ at least if they are not equal, by Nemenyi's test (Demšar, 2006)."""
    quantile = studentized_range.ppf(1 - level, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * sets)))


def duels(fits: pd.DataFrame, reference: str = REFERENCE) -> pd.DataFrame:
    """Return a row a peer: on the sets of one kind that both have, how the reference compares with it."""
    of_sets = means(fits)
    found = {}
    for method in _in_order(of_sets):
        if method == reference or reference not in _in_order(of_sets):
            continue
        # The splits of a set that both have.
        both = fits[fits["method"].isin([reference, method])].dropna(subset="score")
        both = both[both.groupby(["set", "split"])["method"].transform("size") == 2]
        of_both = means(both)
        if of_both.empty:
            continue
        ours, theirs = (of_both.xs(name, level="method") for name in (reference, method))
        points = (ours["score"] - theirs["score"]).round(_DIGITS)
        losses = (ours["loss"] - theirs["loss"]).dropna()
        found[method] = {
            "sets": len(points),
            "wins": int((points > 0).sum()),
            "ties": int((points == 0).sum()),
            "losses": int((points < 0).sum()),
            "win_rate": (np.sign(points).mean() + 1) / 2,
            "points": points.mean(),
            "loss_wins": (losses < 0).mean(),
        } | _geometric_mean(ours[_COSTS] / theirs[_COSTS]).to_dict()
    return pd.DataFrame.from_dict(found, orient="index")


def _in_order(of_sets: pd.DataFrame) -> list[str]:
    """Return the methods that occur, in their usual order."""
    there = set(of_sets.index.get_level_values("method"))
    return [method for method in METHODS if method in there]


def _relative(of_sets: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a measure over the reference's, or over the first method's, a row a set."""
    values = of_sets[measure].unstack("method")
    first = REFERENCE if REFERENCE in values else values.columns[0]
    return values.div(values[first], axis=0)


def _geometric_mean(values: pd.DataFrame) -> pd.Series:
    return np.exp(np.log(values).mean())


# -- text --------------------------------------------------------------------------------------------------------------


def tables(fits: pd.DataFrame) -> str:
    """Return tables of classes and of numbers as Markdown: all sets, means over the common sets, and pairs."""
    there = [reference for reference in REFERENCES if reference in set(fits["method"])]
    parts = [
        table
        for _, of_kind in kinds(fits)
        for table in (_sets(of_kind), _summary(of_kind), *(_duels(of_kind, reference) for reference in there))
    ]
    return "\n\n".join(parts) or "no results yet"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _score(fits: pd.DataFrame) -> str:
    return "test accuracy, %" if (fits["classes"] > 0).all() else "test R2, %"


def _sets(fits: pd.DataFrame) -> str:
    """Return the scores of all sets, from the smallest on; the best are bold, what took too long is a dash."""
    scores = means(fits)["score"].unstack("method").round(1)
    methods = [method for method in METHODS if method in scores]
    about = fits.drop_duplicates("set").set_index("set").sort_values("rows", kind="stable")
    splits = fits.groupby("set")["split"].nunique()
    rows = []
    for name in about.index[about.index.isin(scores.index)]:
        best = scores.loc[name].max()
        cells = [_cell(value, value == best) for value in scores.loc[name, methods]]
        size = [str(about.loc[name, key] or "-") for key in ("rows", "columns", "classes")]
        rows.append([name, *size, str(splits[name]), *cells])
    head = ["set", "rows", "columns", "classes", "splits", *(METHODS[method].label for method in methods)]
    return f"{_score(fits)}:\n\n{markdown(head, rows)}"


def _cell(value: float, bold: bool) -> str:
    if np.isnan(value):
        return "-"
    return f"**{value:.1f}**" if bold else f"{value:.1f}"


def _summary(fits: pd.DataFrame) -> str:
    found = summary(fits)
    loss = "log loss" if (fits["classes"] > 0).all() else "RMSE over mopn's"
    head = ["", _score(fits), "mean rank", loss, "calibration", "fit, s", "one row, µs", "row of many, µs", "kB", "gap"]
    searched = bool(found["tried"].notna().any())
    head += ["tried"] * searched
    rows = [
        [
            METHODS[method].label,
            f"{row['score']:.2f}",
            f"{row['rank']:.2f}",
            *(_cell_of(row[name], ".3f") for name in ("loss", "calibration")),
            f"{row['fit']:.3g}",
            f"{1e6 * row['one_row']:.0f}",
            f"{1e6 * row['batch_row']:.1f}",
            f"{row['bytes'] / 1e3:.1f}",
            _cell_of(row["gap"], ".1e"),
            *[_cell_of(row["tried"], ".0f")] * searched,
        ]
        for method, row in found.iterrows()
    ]
    sets = found["sets"].iloc[0] if len(found) else 0
    title = f"Over {sets} sets that all of these have; costs: geometric means; gap, tried: medians; others: means."
    return f"{title}\n\n{markdown(head, rows)}"


def _cell_of(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)


def _duels(fits: pd.DataFrame, reference: str) -> str:
    head = ["against", "sets", "wins", "ties", "losses", "win rate", "points", "less loss"]
    head += ["fit", "one row", "row of many", "bytes"]
    rows = [
        [
            METHODS[str(method)].label,
            *(f"{row[name]:.0f}" for name in ("sets", "wins", "ties", "losses")),
            f"{row['win_rate']:.0%}",
            f"{row['points']:+.2f}",
            "-" if np.isnan(row["loss_wins"]) else f"{row['loss_wins']:.0%}",
            *(f"{row[name]:.3g}" for name in _COSTS),
        ]
        for method, row in duels(fits, reference).iterrows()
    ]
    title = f"{METHODS[reference].label} against each, on the sets that both have; costs are geometric means of ratios."
    return f"{title}\n\n{markdown(head, rows)}"
