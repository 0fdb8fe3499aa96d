"""How much counts should shrink the similarity of films: the genres that similar films share, on MovieLens 100K.

An ordinal factorization machine of users and films alone, with its defaults and at most 30 units. Of 150 films with at
least 20 or 100 ratings each, the ten most similar ones: the genres that they share with the film, over those that
either has (the model does not know any), and the median of their numbers of ratings::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.similar --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import load
from mopn.estimators import OrdinalFMRegressor
from mopn.ranking import similar_features

_SHRINKAGES = (0, 1, 2, 5, 10, 20, 30, 50, 100, 200)
_LEAST, _FILMS, _SIMILAR, _UNITS = (20, 100), 150, 10, 30
# Where the genres begin in a line of u.item.
_GENRES = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(make_parser("recommender.similar", __doc__), _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print a row for each shrinkage."""
    ratings = load("ml-100k", args.data)
    lines = (Path(args.data) / "ml-100k" / "u.item").read_text("latin-1").splitlines()
    genres = np.array([line.split("|")[_GENRES:] for line in lines if line], dtype=int)
    X, (n_users, n_films) = ratings.rows(), ratings.shape
    machine = OrdinalFMRegressor(max_units=_UNITS).fit(X, ratings.y)
    counts, films = X.sum(axis=0), n_users + np.arange(n_films)
    rng = np.random.default_rng(0)
    chosen = {least: rng.choice(films[counts[films] >= least], _FILMS, replace=False) for least in _LEAST}
    print("shrinkage" + "".join(f"   films of {least:3d}: genres  ratings" for least in _LEAST))
    for shrinkage in _SHRINKAGES:
        cells = []
        for asked in chosen.values():
            shared, numbers = [], []
            for film in asked:
                for found in similar_features(
                    machine, film, films, _SIMILAR, range(n_users), counts=counts, shrinkage=shrinkage
                ):
                    pair = genres[[film - n_users, found.feature - n_users]]
                    shared.append(pair.min(axis=0).sum() / pair.max(axis=0).sum())
                    numbers.append(counts[found.feature])
            cells.append(f"{np.mean(shared):24.4f} {np.median(numbers):8.0f}")
        print(f"{shrinkage:9d}" + "".join(cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
