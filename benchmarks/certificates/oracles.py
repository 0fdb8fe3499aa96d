"""How good the choice of units is, along real fits: Figure 2 of Blondel et al. (NIPS 2017), and what proofs cost.

Logistic loss, [1, x], the training half of split 0, refits of both layers, exact oracles. For every gradient of the
fits, nu-hat is the value of a start over the proven bound of the optimum: exact where the oracle proves the optimum,
otherwise a lower bound of it. The second table calls a fresh oracle on the gradients in their order::

    OMP_NUM_THREADS=1 python -m benchmarks.certificates.oracles --data FOLDER
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import mopn
from benchmarks.common.datasets import DATA_SETS, load, split
from benchmarks.common.figures import legend_below, plt, save
from benchmarks.common.study import make_parser, out_folder, run
from mopn.network.gradient_forms import GradientForms
from mopn.network.oracles import BasisAtoms, basis_oracle
from mopn.solvers.interface import Effort
from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.refinement import dominant_starts, extreme_starts, gram_starts, random_starts

# The exponents p of the dual norms that Figure 2 is about.
EXPONENTS = {"l1/linf": 1, "l1/l2": 2}
STARTS = ("l1 + refine", "random + refine", "l1", "random", "best data", "extremes + refine", "Gram + refine", "mopn")
_PRECISION = 1e-4
# With a single draw a gradient, means over ten gradients move by a few per cent.
_DRAWS = 20


class Recording(NamedTuple):
    """The gradients of a fit, as stacks, their rounds, and the unit-length training rows [1, x] (n, d)."""

    stacks: list[DenseStack]
    rounds: list[int]
    rows: np.ndarray


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = make_parser("certificates.oracles", __doc__, sets=DATA_SETS, results="oracles")
    parser.add_argument("--norms", nargs="+", default=["l1", "l1/l2", "l1/linf"], help="default: all three")
    parser.add_argument("--fraction", type=float, default=0.02, help="strength over strength_max (default 0.02)")
    parser.add_argument("--rounds", type=int, default=10, help="gradients a fit, evenly spread (default 10)")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds a fit (default 20)")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> None:
    """Print both tables, and write the figure."""
    out = out_folder(args)
    out.mkdir(parents=True, exist_ok=True)
    ratios: dict[tuple[str, str], np.ndarray] = {}
    print("set       norm     round      value  bound/value - 1     work     time")
    for name in args.sets:
        for norm in args.norms:
            recording = record(*training_half(name, args.data), norm, args.fraction, args.rounds, args.max_time)
            answers = prove(recording.stacks, norm)
            print_proofs(name, norm, recording.rounds, answers)
            if norm in EXPONENTS:
                bounds = [atoms.bound for atoms, _ in answers]
                ratios[name, norm] = nu_hat(recording, EXPONENTS[norm], bounds)
    if ratios:
        print_figure(ratios)
        save(plot(ratios, args.sets), out / "oracles.png", dpi=120)
        print(f"\nwritten: {out / 'oracles.png'}")


def training_half(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the training part of split 0."""
    data = split(*load(name, folder), 0)
    return data.X_train, data.y_train


def record(X, y, norm: str, fraction: float, rounds: int, max_time: float) -> Recording:
    """Fit, and keep a number of its gradients, the first and the last among them."""
    limit = mopn.NetworkProblem(X, y, norm=norm, strength=1.0, augment=True).strength_max("exact")
    problem = mopn.NetworkProblem(X, y, norm=norm, strength=fraction * limit, augment=True)
    networks: list[Any] = []
    solver = mopn.solvers.ConditionalGradient(refit="full", oracle="exact")

    def keep(intermediate_result: mopn.Result) -> None:
        networks.append(problem.start(intermediate_result))

    mopn.minimize(problem, solver, tol=_PRECISION, max_time=max_time, callback=keep)
    kept = np.unique(np.linspace(0, len(networks) - 1, rounds).round().astype(int))
    stacks = [gradient_stack(problem, networks[k]) for k in kept]
    rows = np.hstack([np.ones((len(X), 1)), X])
    return Recording(stacks, kept.tolist(), rows / np.linalg.norm(rows, axis=1, keepdims=True))


def gradient_stack(problem: mopn.NetworkProblem, network: Any) -> DenseStack:
    """Return the matrices whose forms are the loss gradient in a unit's outputs, as the oracle sees them."""
    return GradientForms(problem.kernel, problem.rows, problem.output_gradient(network).G).dense


def prove(stacks: list[DenseStack], norm: str) -> list[tuple[BasisAtoms, float]]:
    """Call one oracle on all stacks, like a fit; return its answers and their seconds."""
    oracle, answers = basis_oracle(norm, method="exact"), []
    for stack in stacks:
        # Results that a stack computed for others would be free here.
        fresh = DenseStack(stack.matrices, stack.error)
        began = time.perf_counter()
        atoms = oracle(fresh, Effort(_PRECISION))
        answers.append((atoms, time.perf_counter() - began))
    return answers


def starts(stack: DenseStack, rows: np.ndarray, p: int, seed: int) -> dict[str, float]:
    """Return the value ||q(h)||_p that each way to choose a unit reaches; of random starts the mean."""

    def value(H: np.ndarray) -> np.ndarray:
        return np.linalg.norm(stack.forms(H), p, axis=1)

    def refined(H: np.ndarray) -> np.ndarray:
        return refine(stack, H, p, tol=1e-6)[1]

    values, vectors = stack.eigen
    sizes = np.abs(values).max(axis=1)
    l1 = dominant_starts(stack)[[int(np.argmax(sizes))]]
    random = np.random.default_rng(seed).standard_normal((_DRAWS, vectors.shape[1]))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    many = [extreme_starts(stack), gram_starts(stack, p)] + [random_starts(stack)] * (p == 1)
    paper = (refined(l1).max(), refined(random).mean(), value(l1).max(), value(random).mean(), value(rows).max())
    ours = (refined(many[0]).max(), refined(many[1]).max(), refined(np.vstack(many)).max())
    return dict(zip(STARTS, map(float, (*paper, *ours)), strict=True))


def nu_hat(recording: Recording, p: int, bounds: list[float]) -> np.ndarray:
    """Return the values of all starts over the proven bounds, shape (gradients, starts)."""
    rows = [list(starts(stack, recording.rows, p, seed).values()) for seed, stack in enumerate(recording.stacks)]
    return np.array(rows) / np.array(bounds)[:, None]


def print_proofs(name: str, norm: str, rounds: list[int], answers: list[tuple[BasisAtoms, float]]) -> None:
    """Print a row a gradient, and the medians."""
    for number, (atoms, seconds) in zip(rounds, answers, strict=True):
        excess = atoms.bound / atoms.values[0] - 1
        print(
            f"{name:9s} {norm:8s} {number:5d} {atoms.values[0]:10.4g} {excess:16.1e} {atoms.work:8.1e} {seconds:7.3f} s"
        )
    excess = np.median([atoms.bound / atoms.values[0] - 1 for atoms, _ in answers])
    work = np.median([atoms.work for atoms, _ in answers])
    seconds = np.median([seconds for _, seconds in answers])
    print(f"{name:9s} {norm:8s} median            {excess:15.1e} {work:8.1e} {seconds:7.3f} s", flush=True)


def print_figure(ratios: dict[tuple[str, str], np.ndarray]) -> None:
    """Print mean and least nu-hat of every start."""
    print("\nnu-hat: mean (least) over the gradients of a fit\n")
    keys = list(ratios)
    print(f"{'':18s}" + "".join(f"{name + ' ' + norm:>20s}" for name, norm in keys))
    for column, start in enumerate(STARTS):
        cells = (f"{ratios[key][:, column].mean():.3f} ({ratios[key][:, column].min():.3f})" for key in keys)
        print(f"{start:18s}" + "".join(f"{cell:>20s}" for cell in cells))


def plot(ratios: dict[tuple[str, str], np.ndarray], sets: list[str]) -> plt.Figure:
    """Draw the means as bars and the ranges as whiskers: a row a norm, a column a data set."""
    norms = [norm for norm in EXPONENTS if any(key[1] == norm for key in ratios)]
    fig, axes = plt.subplots(
        len(norms), len(sets), figsize=(2.9 * len(sets), 2.6 * len(norms)), sharey=True, sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    places = np.arange(len(STARTS))
    for row, norm in enumerate(norms):
        axes[row, 0].set_ylabel(f"{norm}\nvalue / optimum")
        for ax, name in zip(axes[row], sets, strict=True):
            values = ratios[name, norm]
            mean = values.mean(axis=0)
            whiskers = np.clip([mean - values.min(axis=0), values.max(axis=0) - mean], 0.0, None)
            ax.bar(places, mean, yerr=whiskers, color=["C0"] * 5 + ["C1"] * 3, error_kw={"elinewidth": 1})
            ax.set_ylim(0, 1.05)
            ax.set_title(name if row == 0 else "")
            ax.set_xticks(places, STARTS, rotation=90)
    bars = [plt.Rectangle((0, 0), 1, 1, color=color) for color in ("C0", "C1")]
    labels = ["starts of the paper", "starts of mopn; whiskers: least and largest gradient of a fit"]
    legend_below(fig, bars, labels, 2)
    return fig


if __name__ == "__main__":
    sys.exit(main())
