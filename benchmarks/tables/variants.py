"""Studies of variants of mopn's estimators of tables: fits on the same splits, and what each gains over the first."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from time import thread_time
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.common.collection import hold_out
from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import KEY, Task, add_restart_options, fill, make_parser, out_folder
from benchmarks.common.tables import TABLES
from benchmarks.tables.fits import SMALL, SPLITS, quality, table_of, tasks_of
from benchmarks.tables.report import markdown

__all__ = ["COLUMNS", "Variant", "fit_variants", "gains", "gains_table", "parser_of", "run_variant", "scores_table"]

COLUMNS = [*KEY, "score", "loss", "fit"]
# From whether the target is of classes to an estimator.
Variant = Callable[[bool], Any]
_LINE = "{set}, split {split}, {method}: {score} in {fit} s"
_QUICK_SETS = ["breast_cancer", "diabetes"]


def parser_of(program: str, text: str, sets: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of such a study; parameters as for ``make_parser``, with the names of its sets."""
    parser = make_parser(f"tables.{program}", text, sets=TABLES, results=f"tables-{program}")
    parser.set_defaults(sets=list(sets))
    add_restart_options(parser, f"one split of {', '.join(_QUICK_SETS)}")
    parser.add_argument(
        "--splits", type=int, help=f"number of random splits (default {SPLITS}, and 1 from {SMALL} rows on)"
    )
    return parser


def fit_variants(options: argparse.Namespace, variants: Mapping[str, Variant]) -> tuple[pd.DataFrame, int]:
    """Fit what the store lacks; return its rows by variant, scores in percent, and how many fits failed."""
    store, failures = Store(out_folder(options) / "fits.csv", COLUMNS, KEY), 0
    if not options.report:
        sets, splits = (_QUICK_SETS, 1) if options.quick else (options.sets, options.splits)
        check(TABLES, sets, options.data)
        rows = {name: len(table_of(name, options.data).y) for name in sets}
        make_row = partial(run_variant, variants=variants, folder=options.data)
        failures = fill(store, tasks_of(rows, variants, splits), vars, make_row, _LINE)
    fits = pd.DataFrame(store.rows(), columns=COLUMNS)
    fits[COLUMNS[3:]] = fits[COLUMNS[3:]].apply(pd.to_numeric)
    places = {name: place for place, name in enumerate(variants)}
    fits = fits.sort_values("method", key=lambda names: names.map(places), kind="stable")
    return fits.assign(score=100 * fits["score"]), failures


def run_variant(task: Task, variants: Mapping[str, Variant], folder: str) -> dict[str, Any]:
    """Return the row of a variant on a split, the same ones as those of ``benchmarks.tables``."""
    X, y, m = table_of(task.set, folder)
    X, X_test, y, y_test = hold_out(X, y, task.split, stratify=m > 0)
    model = variants[task.method](m > 0)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = thread_time()
        model.fit(X, y)
        measured = {"fit": thread_time() - began} | quality(model, X_test, y_test, m)
    return asdict(task) | {name: f"{measured[name]:.6g}" for name in COLUMNS[3:]}


# -- report ------------------------------------------------------------------------------------------------------------


def gains(fits: pd.DataFrame) -> pd.DataFrame:
    """Return a row a variant: how it compares with the first one, over sets, of which the splits' means are taken."""
    means = fits.groupby(["set", "method"], sort=False)[COLUMNS[3:]].mean()
    values = {name: means[name].unstack("method").reindex(columns=fits["method"].unique()) for name in means}
    first = fits["method"].iloc[0]
    points = values["score"].sub(values["score"][first], axis=0).round(6)
    ratios = {name: np.log(values[name].div(values[name][first], axis=0)) for name in ("loss", "fit")}
    return pd.DataFrame(
        {"points": points.mean(), "error": points.sem()}
        | {"wins": (points > 0).sum(), "ties": (points == 0).sum(), "losses": (points < 0).sum()}
        | {name: np.exp(ratio.mean()) for name, ratio in ratios.items()}
        | {"loss_error": ratios["loss"].sem()}
    )


def gains_table(fits: pd.DataFrame) -> str:
    """Return ``gains`` as Markdown."""
    if fits.empty:
        return "no results yet"
    head = ["", "points", "wins", "ties", "losses", "loss, ratio", "fit, ratio"]
    rows = [
        [
            str(name),
            f"{row['points']:+.2f} ± {row['error']:.2f}",
            *(f"{row[key]:.0f}" for key in ("wins", "ties", "losses")),
            f"{row['loss']:.3f} ± {row['loss'] * row['loss_error']:.3f}",
            f"{row['fit']:.2f}",
        ]
        for name, row in gains(fits).iloc[1:].iterrows()
    ]
    title = f"Beside {fits['method'].iloc[0]!r}, over {fits['set'].nunique()} sets, with standard errors:"
    return f"{title}\n\n{markdown(head, rows)}"


def scores_table(fits: pd.DataFrame) -> str:
    """Return the mean scores of all sets and variants as Markdown."""
    scores = fits.groupby(["set", "method"], sort=False)["score"].mean().unstack("method")
    scores = scores.reindex(index=fits["set"].unique(), columns=fits["method"].unique())
    rows = [[str(name), *(f"{value:.1f}" for value in row)] for name, row in scores.iterrows()]
    return f"test accuracy or R2, %:\n\n{markdown(['set', *map(str, scores)], rows)}"
