"""Time, memory and certificates of ordinal factorization machines on all of MovieLens 100K or 1M.

Half of the ratings (split 0 of the ranking study), at most 30 units. A small fit comes first, so that compiling is
timed apart. Memory is the peak of the resident set during a fit, above the resident set before it: freed memory stays
with the process, so that a later row shows its use beyond the earlier ones. ``exact gap`` is proven after the fit
by Cholesky factors, where those exist (l1 and l1/linf, d <= 3000); ``random gap`` holds with a probability of
1 - 1e-9, by polynomials of random starts; ``loose`` is its excess over the gap by the best unit found,
the cost of the bound: the rest is the model's distance from the minimum. Start it alone, with the threads that it may
use::

    OMP_NUM_THREADS=2 python -m benchmarks.recommender.speed --data FOLDER --sets ml-100k ml-1m
"""

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

import mopn
from benchmarks.common.printing import Table
from benchmarks.common.processes import peak_memory
from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import load, random_parts
from mopn.estimators import OrdinalFMRegressor
from mopn.models.base import cumulative_targets

_STRENGTHS = {
    "ml-100k": {"l1": 2.5, "l1/l2": 3.5, "l1/linf": 6.0},
    "ml-1m": {"l1": 4.0, "l1/l2": 4.5, "l1/linf": 8.5},
}
_ALPHA = 0.15
_SMALL, _PAUSE = 500, 0.02
_PROVABLE = 3000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.speed", __doc__, sets=_STRENGTHS)
    parser.add_argument("--norms", nargs="+", default=list(_STRENGTHS["ml-1m"]), choices=_STRENGTHS["ml-1m"])
    parser.add_argument("--units", type=int, default=30)
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print a row a fit."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 2, (_SMALL, 5)).astype(float)
    began = time.perf_counter()
    OrdinalFMRegressor(max_units=2).fit(sparse.csr_array(small), rng.integers(1, 6, _SMALL))
    print(f"first fit, of {_SMALL} rows: {time.perf_counter() - began:.1f} s, compiled functions read or made")
    for name in args.sets:
        ratings = load(name, args.data)
        places = random_parts(len(ratings.y), 0, (0.5, 0.25))
        X, y = ratings.rows(), ratings.y
        print(f"\n{name}: {len(places.fit)} ratings to fit, {X.shape[1]} features")
        table = Table(
            "norm:8s, strength:g, fit:5.1f s, memory:5.0f MB, units:d, test RMSE:.4f, objective:11.1f, status:10s, "
            "exact gap:.2e, proof:5.1f s, random gap:.2e, loose:7.1e, proof:5.1f s"
        )
        for norm in args.norms:
            strength = _STRENGTHS[name][norm]
            machine = OrdinalFMRegressor(norm=norm, strength=strength, alpha=_ALPHA * strength, max_units=args.units)
            seconds, memory = measured(partial(machine.fit, X[places.fit], y[places.fit]))
            rmse = np.sqrt(np.mean((machine.predict(X[places.test]) - y[places.test]) ** 2))
            parts = machine, X[places.fit], y[places.fit]
            exact = proven(*parts, "exact") if norm != "l1/l2" and X.shape[1] <= _PROVABLE else (None, None, None)
            random = proven(*parts, "lanczos")
            fitted = len(machine.basis_), rmse, machine.objective_, machine.status_.name
            table.row(norm, strength, seconds, memory, *fitted, exact[0], exact[2], *random)
    print(f"\npeak of the process: {peak_memory() / 1e9:.2f} GB")


def measured(function: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds that a call takes, and the peak of the memory during it, in MB, above that before."""
    base, peak, over = _resident(), [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(_PAUSE):
            peak[0] = max(peak[0], _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    try:
        function()
    finally:
        seconds = time.perf_counter() - began
        over.set()
        watcher.join()
    return seconds, max(peak[0] - base, 0.0)


def _resident() -> float:
    """Return the resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def proven(machine: OrdinalFMRegressor, X: Any, y: np.ndarray, oracle: str) -> tuple[float, float, float]:
    """Return the relative gap that an oracle proves, how much of it is the looseness of the bound, and the seconds."""
    levels, codes = np.unique(y, return_inverse=True)
    problem = mopn.NetworkProblem(
        X, cumulative_targets(codes, len(levels)), "binary-logistic", "anova", machine.norm,
        strength=machine.strength, alpha=machine.alpha, offset=machine.model_.offset,
    )  # fmt: skip
    began = time.perf_counter()
    network = problem.start((machine.basis_, machine.weights_, machine.linear_))
    at = problem.output_gradient(network)
    atoms = problem.lmo(at, oracle)
    seconds = time.perf_counter() - began
    gap, estimate = (1.0 - problem.lower(at, bound) / at.value for bound in (atoms.bound, atoms.values[0]))
    return gap, gap - estimate, seconds


if __name__ == "__main__":
    sys.exit(main())
