"""Lists from all items by implicit feedback: the convex factorization at its defaults, and methods that users know.

A random fifth of the pairs is held out; the others are ones, whatever the rating. For each user all items without a
training pair are ranked. A hit is one of the first ten items that is in the fifth; a film also needs a rating of 4 or
5: recall@10 divides by the number of such items, at most 10. "rated" is the nDCG@10 of the held-out ratings alone.
Options of other methods are chosen from small grids, by the nDCG@10 of the pairs that ``ImplicitFactorization`` holds
out for its choice. "fit" is a fit at the chosen options, "with choice" the choice and the fit, both with the proof of
the gap; packages that are not installed are left out. The model of ratings is for comparison::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.recommender.implicit
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.common.printing import Table
from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import Parts, Ratings, load, random_parts
from benchmarks.recommender.implicit_methods import METHODS
from mopn.estimators import ImplicitFactorization, OrdinalFMRegressor
from mopn.ranking import Ranker, grouped_ndcg, ndcg_at_k, recall_at_k

# The least rating of a film that counts as a hit, by set; all pairs of the other sets count.
_LEAST_RATING = {"ml-100k": 4.0, "ml-1m": 4.0}
_TRAINING = 0.8
_COLUMNS = (
    "set:12s, method:24s, recall@10:.3f, nDCG@10:.3f, rated:6.3f, gap:8.2g, units:5.0f, fit (s):.1f, "
    "with choice (s):.1f"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.implicit", __doc__, sets=("ml-100k", "lastfm-users", "ml-1m"))
    parser.add_argument("--splits", type=int, default=3, help="random splits (default %(default)s)")
    parser.add_argument("--methods", nargs="+", help="the first words of methods (default all)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print the means over the splits, a row a method."""
    for name, method in METHODS.items():
        if not method.is_installed:
            print(f"left out: {name}, as the package {method.package} is not installed")
    table = Table(_COLUMNS)
    for name in args.sets:
        ratings = load(name, args.data)
        rows: dict[str, list[Any]] = {}
        for split in range(args.splits):
            parts = random_parts(len(ratings.y), split, (_TRAINING, 0.0))
            likes = interactions(ratings, parts.fit)
            for method, scores, *rest in _fitted(ratings, parts, name in _LEAST_RATING, args.methods):
                measures = _measures(ratings, parts, likes, scores, _LEAST_RATING.get(name))
                rows.setdefault(method, []).append((*measures, *rest))
        for method, found in rows.items():
            table.row(name, method, *np.mean(found, axis=0))


def interactions(ratings: Ratings, places: np.ndarray) -> sparse.csr_array:
    """Return the pairs of some ratings, as ones (n_users, n_items)."""
    pairs = ratings.users[places], ratings.items[places]
    return sparse.csr_array((np.ones(len(places)), pairs), shape=ratings.shape)


def _measures(
    ratings: Ratings, parts: Parts, likes: sparse.csr_array, scores: np.ndarray, least: float | None
) -> tuple[float, float, float]:
    """Return recall@10 and nDCG@10 among all items, and nDCG@10 of the held-out ratings, if there are ratings."""
    held = parts.test
    wanted = interactions(ratings, held if least is None else held[ratings.y[held] >= least])
    recall = recall_at_k(wanted, scores, seen=likes)
    ndcg = ndcg_at_k(wanted, scores, seen=likes)
    if least is None:
        return recall, ndcg, np.nan
    of_held = scores[ratings.users[held], ratings.items[held]]
    return recall, ndcg, grouped_ndcg(ratings.y[held], of_held, ratings.users[held], k=10)


def _fitted(
    ratings: Ratings, parts: Parts, has_ratings: bool, wanted: Sequence[str] | None
) -> Iterator[tuple[Any, ...]]:
    """Yield name, scores (n_users, n_items), gap, units, and the seconds of the processor of a fit and of all."""
    likes = interactions(ratings, parts.fit)
    makers: dict[str, Callable[[], tuple[Any, ...]]] = {}
    if has_ratings:
        makers["OrdinalFMRegressor()"] = lambda: _model_of_ratings(ratings, parts)
    for name, method in METHODS.items():
        if method.is_installed:
            makers[name] = lambda method=method: _tuned(method, likes)
    makers["ImplicitFactorization()"] = lambda: _convex(likes)
    for name, make in makers.items():
        if wanted is None or name.startswith(tuple(wanted)):
            yield name, *make()


def _model_of_ratings(ratings: Ratings, parts: Parts) -> tuple[Any, ...]:
    X = ratings.rows()
    fit = OrdinalFMRegressor().fit
    model, seconds = timed(lambda: fit(X[parts.fit], ratings.y[parts.fit]))
    n_users = ratings.shape[0]
    rows = sparse.eye_array(X.shape[1], format="csr")
    ranker = Ranker(model, rows[n_users:])
    scores = np.array([ranker.scores(rows[[user]]) for user in range(n_users)])
    return scores, np.nan, np.nan, seconds, seconds


def _tuned(method: Any, likes: sparse.csr_array) -> tuple[Any, ...]:
    options, of_choice = timed(lambda: method.chosen(likes))
    scores, seconds = timed(lambda: method.scores(likes, **options))
    print(f"  {options}", file=sys.stderr)
    return scores, np.nan, np.nan, seconds, of_choice + seconds


def _convex(likes: sparse.csr_array) -> tuple[Any, ...]:
    model, seconds = timed(lambda: ImplicitFactorization().fit(likes))
    alone = timed(lambda: ImplicitFactorization(model.strength_, model.unobserved_weight_).fit(likes))[1]
    scores = model.user_factors_ @ model.item_factors_.T
    return scores, model.relative_gap_, model.n_units_, alone, seconds


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call, and its seconds of the processor."""
    began = time.process_time()
    return call(), time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
