"""The best ten of all films that a user has not rated: models of ratings, popularity, and implicit feedback.

A random fifth of the ratings of MovieLens 100K is held out. For each user, a model ranks all films without a training
rating. Hits are the films of its best ten that the user rated with 4 or 5 in the fifth: recall@10 divides by the
number of such films, or by 10 if there are more, and nDCG@10 counts hits. "rated" is the nDCG@10 of the held-out
ratings alone. Models of ratings are ranked with and without a shrinkage by the numbers of ratings. Models of implicit
feedback know the rated films, not the ratings: a factorization machine of ones for ratings and zeros for films drawn at
random, EASE (Steck, WWW 2019), and ALS of the package ``implicit``, if it is installed::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.top --data FOLDER
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.common.printing import Table
from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import Ratings, load, random_parts
from mopn.estimators import FactorizationMachineRegressor, OrdinalFMRegressor
from mopn.ranking import Ranker, grouped_ndcg

_SHRINKAGES = (10.0, 100.0, 1000.0)
_TOP, _LIKED, _TRAINING = 10, 4.0, 0.8
# Films drawn for every rating; the penalty of EASE.
_NEGATIVES, _EASE = 10, 300.0


@dataclass(frozen=True)
class Case:
    """Ratings and the places of those to train on."""

    ratings: Ratings
    train: np.ndarray
    test: np.ndarray

    @cached_property
    def rated(self) -> np.ndarray:
        """Which films (n_users, n_films) have a training rating of the user."""
        rated = np.zeros(self.ratings.shape, bool)
        rated[self.ratings.users[self.train], self.ratings.items[self.train]] = True
        return rated

    @cached_property
    def liked(self) -> np.ndarray:
        """Which films the user likes among the held-out ones."""
        liked, held = np.zeros(self.ratings.shape, bool), self.test[self.ratings.y[self.test] >= _LIKED]
        liked[self.ratings.users[held], self.ratings.items[held]] = True
        return liked

    def measures(self, scores: np.ndarray) -> tuple[float, float, float]:
        """Return recall@10 and nDCG@10 among all films without a training rating, and nDCG@10 of those rated."""
        users = self.liked.any(axis=1)
        order = np.argsort(-np.where(self.rated, -np.inf, scores), axis=1, kind="stable")[:, :_TOP]
        hits, most = np.take_along_axis(self.liked, order, 1)[users], np.minimum(self.liked.sum(axis=1)[users], _TOP)
        discounts = 1.0 / np.log2(np.arange(2, _TOP + 2))
        r = self.ratings
        of_test = scores[r.users[self.test], r.items[self.test]]
        return (
            float(np.mean(hits.sum(axis=1) / most)),
            float(np.mean(hits @ discounts / np.cumsum(discounts)[most - 1])),
            grouped_ndcg(r.y[self.test], of_test, r.users[self.test], k=_TOP),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.top", __doc__)
    parser.add_argument("--splits", type=int, default=3, help="random splits (default %(default)s)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print the means over the splits, a row a method."""
    ratings, rows = load("ml-100k", args.data), {}
    for split in range(args.splits):
        parts = random_parts(len(ratings.y), split, (_TRAINING, 0.0))
        case = Case(ratings, parts.fit, parts.test)
        for name, scores, seconds in _methods(case):
            rows.setdefault(name, []).append((*case.measures(scores), seconds))
    table = Table("method:44s, recall@10:.3f, nDCG@10:.3f, rated:6.3f, CPU seconds:.1f")
    for name, found in rows.items():
        table.row(name, *np.mean(found, axis=0))


def _methods(case: Case) -> Iterator[tuple[str, np.ndarray, float]]:
    """Yield the name of each method, its scores (n_users, n_films), and the seconds of the processor of its fit."""
    counts = case.rated.sum(axis=0)
    yield "the number of ratings", np.tile(counts.astype(float), (len(case.rated), 1)), 0.0
    X, y = case.ratings.rows()[case.train], case.ratings.y[case.train]
    regressors = OrdinalFMRegressor(), FactorizationMachineRegressor(alpha=12, beta=6, random_state=0)
    for estimator in regressors:
        fitted, seconds = _timed(lambda estimator=estimator: estimator.fit(X, y))
        name = type(estimator).__name__
        yield name, _scores(fitted, case), seconds
        for shrinkage in _SHRINKAGES:
            shrunk = _scores(fitted, case, counts=counts, shrinkage=shrinkage)
            yield f"{name}, shrinkage {shrinkage:g}", shrunk, seconds
    machine, seconds = _timed(lambda: _with_negatives(case))
    yield "FactorizationMachineRegressor of 0 and 1", _scores(machine, case), seconds
    yield "EASE", *_timed(lambda: _ease(case.rated.astype(float)))
    if find_spec("implicit") is not None:
        yield "implicit, ALS", *_timed(lambda: _als(case.rated))


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    return call(), time.process_time() - began


def _scores(model: Any, case: Case, **options: Any) -> np.ndarray:
    """Return the scores of all films for all users."""
    n_users, n_films = case.ratings.shape
    rows = sparse.eye_array(n_users + n_films, format="csr")
    ranker = Ranker(model, rows[n_users:], **options)
    return np.array([ranker.scores(rows[[user]]) for user in range(n_users)])


def _with_negatives(case: Case) -> FactorizationMachineRegressor:
    """Fit ones for rated films, and zeros for unrated films that are drawn for every rating."""
    rng, n_films = np.random.default_rng(0), case.ratings.shape[1]
    users, films = case.ratings.users[case.train], case.ratings.items[case.train]
    others, drawn = np.repeat(users, _NEGATIVES), rng.integers(0, n_films, _NEGATIVES * len(users))
    kept = ~case.rated[others, drawn]
    users, films = np.append(users, others[kept]), np.append(films, drawn[kept])
    y = (np.arange(len(users)) < len(case.train)).astype(float)
    X = Ratings(users, films, y).rows()
    return FactorizationMachineRegressor(beta=2, random_state=0).fit(X, y)


def _ease(rated: np.ndarray) -> np.ndarray:
    """Predict each rated film by the other rated films: ridge regression in closed form."""
    P = np.linalg.inv(rated.T @ rated + _EASE * np.eye(rated.shape[1]))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    return rated @ B


def _als(rated: np.ndarray) -> np.ndarray:
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors=20, regularization=1.0, random_state=0, num_threads=1)
    model.fit(sparse.csr_matrix(rated, dtype=np.float32), show_progress=False)
    return model.user_factors @ model.item_factors.T


if __name__ == "__main__":
    sys.exit(main())
