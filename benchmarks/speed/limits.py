"""How far runs exceed ``max_time``.

Networks of several sizes are fitted under every norm with every kind of refit and of proof, and models of one output
with every solver.
What no limit cuts is one product or decomposition of a matrix, and one epoch of coordinate descent or of SGD. A run's
overshoot is its time by the clock less its limit; what is printed is the worst of the limits::

    OMP_NUM_THREADS=1 python -m benchmarks.speed.limits
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np

import mopn
from benchmarks.common.baselines import GECO
from benchmarks.common.norms import NORMS
from benchmarks.common.study import make_parser, run
from mopn.solvers import FISTA, LBFGS, SGD, ConditionalGradient, CoordinateDescent, InteriorPoint, Solver
from mopn.solvers.interface import Problem

__all__ = ["main"]

_LIMITS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
# Rows, features, classes.
_SHAPES = ((300, 6, 3), (2_000, 20, 10), (1_500, 64, 10), (5_000, 300, 20))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("speed.limits", __doc__, data=False)
    parser.add_argument("--limits", type=float, nargs="+", default=list(_LIMITS), help="seconds (default %(default)s)")
    return parser


def _program(args: argparse.Namespace) -> None:
    worst = -math.inf
    for name, problem, solver in _runs():
        _overshoot(problem, solver, 0.0)  # compiles
        overshoots = [_overshoot(problem, solver, limit) for limit in args.limits]
        worst = max(worst, *overshoots)
        at = args.limits[int(np.argmax(overshoots))]
        print(f"{name:48s}{1e3 * max(overshoots):9.0f} ms beyond {at:g} s", flush=True)
    print(f"\nworst overshoot: {worst:.2f} s")


def _overshoot(problem: Problem, solver: Solver, limit: float) -> float:
    """Return the seconds beyond the limit of a run that has no other; 0 if it ended by itself."""
    began = time.perf_counter()
    mopn.minimize(problem, solver, tol=0.0, max_iter=None, max_time=limit)
    return max(time.perf_counter() - began - limit, 0.0)


def _runs() -> Iterator[tuple[str, Problem, Solver]]:
    rng = np.random.default_rng(0)
    for n, d, m in _SHAPES:
        X = rng.uniform(-1, 1, (n, d))
        y = rng.integers(m, size=n)
        for norm in NORMS:
            problem = mopn.NetworkProblem(X, y, norm=norm, strength=1.0, augment=True)
            problem = problem.with_strength(0.1 * problem.strength_max())
            for name, solver in _NETWORK_SOLVERS.items():
                yield f"{n} x {d}, {m} classes, {norm}: {name}", problem, solver
        layer = problem.output_layer(problem.start((rng.standard_normal((50, d + 1)), np.zeros((50, m)))))
        for solver in (FISTA(), InteriorPoint()):
            yield f"{n} x {d}, {m} classes, layer: {type(solver).__name__}", layer, solver
        loss_alone = problem.with_strength(0.0)
        yield f"{n} x {d}, {m} classes: GECO", loss_alone, GECO()
        targets = rng.standard_normal(n)
        for single in (mopn.FactorizationProblem(X, targets), mopn.LiftedProblem(X, targets)):
            for solver in (CoordinateDescent(), LBFGS(), SGD()):
                if solver.needs <= single.oracles:
                    yield f"{n} x {d}, {type(single).__name__}: {type(solver).__name__}", single, solver


_NETWORK_SOLVERS = {
    "full refits": ConditionalGradient(refit="full"),
    "output refits": ConditionalGradient(refit="output"),
    "plain steps": ConditionalGradient(refit="none"),
    "exact proofs": ConditionalGradient(refit="output", oracle="exact"),
}

if __name__ == "__main__":
    sys.exit(main())
