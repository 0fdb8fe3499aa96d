"""Lists from all items by implicit feedback: the convex factorization at its defaults, popularity, and EASE.

A random fifth of the ratings is held out; what is left are ones, whatever the rating. For each user all items without a
training rating are ranked. Hits are items of the first ten that the user rated with 4 or 5 in the fifth: recall@10
divides by the number of such items, at most 10. EASE (Steck, WWW 2019) has its penalty of 300. "fit" is a fit at the
options that the choice found, "with choice" all of ``fit()``, both with the proof of the gap::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.implicit --data FOLDER
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
from benchmarks.recommender.data import Ratings, load, random_parts
from mopn.estimators import ImplicitFactorization
from mopn.ranking import ndcg_at_k, recall_at_k

_TRAINING, _LIKED = 0.8, 4.0
_EASE_PENALTY = 300.0
_COLUMNS = "set:9s, method:24s, recall@10:.3f, nDCG@10:.3f, gap:8.2g, units:5.0f, fit (s):.1f, with choice (s):.1f"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.implicit", __doc__, sets=("ml-100k", "ml-1m"))
    parser.add_argument("--splits", type=int, default=3, help="random splits (default %(default)s)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print the means over the splits, a row a method."""
    table = Table(_COLUMNS)
    for name in args.sets:
        ratings, rows = load(name, args.data), {}
        for split in range(args.splits):
            parts = random_parts(len(ratings.y), split, (_TRAINING, 0.0))
            likes = _matrix(ratings, parts.fit)
            wanted = _matrix(ratings, parts.test[ratings.y[parts.test] >= _LIKED])
            for method, scores, *rest in _methods(likes):
                measures = [metric(wanted, scores, seen=likes) for metric in (recall_at_k, ndcg_at_k)]
                rows.setdefault(method, []).append((*measures, *rest))
        for method, found in rows.items():
            table.row(name, method, *np.mean(found, axis=0))


def _matrix(ratings: Ratings, places: np.ndarray) -> sparse.csr_array:
    pairs = ratings.users[places], ratings.items[places]
    return sparse.csr_array((np.ones(len(places)), pairs), shape=ratings.shape)


def _methods(likes: sparse.csr_array) -> Iterator[tuple[Any, ...]]:
    """Yield name, scores (n_users, n_items), gap, units, and the seconds of the processor of a fit and of all."""
    counts = likes.sum(axis=0)
    yield "popularity", np.tile(counts, (likes.shape[0], 1)), np.nan, np.nan, 0.0, 0.0
    scores, seconds = _timed(lambda: _ease(likes))
    yield "EASE", scores, np.nan, np.nan, seconds, seconds
    model, seconds = _timed(lambda: ImplicitFactorization().fit(likes))
    alone = _timed(lambda: ImplicitFactorization(model.strength_, model.unobserved_weight_).fit(likes))[1]
    scores = model.user_factors_ @ model.item_factors_.T
    yield "ImplicitFactorization()", scores, model.relative_gap_, model.n_units_, alone, seconds


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    return call(), time.process_time() - began


def _ease(likes: sparse.csr_array) -> np.ndarray:
    """Predict each item by the other items of a user: ridge regression in closed form."""
    dense = likes.toarray()
    P = np.linalg.inv(dense.T @ dense + _EASE_PENALTY * np.eye(dense.shape[1]))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    return dense @ B


if __name__ == "__main__":
    sys.exit(main())
