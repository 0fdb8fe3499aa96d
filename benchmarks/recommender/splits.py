"""The splits of the literature, with the items of a user and the users of an item as columns, by relation blocks.

MovieLens 1M, 90 % of the ratings against 10 %, drawn at random ten times; MovieLens 100K, u1.base against u1.test::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.splits --data FOLDER

"implicit" adds to a user's columns the columns of the rated items, and to an item's columns the columns of
its users, with a length of 1 each: pairs of the training rows alone. "shorter" and "longer", which are left out by
default, are the same with lengths of 0.7 and 1.4: another scale for their fields. "dates" adds the week of the rating
(MovieLens 1M has no dates here). All X are :class:`mopn.RelationBlocks`.

``FM``: ``FactorizationMachineRegressor`` with 10 units and beta = alpha / 2; the alpha of a grid with the least RMSE on
a tenth of the training rows of the first split. ``ordinal``: ``OrdinalFMRegressor``, all parameters at their defaults;
``ordinal-50`` with 50 units. ``myFM``: Gibbs sampling of rank 10, its defaults but 300 iterations, if that package is
installed. ``libFM``: MCMC, "-dim 1,1,10 -iter 300", with users and items alone, if ``--libfm`` names the program.
Predictions are cut to 1 and 5. Seconds are of the processor, for a fit without the choice of alpha.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import SETS, Ratings, load
from mopn import RelationBlocks
from mopn.estimators import FactorizationMachineRegressor, OrdinalFMRegressor

NAMES = ("ml-100k", "ml-1m")
COLUMNS = ("ids", "implicit", "dates")
# The lengths of implicit columns, by the names of the columns.
LENGTHS = {"implicit": 1.0, "dates": 1.0, "shorter": 0.7, "longer": 1.4}
METHODS = ("FM", "ordinal", "ordinal-50", "myFM", "libFM")
# RMSE: Sedhain et al., AutoRec: Autoencoders Meet Collaborative Filtering (WWW 2015), table 1; myFM's documentation.
PUBLISHED = {
    "ml-100k": "published: myFM 0.889 with implicit features (its documentation)",
    "ml-1m": "published: BiasedMF 0.845, I-AutoRec 0.831 (Sedhain et al., AutoRec, WWW 2015)",
}
ALPHAS = (12.0, 16.0, 24.0)
_WEEK = 7 * 24 * 3600
_ITERATIONS = 300
U1_TEST = 20_000


class Design(NamedTuple):
    """The tables of all columns, the row of each that a rating has, and the numbers of columns of their fields."""

    tables: list[sparse.csr_array]
    places: np.ndarray
    fields: list[int]

    @property
    def X(self) -> RelationBlocks:
        """All ratings."""
        return RelationBlocks(self.tables, self.places)


class Case(NamedTuple):
    """The training and test rows of a split of some ratings, whose columns are known."""

    ratings: Ratings
    design: Design
    train: np.ndarray
    test: np.ndarray

    def error(self, predictions: np.ndarray) -> float:
        """Return the root of the mean squared error of predictions of the test rows."""
        return float(np.sqrt(np.mean((np.clip(predictions, 1.0, 5.0) - self.ratings.y[self.test]) ** 2)))


Fit = Callable[[Case, float], np.ndarray]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    parser = make_parser("recommender.splits", __doc__, sets=NAMES)
    parser.add_argument("--splits", type=int, default=10, help="splits of MovieLens 1M (default 10)")
    parser.add_argument("--columns", nargs="+", choices=["ids", *LENGTHS], default=list(COLUMNS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--ridge", type=float, default=0.0, help="of the ordinal models (default 0)")
    parser.add_argument("--libfm", type=Path, help="the program libFM (default: none)")
    return run(parser, _program, arguments)


def _program(options: argparse.Namespace) -> None:
    """Print a row a fit, and the means of the splits."""
    fits = {name: fit for name, fit in _fits(options.libfm, options.ridge).items() if name in options.methods}
    print("set      columns   method      alpha  split    RMSE  CPU seconds")
    for name in options.sets:
        ratings = load(name, options.data)
        for columns in options.columns:
            if columns == "dates" and name != "ml-100k":
                continue
            weeks = _weeks(options.data) if columns == "dates" else None
            for method, fit in fits.items():
                if method != "libFM" or columns == "ids":
                    _rows(name, columns, method, fit, ratings, weeks, options.splits)
        print(PUBLISHED[name])


def _rows(
    name: str, columns: str, method: str, fit: Fit, ratings: Ratings, weeks: np.ndarray | None, splits: int
) -> None:
    """Print the rows of a method."""
    parts = [make_parts(name, len(ratings.y), split) for split in range(1 if name == "ml-100k" else splits)]
    alpha, errors = _best_alpha(fit, ratings, columns, weeks, parts[0][0]) if method == "FM" else 0.0, []
    for split, (train, test) in enumerate(parts):
        case = Case(ratings, make_columns(ratings, columns, weeks, train), train, test)
        began = _processor()
        errors.append(case.error(fit(case, alpha)))
        shown = f"{alpha:5g}" if alpha else "     "
        print(
            f"{name:8s} {columns:9s} {method:11s} {shown}  {split:5d}  {errors[-1]:.4f}{_processor() - began:13.1f}",
            flush=True,
        )
    if len(errors) > 1:
        print(
            f"{name:8s} {columns:9s} {method:11s}  mean of {len(errors)}: {np.mean(errors):.4f} +- {np.std(errors):.4f}"
        )


def _best_alpha(fit: Fit, ratings: Ratings, columns: str, weeks: np.ndarray | None, train: np.ndarray) -> float:
    """Return the best strength on a tenth of the training rows, which are drawn at random."""
    order = np.random.default_rng(0).permutation(train)
    held, rest = order[: len(order) // 10], order[len(order) // 10 :]
    case = Case(ratings, make_columns(ratings, columns, weeks, rest), rest, held)
    return min(ALPHAS, key=lambda alpha: case.error(fit(case, alpha)))


def _processor() -> float:
    """Return the seconds of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


# -- data --------------------------------------------------------------------------------------------------------------


def make_parts(name: str, n: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows."""
    if name == "ml-100k":
        return np.arange(n - U1_TEST), np.arange(n - U1_TEST, n)
    order = np.random.default_rng(split).permutation(n)
    return order[n // 10 :], order[: n // 10]


def _weeks(folder: str) -> np.ndarray:
    """Return the weeks of the ratings of MovieLens 100K, numbered from 0 without gaps, in the order of ``load``."""
    path = Path(folder) / SETS["ml-100k"].folder
    times = [np.loadtxt(path / file, dtype=int, usecols=3) for file in ("u1.base", "u1.test")]
    return np.unique(np.concatenate(times) // _WEEK, return_inverse=True)[1]


def make_columns(ratings: Ratings, columns: str, weeks: np.ndarray | None, train: np.ndarray) -> Design:
    """Return tables of users and items, and of weeks."""
    shape, pairs = ratings.shape, (ratings.users[train], ratings.items[train])
    rated = sparse.csr_array((np.ones(len(train)), pairs), shape=shape)
    sides = [] if columns == "ids" else [rated, sparse.csr_array(rated.T)]
    implicit = [LENGTHS[columns] * normalize(side) for side in sides]
    tables, places, fields = [], [ratings.users, ratings.items], []
    for side, size in enumerate(shape):
        parts = [sparse.eye_array(size), *implicit[side : side + 1]]
        tables.append(sparse.hstack(parts, format="csr"))
        fields += [part.shape[1] for part in parts]
    if weeks is not None:
        tables.append(sparse.eye_array(int(weeks.max()) + 1, format="csr"))
        places.append(weeks)
        fields.append(tables[-1].shape[1])
    return Design(tables, np.column_stack(places), fields)


# -- methods -----------------------------------------------------------------------------------------------------------


def _fits(libfm: Path | None, ridge: float) -> dict[str, Fit]:
    """Return the methods that there are."""
    fits: dict[str, Fit] = {
        "FM": lambda case, alpha: _predictions(
            case, FactorizationMachineRegressor(alpha=alpha, beta=alpha / 2, random_state=0)
        ),
        "ordinal": lambda case, _: _predictions(case, OrdinalFMRegressor(ridge=ridge)),
        "ordinal-50": lambda case, _: _predictions(case, OrdinalFMRegressor(max_units=50, ridge=ridge)),
    }
    if find_spec("myfm") is not None:
        fits["myFM"] = _myfm
    if libfm is not None:
        fits["libFM"] = lambda case, _: _libfm(case, libfm)
    return fits


def _predictions(case: Case, estimator: Any) -> np.ndarray:
    X = case.design.X
    return estimator.fit(X[case.train], case.ratings.y[case.train]).predict(X[case.test])


def _myfm(case: Case, _: float) -> np.ndarray:
    import myfm

    def blocks(rows: np.ndarray) -> list[Any]:
        return [
            myfm.RelationBlock(place, sparse.csr_matrix(table))
            for place, table in zip(case.design.places[rows].T, case.design.tables, strict=True)
        ]

    sampler = myfm.MyFMRegressor(rank=10, random_seed=0)
    y, fields = case.ratings.y[case.train], case.design.fields
    sampler.fit(None, y, X_rel=blocks(case.train), n_iter=_ITERATIONS, group_shapes=fields)
    return sampler.predict(None, blocks(case.test))


def _libfm(case: Case, program: Path) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("train", case.train), ("test", case.test)):
            users, items = case.ratings.users[rows], case.ratings.shape[0] + case.ratings.items[rows]
            lines = np.column_stack([case.ratings.y[rows].astype(int), users, items])
            np.savetxt(Path(folder) / name, lines, fmt="%d %d:1 %d:1")
        command = (
            f"-task r -train train -test test -dim 1,1,10 -iter {_ITERATIONS} -method mcmc -init_stdev 0.1 -out out"
        )
        subprocess.run([program.resolve(), *command.split(), "-seed", "1"], cwd=folder, check=True, capture_output=True)
        return np.loadtxt(Path(folder) / "out")


if __name__ == "__main__":
    sys.exit(main())
