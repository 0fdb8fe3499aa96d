"""Threads of linear algebra: from which size of a product several of them pay, and what fits take with them.

* ``products``: matrix products and decompositions of growing size with one thread and with one a core; the ratio is the
  first's time over the second's.
* ``fits``: whole fits with ``n_threads=1``, with ``n_threads=None`` and with ``n_threads`` the number of cores. The
  ratios are to the first; none should be more than 1.2.

Each is measured on an idle machine, and while another process keeps one core busy. Processes start with the threads
that BLAS takes by itself, one a core::

    python -m benchmarks.speed.threads --data FOLDER
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import mopn
from benchmarks.common.datasets import load, split
from benchmarks.common.processes import run_python
from benchmarks.common.study import make_parser, run

__all__ = ["main"]

_ROWS, _COLUMNS = (300, 1_000, 3_000, 10_000, 30_000, 100_000), 50
_DIMENSIONS = (50, 100, 200, 400, 800)
_REPEATS, _TURNS = 7, 4
# The operations of a decomposition into eigenvectors, relative to the third power of the dimension.
_EIGH = 9.0
_FITS = (("digits", 20, 3.0), ("satimage", 50, 1.0), ("letter", 20, 0.5))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("speed.threads", __doc__)
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=list(_PARTS))
    parser.add_argument("--inside", choices=_PARTS, help="internal: one part, in this process")
    return parser


def _program(args: argparse.Namespace) -> None:
    if args.inside:
        _PARTS[args.inside](args.data)
        return
    cores = str(_cores())
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), cores)
    for part in args.parts:
        for busy in (False, True):
            with _busy_core(busy):
                print(f"\n{part}, {cores} cores, {'one of them busy' if busy else 'idle'}")
                call = ("-m", "benchmarks.speed.threads", "--data", args.data, "--inside", part)
                print(run_python(*call, **threads), end="", flush=True)


def _cores() -> int:
    return os.cpu_count() or 1


@contextmanager
def _busy_core(busy: bool) -> Iterator[None]:
    """Let another process compute for the time of the block."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def _products(data: str) -> None:
    """Print the times of products and of decompositions with one thread and with all."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal((_COLUMNS, _COLUMNS))
    print(f"{'':28s}{'operations':>12s}{'one thread':>14s}{'all':>14s}   ratio")
    for n in _ROWS:
        A = rng.standard_normal((n, _COLUMNS))
        _print_ratio(f"{n} x {_COLUMNS} by {B.shape[0]} x {B.shape[1]}", n * _COLUMNS**2, lambda A=A: A @ B)
    for d in _DIMENSIONS:
        C = rng.standard_normal((d, d))
        _print_ratio(f"eigh, {d} x {d}", _EIGH * d**3, lambda S=C + C.T: np.linalg.eigh(S))


def _print_ratio(name: str, operations: float, product: Callable[[], object]) -> None:
    one, several = (_median(product, threads) for threads in (1, _cores()))
    print(f"{name:28s}{operations:12.1e}{1e3 * one:11.3f} ms{1e3 * several:11.3f} ms{one / several:8.2f}")


def _median(product: Callable[[], object], threads: int) -> float:
    with threadpool_limits(threads):
        product()  # starts the threads
        return statistics.median(_seconds(product) for _ in range(_REPEATS))


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _fits(data: str) -> None:
    """Print the times of fits with one thread, by mopn's rule, and with all threads."""
    print(f"{'':14s}{'one thread':>13s}{'mopn':>13s}   ratio{'all':>13s}   ratio")
    for name, units, strength in _FITS:
        one, rule, several = _in_turn(name, data, units, strength, (1, None, _cores()))
        ratios = f"{rule:11.2f} s{rule / one:8.2f}{several:11.2f} s{several / one:8.2f}"
        print(f"{name:14s}{one:11.2f} s{ratios}", flush=True)


def _in_turn(name: str, data: str, units: int, strength: float, threads: Sequence[int | None]) -> list[float]:
    """Return the least seconds of a fit with each number of threads, which take turns: others use the machine too."""
    X, y = load_digits(return_X_y=True) if name == "digits" else load(name, data)
    part = split(X, y, 0)
    problem = mopn.NetworkProblem(part.X_train, part.y_train, norm="l1/l2", strength=strength, augment=True)
    solver = mopn.solvers.ConditionalGradient(refit="full", max_units=units)
    turns = [[mopn.minimize(problem, solver, n_threads=count).time for count in threads] for _ in range(_TURNS)]
    return np.min(turns, axis=0).tolist()


_PARTS = {"products": _products, "fits": _fits}

if __name__ == "__main__":
    sys.exit(main())
