"""Figures 1 to 4 of Blondel et al., Higher-Order Factorization Machines (NIPS 2016): solvers, and epochs by degree.

Equation 10 of the paper, sum_s A^m(p_s, x) with m - 1 dummies under the squared loss, on the pairs that the link
prediction study learns from: the objective against the time for m = 2, 3, 4 by coordinate descent, L-BFGS and AdaGrad
from the same start, and the time of an epoch for m = 2, ..., 10. An epoch of coordinate descent minimises along every
coordinate once, one of AdaGrad takes a step for every sample, and one of L-BFGS is an evaluation of the objective with
its gradient. Exponents are slopes of log(time) against log(m); those "an entry" are of the time divided by the number
of entries of all samples, as with m - 1 dummies short rows grow with m themselves. AdaGrad has the step size that is
best after a few epochs; the others are printed.

``curves.csv`` and ``epochs.csv`` in ``--out`` hold the finished measurements; the plot is ``higher_order.png``::

    OMP_NUM_THREADS=1 python -m benchmarks.links.higher_order --data FOLDER --out results/higher_order
"""

import argparse
import sys
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter
from scipy import sparse

import mopn
from benchmarks.common.figures import legend_below, plt, save, tidy
from benchmarks.common.measures import seconds_of
from benchmarks.common.sources import check
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run
from benchmarks.links.data import GRAPHS, load, scaled, split
from benchmarks.links.prediction import PLANS
from mopn.solvers import LBFGS, AdaGrad, CoordinateDescent

# The paper's strength, which averages the losses, is 0.1. On rows of unit length nothing is left of P there; these are
# the strengths that link prediction chooses for degrees 2 and 3.
BETAS = {"nips": 1e-4, "movielens": 1e-3, "gene-disease": 1e-4, "ion-channels": 1e-3}
# Seconds a curve.
TIMES = {"nips": 60.0, "movielens": 10.0, "gene-disease": 60.0, "ion-channels": 10.0}
DEGREES, EPOCH_DEGREES = (2, 3, 4), tuple(range(2, 11))
STEPS = (1.0, 0.1, 0.01, 0.001)
_TRIAL_EPOCHS = 3
# Timed epochs; the fastest one counts.
_REPEATS = 3
# Exponents are fitted from this degree on too: what does not depend on the degree weighs less there.
_HIGH = 5
SOLVERS = {"cd": ("coordinate descent", "#0072B2"), "lbfgs": ("L-BFGS", "#D55E00"), "adagrad": ("AdaGrad", "#009E73")}

_CURVE_KEY = ["set", "degree", "solver", "step", "k", "share", "beta", "seconds"]
_CURVE_COLUMNS = [*_CURVE_KEY, "pairs", "times", "funs"]
_EPOCH_KEY = ["set", "degree", "solver", "k", "share"]
_EPOCH_COLUMNS = [*_EPOCH_KEY, "entries", "epoch"]
Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("links.higher_order", __doc__, sets=BETAS, results="higher_order")
    add_restart_options(parser, "few units and links, few seconds a curve")
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    out, failures = out_folder(options), 0
    curves = Store(out / "curves.csv", _CURVE_COLUMNS, _CURVE_KEY)
    epochs = Store(out / "epochs.csv", _EPOCH_COLUMNS, _EPOCH_KEY)
    if not options.report:
        check(GRAPHS, options.sets, options.data)
        for name in options.sets:
            failures += _measure(name, options, curves, epochs)
    print(report(curves.rows(), epochs.rows()) or "no results yet")
    if draw(curves.rows(), epochs.rows(), out / "higher_order.png"):
        print(f"\nwritten: {out / 'higher_order.png'}")
    return failures


# -- measurements ------------------------------------------------------------------------------------------------------


def _measure(name: str, options: argparse.Namespace, curves: Store, epochs: Store) -> int:
    """Measure the missing rows of a graph; return how many measurements failed."""
    k, share = (4, 0.05) if options.quick else (30, 0.5)
    base = {"set": name, "k": k, "share": share}
    degrees = EPOCH_DEGREES[::4] if options.quick else EPOCH_DEGREES
    wanted: list[Row] = [base | {"degree": degree, "solver": solver} for degree in degrees for solver in SOLVERS]
    failures = fill(epochs, wanted, dict, partial(_epoch_row, folder=options.data), "{set}, degree {degree}, {solver}")
    base |= {"beta": f"{BETAS[name]:g}", "seconds": f"{0.5 if options.quick else TIMES[name]:g}"}
    # Trials come before the run that takes the best of their steps.
    runs = [("adagrad", f"{step:g}") for step in STEPS] + [(solver, "") for solver in SOLVERS]
    wanted = [base | {"degree": degree, "solver": solver, "step": step} for degree in DEGREES for solver, step in runs]
    make_row = partial(_curve_row, curves=curves, folder=options.data)
    return failures + fill(curves, wanted, dict, make_row, "{set}, degree {degree}, {solver} {step}")


def _epoch_row(row: Row, folder: str) -> Row:
    problem = _make_problem(folder, row["set"], row["degree"], row["k"], row["share"])
    entries = problem.design.row_lines.starts[-1]
    return row | {"entries": entries, "epoch": f"{measure_epoch(problem, row['solver']):.4g}"}


def _curve_row(row: Row, curves: Store, folder: str) -> Row:
    problem = _make_problem(folder, row["set"], row["degree"], row["k"], row["share"])
    if row["step"]:
        found = run_curve(problem, _solver(row["solver"], float(row["step"])), max_iter=_TRIAL_EPOCHS)
    else:
        trials = [trial for trial in curves.rows() if _same(trial, row) and trial["step"]]
        step = [best_step(trials)] if row["solver"] == "adagrad" else []
        found = run_curve(problem, _solver(row["solver"], *step), max_time=float(row["seconds"]))
    return row | {"pairs": problem.design.shape[0]} | found


def _same(trial: Row, row: Row) -> bool:
    return all(str(trial[name]) == str(row[name]) for name in _CURVE_KEY if name != "step")


def best_step(trials: Sequence[Row]) -> float:
    """Return the step size whose trial ended with the least objective."""
    ends = {float(trial["step"]): float(trial["funs"].split()[-1]) for trial in trials}
    return min(ends, key=lambda step: (not np.isfinite(ends[step]), ends[step]))


@lru_cache(maxsize=1)
def _data(folder: str, name: str, share: float) -> tuple[sparse.csr_array, np.ndarray]:
    graph = scaled(load(name, folder), PLANS[name].scale)
    parts = split(graph, 0, share)
    return sparse.hstack(graph.rows(parts.pairs), format="csr"), parts.y


def _make_problem(folder: str, name: str, degree: int, k: int, share: float) -> mopn.FactorizationProblem:
    X, y = _data(folder, name, share)
    beta = BETAS[name] * len(y)
    return mopn.FactorizationProblem(
        X, y, degree=degree, n_components=k, fit_lower="augment", beta=beta, penalty="frobenius"
    )


def _solver(name: str, step: float = 0.1) -> mopn.solvers.Solver:
    return {"cd": CoordinateDescent(), "lbfgs": LBFGS(), "adagrad": AdaGrad(step=step)}[name]


def run_curve(problem: Any, solver: Any, **limits: Any) -> dict[str, str]:
    """Return the objective by time, of a run on code that is compiled and data that is laid out already."""
    mopn.minimize(problem, solver, tol=0.0, max_iter=1)
    result = mopn.minimize(problem, solver, tol=0.0, max_iter=limits.pop("max_iter", 10_000), **limits)
    columns = {"times": result.trace["time"], "funs": result.trace["fun"]}
    return {name: " ".join(f"{number:.6g}" for number in column) for name, column in columns.items()}


def measure_epoch(problem: Any, solver: str) -> float:
    """Return the seconds of an epoch, the least of a few from the same start."""
    x = problem.start()
    if solver == "lbfgs":
        return min(seconds_of(lambda: problem.value_gradient(x), 1 + _REPEATS))
    runs = [mopn.minimize(problem, _solver(solver, 1e-3), start=x, tol=0.0, max_iter=1) for _ in range(1 + _REPEATS)]
    return min(float(np.diff(run.trace["time"])[0]) for run in runs)


def exponent(degrees: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of log(seconds) against log(degree)."""
    return float(np.polyfit(np.log(degrees), np.log(seconds), 1)[0])


# -- report ------------------------------------------------------------------------------------------------------------


def report(curves: Sequence[Row], epochs: Sequence[Row]) -> str:
    """Return all measurements as text."""
    names = list(dict.fromkeys(row["set"] for row in [*curves, *epochs]))
    return "\n\n".join(text for name in names for text in _of_set(name, curves, epochs))


def _of_set(name: str, curves: Sequence[Row], epochs: Sequence[Row]) -> list[str]:
    texts = []
    by_degree = [(degree, _curves_of(curves, name, degree)) for degree in DEGREES]
    if any(found for _, found in by_degree):
        lines = [f"{name}: excess of the objective over the least of all solvers, after shares of the time"]
        lines.append(f"{'m':>3} {'solver':>20} {'1 %':>9} {'10 %':>9} {'100 %':>9}  epochs   end")
        for degree, found in by_degree:
            lines += _curve_lines(degree, found)
            lines += _trial_lines(curves, name, degree)
        texts.append("\n".join(lines))
    by_solver = {solver: _epochs_of(epochs, name, solver) for solver in SOLVERS}
    by_solver = {solver: times for solver, times in by_solver.items() if len(times) > 1}
    if by_solver:
        degrees = sorted(set.union(*(set(times) for times in by_solver.values())))
        lines = [f"{name}: seconds of an epoch by degree"]
        lines.append(
            f"{'':20}" + "".join(f"{degree:>9}" for degree in degrees) + f"  exponent   m >= {_HIGH}   an entry"
        )
        lines += [_epoch_line(solver, times) for solver, times in by_solver.items()]
        texts.append("\n".join(lines))
    return texts


Curve = tuple[np.ndarray, np.ndarray]


def _curves_of(curves: Sequence[Row], name: str, degree: int) -> dict[str, Curve]:
    rows = [row for row in curves if row["set"] == name and int(row["degree"]) == degree and not row["step"]]
    return {row["solver"]: (_numbers(row["times"]), _numbers(row["funs"])) for row in rows}


def _numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


def _least(found: dict[str, Curve]) -> float:
    return min(float(np.nanmin(funs)) for _, funs in found.values())


def _curve_lines(degree: int, found: dict[str, Curve]) -> list[str]:
    lines = []
    last = max((times[-1] for times, _ in found.values()), default=0.0)
    for solver, (times, funs) in found.items():
        best = np.fmin.accumulate(funs)
        places = [np.searchsorted(times, share * last, side="right") - 1 for share in (0.01, 0.1, 1.0)]
        shares = best[np.maximum(places, 0)]
        excess = "".join(f" {fun / _least(found) - 1:9.2e}" for fun in shares)
        lines.append(f"{degree:>3} {SOLVERS[solver][0]:>20}{excess}  {len(times) - 1:6d}  {funs[-1]:.6g}")
    return lines


def _trial_lines(curves: Sequence[Row], name: str, degree: int) -> list[str]:
    trials = [row for row in curves if row["set"] == name and int(row["degree"]) == degree and row["step"]]
    if not trials:
        return []
    ends = [_numbers(row["funs"])[[0, -1]] for row in trials]
    words = [
        f"{row['step']}: {end:.4g}" + (" (above the start)" if not end < start else "")
        for row, (start, end) in zip(trials, ends, strict=True)
    ]
    return [f"    AdaGrad after {_TRIAL_EPOCHS} epochs, by step size: " + ", ".join(words)]


# By degree: the seconds of an epoch, and the number of entries.
Epochs = dict[int, tuple[float, int]]


def _epochs_of(epochs: Sequence[Row], name: str, solver: str) -> Epochs:
    rows = [row for row in epochs if row["set"] == name and row["solver"] == solver]
    return {int(row["degree"]): (float(row["epoch"]), int(row["entries"])) for row in rows}


def _epoch_line(solver: str, times: Epochs) -> str:
    degrees = sorted(times)
    high = [degree for degree in degrees if degree >= _HIGH]
    exponents = [
        exponent(degrees, [times[degree][0] for degree in degrees]),
        exponent(high, [times[degree][0] for degree in high]) if len(high) > 1 else np.nan,
        exponent(degrees, [times[degree][0] / times[degree][1] for degree in degrees]),
    ]
    seconds = "".join(f"{times[degree][0]:>9.2g}" for degree in degrees)
    return f"{SOLVERS[solver][0]:20}{seconds}" + "".join(f"{value:>10.2f}" for value in exponents)


def draw(curves: Sequence[Row], epochs: Sequence[Row], path: Path) -> bool:
    """Draw a row a graph: objective by time for each degree, and epochs by degree; return whether there was any."""
    names = list(dict.fromkeys(row["set"] for row in [*curves, *epochs]))
    if not names:
        return False
    columns = len(DEGREES) + 1
    fig, axes = plt.subplots(
        len(names), columns, figsize=(3.4 * columns, 2.7 * len(names)), layout="constrained", squeeze=False
    )
    for row, name in zip(axes, names, strict=True):
        for ax, degree in zip(row, DEGREES, strict=False):
            _draw_curves(ax, _curves_of(curves, name, degree))
            ax.set_title(f"{name}, m = {degree}", fontsize=10)
        _draw_epochs(row[-1], {solver: _epochs_of(epochs, name, solver) for solver in SOLVERS})
        row[-1].set_title(f"{name}, time of an epoch", fontsize=10)
        row[0].set_ylabel("excess over the least of all")
        row[-1].set_ylabel("seconds")
    for ax in axes[-1, :-1]:
        ax.set_xlabel("time (s)")
    axes[-1, -1].set_xlabel("degree m")
    handles = [plt.Line2D([], [], color=color, linewidth=1.7) for _, color in SOLVERS.values()]
    labels = [label for label, _ in SOLVERS.values()]
    legend_below(fig, handles, labels, 3)
    save(fig, path, dpi=110)
    return True


def _draw_curves(ax: Any, found: dict[str, Curve]) -> None:
    for solver, (times, funs) in found.items():
        # The least is the end of a run, whose own way to it says nothing: it is drawn as far as half of its time.
        is_reference = np.nanmin(funs) == _least(found)
        excess = np.fmin.accumulate(funs) / _least(found) - 1.0
        # The least itself, 0, and the start at time 0 have no place on logarithmic axes.
        shown = (excess > 0.0) & (times > 0.0) & (times <= times[-1] * (0.5 if is_reference else 1.0))
        ax.loglog(times[shown], excess[shown], color=SOLVERS[solver][1], linewidth=1.7)
    if found:
        # Values below say only which run is the last to end.
        ax.set_ylim(bottom=1e-4)
    _tidy(ax)


def _draw_epochs(ax: Any, by_solver: dict[str, Epochs]) -> None:
    for solver, times in by_solver.items():
        degrees = sorted(times)
        ax.plot(degrees, [times[m][0] for m in degrees], "o-", color=SOLVERS[solver][1], linewidth=1.7, markersize=3.5)
    ax.set_ylim(bottom=0)
    _tidy(ax)


def _tidy(ax: Any) -> None:
    tidy(ax)
    if ax.get_xscale() == "log":
        ax.xaxis.set_major_locator(LogLocator(numticks=6))
        ax.xaxis.set_minor_formatter(NullFormatter())


if __name__ == "__main__":
    sys.exit(main())
