"""
Three ways to correct a step
============================

Conditional gradient adds a unit for the present gradient. The number of rounds depends on the next move: a plain
step, a convex refit of the output layer, or a refit of both layers.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import mopn
from mopn.plotting import plot_convergence

X, y = load_wine(return_X_y=True)
problem = mopn.NetworkProblem(
    X, y, norm="l1", strength=1.0, augment=True, center=True, scale="features"
)
runs = {
    f'refit="{refit}"': mopn.minimize(
        problem,
        mopn.solvers.ConditionalGradient(refit=refit),
        tol=1e-5,
        max_iter=300,
        max_time=2.0,
    )
    for refit in ("none", "output", "full")
}
figure, axes = plt.subplots(2, 1, figsize=(4.5, 6), layout="constrained")
plot_convergence(runs, x="time", y="relative_gap", ax=axes[0])
plot_convergence(runs, x="n_units", y="relative_gap", ax=axes[1])
axes[1].set_xscale("log")
plt.show()

# %%
# Plain steps never remove or merge a unit; after hundreds of them the gap is still wide. Refits of both layers move the
# units that are there, so they need the fewest.
