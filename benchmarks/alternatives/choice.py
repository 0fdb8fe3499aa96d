"""The cost and the gain of choosing strength and size by cross-validation; and a path against a cold fit.

A quarter of the rows is held out from all, and scored. Costs are processor seconds, in units of a default fit. The
best fixed ratio is the one of most accuracy on these quarters on average, which no user can know.

    OMP_NUM_THREADS=1 python -m benchmarks.alternatives.choice --data FOLDER
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

import mopn
from benchmarks.common.collection import COLLECTION, hold_out, load_raw
from benchmarks.common.measures import processor_seconds_of
from benchmarks.common.printing import Table
from benchmarks.common.sources import check
from benchmarks.common.study import make_parser, run
from mopn.estimators import MultiOutputPNClassifier, PathCV

SETS = ("digits", "segment", "satimage", "waveform5000", "vowel", "splice")
_RATIOS = (0.03, 0.01, 0.003, 0.001, 0.0003)
_STRENGTHS = 20


class Choice(NamedTuple):
    """A split: accuracies, how often the choice costs a default fit, and how many units were chosen."""

    default: float
    chosen: float
    cost: float
    max_units: int
    fixed: list[float]


def sample(name: str, folder: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the training and the test part of at most a number of rows, as from ``hold_out``."""
    X, y, _ = load_raw(name, folder)
    if len(y) > rows:
        X, _, y, _ = train_test_split(X, y, train_size=rows, random_state=seed, stratify=y)
    return hold_out(X, y, seed)


def choose(X: np.ndarray, X_test: np.ndarray, y: np.ndarray, y_test: np.ndarray) -> Choice:
    """Fit with defaults, with what cross-validation chooses, and with fixed ratios."""
    default, chosen = MultiOutputPNClassifier(), PathCV(MultiOutputPNClassifier())
    # The first fit of a process loads what others use.
    seconds = np.median(processor_seconds_of(lambda: default.fit(X, y), 4)[1:])
    cost = processor_seconds_of(lambda: chosen.fit(X, y))[0] / seconds
    fixed = [MultiOutputPNClassifier(strength=mopn.Ratio(value)).fit(X, y).score(X_test, y_test) for value in _RATIOS]
    max_units = chosen.best_params_["max_units"]
    return Choice(default.score(X_test, y_test), chosen.score(X_test, y_test), cost, max_units, fixed)


def follow(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the cost of a path in fits at its last strength, and its last objective over the fit's."""
    cold = MultiOutputPNClassifier()
    same = {"norm": cold.norm, "ridge": cold.ridge, "augment": True, "center": True, "scale": "features"}
    problem = mopn.NetworkProblem(X, y, strength=1.0, **same)
    found: dict[str, Any] = {}
    (seconds,) = processor_seconds_of(lambda: found.update(path=mopn.path(problem, _STRENGTHS)))
    path = found["path"]
    cold.set_params(strength=float(path.strengths[-1]))
    cost = seconds / np.median(processor_seconds_of(lambda: cold.fit(X, y), 3))
    return float(cost), path.results[-1].fun / cold.objective_


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("alternatives.choice", __doc__, sets=COLLECTION)
    parser.set_defaults(sets=list(SETS))
    parser.add_argument("--rows", type=int, default=2000, help="rows of a larger set, by chance (default %(default)s)")
    parser.add_argument("--splits", type=int, default=3, help="default %(default)s")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    check(COLLECTION, args.sets, args.data, "--sets")
    print("test accuracy, means over splits; costs of cross-validation and of a path of 20, in default fits")
    table = Table(
        "set:13s, default:.2f, chosen:.2f, best fixed:.2f, its ratio:g, cost:.2f, units:.0f, path:.1f, objective:.3f"
    )
    for name in args.sets:
        splits = [sample(name, args.data, args.rows, seed) for seed in range(args.splits)]
        choices = [choose(*split) for split in splits]
        default, chosen, cost, units = (np.mean([choice[i] for choice in choices]) for i in range(4))
        fixed = np.mean([choice.fixed for choice in choices], axis=0)
        best = int(np.argmax(fixed))
        path_cost, ratio = follow(splits[0][0], splits[0][2])
        accuracies = 100 * default, 100 * chosen, 100 * fixed[best], _RATIOS[best]
        table.row(name, *accuracies, cost, units, path_cost, ratio)


if __name__ == "__main__":
    sys.exit(main())
