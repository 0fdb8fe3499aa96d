"""Implicit feedback in detail: seconds next to the package ``implicit``, proven gaps by sweeps and rank, new users.

A fifth of the pairs is held out, split 0; the strength is 0.05 of the largest singular value, the weight 0.3. Seconds
are of the processor, with one thread. The parts: ``sweeps`` times sweeps of AlternatingLeastSquares, a proof after
them, and as many of ``implicit``, by conjugate gradients and by Cholesky factors, with the same number of factors, each
the least of three runs; ``lists`` times the ten best items of all users; ``gaps`` prints relative gaps that are proven
after sweeps, with limits on the rank; ``cold`` fits without a tenth of the users, folds them in, and compares recall@10
with a fit to all; ``general`` solves the same problem by conditional gradients on one-hot columns::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.recommender.implicit_speed
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

import mopn
from benchmarks.common.printing import Table
from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import Parts, Ratings, load, random_parts
from benchmarks.recommender.implicit import interactions, timed
from mopn.estimators import ImplicitFactorization
from mopn.ranking import recall_at_k
from mopn.solvers import AlternatingLeastSquares

_RATIO, _WEIGHT = mopn.Ratio(0.05), 0.3
_SWEEPS = 15
# Runs of a method; the least seconds count.
_RUNS = 3
_FACTORS = (32, 64, 128)
_RANKS = (4, 8, 16, 32, None)
_CHECKED_SWEEPS = (2, 4, 8, 16, 32)
_LEAST_GAPS = (0.1, 0.01, 0.001)
# Seconds after which conditional gradients end.
_MOST_SECONDS = 60.0
# A tenth of the users are new.
_NEW_USERS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.implicit_speed", __doc__, sets=("ml-100k", "ml-1m"))
    parser.add_argument("--parts", nargs="+", choices=list(_PARTS), default=list(_PARTS))
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    for part in args.parts:
        heading, do = _PARTS[part]
        print(f"\n{part}")
        table = Table(heading)
        for name in args.sets:
            ratings = load(name, args.data)
            do(table, name, ratings, random_parts(len(ratings.y), 0, (0.8, 0.0)))


def _sweeps(table: Table, name: str, ratings: Ratings, parts: Parts) -> None:
    likes = interactions(ratings, parts.fit)
    # Machine code is read before times are taken.
    ImplicitFactorization(_RATIO, _WEIGHT, max_iter=2).fit(likes)
    for k in _FACTORS:
        problem = mopn.ImplicitProblem(likes, _RATIO, _WEIGHT)
        solver = AlternatingLeastSquares(max_units=k, prove=False)
        fit = partial(mopn.minimize, problem, solver, tol=1e-5, max_iter=_SWEEPS)
        result = fit()
        calls: list[Callable[[], Any]] = [fit, partial(mopn.certify, problem, result.P, result.Q)]
        if find_spec("implicit") is not None:
            calls += [partial(_fit_of_implicit, likes, result.P.shape[1], result.nit, by_cg) for by_cg in (True, False)]
        seconds = [min(timed(call)[1] for _ in range(_RUNS)) for call in calls]
        table.row(name, result.P.shape[1], result.nit, *seconds, *[None] * (4 - len(seconds)))


def _fit_of_implicit(likes: sparse.csr_array, k: int, sweeps: int, by_cg: bool) -> None:
    """Fit the package at the same strength and weights."""
    from implicit.cpu.als import AlternatingLeastSquares as Peer

    peer = Peer(k, regularization=10.0, alpha=1.0, use_cg=by_cg, iterations=sweeps, num_threads=1, random_state=0)
    matrix = sparse.csr_matrix(likes, dtype=np.float32)
    peer.fit(matrix, show_progress=False)


def _lists(table: Table, name: str, ratings: Ratings, parts: Parts) -> None:
    model = ImplicitFactorization(_RATIO, _WEIGHT).fit(interactions(ratings, parts.fit))
    lists, seconds = timed(model.recommend)
    table.row(name, *ratings.shape, model.n_units_, *lists.items.shape, seconds)


def _gaps(table: Table, name: str, ratings: Ratings, parts: Parts) -> None:
    problem = mopn.ImplicitProblem(interactions(ratings, parts.fit), _RATIO, _WEIGHT)
    for rank in _RANKS:
        result = None
        gaps = []
        done = 0
        for sweeps in _CHECKED_SWEEPS:
            solver = AlternatingLeastSquares(max_units=rank, prove=False)
            result = mopn.minimize(problem, solver, start=result, tol=1e-9, max_iter=sweeps - done)
            done = sweeps
            gaps.append(mopn.certify(problem, result.P, result.Q).relative_gap)
        table.row(name, "any" if rank is None else str(rank), result.P.shape[1], *gaps)


def _cold(table: Table, name: str, ratings: Ratings, parts: Parts) -> None:
    likes = interactions(ratings, parts.fit)
    wanted = interactions(ratings, parts.test)
    new = np.arange(ratings.shape[0]) % _NEW_USERS == 0
    model = ImplicitFactorization(_RATIO, _WEIGHT).fit(likes[~new])
    factors, seconds = timed(lambda: model.fold_in(likes[new]))
    everyone = ImplicitFactorization(_RATIO, _WEIGHT).fit(likes)
    popularity = np.tile(likes[~new].sum(axis=0), (new.sum(), 1))
    all_scores = popularity, factors @ model.item_factors_.T, everyone.user_factors_[new] @ everyone.item_factors_.T
    recalls = [recall_at_k(wanted[new], scores, seen=likes[new]) for scores in all_scores]
    table.row(name, int(new.sum()), *recalls, 1e3 * seconds / new.sum())


def _general(table: Table, name: str, ratings: Ratings, parts: Parts) -> None:
    likes = interactions(ratings, parts.fit)
    problem = mopn.ImplicitProblem(likes, _RATIO, _WEIGHT)
    users, items = likes.nonzero()
    rows = Ratings(users, items, np.ones(likes.nnz)).rows()
    general = mopn.NetworkProblem(
        rows, np.ones((likes.nnz, 1)), "squared", "anova", "l1", strength=problem.strength / 2.0, ridge=_WEIGHT
    )
    solvers = {"ALS": (problem, AlternatingLeastSquares()), "conditional gradient": (general, None)}
    for method, (posed, solver) in solvers.items():
        seconds = []
        for gap in _LEAST_GAPS:
            result, taken = timed(partial(mopn.minimize, posed, solver, tol=gap, max_time=_MOST_SECONDS))
            seconds.append(taken if result.success else None)
        table.row(name, method, *seconds, result.relative_gap, result.fun)


_PARTS: dict[str, Any] = {
    "sweeps": ("set:12s, k:4d, sweeps:d, mopn:6.2f s, proof:5.2f s, implicit CG:5.2f s, Cholesky:6.2f s", _sweeps),
    "lists": ("set:12s, users:d, items:d, units:d, lists:d, length:d, seconds:.2f", _lists),
    "gaps": ("set:12s, rank:4s, units:d, " + ", ".join(f"{n} sweeps:.1e" for n in _CHECKED_SWEEPS), _gaps),
    "cold": ("set:12s, new users:d, popularity:.3f, folded in:.3f, fitted:.3f, each:.2f ms", _cold),
    "general": ("set:12s, solver:20s, 10 %:6.1f s, 1 %:6.1f s, 0.1 %:6.1f s, last gap:.1e, objective:.1f", _general),
}


if __name__ == "__main__":
    sys.exit(main())
