"""The race for the maximum of ||q(h)||_p on the sphere: what is proven, by whom, and in how long.

Random Gaussian stacks of m symmetric matrices of order d; p = 2 is the quartic sum_c (h' G_c h)^2, p = 1 the sum of
moduli. mopn's is ``mopn.solvers.sphere.maximise`` with tolerance 1e-4. The others solve the relaxation of smaller
order, sums of squares (d (d + 1) / 2) or biquadratic forms ((m + 1) d), as a semidefinite program: Clarabel and SCS in
CVXPY with tolerances of 1e-5, and the method of ManiSDP, low-rank factors on the sphere with
a dual certificate, written plainly. From whatever they return, multipliers are read, and their bound is evaluated as
mopn's are, rounding errors included; "excess" is that bound over the best value that mopn found, less 1.

Seconds are those of the process's CPU, in which CVXPY's compilation is included; the limit is of the clock. A run is a
process; but for mopn, a solver that reached a limit at one size is not tried at larger ones. The same command goes on
from where it was stopped. The packages cvxpy, clarabel and scs are no dependency of mopn: pip install cvxpy clarabel
scs. ``--solvers mopn low-rank`` does without::

    OMP_NUM_THREADS=1 python -m benchmarks.certificates.sphere_race
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.certificates.race_cell import TIME_OUT, answer_in_process
from benchmarks.certificates.semidefinite import SOLVERS, missing_packages
from benchmarks.certificates.sphere_relaxations import by_low_rank, by_program, relaxation
from benchmarks.common.processes import limit_memory
from benchmarks.common.store import Store
from benchmarks.common.study import make_parser, out_folder, run
from mopn.solvers.sphere import DenseStack, maximise

ALL_SOLVERS = ("mopn", *SOLVERS, "low-rank")
_TOL, _ENDED = 1e-4, "ended"
_GIB = 2**30


class Cell(NamedTuple):
    """A problem, a solver, and its limits: seconds, and GiB of memory."""

    p: int
    d: int
    m: int
    solver: str
    max_time: float
    memory: float


KEY = Cell._fields
COLUMNS = (*KEY, "status", "seconds", "compilation", "bound", "value")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("certificates.sphere_race", __doc__, data=False, results="sphere-race")
    parser.add_argument("--p", nargs="+", type=int, choices=(1, 2), default=[2], help="default: 2")
    parser.add_argument("--d", nargs="+", type=int, default=[10, 30, 65, 130, 257])
    parser.add_argument("--m", nargs="+", type=int, default=[3, 10, 26])
    parser.add_argument("--solvers", nargs="+", choices=ALL_SOLVERS, default=list(ALL_SOLVERS), help="default: all")
    parser.add_argument("--max-time", type=float, default=60.0, help="seconds a run (default 60)")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB a run (default 8)")
    parser.add_argument("--cell", help="internal: one run, as JSON")
    return parser


def _program(args: argparse.Namespace) -> int | None:
    if args.cell:
        return _print_answers(Cell(*json.loads(args.cell)))
    if lacking := missing_packages(args.solvers):
        print(f"packages are missing: pip install {' '.join(lacking)}", file=sys.stderr)
        return 1
    rows: list[dict[str, Any]] = []
    print("p    d   m  solver      seconds  compiled     excess  status")
    for row in _rows(args, Store(out_folder(args) / "sphere_race.csv", COLUMNS, KEY)):
        rows.append(row)
        print(line(row, rows), flush=True)
    return None


def _rows(args: argparse.Namespace, store: Store) -> Iterator[dict[str, Any]]:
    """Yield a row a run: that of the store, or one that is made now and stored."""
    known = {store.key_of(row): row for row in store.rows()}
    failed: list[Cell] = []
    for cell in (
        Cell(p, d, m, solver, args.max_time, args.memory)
        for p in args.p
        for m in args.m
        for d in args.d
        for solver in args.solvers
    ):
        same = [other for other in failed if (other.p, other.solver) == (cell.p, cell.solver)]
        row = known.get(store.key_of({name: str(value) for name, value in cell._asdict().items()}))
        if row is None and any(other.d <= cell.d and other.m <= cell.m for other in same):
            continue
        if row is None:
            row = cell._asdict() | answer_in_process(cell, "benchmarks.certificates.sphere_race")
            store.append(row)
        if row["status"] != _ENDED and cell.solver != "mopn":
            failed.append(cell)
        yield row


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """Return a row of the table; ``rows`` has the one of mopn on the same problem, whose value counts."""
    value = next(
        (
            float(other["value"])
            for other in rows
            if other.get("value") and all(str(other[name]) == str(row[name]) for name in ("p", "d", "m"))
        ),
        math.nan,
    )
    bound = row.get("bound") or math.inf
    numbers = (row.get(name) for name in ("seconds", "compilation"))
    shown = " ".join(f"{'-':>9s}" if number in (None, "") else f"{float(number):9.2f}" for number in numbers)
    excess = float(bound) / value - 1.0
    return f"{row['p']} {row['d']:>4} {row['m']:>3}  {row['solver']:8s} {shown} {excess:10.1e}  {row['status']}"


def _print_answers(cell: Cell) -> None:
    """Solve the cell in this process, with its limit of memory, and print its answers, better and better."""
    limit_memory(int(cell.memory * _GIB))
    matrices = np.random.default_rng(0).standard_normal((cell.m, cell.d, cell.d))
    stack, scale = DenseStack(matrices).scaled()
    if cell.solver in SOLVERS:
        import cvxpy  # noqa: F401 - before the clock starts
    began = time.process_time(), time.perf_counter()
    for answer in _answers(cell, stack):
        answer["seconds"] = time.process_time() - began[0]
        late = time.perf_counter() - began[1] >= cell.max_time
        status = TIME_OUT if late else _ENDED
        print(
            json.dumps(
                answer
                | {name: answer[name] * scale for name in ("bound", "value") if name in answer}
                | {"status": status}
            ),
            flush=True,
        )


def _answers(cell: Cell, stack: DenseStack) -> Iterator[dict[str, Any]]:
    if cell.solver == "mopn":
        found = maximise(stack.matrices, cell.p, _TOL, cell.max_time)
        yield {"bound": found.bound, "value": found.value}
        return
    form, power = relaxation(stack, cell.p)
    if cell.solver == "low-rank":
        answers = by_low_rank(form, cell.max_time)
    else:
        answers = by_program(form, cell.solver, cell.max_time)
    for bound, compilation in answers:
        yield {"bound": bound ** (1.0 / power), "compilation": compilation}


if __name__ == "__main__":
    sys.exit(main())
