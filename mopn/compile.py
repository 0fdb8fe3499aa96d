"""``python -m mopn.compile``: compile the loops that most fits need, so that no fit waits for the compiler.

Without it a loop is compiled when it first runs. Machine code is stored next to the sources, or in ``NUMBA_CACHE_DIR``.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from mopn import FactorizationProblem, LiftedProblem, Model, NetworkProblem, RelationBlocks, minimize
from mopn.explain import certified_flips
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
    """Yield fits of one step, and the other calls of compiled loops, which serve all losses."""
    for storage, X in {"dense": _X, "sparse": sparse.csr_array(_X)}.items():
        for degree in (2, 3):
            yield f"coordinate descent of degree {degree}, {storage}", partial(_fit, X, CoordinateDescent(), degree)
        yield f"L-BFGS, {storage}", partial(_fit, X, LBFGS())
        yield f"stochastic passes, {storage}", partial(_fit, X, SGD())
        yield f"lifted problems, {storage}", partial(_step, LiftedProblem(X, _Y, rank=2), CoordinateDescent())
    blocks = RelationBlocks([_X, _X], np.tile(np.arange(8), (2, 1)).T)
    yield "relation blocks", partial(_fit, blocks, CoordinateDescent())
    network = NetworkProblem(sparse.csr_array(_X), np.arange(8) % 3, strength=1e-3)
    yield "networks, sparse", partial(_step, network, ConditionalGradient(refit="full"))
    classifier = Model(np.ones((1, 4)), np.ones((1, 1)), classes=np.arange(2))
    yield "certified flips", partial(certified_flips, classifier, _X, return_attack=True)


def _fit(X: Any, solver: Any, degree: int = 2) -> None:
    options: Any = {"degree": degree, "n_components": 2, "fit_linear": True, "fit_intercept": True}
    _step(FactorizationProblem(X, _Y, **options), solver)


def _step(problem: Any, solver: Any) -> None:
    minimize(problem, solver, tol=0.0, max_iter=1)


if __name__ == "__main__":
    main()
