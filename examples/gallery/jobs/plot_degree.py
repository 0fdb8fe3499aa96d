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

figure, axes = plt.subplots(
    1, 3, figsize=(9.5, 3.4), layout="constrained", width_ratios=(1, 1, 1.2)
)
for degree, ax in zip((2, 3), axes, strict=False):
    machine = FactorizationMachineRegressor(
        degree=degree, n_components=6, alpha=1, beta=1, random_state=0
    )
    machine.fit(X[train], y[train])
    ax.scatter(y[test], machine.predict(X[test]), s=5, alpha=0.5)
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1)
    ax.set_title(
        f"degree {degree}: test R² = {machine.score(X[test], y[test]):.2f}", fontsize=10
    )
    ax.set_xlabel("target")
axes[0].set_ylabel("prediction")
found = mopn.explain.strongest_interactions(machine, 6, degree=3)
plot_interactions(found, ax=axes[2])
axes[2].set_title("strongest products of three", fontsize=10)
plt.show()
