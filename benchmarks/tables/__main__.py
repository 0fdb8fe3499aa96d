"""mopn's estimators of tables beside what a user would pick instead, each at its defaults, on more than 70 tables.

Split number s holds out a quarter of the rows, drawn with seed s, as the test; of classes it keeps the shares. Small
tables come first and have more splits. A fit that takes more than ``--fit-seconds`` of the processor is a note. What a
package that is not installed would fit is left out.

Prints a table a set and two over all, of classes and of numbers, and writes ``fits.csv`` (a row a set, split and
method), ``classes.csv`` and ``numbers.csv``, ``ranks.png`` and ``sizes.png`` to ``--out``::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import KEY, Task, add_restart_options, fill, make_parser, out_folder, run
from benchmarks.common.tables import TABLES
from benchmarks.tables import figure, report
from benchmarks.tables.fits import COLUMNS, run_task, table_of
from benchmarks.tables.methods import METHODS

__all__ = ["main"]

_QUICK_SETS = ["breast_cancer", "diabetes"]
_SPLITS, _SMALL, _QUICK_SPLITS = 2, 2_000, 1
_LINE = "{set}, split {split}, {method}: {score} in {fit} s {note}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    return run(_parser(), _study, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("tables", __doc__, sets=TABLES, results="tables")
    parser.set_defaults(sets=None)
    add_restart_options(parser, f"{_QUICK_SPLITS} split of {', '.join(_QUICK_SETS)}")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--splits", type=int, help=f"number of random splits (default {_SPLITS}, and 1 from {_SMALL} rows on)"
    )
    parser.add_argument(
        "--fit-seconds", type=float, default=60.0, help="CPU seconds that a fit may take (default %(default)s)"
    )
    return parser


def _study(options: argparse.Namespace) -> int:
    out, failures = out_folder(options), 0
    store = Store(out / "fits.csv", COLUMNS, KEY)
    if not options.report:
        names = options.sets or (_QUICK_SETS if options.quick else list(TABLES))
        check(TABLES, names, options.data)
        make_row = partial(run_task, folder=options.data, fit_seconds=options.fit_seconds)
        failures = fill(store, _tasks(options, names), vars, make_row, _LINE)
    _report(store, out)
    return failures


def _tasks(options: argparse.Namespace, names: Sequence[str]) -> list[Task]:
    """Return what is to be fitted: the first split of all sets, from the smallest on, before the second one."""
    methods = [name for name in options.methods if METHODS[name].is_installed]
    for name in (name for name in options.methods if name not in methods):
        print(f"{METHODS[name].label} is left out: the package {METHODS[name].package} is not installed")
    rows = {name: len(table_of(name, options.data).y) for name in names}
    quick = _QUICK_SPLITS if options.quick else None
    splits = {name: options.splits or quick or (_SPLITS if rows[name] < _SMALL else 1) for name in names}
    return [
        Task(name, split, method)
        for split in range(max(splits.values()))
        for name in sorted(names, key=rows.__getitem__)
        if split < splits[name]
        for method in methods
    ]


def _report(store: Store, out: Path) -> None:
    fits = report.frame(store.rows())
    print("\n" + report.tables(fits))
    for kind, of_kind in report.kinds(fits):
        report.summary(of_kind).to_csv(out / f"{kind}.csv", float_format="%.6g")
        print(f"written: {out / f'{kind}.csv'}")
    for draw, name in ((figure.draw_ranks, "ranks.png"), (figure.draw_sizes, "sizes.png")):
        if len(fits):
            draw(fits, out / name)
            print(f"written: {out / name}")


if __name__ == "__main__":
    sys.exit(main())
