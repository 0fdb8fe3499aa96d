"""Time and memory of implicit feedback at scale, on generated pairs of users and items.

Each user belongs to one of 50 groups and draws half of the pairs among the group's items, half among all; few items are
popular. A row has one number of pairs, one rank and one number of threads: the best of several sweeps, of the same of
``implicit``'s AlternatingLeastSquares by Cholesky factors and by conjugate gradients, an estimate of the gap, and its
proof. "s" are seconds of the clock; "cpu" are seconds of the processor, which other programs on the machine prolong
less. "peak" is the largest resident set of the process, with the generated pairs and all models so far::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.clicks_scale --pairs 2000000 20000000 --ranks 32 64 128
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

import mopn
from benchmarks.common.printing import Table
from benchmarks.common.processes import peak_memory
from benchmarks.common.study import make_parser, run
from mopn.implicit.problem import Factors
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.budgets import FailureBudget

_N_GROUPS = 50
# Items are drawn at the cube of a uniform number: a tenth of them has nearly half of the pairs.
_SKEW = 3
# Gap that the proof is made for, relative.
_GOAL = 1e-3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.clicks_scale", __doc__, data=False)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--ranks", type=int, nargs="+", default=[64])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--runs", type=int, default=2, help="sweeps; the best counts (default %(default)s)")
    parser.add_argument("--strength", type=float, default=0.1, help="relative to the largest singular value")
    parser.add_argument("--peer", action="store_true", help="time implicit's sweeps too")
    parser.add_argument("--proof", action="store_true", help="time an estimate and a proof too")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print a row for each number of pairs, rank and number of threads."""
    table = Table(
        "pairs:9d, rank:4d, threads:7d, sweep:6.2f s, cpu:6.2f s, value:6.2f s, estimate:6.2f s, proof:6.2f s, "
        "gap:8.2g, implicit:6.2f s, cpu:6.2f s, its CG:6.2f s, cpu:6.2f s, peak:5.2f GB"
    )
    for n_pairs in args.pairs:
        clicks = generated(args.users, args.items, n_pairs)
        problem = mopn.ImplicitProblem(clicks, mopn.Ratio(args.strength))
        for rank in args.ranks:
            for threads in args.threads:
                with limited_threads(threads):
                    cells = _own(problem, rank, args)
                peer = _peer(clicks, rank, threads, args.runs) if args.peer else (None,) * 4
                table.row(clicks.nnz, rank, threads, *cells, *peer, peak_memory() / 1e9)


def generated(n_users: int, n_items: int, n_pairs: int, seed: int = 0) -> sparse.csr_array:
    """Return ones (n_users, n_items) in single precision for about ``n_pairs`` pairs."""
    rng = np.random.default_rng(seed)
    users = rng.integers(0, n_users, n_pairs, dtype=np.int32)
    items = (n_items * rng.random(n_pairs, np.float32) ** _SKEW).astype(np.int32)
    in_group = rng.random(n_pairs, np.float32) < 0.5
    items = np.where(in_group, items - items % _N_GROUPS + users % _N_GROUPS, items)
    np.minimum(items, n_items - 1, out=items)
    clicks = sparse.coo_array((np.ones(n_pairs, np.float32), (users, items)), shape=(n_users, n_items)).tocsr()
    clicks.data[:] = 1.0
    return clicks


def _own(problem: Any, rank: int, args: argparse.Namespace) -> tuple[float | None, ...]:
    """Return seconds of a sweep, by clock and processor, of an objective, an estimate and a proof, and the gap."""
    rng = np.random.default_rng(0)
    n_users, n_items = problem.pairs.shape
    point = Factors(rng.normal(0.0, 0.1, (n_users, rank)), rng.normal(0.0, 0.1, (n_items, rank)))
    small = problem.sweep(Factors(point.P[:, :1], point.Q[:, :1]), single=True)
    problem.evaluate(small)
    times = []
    for _ in range(args.runs):
        point, *seconds = _timed(lambda point=point: problem.sweep(point, single=True))
        times.append(seconds)
    clock, processor = np.min(times, axis=0)
    at, of_value, _ = _timed(lambda: problem.evaluate(point))
    if not args.proof:
        return clock, processor, of_value, None, None, None
    _, of_estimate, _ = _timed(lambda: problem.estimate(point, at, 32, 0.0, 0))
    dual, of_proof, _ = _timed(lambda: problem.dual(point, at, _GOAL * at.value, FailureBudget()))
    return clock, processor, of_value, of_estimate, of_proof, 1.0 - dual.lower / at.value


def _peer(clicks: sparse.csr_array, rank: int, threads: int, runs: int) -> list[float]:
    """Return the best seconds of an iteration of implicit, by clock and processor, exact and by conjugate gradients."""
    from implicit.cpu.als import AlternatingLeastSquares

    cells = []
    for use_cg in (False, True):
        options = {"factors": rank, "iterations": 1, "num_threads": threads, "use_cg": use_cg, "random_state": 0}
        times = []
        for _ in range(runs):
            model = AlternatingLeastSquares(**options)
            matrix = sparse.csr_matrix(clicks)
            times.append(_timed(lambda model=model, matrix=matrix: model.fit(matrix, show_progress=False))[1:])
        cells += np.min(times, axis=0).tolist()
    return cells


def _timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, and its seconds by the clock and the processor."""
    clock = time.perf_counter()
    processor = time.process_time()
    result = call()
    return result, time.perf_counter() - clock, time.process_time() - processor


if __name__ == "__main__":
    sys.exit(main())
