"""mopn's estimators of tables against their alternatives, at their defaults or tuned, on up to 72 tables.

Split number s holds out a quarter of the rows, drawn with seed s, as the test; of classes it keeps the shares. Small
tables come first and have more splits. A fit that takes more than ``--fit-seconds`` of the processor is a note. Methods
of packages that are not installed are left out.

With ``--tuned`` methods stand next to themselves with parameters of a random search, which takes ``--budget`` CPU
seconds for each, whatever the method, and scores configurations by the mean accuracy, or R2, over three parts of the
training rows, each held out once. The sets have up to 5,000 rows.

Prints scores by set and means, of classes and of numbers, and how mopn compares with each method, and writes
``fits.csv`` (a row a set, split and method), ``classes.csv`` and ``numbers.csv``, ``ranks.png`` and ``costs.png`` to
``--out``::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables --data FOLDER
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables --data FOLDER --tuned
"""

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
from benchmarks.tables.fits import COLUMNS, SMALL, SPLITS, run_task, table_of, tasks_of
from benchmarks.tables.methods import METHODS

_QUICK_SETS = ["breast_cancer", "diabetes"]
_QUICK_SPLITS, _MOST_TUNED = 1, 5_000
_LINE = "{set}, split {split}, {method}: {score} in {fit} s {note}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("tables", __doc__, sets=TABLES, results="tables")
    parser.set_defaults(sets=None)
    add_restart_options(parser, f"{_QUICK_SPLITS} split of {', '.join(_QUICK_SETS)}")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all that the study compares")
    parser.add_argument("--tuned", action="store_true", help="compare tuned methods; results in results/tables-tuned")
    parser.add_argument(
        "--budget", type=float, default=4.0, help="CPU seconds of a search with --tuned (default %(default)s)"
    )
    parser.add_argument(
        "--splits", type=int, help=f"number of random splits (default {SPLITS}, and 1 from {SMALL} rows on)"
    )
    parser.add_argument(
        "--fit-seconds", type=float, default=60.0, help="CPU seconds that a fit may take (default %(default)s)"
    )
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    options.results += "-tuned" * options.tuned
    out, failures = out_folder(options), 0
    store = Store(out / "fits.csv", COLUMNS, KEY)
    if not options.report:
        names = options.sets or (_QUICK_SETS if options.quick else list(TABLES))
        check(TABLES, names, options.data)
        make_row = partial(run_task, folder=options.data, fit_seconds=options.fit_seconds, budget=options.budget)
        failures = fill(store, _tasks(options, names), vars, make_row, _LINE)
    _report(store, out)
    return failures


def _tasks(options: argparse.Namespace, names: Sequence[str]) -> list[Task]:
    """Return the fits to make, and print the omitted ones."""
    wanted = options.methods or compared(options.tuned)
    methods = [name for name in wanted if METHODS[name].is_installed]
    for name in (name for name in wanted if name not in methods):
        print(f"{METHODS[name].label} is left out: the package {METHODS[name].package} is not installed")
    rows = {name: len(table_of(name, options.data).y) for name in names}
    if options.tuned and not options.sets:
        rows = {name: count for name, count in rows.items() if count <= _MOST_TUNED}
    return tasks_of(rows, methods, options.splits or (_QUICK_SPLITS if options.quick else None))


def compared(tuned: bool) -> list[str]:
    """Return the methods at their defaults, or those that can be tuned, and their tuned forms."""
    if tuned:
        return [name for name in METHODS if METHODS[name].spaces or f"{name}-tuned" in METHODS]
    return [name for name in METHODS if not METHODS[name].spaces]


def _report(store: Store, out: Path) -> None:
    fits = report.frame(store.rows())
    print("\n" + report.tables(fits))
    summaries = {kind: report.summary(of_kind) for kind, of_kind in report.kinds(fits)}
    for kind, found in summaries.items():
        found.to_csv(out / f"{kind}.csv", float_format="%.6g")
        print(f"written: {out / f'{kind}.csv'}")
    for draw, name in ((figure.draw_ranks, "ranks.png"), (figure.draw_costs, "costs.png")):
        if summaries:
            draw(summaries, out / name)
            print(f"written: {out / name}")


if __name__ == "__main__":
    sys.exit(main())
