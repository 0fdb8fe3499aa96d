"""Time and memory of relation blocks beside the plain matrix: u1.base with what users rated and who rated items.

Coordinate descent of ``FactorizationMachineRegressor`` with 10 units, and value and gradient of a network with 10 units
and the four outputs of ordered levels, as in ``OrdinalFMRegressor``; seconds of the processor for an epoch and for an
evaluation. Memory is that of the arrays of X. The objectives after the epochs are the same to the last digits::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.relations --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import load
from benchmarks.recommender.splits import make_columns, make_parts
from mopn import NetworkProblem, RelationBlocks
from mopn.estimators import FactorizationMachineRegressor

__all__ = ["main"]

_EPOCHS, _UNITS = 5, 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    return run(make_parser("recommender.relations", __doc__), _program, arguments)


def _program(options: argparse.Namespace) -> None:
    """Print a row for either form of X."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    ratings = load("ml-100k", options.data)
    train, _ = make_parts("ml-100k", len(ratings.y), 0)
    related, y = make_columns(ratings, "implicit", None, train).X[train], ratings.y[train]
    print("X                 MB  epoch of FM, s  gradient of network, s  objective of FM")
    for name, X in (("relation blocks", related), ("plain matrix", related.tocsr())):
        _fm(X[:100], y[:100], 1)  # compiles
        began = _fm(X, y, 1)[1]
        machine, seconds = _fm(X, y, 1 + _EPOCHS)
        print(
            f"{name:15s}{_bytes(X) / 2**20:6.1f}{(seconds - began) / _EPOCHS:16.3f}{_gradient(X, y):24.3f}"
            f"  {machine.objective_:.9f}",
            flush=True,
        )


def _fm(X: Any, y: np.ndarray, epochs: int) -> tuple[FactorizationMachineRegressor, float]:
    machine = FactorizationMachineRegressor(
        n_components=_UNITS, alpha=16, beta=8, max_iter=epochs, tol=0, random_state=0
    )
    began = time.process_time()
    machine.fit(X, y)
    return machine, time.process_time() - began


def _gradient(X: Any, y: np.ndarray) -> float:
    levels = np.where(y[:, None] <= np.arange(1, 5), 1.0, -1.0)
    problem = NetworkProblem(X, levels, loss="binary-logistic", kernel="anova", strength=3.5, alpha=0.7)
    rng = np.random.default_rng(0)
    start = rng.standard_normal((_UNITS, X.shape[1])), rng.standard_normal((_UNITS, 4))
    joint = problem.joint(problem.start(start))
    return _seconds(lambda: joint.value_gradient(joint.start()))


def _seconds(function: Callable[[], Any]) -> float:
    """Return the least of three times, after a first call."""
    times = []
    for _ in range(4):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times[1:])


def _bytes(X: Any) -> int:
    """Return the bytes of the arrays of X."""
    if isinstance(X, RelationBlocks):
        return _bytes(X.design.tables.X) + X.design.places.nbytes
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


if __name__ == "__main__":
    sys.exit(main())
