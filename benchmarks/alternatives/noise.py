"""Whether rounding errors choose between the local minima of networks of few units, and how good these are.

Each fit is repeated with X times (1 + 1e-13 noise). The table has the spread of the objectives, their largest over the
least minus 1; their mean over the least objective that is known, minus 1; accuracy and CPU seconds. The least objective
known is that of all fits in the folder of results, those of other versions too (``--label``)::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.alternatives.noise --data FOLDER
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_iris

from benchmarks.common.collection import COLLECTION, load_raw
from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import fill, make_parser, out_folder, run
from mopn.core.norms import NormName
from mopn.estimators import MultiOutputPNClassifier

__all__ = ["main"]

_NOISE = 1e-13
_OWN = ("products", "iris")
KEY = ("label", "set", "norm", "units", "draw")
COLUMNS = (*KEY, "objective", "accuracy", "seconds")


class Fit(NamedTuple):
    """A row."""

    label: str
    set: str
    norm: NormName
    units: int
    draw: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    return run(_parser(), _program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("alternatives.noise", __doc__, sets=(*_OWN, *COLLECTION), results="noise")
    parser.add_argument("--norms", nargs="+", choices=("l1", "l1/l2", "l1/linf"), default=["l1/l2"])
    parser.add_argument("--units", type=int, nargs="+", default=[3, 4, 6, 10])
    parser.add_argument("--draws", type=int, default=20, help="fits of each kind, the first without noise")
    parser.add_argument("--rows", type=int, default=1200, help="rows of a larger set, by chance (default %(default)s)")
    parser.add_argument("--label", default="now", help="name of the version that is installed (default %(default)s)")
    return parser


def _program(args: argparse.Namespace) -> int:
    store = Store(out_folder(args) / "fits.csv", COLUMNS, KEY)
    check(COLLECTION, [name for name in args.sets if name in COLLECTION], args.data, "--sets")
    cells = itertools.product(args.sets, args.norms, args.units, range(args.draws))
    fits = [Fit(args.label, *cell) for cell in cells]
    line = "{label}: {set}, {norm}, {units} units, objective {objective:.4f}"
    failures = fill(store, fits, Fit._asdict, partial(_row, data=args.data, rows=args.rows), line)
    print(_table(store.rows()))
    return failures


def _row(fit: Fit, data: str, rows: int) -> dict[str, Any]:
    X, y = _samples(fit.set, data, rows)
    if fit.draw:
        X = X * (1.0 + _NOISE * np.random.default_rng(fit.draw).standard_normal(X.shape))
    classifier = MultiOutputPNClassifier(norm=fit.norm, max_units=fit.units)
    began = time.process_time()
    classifier.fit(X, y)
    seconds = time.process_time() - began
    return fit._asdict() | {
        "objective": classifier.objective_,
        "accuracy": classifier.score(X, y),
        "seconds": seconds,
    }


def _samples(name: str, data: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "iris":
        return load_iris(return_X_y=True)
    if name == "products":
        X = np.random.default_rng(0).uniform(-1.0, 1.0, (3000, 8))
        return X, np.argmax(np.stack([X[:, 0] * X[:, 1], X[:, 2] * X[:, 3], X[:, 4]], axis=1), axis=1)
    X, y, _ = load_raw(name, data)
    kept = np.random.default_rng(0).permutation(len(y))[:rows]
    return X[kept], y[kept]


# -- the table ---------------------------------------------------------------------------------------------------------


def _table(rows: list[dict[str, str]]) -> str:
    """Return a line for every set, norm and number of units, and the means below."""
    least: dict[tuple[str, ...], float] = defaultdict(lambda: np.inf)
    cells: dict[tuple[str, ...], dict[str, list[Mapping[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cell = row["set"], row["norm"], row["units"]
        least[cell] = min(least[cell], float(row["objective"]))
        cells[cell][row["label"]].append(row)
    labels = list(dict.fromkeys(row["label"] for row in rows))
    measured = {
        cell: [_measures(of[label], least[cell]) for label in labels]
        for cell, of in cells.items()
        if all(label in of for label in labels)
    }
    head = " | ".join(f"{label}: spread % | excess % | accuracy % | s" for label in labels)
    lines = [f"| set | norm | units | {head} |", "|---|---|---|" + "---|---|---|---|" * len(labels)]
    lines += [_line(*cell, values) for cell, values in measured.items()]
    every = np.array(list(measured.values()))
    lines += [_line(name, "", "", measure(every, axis=0)) for name, measure in (("mean", np.mean), ("largest", np.max))]
    above = ", ".join(f"{label} {np.sum(of)}" for label, of in zip(labels, (every[:, :, 0] > 1.0).T, strict=True))
    return "\n".join([*lines, f"spreads above 1 %, of {len(every)}: {above}"])


def _measures(rows: list[Mapping[str, str]], least: float) -> tuple[float, float, float, float]:
    objectives, accuracies, seconds = (
        np.array([float(row[name]) for row in rows]) for name in ("objective", "accuracy", "seconds")
    )
    spread, excess = objectives.max() / objectives.min() - 1.0, objectives.mean() / least - 1.0
    return 100.0 * spread, 100.0 * excess, 100.0 * accuracies.mean(), seconds.mean()


def _line(name: str, norm: str, units: str, values: Any) -> str:
    cells = " | ".join(f"{spread:.2f} | {excess:.2f} | {acc:.1f} | {s:.3f}" for spread, excess, acc, s in values)
    return f"| {name} | {norm} | {units} | {cells} |"


if __name__ == "__main__":
    sys.exit(main())
