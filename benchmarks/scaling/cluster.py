"""Passes over rows that the processes of a cluster make and hold, and a short fit of them."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common.processes import peak_memory
from benchmarks.scaling.fits import CLASSES, FEATURES, FEW, fit, made_rows
from benchmarks.scaling.passes import make_pass

__all__ = ["rehearse"]

# Passes of which the mean counts, and seconds that a fit may take.
_PASSES, _LIMIT = 3, 120.0


def rehearse(n: int, workers: int, blocks: int) -> dict[str, float]:
    """Return the seconds that n rows take in a cluster of processes of one thread each, and those of processors."""
    from distributed import Client

    import mopn.dask

    with Client(n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=":0") as client:
        began = time.perf_counter()
        X, y = _arrays(n // blocks, blocks)
        problem = mopn.dask.DaskNetworkProblem(X, y, classes=range(CLASSES), client=client, strength=1e-3 * n)
        loaded = time.perf_counter()
        one_pass, used = make_pass(problem.rows), _processor_seconds(client)
        for _ in range(_PASSES):
            one_pass()
        passed, processors = time.perf_counter(), _processor_seconds(client) - used
        before = problem.passes
        result = fit(problem, units=FEW, iterations=5, max_time=_LIMIT)
        return {
            "load": loaded - began, "pass": (passed - loaded) / _PASSES, "processors": processors / _PASSES,
            "fit": time.perf_counter() - passed, "passes": problem.passes - before, "fun": result.fun,
            "peak": max(client.run(peak_memory).values()),
        }  # fmt: skip


def _arrays(size: int, blocks: int) -> tuple[Any, Any]:
    """Return dask arrays of rows and classes, each block of which a worker makes."""
    import dask
    import dask.array as da

    pairs = [dask.delayed(made_rows, nout=2)(number, size, FEATURES) for number in range(blocks)]
    shapes = ((size, FEATURES), "float32"), ((size,), "int8")
    return tuple(  # type: ignore[return-value]
        da.concatenate([da.from_delayed(pair[i], shape, dtype=dtype) for pair in pairs])
        for i, (shape, dtype) in enumerate(shapes)
    )


def _processor_seconds(client: Any) -> float:
    return sum(client.run(time.process_time).values())
