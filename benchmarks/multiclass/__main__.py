"""Tables 2 and 4 and Figure 3 of Blondel et al. (NIPS 2017) on segment, vowel, satimage and letter.

Fits, prints the tables with the paper's figures beside, and writes ``fits.csv`` (a row a fit), ``summary.csv`` and
``figure3.png`` to ``--out``. letter, which takes an hour a split, must be asked for with ``--sets``::

    OMP_NUM_THREADS=1 python -m benchmarks.multiclass --data FOLDER --jobs 2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.common.datasets import DATA_SETS
from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run
from benchmarks.multiclass import figure, report
from benchmarks.multiclass.fits import COLUMNS, KEY, METHODS, run_task
from benchmarks.multiclass.paper_tables import NORMS
from benchmarks.multiclass.plan import LOSSES, REFITS, SETS, Plan, default_plan, quick_plan, tasks

_LINE = "{set}, split {split}, {method} {norm} {loss} {refit}: strength {strength}, test accuracy {test}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("multiclass", __doc__, sets=SETS, results="multiclass")
    parser.set_defaults(sets=None)
    add_restart_options(parser, "a small selection, two minutes on two cores")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time (default 1)")
    parser.add_argument("--methods", nargs="+", choices=METHODS)
    parser.add_argument("--norms", nargs="+", choices=NORMS)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, help="of conditional gradient")
    parser.add_argument("--refits", nargs="+", choices=REFITS, help="of conditional gradient")
    parser.add_argument("--splits", type=int, help="number of random splits (default 10; satimage 5, letter 1)")
    parser.add_argument("--strengths", nargs="+", type=float, help="instead of the grids, for all networks")
    parser.add_argument("--max-units", type=int, help="limit on the number of units (default 50; letter 150)")
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    plan, out, failures = _plan(options), out_folder(options), 0
    store = Store(out / "fits.csv", COLUMNS, KEY)
    if not options.report:
        check(DATA_SETS, plan.sets, options.data)
        failures = fill(
            store, list(tasks(plan)), vars, partial(run_task, folder=options.data), _LINE, jobs=options.jobs
        )
    _report(store, out)
    return failures


def _report(store: Store, out: Path) -> None:
    fits = report.frame(store.rows())
    summary = report.summary(fits)
    print("\n" + report.tables(summary))
    if len(summary):
        summary.to_csv(out / "summary.csv", index=False, float_format="%.4f")
        written = [str(out / "summary.csv")]
        if figure.draw(fits, out / "figure3.png"):
            written.append(str(out / "figure3.png"))
        print(f"\nwritten: {', '.join(written)}")


def _plan(options: argparse.Namespace) -> Plan:
    """Return the default or the quick plan with what the options change."""
    plan = quick_plan() if options.quick else default_plan()
    names = ("sets", "methods", "norms", "losses", "refits", "splits", "strengths", "max_units")
    return plan.with_options({name: getattr(options, name) for name in names if getattr(options, name) is not None})


if __name__ == "__main__":
    sys.exit(main())
