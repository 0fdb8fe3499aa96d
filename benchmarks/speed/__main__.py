"""Ratios of times, side by side in one run: refits against the paper's FISTA, fits against an SVM.

* ``refits``: output layers on the features of real fits, logistic loss, to a proven gap of 1e-6: ``InteriorPoint``
  against ``FISTA``, the paper's method (with restart).
* ``working sets``: FISTA on working sets of 400 units, against FISTA on all.
* ``fits``: whole fits of both layers with default settings, against a quadratic-kernel SVM.
* ``paths``: a path of 20 strengths, against one cold fit at the smallest.

A ratio is the other's time over ours. After ``>``, the other had not arrived when it stalled or its ``--cap`` seconds
were over; it is 0 where ours had not. Times far below a second are the best of up to three runs. Threads are as the
environment says::

    OMP_NUM_THREADS=1 python -m benchmarks.speed --data FOLDER
"""

import argparse
import sys
from collections.abc import Sequence

from threadpoolctl import threadpool_info

from benchmarks.common.datasets import DATA_SETS
from benchmarks.common.study import make_parser, run
from benchmarks.speed.fits import fits, paths
from benchmarks.speed.layers import refits, working_sets

PARTS = {"refits": refits, "working sets": working_sets, "fits": fits, "paths": paths}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("speed", __doc__, sets=DATA_SETS)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--cap", type=float, default=60.0, help="seconds a refit may take (default 60)")
    parser.add_argument("--splits", type=int, default=5, help="splits of the fits (default 5)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print the tables."""
    print("BLAS threads:", ", ".join(f"{pool['num_threads']} ({pool['internal_api']})" for pool in threadpool_info()))
    for part in args.parts:
        PARTS[part](args)


if __name__ == "__main__":
    sys.exit(main())
