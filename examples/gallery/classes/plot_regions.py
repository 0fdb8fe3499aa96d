"""
Classes in the plane
====================

Rings and a checkerboard: a linear model cannot tell the classes apart, two or three units can. A unit computes the
square of a projection of (1, x), so a class's output is a quadratic function of the features.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression

from mopn.estimators import MultiOutputPNClassifier

rng = np.random.default_rng(0)
squares = rng.uniform(-1, 1, (400, 2))
sets = {
    "rings": make_circles(400, noise=0.1, factor=0.5, random_state=0),
    "checkerboard": (squares, (squares[:, 0] * squares[:, 1] > 0).astype(int)),
    "four classes": (
        squares,
        (squares[:, 0] * squares[:, 1] > 0) + 2 * (np.sum(squares**2, axis=1) > 0.6),
    ),
}

grid = np.meshgrid(np.linspace(-1.3, 1.3, 150), np.linspace(-1.3, 1.3, 150))
figure, axes = plt.subplots(
    3, 2, figsize=(4.5, 7), layout="constrained", sharex=True, sharey=True
)
for (name, (X, y)), row in zip(sets.items(), axes, strict=True):
    models = {
        "linear": LogisticRegression(),
        "network": MultiOutputPNClassifier(max_units=6, random_state=0),
    }
    for (label, model), ax in zip(models.items(), row, strict=True):
        model.fit(X, y)
        regions = model.predict(
            np.column_stack([grid[0].ravel(), grid[1].ravel()])
        ).reshape(grid[0].shape)
        ax.pcolormesh(*grid, regions, cmap="tab10", vmin=0, vmax=9, alpha=0.25)
        ax.scatter(*X.T, c=y, s=8, cmap="tab10", vmin=0, vmax=9)
        units = f", {len(model.basis_)} units" if label == "network" else ""
        ax.set_title(f"{name}\n{label}{units}, {model.score(X, y):.0%}", fontsize=10)
plt.show()
