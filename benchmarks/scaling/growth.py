"""How long classifiers take to come within 0.3 points of the best accuracy, and how that grows with the number of rows.

Five classes of n rows in [-1, 1]^d, a tenth of the labels at random; ``squares``: the class is the largest of five
squares of random linear forms, which networks of degree 2 hold exactly; ``steps``: the largest of five sums of products
of the signs of three pairs of features, which trees hold. Every method is fitted in stages, each with more units,
trees, epochs or components than the last, until another such stage would exceed ``--limit`` seconds of the processor:
mopn with more and more units; LightGBM (where it is installed) and scikit-learn's histogram boosting with more trees;
SGD on all products of two features, by epochs; a linear SVM on more and more features of Nystroem. Accuracy is of
20,000 other rows. All methods have their defaults, and one thread.

A fit is a process of its own, whose growth to its peak of memory is told; ``growth.csv`` has a row for
each. The exponent is of the seconds in the rows, from the size before::

    OMP_NUM_THREADS=1 python -m benchmarks.scaling.growth --rows 10000 100000 1000000 --features 20 100
"""

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.common.printing import Table
from benchmarks.common.processes import run_program
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run
from benchmarks.scaling.stages import KINDS, METHODS, Fit, stages

# The difference up to which accuracies count as the best.
_POINTS = 0.003
_KEY = ["kind", "method", "n", "d"]
_COLUMNS = [*_KEY, "seconds", "accuracies", "memory"]
_LINE = "{kind}, {method}, {n} x {d}: {seconds} s, accuracies {accuracies}, {memory} MB"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("scaling.growth", __doc__, data=False, results="growth")
    add_restart_options(parser, "1,000 and 4,000 rows of 5 features")
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--features", nargs="+", type=int, default=[20, 100])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a fit's processor (default %(default)s)")
    parser.add_argument("--cell", nargs=5, help="internal: one fit, as JSON")
    return run(parser, _study, arguments)


def _study(args: argparse.Namespace) -> int:
    if args.cell:
        kind, method, n, d, limit = args.cell
        print(json.dumps(stages(Fit(kind, method, int(n), int(d), float(limit)))))
        return 0
    rows, features, limit = ([1000, 4000], [5], 1.0) if args.quick else (args.rows, args.features, args.limit)
    methods = [method for method in args.methods if method != "lightgbm" or find_spec("lightgbm")]
    wanted = [Fit(*of, limit) for of in itertools.product(args.kinds, methods, rows, features)]
    store = Store(out_folder(args) / "growth.csv", _COLUMNS, _KEY)
    failures = 0 if args.report else fill(store, wanted, _key, _row, _LINE)
    _report(store.rows())
    return failures


def _key(fit: Fit) -> dict[str, Any]:
    return {name: getattr(fit, name) for name in _KEY}


def _row(fit: Fit) -> dict[str, Any]:
    found = run_program("scaling.growth", "--cell", *fit)
    texts = {name: " ".join(map("{:.4g}".format, found[name])) for name in ("seconds", "accuracies")}
    return {**_key(fit), **texts, "memory": round(found["memory"])}


def _report(rows: Sequence[dict[str, str]]) -> None:
    """Print a line a fit: seconds until it is within 0.3 points of the best of all, and how they grow with n."""
    cases = sorted({(row["kind"], int(row["d"])) for row in rows})
    table = Table(
        "kind:8s, features:d, method:10s, rows:8d, best accuracy:.4f, seconds to 0.3 points:.1f, all seconds:.1f, "
        "memory:6d MB, exponent:.2f"
    )
    for kind, d in cases:
        of_case = [row for row in rows if row["kind"] == kind and int(row["d"]) == d]
        for method in METHODS:
            before = None
            for row in sorted((row for row in of_case if row["method"] == method), key=lambda row: int(row["n"])):
                n, seconds, accuracies = int(row["n"]), _numbers(row["seconds"]), _numbers(row["accuracies"])
                best = max(max(_numbers(other["accuracies"])) for other in of_case if other["n"] == row["n"])
                reached = [s for s, a in zip(seconds, accuracies, strict=True) if a >= best - _POINTS]
                exponent = np.log(reached[0] / before[1]) / np.log(n / before[0]) if reached and before else None
                before = (n, reached[0]) if reached else None
                until = reached[0] if reached else None
                table.row(kind, d, method, n, max(accuracies), until, seconds[-1], int(row["memory"]), exponent)


def _numbers(text: str) -> list[float]:
    return list(map(float, text.split()))


if __name__ == "__main__":
    sys.exit(main())
