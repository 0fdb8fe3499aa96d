"""The race for the maximum of ||q(h)||_p on the sphere: bounds proven by each solver, and their times.

Stacks of m symmetric matrices of order d: random Gaussian ones, and loss gradients of finished fits; p = 2 is the
quartic sum_c (h' G_c h)^2, p = 1 the sum of moduli. mopn's is ``mopn.solvers.sphere.maximise`` with tolerance 1e-4.
"enumerate" decomposes the matrices of all signs, for p = 1 (appendix C of Blondel et al., NIPS 2017). The others solve
a relaxation as a semidefinite program: biquadratic forms, of order (m + 1) d, or for p = 2 sums of squares, of order
d (d + 1) / 2, if that is smaller. They are Clarabel and SCS in CVXPY with tolerances of 1e-5, and the method of
ManiSDP, low-rank factors on the sphere with a dual certificate, written plainly. From whatever they return, multipliers
are read, and their bound is evaluated like mopn's, rounding errors included.

The table has for each solver the excess, the proven bound over the best value that was found, less 1, and the seconds
of the process's CPU, with CVXPY's compilation; limits are of the clock. A run is a process. What ended within a limit
is not run with a longer one; and, but for mopn, a solver that reached a limit at one size of random stacks is not tried
at larger ones. The same command goes on from where it was stopped. The packages cvxpy, clarabel and scs are no
dependency of mopn: pip install cvxpy clarabel scs. ``--solvers mopn enumerate low-rank`` does without::

    OMP_NUM_THREADS=1 python -m benchmarks.certificates.sphere_race --data FOLDER
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.certificates.race_cell import TIME_OUT, answer_in_process
from benchmarks.certificates.semidefinite import SOLVERS, missing_packages
from benchmarks.certificates.sphere_relaxations import by_low_rank, by_program, relaxation
from benchmarks.common.processes import limit_memory
from benchmarks.common.store import Store
from benchmarks.common.study import make_parser, out_folder, run
from mopn.solvers.sphere import MAX_ENUMERATED, DenseStack, enumerate_signs, maximise

ALL_SOLVERS = ("mopn", "enumerate", *SOLVERS, "low-rank")
STACKS = ("random", "digits", "letter")
_TOL, _ENDED = 1e-4, "ended"
_GIB = 2**30
_WIDTH = 18
Row = dict[str, Any]


class Problem(NamedTuple):
    """A stack of m matrices of order d, random or of a data set, and the norm."""

    stack: str
    p: int
    d: int
    m: int


class Cell(NamedTuple):
    """A problem, a solver, and its limits: seconds, and GiB of memory."""

    stack: str
    p: int
    d: int
    m: int
    solver: str
    max_time: float
    memory: float


KEY = Cell._fields
COLUMNS = (*KEY, "status", "seconds", "bound", "value")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("certificates.sphere_race", __doc__, results="sphere-race")
    parser.add_argument("--stacks", nargs="+", choices=STACKS, default=list(STACKS), help="default: all")
    parser.add_argument("--p", nargs="+", type=int, choices=(1, 2), default=[2, 1], help="default: both")
    parser.add_argument("--d", nargs="+", type=int, default=[10, 30, 65, 130, 257], help="of random stacks")
    parser.add_argument("--m", nargs="+", type=int, default=[3, 10, 26], help="of random stacks")
    parser.add_argument("--solvers", nargs="+", choices=ALL_SOLVERS, default=list(ALL_SOLVERS), help="default: all")
    parser.add_argument("--seconds", nargs="+", type=float, default=[60.0], help="limits of a run (default 60)")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB a run (default 8)")
    parser.add_argument("--cell", help="internal: one run, as JSON")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> int | None:
    if args.cell:
        return _print_answers(Cell(*json.loads(args.cell)), out_folder(args))
    if lacking := missing_packages(args.solvers):
        print(f"packages are missing: pip install {' '.join(lacking)}", file=sys.stderr)
        return 1
    race = Race(args)
    print("p stack     d   m  limit" + "".join(f"{solver:>{_WIDTH}s}" for solver in args.solvers))
    for problem in _problems(args):
        runs = race.runs(problem)
        for seconds in sorted({seconds for _, seconds in runs}):
            print(line(problem, seconds, runs, args.solvers), flush=True)
    print("\nexcess and CPU seconds; *: at the limit of time or memory; -: not run")
    return None


def _problems(args: argparse.Namespace) -> Iterator[Problem]:
    for p in args.p:
        for stack in args.stacks:
            if stack == "random":
                yield from (Problem(stack, p, d, m) for m in args.m for d in args.d)
            else:
                # Loads what no run needs.
                from benchmarks.certificates.sphere_stacks import keep_gradient

                path = _path(out_folder(args), stack, p)
                keep_gradient(path, stack, p, args.data)
                m, d, _ = np.load(path, mmap_mode="r").shape
                yield Problem(stack, p, d, m)


def _path(out: Path, stack: str, p: int) -> Path:
    return out / f"{stack}-{p}.npy"


class Race:
    """The runs of a command: from its store, or made now and stored."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._store = Store(out_folder(args) / "sphere_race.csv", COLUMNS, KEY)
        self._known: dict[tuple[str, ...], Row] = {self._store.key_of(row): row for row in self._store.rows()}
        self._failed: list[Cell] = []

    def runs(self, problem: Problem) -> dict[tuple[str, float], Row]:
        """Return the rows of a problem by solver and limit, without untried pairs."""
        rows: dict[tuple[str, float], Row] = {}
        for solver in self._args.solvers:
            for seconds in sorted(self._args.seconds):
                row = self._row(Cell(*problem, solver, seconds, self._args.memory))
                if row is not None:
                    rows[solver, seconds] = row
                    if row["status"] == _ENDED:
                        break
        return rows

    def _row(self, cell: Cell) -> Row | None:
        row = self._known.get(self._store.key_of(cell._asdict()))
        if row is None:
            if self._is_hopeless(cell):
                return None
            options = "--out", str(out_folder(self._args))
            row = cell._asdict() | answer_in_process(cell, "benchmarks.certificates.sphere_race", *options)
            self._store.append(row)
        if row["status"] != _ENDED and cell.solver != "mopn":
            self._failed.append(cell)
        return row

    def _is_hopeless(self, cell: Cell) -> bool:
        """Whether the solver is none for the problem, or reached the limit with a smaller one."""
        if cell.solver == "enumerate" and (cell.p != 1 or cell.m > MAX_ENUMERATED):
            return True
        smaller = (other for other in self._failed if other.d <= cell.d and other.m <= cell.m)
        return any(cell._replace(d=other.d, m=other.m) == other for other in smaller)


def line(problem: Problem, seconds: float, runs: dict[tuple[str, float], Row], solvers: Sequence[str]) -> str:
    """Return a row of the table; the best value of all runs of the problem counts."""
    value = max((float(row["value"]) for row in runs.values() if row.get("value")), default=math.nan)
    stack, p, d, m = problem
    entries = (_entry(runs.get((solver, seconds)), value) for solver in solvers)
    return f"{p} {stack:7s} {d:3d} {m:3d} {seconds:6g}" + "".join(f"{entry:>{_WIDTH}s}" for entry in entries)


def _entry(row: Row | None, value: float) -> str:
    if row is None:
        return "- "
    mark = " " if row["status"] == _ENDED else "*"
    if not row.get("bound"):
        return row["status"] + mark
    return f"{float(row['bound']) / value - 1.0:8.1e} {float(row['seconds']):7.2f}{mark}"


def _print_answers(cell: Cell, out: Path) -> None:
    """Solve the cell in this process, with its limit of memory, and print its answers, better and better."""
    limit_memory(int(cell.memory * _GIB))
    if cell.stack == "random":
        matrices = np.random.default_rng(0).standard_normal((cell.m, cell.d, cell.d))
    else:
        matrices = np.load(_path(out, cell.stack, cell.p))
    stack, scale = DenseStack(matrices).scaled()
    if cell.solver in SOLVERS:
        import cvxpy  # noqa: F401 - before the clock starts
    began = time.process_time(), time.perf_counter()
    for answer in _answers(cell, stack):
        late = time.perf_counter() - began[1] >= cell.max_time
        status: Row = {"status": TIME_OUT if late else _ENDED, "seconds": time.process_time() - began[0]}
        print(json.dumps(status | {name: number * scale for name, number in answer.items()}), flush=True)


def _answers(cell: Cell, stack: DenseStack) -> Iterator[dict[str, float]]:
    """Yield the proven bounds and, of solvers that find units, the value of the best."""
    if cell.solver == "mopn":
        found = maximise(stack.matrices, cell.p, _TOL, cell.max_time)
        yield {"bound": found.bound, "value": found.value}
    elif cell.solver == "enumerate":
        h, bound = enumerate_signs(stack, cell.max_time)
        value = {"value": float(np.abs(stack.forms(h[None])).sum())}
        yield value | ({"bound": bound} if math.isfinite(bound) else {})
    else:
        form, power = relaxation(stack, cell.p)
        low_rank = cell.solver == "low-rank"
        bounds = by_low_rank(form, cell.max_time) if low_rank else by_program(form, cell.solver, cell.max_time)
        yield from ({"bound": bound ** (1.0 / power)} for bound in bounds)


if __name__ == "__main__":
    sys.exit(main())
