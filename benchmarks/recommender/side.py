"""Test RMSE of ``OrdinalFMRegressor`` with users and items alone, and with side information as more 0/1 columns.

These columns are the gender, age group and occupation of the user, and the decade and genres of the film. Of MovieLens
1M there are the rows of a tenth of the users. A fifth of the rows is the test. "biases" is the model without units; all
parameters that a row does not name are the defaults::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.side --data FOLDER
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder

from benchmarks.common.printing import Table
from benchmarks.common.sources import Source, fields, read
from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import SETS as RATINGS
from benchmarks.recommender.data import movielens_1m, random_parts
from mopn.estimators import OrdinalFMRegressor

# Lower ends of the age groups of MovieLens 1M.
_AGES = (18, 25, 35, 45, 50, 56)
# Names of the scales.
SCALES = {"none": None, "large": "large"}
_SHARES = (0.8, 0.0)
_USERS = {"ml-100k": 1.0, "ml-1m": 0.1}
# No unit pays for such a strength.
_NO_UNITS = 1e6


@dataclass(frozen=True)
class Known:
    """Ratings (n, 3), numbers of users and films as in the files and levels, with side information on both by number.

    Of users there are gender, age group and occupation, of films the decade and what names the genres.
    """

    ratings: np.ndarray
    users: dict[int, tuple[str, ...]]
    films: dict[int, tuple[str, list[Any]]]

    def of_users(self, share: float) -> Self:
        """Return the rows of a share of the users, drawn at random."""
        users = np.unique(self.ratings[:, 0])
        drawn = np.random.default_rng(0).permutation(users)[: round(share * len(users))]
        return type(self)(self.ratings[np.isin(self.ratings[:, 0], drawn)], self.users, self.films)

    def rows(self, side: bool) -> sparse.csr_array:
        """Return the 0/1 columns of users and films, and columns of side information after them."""
        pairs = self.ratings[:, :2]
        parts = [OneHotEncoder().fit_transform(pairs)]
        if side:
            known = [(*self.users[user], self.films[film][0]) for user, film in pairs.tolist()]
            genres = [self.films[film][1] for film in pairs[:, 1].tolist()]
            flags = MultiLabelBinarizer(sparse_output=True).fit_transform(genres)
            parts += [OneHotEncoder().fit_transform(known), flags]
        return sparse.csr_array(sparse.hstack(parts), dtype=float)


# -- readers -----------------------------------------------------------------------------------------------------------


def _movielens_100k(folder: Path) -> Known:
    users = {
        int(user): (gender, str(np.searchsorted(_AGES, int(age), side="right")), occupation)
        for user, age, gender, occupation, _ in fields(folder / "u.user")
    }
    films = {
        int(film[0]): (film[2][-4:-1], [place for place, flag in enumerate(film[5:]) if flag == "1"])
        for film in fields(folder / "u.item")
    }
    return Known(np.loadtxt(folder / "u.data", dtype=int, usecols=(0, 1, 2)), users, films)


def _movielens_1m(folder: Path) -> Known:
    users = {int(user[0]): tuple(user[1:4]) for user in fields(folder / "users.dat", "::")}
    films = {
        # Titles end with the year.
        int(film): (title[-5:-2], genres.split("|"))
        for film, title, genres in fields(folder / "movies.dat", "::")
    }
    return Known(movielens_1m(folder), users, films)


def _from(size: str, *files: str) -> dict[str, str]:
    """Return how a user gets files of a MovieLens set."""
    return {file: f"MovieLens {size} (https://grouplens.org/datasets/movielens/{size}/): {file}" for file in files}


SETS = {
    "ml-100k": Source("ml-100k", _from("100k", "u.data", "u.user", "u.item"), _movielens_100k),
    "ml-1m": Source("ml-1m", {**RATINGS["ml-1m"].files, **_from("1m", "users.dat", "movies.dat")}, _movielens_1m),
}


# -- the program -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.side", __doc__, sets=SETS)
    parser.add_argument("--units", type=int, default=10, help="largest number of units (default 10)")
    parser.add_argument("--scales", nargs="+", choices=SCALES, default=list(SCALES), help="default all")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print a row a fit."""
    table = Table("set:8s, rows:6d, columns:20s, scale:6s, RMSE:7.4f, CPU seconds:.1f, biases:7.4f")
    for name in args.sets:
        known = read(SETS, name, args.data).of_users(_USERS[name])
        places = random_parts(len(known.ratings), 0, _SHARES)
        for side in (False, True):
            X, y = known.rows(side), known.ratings[:, 2]
            train, test = (X[places.fit], y[places.fit]), (X[places.test], y[places.test])
            biases = _error(OrdinalFMRegressor(strength=_NO_UNITS).fit(*train), test)
            for scale in args.scales:
                began = time.process_time()
                regressor = OrdinalFMRegressor(scale=SCALES[scale], max_units=args.units).fit(*train)
                seconds, columns = time.process_time() - began, "users, items" + ", side" * side
                table.row(name, len(places.fit), columns, scale, _error(regressor, test), seconds, biases)


def _error(regressor: OrdinalFMRegressor, test: tuple[sparse.csr_array, np.ndarray]) -> float:
    """Return the root of the mean squared error of the test rows."""
    X, y = test
    return float(np.sqrt(np.mean((regressor.predict(X) - y) ** 2)))


if __name__ == "__main__":
    sys.exit(main())
