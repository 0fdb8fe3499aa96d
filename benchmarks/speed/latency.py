"""How long users wait: the import, the first fit of a process, single fits of the paper's sets, and one row of a table.

Every figure is the median over fresh processes, one BLAS thread each; the fits are timed inside, after the import. No
code is compiled at run time: there is no cold start beyond the import. The predictions of a row are times of the
processor, the best of some batches, of a model that was loaded from a file::

    python -m benchmarks.speed.latency --data FOLDER
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mopn
from benchmarks.common.datasets import load, split
from benchmarks.common.measures import processor_seconds_of
from benchmarks.common.processes import run_program, run_python
from benchmarks.common.study import make_parser, run

_IMPORT = "import time; t = time.perf_counter(); import mopn; print(time.perf_counter() - t)"

# Predictions of a row in a batch, and batches.
_CALLS, _BATCHES = 500, 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("speed.latency", __doc__)
    parser.add_argument("--repeats", type=int, default=3, help="processes a figure (default 3)")
    parser.add_argument("--fit", nargs=3, metavar=("SET", "UNITS", "STRENGTH"), help="internal: one fit, as JSON")
    parser.add_argument("--row", action="store_true", help="internal: predictions of one row, as JSON")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Run the measurements, or, with --fit or --row, one of them in this process."""
    if args.row:
        print(json.dumps(row()))
        return
    if args.fit:
        name, units, strength = args.fit
        print(json.dumps(fit(name, args.data, int(units), float(strength))))
        return
    seconds = [float(run_python("-c", _IMPORT)) for _ in range(args.repeats)]
    print(f"import mopn{'':35s} {statistics.median(seconds):8.2f} s")
    for name, units, strength in (("digits", 20, 3.0), ("vowel", 50, 0.1), ("letter", 100, 0.5)):
        call = ("--data", args.data, "--fit", name, units, strength)
        rows = [run_program("speed.latency", *call) for _ in range(args.repeats)]
        median = statistics.median(row["seconds"] for row in rows)
        print(
            f"{name}: l1/l2, strength {strength}, {units} units, full refit {median:8.2f} s   "
            f"(first fit of its process; test accuracy {rows[0]['accuracy']:.4f}, {rows[0]['n_units']} units)"
        )
    found = [run_program("speed.latency", "--row") for _ in range(args.repeats)]
    for name in found[0]:
        print(f"one row of a table, {name:31s} {statistics.median(times[name] for times in found):8.0f} µs")


def row() -> dict[str, float]:
    """Return the microseconds of the predictions of a row, by models of 8 columns of numbers and 2 of categories."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 8))
    categories = {"city": rng.choice(list("abcd"), 1000), "sex": rng.choice(["f", "m"], 1000)}
    table: dict[str, Any] = {f"x{j}": x for j, x in enumerate(X.T)} | categories
    y = np.where(X[:, 0] * X[:, 1] + (categories["city"] == "a") > 0.3, "yes", "no")
    first = {name: column[0].item() for name, column in table.items()}
    rows: dict[str, tuple[Any, Any]] = {
        "a dict of numbers and texts": (table, first),
        "a list of numbers": (X, X[:1].tolist()),
        "an array of numbers": (X, X[:1]),
    }
    return {name: _microseconds(data, y, one) for name, (data, one) in rows.items()}


def _microseconds(data: Any, y: np.ndarray, one: Any) -> float:
    from mopn.estimators import TableClassifier

    with tempfile.TemporaryDirectory() as folder:
        TableClassifier(strength=mopn.Ratio(0.01)).fit(data, y).save(Path(folder) / "model.npz")
        model = mopn.load(Path(folder) / "model.npz")

    def batch() -> None:
        for _ in range(_CALLS):
            model.predict(one)

    return 1e6 * min(processor_seconds_of(batch, _BATCHES)) / _CALLS


def fit(name: str, folder: str, units: int, strength: float) -> dict[str, float]:
    """Fit one set, and time the problem's construction and the solve."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True) if name == "digits" else load(name, folder)
    data = split(X, y, 0)
    began = time.perf_counter()
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=strength, augment=True)
    result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full", max_units=units, schedule="fill"))
    seconds = time.perf_counter() - began
    accuracy = (mopn.Model.from_result(problem, result).predict(data.X_test) == data.y_test).mean()
    return {"seconds": seconds, "accuracy": float(accuracy), "n_units": len(result.basis)}


if __name__ == "__main__":
    sys.exit(main())
