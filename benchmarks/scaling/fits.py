"""Fits of rows in a file, in memory and by blocks, and of more rows than a process may hold."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import mopn
from benchmarks.common.processes import limit_memory, peak_memory
from mopn.estimators import MultiOutputPNClassifier

_FEATURES, _CLASSES, _K = 20, 10, 10
# Rows made or read at a time.
_BLOCK = 1 << 16
# What ``sampled`` fits.
VARIANTS = "default", "all rows", "proof"
# The features of rows that are made when they are read, and the units of the network for them.
_WIDE, _FEW = 100, 2


def write(path: Path, n: int) -> Path:
    """Write n float32 rows, and next to them their classes; return the path."""
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, _FEATURES))
    y = np.empty(n, dtype=np.int8)
    for number, first in enumerate(range(0, n, _BLOCK)):
        rows = slice(first, min(first + _BLOCK, n))
        X[rows], y[rows] = _made_rows(number, rows.stop - rows.start, _FEATURES)
    np.save(path.with_suffix(".y.npy"), y)
    return path


def _made_rows(number: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a block, and their classes: the largest of random squares, and a tenth at random."""
    rng, H = np.random.default_rng(number), np.random.default_rng(0).standard_normal((_CLASSES, d))
    X = rng.random((n, d), dtype=np.float32)
    X *= 2.0
    X -= 1.0
    y = np.argmax((X @ H.T.astype(np.float32)) ** 2, axis=1)
    others = rng.random(n) < 0.1
    y[others] = rng.integers(_CLASSES, size=int(others.sum()))
    return X, y.astype(np.int8)


def measure(form: str, path: Path) -> dict[str, float]:
    """Fit the rows of a file, read as a whole or in blocks, in this process."""
    y = np.load(path.with_suffix(".y.npy"))
    _fit(mopn.NetworkProblem(*_made_rows(0, 1000, _FEATURES), strength=10.0))
    began = time.perf_counter()
    X = np.load(path) if form == "memory" else mopn.RowBlocks(path, size=_BLOCK)
    problem = mopn.NetworkProblem(X, y, strength=1e-4 * len(y), augment=True)
    result = _fit(problem)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "passes": problem.passes, "peak": peak_memory(), "fun": result.fun}


def sampled(n: int, units: int, variant: str) -> dict[str, float]:
    """Fit a classifier at its defaults, to all rows from the start, or to a proof; seconds are of the processor."""
    if variant == "all rows":
        mopn.NetworkProblem.sample_for = lambda problem, n_units, seed: None  # type: ignore[method-assign]
        mopn.NetworkProblem.sample_to_start = lambda problem, seed: None  # type: ignore[method-assign]
    if variant == "proof":
        MultiOutputPNClassifier._policy = replace(MultiOutputPNClassifier._policy, prove=True)
    X, y = _made_rows(0, n, _FEATURES)
    X_test, y_test = _made_rows(1, 20_000, _FEATURES)
    MultiOutputPNClassifier(max_units=units).fit(X[:1000], y[:1000])
    began, from_clock = time.process_time(), time.perf_counter()
    classifier = MultiOutputPNClassifier(max_units=units).fit(X.astype(np.float64), y)
    return {
        "seconds": time.process_time() - began, "clock": time.perf_counter() - from_clock,
        "fun": classifier.objective_, "gap": classifier.relative_gap_,
        "accuracy": float(np.mean(classifier.predict(X_test) == y_test)),
    }  # fmt: skip


def within_limit(gigabytes: float, allowed: float) -> dict[str, float]:
    """Fit rows that are made when they are read, with a limit of this process's address space."""
    limit_memory(int(allowed * 1e9))
    rows = _BLOCK
    count = int(gigabytes * 1e9 / (4 * _WIDE * rows))
    # Classes: which half of the features is longer, whatever their signs.
    base = np.random.default_rng(0).random((2 * rows, _WIDE), dtype=np.float32) - np.float32(0.5)
    lengths = (base**2).reshape(2 * rows, 2, _WIDE // 2).sum(axis=2)
    blocks = [_Made(base, (lengths[:, 0] > lengths[:, 1]).astype(np.int8), number) for number in range(count)]
    began = time.perf_counter()
    problem = mopn.NetworkProblem(mopn.RowBlocks(blocks), strength=1e-3 * count * rows)
    result = _fit(problem, units=_FEW, iterations=5)
    return {
        "rows": problem.rows.shape[0], "features": _WIDE, "seconds": time.perf_counter() - began,
        "passes": problem.passes, "peak": peak_memory(), "gap": result.gap / result.fun, "status": result.status.name,
    }  # fmt: skip


class _Made:
    """A block that is made whenever it is read: some of the rows that there are, with other signs of the features."""

    def __init__(self, X: np.ndarray, y: np.ndarray, number: int) -> None:
        self.X, self.y, self.number = X, y, number

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.number)
        first = int(rng.integers(len(self.X) - _BLOCK))
        rows = slice(first, first + _BLOCK)
        return self.X[rows] * rng.choice(np.array([-1.0, 1.0], np.float32), _WIDE), self.y[rows]


def _fit(problem: mopn.NetworkProblem, units: int = _K, iterations: int = 50) -> mopn.Result:
    """Fit k units by refits of both layers, and prove how good they are."""
    refit = mopn.solvers.FullRefit(polish_iter=iterations, polish_tol=1e-4)
    solver = mopn.solvers.ConditionalGradient(refit=refit, max_units=units, schedule="fill", oracle="refine")
    return mopn.minimize(problem, solver, tol=1e-3)
