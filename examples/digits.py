"""A certified multi-class polynomial network on scikit-learn's digits.

Prints the table of iterations, the number of units, the accuracy next to a linear model's and an SVM's with a
quadratic kernel, and the certificate; writes the model, and a figure of its units, its proof and its size.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import mopn
from mopn.plotting import plot_convergence
from mopn.plotting.convergence import NORM_COLORS


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the plot and the model")
    parser.add_argument("--units", type=int, default=60, help="largest number of units (default 60)")
    parser.add_argument("--ratio", type=float, default=0.005, help="strength, as a mopn.Ratio (default 0.005)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    # All pixels have one unit, so all are divided by the same number.
    strength = mopn.Ratio(args.ratio)
    problem = mopn.NetworkProblem(
        X_train, y_train, norm="l1", strength=strength, augment=True, center=True, scale="data"
    )
    print(f"digits: {len(X_train)} training rows, {X.shape[1]} features, 10 classes; l1 norm, logistic loss")
    solver = mopn.solvers.ConditionalGradient(max_units=args.units, refit="full")
    result = mopn.minimize(problem, solver, tol=1e-3, verbose=1)
    model = mopn.Model.from_result(problem, result)
    model.save(args.out / "digits.npz")

    print("\ntest accuracy")
    accuracy = (model.predict(X_test) == y_test).mean()
    name = f"mopn, {len(result.basis)} units"
    print(f"  {name:34s} {accuracy:.4f}   ({result.time:.2f} s)")
    sizes = {name: (model.basis.size + model.weights.size, accuracy)}
    for name, baseline in (
        ("linear logistic regression", make_pipeline(MinMaxScaler((-1, 1)), LogisticRegression(max_iter=5000))),
        ("SVM, quadratic kernel", make_pipeline(MinMaxScaler((-1, 1)), SVC(kernel="poly", degree=2, coef0=1.0))),
    ):
        began = time.perf_counter()
        baseline.fit(X_train, y_train)
        seconds = time.perf_counter() - began
        sizes[name] = count_of_numbers(baseline[-1]), baseline.score(X_test, y_test)
        print(f"  {name:34s} {sizes[name][1]:.4f}   ({seconds:.2f} s)")

    print(
        f"\ncertificate: objective {result.fun:.4f}; proven: no network of any size is below "
        f"{result.lower:.4f}"
        f"\n             (relative gap {result.gap / result.fun:.2%}; {result.message})"
    )
    figure = draw(result, model, sizes)
    figure.savefig(args.out / "digits.png", dpi=130)
    print(f"\nwrote {args.out / 'digits.png'} and {args.out / 'digits.npz'}")


def count_of_numbers(baseline: Any) -> int:
    """Return how many numbers a prediction of a linear model or an SVM reads."""
    if isinstance(baseline, SVC):
        return baseline.support_vectors_.size + baseline.dual_coef_.size
    return baseline.coef_.size + baseline.intercept_.size


def draw(result: mopn.Result, model: mopn.Model, sizes: dict[str, tuple[int, float]]) -> Any:
    """Draw units as images, the proven gap against time, and accuracy against size."""
    figure = plt.figure(figsize=(10.5, 3.5), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1, 1.15, 1.15))
    draw_units(left, model)

    ax = middle.subplots()
    plot_convergence({"l1": result}, x="time", y="relative_gap", ax=ax)
    ax.get_legend().remove()
    ax.set_title("its distance to the optimum, proven", fontsize=10)

    ax = right.subplots()
    for color, (name, (size, accuracy)) in zip((NORM_COLORS["l1"], "0.5", "0.5"), sizes.items(), strict=True):
        ax.plot(size, 100 * accuracy, "o", color=color)
        ax.annotate(name, (size, 100 * accuracy), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=8)
    ax.set_xscale("log")
    ax.margins(x=0.5, y=0.3)
    ax.set_xlabel("numbers in the model")
    ax.set_ylabel("test accuracy (%)")
    ax.set_title("its accuracy and size", fontsize=10)
    return figure


def draw_units(figure: Any, model: mopn.Model) -> None:
    """Draw the units of the largest weights as images, with the class of each; blue and red pixels are opposed."""
    largest = np.argsort(-np.abs(model.weights).max(axis=1))[:12]
    axes = figure.subplots(3, 4)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, r in zip(axes.flat, largest, strict=False):
        image = model.basis[r, 1:].reshape(8, 8)
        ax.imshow(image, cmap="RdBu_r", vmin=-np.abs(image).max(), vmax=np.abs(image).max())
        ax.set_title(f"for {model.classes[np.argmax(model.weights[r])]}", fontsize=8)
    figure.suptitle("units of the network", fontsize=10)


if __name__ == "__main__":
    main()
