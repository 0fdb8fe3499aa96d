"""mopn beside what a user would pick instead: accuracy, training and prediction time, and size, on the same splits.

One thread each; every hyper-parameter is chosen on the validation part::

    python -m benchmarks.alternatives --data FOLDER
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.alternatives.methods import METHODS, Candidate, best, seconds_a_prediction
from benchmarks.common.datasets import DATA_SETS, Split, load, split
from benchmarks.common.measures import mean_and_error
from benchmarks.common.study import make_parser, run

__all__ = ["main"]

_PREDICTIONS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("alternatives", __doc__, sets=DATA_SETS)
    parser.set_defaults(sets=["vowel", "segment", "satimage"])
    parser.add_argument("--splits", type=int, default=3)
    return parser


def _program(args: argparse.Namespace) -> None:
    """Print a table a set."""
    with threadpool_limits(1):
        for name in args.sets:
            X, y = load(name, args.data)
            splits = [split(X, y, index) for index in range(args.splits)]
            print(f"\n{name}: mean of {args.splits} splits; the fit is that of the chosen hyper-parameter alone")
            print(f"{'':24s}{'test accuracy':>18s}{'fit':>10s}{'a prediction':>15s}{'numbers held':>14s}")
            for label, fit in METHODS.items():
                print(_row(label, [_chosen(fit(data), data) for data in splits]), flush=True)


def _chosen(candidates: list[Candidate], data: Split) -> tuple[float, float, float, int]:
    chosen = best(candidates, data)
    accuracy = float(np.mean(chosen.predict(data.X_test) == data.y_test))
    seconds = np.mean(seconds_a_prediction(chosen.predict, data, _PREDICTIONS))
    return accuracy, chosen.seconds, float(seconds), chosen.size


def _row(label: str, rows: list[tuple[float, float, float, int]]) -> str:
    accuracies, fits, predictions, sizes = (np.array(column) for column in zip(*rows, strict=True))
    accuracy, error = mean_and_error(100 * accuracies)
    return (
        f"{label:24s}{accuracy:11.2f} ± {error:4.2f}{fits.mean():8.2f} s"
        f"{1e6 * predictions.mean():12.2f} µs{sizes.mean():14.0f}"
    )


if __name__ == "__main__":
    sys.exit(main())
