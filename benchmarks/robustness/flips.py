"""Certified flips on tables of categories: how many columns may change before the class does.

For every set, with a quarter of it as the test (at most 500 rows), with the table classifier and with logistic
regression on one-hot columns: accuracy; the share of rows that are classified correctly and provably stay so whichever
1, 2 or 3 columns change, and whatever they become; the median number of columns of the smallest change that is known;
the share of rows for which the answer is exact; and the CPU milliseconds of a row, attacks included::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.robustness.flips
    OMP_NUM_THREADS=1 python -m benchmarks.robustness.flips --sets mushroom splice --figure docs/flips.png
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks.common.collection import hold_out
from benchmarks.common.figures import legend_below, plt, save, tidy
from benchmarks.common.study import make_parser, run
from benchmarks.common.tables import load_table
from benchmarks.robustness.classifiers import linear_model
from mopn.estimators import TableClassifier
from mopn.explain import certified_flips
from mopn.explain.flips import Flips

SETS = ("car", "nursery", "tic-tac-toe", "mushroom", "kr.vs.kp", "splice")
_CHANGES, _MOST_ROWS = (1, 2, 3), 500
_HEAD = f"{'set':12s} {'model':22s} columns  clean  " + "".join(f"{f'r = {r}':>7s}" for r in _CHANGES)


_Ask = Callable[[slice], Flips]
_Fit = Callable[[pd.DataFrame, np.ndarray, pd.DataFrame], tuple[_Ask, np.ndarray]]


class Answers(NamedTuple):
    """The flips of test rows, whether these are classified correctly, the number of columns, and milliseconds a row."""

    flips: Flips
    right: np.ndarray
    columns: int
    ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("robustness.flips", __doc__, sets=SETS)
    parser.add_argument("--figure", type=Path, help="draw a figure into this file instead of the table")
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> None:
    if options.figure:
        _draw(options.sets, options.data, options.figure)
        return
    print(f"{_HEAD}  change  exact  ms a row")
    for name in options.sets:
        for model, found in _of_set(name, options.data).items():
            print(f"{name:12s} {model:22s} {_line(found)}", flush=True)


def _of_set(name: str, folder: str) -> dict[str, Answers]:
    table = load_table(name, folder)
    X = table.X.astype(object).where(table.X.notna(), "?")  # missing is a level as others are
    return {model: answers(fit, *hold_out(X, table.y, 0)) for model, fit in _MODELS.items()}


def answers(fit: _Fit, X: pd.DataFrame, X_test: pd.DataFrame, y: np.ndarray, y_test: np.ndarray) -> Answers:
    """Return the flips of a model of a table whose columns are all of levels."""
    X_test, y_test = X_test[:_MOST_ROWS], y_test[:_MOST_ROWS]
    ask, predicted = fit(X, y, X_test)
    ask(slice(2))  # compiles
    began = time.process_time()
    flips = ask(slice(None))
    return Answers(flips, predicted == y_test, X.shape[1], 1e3 * (time.process_time() - began) / len(y_test))


def _shares(found: Answers, changes: Iterable[int]) -> np.ndarray:
    """Return the percentages of rows that stay right under a number of changes."""
    return 100 * np.mean([found.right & (found.flips.proven >= r) for r in changes], axis=1)


def _line(found: Answers) -> str:
    proven, counts = found.flips.proven, found.flips.found
    exact = np.mean((counts == proven + 1) | (proven == found.columns))
    shares = "".join(f"{share:7.1f}" for share in _shares(found, _CHANGES))
    clean = 100 * found.right.mean()
    return f"{found.columns:7d}  {clean:5.1f}  {shares}  {np.median(counts):6.0f}  {100 * exact:5.1f}  {found.ms:8.2f}"


def _draw(sets: Sequence[str], folder: str, path: Path) -> None:
    """Draw the accuracy against the number of columns that change, a panel for every set."""
    figure, axes = plt.subplots(1, len(sets), figsize=(3.6 * len(sets), 3.0), layout="constrained", squeeze=False)
    changes = range(7)
    for ax, name in zip(axes[0], sets, strict=True):
        for (model, found), color in zip(_of_set(name, folder).items(), ("#1b6ca8", "#7a7a7a"), strict=True):
            ax.plot(changes, _shares(found, changes), "o-", ms=4, color=color, label=model)
        ax.set_title(f"{name}: {found.columns} columns", fontsize=10)
        ax.set(xlabel="columns that change", ylim=(0, 101))
        tidy(ax)
    axes[0, 0].set_ylabel("accuracy, proven (%)")
    legend_below(figure, *axes[0, 0].get_legend_handles_labels(), 2, fontsize=9)
    save(figure, path, dpi=100)


def _network(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame) -> tuple[_Ask, np.ndarray]:
    """Return the table classifier's flips of some test rows, and its predictions."""
    model = TableClassifier().fit(X, y)
    return lambda rows: certified_flips(model, X_test[rows]), model.predict(X_test)


def _logistic(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame) -> tuple[_Ask, np.ndarray]:
    """Return the flips of logistic regression on one-hot columns."""
    levels = pd.concat([X, X_test]).astype("category")
    hot = pd.get_dummies(levels, dtype=float)
    groups = np.split(np.arange(hot.shape[1]), np.cumsum([levels[name].nunique() for name in levels])[:-1])
    Z, Z_test = hot.to_numpy()[: len(X)], hot.to_numpy()[len(X) :]
    model = linear_model(LogisticRegression(max_iter=5000), Z, y)
    return lambda rows: certified_flips(model, Z_test[rows], one_hot=groups), model.predict(Z_test)


_MODELS: dict[str, _Fit] = {"table classifier": _network, "logistic regression": _logistic}

if __name__ == "__main__":
    sys.exit(main())
