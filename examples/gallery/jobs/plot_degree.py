"""
Products of three features
==========================

Factorization machines of one output take any degree. A target made of one product of three features cannot be fitted by
pairs; at degree 3 the machine fits it and names the product.
"""

import matplotlib.pyplot as plt
import numpy as np

import mopn
from mopn.estimators import FactorizationMachineRegressor
from mopn.plotting import plot_interactions

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 8))
y = X[:, 0] * X[:, 1] * X[:, 2] + 0.5 * X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=1500)
train, test = slice(0, 1000), slice(1000, None)

figure = plt.figure(figsize=(4.5, 6), layout="constrained")
axes = figure.subplot_mosaic("ab;cc")
for degree, ax in ((2, axes["a"]), (3, axes["b"])):
    machine = FactorizationMachineRegressor(
        degree=degree, n_components=6, alpha=1, beta=1, random_state=0
    )
    machine.fit(X[train], y[train])
    ax.scatter(y[test], machine.predict(X[test]), s=5, alpha=0.5)
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1)
    r2 = machine.score(X[test], y[test])
    ax.set_title(f"degree {degree}\ntest R² = {r2:.2f}", fontsize=10)
    ax.set_xlabel("target")
axes["a"].set_ylabel("prediction")
found = mopn.explain.strongest_interactions(machine, 6, degree=3)
plot_interactions(found, ax=axes["c"])
axes["c"].set_title("strongest products of three", fontsize=10)
plt.show()
