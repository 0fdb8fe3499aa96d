"""mopn against SVMs, boosting and others: accuracy, times and sizes on 24 classification sets, features unscaled.

Split number s holds out a quarter of the rows, drawn with seed s, as the test. A quarter of the rest is held out to
choose the hyper-parameter by; then all of the rest is fitted again with the chosen one, and that fit is measured. All
draws keep the shares of the classes. mopn gets the features as they are; ``methods.py`` has the other pipelines and all
grids. A grid that takes long is cut off: no further estimator is tried after ``--grid-seconds``.

Prints a table a set and one over all, and writes ``fits.csv`` (a row a set, split and method), ``means.csv``,
``summary.csv`` and ``pareto.png`` to ``--out``::

    OMP_NUM_THREADS=1 python -m benchmarks.alternatives --data FOLDER
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.alternatives import figure, report
from benchmarks.alternatives.fits import COLUMNS, run_task
from benchmarks.alternatives.methods import METHODS, installed_methods
from benchmarks.common.collection import COLLECTION
from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import KEY, Task, add_restart_options, fill, make_parser, out_folder, run

_QUICK_SETS = ["wine", "ecoli", "breast_cancer"]
_SPLITS, _QUICK_SPLITS = 5, 2
_LINE = "{set}, split {split}, {method}: {chosen}, test accuracy {accuracy} {note}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("alternatives", __doc__, sets=COLLECTION, results="alternatives")
    parser.set_defaults(sets=None)
    add_restart_options(parser, f"{_QUICK_SPLITS} splits of {', '.join(_QUICK_SETS)}")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=installed_methods())
    parser.add_argument("--splits", type=int, help=f"number of random splits (default {_SPLITS})")
    parser.add_argument(
        "--grid-seconds", type=float, default=120.0, help="when a grid tries no further estimator (default %(default)s)"
    )
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    out, failures = out_folder(options), 0
    store = Store(out / "fits.csv", COLUMNS, KEY)
    if not options.report:
        planned = _tasks(options)
        check(COLLECTION, {task.set for task in planned}, options.data)
        make_row = partial(run_task, folder=options.data, grid_seconds=options.grid_seconds)
        failures = fill(store, planned, vars, make_row, _LINE)
    _report(store, out)
    return failures


def _tasks(options: argparse.Namespace) -> list[Task]:
    """Return the fits to make: all of a split before the next one, so that a run that is stopped has all sets."""
    sets = options.sets or (_QUICK_SETS if options.quick else list(COLLECTION))
    splits = options.splits or (_QUICK_SPLITS if options.quick else _SPLITS)
    return [Task(name, split, method) for split in range(splits) for name in sets for method in options.methods]


def _report(store: Store, out: Path) -> None:
    fits = report.frame(store.rows())
    print("\n" + report.tables(fits))
    if len(fits):
        summary = report.summary(fits)
        report.means(fits).to_csv(out / "means.csv", float_format="%.6g")
        summary.to_csv(out / "summary.csv", float_format="%.6g")
        print(f"\nwritten to {out}: means.csv, summary.csv")
    if len(fits) and len(summary):
        figure.draw(summary, out / "pareto.png")
        print(f"written: {out / 'pareto.png'}")


if __name__ == "__main__":
    sys.exit(main())
