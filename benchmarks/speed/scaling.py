"""How time and memory of fits grow with the rows n, the features d, the outputs m and the units k.

Synthetic data: the classes are the largest of m random polynomials of degree 2, a tenth of the labels is replaced at
random, [1, x] is fitted. One factor is varied around n = 20,000, d = 20, m = 10, k = 20. Fits of k units take five
rounds or so, by the oracle ``refine``, which proves nothing; a refit takes ten iterations at most, the last one twenty.

Every figure is from a fresh process. Memory is the growth of its peak resident set (Linux only) in the fit; before, the
data were made, block by block, and a small fit loaded all code. It is compared with the arrays of
every such method: the features (n, k), the outputs (n, m) and the loss gradient (n, m), 8 (k + 2 m) n bytes. mopn
promises at most three times that. Below some ten thousand rows fixed costs dominate. Exponents are
fitted to the three largest values of a factor::

    OMP_NUM_THREADS=1 python -m benchmarks.speed.scaling
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence

import numpy as np

import mopn
from benchmarks.common.printing import Table
from benchmarks.common.processes import peak_memory, run_program
from benchmarks.common.study import make_parser, run
from mopn.solvers.conditional_gradient import make_corrective_step

BASE = {"n": 20_000, "d": 20, "m": 10, "k": 20}
VALUES = {
    "n": (1_000, 10_000, 100_000, 1_000_000),
    "d": (5, 10, 20, 40, 80, 160),
    "m": (5, 10, 20, 40, 80),
    "k": (5, 10, 20, 40, 80),
}
QUICK_BASE = {"n": 500, "d": 4, "m": 3, "k": 4}
QUICK_VALUES = {"n": (500, 1_000)}
REFITS = ("output", "full")
PROMISE = 3.0
_ROUNDS = 5
_REFIT_ITER, _POLISH_ITER = 10, 20
_FITTED = 3
# Rows that are made at once.
_BLOCK = 1_000
_NOISE = 0.1

# A measurement: the factors and the refit with seconds, peak bytes beyond the data, rounds and units.
Row = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("speed.scaling", __doc__, data=False)
    parser.add_argument("--quick", action="store_true", help="a few small fits, to try the program")
    parser.add_argument("--fit", nargs=5, metavar=("REFIT", "N", "D", "M", "K"), help="internal: one fit, as JSON")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Run all measurements, or, with --fit, one in this process."""
    if args.fit:
        refit, *sizes = args.fit
        print(json.dumps(measure(refit, *map(int, sizes))))
        return
    base, values = (QUICK_BASE, QUICK_VALUES) if args.quick else (BASE, VALUES)
    found = {(refit, factor): series(refit, factor, base, values[factor]) for refit in REFITS for factor in values}
    worst = max((row["multiple"] for rows in found.values() for row in rows if row["n"] >= BASE["n"]), default=np.nan)
    print(f"\nlargest multiple from {BASE['n']} rows on: {worst:.2f}; promised: {PROMISE:g}")


def series(refit: str, factor: str, base: dict[str, int], values: tuple[int, ...]) -> list[Row]:
    """Measure and print the fits for the values of one factor."""
    print(f"\nrefit {refit!r}, by {factor}")
    table = Table(
        "n:7d, d:4d, m:4d, k:4d, time:8.2f s, rounds:d, units:d, beyond the data:.1f MB, yardstick:.1f MB, multiple:.2f"
    )
    rows = []
    for value in values:
        sizes = base | {factor: value}
        row = run_program("speed.scaling", "--fit", refit, *sizes.values())
        rows.append(row)
        memory = row["peak"] / 2**20, row["yardstick"] / 2**20, row["multiple"]
        table.row(*sizes.values(), row["seconds"], row["rounds"], row["units"], *memory)
    print(f"exponents: time {exponent(rows, factor, 'seconds'):.2f}, memory {exponent(rows, factor, 'peak'):.2f}")
    return rows


def exponent(rows: list[Row], factor: str, column: str) -> float:
    """Return the slope of a column against a factor, both logarithmic."""
    last = rows[-_FITTED:]
    amounts = [max(row[column], 1e-9) for row in last]
    return float(np.polyfit(np.log([row[factor] for row in last]), np.log(amounts), 1)[0])


def measure(refit: str, n: int, d: int, m: int, k: int) -> Row:
    """Fit once in this process, which should be a fresh one."""
    fit(refit, *data(200, BASE["d"], BASE["m"]), 4)
    X, y = data(n, d, m)
    before = peak_memory()
    began = time.perf_counter()
    result = fit(refit, X, y, k)
    seconds = time.perf_counter() - began
    peak, yardstick = peak_memory() - before, 8 * n * (k + 2 * m)
    sizes = {"n": n, "d": d, "m": m, "k": k}
    measured = {"seconds": seconds, "rounds": result.nit, "units": len(result.basis)}
    return sizes | measured | {"peak": peak, "yardstick": yardstick, "multiple": peak / yardstick}


def fit(refit: str, X: np.ndarray, y: np.ndarray, k: int) -> mopn.Result:
    """Fit k units in a few rounds."""
    problem = mopn.NetworkProblem(X, y, norm="l1/l2", strength=1e-4 * len(y), augment=True)
    solver = mopn.solvers.ConditionalGradient(
        refit=make_corrective_step(refit, max_iter=_REFIT_ITER, polish_iter=_POLISH_ITER),
        max_units=k,
        schedule="fill",
        oracle="refine",
        atoms_per_round=-(-k // _ROUNDS),
    )
    return mopn.minimize(problem, solver, tol=0.0, max_iter=_ROUNDS + 1)


def data(n: int, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features in [-1, 1] (n, d) and classes (n,) that a network of m units gives, with noise."""
    rng = np.random.default_rng(0)
    H, shift = rng.standard_normal((m, d)) / np.sqrt(d), rng.standard_normal((m, d)) / np.sqrt(d)
    X, y = np.empty((n, d)), np.empty(n, dtype=np.int64)
    for first in range(0, n, _BLOCK):
        block = rng.uniform(-1.0, 1.0, (min(_BLOCK, n - first), d))
        labels = np.argmax((block @ H.T) ** 2 + 0.5 * block @ shift.T, axis=1)
        replaced = rng.random(len(block)) < _NOISE
        labels[replaced] = rng.integers(m, size=int(replaced.sum()))
        X[first : first + len(block)], y[first : first + len(block)] = block, labels
    # Every class occurs.
    y[:m] = np.arange(m)
    return X, y


if __name__ == "__main__":
    sys.exit(main())
