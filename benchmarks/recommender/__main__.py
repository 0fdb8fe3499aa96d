"""Recommender systems: ordinal regression on multi-output models, and kernels of one output.

Runs both studies, prints their tables and draws ``ranking.png`` and ``kernels.png``; ``cells.csv`` in ``--out`` has a
row a study, set, split, model and k::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender --data FOLDER

A row of X has a one for its user and a one for its item (for Last.fm: artist and tag). Only those that occur in the set
have columns. Split number s draws with seed s, and s seeds the fits. Strengths are mopn's: losses are added up over the
samples. The strength of a cell has the least RMSE of a grid (see ``GRIDS``) on rows held out.
Ordinal models have a linear term, with the ridge alpha = 0.15 strength.

``ranking``: section 6.5 and Figure 4 of Blondel et al., Multi-output Polynomial Networks and Factorization Machines
(NIPS 2017). Ordinal McRank on multi-output FMs of at most k units, with the norms l1, l1/l2 and l1/linf, against FMs
and PNs of one output, the models of ``kernels`` with a linear term. Ratings are split at random: 50 % to fit, 25 % to
choose the strength by, 25 % to test. Fits on the first part are tested, every measure at the strength that is
best by it on the held part (section 6.2 chooses by the measure that it reports, 6.5 does not say). The paper bounds the
norm; here it is a penalty, strength times the norm, which has the same solutions.

``kernels``: section 9.3 and Figure 3 of Blondel et al., Polynomial Networks and Factorization Machines (ICML 2016), and
Figure 5 of Blondel et al., Higher-Order Factorization Machines (NIPS 2016). Kernels A^2 and H^2, each with a dummy
("augment") or a linear term ("linear combination"), and all-subsets. 25 % of the rows, drawn at random, are the test. A
quarter of the others is held out to choose the strength by (the papers: five folds); then all of the others are fitted
again. The papers' y on Last.fm is how often a tag was given to an artist: the set "lastfm", with 109,750 pairs of
artist and tag in hetrec2011-lastfm-2k (the papers: 108,437). In "lastfm-users" y is how many tags a user gave to an
artist.

FMs and PNs of one output have k units, H^2 k products of two factors. They have the squared loss, an intercept, and
half the strength times the squares of all factors and weights of the linear term as penalty; they are fitted by
coordinate descent, at most 50 epochs, from factors N(0, 0.01). Ordinal models are fitted by the conditional gradient
method with refits of all units, at the estimator's defaults.

nDCG@1 and nDCG@5 are means over the users with at least two ratings in the test; gains are 2^y - 1, and y in the
columns "linear". Discounts are 1 / log2(1 + rank); films of equal scores share their gains. Users with fewer films
than 5 are ranked whole. The seconds of a row are for the whole cell, search included.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run
from benchmarks.recommender.cells import make_task, run_cell
from benchmarks.recommender.data import SETS, Ratings, load
from benchmarks.recommender.plan import COLUMNS, KEY, STUDIES, Cell, cells
from benchmarks.recommender.report import draw, report

_LINE = "{study}, {set}, split {split}, {model}, k = {k}: strength {strength}, test RMSE {rmse}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the studies; return the exit status."""
    parser = make_parser("recommender", __doc__, sets=SETS, results="recommender")
    add_restart_options(parser, "few rows and units, one or two minutes")
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    out, failures = out_folder(options), 0
    store = Store(out / "cells.csv", COLUMNS, KEY)
    if not options.report:
        wanted = cells(options.studies, options.sets, options.quick)
        check(SETS, dict.fromkeys(cell.set for cell in wanted), options.data)

        def make_row(cell: Cell) -> dict[str, Any]:
            return run_cell(cell, make_task(cell, _ratings(cell.set, options.data)))

        failures = fill(store, wanted, attrgetter("key"), make_row, _LINE)
    rows = store.rows()
    print("\n" + report(rows))
    for path in draw(rows, out):
        print(f"written: {path}")
    return failures


@lru_cache(maxsize=1)
def _ratings(name: str, folder: str) -> Ratings:
    return load(name, folder)


if __name__ == "__main__":
    sys.exit(main())
