"""Direct and lifted problems: Figures 1, 2 and 4 of Blondel et al., Polynomial Networks and Factorization Machines.

ICML 2016, sections 9.1, 9.2 and 9.4. Figure 1 asks whether it is useful to fit lambda, Figure 2 compares the direct
problem with the lifted one, and Figure 4 compares few fitted bases with as many random ones::

    OMP_NUM_THREADS=1 python -m benchmarks.direct_lifted --data FOLDER --out results/direct_lifted

Writes ``figure1.csv`` and so on (a row a run) and a plot a figure to ``--out``, and prints the tables. A run may be
stopped at any time; the next one skips what is in the files. Figure 4 alone needs ``--data``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

from benchmarks.common.store import Store
from benchmarks.common.study import exit_status
from benchmarks.direct_lifted import budget, fitted_lambda, wide

__all__ = ["main"]

FIGURES = {1: fitted_lambda, 2: wide, 4: budget}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    options = _parser().parse_args(arguments)
    return exit_status("direct_lifted", partial(_run, options))


def _run(options: argparse.Namespace) -> int:
    out = Path(options.out or ("results/direct_lifted-quick" if options.quick else "results/direct_lifted"))
    if 4 in options.figures:
        budget.check_data(options.data)
    for number in options.figures:
        _figure(number, FIGURES[number], out, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.direct_lifted",
        description=__doc__.split("\n\n")[0],
        epilog="Set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1: times are those of one thread.",
    )
    parser.add_argument("--data", default="../shared/data", help="folder with the sets of Figure 4 (%(default)s)")
    parser.add_argument("--out", help="folder of the results (default results/direct_lifted, or -quick)")
    parser.add_argument("--quick", action="store_true", help="a small selection, about a minute")
    parser.add_argument("--figures", nargs="+", type=int, choices=FIGURES, default=list(FIGURES))
    return parser


def _figure(number: int, figure: ModuleType, out: Path, options: argparse.Namespace) -> None:
    """Run what a figure lacks; print its tables and draw it."""
    store = Store(out / f"figure{number}.csv", figure.COLUMNS, figure.KEY)
    tasks = figure.tasks(options.quick)
    missing = store.missing(tasks, vars)
    print(f"Figure {number}: {len(tasks)} runs, {len(tasks) - len(missing)} of them done already", flush=True)
    began = time.perf_counter()
    for task in missing:
        store.append(figure.run(task, options.data))
    # The file may hold other runs too, and in another order.
    by_key = {store.key_of(row): row for row in store.rows()}
    rows = [by_key[store.key_of(vars(task))] for task in tasks]
    plot = out / f"figure{number}.png"
    figure.draw(rows, plot)
    print(
        f"{figure.table(rows)}\n{len(missing)} runs in {time.perf_counter() - began:.0f} s; written: {plot}\n",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
