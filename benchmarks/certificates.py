"""How fast fits are proven optimal: certified relative gap against time, for every norm and data set.

Logistic loss, [1, x], the training half of split 0, refits of both layers, exact oracles; ``--tol 1e-6`` asks for
more::

    OMP_NUM_THREADS=1 python -m benchmarks.certificates --data FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

import mopn
from benchmarks.datasets import DATA_SETS, load, split
from mopn.norms import NORMS
from mopn.plotting import plot_convergence


def main() -> None:
    """Print a row a fit, and write the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data", help="folder with the data sets (default ../shared/data)")
    parser.add_argument("--sets", nargs="+", default=["vowel", "segment", "satimage", "letter"], choices=DATA_SETS)
    parser.add_argument("--fractions", nargs="+", type=float, default=[0.2, 0.02], help="of strength_max")
    parser.add_argument("--tol", type=float, default=1e-4, help="relative gap to reach (default 1e-4)")
    parser.add_argument("--max-time", type=float, default=120.0, help="seconds a fit (default 120)")
    parser.add_argument("--out", type=Path, default=Path("results/certificates"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    print("set       norm     fraction  certified gap      time  rounds  units  status")
    fig, axes = plt.subplots(1, len(args.sets), figsize=(4 * len(args.sets), 3.6), layout="constrained", squeeze=False)
    for name, ax in zip(args.sets, axes[0], strict=True):
        X, y = load(name, args.data)
        runs = {}
        for norm in NORMS:
            for fraction in args.fractions:
                runs[f"{norm}, {fraction:g}"] = result = prove(
                    *_training_half(X, y), norm, fraction, args.tol, args.max_time
                )
                print(
                    f"{name:9s} {norm:8s} {fraction:8g} {result.gap / result.fun:14.2e} {result.time:7.2f} s "
                    f"{result.nit:7d} {len(result.basis):6d}  {result.status.name}",
                    flush=True,
                )
        plot_convergence(runs, x="time", y="relative_gap", ax=ax)
        ax.set_xscale("log")
        ax.set_title(name)
    fig.savefig(args.out / "certificates.png", dpi=120)
    print(f"\nwritten: {args.out / 'certificates.png'}")


def prove(X, y, norm: str, fraction: float, tol: float, max_time: float) -> mopn.Result:
    """Fit at a fraction of ``strength_max`` until the gap is proven to be at most ``tol``."""
    limit = mopn.NetworkProblem(X, y, norm=norm, strength=1.0, augment=True).strength_max("exact")
    problem = mopn.NetworkProblem(X, y, norm=norm, strength=fraction * limit, augment=True)
    solver = mopn.solvers.ConditionalGradient(refit="full", oracle="exact")
    return mopn.minimize(problem, solver, tol=tol, max_time=max_time)


def _training_half(X, y):
    data = split(X, y, 0)
    return data.X_train, data.y_train


if __name__ == "__main__":
    main()
