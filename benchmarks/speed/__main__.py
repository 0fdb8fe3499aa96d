"""Ratios of times, side by side in one run: refits against the paper's FISTA and against peers, fits against an SVM.

* ``refits``: output layers on the features of real fits, logistic loss, to a proven gap of 1e-6: ``InteriorPoint``
  against ``FISTA``, the paper's method (with restart).
* ``peers``: the same layers by scikit-learn's SAGA (l1, logistic), by lightning's block coordinate descent (l1/l2,
  squared hinge) and by celer (l1/l2, squared loss), wherever these can be imported. Objectives are recomputed by one
  function and compared with our proven lower bound. Our time is until 1e-3 or 1e-4 is proven; a peer's is that of its
  least effort that gets there, found by trying many and not counting the tries.
* ``fits``: whole fits of both layers with default settings, beside a quadratic-kernel SVM.
* ``paths``: a path of 20 strengths, beside one cold fit at the smallest.

A ratio is the other's time over ours. After ``>``, the other had not arrived when it stalled or its ``--cap`` seconds
were over; it is 0 where ours had not. Times far below a second are the best of up to three runs. Threads are as the
environment says::

    OMP_NUM_THREADS=1 python -m benchmarks.speed --data FOLDER

The last releases of lightning and celer need NumPy 1: to measure all at once, install mopn into an environment with
them, or put its wheel and this folder on the path there (``--no-deps``: only the estimators need scikit-learn 1.6)::

    pip install --no-deps --target WHEEL . && cd WHEEL
    OMP_NUM_THREADS=1 PYTHONPATH=WHEEL:MAIN PEERS/bin/python -m benchmarks.speed --data FOLDER --parts peers
"""

from __future__ import annotations

import argparse
import importlib
import math
import multiprocessing
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info

import mopn
from benchmarks.alternatives.__main__ import METHODS
from benchmarks.common.datasets import DATA_SETS, Split, load, split
from mopn.core.norms import NORMS
from mopn.network.output_layer import OutputLayerProblem
from mopn.regularization_path import path_solver
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint

STRENGTHS = (0.1, 1.0, 10.0)
TARGETS = (1e-3, 1e-4)
_REFIT_TOL = 1e-6
# Units of the features that are refitted, and what the fits ask for.
_UNITS, _FIT_UNITS = {"letter": 100}, {"letter": 140}
_DEFAULT_UNITS = 50
_FIT_STRENGTHS = {"vowel": 0.3, "segment": 0.3, "satimage": 1.0, "letter": 0.3}
# Runs are repeated while they took less than so many seconds in all.
_REPEATS, _SHORT = 3, 1.0
_PREDICTIONS = 5


class Ratio(NamedTuple):
    """A ratio, or a lower bound of one."""

    value: float
    is_bound: bool = False

    def __str__(self) -> str:
        return f"{'> ' if self.is_bound else ''}{self.value:.3g}"


def _ratio(theirs: float, ours: mopn.Result, arrived: bool) -> Ratio:
    return Ratio(theirs / ours.time, not arrived) if ours.success else Ratio(0.0)


def median(ratios: list[Ratio]) -> Ratio:
    """Return the median; a bound if a bound below it might lie above."""
    middle = float(np.median([ratio.value for ratio in ratios]))
    return Ratio(middle, any(ratio.is_bound and ratio.value <= middle for ratio in ratios))


@dataclass(frozen=True)
class Peer:
    """Another solver of output layers.

    Attributes
    ----------
    label, loss, norm : str
    module : str
        What must be importable.
    fit : callable
        From features, labels, strength and effort (an integer) to weights (k, m). Four more units of effort are twice
        the iterations or a tenth of the tolerance.
    """

    label: str
    loss: str
    norm: str
    module: str
    fit: Callable[[np.ndarray, np.ndarray, float, int], np.ndarray]

    @property
    def is_there(self) -> bool:
        try:
            importlib.import_module(self.module)
        except ImportError:
            return False
        return True


def _saga(Phi: np.ndarray, y: np.ndarray, strength: float, effort: int) -> np.ndarray:
    # The way to ask for l1 since scikit-learn 1.8, and before.
    l1 = {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}
    model = LogisticRegression(
        solver="saga", C=1.0 / strength, fit_intercept=False, tol=0.0, max_iter=round(2 ** (effort / 4)), **l1
    )
    return model.fit(Phi, y).coef_.T


def _lightning(Phi: np.ndarray, y: np.ndarray, strength: float, effort: int) -> np.ndarray:
    model = importlib.import_module("lightning.classification").CDClassifier(
        penalty="l1/l2", loss="squared_hinge", multiclass=True, C=1.0, alpha=strength, tol=10 ** -(effort / 4),
        max_iter=100_000, random_state=0,
    )  # fmt: skip
    return model.fit(Phi, y).coef_.T


def _celer(Phi: np.ndarray, y: np.ndarray, strength: float, effort: int) -> np.ndarray:
    model = importlib.import_module("celer").MultiTaskLasso(
        alpha=strength / len(y), tol=10 ** -(effort / 4), fit_intercept=False
    )
    return model.fit(np.asfortranarray(Phi), indicators(y)).coef_.T


PEERS = (
    Peer("scikit-learn, SAGA", "logistic", "l1", "sklearn", _saga),
    Peer("lightning, CD", "squared-hinge", "l1/l2", "lightning.classification", _lightning),
    Peer("celer", "squared", "l1/l2", "celer", _celer),
)


def main(argv: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data", help="folder with the data sets (default ../shared/data)")
    parser.add_argument("--sets", nargs="+", default=["vowel", "segment", "satimage", "letter"], choices=DATA_SETS)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--cap", type=float, default=60.0, help="seconds a refit may take (default 60)")
    parser.add_argument("--splits", type=int, default=5, help="splits of the fits (default 5)")
    args = parser.parse_args(argv)
    print("BLAS threads:", ", ".join(f"{pool['num_threads']} ({pool['internal_api']})" for pool in threadpool_info()))
    for part in args.parts:
        PARTS[part](args)


# -- refits ------------------------------------------------------------------------------------------------------------


def refits(args: argparse.Namespace) -> None:
    """Print InteriorPoint beside FISTA."""
    print(f"\nRefits of the output layer, logistic loss, to a proven gap of {_REFIT_TOL:g}, relative")
    print("set       norm     strength   InteriorPoint     gap       FISTA     gap      ratio")
    ratios: dict[str, list[Ratio]] = defaultdict(list)
    for name in args.sets:
        Phi, y = features(name, args.data)
        for norm in NORMS:
            for strength in STRENGTHS:
                problem = OutputLayerProblem(Phi, y, norm=norm, strength=strength)
                ours, theirs = (_solved(problem, s, _REFIT_TOL, args.cap) for s in (InteriorPoint(), FISTA()))
                ratio = _ratio(theirs.time, ours, theirs.success)
                ratios[name].append(ratio)
                print(
                    f"{name:9s} {norm:8s} {strength:8g} {ours.time:13.4f} s {ours.gap / ours.fun:7.0e} "
                    f"{theirs.time:9.3f} s {theirs.gap / theirs.fun:7.0e} {ratio!s:>10s}",
                    flush=True,
                )
    _print_medians(ratios)


@lru_cache(maxsize=4)
def features(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (n, k) that a fit of a set found on its training part, and the labels."""
    data = split(*load(name, folder), 0)
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=0.3, augment=True)
    solver = ConditionalGradient(max_units=_UNITS.get(name, _DEFAULT_UNITS), oracle="refine")
    return problem.features(mopn.minimize(problem, solver).basis), data.y_train


def _solved(problem: OutputLayerProblem, solver: Any, tol: float, cap: float) -> mopn.Result:
    """Return the fastest of a few runs that are short."""
    runs: list[mopn.Result] = []
    while len(runs) < _REPEATS and sum(run.time for run in runs) < _SHORT:
        runs.append(mopn.minimize(problem, solver, tol=tol, max_time=cap, max_iter=10**9))
    return min(runs, key=lambda run: run.time)


def _print_medians(ratios: dict[str, list[Ratio]]) -> None:
    entries = [f"{name} {median(found)}" for name, found in ratios.items()]
    print(f"median ratio: {', '.join(entries)}; all {median([ratio for found in ratios.values() for ratio in found])}")


# -- peers -------------------------------------------------------------------------------------------------------------


def peers(args: argparse.Namespace) -> None:
    """Print InteriorPoint beside each peer that is installed."""
    print("\nPeers on the same features; excess: of the objective over our proven lower bound, relative")
    for peer in PEERS:
        if not peer.is_there:
            print(f"{peer.label}: not installed")
            continue
        print(f"\n{peer.label}: {peer.loss}, {peer.norm}")
        print("set       strength   excess      mopn          peer      ratio     excess found by mopn, peer")
        ratios: dict[str, list[Ratio]] = defaultdict(list)
        for name in args.sets:
            for strength in STRENGTHS:
                for row in compare(peer, *features(name, args.data), strength, args.cap):
                    ratios[name].append(row.ratio)
                    print(
                        f"{name:9s} {strength:8g} {row.target:8.0e} {row.ours:9.4f} s {row.theirs:11.4f} s "
                        f"{row.ratio!s:>10s} {row.our_excess:16.1e}, {row.their_excess:.1e}",
                        flush=True,
                    )
        _print_medians(ratios)


class Comparison(NamedTuple):
    """Seconds of both solvers until an excess, their ratio, and the excesses that they then had."""

    target: float
    ours: float
    theirs: float
    ratio: Ratio
    our_excess: float
    their_excess: float


def compare(peer: Peer, Phi: np.ndarray, y: np.ndarray, strength: float, cap: float) -> list[Comparison]:
    """Solve an output layer by both, to every target."""
    labels = indicators(y) if peer.loss == "squared" else y
    problem = OutputLayerProblem(Phi, labels, loss=peer.loss, norm=peer.norm, strength=strength)
    best = _solved(problem, InteriorPoint(), _REFIT_TOL, cap)

    def excess(V: np.ndarray) -> float:
        x = np.ascontiguousarray(V, dtype=float).ravel()
        fun = problem.smooth_value(problem.image(x)) + problem.regularizer_value(x)
        return fun / (best.fun - best.gap) - 1.0

    search, found = _Search(lambda effort: peer.fit(Phi, y, strength, effort), excess, cap), []
    for target in TARGETS:
        ours, (seconds, reached) = _solved(problem, InteriorPoint(), target, cap), search(target)
        ratio = _ratio(seconds, ours, reached <= target)
        found.append(Comparison(target, ours.time, seconds, ratio, excess(ours.weights), reached))
    return found


class _Search:
    """Looks for the least effort of a peer that reaches a target; remembers what was tried."""

    def __init__(self, fit: Callable[[int], np.ndarray], excess: Callable[[np.ndarray], float], cap: float) -> None:
        self.fit, self.excess, self.cap = fit, excess, cap
        self.tried: dict[int, tuple[float, float]] = {}

    def __call__(self, target: float) -> tuple[float, float]:
        """Return seconds and excess of the least effort; at the cap, the least excess found before."""
        high = 0
        while self._run(high)[1] > target:
            if self._run(high)[0] >= self.cap:
                return self.cap, min(excess for _, excess in self.tried.values())
            high += 4
        low = high - 4
        while high - low > 1 and high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._run(middle)[1] <= target else (middle, high)
        return self._run(high)

    def _run(self, effort: int) -> tuple[float, float]:
        if effort not in self.tried:
            found = _in_a_process(lambda: self.fit(effort), self.cap)
            self.tried[effort] = (self.cap, math.inf) if found is None else (found[0], self.excess(found[1]))
        return self.tried[effort]


def _in_a_process(fit: Callable[[], np.ndarray], cap: float) -> tuple[float, np.ndarray] | None:
    """Return what ``_timed`` does, from a process that is ended at the cap: None then."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=lambda: sender.send(_timed(fit)))
    with warnings.catch_warnings():
        # They say that the effort was limited.
        warnings.simplefilter("ignore")
        process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(cap) else None
    finally:
        process.kill()
        process.join()


def _timed(fit: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Return the seconds of the fastest of a few runs that are short, and the weights."""
    seconds: list[float] = []
    while len(seconds) < _REPEATS and sum(seconds) < _SHORT:
        began = time.perf_counter()
        V = fit()
        seconds.append(time.perf_counter() - began)
    return min(seconds), V


def indicators(y: np.ndarray) -> np.ndarray:
    """Return the indicator matrix (n, m) of labels."""
    return np.eye(y.max() + 1)[y]


# -- fits --------------------------------------------------------------------------------------------------------------


class Fitted(NamedTuple):
    """Test accuracy, seconds of the fit, seconds of a prediction, and how many numbers the model holds."""

    accuracy: float
    seconds: float
    prediction: float
    size: int


def fits(args: argparse.Namespace) -> None:
    """Print fits of both layers beside quadratic-kernel SVMs, whose C is chosen on the validation part."""
    print(f"\nFits with default settings, l1/l2, both layers: {args.splits} splits")
    print("set       model     test accuracy    fit: mean       max   a prediction   numbers held")
    for name in args.sets:
        splits = [split(*load(name, args.data), index) for index in range(args.splits)]
        ours = [network(data, _FIT_UNITS.get(name, _DEFAULT_UNITS), _FIT_STRENGTHS[name]) for data in splits]
        theirs = [svm(data) for data in splits]
        for label, rows in (("mopn", ours), ("SVM", theirs)):
            accuracy, seconds, prediction, size = (np.array(column) for column in zip(*rows, strict=True))
            error = accuracy.std(ddof=1) / math.sqrt(len(rows)) if len(rows) > 1 else math.nan
            print(
                f"{name:9s} {label:5s} {100 * accuracy.mean():12.2f} ± {100 * error:4.2f} {seconds.mean():10.3f} s "
                f"{seconds.max():7.3f} s {1e6 * prediction.mean():11.3f} µs {size.mean():14.0f}",
                flush=True,
            )
        means = [np.mean(rows, axis=0) for rows in (theirs, ours)]
        _, seconds, prediction, size = means[0] / means[1]
        print(f"{name:9s} {'ratio':5s} {'':19s} {seconds:10.3g} {'':11s} {prediction:11.3g} {size:17.3g}")


def network(data: Split, max_units: int, strength: float) -> Fitted:
    """Fit both layers."""
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=strength, augment=True)
    began = time.perf_counter()
    result = mopn.minimize(problem, ConditionalGradient(refit="full", max_units=max_units))
    seconds = time.perf_counter() - began
    model = mopn.Model.from_result(problem, result)
    return _fitted(model.predict, seconds, model.basis.size + model.weights.size, data)


def svm(data: Split) -> Fitted:
    """Fit the SVM that is best on the validation part."""
    candidates = METHODS["SVM, quadratic kernel"](data)
    best = max(candidates, key=lambda c: float(np.mean(c.predict(data.X_validation) == data.y_validation)))
    return _fitted(best.predict, best.seconds, best.size, data)


def _fitted(predict: Callable[[np.ndarray], np.ndarray], seconds: float, size: int, data: Split) -> Fitted:
    predictions = []
    for _ in range(_PREDICTIONS):
        began = time.perf_counter()
        labels = predict(data.X_test)
        predictions.append((time.perf_counter() - began) / len(data.X_test))
    return Fitted(float(np.mean(labels == data.y_test)), seconds, min(predictions), size)


# -- paths -------------------------------------------------------------------------------------------------------------


def paths(args: argparse.Namespace) -> None:
    """Print the time of a path of 20 strengths beside that of one cold fit at its smallest strength."""
    print("\nPaths of 20 strengths and a cold fit at the last one, l1/l2, both layers, split 0")
    print("set            path      cold fit  path / cold   objective: path      cold fit")
    for name in args.sets:
        data, units = split(*load(name, args.data), 0), _FIT_UNITS.get(name, _DEFAULT_UNITS)
        problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=1.0, augment=True)
        began = time.perf_counter()
        found = mopn.path(problem, 20, path_solver(20, units))
        seconds = time.perf_counter() - began
        last = problem.with_strength(float(found.strengths[-1]))
        began = time.perf_counter()
        cold = mopn.minimize(last, ConditionalGradient(refit="full", max_units=units))
        alone = time.perf_counter() - began
        print(
            f"{name:9s} {seconds:8.2f} s {alone:11.2f} s {seconds / alone:12.2f} {found.results[-1].fun:17.2f} "
            f"{cold.fun:13.2f}",
            flush=True,
        )


PARTS = {"refits": refits, "peers": peers, "fits": fits, "paths": paths}

if __name__ == "__main__":
    main()
