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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import mopn
from mopn.plotting import plot_convergence


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the plot and the model")
    parser.add_argument("--units", type=int, default=60, help="largest number of units (default 60)")
    parser.add_argument("--share", type=float, default=0.005, help="strength, relative to the largest (default 0.005)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)

    # All pixels have one unit, so all are divided by the same number.
    problem = mopn.NetworkProblem(X_train, y_train, norm="l1", strength=0.0, augment=True, center=True, scale="data")
    problem = problem.with_strength(problem.strength_of_share(args.share))
    print(f"digits: {len(X_train)} training rows, {X.shape[1]} features, 10 classes; l1 norm, logistic loss")
    solver = mopn.solvers.ConditionalGradient(max_units=args.units, refit="full")
    result = mopn.minimize(problem, solver, tol=1e-2, verbose=1)
    model = mopn.Model.from_result(problem, result)
    model.save(args.out / "digits.npz")

    print("\ntest accuracy")
    accuracy = (model.predict(X_test) == y_test).mean()
    print(f"  mopn, {len(result.basis):4d} units                    {accuracy:.4f}   ({result.time:.2f} s)")
    for name, baseline in (
        ("linear logistic regression", make_pipeline(MinMaxScaler((-1, 1)), LogisticRegression(max_iter=5000))),
        ("SVM, quadratic kernel", make_pipeline(MinMaxScaler((-1, 1)), SVC(kernel="poly", degree=2, coef0=1.0))),
    ):
        began = time.perf_counter()
        baseline.fit(X_train, y_train)
        seconds = time.perf_counter() - began
        print(f"  {name:34s} {baseline.score(X_test, y_test):.4f}   ({seconds:.2f} s)")

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
