"""Peers in C: forests and multilayer perceptrons by emlearn, boosting by m2cgen, each the smallest of a grid.

It is the smallest model of the grid with the requested accuracy on the test rows, or the most accurate one if none
has it; in favour of the peers, the test rows choose it. Forests take features of int16, the others floats.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from benchmarks.devices.boards import Program

PACKAGES = ("emlearn", "m2cgen", "lightgbm")
_TREES, _LEAVES = (5, 10, 20, 50, 100), (16, 64, 256, None)
_HIDDEN = (4, 8, 12, 16, 24, 32, 48, 64)
_ROUNDS, _BOOSTED_LEAVES = (5, 10, 20, 40), (4, 8, 16)
# Integers that features become for forests, where they are no small integers themselves.
_INTEGERS = 16_000

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def peers(split: Split, accuracy: float, rows: np.ndarray, folder: Path) -> Iterator[tuple[Program, float]]:
    """Yield the programs of peers with their accuracies on the test rows."""
    for make in (_forest, _perceptron, _boosting):
        with warnings.catch_warnings():
            # Perceptrons of few rounds, and trees of features without names.
            warnings.simplefilter("ignore")
            yield from make(split, accuracy, rows, folder)


def _best(
    models: Sequence[tuple[int, Any]], X: np.ndarray, X_test: np.ndarray, split: Split, accuracy: float
) -> tuple[float, Any]:
    """Return the first model, by size, that is as accurate, or else the most accurate; with its accuracy."""
    best = (-1.0, None)
    for _, model in sorted(models, key=lambda pair: pair[0]):
        model.fit(X, split[2])
        best = max(best, (model.score(X_test, split[3]), model), key=lambda pair: pair[0])
        if best[0] >= accuracy:
            break
    return best


def _forest(split: Split, accuracy: float, rows: np.ndarray, folder: Path) -> Iterator[tuple[Program, float]]:
    X, X_test, y, _ = split
    # Thresholds are rounded to integers: those between two integers are integers themselves of twice the features.
    whole = all(np.array_equal(A, np.rint(A)) for A in (X, X_test))
    scale = np.full(X.shape[1], 2.0) if whole else _INTEGERS / np.maximum(np.abs(X).max(axis=0), 1e-12)
    X, X_test, rows = (np.clip(np.rint(A * scale), -32767, 32767).astype(np.int16) for A in (X, X_test, rows))
    models = [
        (trees * (leaves or len(y)), RandomForestClassifier(trees, max_leaf_nodes=leaves, random_state=0))
        for trees, leaves in product(_TREES, _LEAVES)
    ]
    found, forest = _best(models, X, X_test, split, accuracy)
    label = f"emlearn, {forest.n_estimators} trees of {forest.max_leaf_nodes or 'all'} leaves"
    for method, stored in (("inline", "code"), ("loadable", "tables")):
        converted = _converted(forest, folder, method=method, dtype="int16_t")
        converted.save(file=str(folder / "forest.h"), name="forest", include_proba=False)
        yield _program(f"{label}, {stored}", folder / "forest.h", f"forest_predict(x, {X.shape[1]})", rows), found


def _perceptron(split: Split, accuracy: float, rows: np.ndarray, folder: Path) -> Iterator[tuple[Program, float]]:
    X, X_test, _, _ = split
    mean, size = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    models = [(hidden, MLPClassifier((hidden,), max_iter=300, random_state=0)) for hidden in _HIDDEN]
    found, network = _best(models, (X - mean) / size, (X_test - mean) / size, split, accuracy)
    # The scaling becomes part of the first layer.
    network.coefs_[0] /= size[:, None]
    network.intercepts_[0] -= mean @ network.coefs_[0]
    converted = _converted(network, folder, method="inline")
    converted.save(file=str(folder / "perceptron.h"), name="perceptron")
    label = f"emlearn, perceptron of {network.hidden_layer_sizes[0]} units"
    predict = f"perceptron_predict(x, {X.shape[1]})"
    yield _program(label, folder / "perceptron.h", predict, rows.astype(np.float32)), found


def _boosting(split: Split, accuracy: float, rows: np.ndarray, folder: Path) -> Iterator[tuple[Program, float]]:
    import m2cgen
    from lightgbm import LGBMClassifier

    X, X_test, y, _ = split
    classes = len(np.unique(y))
    options: dict[str, Any] = {"verbose": -1, "n_jobs": 1}
    models = [
        (rounds * leaves, LGBMClassifier(n_estimators=rounds, num_leaves=leaves, **options))
        for rounds, leaves in product(_ROUNDS, _BOOSTED_LEAVES)
    ]
    found, boosted = _best(models, X, X_test, split, accuracy)
    code = m2cgen.export_to_c(boosted)
    (folder / "boosting.h").write_text(
        f"{code}\nstatic int boosted(double *x) {{\n    double p[{classes}];\n    score(x, p);\n    int best = 0;\n"
        f"    for (int c = 1; c < {classes}; c++) if (p[c] > p[best]) best = c;\n    return best;\n}}\n"
    )
    label = f"m2cgen, LightGBM, {boosted.n_estimators} rounds of {boosted.num_leaves} leaves"
    yield _program(label, folder / "boosting.h", "boosted((double *)x)", rows.astype(np.float64)), found


def _converted(model: Any, folder: Path, **options: Any) -> Any:
    """Return a model of emlearn, which makes NumPy raise an error at every underflow and writes to where it runs."""
    here = Path.cwd()
    with np.errstate():
        import emlearn

        os.chdir(folder)
        try:
            return emlearn.convert(model, **options)
        finally:
            os.chdir(here)


def _program(label: str, header: Path, predict: str, rows: np.ndarray) -> Program:
    spec = find_spec("emlearn")
    include = str(Path(str(spec.origin)).parent) if spec else "."
    return Program(label, f'#include "{header.name}"', predict, rows, (str(header.parent), include))
