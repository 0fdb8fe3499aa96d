"""What the first fit of a process costs where nothing is compiled yet, and the second one: seconds of the processor.

Estimators on random data of 2,000 rows (300 for the network), each in a process of its own whose cache of compiled
functions is empty::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.speed.first_fits
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.common.processes import run_python
from benchmarks.common.study import make_parser, run
from mopn import estimators

__all__ = ["KINDS", "main"]

# Two epochs: a fit of one output is to compile, not to take long.
_SHORT: dict[str, Any] = {"max_iter": 2, "tol": 0.0}
# An estimator, its parameters, the kind of X and of y, and the number of rows.
KINDS: dict[str, tuple[str, dict[str, Any], str, str, int]] = {
    "factorization machine, sparse, degree 2": ("FactorizationMachineRegressor", _SHORT, "sparse", "numbers", 2000),
    "factorization machine, dense, degree 3": (
        "FactorizationMachineRegressor",
        _SHORT | {"degree": 3},
        "dense",
        "numbers",
        2000,
    ),
    "polynomial network of one output, dense": ("PolynomialNetworkRegressor", _SHORT, "dense", "numbers", 2000),
    "polynomial network of one output, sparse": ("PolynomialNetworkRegressor", _SHORT, "sparse", "numbers", 2000),
    "network of three outputs, dense": ("MultiOutputPNRegressor", {}, "dense", "targets", 300),
    "factorization machine of three outputs, sparse": ("MultiOutputFMRegressor", {}, "sparse", "targets", 300),
    "ratings": ("OrdinalFMRegressor", {}, "sparse", "levels", 2000),
}
_USERS, _ITEMS, _FEATURES = 90, 160, 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("speed.first_fits", __doc__, data=False)
    parser.add_argument("--fit", choices=KINDS, help="internal: two fits in this process")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    if args.fit:
        print("{:.2f} {:.3f}".format(*two_fits(args.fit)))
        return
    print(f"{'CPU seconds of a fit':50s}  first  second")
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as cache:
            seconds = run_python("-m", "benchmarks.speed.first_fits", "--fit", kind, NUMBA_CACHE_DIR=cache)
        first, second = seconds.split()
        print(f"{kind:50s} {first:>6s} {second:>7s}", flush=True)


def two_fits(kind: str) -> list[float]:
    """Return the seconds of the processor that two equal fits take, one after the other."""
    name, parameters, of_x, of_y, n = KINDS[kind]
    X, y = _data(of_x, of_y, n)
    seconds = []
    for _ in range(2):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(estimators, name)(**parameters).fit(X, y)
        seconds.append(time.process_time() - began)
    return seconds


def _data(of_x: str, of_y: str, n: int) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    X: Any = rng.uniform(-1.0, 1.0, (n, _FEATURES))
    if of_x == "sparse":
        ids = np.column_stack([rng.integers(0, _USERS, n), _USERS + rng.integers(0, _ITEMS, n)])
        X = sparse.csr_array((np.ones(2 * n), ids.ravel(), np.arange(0, 2 * n + 1, 2)), (n, _USERS + _ITEMS))
    targets = {
        "numbers": rng.standard_normal(n),
        "targets": rng.standard_normal((n, 3)),
        "levels": rng.integers(1, 6, n),
    }
    return X, targets[of_y]


if __name__ == "__main__":
    sys.exit(main())
