"""Performance profiles: the time to a proven gap of the three refits of conditional gradient, over many real problems.

Every set of the collection that is in the data folder, and iris, which scikit-learn holds; a stratified draw of at most
``--rows`` rows, every feature divided by its largest modulus. Logistic loss, [1, x], three norms, two fractions of the
smallest strength whose solution is zero, exact oracles. A solver runs once a problem, to the last level of the
certified relative gap or the limit of time, whichever comes first: the times to the other levels are read off its
trace. ``--from-csv`` draws the times of a file again::

    OMP_NUM_THREADS=1 python -m benchmarks.certificates.profiles --data FOLDER
"""

import argparse
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

import mopn
from benchmarks.certificates.profile_figure import LEVELS, draw, level_column, summary
from benchmarks.common import NORMS
from benchmarks.common.collection import COLLECTION, load_raw
from benchmarks.common.sources import MissingDataError, check
from benchmarks.common.store import Store
from benchmarks.common.study import fill, make_parser, out_folder, run

SETS = (*COLLECTION, "iris")
# What ``refit`` of conditional gradient is, by the name that tables and curves have.
REFITS = {"both layers": "full", "output layer": "output", "plain steps": "none"}
RATIOS = (0.2, 0.02)
KEY = ("set", "norm", "ratio", "solver", "rows", "max_time")
COLUMNS = (*KEY, "n", "features", "classes", *map(level_column, LEVELS), "gap", "seconds", "status")


class Fit(NamedTuple):
    """A solver on a problem, the largest number of rows, and the limit of seconds."""

    set: str
    norm: str
    ratio: float
    solver: str
    rows: int
    max_time: float
    folder: str

    def key(self) -> dict[str, Any]:
        """Return the columns of its key."""
        return {name: getattr(self, name) for name in KEY}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("certificates.profiles", __doc__, sets=SETS, results="profiles")
    parser.add_argument("--norms", nargs="+", choices=NORMS, default=list(NORMS), help="default: all three")
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS), help="strengths, as mopn.Ratio")
    parser.add_argument("--rows", type=int, default=1000, help="largest number of rows a set (default 1000)")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds a fit (default 20)")
    parser.add_argument("--from-csv", type=Path, metavar="FILE", help="fit nothing: report and draw this file's times")
    parser.epilog = "A run may be stopped at any time; the same command goes on from there."
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> int:
    """Make the rows that are missing, print the summary, and write the plot."""
    out, failures = out_folder(args), 0
    store = Store(args.from_csv or out / "times.csv", COLUMNS, KEY)
    rows = store.rows()
    if args.from_csv and not rows:
        raise MissingDataError(f"there are no times in {str(args.from_csv)!r}")
    if not args.from_csv:
        fits = wanted(args)
        _warm_up(args.norms)
        failures = fill(store, fits, Fit.key, make_row, "{set} {norm} {ratio} {solver}: {gap} {seconds:.2f} s {status}")
        keys = {store.key_of(fit.key()) for fit in fits}
        rows = [row for row in store.rows() if store.key_of(row) in keys]
    print(summary(rows, list(REFITS)))
    out.mkdir(parents=True, exist_ok=True)
    draw(rows, list(REFITS), out / "profiles.png")
    print(f"\nwritten: {out / 'profiles.png'}")
    return failures


# -- fits --------------------------------------------------------------------------------------------------------------


def wanted(args: argparse.Namespace) -> list[Fit]:
    """Return all fits on the sets that are there, and say which are not."""
    names = [name for name in args.sets if _is_there(name, args.data)]
    return [
        Fit(name, norm, ratio, solver, args.rows, args.max_time, args.data)
        for name in names
        for norm in args.norms
        for ratio in args.ratios
        for solver in REFITS
    ]


def _is_there(name: str, folder: str) -> bool:
    try:
        check(COLLECTION, [name] if name in COLLECTION else [], folder)
    except MissingDataError as error:
        print(f"left out: {error}")
        return False
    return True


def make_row(fit: Fit) -> dict[str, Any]:
    """Fit to the last level, and read the times to all levels off the trace."""
    X, y = samples(fit.set, fit.folder, fit.rows)
    strength = _strength(fit.set, fit.folder, fit.rows, fit.norm, fit.ratio)
    result = _fit(X, y, fit.norm, strength, REFITS[fit.solver], fit.max_time)
    times = {level_column(level): time_to(result.trace, level) for level in LEVELS}
    sizes = {"n": len(X), "features": X.shape[1], "classes": int(y.max()) + 1}
    gap = f"{result.gap / result.fun:.2e}"
    return fit.key() | sizes | times | {"gap": gap, "seconds": result.time, "status": result.status.name}


def _fit(X: np.ndarray, y: np.ndarray, norm: str, strength: float, refit: str, max_time: float) -> mopn.Result:
    problem = mopn.NetworkProblem(X, y, norm=norm, strength=strength, augment=True)
    solver = mopn.solvers.ConditionalGradient(refit=refit, oracle="exact")
    return mopn.minimize(problem, solver, tol=min(LEVELS), max_iter=sys.maxsize, max_time=max_time)


def time_to(trace: mopn.solvers.Trace, level: float) -> float:
    """Return the seconds until the certified relative gap was at most a tolerance, or infinity."""
    reached = np.flatnonzero(trace["gap"] <= level * np.abs(trace["fun"]))
    return float(trace["time"][reached[0]]) if len(reached) else np.inf


@lru_cache(maxsize=1)
def samples(name: str, folder: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a stratified draw of the rows, every feature within [-1, 1], and the classes."""
    X, y = load_iris(return_X_y=True) if name == "iris" else load_raw(name, folder)[:2]
    if len(X) > rows:
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=0)
    largest = np.abs(X).max(axis=0)
    return X / np.where(largest > 0, largest, 1.0), np.unique(y, return_inverse=True)[1]


@lru_cache(maxsize=2)
def _strength(name: str, folder: str, rows: int, norm: str, ratio: float) -> float:
    """Return the strength of a problem, which is searched once for all solvers."""
    X, y = samples(name, folder, rows)
    return mopn.NetworkProblem(X, y, norm=norm, strength=mopn.Ratio(ratio), augment=True).strength


def _warm_up(norms: Sequence[str]) -> None:
    """Load all code on a small problem: no time of a fit has its loading in it."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (40, 3))
    for norm in norms:
        for refit in REFITS.values():
            _fit(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0), norm, 2.0, refit, 0.1)


if __name__ == "__main__":
    sys.exit(main())
