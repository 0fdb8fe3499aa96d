"""Tables 2 and 4 and Figure 3 of Blondel et al. (NIPS 2017) on segment, vowel, satimage and letter.

``python -m benchmarks.multiclass --data FOLDER`` fits, prints the tables with the paper's figures beside, and writes
``fits.csv`` (a row a fit), ``summary.csv`` and ``figure3.png`` to ``--out``. A run may be stopped at any time; the next
one skips the fits that are in ``fits.csv``.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import joblib

from benchmarks.common.datasets import check_data
from benchmarks.common.store import Store
from benchmarks.common.study import exit_status
from benchmarks.multiclass import figure as multiclass_figure
from benchmarks.multiclass import report as multiclass_report
from benchmarks.multiclass.fits import COLUMNS, KEY, METHODS, Task, run_task
from benchmarks.multiclass.paper_tables import NORMS
from benchmarks.multiclass.plan import LOSSES, REFITS, SETS, Plan, default_plan, quick_plan, tasks

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    options = _parser().parse_args(arguments)
    return exit_status("multiclass", partial(_benchmark, options))


def _benchmark(options: argparse.Namespace) -> int:
    plan, failures = _plan(options), 0
    out = Path(options.out or ("results/multiclass-quick" if options.quick else "results/multiclass"))
    store = Store(out / "fits.csv", COLUMNS, KEY)
    if not options.report:
        check_data(options.data, list(plan.sets))
        failures = _fill(store, list(tasks(plan)), options.data, options.jobs)
    _report(store, out)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.multiclass",
        description=__doc__.split("\n\n")[0],
        epilog="Set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1: the arrays are small, and --jobs uses the cores.",
    )
    plan = default_plan()
    parser.add_argument("--data", default="../shared/data", help="data folder, a subfolder a set (default %(default)s)")
    parser.add_argument("--out", help="folder of the results (default results/multiclass, or -quick)")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time (default 1)")
    parser.add_argument("--quick", action="store_true", help="a small selection, two minutes on two cores")
    parser.add_argument("--report", action="store_true", help="fit nothing, report what is there")
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, help=f"default {' '.join(plan.sets)}; letter takes an hour a split"
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS)
    parser.add_argument("--norms", nargs="+", choices=NORMS)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, help="of conditional gradient")
    parser.add_argument("--refits", nargs="+", choices=REFITS, help="of conditional gradient")
    parser.add_argument("--splits", type=int, help="number of random splits (default 10; satimage 5, letter 1)")
    parser.add_argument("--strengths", nargs="+", type=float, help="instead of the grids, for all networks")
    parser.add_argument("--max-units", type=int, help="limit on the number of units (default 50; letter 150)")
    return parser


def _plan(options: argparse.Namespace) -> Plan:
    """Return the default or the quick plan with what the options change."""
    plan = quick_plan() if options.quick else default_plan()
    names = ("sets", "methods", "norms", "losses", "refits", "splits", "strengths", "max_units")
    return plan.with_options({name: getattr(options, name) for name in names if getattr(options, name) is not None})


def _fill(store: Store, wanted: Sequence[Task], folder: str, jobs: int) -> int:
    """Run the tasks that the store lacks and append their rows as they come; return how many failed."""
    missing = store.missing(wanted, vars)
    print(f"{len(wanted)} fits, {len(wanted) - len(missing)} of them done already", flush=True)
    began, failures = time.perf_counter(), 0
    for number, (task, row, error) in enumerate(_run(missing, folder, jobs), 1):
        if error is None:
            store.append(row)
        else:
            failures += 1
            print(f"FAILED {task}\n{error}", file=sys.stderr, flush=True)
        if number % 50 == 0 or number == len(missing):
            print(f"{number}/{len(missing)} fits in {time.perf_counter() - began:.0f} s", flush=True)
    return failures


def _run(missing: Sequence[Task], folder: str, jobs: int) -> Iterator[tuple[Task, dict[str, Any], str | None]]:
    # One thread of BLAS a process: more would compete for the same cores.
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
        yield from parallel(joblib.delayed(_attempt)(task, folder) for task in missing)


def _attempt(task: Task, folder: str) -> tuple[Task, dict[str, Any], str | None]:
    """Run a task; one that fails is reported and tried again by the next run, and stops no other."""
    try:
        return task, run_task(task, folder), None
    except Exception:
        return task, {}, traceback.format_exc()


def _report(store: Store, out: Path) -> None:
    fits = multiclass_report.frame(store.rows())
    summary = multiclass_report.summary(fits)
    print("\n" + multiclass_report.tables(summary))
    if len(summary):
        summary.to_csv(out / "summary.csv", index=False, float_format="%.4f")
        written = [str(out / "summary.csv")]
        if multiclass_figure.draw(fits, out / "figure3.png"):
            written.append(str(out / "figure3.png"))
        print(f"\nwritten: {', '.join(written)}")


if __name__ == "__main__":
    sys.exit(main())
