"""The loop: fit, minimise the surrogate by simulated annealing, evaluate the proposed rows, and again."""

import time
from dataclasses import dataclass
from typing import Any

import dimod
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler

from benchmarks.blackbox.functions import FUNCTIONS, BlackBox
from benchmarks.blackbox.surrogates import SURROGATES, Surrogate

KEY = ["function", "d", "method", "seed"]
COLUMNS = [*KEY, "evaluations", "excess", "refit", "anneal", "trace"]
_READS, _SWEEPS = 10, 200
# A value this near to the minimum, relative, is the minimum.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Run:
    """A search: a method on a function of d features, whose first rows and annealing are drawn with a seed."""

    function: str
    d: int
    method: str
    seed: int
    first: int = 20
    most: int = 100


def run_search(run: Run) -> dict[str, Any]:
    """Search until the minimum is found, or for ``run.most`` evaluations."""
    function = FUNCTIONS[run.function](run.d)
    rng, kind = np.random.default_rng(run.seed), SURROGATES[run.method]
    reference = np.random.default_rng(0)
    spread = float(np.std(function(np.array([function.draw(reference) for _ in range(1000)]))))
    X = [function.draw(rng) for _ in range(run.first)]
    y = function(np.array(X)).tolist()
    surrogate, times = None if kind is None else kind(run.seed), []
    while len(y) < run.most and min(y) > function.minimum + _EQUAL * spread:
        if surrogate is None:
            x = function.draw(rng)
        else:
            x, *seconds = _proposal(surrogate, function, np.array(X), np.array(y), rng)
            times.append(seconds)
        X.append(x)
        y.append(float(function(x[None])[0]))
    excesses = (np.minimum.accumulate(y) - function.minimum) / spread
    found = excesses[-1] <= _EQUAL
    refit, anneal = (f"{ms:.3g}" for ms in 1e3 * np.median(times, axis=0)) if times else ("", "")
    return {
        "function": run.function,
        "d": run.d,
        "method": run.method,
        "seed": run.seed,
        "evaluations": len(y) if found else "",
        "excess": f"{excesses[-1]:.4g}",
        "refit": refit,
        "anneal": anneal,
        "trace": " ".join(f"{excess:.3g}" for excess in excesses[9::10]),
    }


def _proposal(
    surrogate: Surrogate, function: BlackBox, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, float, float]:
    """Return the best new row that annealing finds, and the CPU seconds of the refit and of annealing."""
    began = time.process_time()
    surrogate.fit(X, y)
    fitted = time.process_time()
    bqm = dimod.BinaryQuadraticModel.from_qubo(*surrogate.qubo(function.one_hot))
    found = SimulatedAnnealingSampler().sample(
        bqm, num_reads=_READS, num_sweeps=_SWEEPS, seed=int(rng.integers(1 << 31))
    )
    done = time.process_time()
    record = found.record[np.argsort(found.record.energy, kind="stable")]
    seen = {row.tobytes() for row in X}
    for x in record.sample.astype(float):
        if x.tobytes() not in seen and all(x[list(group)].sum() == 1 for group in function.one_hot):
            return x, fitted - began, done - fitted
    return function.draw(rng), fitted - began, done - fitted
