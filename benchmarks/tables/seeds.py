"""How much a model's effects depend on a seed: fits with ten seeds, and fits to the same rows in ten orders.

The partial dependences (Friedman, 2001) of every fit are computed: the mean, over rows, of the probabilities of classes
or of the numbers, with one column set to each of some values, minus its mean over these. Their spread is the root of
their mean squared deviation over the fits, relative to the root of the mean square of their means; the deviation of the
predictions likewise. So 0 % is a model that says the same whatever the seed.
Prints a table of spreads::

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables.seeds --data FOLDER
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run
from benchmarks.common.tables import TABLES
from benchmarks.tables.fits import table_of
from benchmarks.tables.methods import METHODS
from benchmarks.tables.report import markdown

_SETS, _QUICK_SETS = ["titanic-passengers", "iris"], ["iris"]
FITS, _QUICK_FITS = 10, 2
# Values of a column, and rows over which outputs are averaged.
_GRID, _ROWS = 10, 100
_KEY = ["set", "method"]
_SPREADS = ["curves_seeds", "predictions_seeds", "curves_orders", "predictions_orders"]
COLUMNS = [*_KEY, *_SPREADS, "fit"]


class Case(NamedTuple):
    """A method of the study, its parameters, and how its seed is called, if it has one."""

    method: str
    parameters: Mapping[str, Any] = {}
    seed: str | None = "random_state"

    def make(self, classes: bool, seed: int) -> Any:
        """Return an estimator."""
        method = METHODS[self.method]
        model = method.classifier() if classes else method.regressor()
        return model.set_params(**self.parameters, **({self.seed: seed} if self.seed else {}))


_SAMPLED = {"subsample": 0.8, "subsample_freq": 1, "colsample_bytree": 0.8}
CASES = {
    "mopn": Case("mopn", seed=None),
    "gradient boosting": Case("boosting"),
    "gradient boosting, early stopping": Case("boosting", {"early_stopping": True}),
    "LightGBM": Case("lightgbm"),
    "LightGBM, 80 % of rows and columns": Case("lightgbm", _SAMPLED),
    "EBM": Case("additive"),
}


def run_case(key: tuple[str, str], folder: str, fits: int) -> dict[str, Any]:
    """Return the row of a set and a case: spreads over seeds and over orders of the rows, and mean CPU seconds."""
    X, y, m = table_of(key[0], folder)
    make = partial(CASES[key[1]].make, m > 0)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:_ROWS]
    orders = [rng.permutation(len(y)) for _ in range(fits)]
    row, seconds = _key(key), []
    for kind, runs in (
        ("seeds", [(seed, np.arange(len(y))) for seed in range(fits)]),
        ("orders", [(0, order) for order in orders]),
    ):
        curves, predictions = [], []
        for seed, order in runs:
            began = thread_time()
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make(seed).fit(X.iloc[order], y[order])
                seconds.append(thread_time() - began)
                outputs = partial(_outputs, model, m > 0)
                curves.append(_curves(outputs, X, rows))
                predictions.append(outputs(X))
        centred = np.array(predictions) - np.mean(predictions, axis=1, keepdims=True)
        row |= {f"curves_{kind}": f"{spread(np.array(curves)):.4g}", f"predictions_{kind}": f"{spread(centred):.4g}"}
    return row | {"fit": f"{np.mean(seconds):.4g}"}


def spread(values: np.ndarray) -> float:
    """Return the root mean squared deviation of values (fits, ...) over fits, relative to the size of their means."""
    return float(np.sqrt(values.var(axis=0).mean() / np.mean(values.mean(axis=0) ** 2)))


def _outputs(model: Any, classes: bool, X: pd.DataFrame) -> np.ndarray:
    """Return the probabilities (n, m), or numbers (n, 1)."""
    return np.asarray(model.predict_proba(X)) if classes else np.asarray(model.predict(X)).reshape(len(X), 1)


def _curves(outputs: Callable[[pd.DataFrame], np.ndarray], X: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    """Return the partial dependences of all columns one after the other, each of mean 0, (values of all columns, m)."""
    chosen, curves = X.iloc[rows], []
    for name in X:
        values = _values(X[name])
        repeated = chosen.loc[chosen.index.repeat(len(values))].copy()
        tiled = np.tile(values, len(chosen))
        repeated[name] = tiled if X[name].dtype != "category" else pd.Categorical(tiled, dtype=X[name].dtype)
        curve = outputs(repeated).reshape(len(chosen), len(values), -1).mean(axis=0)
        curves.append(curve - curve.mean(axis=0))
    return np.concatenate(curves)


def _values(column: pd.Series) -> np.ndarray:
    """Return levels, or quantiles of numbers."""
    present = column.dropna()
    if column.dtype == "category":
        return present.value_counts().index[:_GRID].to_numpy()
    return np.unique(np.quantile(present, np.linspace(0.05, 0.95, _GRID)))


# -- program -----------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("tables.seeds", __doc__, sets=TABLES, results="tables-seeds")
    parser.set_defaults(sets=_SETS)
    add_restart_options(parser, f"{_QUICK_FITS} fits to {', '.join(_QUICK_SETS)}")
    return run(parser, _program, arguments)


def _program(options: argparse.Namespace) -> int:
    store, failures = Store(out_folder(options) / "spreads.csv", COLUMNS, _KEY), 0
    if not options.report:
        sets, fits = (_QUICK_SETS, _QUICK_FITS) if options.quick else (options.sets, FITS)
        check(TABLES, sets, options.data)
        keys = [(name, case) for name in sets for case in CASES if METHODS[CASES[case].method].is_installed]
        make_row = partial(run_case, folder=options.data, fits=fits)
        failures = fill(store, keys, _key, make_row, "{set}, {method}: {fit} s")
    head = ["set", "", "seeds: curves", "predictions", "orders: curves", "predictions", "a fit, s"]
    rows = [
        [row["set"], row["method"], *(f"{float(row[name]):.2%}" for name in _SPREADS), f"{float(row['fit']):.2f}"]
        for row in store.rows()
    ]
    print("\n" + markdown(head, rows))
    return failures


def _key(values: tuple[str, str]) -> dict[str, str]:
    return dict(zip(_KEY, values, strict=True))


if __name__ == "__main__":
    sys.exit(main())
