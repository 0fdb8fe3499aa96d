"""How long users wait: the import, the first fit of a process, and single fits of the paper's sets.

Every figure is the median over fresh processes, one BLAS thread each; the fits are timed inside, after the import. No
code is compiled at run time: there is no cold start beyond the import::

    python -m benchmarks.speed.latency --data FOLDER
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence

import mopn
from benchmarks.common.datasets import load, split
from benchmarks.common.processes import run_program, run_python
from benchmarks.common.study import make_parser, run

_IMPORT = "import time; t = time.perf_counter(); import mopn; print(time.perf_counter() - t)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("speed.latency", __doc__)
    parser.add_argument("--repeats", type=int, default=3, help="processes a figure (default 3)")
    parser.add_argument("--fit", nargs=3, metavar=("SET", "UNITS", "STRENGTH"), help="internal: one fit, as JSON")
    return parser


def _program(args: argparse.Namespace) -> None:
    """Run the measurements, or, with --fit, one fit in this process."""
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
