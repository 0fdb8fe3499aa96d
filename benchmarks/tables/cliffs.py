"""Default fits just below and just above every threshold in the encoding of tables and in the defaults of their fits.

Tables are synthetic: an effect of a code or a category, products, sums of heavy tails, or classes around centers, among
columns of noise. Prints, for either side, the means over seeds of the accuracy or R2 on 3,000 other rows, of the
seconds of the processor, of the units and of the proven gap, and the number of features; the change of the score has
the standard error of its mean over the seeds, whose tables are drawn alike on both sides::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables.cliffs
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.common.printing import Table
from benchmarks.common.study import make_parser, run
from mopn.estimators import TableClassifier, TableRegressor

TEST_ROWS = 3000
_SEEDS = 3
# Rows and columns of tables whose threshold is about something else.
_ROWS = 2250
_COLUMNS = 5
# Of codes and categories.
_EFFECTS = np.random.default_rng(99).normal(size=300)


class Samples(NamedTuple):
    """Columns, and labels as texts or numbers."""

    X: pd.DataFrame
    y: np.ndarray


class Cliff(NamedTuple):
    """A threshold: what makes n rows of a table of a size, sizes on both sides, and training rows; None: the size."""

    make: Callable[[np.random.Generator, int, int], Samples]
    below: int
    above: int
    rows: int | None = _ROWS


def _frame(*columns: np.ndarray) -> pd.DataFrame:
    X = np.column_stack(columns)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def _codes(rng: np.random.Generator, n: int, count: int, columns: int = _COLUMNS) -> Samples:
    """Make whole numbers with effects of their own, and a linear effect."""
    noise = rng.normal(size=n)
    code = (count * rng.uniform(size=n)).astype(int)
    x = rng.normal(size=(columns - 1, n)).T
    effects = _EFFECTS[:count]
    return Samples(_frame(code, x), effects[code] + 0.3 * x[:, 0] + 0.1 * noise)


def _code_columns(rng: np.random.Generator, n: int, columns: int) -> Samples:
    """Make columns of 30 codes; only the first has effects."""
    noise = rng.normal(size=n)
    codes = rng.integers(0, 30, (columns, n)).T
    return Samples(_frame(codes), _EFFECTS[codes[:, 0]] + 0.1 * noise)


def _heavy_tails(rng: np.random.Generator, n: int, columns: int) -> Samples:
    noise = rng.normal(size=n)
    x = rng.standard_t(4, size=(columns, n)).T
    return Samples(_frame(x), x[:, :4].sum(axis=1) + 0.5 * noise)


def _products(rng: np.random.Generator, n: int, columns: int) -> Samples:
    noise = rng.normal(size=n)
    x = rng.normal(size=(columns, n)).T
    return Samples(_frame(x), np.sin(2.0 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * noise)


def _rounded(rng: np.random.Generator, n: int, values: int) -> Samples:
    """Make a column of few values that are no codes, and a smooth effect of it."""
    x = (rng.integers(0, values, n) + 0.5) / values
    return Samples(_frame(x, rng.normal(size=(n, 4))), np.sin(6.0 * x) + 0.2 * rng.normal(size=n))


def _categories(rng: np.random.Generator, n: int, count: int) -> Samples:
    code = (count * rng.uniform(size=n)).astype(int)
    x = rng.normal(size=(n, 3))
    X = _frame(x).assign(kind=[f"k{c}" for c in code])
    return Samples(X, _EFFECTS[code] + x[:, 0] + 0.3 * rng.normal(size=n))


def _rare_category(rng: np.random.Generator, n: int, rare: int) -> Samples:
    """Make a category of some rows in 10,000, with an effect of its own."""
    x = rng.normal(size=(n, 3))
    u = rng.uniform(size=n)
    kind = np.where(u < rare / 10_000, "rare", np.where(u < 0.5, "one", "other"))
    return Samples(_frame(x).assign(kind=kind), 3.0 * (kind == "rare") + x[:, 0] + 0.3 * rng.normal(size=n))


def _classes(rng: np.random.Generator, n: int, classes: int, columns: int) -> Samples:
    centers = np.random.default_rng(99).normal(size=(classes, 60))[:, :columns]
    y = (classes * rng.uniform(size=n)).astype(int)
    signs = rng.choice([-1.0, 1.0], (n, 1))
    return Samples(_frame(0.45 * signs * centers[y] + rng.normal(size=(columns, n)).T), y.astype(str))


def _ten_classes(rng: np.random.Generator, n: int, columns: int) -> Samples:
    return _classes(rng, n, 10, columns)


def _more_classes(rng: np.random.Generator, n: int, classes: int) -> Samples:
    return _classes(rng, n, classes, 30)


def _of_columns(make: Callable[..., Samples], size: int) -> Callable[[np.random.Generator, int, int], Samples]:
    return lambda rng, n, _: make(rng, n, size)


CLIFFS = {
    "columns, formerly fewer curves and lower ends": Cliff(_products, 10, 11, 4500),
    "the same, heavy tails": Cliff(_heavy_tails, 10, 11),
    "rows, formerly more curves": Cliff(_of_columns(_products, 10), 3999, 4000, None),
    "rows, formerly lower ends: heavy tails": Cliff(_of_columns(_heavy_tails, 11), 1999, 2001, None),
    "columns, the last of eight curves": Cliff(_products, 28, 29),
    "columns, the last curve": Cliff(_products, 128, 129),
    "codes, a hat": Cliff(_codes, 9, 10),
    "codes, a knot for each value": Cliff(_codes, 33, 34),
    "codes, shares too small for hats": Cliff(_codes, 128, 129, 12_800),
    "codes, no hats": Cliff(_codes, 255, 256, 12_800),
    "columns of 30 codes, formerly fewer hats": Cliff(_code_columns, 4, 5),
    "columns of 30 codes, formerly no hats": Cliff(_code_columns, 8, 9),
    "rows of a code, hats fade in": Cliff(_of_columns(_codes, 30), 1400, 1440, None),
    "rows of a code, no hats": Cliff(_of_columns(_codes, 30), 700, 720, None),
    "values, one feature or curves": Cliff(_rounded, 2, 3),
    "values, a knot for each": Cliff(_rounded, 33, 34),
    "categories, sparse indicators": Cliff(_categories, 256, 257, 6000),
    "rows of a category in 10,000, rare": Cliff(_rare_category, 4, 6, 20_000),
    "columns x 9 x 10 classes, formerly shared units": Cliff(_ten_classes, 33, 34, 2000),
    "classes x 240, formerly shared units": Cliff(_more_classes, 12, 13, 2000),
    "rows, choice by one fold": Cliff(_of_columns(_products, 10), 999, 1001, None),
    "rows x 90, formerly no proof demanded": Cliff(_of_columns(_products, 10), 5500, 5600, None),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("tables.cliffs", __doc__, data=False)
    parser.add_argument("--cliffs", nargs="+", choices=list(CLIFFS), default=list(CLIFFS))
    parser.add_argument("--seeds", type=int, default=_SEEDS)
    return run(parser, _program, arguments)


def _program(options: argparse.Namespace) -> int:
    table = Table(
        "threshold:46s, size:6d, score:8.4f, change:8.4f, error:7.4f, seconds:8.2f, units:6.0f, gap:6.3f, features:8d"
    )
    for name in options.cliffs:
        cliff = CLIFFS[name]
        below = _fits(cliff, cliff.below, options.seeds)
        above = _fits(cliff, cliff.above, options.seeds)
        changes = np.array([b["score"] - a["score"] for a, b in zip(below, above, strict=True)])
        error = None if len(changes) < 2 else float(changes.std(ddof=1) / np.sqrt(len(changes)))
        for size, rows in ((cliff.below, below), (cliff.above, above)):
            means = [float(np.mean([row[key] for row in rows])) for key in ("score", "seconds", "units", "gap")]
            change = [None, None] if rows is below else [float(changes.mean()), error]
            table.row(name, size, means[0], *change, *means[1:], rows[0]["features"])
    return 0


def _fits(cliff: Cliff, size: int, seeds: int) -> list[dict[str, Any]]:
    """Return what default fits to one side of a threshold are like, for every seed."""
    return [_fit(cliff, size, seed) for seed in range(seeds)]


def _fit(cliff: Cliff, size: int, seed: int) -> dict[str, Any]:
    n = size if cliff.rows is None else cliff.rows
    test = cliff.make(np.random.default_rng([seed, 1]), TEST_ROWS, size)
    train = cliff.make(np.random.default_rng([seed, 0]), n, size)
    estimator = TableRegressor() if train.y.dtype.kind == "f" else TableClassifier()
    began = process_time()
    estimator.fit(train.X, train.y)
    return {
        "seconds": process_time() - began,
        "score": estimator.score(test.X, test.y),
        "units": len(estimator.basis_),
        "gap": estimator.relative_gap_,
        "features": estimator.encoding_.n_features,
    }


if __name__ == "__main__":
    sys.exit(main())
