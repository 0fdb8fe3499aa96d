"""A certified multi-class polynomial network on scikit-learn's digits.

Prints the table of iterations, the number of units, the accuracy next to that of a linear model and of an SVM with a
quadratic kernel, and the certificate; writes the model and the convergence plot.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import mopn
from mopn.plotting import plot_convergence


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the plot and the model")
    parser.add_argument("--units", type=int, default=60, help="largest number of units (default 60)")
    parser.add_argument("--strength", type=float, default=10.0, help="strength of the l1 norm (default 10)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    X, y = load_digits(return_X_y=True)
    X = X / 8.0 - 1.0  # pixels 0..16 to [-1, 1]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

    problem = mopn.NetworkProblem(X_train, y_train, norm="l1", strength=args.strength, augment=True)
    print(f"digits: {len(X_train)} training rows, {X.shape[1]} features, 10 classes; l1 norm, logistic loss")
    solver = mopn.solvers.ConditionalGradient(max_units=args.units, refit="full")
    result = mopn.minimize(problem, solver, tol=1e-2, verbose=1)
    model = mopn.Model.from_result(problem, result)
    model.save(args.out / "digits.npz")

    print("\ntest accuracy")
    accuracy = (model.predict(X_test) == y_test).mean()
    print(f"  mopn, {len(result.basis):4d} units                    {accuracy:.4f}   ({result.time:.2f} s)")
    for name, baseline in (
        ("linear logistic regression", LogisticRegression(max_iter=5000)),
        ("SVM, quadratic kernel", SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0)),
    ):
        began = time.perf_counter()
        baseline.fit(X_train, y_train)
        seconds = time.perf_counter() - began
        size = f", {len(baseline.support_)} vectors" if isinstance(baseline, SVC) else ""
        print(f"  {name + size:34s} {baseline.score(X_test, y_test):.4f}   ({seconds:.2f} s)")

    print(
        f"\ncertificate: objective {result.fun:.4f}; proven: no network of any size is below "
        f"{result.fun - result.gap:.4f}"
        f"\n             (relative gap {result.gap / result.fun:.2%}; {result.message})"
    )
    fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    plot_convergence(result, x="time", y="fun", ax=axes[0])
    plot_convergence(result, x="n_iter", y="relative_gap", ax=axes[1])
    fig.savefig(args.out / "convergence.png", dpi=120)
    print(f"\nwrote {args.out / 'convergence.png'} and {args.out / 'digits.npz'}")


if __name__ == "__main__":
    main()
