"""``python -m mopn.compile``: compile the loops that most fits need, so that no fit waits for the compiler.

Without it a loop is compiled when it first runs. Machine code lies beside the sources, or in ``NUMBA_CACHE_DIR``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from mopn import FactorizationProblem, LiftedProblem, Model, NetworkProblem, RelationBlocks, minimize
from mopn.solvers import LBFGS, SGD, ConditionalGradient, CoordinateDescent

__all__ = ["main"]

_X = np.tile(np.eye(4), (2, 1))
_Y = np.tile([1.0, -1.0], 4)


def main() -> None:
    """Compile the usual signatures, and print each group with its seconds."""
    for name, run in _calls():
        began = perf_counter()
        run()
        sys.stdout.write(f"{name}: {perf_counter() - began:.1f} s\n")
        sys.stdout.flush()


def _calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield fits of one step, and the other calls of compiled loops. Losses differ at run time alone."""
    for storage, X in {"dense": _X, "sparse": sparse.csr_array(_X)}.items():
        for degree in (2, 3):
            name = f"coordinate descent of degree {degree}, {storage}"
            yield name, lambda X=X, d=degree: _factorize(X, CoordinateDescent(), degree=d)
        yield f"L-BFGS, {storage}", lambda X=X: _factorize(X, LBFGS())
        yield f"stochastic passes, {storage}", lambda X=X: _factorize(X, SGD())
        yield f"lifted problems, {storage}", lambda X=X: _step(LiftedProblem(X, _Y, rank=2), CoordinateDescent())
    yield (
        "relation blocks",
        lambda: _factorize(RelationBlocks([_X, _X], np.tile(np.arange(8), (2, 1)).T), CoordinateDescent()),
    )
    network = NetworkProblem(sparse.csr_array(_X), np.arange(8) % 3, strength=1e-3)
    yield "networks, sparse", lambda: _step(network, ConditionalGradient(refit="full"))
    classifier = Model(np.ones((1, 4)), np.ones((1, 1)), classes=np.arange(2))
    yield "certified flips", lambda: classifier.certified_flips(_X, return_attack=True)


def _factorize(X: Any, solver: Any, **options: Any) -> None:
    _step(FactorizationProblem(X, _Y, n_components=2, fit_linear=True, fit_intercept=True, **options), solver)


def _step(problem: Any, solver: Any) -> None:
    minimize(problem, solver, tol=0.0, max_iter=1)


if __name__ == "__main__":
    main()
