"""A scale for every field, chosen by ``FieldScaleCV`` on held-out training rows, beside scales of ones.

Columns of users and items alone ("ids"); with what users rated and who rated items ("implicit", from all training
rows); with gender, age group and occupation of users and decade and genres of films ("side", MovieLens 100K alone). The
split "u1" is u1.base against u1.test, others are 90 % of the rows against 10 %, drawn at random with that seed.
``FM``: ``FactorizationMachineRegressor`` with 10 units and beta = alpha / 2, of several alpha; ``ordinal``:
``OrdinalFMRegressor``, all parameters at their defaults. Counts of Last.fm become levels, the largest of which is 5 and
more. Predictions are cut to 1 and 5; held-out losses are those of the model; seconds are those of the processor::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.fields --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder

from benchmarks.common.sources import read
from benchmarks.common.study import make_parser, run
from benchmarks.recommender import side
from benchmarks.recommender.data import Ratings, load
from benchmarks.recommender.defaults import MOST
from benchmarks.recommender.splits import Case, Design, make_columns, make_parts
from mopn.estimators import FactorizationMachineRegressor, FieldScaleCV, OrdinalFMRegressor

NAMES = ("ml-100k", "lastfm", "lastfm-users")
COLUMNS = ("ids", "implicit", "side")
SPLITS = ("u1", "1", "2")
METHODS = ("FM", "ordinal")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("recommender.fields", __doc__, sets=NAMES)
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--alphas", type=float, nargs="+", default=[1.0, 12.0, 24.0], help="of FM (default 1 12 24)")
    return parser


def _program(options: argparse.Namespace) -> None:
    """Print a row a fit of ones, and of the scales that are chosen."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("set           columns   split  method   alpha     ones  seconds   chosen  seconds  held out        scales")
    for name in options.sets:
        for columns in options.columns:
            for split in options.splits:
                if name != "ml-100k" and (columns == "side" or split == "u1"):
                    continue
                case = _case(name, columns, split, options.data)
                for method in options.methods:
                    for alpha in options.alphas if method == "FM" else [0.0]:
                        shown = f"{alpha:5g}" if alpha else "     "
                        first = f"{name:13s} {columns:9s} {split:5s}  {method:8s}{shown}"
                        print(first, _row(case, _estimator(method, alpha)), flush=True)


def _estimator(method: str, alpha: float) -> Any:
    if method == "ordinal":
        return OrdinalFMRegressor()
    return FactorizationMachineRegressor(alpha=alpha, beta=alpha / 2, random_state=0)


def _row(case: Case, estimator: Any) -> str:
    """Return the test RMSE and the seconds of a fit, and of the choice of scales, and what was chosen."""
    search, parts = FieldScaleCV(clone(estimator), case.design.fields), []
    for one in (estimator, search):
        began = time.process_time()
        one.fit(case.design.X[case.train], case.ratings.y[case.train])
        parts.append(f"{case.error(one.predict(case.design.X[case.test])):8.4f}{time.process_time() - began:9.1f}")
    losses = search.cv_results_["mean_test_loss"][[0, search.best_index_]]
    return " ".join([*parts, "{:7.4f}{:7.4f} ".format(*losses), *(f"{scale:.2g}" for scale in search.field_scales_)])


def _case(name: str, columns: str, split: str, folder: str) -> Case:
    ratings = load(name, folder)
    ratings = Ratings(ratings.users, ratings.items, np.minimum(ratings.y, MOST))
    train, test = make_parts(name if split == "u1" else "", len(ratings.y), int(split[-1]))
    design = _side(ratings, folder) if columns == "side" else make_columns(ratings, columns, None, train)
    return Case(ratings, design, train, test)


def _side(ratings: Ratings, folder: str) -> Design:
    """Return tables of users and of films with what is known of them; each kind of it is a field."""
    table = read(side.SETS, "ml-100k", folder)
    # Numbers of users and films, which have no gaps.
    users, films = (range(1, size + 1) for size in ratings.shape)
    encoder = OneHotEncoder()
    of_users = encoder.fit_transform([table.users[user] for user in users])
    decades = OneHotEncoder().fit_transform([[table.films[film][0]] for film in films])
    genres = MultiLabelBinarizer(sparse_output=True).fit_transform([table.films[film][1] for film in films])
    parts = [[sparse.eye_array(len(users)), of_users], [sparse.eye_array(len(films)), decades, genres]]
    sizes = [len(users), *map(len, encoder.categories_), len(films), decades.shape[1], genres.shape[1]]
    tables = [sparse.csr_array(sparse.hstack(part), dtype=float) for part in parts]
    return Design(tables, np.column_stack([ratings.users, ratings.items]), sizes)


if __name__ == "__main__":
    sys.exit(main())
