"""Certified radii on handwritten digits: accuracy under any change of a given size, proven, against attacks.

Prints, for changes in the l2 and the l-infinity norm, the share of test images that are classified correctly and stay
so within a radius: the proven share, and the share left by an attack. Then the median distance to another class
found; the share of the squared changes that fall on pixels which are nearly always blank, of a deviation below
1; by how much the distance exceeds the proven radius, in the median and at most; and the time for 10,000 rows::

    OMP_NUM_THREADS=1 python -m benchmarks.robustness
    OMP_NUM_THREADS=1 python -m benchmarks.robustness --figure docs/robustness.png

Pixels are 0 to 16, images 8 x 8; a quarter is the test, means of three splits. All models but the RBF SVM are quadratic
or linear, so that `certified_radius` answers for them.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from benchmarks.common.measures import processor_seconds_of
from benchmarks.common.study import make_parser, run
from benchmarks.robustness.classifiers import ATTACKED, PROVEN, attacked_distances
from benchmarks.robustness.figure import draw
from mopn.explain import certified_radius

RADII = {"l2": (1.0, 2.0, 3.0), "linf": (0.25, 0.5, 1.0)}
_ORDERS = {"l2": 2, "linf": np.inf}
_MANY = 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("robustness", __doc__, data=False)
    parser.add_argument("--splits", type=int, default=3, help="number of random splits (default 3)")
    parser.add_argument("--models", nargs="+", choices=[*PROVEN, *ATTACKED], default=[*PROVEN, *ATTACKED])
    parser.add_argument("--figure", type=Path, help="draw the figure of the page into this file instead")
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    if options.figure:
        draw(_split(0), options.figure)
        return 0
    for norm, radii in RADII.items():
        print(f"{norm}: accuracy in %, and that within a radius: proven - not broken by the attack")
        print(f"{'':36s} clean  " + "  ".join(f"{f'r = {r:g}':>11s}" for r in radii) + "  radius  blank  bracket")
        for name in options.models:
            cells = [_cell(name, norm, split) for split in range(options.splits)]
            if cells[0] is not None:
                print(_line(name, np.mean(cells, axis=0)))
        print()
    print(f"seconds of the processor for {_MANY:,} rows, attacks included")
    for name in options.models:
        if name in PROVEN:
            print(f"{name:36s} " + "  ".join(f"{norm} {_seconds(name, norm):.2f}" for norm in RADII))
    return 0


def _split(seed: int) -> list[np.ndarray]:
    return train_test_split(*load_digits(return_X_y=True), random_state=seed)


@cache
def _fitted(name: str, seed: int) -> Any:
    X_train, _, y_train, _ = _split(seed)
    return (PROVEN | ATTACKED)[name](X_train, y_train)


def _cell(name: str, norm: str, split: int) -> np.ndarray | None:
    """Return accuracy, accuracies within the radii, proven and attacked, and what follows them in a line."""
    X_train, X_test, _, y_test = _split(split)
    model = _fitted(name, split)
    if name in ATTACKED:
        if norm != "l2":
            return None
        proven, reached, share = np.full(len(X_test), np.nan), attacked_distances(model, X_test), np.nan
    else:
        proven, attack = certified_radius(model, X_test, norm, return_attack=True)
        changes = np.nan_to_num(attack - X_test)
        share = np.sum(changes[:, X_train.std(axis=0) < 1.0] ** 2) / np.sum(changes**2)
        reached = np.linalg.norm(attack - X_test, ord=_ORDERS[norm], axis=1)
        reached[np.isnan(reached)] = np.inf
    right = model.predict(X_test) == y_test
    within = [np.mean(right & (far > r)) for r in RADII[norm] for far in (proven, reached)]
    excess = reached / proven - 1.0
    return np.array([right.mean(), *within, np.median(reached), share, np.median(excess), np.max(excess)])


def _line(name: str, values: np.ndarray) -> str:
    clean, *within, distance, share, median, widest = values
    pairs = zip(within[::2], within[1::2], strict=True)
    attacked = name in ATTACKED
    texts = [f"{'?' if attacked else f'{100 * low:.1f}'} - {100 * high:.1f}" for low, high in pairs]
    last = "" if attacked else f"{100 * share:4.0f}%  {median:.0e}, {widest:.0e}"
    return f"{name:36s} {100 * clean:5.1f}  " + "  ".join(f"{t:>11s}" for t in texts) + f"  {distance:6.2f}  {last}"


def _seconds(name: str, norm: str) -> float:
    model, X_test = _fitted(name, 0), _split(0)[1]
    rows = np.resize(X_test, (_MANY, X_test.shape[1]))
    return processor_seconds_of(lambda: certified_radius(model, rows, norm, return_attack=True))[0]


if __name__ == "__main__":
    sys.exit(main())
