"""Refits of the output layer alone and of both layers, by the number of units: Figure 5 of the paper.

Objective (excess over the least of both curves, relative) and test accuracy against the units; logistic loss, l1/l2,
[1, x], split 0. Every round adds the one unit that the oracle ``refine`` finds, up to 50 (letter: 100). The strength,
0.1, multiplies the norm next to the *sum* of the losses over the samples, as the paper's F is a sum. A network may hold
fewer units than rounds were made, as refits drop and merge units; of several networks with as many units the last one
counts::

    OMP_NUM_THREADS=1 python -m benchmarks.multiclass.refits --data FOLDER --out results/refits
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import mopn
from benchmarks.common.datasets import DATA_SETS, Split, load, split
from benchmarks.common.figures import legend_below, plt, save, tidy
from benchmarks.common.study import make_parser, out_folder, run

REFITS = {"output": ("the output layer", "#D55E00", (0, (4, 1.5))), "full": ("both layers", "#0072B2", "solid")}
_STRENGTH = 0.1
_UNITS = (5, 10, 20, 30, 50, 100)

# By number of units: objective, test accuracy and seconds since the start.
Curve = dict[int, tuple[float, float, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("multiclass.refits", __doc__, sets=DATA_SETS, results="refits")
    parser.add_argument("--max-units", type=int, help="default 50, for letter 100")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print a table a set, and write the plot."""
    out = out_folder(args)
    out.mkdir(parents=True, exist_ok=True)
    fig, axes = plt.subplots(
        2, len(args.sets), figsize=(3.5 * len(args.sets), 5.6), layout="constrained", squeeze=False, sharex="col"
    )
    for column, name in zip(axes.T, args.sets, strict=True):
        data = split(*load(name, args.data), 0)
        max_units = args.max_units or (100 if name == "letter" else 50)
        curves = {refit: grow(data, refit, max_units) for refit in REFITS}
        print_table(name, curves, max_units)
        draw(column, name, curves)
    axes[0, 0].set_ylabel("excess over the least of both, relative")
    axes[1, 0].set_ylabel("test accuracy (%), one split")
    legend_below(fig, *axes[0, 0].get_legend_handles_labels(), 2)
    save(fig, out / "refits.png")
    print(f"\nwritten: {out / 'refits.png'}")


def grow(data: Split, refit: str, max_units: int) -> Curve:
    """Fit a unit a round."""
    problem = mopn.NetworkProblem(data.X_train, data.y_train, norm="l1/l2", strength=_STRENGTH, augment=True)
    solver = mopn.solvers.ConditionalGradient(
        refit=refit, atoms_per_round=1, oracle="refine", max_units=max_units, schedule="fill"
    )
    curve: Curve = {}

    def record(intermediate_result: mopn.Result) -> None:
        result = intermediate_result
        accuracy = float(np.mean(mopn.Model.from_result(problem, result).predict(data.X_test) == data.y_test))
        curve[len(result.basis)] = result.fun, accuracy, result.time

    # Refits aim at ever smaller gaps, down to the tolerance.
    mopn.minimize(problem, solver, tol=1e-3, max_iter=max_units, callback=record)
    del curve[0]
    return curve


def print_table(name: str, curves: dict[str, Curve], max_units: int) -> None:
    """Print both refits at a few numbers of units: the last network that held at most this number."""
    titles = "".join(f"{f'refits of {label}':>44s}" for label, _, _ in REFITS.values())
    print(f"\n{name:9s}{titles}\nat most  " + "   held     objective   accuracy        time" * len(curves))
    for most in (count for count in _UNITS if count <= max_units):
        print(f"{most:7d}  ", end="")
        for curve in curves.values():
            held = max(units for units in curve if units <= most)
            fun, accuracy, seconds = curve[held]
            print(f"{held:7d} {fun:13.3f} {100 * accuracy:10.2f} {seconds:9.2f} s", end="")
        print(flush=True)


def draw(axes: Any, name: str, curves: dict[str, Curve]) -> None:
    """Draw the objective, relative to the least of both, above the accuracy."""
    least = min(fun for curve in curves.values() for fun, _, _ in curve.values())
    for refit, curve in curves.items():
        label, color, line = REFITS[refit]
        units = np.array(sorted(curve))
        fun, accuracy, _ = np.array([curve[count] for count in units]).T
        style = {"color": color, "linestyle": line, "linewidth": 1.7, "label": f"refits of {label}"}
        # The least itself, 0, has no place on a logarithmic axis.
        above = fun > least
        axes[0].plot(units[above], fun[above] / least - 1.0, **style)
        axes[1].plot(units, 100 * accuracy, **style)
    axes[0].set_yscale("log")
    axes[0].set_title(f"{name}, strength {_STRENGTH}, split 0", fontsize=11)
    axes[1].set_xlabel("units")
    # The first units say little, and would flatten the rest of the figure.
    ends = [100 * accuracy for curve in curves.values() for units, (_, accuracy, _) in curve.items() if units > 4]
    if ends:
        axes[1].set_ylim(min(ends) - 1.0, max(ends) + 1.0)
    for ax in axes:
        ax.set_xlim(0, max(max(curve) for curve in curves.values()))
        tidy(ax)


if __name__ == "__main__":
    sys.exit(main())
