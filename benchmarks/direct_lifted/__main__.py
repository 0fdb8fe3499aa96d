"""Direct and lifted problems: Figures 1, 2 and 4 of Blondel et al., Polynomial Networks and Factorization Machines.

ICML 2016, sections 9.1, 9.2 and 9.4. Figure 1 asks whether it is useful to fit lambda, Figure 2 compares the direct
problem with the lifted one, and Figure 4 compares few fitted bases with as many random ones::

    OMP_NUM_THREADS=1 python -m benchmarks.direct_lifted --data FOLDER --out results/direct_lifted

Writes ``figure1.csv`` and so on (a row a run) and a plot a figure to ``--out``, and prints the tables. Figure 4 alone
needs ``--data``.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

import pandas as pd

from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run
from benchmarks.direct_lifted import budget, fitted_lambda, wide

FIGURES = {1: fitted_lambda, 2: wide, 4: budget}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("direct_lifted", __doc__, results="direct_lifted")
    add_restart_options(parser, "a small selection, about a minute")
    parser.add_argument("--figures", nargs="+", type=int, choices=FIGURES, default=list(FIGURES))
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    if 4 in options.figures and not options.report:
        budget.check_data(options.data)
    return sum(_figure(number, FIGURES[number], out_folder(options), options) for number in options.figures)


def _figure(number: int, figure: ModuleType, out: Path, options: argparse.Namespace) -> int:
    """Run a figure's missing runs, print its tables and draw it; return how many runs failed."""
    store = Store(out / f"figure{number}.csv", figure.COLUMNS, figure.KEY)
    tasks, failures = figure.tasks(options.quick), 0
    if not options.report:
        failures = fill(store, tasks, vars, partial(figure.run, folder=options.data))
    # The file may hold other runs too, and in another order.
    by_key = {store.key_of(row): row for row in store.rows()}
    rows = [by_key[key] for key in map(store.key_of, map(vars, tasks)) if key in by_key]
    if not rows:
        print(f"Figure {number}: no results yet")
        return failures
    plot, frame = out / f"figure{number}.png", pd.DataFrame(rows)
    frame[figure.NUMBERS] = frame[figure.NUMBERS].apply(pd.to_numeric)
    figure.draw(frame, plot)
    print(f"{figure.table(frame)}\nwritten: {plot}\n", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
