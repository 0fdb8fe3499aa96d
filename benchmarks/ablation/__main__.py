"""What each constant of conditional gradient and of its oracles is worth: fits without it, and with twice as much.

Five sets; a proof, a small model (of two classes too, and without matrices) and refits of the output layer alone. The
table has the ratios of CPU seconds, rounds, gap and objective to the fits as they are,
as geometric means, and the change of test accuracy in points::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.ablation --data FOLDER
"""

import argparse
import sys
from collections.abc import Sequence

from benchmarks.ablation.fits import COLUMNS, KEY, SETS, make_row, wanted
from benchmarks.ablation.report import table
from benchmarks.common.datasets import DATA_SETS
from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import fill, make_parser, out_folder, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("ablation", __doc__, sets=SETS, results="ablation")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--report", action="store_true", help="fit nothing, report the stored fits")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> int:
    store = Store(out_folder(args) / "fits.csv", COLUMNS, KEY)
    failures = 0
    if not args.report:
        check(DATA_SETS, [name for name in args.sets if name in DATA_SETS], args.data)
        line = "{constant} {variant}: {set} {norm} {goal} {seconds:.1f} s"
        failures = fill(store, wanted(args.sets, args.data), lambda fit: fit.key, make_row, line, args.jobs)
    print(table(store.rows()))
    return failures


if __name__ == "__main__":
    sys.exit(main())
