"""Output layers by other solvers, wherever these can be imported, beside ``InteriorPoint``."""

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
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.speed import layers
from benchmarks.speed.layers import REFIT_TOL, REPEATS, SHORT, features, solved
from benchmarks.speed.ratios import Ratio, make_ratio, print_medians
from mopn.network.output_layer import OutputLayerProblem
from mopn.solvers import InteriorPoint

__all__ = ["PEERS", "TARGETS", "Comparison", "Peer", "compare", "peers"]

TARGETS = (1e-3, 1e-4)


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
            for strength in layers.STRENGTHS:
                for row in compare(peer, *features(name, args.data), strength, args.cap):
                    ratios[name].append(row.ratio)
                    print(
                        f"{name:9s} {strength:8g} {row.target:8.0e} {row.ours:9.4f} s {row.theirs:11.4f} s "
                        f"{row.ratio!s:>10s} {row.our_excess:16.1e}, {row.their_excess:.1e}",
                        flush=True,
                    )
        print_medians(ratios)


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
    best = solved(problem, InteriorPoint(), REFIT_TOL, cap)

    def excess(V: np.ndarray) -> float:
        x = np.ascontiguousarray(V, dtype=float).ravel()
        fun = problem.smooth_value(problem.image(x)) + problem.regularizer_value(x)
        return fun / best.lower - 1.0

    search, found = _Search(lambda effort: peer.fit(Phi, y, strength, effort), excess, cap), []
    for target in TARGETS:
        ours, (seconds, reached) = solved(problem, InteriorPoint(), target, cap), search(target)
        ratio = make_ratio(seconds, ours, reached <= target)
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
    while len(seconds) < REPEATS and sum(seconds) < SHORT:
        began = time.perf_counter()
        V = fit()
        seconds.append(time.perf_counter() - began)
    return min(seconds), V


def indicators(y: np.ndarray) -> np.ndarray:
    """Return the indicator matrix (n, m) of labels."""
    return np.eye(y.max() + 1)[y]
