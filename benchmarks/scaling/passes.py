"""One pass over rows in memory, the matrix products in it alone, and reading the rows; and a pass by Dask's workers."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import mopn
from mopn.core.kernels import get_kernel
from mopn.data.designs import make_design
from mopn.data.losses_of_rows import Losses
from mopn.data.row_blocks import row_by_row
from mopn.data.rows import ArrayRows, Block
from mopn.losses.losses import get_loss
from mopn.network.two_layers import two_layers
from mopn.solvers.tools.blas_threads import limited_threads

_D, _M, _K = 20, 10, 10
_REPEATS = 7


def measure(n: int) -> dict[str, float]:
    """Return the least seconds of a pass, of its products and of reading the rows, called in turn."""
    X, y = _data(n)
    rows = ArrayRows(make_design(X), Losses.of_data("logistic", y, n))
    H, V, _ = layers = _layers()
    with limited_threads():
        timed = {"pass": _make_pass(rows, layers), "products": lambda: rows.sum(_products, H, V)}
        return _least_seconds(timed | {"reading": lambda: rows.sum(_read)})


def of_loss(name: str, n: int, d: int, m: int) -> dict[str, float]:
    """Return the least seconds of the processor of a pass with a loss, and of its products."""
    rng, kind = np.random.default_rng(0), get_loss(name).targets
    y = np.arange(n) % m if kind == "labels" else rng.standard_normal((n, m))
    if kind == "signs":
        y = np.sign(y)
    if kind == "counts":
        y = np.floor(np.abs(y))
    rows = ArrayRows(make_design(rng.uniform(-1.0, 1.0, (n, d))), Losses.of_data(name, y, n))
    H, V, _ = layers = _layers(d, m)
    with limited_threads():
        timed = {"pass": _make_pass(rows, layers), "products": lambda: rows.sum(_products, H, V)}
        return _least_seconds(timed, time.process_time)


def on_workers(n: int, workers: int, blocks: int) -> dict[str, float]:
    """Return the least seconds of a pass by Dask's workers of one thread each, and by as many threads here."""
    import dask.array as da
    from distributed import Client

    from mopn.dask.blocks import TIMEOUT, arranged, dask_blocks

    X, y = _data(n)
    in_chunks = [da.from_array(array, chunks=(-(-n // blocks), *array.shape[1:])) for array in (X, y)]
    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as client:
        held = dask_blocks(*in_chunks, None, range(_M), client, TIMEOUT)
        problem = mopn.NetworkProblem(arranged(held, held.count(), row_by_row), None, strength=1.0)
        here = ArrayRows(make_design(X), Losses.of_data("logistic", y, n))
        with limited_threads():
            return _least_seconds({"workers": _make_pass(problem.rows), "threads": _make_pass(here)})


def _data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.uniform(-1.0, 1.0, (n, _D)), np.arange(n) % _M


_Layers = tuple[np.ndarray, np.ndarray, np.ndarray]


def _layers(d: int = _D, m: int = _M) -> _Layers:
    """Return units, weights and a linear term without coefficients; outputs are of the size 1."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((_K, d)) / np.sqrt(d), rng.standard_normal((_K, m)), np.zeros((m, 0))


def _make_pass(rows: Any, point: _Layers | None = None) -> Callable[[], object]:
    """Return a function that evaluates the objective and the gradients of both layers, in NumPy's arrays."""
    layers = two_layers(rows, get_kernel("homogeneous"))
    at = point or _layers()
    return lambda: layers.value_gradient(*at)


def _least_seconds(
    timed: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the least of several times of functions that are called in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(_REPEATS):
        for name, function in timed.items():
            began = clock()
            function()
            seconds[name].append(clock() - began)
    return {name: min(times) for name, times in seconds.items()}


def _products(block: Block, H: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the products of a pass: projections, outputs, and the gradients with respect to both layers."""
    X = block.design.matrix()
    P = X @ H.T
    outputs = (V.T @ P.T).T
    return np.dot((outputs @ V.T).T, X), np.dot(P.T, outputs)


def _read(block: Block) -> float:
    return float(block.design.matrix().sum())
