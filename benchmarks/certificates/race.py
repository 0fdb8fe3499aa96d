"""The race with semidefinite programming: the same convex problem by mopn, and in CVXPY by Clarabel and SCS.

A symmetric matrix an output, the loss of their quadratic forms in [1, x], and the sum of their nuclear norms: mopn's
norm l1. The data are generated, forms of rank 2 with noise, with d features and a constant 1, so that matrices are
of order d + 1; the strength is a tenth of the largest of use. "logistic" is multi-class, and with one output binary.

The race is for the seconds to a *proven* relative gap of 1e-4. mopn has a proof of its own. A solver of semidefinite
programs is run with tolerance 1e-4, 1e-5, ... until ``mopn.certify`` proves the gap of its matrices. Its time
is the last run's, without CVXPY's compilation, which has a column; where none is proven, the best is shown, and
tighter tolerances that change nothing end it as "not accurate enough". "difference" compares its objective with
mopn's, as they solve the same problem. A run is a process, which ends at its limit of memory or of seconds, for all
tolerances together with 10 more for loading; after that a solver is not tried at larger sizes. The same command
goes on from where it was stopped.

The packages cvxpy, clarabel and scs are needed for theirs, and are no dependency of mopn: pip install cvxpy clarabel
scs. ``--solvers mopn`` does without::

    OMP_NUM_THREADS=1 python -m benchmarks.certificates.race
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.certificates import race_figure
from benchmarks.certificates.planted import LOSSES
from benchmarks.certificates.race_cell import DONE, INACCURATE, Cell, answer_in_process, print_answers
from benchmarks.certificates.semidefinite import SOLVERS, missing_packages
from benchmarks.common.store import Store
from benchmarks.common.study import make_parser, out_folder, run

ALL_SOLVERS = ("mopn", *SOLVERS)
KEY = Cell._fields
COLUMNS = (*KEY, "status", "seconds", "compilation", "tolerance", "fun", "gap")
_SIZES = {"n": (1000,), "d": (5, 10, 20, 30, 50), "m": (1, 3, 10)}
_QUICK_SIZES = {"n": (300,), "d": (5, 10), "m": (1, 3)}
_SKIPPED = "not tried"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("certificates.race", __doc__, data=False, results="race")
    for name, what in (("n", "rows"), ("d", "features without the 1"), ("m", "outputs or classes")):
        default = " ".join(map(str, _SIZES[name]))
        parser.add_argument(f"--{name}", nargs="+", type=int, help=f"{what} (default {default})")
    parser.add_argument("--loss", nargs="+", choices=LOSSES, default=["logistic"], help="default: logistic")
    parser.add_argument("--solvers", nargs="+", choices=ALL_SOLVERS, default=list(ALL_SOLVERS), help="default: all")
    parser.add_argument("--ratio", type=float, default=0.1, help="strength, as a mopn.Ratio (default %(default)s)")
    parser.add_argument("--max-time", type=float, default=600.0, help="seconds a run (default 600)")
    parser.add_argument("--memory", type=float, default=16.0, help="GiB a run (default 16)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the program")
    parser.add_argument("--cell", help="internal: one run, as JSON")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> int | None:
    """Print a row a run, and draw all rows; or, with --cell, make one run in this process."""
    if args.cell:
        return print_answers(args.cell)
    if lacking := missing_packages(args.solvers):
        command = f"pip install {' '.join(lacking)}"
        print(f"the solvers {' '.join(args.solvers)} need packages that are missing: {command}", file=sys.stderr)
        return 1
    out = out_folder(args)
    rows = []
    print(
        "loss          n    d   m  solver         time  compiled  tolerance       gap    objective  difference  status"
    )
    for row in _rows(args, Store(out / "race.csv", COLUMNS, KEY)):
        rows.append(row)
        print(line(row, rows), flush=True)
    race_figure.draw([row for row in rows if row["status"] != _SKIPPED], ALL_SOLVERS, out / "race.png")
    print(f"\nwritten: {out / 'race.png'}")
    return None


# -- runs --------------------------------------------------------------------------------------------------------------


def cells(args: argparse.Namespace) -> Iterator[Cell]:
    """Yield all runs, from small to large, and on every problem mopn first."""
    sizes = {name: getattr(args, name) or values for name, values in (_QUICK_SIZES if args.quick else _SIZES).items()}
    for loss in args.loss:
        for n in sorted(sizes["n"]):
            for m in sorted(sizes["m"]):
                for d in sorted(sizes["d"]):
                    for solver in sorted(args.solvers, key=ALL_SOLVERS.index):
                        yield Cell(loss, n, d, m, solver, args.ratio, args.max_time, args.memory)


def _rows(args: argparse.Namespace, store: Store) -> Iterator[dict[str, Any]]:
    """Yield a row a run: from the store, or made now and stored."""
    known = {store.key_of(row): row for row in store.rows()}
    failed: list[Cell] = []
    for cell in cells(args):
        row = known.get(store.key_of(cell._asdict()))
        if row is None and any(no_larger(other, cell) for other in failed):
            yield cell._asdict() | {"status": _SKIPPED}
            continue
        if row is None:
            row = cell._asdict() | answer_in_process(cell, "benchmarks.certificates.race")
            store.append(row)
        # More accurate a solver may well be on a larger problem.
        if row["status"] not in (DONE, INACCURATE):
            failed.append(cell)
        yield row


def no_larger(first: Cell, second: Cell) -> bool:
    """Return whether one solver has two problems, and no size of the first one is larger."""
    same = first.solver == second.solver and first.loss == second.loss
    return same and first.n <= second.n and first.d <= second.d and first.m <= second.m


# -- table -------------------------------------------------------------------------------------------------------------


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """Return a row of the table; ``rows`` has the one of mopn on the same problem."""
    sizes = f"{row['loss']:9s} {int(row['n']):5d} {int(row['d']):4d} {int(row['m']):3d}  {row['solver']:8s}"
    numbers = (
        _shown(row.get("seconds"), "11.3f"),
        _shown(row.get("compilation"), "9.2f"),
        _shown(row.get("tolerance"), "10.0e"),
        _shown(row.get("gap"), "9.1e"),
        _shown(row.get("fun"), "12.6g"),
        _shown(_difference(row, rows), "11.1e"),
    )
    return f"{sizes} {' '.join(numbers)}  {row['status']}"


def _shown(value: Any, form: str) -> str:
    return f"{'-':>{form.split('.')[0]}s}" if value in (None, "") else format(float(value), form)


def _difference(row: dict[str, Any], rows: list[dict[str, Any]]) -> float | None:
    """Return the objective over mopn's on this problem, less 1."""
    same = [other for other in rows if all(str(other[name]) == str(row[name]) for name in ("loss", "n", "d", "m"))]
    fun = next((other.get("fun") for other in same if other["solver"] == "mopn"), None)
    return None if fun in (None, "") or row.get("fun") in (None, "") else float(row["fun"]) / float(fun) - 1.0


if __name__ == "__main__":
    sys.exit(main())
