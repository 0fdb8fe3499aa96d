"""Lists of films, and of new films that nobody has rated, by implicit feedback with features of users and films.

A random fifth of the films of MovieLens 100K is new: its ratings are all left out, as is a fifth of the ratings of the
others. What is left are ones. Features of films are genres and decades, features of users gender, age group and
occupation. "warm" lists rank the films that are not new, "new" lists the new ones, by features alone. Hits are films of
the first ten that the user rated with 4 or 5. Columns of features have a ``length``, where the column of an id has 1;
"raw" are features as they are. Fits are to a gap of 1e-3 at the strength 0.07 of the largest singular value of the
plain confidences, and a weight of unobserved pairs of 0.3 or 1; "estimator" chooses both::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.cold --data FOLDER
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder

import mopn
from benchmarks.common.printing import Table
from benchmarks.common.sources import read
from benchmarks.common.study import make_parser, run
from benchmarks.recommender.side import SETS, Known
from mopn.estimators import ImplicitFactorization
from mopn.ranking import ndcg_at_k, recall_at_k

_SHARE, _LIKED = 0.2, 4.0
_RATIO = 0.07
_WEIGHTS = (0.3, 1.0)
_LENGTHS = (0.1, 0.2, 0.3, 0.5, 1.0)
# A score below all others: lists leave such films out.
_OUT = -1e9
_COLUMNS = (
    "features:8s, length:9s, weight:6.2g, warm recall@10:.3f, warm nDCG@10:.3f, new recall@10:.3f, new nDCG@10:.3f, "
    "gap:8.2g, units:5.0f, CPU (s):.1f"
)


class Split:
    """Ones of the training, held-out hits of warm and of new films, and features."""

    def __init__(self, known: Known, seed: int) -> None:
        rng = np.random.default_rng(seed)
        ratings = known.ratings
        user_ids, users = np.unique(ratings[:, 0], return_inverse=True)
        film_ids, films = np.unique(ratings[:, 1], return_inverse=True)
        self.shape = len(user_ids), len(film_ids)
        self.is_new = rng.random(len(film_ids)) < _SHARE
        held = rng.random(len(users)) < _SHARE
        new = self.is_new[films]
        liked = ratings[:, 2] >= _LIKED
        pairs = users, films
        self.train = self._matrix(pairs, ~new & ~held)
        self.warm = self._matrix(pairs, ~new & held & liked)
        self.new = self._matrix(pairs, new & liked)
        self.users = OneHotEncoder().fit_transform([known.users[user] for user in user_ids.tolist()]).toarray()
        of_films = [known.films[film] for film in film_ids.tolist()]
        decades = OneHotEncoder().fit_transform([[decade] for decade, _ in of_films]).toarray()
        self.films = np.hstack([MultiLabelBinarizer().fit_transform([genres for _, genres in of_films]), decades])

    def _matrix(self, pairs: tuple[np.ndarray, np.ndarray], rows: np.ndarray) -> sparse.csr_array:
        return sparse.csr_array((np.ones(rows.sum()), (pairs[0][rows], pairs[1][rows])), shape=self.shape)

    def measures(self, scores: np.ndarray, *, with_new: bool) -> list[float]:
        """Recall and nDCG of warm films, then of new ones, or NaN where nothing is known of these."""
        warm = np.where(self.is_new, _OUT, scores)
        new = np.where(self.is_new, scores, _OUT)
        found = [metric(self.warm, warm, 10, seen=self.train) for metric in (recall_at_k, ndcg_at_k)]
        if not with_new:
            return [*found, np.nan, np.nan]
        return found + [metric(self.new, new, 10) for metric in (recall_at_k, ndcg_at_k)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.cold", __doc__)
    parser.add_argument("--splits", type=int, default=3, help="random splits (default %(default)s)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print the means over the splits, a row a fit."""
    known = read(SETS, "ml-100k", args.data)
    rows: dict[tuple[Any, ...], list[Any]] = {}
    for seed in range(args.splits):
        for name, found in _rows(Split(known, seed), seed):
            rows.setdefault(name, []).append(found)
    table = Table(_COLUMNS)
    for name, found in rows.items():
        table.row(*name, *np.mean(found, axis=0))


def _rows(split: Split, seed: int) -> Iterator[tuple[tuple[Any, ...], list[float]]]:
    scores = np.random.default_rng(seed).random(split.shape)
    yield ("random", "", np.nan), [*split.measures(scores, with_new=True), np.nan, np.nan, 0.0]
    for weight in _WEIGHTS:
        yield ("none", "", weight), _of_problem(split, weight)
        for length in _LENGTHS:
            films = _scaled(split.films, length)
            yield ("films", f"{length:g}", weight), _of_problem(split, weight, item_features=films)
    yield ("films", "raw", _WEIGHTS[0]), _of_problem(split, _WEIGHTS[0], item_features=split.films)
    for kinds in ({}, {"item_features"}, {"user_features"}, {"item_features", "user_features"}):
        given = {"item_features": split.films, "user_features": split.users}
        features = {name: values for name, values in given.items() if name in kinds}
        name = {0: "none", 2: "both"}.get(len(kinds), "films" if "item_features" in kinds else "users")
        yield (name, "estimator", np.nan), _of_estimator(split, features)


def _scaled(features: np.ndarray, length: float) -> np.ndarray:
    return length * features / np.linalg.norm(features, axis=0)


def _of_problem(split: Split, weight: float, **features: Any) -> list[float]:
    began = time.process_time()
    strength = _RATIO * mopn.ImplicitProblem(split.train, 1.0).largest_singular_value
    problem = mopn.ImplicitProblem(split.train, strength, weight, **features)
    result = mopn.minimize(problem, tol=1e-3, max_iter=100)
    seconds = time.process_time() - began
    users, items = problem.pairs.vectors(result.P, result.Q)
    scores = users @ items.T
    measures = split.measures(scores, with_new="item_features" in features)
    return [*measures, result.relative_gap, result.P.shape[1], seconds]


def _of_estimator(split: Split, features: dict[str, Any]) -> list[float]:
    began = time.process_time()
    model = ImplicitFactorization().fit(split.train, **features)
    seconds = time.process_time() - began
    scores = model.user_factors_ @ model.item_factors_.T
    return [*split.measures(scores, with_new="item_features" in features), model.relative_gap_, model.n_units_, seconds]


if __name__ == "__main__":
    sys.exit(main())
