"""Table 3 of Blondel et al., Higher-Order Factorization Machines (NIPS 2016): prediction of links in four graphs.

Fits, prints the area under the ROC curve (AUC) of every model next to the paper's, and writes ``cells.csv`` to
``--out``, a row a model, graph and split::

    OMP_NUM_THREADS=1 python -m benchmarks.links --data FOLDER

A pair of nodes is a sample: the features of both, one after the other, with target 1 if they are linked. Half of the
links and as many other pairs are learnt from by the squared loss with k = 30 units; all other pairs are the test. The
strength is the best of a grid on a quarter of the pairs to learn from, held out; from there a last fit goes on with all
of them. Fits are by coordinate descent, from units N(0, 0.01), all with an intercept. Graphs with one set of nodes
count each pair once, i < j.

The paper's polynomial network, sum_s (gamma_s + <p_s, x>)^m, is not convex in a coordinate: it is fitted by L-BFGS,
with five iterations for an epoch, and lifted, sum_s prod_t (gamma_st + <u_st, x>), by coordinate descent.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run
from benchmarks.links.data import GRAPHS, SCALES, Graph, load, scaled
from benchmarks.links.models import BY_NAME, PAPER_SETS
from benchmarks.links.prediction import COLUMNS, KEY, PLANS, QUICK, QUICK_MODELS, Cell, run_cell
from benchmarks.links.report import report

_LINE = "{set}, split {split}, {model}: beta {beta}, test AUC {test}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("links", __doc__, sets=PAPER_SETS, results="link_prediction")
    add_restart_options(parser, "a few models, few units and links, two minutes at most")
    parser.add_argument("--models", nargs="+", choices=BY_NAME)
    parser.add_argument("--splits", type=int, help="number of random splits (default 1; movielens 2)")
    parser.add_argument("--scale", choices=SCALES, help="of the features (default: the best one, see PLANS)")
    parser.add_argument("--epochs", type=int, help="limit for all fits")
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    store, failures = Store(out_folder(options) / "cells.csv", COLUMNS, KEY), 0
    if not options.report:
        check(GRAPHS, options.sets, options.data)

        def make_row(cell: Cell) -> dict[str, Any]:
            return run_cell(cell, _graph(options.data, cell.set, cell.plan.scale))

        failures = fill(store, list(_cells(options)), attrgetter("key"), make_row, _LINE)
    print("\n" + report(store.rows()))
    return failures


@lru_cache(maxsize=1)
def _graph(folder: str, name: str, scale: str) -> Graph:
    return scaled(load(name, folder), scale)


def _cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cells, split by split, so that a run that is stopped has whole tables."""
    models = options.models or (QUICK_MODELS if options.quick else list(BY_NAME))
    changes = dict(QUICK) if options.quick else {}
    changes |= {"scale": options.scale} if options.scale else {}
    changes |= {"epochs": options.epochs, "search_epochs": options.epochs} if options.epochs else {}
    for name in options.sets:
        splits = options.splits or (2 if name == "movielens" and not options.quick else 1)
        plan = replace(PLANS[name], **changes)
        yield from (Cell(name, index, model, plan) for index in range(splits) for model in models)


if __name__ == "__main__":
    sys.exit(main())
