"""Test RMSE of ``OrdinalFMRegressor()`` by its strength, beside the same model without units: biases alone.

All other parameters are the defaults. Parts of sets are all rows of a share of the users, drawn at random: a service
that is new has few users, and not few ratings of each. Counts of Last.fm become levels, the largest of which is
``MOST`` and more.
Three quarters of the rows are trained on, the rest is the test; seconds are those of the processor, of all fits of a
row::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.defaults --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import SETS, Ratings, load, random_parts
from mopn.estimators import OrdinalFMRegressor

STRENGTHS = (1.0, 2.0, 3.0, 3.5, 4.0, 5.0)
MOST = 5
# Sets, and shares of their users.
PARTS = (("ml-100k", 1.0), ("ml-100k", 0.25), ("ml-1m", 0.1), ("lastfm", 1.0), ("lastfm-users", 1.0))
_SHARES = (0.75, 0.0)
# No unit pays for such a strength.
_NO_UNITS = 1e6


class Part(NamedTuple):
    """Rows to fit and to test on."""

    train: tuple[Any, np.ndarray]
    test: tuple[Any, np.ndarray]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("recommender.defaults", __doc__, sets=SETS)
    parser.add_argument("--splits", type=int, default=1, help="number of random splits (default 1)")
    parser.add_argument("--strengths", type=float, nargs="+", default=list(STRENGTHS))
    parser.add_argument("--units", type=int, nargs="+", default=[10], help="numbers of units, a row each (default 10)")
    return parser


def _program(args: argparse.Namespace) -> None:
    """Print a row a part and split."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("set           users    rows  split  units   biases" + "".join(f"{at:>9g}" for at in args.strengths))
    for name, share in PARTS:
        if name not in args.sets:
            continue
        ratings = of_users(load(name, args.data), share)
        for split in range(args.splits):
            part = parted(ratings, split)
            biases = error_at(part, _NO_UNITS, 1)
            for units in args.units:
                first = f"{name:12s} {ratings.shape[0]:6d} {len(ratings.y):7d} {split:6d} {units:6d}{biases:9.4f}"
                print(first, end="", flush=True)
                began = time.process_time()
                for strength in args.strengths:
                    print(f"{error_at(part, strength, units):9.4f}", end="", flush=True)
                print(f"  {time.process_time() - began:.0f} s", flush=True)


def of_users(ratings: Ratings, share: float) -> Ratings:
    """Return the rows of a share of the users, with levels 1 to ``MOST``."""
    n_users = ratings.shape[0]
    drawn = np.random.default_rng(0).permutation(n_users)[: round(share * n_users)]
    kept = np.isin(ratings.users, drawn)
    users, items = (np.unique(column[kept], return_inverse=True)[1] for column in (ratings.users, ratings.items))
    return Ratings(users, items, np.minimum(ratings.y[kept], MOST))


def parted(ratings: Ratings, split: int) -> Part:
    """Return three quarters of the rows, and the others."""
    X, y, places = ratings.rows(), ratings.y, random_parts(len(ratings.y), split, _SHARES)
    return Part((X[places.fit], y[places.fit]), (X[places.test], y[places.test]))


def error_at(part: Part, strength: float, units: int) -> float:
    """Return the root of the mean squared error of the test rows."""
    regressor = OrdinalFMRegressor(strength=strength, max_units=units).fit(*part.train)
    X, y = part.test
    return float(np.sqrt(np.mean((regressor.predict(X) - y) ** 2)))


if __name__ == "__main__":
    sys.exit(main())
