"""Classifiers that are fitted in stages, and the rows that they are fitted to."""

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

from benchmarks.common.processes import peak_memory
from mopn.estimators import MultiOutputPNClassifier

KINDS = ("squares", "steps")
_CLASSES, _TEST, _NOISE, _TERMS = 5, 20_000, 0.1, 3
# Rows that are made, predicted or expanded at once.
_BLOCK = 10_000
# Units of mopn, trees, and features of Nystroem, of each stage.
_UNITS, _TREES, _COMPONENTS = (5, 10, 20, 40), (25, 50, 100, 200, 400), (100, 300, 1000)
_EPOCHS = 20

Predict = Callable[[np.ndarray], np.ndarray]


class Fit(NamedTuple):
    """A method on n rows of d features of a kind, and the seconds of the processor that it may take."""

    kind: str
    method: str
    n: int
    d: int
    limit: float


# -- data --------------------------------------------------------------------------------------------------------------


def make_rows(kind: str, n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 rows and their classes, a function of the rows that the seed leaves as it is."""
    rng, X = np.random.default_rng(seed), np.empty((n, d), np.float32)
    y = np.empty(n, int)
    for first in range(0, n, _BLOCK):
        part = X[first : first + _BLOCK]
        part[:] = rng.uniform(-1.0, 1.0, part.shape)
        y[first : first + _BLOCK] = np.argmax(class_scores(kind, part), axis=1)
    noisy = rng.random(n) < _NOISE
    y[noisy] = rng.integers(_CLASSES, size=int(noisy.sum()))
    return X, y


def class_scores(kind: str, X: np.ndarray) -> np.ndarray:
    """Return the scores of the classes at each row; the largest one names it."""
    rng, d = np.random.default_rng(0), X.shape[1]
    if kind == "squares":
        return (X @ rng.standard_normal((d, _CLASSES))) ** 2
    pairs, signs = rng.integers(d, size=(2, _CLASSES, _TERMS)), np.sign(X)
    weights = rng.uniform(1.0, 2.0, (_CLASSES, _TERMS))
    return np.einsum("nct,nct,ct->nc", signs[:, pairs[0]], signs[:, pairs[1]], weights)


# -- methods, which yield the predictions of stage after stage ---------------------------------------------------------


def _mopn(X: np.ndarray, y: np.ndarray) -> Iterator[Predict]:
    for units in _UNITS:
        yield MultiOutputPNClassifier(max_units=units).fit(X, y).predict


def _lightgbm(X: np.ndarray, y: np.ndarray) -> Iterator[Predict]:
    import lightgbm

    data, booster = lightgbm.Dataset(X, y, free_raw_data=False), None
    parameters = {"objective": "multiclass", "num_class": _CLASSES, "num_threads": 1, "verbose": -1}
    for before, trees in itertools.pairwise((0, *_TREES)):
        booster = lightgbm.train(parameters, data, trees - before, init_model=booster)
        yield lambda rows, booster=booster: np.argmax(booster.predict(rows, num_threads=1), axis=1)


def _histograms(X: np.ndarray, y: np.ndarray) -> Iterator[Predict]:
    classifier = HistGradientBoostingClassifier(warm_start=True, early_stopping=False)
    for trees in _TREES:
        yield classifier.set_params(max_iter=trees).fit(X, y).predict


def _sgd(X: np.ndarray, y: np.ndarray) -> Iterator[Predict]:
    features, classifier = PolynomialFeatures(2).fit(X[:1]), SGDClassifier(random_state=0)
    for _ in range(_EPOCHS):
        for first in range(0, len(y), _BLOCK):
            rows = slice(first, first + _BLOCK)
            classifier.partial_fit(features.transform(X[rows]), y[rows], classes=np.arange(_CLASSES))
        yield make_pipeline(features, classifier).predict


def _nystroem(X: np.ndarray, y: np.ndarray) -> Iterator[Predict]:
    for components in _COMPONENTS:
        yield (
            make_pipeline(Nystroem(n_components=components, random_state=0), LinearSVC(random_state=0))
            .fit(X, y)
            .predict
        )


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Iterator[Predict]]] = {
    "mopn": _mopn,
    "lightgbm": _lightgbm,
    "histograms": _histograms,
    "sgd": _sgd,
    "nystroem": _nystroem,
}


def stages(fit: Fit) -> dict[str, Any]:
    """Return the seconds of the processor until the end of every stage, accuracies, and megabytes."""
    warnings.simplefilter("ignore")
    small = make_rows(fit.kind, 200, fit.d, 0)
    next(METHODS[fit.method](*small))  # loads the method's imports
    (X, y), (X_test, y_test) = (make_rows(fit.kind, n, fit.d, seed) for seed, n in ((1, fit.n), (2, _TEST)))
    held, seconds, accuracies, outside = peak_memory(), [], [], 0.0
    began = time.process_time()
    for predict in METHODS[fit.method](X, y):
        now = time.process_time()
        seconds.append(now - began - outside)
        accuracies.append(float(np.mean(predict(X_test) == y_test)))
        outside += time.process_time() - now
        last = seconds[-1] - (seconds[-2] if len(seconds) > 1 else 0.0)
        if seconds[-1] + last > fit.limit:
            break
    return {"seconds": seconds, "accuracies": accuracies, "memory": (peak_memory() - held) / 1e6}
