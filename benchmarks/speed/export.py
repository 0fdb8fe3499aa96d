"""Exported models: whether ONNX and C agree with Python, and how long a row takes.

* ``agreement``: the largest difference of the outputs on up to 1,000 rows of each set, of ONNX and C from Python,
  relative to the largest output (absolute if that is below 1). Classes by networks, numbers by factorization machines
  of degree 3, ratings by machines of degree 2 and by ordinal networks. Classifiers get the features as they are.
* ``latency``: one row through Python, ONNX and C, medians.

It needs ``cc``, onnx and onnxruntime. One thread::

    OMP_NUM_THREADS=1 python -m benchmarks.speed.export --data FOLDER
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.common.collection import COLLECTION, hold_out, load_raw, number_sets, read_arff
from benchmarks.common.exports import compiled, onnx_session, session_outputs
from benchmarks.common.measures import seconds_of
from benchmarks.common.printing import Table
from benchmarks.common.sources import read
from benchmarks.common.study import make_parser, run
from benchmarks.recommender.data import load as load_ratings
from mopn.estimators import FactorizationMachineRegressor, MultiOutputPNClassifier, OrdinalFMRegressor

_NUMBERS = number_sets(read_arff)
_RATINGS = "ml-100k"
_ROWS, _RATING_ROWS = 1_000, 10_000
# Calls of one row, and of all rows in C.
_CALLS, _BATCHES = 300, 21
_WAYS = ("estimator", "model", "ONNX double", "ONNX float", "C double", "C float")

Fitted = tuple[str, Any, np.ndarray]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("speed.export", __doc__, sets=[*COLLECTION, *_NUMBERS, _RATINGS])
    parser.add_argument("--parts", nargs="+", default=list(_PARTS), choices=_PARTS)
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print the tables."""
    for part in args.parts:
        with tempfile.TemporaryDirectory() as folder:
            _PARTS[part](args, Path(folder))


# -- agreement ---------------------------------------------------------------------------------------------------------


def _agreement(args: argparse.Namespace, folder: Path) -> None:
    table = Table(
        "largest difference from Python:30s, rows:d, ONNX double:.1e, C double:9.1e, ONNX float:.1e, C float:9.1e"
    )
    for name, model, X in _models(args):
        expected = model.outputs(X)
        unit = max(1.0, float(np.abs(expected).max()))
        found = [_onnx_outputs(model, X, "float64"), _compiled(model, "float64", folder)(X)]
        found += [_onnx_outputs(model, X, "float32"), _compiled(model, "float32", folder)(X)]
        table.row(name, len(X), *(np.abs(outputs - expected).max() / unit for outputs in found))


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
    return session_outputs(onnx_session(model, dtype), {"X": X.astype(dtype)})


def _compiled(model: Any, dtype: str, folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    return compiled(model, model.outputs(np.zeros((1, model.n_features))).shape[1], dtype, folder)


# -- latency -----------------------------------------------------------------------------------------------------------


def _latency(args: argparse.Namespace, folder: Path) -> None:
    table = Table("a row:30s, " + ", ".join(f"{name}:9.2f µs" for name in _WAYS))
    for name, estimator, X in _estimators(args):
        model, rows = estimator.model_, [row[None] for row in X[:_CALLS]]
        times = [_of_rows(estimator.predict, rows), _of_rows(model.predict, rows)]
        times += [_of_onnx(model, rows, dtype) for dtype in ("float64", "float32")]
        times += [_of_c(model, X, dtype, folder) for dtype in ("float64", "float32")]
        table.row(name, *(1e6 * seconds for seconds in times))


def _of_onnx(model: Any, rows: list[np.ndarray], dtype: str) -> float:
    session = onnx_session(model, dtype)
    return _of_rows(lambda given: session.run(["prediction"], given), [{"X": row.astype(dtype)} for row in rows])


def _of_c(model: Any, X: np.ndarray, dtype: str, folder: Path) -> float:
    outputs, rows = _compiled(model, dtype, folder), X.astype(dtype)
    return statistics.median(seconds_of(lambda: outputs(rows), _BATCHES)) / len(X)


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
    return statistics.median(seconds_of(lambda row=row: call(row))[0] for row in rows)


_PARTS = {"agreement": _agreement, "latency": _latency}


if __name__ == "__main__":
    sys.exit(main())
