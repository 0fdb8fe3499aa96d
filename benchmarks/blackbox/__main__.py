"""Black-box optimisation over x in {0, 1}^d: surrogates of degree 2 that are refitted after every new row.

Each search starts with 20 random rows, then fits a surrogate, minimises it by simulated annealing (dwave-samplers),
evaluates the best new row that this finds, and again, until the known minimum is found or 100 evaluations are spent:
mopn's polynomial network, a factorization machine trained by Adam (needs torch; left out without it), and random rows.

Prints evaluations to the minimum and times of refits, and writes ``searches.csv`` (a row a search) and ``searches.png``
to ``--out``::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.blackbox

``python -m benchmarks.blackbox.refits`` times refits at n = 1,000 and d = 100, and compares fits from ten seeds.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.blackbox import report
from benchmarks.blackbox.functions import FUNCTIONS, SIZES
from benchmarks.blackbox.search import COLUMNS, KEY, Run, run_search
from benchmarks.blackbox.surrogates import SURROGATES, installed_methods
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run

_LINE = "{function}, d = {d}, {method}, seed {seed}: {evaluations} evaluations, excess {excess}, {refit} ms a refit"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("blackbox", __doc__, data=False, results="blackbox")
    add_restart_options(parser, "one seed, and 40 evaluations")
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    parser.add_argument(
        "--d", type=int, help="number of features, of loops and assignments a square (default 32 to 36)"
    )
    parser.add_argument("--methods", nargs="+", choices=SURROGATES, default=list(SURROGATES))
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds (default %(default)s)")
    parser.add_argument("--evaluations", type=int, default=100, help="the most of a search (default %(default)s)")
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    out, failures = out_folder(options), 0
    store = Store(out / "searches.csv", COLUMNS, KEY)
    if not options.report:
        seeds, most = (1, 40) if options.quick else (options.seeds, options.evaluations)
        methods = [method for method in installed_methods() if method in options.methods]
        sizes = {f: options.d or SIZES[f] for f in options.functions}
        runs = [
            Run(f, d, method, seed, most=most) for seed in range(seeds) for f, d in sizes.items() for method in methods
        ]
        failures = fill(store, runs, vars, run_search, _LINE)
    _report(store, out)
    return failures


def _report(store: Store, out: Path) -> None:
    searches = report.frame(store.rows())
    print("\n" + report.table(searches))
    if len(searches):
        report.draw(searches, out / "searches.png")
        print(f"written: {out / 'searches.png'}")


if __name__ == "__main__":
    sys.exit(main())
