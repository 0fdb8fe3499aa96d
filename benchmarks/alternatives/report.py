"""From the rows of fits to tables: means over the splits of every set, and over the sets."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.alternatives.methods import METHODS
from benchmarks.common.measures import mean_and_error

REFERENCE = "svc-quadratic-ovr"
# A mean difference of more than as many of its standard errors is a clear one.
_CLEAR = 2.0
# Differences in percent that rounding alone could make are none.
_DIGITS = 6
_COSTS = ["fit", "one_row", "batch_row", "size"]
_MEASURES = ["accuracy", *_COSTS]


def frame(rows: Sequence[dict[str, str]]) -> pd.DataFrame:
    """Return the store's rows, accuracies in percent; missing measurements are NaN."""
    fits = pd.DataFrame(rows)
    if rows:
        fits[_MEASURES] = fits[_MEASURES].apply(pd.to_numeric)
        fits["accuracy"] *= 100
    return fits


def means(fits: pd.DataFrame) -> pd.DataFrame:
    """Return a row for every set and method: means over its splits, the accuracy's standard error, the usual choice."""
    groups = fits.dropna(subset="accuracy").groupby(["set", "method"], sort=False)
    found = groups[_MEASURES].mean()
    found["error"] = groups["accuracy"].apply(lambda values: mean_and_error(values.to_numpy())[1])
    found["splits"] = groups.size()
    found["chosen"] = groups["chosen"].agg(lambda values: values.mode()[0])
    found["unconverged"] = groups["note"].agg(lambda notes: int((notes != "").sum()))
    return found


def summary(fits: pd.DataFrame) -> pd.DataFrame:
    """Return a row a method: means over the sets that all methods have, and how it compares with the reference."""
    of_sets = means(fits)
    common = of_sets["accuracy"].unstack("method").dropna().index
    shared = of_sets[of_sets.index.get_level_values("set").isin(common)].groupby("method", sort=False)
    found = shared[["accuracy"]].mean()
    found[_COSTS] = np.exp(shared[_COSTS].agg(lambda values: np.log(values).mean()))
    found["sets"] = len(common)
    return found.join(_duels(fits))


def _duels(fits: pd.DataFrame) -> pd.DataFrame:
    """Count by method the sets on which it is better or worse than the reference."""
    by_split = fits.pivot(index=["set", "split"], columns="method", values="accuracy")
    if REFERENCE not in by_split:
        return pd.DataFrame()
    counts = {}
    for method in by_split.columns.drop(REFERENCE):
        differences = (by_split[method] - by_split[REFERENCE]).dropna().groupby("set", sort=False)
        pairs = [mean_and_error(values.to_numpy()) for _, values in differences]
        mean, error = np.array(pairs).reshape(-1, 2).T
        mean = np.round(mean, _DIGITS)
        clear = np.abs(mean) > _CLEAR * error
        counts[method] = {
            "wins": np.sum(mean > 0),
            "ties": np.sum(mean == 0),
            "losses": np.sum(mean < 0),
            "clear_wins": np.sum(clear & (mean > 0)),
            "clear_losses": np.sum(clear & (mean < 0)),
        }
    return pd.DataFrame.from_dict(counts, orient="index")


# -- text --------------------------------------------------------------------------------------------------------------

_HEAD = f"{'fit':>10s}{'one row':>12s}{'row of many':>13s}{'numbers':>12s}"


def tables(fits: pd.DataFrame) -> str:
    """Return a table a set and one over all sets, as text."""
    if fits.empty:
        return "no results yet"
    of_sets = means(fits)
    parts = [_set_table(name, of_set, of_sets) for name, of_set in fits.groupby("set", sort=False)]
    return "\n\n".join([*parts, _summary_table(summary(fits))])


def _set_table(name: str, fits: pd.DataFrame, of_sets: pd.DataFrame) -> str:
    about = fits.iloc[0]
    title = f"{name}: {about['rows']} rows, {about['features']} features, {about['classes']} classes"
    if about["dropped"] != "0":
        title += f" ({about['dropped']} rows of rare classes left out)"
    lines = [title, f"{'':28s}{'test accuracy':>16s}{_HEAD}{'splits':>8s}  most often chosen"]
    notes = fits.loc[fits["accuracy"].isna()].drop_duplicates("method").set_index("method")["note"]
    for method in METHODS:
        label = f"{METHODS[method].label:28s}"
        if (name, method) in of_sets.index:
            row = of_sets.loc[(name, method)]
            error = "" if np.isnan(row["error"]) else f" ± {row['error']:4.2f}"
            late = f"; {row['unconverged']} not converged" if row["unconverged"] else ""
            lines.append(
                f"{label}{row['accuracy']:9.2f}{error:7s}{_costs(row)}{row['splits']:8d}  {row['chosen']}{late}"
            )
        elif method in notes:
            lines.append(f"{label}  {notes[method]}")
    return "\n".join(lines)


def _costs(row: pd.Series) -> str:
    return f"{row['fit']:8.3f} s{1e6 * row['one_row']:9.0f} µs{1e6 * row['batch_row']:10.2f} µs{row['size']:12.0f}"


def _summary_table(found: pd.DataFrame) -> str:
    n_sets = found["sets"].iloc[0] if len(found) else 0
    lines = [
        f"Over the sets that all methods have ({n_sets}): means of accuracies, geometric means of the rest.",
        f"Wins, ties and losses: of all sets, against '{METHODS[REFERENCE].label}'; clear ones are by more than "
        f"{_CLEAR:g} standard errors.",
        f"{'':28s}{'test accuracy':>16s}{_HEAD}   wins ties losses   clear wins  losses",
    ]
    for method in (name for name in METHODS if name in found.index):
        row = found.loc[method]
        line = f"{METHODS[method].label:28s}{row['accuracy']:16.2f}{_costs(row)}"
        if method != REFERENCE and "wins" in row:
            line += f"{row['wins']:7.0f}{row['ties']:5.0f}{row['losses']:7.0f}"
            line += f"{row['clear_wins']:13.0f}{row['clear_losses']:8.0f}"
        lines.append(line)
    return "\n".join(lines)
