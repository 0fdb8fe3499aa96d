"""CPU time of fits with default settings in several checkouts of mopn, which take turns on the same data.

Each checkout has a process of its own, and every round is a fit in each of them; the least time of a process counts.
CPU times, one thread and turns make the ratios good for a busy machine too::

    taskset -c 0 python -m benchmarks.speed.trees OLD . --data FOLDER

The objective says whether both did the same: where rounding or random numbers lead to another local minimum, a fit has
other iterations, and a ratio is about these too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_diabetes, load_digits

from benchmarks.common.datasets import DATA_SETS, load, split
from benchmarks.common.norms import NORMS
from benchmarks.common.study import make_parser, run
from mopn.estimators import FactorizationMachineRegressor, MultiOutputPNClassifier, MultiOutputPNRegressor

__all__ = ["main"]

_SETS = ("digits", *DATA_SETS, "diabetes")
_CASES = (*(f"{name}:{norm}" for name in _SETS for norm in NORMS), "sparse:cd")
# Rows, users and items, and epochs, of a factorization machine by coordinate descent.
_ROWS, _USERS, _ITEMS, _EPOCHS = 60_000, 900, 1600, 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("speed.trees", __doc__)
    parser.add_argument("trees", nargs="+", type=Path, help="checkouts; ratios are to the first")
    parser.add_argument("--cases", nargs="+", choices=_CASES, default=list(_CASES), metavar="SET:NORM")
    parser.add_argument("--rounds", type=int, default=5, help="fits of each (default 5)")
    parser.add_argument("--inside", action="store_true", help="internal: one case, a fit for each line of input")
    return parser


def _program(args: argparse.Namespace) -> None:
    if args.inside:
        _serve(args)
        return
    print(f"{'case':20s}{'CPU seconds, ratio and objective of each checkout'}")
    for case in args.cases:
        least, last = [np.inf] * len(args.trees), [{}] * len(args.trees)
        with ExitStack() as stack:
            processes = [stack.enter_context(_process(tree, case, args)) for tree in args.trees]
            for _ in range(args.rounds + 1):
                for i, process in enumerate(processes):
                    last[i] = _fit(process)
                    least[i] = min(least[i], last[i]["seconds"])
        parts = (f"{s:9.3f} s {s / least[0]:5.2f} {at['fun']:.7g}" for s, at in zip(least, last, strict=True))
        print(f"{case:18s}{'  '.join(parts)}", flush=True)


def _process(tree: Path, case: str, args: argparse.Namespace) -> subprocess.Popen[str]:
    """Start the process of a checkout: this file, with the packages there."""
    command = [sys.executable, __file__, *map(str, args.trees), "--inside", "--cases", case, "--data", args.data]
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=tree, env=environment, **pipes)


def _fit(process: subprocess.Popen[str]) -> dict[str, Any]:
    print("fit", file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def _serve(args: argparse.Namespace) -> None:
    """Fit at every line of the input, and print seconds and objective."""
    name, _, norm = args.cases[0].partition(":")
    X, y = _data(name, args.data)
    for _ in sys.stdin:
        estimator = _estimator(name, norm)
        began = time.process_time()
        estimator.fit(X, y)
        print(
            json.dumps({"seconds": time.process_time() - began, "fun": float(estimator.trace_["fun"][-1])}), flush=True
        )


def _estimator(name: str, norm: str) -> Any:
    if name == "sparse":
        return FactorizationMachineRegressor(max_iter=_EPOCHS, tol=0, random_state=0)
    kind = MultiOutputPNRegressor if name == "diabetes" else MultiOutputPNClassifier
    return kind(norm=norm, random_state=0)


def _data(name: str, folder: str) -> tuple[Any, np.ndarray]:
    if name == "sparse":
        return _ratings()
    if name in ("digits", "diabetes"):
        return {"digits": load_digits, "diabetes": load_diabetes}[name](return_X_y=True)
    part = split(*load(name, folder), 0)
    return part.X_train, part.y_train


def _ratings() -> tuple[sparse.csr_array, np.ndarray]:
    """Return one-hot rows of users and items, and ratings of three factors."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(_USERS, size=_ROWS), rng.integers(_ITEMS, size=_ROWS)
    columns = np.stack([users, _USERS + items], axis=1).ravel()
    X = sparse.csr_array((np.ones(2 * _ROWS), columns, np.arange(0, 2 * _ROWS + 1, 2)), (_ROWS, _USERS + _ITEMS))
    factors = rng.normal(size=(_USERS + _ITEMS, 3))
    return X, np.sum(factors[users] * factors[_USERS + items], axis=1) + rng.normal(size=_ROWS)


if __name__ == "__main__":
    sys.exit(main())
