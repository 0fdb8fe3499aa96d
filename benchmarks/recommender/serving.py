"""CPU time of what users ask of a fitted recommender: the best of many items, and a place for a new user.

Models with random coefficients, one-hot users and items, and a user of one feature: ``mopn.ranking.Ranker`` made once,
the best ten items by it, and the predictions of all joined rows. New users are folded in from twenty ratings, into
models fitted to 5,000 drawn ratings. Milliseconds of the processor, medians of all runs::

    OMP_NUM_THREADS=1 python -m benchmarks.recommender.serving
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

import mopn
from benchmarks.common.measures import processor_seconds_of
from benchmarks.common.printing import Table
from benchmarks.common.study import make_parser, run
from mopn.estimators import FactorizationMachineRegressor, MultiOutputFMRegressor, OrdinalFMRegressor
from mopn.ranking import Ranker

_USERS, _FILMS, _ROWS, _NEW, _LEVELS = 500, 200, 5000, 20, 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("recommender.serving", __doc__, data=False)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--units", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=50)
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print both tables."""
    rng = np.random.default_rng(0)
    table = Table(f"{args.items} items and {args.units} units:30s, once:9.1f ms, a user:7.2f ms, joined rows:12.1f ms")
    user, items, joined = _rows(args.items)
    for name, model in _models(args.items, args.units, rng).items():
        ranker = Ranker(model, items)
        calls = partial(Ranker, model, items), partial(ranker.rank, user, 10), partial(model.predict, joined)
        once, each, rows = (_milliseconds(call, times) for call, times in zip(calls, (3, args.repeats, 3), strict=True))
        table.row(name, once, each, rows)
    print()
    table = Table(f"a new user of {_NEW} ratings:46s, time:7.2f ms")
    for name, fitted, new in _estimators(args.units, rng):
        table.row(name, _milliseconds(partial(fitted.fold_in, *new), args.repeats))


def _milliseconds(call: Callable[[], Any], repeats: int) -> float:
    """Return the median of the milliseconds of the processor that a call takes."""
    return 1e3 * float(np.median(processor_seconds_of(call, repeats)))


def _rows(n: int) -> tuple[sparse.csr_array, sparse.csr_array, sparse.csr_array]:
    """Return the row of a user, the rows of n items, and the rows of both."""
    d = _USERS + n
    user = sparse.csr_array((np.ones(1), ([0], [0])), shape=(1, d))
    items = sparse.csr_array((np.ones(n), (np.arange(n), _USERS + np.arange(n))), shape=(n, d))
    return user, items, sparse.csr_array(items + sparse.csr_array(np.ones((n, 1))) @ user)


def _models(n: int, units: int, rng: np.random.Generator) -> dict[str, mopn.Model | mopn.FactorizationModel]:
    """Return a model of one output, and one of ordered levels."""
    d, m = _USERS + n, _LEVELS - 1
    factors = 0.5 * rng.standard_normal((units, d))
    levels = mopn.Model(
        factors, rng.standard_normal((units, m)), "anova", linear=rng.standard_normal((m, 1 + d)),
        link="logistic", classes=np.arange(1.0, _LEVELS + 1), target="ordinal",
    )  # fmt: skip
    one = mopn.FactorizationModel(factors[None], degree=2, lams=np.ones(units), w=rng.standard_normal(d))
    return {"one output": one, f"expected of {_LEVELS} levels": levels}


def _estimators(units: int, rng: np.random.Generator) -> list[tuple[str, Any, tuple[Any, np.ndarray]]]:
    """Return estimators fitted to drawn ratings, and the ratings of a new user."""
    users, films = rng.integers(0, _USERS, _ROWS), rng.integers(0, _FILMS, _ROWS)
    taste, style = rng.standard_normal((_USERS, 2)), rng.standard_normal((_FILMS, 2))
    y = np.clip(np.round(3 + (taste[users] * style[films]).sum(axis=1)), 1, _LEVELS)
    one_hot = np.arange(0, 2 * _ROWS + 1, 2)
    columns = np.column_stack([users, _USERS + films]).ravel()
    X = sparse.csr_array((np.ones(2 * _ROWS), columns, one_hot), shape=(_ROWS, _USERS + _FILMS))
    seen = sparse.csr_array((np.ones(_NEW), (np.arange(_NEW), _USERS + np.arange(_NEW))), shape=(_NEW, X.shape[1]))
    new = seen, rng.permutation(y)[:_NEW]
    estimators = (
        OrdinalFMRegressor(max_units=units),
        MultiOutputFMRegressor(max_units=units),
        FactorizationMachineRegressor(n_components=units, random_state=0, max_iter=50),
        FactorizationMachineRegressor(n_components=units, random_state=0, max_iter=50, degree=3),
    )
    return [(f"{type(e).__name__}{' of degree 3' * (i == 3)}", e.fit(X, y), new) for i, e in enumerate(estimators)]


if __name__ == "__main__":
    sys.exit(main())
