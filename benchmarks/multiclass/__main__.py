"""Tables 2 and 4 and Figure 3 of Blondel et al. (NIPS 2017) on segment, vowel, satimage and letter.

Fits, prints the tables next to the paper's figures, and writes ``fits.csv`` (a row a fit), ``summary.csv`` and
``figure3.png`` to ``--out``. letter, which takes an hour a split, must be asked for with ``--sets``::

    OMP_NUM_THREADS=1 python -m benchmarks.multiclass --data FOLDER --jobs 2
"""

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
from benchmarks.multiclass.fits import COLUMNS, KEY, run_task
from benchmarks.multiclass.plan import DEFAULT_SETS, QUICK_SETS, SETS, tasks

_LINE = "{set}, split {split}, {method} {norm} {loss} {refit}: strength {strength}, test accuracy {test}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("multiclass", __doc__, sets=SETS, results="multiclass")
    parser.set_defaults(sets=None)
    add_restart_options(parser, "a small selection, two minutes on two cores")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time (default 1)")
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    out, failures = out_folder(options), 0
    store = Store(out / "fits.csv", COLUMNS, KEY)
    if not options.report:
        names = options.sets or (QUICK_SETS if options.quick else DEFAULT_SETS)
        check(DATA_SETS, names, options.data)
        make_row = partial(run_task, folder=options.data)
        failures = fill(store, list(tasks(names, quick=options.quick)), vars, make_row, _LINE, jobs=options.jobs)
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


if __name__ == "__main__":
    sys.exit(main())
