"""The time of a refit after one more row at n = 1,000 and d = 100, and what ten seeds of a fit differ by.

The first table is of random rows of 0 and 1 and a quadratic form of rank 4, and of frustrated loops on a torus of 100
spins: CPU milliseconds of ``fit`` with ``warm_start``, checks of the input included, over twenty refits with a new row
each. The second one fits 200 rows of each function of the study ten times, after a random half of the rows that is
drawn with the seed; the machine starts at random numbers, too. Without torch there is no such machine::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.blackbox.refits
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

import mopn
from benchmarks.blackbox.functions import FUNCTIONS, SIZES, FrustratedLoops
from benchmarks.blackbox.surrogates import SURROGATES, installed_methods
from benchmarks.common.study import make_parser, run

_N, _D, _RANK, _REFITS, _HELD_OUT = 1000, 100, 4, 20, 1000
_RATIOS = [0.1, 0.05, 0.03, 0.01]
_ROWS, _SEEDS = 200, 10


def refits(n: int = _N) -> Iterator[str]:
    """Yield a line for every target, method and strength; only mopn's own is tried with several."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n + _REFITS + _HELD_OUT, _D)).astype(float)
    L = rng.standard_normal((_D, _RANK))
    targets = {f"rank {_RANK}": ((X @ np.triu(L @ L.T)) * X).sum(axis=1), "loops": FrustratedLoops(10, 100, seed=1)(X)}
    yield "target    method       strength  first fit s  refit ms: median (least-most)  units  gap    R2 held out"
    for name, y in targets.items():
        for method in _fitted_methods():
            for ratio in _RATIOS if method == "mopn" else [None]:
                surrogate = _fitted_methods()[method](0)
                if ratio is not None:
                    surrogate.model.set_params(strength=mopn.Ratio(ratio))
                yield f"{name:8s}  {method:11s}  {ratio or '':<8}  {_measured(surrogate, X, y, n)}"


def _measured(surrogate: Any, X: np.ndarray, y: np.ndarray, n: int) -> str:
    """Return the cells of a line: a fit to n rows, and refits with a row more each."""
    times = []
    for count in range(n, n + _REFITS + 1):
        began = time.process_time()
        surrogate.fit(X[:count], y[:count])
        times.append(time.process_time() - began)
    ms, held_out = 1e3 * np.array(times[1:]), slice(n + _REFITS, None)
    score = r2_score(y[held_out], surrogate.predict(X[held_out]))
    size = (
        f"{len(surrogate.model.basis_):5d}  {surrogate.model.relative_gap_:.0e}" if hasattr(surrogate, "model") else ""
    )
    return f"{times[0]:11.2f}  {np.median(ms):8.1f} ({ms.min():.0f}-{ms.max():.0f}){'':8s}  {size:12s}  {score:.3f}"


def _fitted_methods() -> dict[str, Any]:
    return {name: SURROGATES[name] for name in installed_methods() if SURROGATES[name] is not None}


def spreads(rows: int = _ROWS) -> Iterator[str]:
    """Yield a line for every function and method: deviations between seeds over the deviation of the values."""
    yield "function    method       deviation between seeds  R2 held out (least-most)"
    for name, make in FUNCTIONS.items():
        function, rng = make(SIZES[name]), np.random.default_rng(0)
        X = np.array([function.draw(rng) for _ in range(rows + _HELD_OUT)])
        y = function(X)
        for method, kind in _fitted_methods().items():
            found = [_fitted_twice(kind(seed), X[:rows], y[:rows], seed).predict(X[rows:]) for seed in range(_SEEDS)]
            between = np.sqrt(np.var(found, axis=0).mean() / np.var(y))
            scores = [r2_score(y[rows:], values) for values in found]
            yield f"{name:10s}  {method:11s}  {between:23.4f}  {min(scores):.3f}-{max(scores):.3f}"


def _fitted_twice(surrogate: Any, X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """Fit to a random half of the rows, and then to all of them."""
    half = np.random.default_rng(seed).permutation(len(y))[: len(y) // 2]
    surrogate.fit(X[half], y[half])
    surrogate.fit(X, y)
    return surrogate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("blackbox.refits", __doc__, data=False)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    return run(parser, _program, arguments)


def _program(options: argparse.Namespace) -> None:
    parts = (refits(100), spreads(40)) if options.quick else (refits(), spreads())
    for part in parts:
        for line in part:
            print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
