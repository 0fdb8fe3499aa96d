"""Default fits of two classes by twenty numbers and eight categories of up to 5,000 levels, beside LightGBM's.

The levels have effects of their own and Zipf's frequencies. Prints seconds of the processor and of the clock, the area
under the ROC curve and the accuracy on 10,000 other rows, the units, and the proven gap or why there is none::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables.categories
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from benchmarks.common.printing import Table
from benchmarks.common.study import make_parser, run
from mopn.estimators import TableClassifier

TEST_ROWS = 10_000
_NUMBERS = 20
_LEVELS = 5, 8, 20, 50, 200, 800, 2000, 5000
# Exponent of the frequencies of levels.
_ZIPF = 0.8
# Size of the effects of levels, and of the noise.
_EFFECTS = 0.55
_NOISE = 0.3
# Part of the rows that stay.
_STAYING = 0.75


def customers(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table of n rows, and who stays."""
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.standard_normal(n) for j in range(_NUMBERS)}
    score = 0.8 * columns["x0"] * columns["x1"] + 0.6 * np.sin(2.0 * columns["x2"])
    for count in _LEVELS:
        frequencies = 1.0 / np.arange(1, count + 1) ** _ZIPF
        codes = rng.choice(count, n, p=frequencies / frequencies.sum())
        columns[f"c{count}"] = np.array([f"v{i}" for i in range(count)], dtype=object)[codes]
        score = score + _EFFECTS * rng.standard_normal(count)[codes]
    leaves = score + _NOISE * rng.standard_normal(n) > np.quantile(score, _STAYING)
    return pd.DataFrame(columns), np.where(leaves, "leaves", "stays")


def _as_categories(X: pd.DataFrame) -> pd.DataFrame:
    return X.astype({name: "category" for name in X if name.startswith("c")})


def _models(seconds: float) -> dict[str, Any]:
    models = {"mopn": TableClassifier(), f"mopn, max_time={seconds:g}": TableClassifier(max_time=seconds)}
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        print("without LightGBM, which is not installed")
        return models
    return models | {"LightGBM": LGBMClassifier(n_jobs=1, verbose=-1)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("tables.categories", __doc__)
    parser.add_argument("--rows", type=int, default=40_000, help="rows to train (default 40000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="limit of time of another fit (default 5)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    X, y = customers(args.rows + TEST_ROWS)
    # Categories that hardly occur, and new ones, are the point of the table.
    warnings.filterwarnings("ignore", "X has a category of its own|column '", UserWarning)
    TableClassifier().fit(X[:1000], y[:1000])  # compiled loops are loaded
    print(f"{args.rows} rows")
    table = Table("fit:20s, time:6.1f s, clock:6.1f s, AUC:.4f, accuracy:.4f, units:d, gap:8.1e, status:s")
    train = slice(args.rows)
    test = slice(args.rows, None)
    for name, model in _models(args.seconds).items():
        given = _as_categories(X) if name == "LightGBM" else X
        began, by_clock = process_time(), perf_counter()
        model.fit(given[train], y[train])
        seconds = process_time() - began, perf_counter() - by_clock
        auc = roc_auc_score(y[test] == "stays", model.predict_proba(given[test])[:, 1])
        certificate = [None, None, None]
        if isinstance(model, TableClassifier):
            certificate = [len(model.basis_), model.relative_gap_, model.status_.name]
        table.row(name, *seconds, auc, model.score(given[test], y[test]), *certificate)


if __name__ == "__main__":
    sys.exit(main())
