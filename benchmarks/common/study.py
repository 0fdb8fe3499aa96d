"""How every study runs: its options, the rows that its file still lacks, its progress, and how it ends."""

import argparse
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import joblib
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.sources import MissingDataError
from benchmarks.common.store import Store, StoreError


@dataclass(frozen=True)
class Task:
    """A row of studies of methods: a method on a split of a set."""

    set: str
    split: int
    method: str


KEY = [field.name for field in fields(Task)]
_Item = TypeVar("_Item")
Row = Mapping[str, Any]

# Seconds between two lines of progress.
_PAUSE = 10.0


# -- options -----------------------------------------------------------------------------------------------------------


def make_parser(
    program: str, text: str, *, data: bool = True, sets: Iterable[str] = (), results: str | None = None
) -> argparse.ArgumentParser:
    """Return the parser of a program; ``--sets`` and ``--out`` need defaults."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{program}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if data:
        named = os.environ.get("MOPN_DATA", "")
        parser.add_argument("--data", default=named, help="folder with the data (default: the variable MOPN_DATA)")
    if sets:
        parser.add_argument("--sets", nargs="+", choices=list(sets), default=list(sets))
    if results:
        parser.add_argument("--out", type=Path, help=f"folder of the output (default results/{results})")
        parser.set_defaults(results=results, quick=False)
    parser.add_argument(
        "--processor",
        action="store_true",
        help="measure and limit seconds of this process's processor, which others on the machine prolong less than the "
        "clock's; for runs of one process and one thread",
    )
    return parser


def add_restart_options(parser: argparse.ArgumentParser, quick: str) -> None:
    """Add what studies with a store have: ``--quick``, whose help is given, and ``--report``."""
    parser.add_argument("--quick", action="store_true", help=f"{quick}; the folder of results ends in -quick")
    parser.add_argument("--report", action="store_true", help="fit nothing, report the stored fits")
    parser.epilog = (
        "A run may be stopped at any time; the same command goes on from there. Set OMP_NUM_THREADS=1 and "
        "OPENBLAS_NUM_THREADS=1: times are for one thread."
    )


def out_folder(options: argparse.Namespace) -> Path:
    """Return the folder of results."""
    return options.out or Path(f"results/{options.results}{'-quick' if options.quick else ''}")


# -- the run -----------------------------------------------------------------------------------------------------------


def run(
    parser: argparse.ArgumentParser,
    program: Callable[[argparse.Namespace], int | None],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run a program and return its exit status."""
    options = parser.parse_args(arguments)
    try:
        with _clock(options.processor), warnings.catch_warnings():
            # Fits end at their limits; the tables say how far they came.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return 1 if program(options) else 0
    except (MissingDataError, StoreError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


@contextmanager
def _clock(processor: bool) -> Iterator[None]:
    """Let all that reads the clock, the solvers' limits of time included, read the processor's seconds instead."""
    clock = time.perf_counter
    time.perf_counter = time.process_time if processor else clock
    try:
        yield
    finally:
        time.perf_counter = clock


def fill(
    store: Store,
    wanted: Sequence[_Item],
    key: Callable[[_Item], Row],
    make_row: Callable[[_Item], Row],
    line: str = "",
    jobs: int = 1,
) -> int:
    """Make the rows that a store lacks and append them as they come.

    A row that fails is reported, is tried again by the next run, and stops no other.
    """
    missing = store.missing(wanted, key)
    print(f"{store.path.name}: {len(wanted)} rows, {len(wanted) - len(missing)} of them done already", flush=True)
    failures, began, last = 0, time.perf_counter(), 0.0
    for number, (item, (row, error)) in enumerate(zip(missing, _attempts(make_row, missing, jobs), strict=True), 1):
        if error is None:
            store.append(row)
        else:
            failures += 1
            print(f"FAILED {item}\n{error}", file=sys.stderr, flush=True)
        seconds = time.perf_counter() - began
        if error is None and (seconds - last >= _PAUSE or number == len(missing)):
            last = seconds
            print(f"{number}/{len(missing)} in {seconds:.0f} s  {line.format_map(row)}".rstrip(), flush=True)
    return failures


def _attempts(
    make_row: Callable[[_Item], Row], missing: Sequence[_Item], jobs: int
) -> Iterator[tuple[Row, str | None]]:
    # One thread of BLAS a process: more would compete for the same cores.
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
        yield from parallel(joblib.delayed(_attempt)(make_row, item) for item in missing)


def _attempt(make_row: Callable[[_Item], Row], item: _Item) -> tuple[Row, str | None]:
    """Return a row and no error, or no row and the error."""
    try:
        return make_row(item), None
    except Exception:
        return {}, traceback.format_exc()
