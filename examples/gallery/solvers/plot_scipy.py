"""
Another solver in the same plot
===============================

SciPy's L-BFGS minimises the same objective, as one would write it without mopn. With 30 units it is the fastest on this
small regression; with 2 units it ends at a local minimum. It cannot tell one from the other; mopn's bound can.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

import mopn
from mopn.plotting import plot_convergence
from mopn.solvers import ConditionalGradient


def scipy_lbfgs(X, y, strength, n_units):
    """Fit both layers, with weights +1 and -1: the penalty is strength times ||H||^2."""
    Z, signs = np.column_stack([np.ones(len(X)), X]), (-1.0) ** np.arange(n_units)
    start = 0.1 * np.random.default_rng(0).normal(size=n_units * Z.shape[1])

    def objective(H):
        H = H.reshape(n_units, -1)
        products = Z @ H.T
        residuals = products**2 @ signs - y
        slopes = 2 * (residuals[:, None] * products * signs).T @ Z + 2 * strength * H
        return 0.5 * residuals @ residuals + strength * np.sum(H**2), slopes.ravel()

    def record(intermediate_result):
        seconds = time.perf_counter() - began
        trace.append(time=seconds, fun=intermediate_result.fun, gap=np.inf)

    trace, began = mopn.solvers.Trace(), time.perf_counter()
    minimize(objective, start, jac=True, method="L-BFGS-B", callback=record)
    return mopn.Result(trace=trace)


X, y = map(scale, load_diabetes(return_X_y=True))
options = {"loss": "squared", "norm": "l1", "strength": 20.0, "augment": True}
problem = mopn.NetworkProblem(X, y, **options)
runs = {
    f"{refit} refits": mopn.minimize(problem, ConditionalGradient(refit), tol=1e-8)
    for refit in ("output", "full")
}
for units in (2, 30):
    runs[f"SciPy, {units} units"] = scipy_lbfgs(X, y, problem.strength, units)

# %%
# The level of the curves is the best bound that a run of mopn has proven.

ax = plot_convergence(runs, y="suboptimality", markersize=4)
ax.figure.set_size_inches(4.5, 3.4)
best = runs["full refits"]
for label, run in runs.items():
    above = run.trace["fun"][-1] / best.lower - 1
    print(f"{label:15} within 1% of the minimum, proven: {above < 0.01}")
plt.show()
