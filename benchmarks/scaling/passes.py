"""One pass over rows in memory, the matrix products in it alone, and reading the rows."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from mopn.core.datafit import DataFit
from mopn.core.designs import make_design
from mopn.core.kernels import get_kernel
from mopn.core.rows import ArrayRows, Block
from mopn.network.two_layers import two_layers
from mopn.solvers.numerics.threads import limited_threads

__all__ = ["measure"]

_D, _M, _K = 20, 10, 10
_REPEATS = 7


def measure(n: int) -> dict[str, float]:
    """Return the least seconds of a pass, of its products and of reading the rows, called in turn."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (n, _D)), rng.integers(_M, size=n)
    rows = ArrayRows(make_design(X), DataFit("logistic", y, n))
    layers = two_layers(rows, get_kernel("homogeneous"))
    H, V, W = rng.standard_normal((_K, _D)), rng.standard_normal((_K, _M)), np.zeros((_M, 0))
    timed: dict[str, Callable[[], object]] = {
        "pass": lambda: layers.value_gradient(H, V, W),
        "products": lambda: rows.sum(_products, H, V),
        "reading": lambda: rows.sum(_read),
    }
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    with limited_threads():
        for _ in range(_REPEATS):
            for name, function in timed.items():
                began = time.perf_counter()
                function()
                seconds[name].append(time.perf_counter() - began)
    return {name: min(times) for name, times in seconds.items()}


def _products(block: Block, H: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the products of a pass: projections, outputs, and the gradients with respect to both layers."""
    X = block.design.matrix()
    P = X @ H.T
    outputs = (V.T @ P.T).T
    of_weights = P.T @ outputs
    return (outputs @ V.T).T @ X, of_weights


def _read(block: Block) -> float:
    return float(block.design.matrix().sum())
