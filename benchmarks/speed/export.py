"""Exported models: whether ONNX and C agree with Python, how long a row takes, and how large a header is.

* ``agreement``: the largest difference of the outputs on up to 1,000 rows of each set, of ONNX and C from Python,
  relative to the largest output (absolute if that is below 1). Classes by networks, numbers by factorization machines
  of degree 3, ratings by those of degree 2 and by ordinal networks. Classifiers get the features as they are.
* ``latency``: one row through Python, ONNX and C, medians.
* ``forests``: C on letter and digits beside random forests by emlearn (``pip install emlearn``), which get int16
  features. Of a grid of forests it is the smallest that is as accurate on the test rows as the network, if there is
  one, else the most accurate; in its favour, the test rows choose it. Bytes are code and constants for this machine,
  compiled with ``-Os``; times are those of ``-O2``.

It needs ``cc``, ``size``, onnx and onnxruntime. One thread::

    OMP_NUM_THREADS=1 python -m benchmarks.speed.export --data FOLDER
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.common.collection import COLLECTION, hold_out, load_raw, number_sets, read_arff
from benchmarks.common.measures import seconds_of
from benchmarks.common.sources import read
from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import load as load_ratings
from benchmarks.speed.headers import Header, compile_header
from mopn.estimators import FactorizationMachineRegressor, MultiOutputPNClassifier, OrdinalFMRegressor
from mopn.export import to_c, to_onnx

__all__ = ["main"]

_NUMBERS = number_sets(read_arff)
_RATINGS = "ml-100k"
_ROWS, _RATING_ROWS = 1_000, 10_000
# Calls of one row, and of all rows in C.
_CALLS, _BATCHES = 300, 21
_TREES, _LEAVES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100), (16, 32, 64, 128, 256, 512, 1024, None)
# emlearn rounds thresholds to integers: those between two integers are integers themselves of twice the features.
_TWICE = 2

Fitted = tuple[str, Any, np.ndarray]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("speed.export", __doc__, sets=[*COLLECTION, *_NUMBERS, _RATINGS])
    parser.add_argument("--parts", nargs="+", default=list(_PARTS), choices=_PARTS)
    parser.add_argument("--forests", nargs="+", default=["letter", "digits"], choices=COLLECTION, metavar="SET")
    return parser


def _program(args: argparse.Namespace) -> None:
    """Print the tables."""
    for part in args.parts:
        with tempfile.TemporaryDirectory() as folder:
            _PARTS[part](args, Path(folder))


# -- agreement ---------------------------------------------------------------------------------------------------------


def _agreement(args: argparse.Namespace, folder: Path) -> None:
    _print_line("largest difference from Python", ["rows", "ONNX double", "C double", "ONNX float", "C float"])
    for name, model, X in _models(args):
        expected = model.outputs(X)
        unit = max(1.0, float(np.abs(expected).max()))
        found = [_onnx_outputs(model, X, "float64"), _c_outputs(model, X, "float64", folder)]
        found += [_onnx_outputs(model, X, "float32"), _c_outputs(model, X, "float32", folder)]
        _print_line(name, [str(len(X)), *(f"{np.abs(outputs - expected).max() / unit:.1e}" for outputs in found)])


def _print_line(label: str, cells: Sequence[str]) -> None:
    print(f"{label:<52}" + "".join(f"{cell:>13}" for cell in cells), flush=True)


def _models(args: argparse.Namespace) -> Iterator[Fitted]:
    """Fit a model to each set, and yield it with the rows to predict."""
    for name in args.sets:
        if name in COLLECTION:
            X, y, _ = load_raw(name, args.data)
            yield name, MultiOutputPNClassifier(random_state=0).fit(X, y).model_, X[:_ROWS]
        elif name in _NUMBERS:
            X, y = read(_NUMBERS, name, args.data)
            X, y = StandardScaler().fit_transform(X)[:_RATING_ROWS], y.astype(float)[:_RATING_ROWS]
            machine = FactorizationMachineRegressor(degree=3, random_state=0, max_iter=20)
            yield f"{name}, degree 3", _quietly(machine, X, y / np.abs(y).max()), X[:_ROWS]
        else:
            ratings = load_ratings(name, args.data)
            X, y = ratings.rows()[:_RATING_ROWS], ratings.y[:_RATING_ROWS]
            rows = X[:_ROWS].toarray()
            machine = FactorizationMachineRegressor(alpha=5.0, beta=6.0, random_state=0, max_iter=20)
            yield f"{name}, degree 2", _quietly(machine, X, y), rows
            yield f"{name}, ordinal", _quietly(OrdinalFMRegressor(max_units=10, random_state=0), X, y), rows


def _quietly(estimator: Any, X: Any, y: np.ndarray) -> Any:
    """Return the model of a fit that may end before its tolerance."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y).model_


def _onnx_outputs(model: Any, X: np.ndarray, dtype: str) -> np.ndarray:
    session = _session(model, dtype)
    names = [output.name for output in session.get_outputs()]
    name = "outputs" if "outputs" in names else "prediction"
    return session.run([name], {"X": X.astype(dtype)})[0].reshape(len(X), -1)


def _session(model: Any, dtype: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph = to_onnx(model, dtype=dtype).SerializeToString()
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _c_outputs(model: Any, X: np.ndarray, dtype: str, folder: Path) -> np.ndarray:
    m = model.outputs(X[:1]).shape[1]
    return _header(model, dtype, folder).outputs(X, m)


def _header(model: Any, dtype: str, folder: Path) -> Header:
    to_c(model, folder / "model.h", dtype=dtype)
    features = "float64" if dtype == "float64" else "float32"
    d = model.n_features
    m = model.outputs(np.zeros((1, d))).shape[1]
    predict = "model_predict(x)" if model.target == "labels" else ""
    return compile_header(folder / "model.h", features, d, predict, "model_outputs(x, out)", m)


# -- latency -----------------------------------------------------------------------------------------------------------


def _latency(args: argparse.Namespace, folder: Path) -> None:
    _print_line("microseconds a row", ["estimator", "model", "ONNX double", "ONNX float", "C double", "C float"])
    for name, estimator, X in _estimators(args):
        model, rows = estimator.model_, [row[None] for row in X[:_CALLS]]
        times = [_of_rows(estimator.predict, rows), _of_rows(model.predict, rows)]
        times += [_of_onnx(model, rows, dtype) for dtype in ("float64", "float32")]
        times += [_of_c(model, X, dtype, folder) for dtype in ("float64", "float32")]
        _print_line(name, [f"{1e6 * seconds:.2f}" for seconds in times])


def _of_onnx(model: Any, rows: list[np.ndarray], dtype: str) -> float:
    session = _session(model, dtype)
    return _of_rows(lambda given: session.run(["prediction"], given), [{"X": row.astype(dtype)} for row in rows])


def _of_c(model: Any, X: np.ndarray, dtype: str, folder: Path) -> float:
    header, m = _header(model, dtype, folder), model.outputs(X[:1]).shape[1]
    rows = X.astype(header.dtype)
    return _of_batches(lambda: header.outputs(rows, m), len(X))


def _estimators(args: argparse.Namespace) -> Iterator[Fitted]:
    for name in ("letter", "digits"):
        X, y, _ = load_raw(name, args.data)
        X, X_test, y, _ = hold_out(X, y, 0)
        yield f"{name}, network", MultiOutputPNClassifier(random_state=0).fit(X, y), X_test[:_ROWS]
        for degree in (2, 3):
            machine = FactorizationMachineRegressor(degree=degree, n_components=20, random_state=0, max_iter=5)
            _quietly(machine, X / 16.0, y / y.max())
            yield f"{name}, one output of degree {degree}", machine, X_test[:_ROWS] / 16.0


def _of_rows(call: Callable[[Any], Any], rows: list[Any]) -> float:
    """Return the median seconds of a call with a row."""
    call(rows[0])
    return statistics.median(seconds_of(lambda row=row: call(row), 1)[0] for row in rows)


def _of_batches(call: Callable[[], Any], n: int) -> float:
    """Return the median seconds a row of calls with n rows."""
    return statistics.median(seconds_of(call, _BATCHES)) / n


# -- forests -----------------------------------------------------------------------------------------------------------


def _forests(args: argparse.Namespace, folder: Path) -> None:
    _print_line("in C", ["accuracy", "bytes", "us a row"])
    for name in args.forests:
        X, y, _ = load_raw(name, args.data)
        X, X_test, y, y_test = hold_out(X, y, 0)
        network = MultiOutputPNClassifier(random_state=0).fit(X, y)
        header = _header(network.model_, "float32", folder)
        _line(f"{name}: mopn, {len(network.basis_)} units", header, X_test, y_test)
        if find_spec("emlearn") is None:
            print(f"{name}: no forest, as emlearn is not installed")
            continue
        forest = _forest(X, y, X_test, y_test, network.score(X_test, y_test))
        label = f"{forest.n_estimators} trees of {forest.max_leaf_nodes or 'all'} leaves"
        for method in ("inline", "loadable"):
            header = _forest_header(forest, method, folder)
            _line(f"{name}: emlearn, {method}, {label}", header, _TWICE * X_test, y_test)


def _line(label: str, header: Header, X: np.ndarray, y: np.ndarray) -> None:
    rows = np.ascontiguousarray(X, header.dtype)
    seconds = _of_batches(lambda: header.predict(rows), len(rows))
    accuracy = float(np.mean(header.predict(rows) == y))
    _print_line(label, [f"{accuracy:.4f}", f"{header.bytes:,}", f"{1e6 * seconds:.2f}"])


def _forest(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, accuracy: float) -> Any:
    """Return the smallest forest of the grid that is as accurate on the test rows, or the most accurate."""
    best: tuple[Any, ...] = ()
    for trees, leaves in product(_TREES, _LEAVES):
        forest = RandomForestClassifier(trees, max_leaf_nodes=leaves, random_state=0).fit(_TWICE * X, y)
        score = forest.score(_TWICE * X_test, y_test)
        nodes = sum(tree.tree_.node_count for tree in forest.estimators_)
        # First by whether it is as accurate, then by size or by accuracy.
        rank = (True, -nodes) if score >= accuracy else (False, score)
        if not best or rank > best[0]:
            best = rank, forest
    return best[1]


def _forest_header(forest: Any, method: str, folder: Path) -> Header:
    # emlearn makes NumPy raise an error at every underflow, of all that follows.
    with np.errstate():
        import emlearn

        converted = emlearn.convert(forest, method=method, dtype="int16_t")
        converted.save(file=str(folder / "forest.h"), name="forest", include_proba=False)
    d = forest.n_features_in_
    return compile_header(folder / "forest.h", "int16", d, f"forest_predict(x, {d})", include=emlearn.includedir)


_PARTS = {"agreement": _agreement, "latency": _latency, "forests": _forests}


if __name__ == "__main__":
    sys.exit(main())
